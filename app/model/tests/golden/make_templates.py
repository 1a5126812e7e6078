"""Renders the templates in ../templates as Hugging Face Transformers does, into templates.json.gz.

    pip install transformers==5.23.0 jinja2 && python make_templates.py [FOLDER OF TEMPLATES, FILE TO WRITE]

The templates are those that the named models are published with, as they are collected in the source distribution of
llama-cpp-python; each is under its model's licence. Large ones are packed.
"""

import datetime
import gzip
import json
import pathlib
import sys

import jinja2
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent
FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "templates"
TARGET = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "templates.json.gz"
NOW = datetime.datetime(2026, 11, 21, 9, 5, 7)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = Clock

# Any others render as `<s>` and `</s>`.
TOKENS = {"llama-3": ("<|begin_of_text|>", "<|eot_id|>"), "qwen": ("", "<|im_end|>")}


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def call(id, name, arguments):
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


TOOLS = [
    {"type": "function", "function": {
        "name": "weather", "description": "Tells the weather <of> a place & a day.",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "A town, “quoted”"},
            "days": {"type": "integer", "description": "From now", "default": 1},
            "unit": {"type": "string", "enum": ["°C", "°F"]}}, "required": ["place"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {
        "type": "object", "properties": {}, "required": []}}},
]

CASES = {
    "one question": {"messages": [message("user", "What is a potluck?")]},
    "one question, closed": {"messages": [message("user", "What is a potluck?")], "add_generation_prompt": False},
    "without thinking": {"messages": [message("user", "Now?")], "enable_thinking": False},
    "with thinking": {"messages": [message("user", "Now?")], "enable_thinking": True},
    "with a system prompt": {
        "messages": [message("system", "Be brief.\n"), message("user", "  Hi <b>you</b> & 'me'  ")]},
    "several turns": {"messages": [
        message("user", "Eins?"),
        message("assistant", "<think>\nhm\n</think>\n\nZwei."),
        message("user", "Drei? 🦙\n\n"),
        message("assistant", "Vier."),
        message("user", "Fünf?")]},
    "reasoning": {"messages": [
        message("user", "Eins?"),
        message("assistant", "Zwei.", reasoning_content="Ich zähle."),
        message("user", "Drei?")]},
    "not alternating": {"messages": [message("user", "a"), message("user", "b")]},
    "tools": {"messages": [message("system", "Help."), message("user", "Rain?")], "tools": TOOLS},
    "a tool's answer": {"messages": [
        message("user", "Rain in Köln?"),
        message("assistant", "", reasoning_content="I ask.",
                tool_calls=[call("abcdefgh1", "weather", {"place": "Köln", "days": 2})]),
        message("tool", "{\"rain\": true}", tool_call_id="abcdefgh1", name="weather")], "tools": TOOLS},
    "after a tool's answer": {"messages": [
        message("user", "Rain in Köln?"),
        message("assistant", "", reasoning_content="I ask.",
                tool_calls=[call("abcdefgh1", "weather", {"place": "Köln", "days": 2})]),
        message("tool", "yes", tool_call_id="abcdefgh1", name="weather"),
        message("assistant", "It rains."),
        message("user", "Thanks")], "tools": TOOLS},
}


def folded(messages):
    """A refused system message goes in front of the first question."""
    system, question, *rest = messages
    return [message("user", system["content"].strip() + "\n\n" + question["content"]), *rest]


def render(source, case, tokens):
    options = {key: value for key, value in case.items() if key not in ["messages", "tools", "add_generation_prompt"]}
    rendered, _ = chat_template_utils.render_jinja_template(
        conversations=[case["messages"]], tools=case.get("tools"), chat_template=source,
        add_generation_prompt=case.get("add_generation_prompt", True), bos_token=tokens[0], eos_token=tokens[1],
        **options)
    return rendered[0]


def as_text(case):
    """Tools and arguments as JSON text, in their order."""
    def of(message):
        calls = [{**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
                 for call in message.get("tool_calls", [])]
        return {**message, "tool_calls": calls} if calls else message
    texts = {**case, "messages": [of(message) for message in case["messages"]]}
    return {**texts, "tools": [json.dumps(tool) for tool in case["tools"]]} if "tools" in case else texts


def main():
    results = []
    files = {file.name.removesuffix(".gz").removesuffix(".jinja"): file for file in FOLDER.glob("*.jinja*")}
    for name, file in sorted(files.items()):
        template = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text()
        tokens = next((tokens for prefix, tokens in TOKENS.items() if name.lower().startswith(prefix)), ("<s>", "</s>"))
        for title, case in CASES.items():
            result = {"template": name, "title": title, "bos": tokens[0], "eos": tokens[1]}
            try:
                result["text"] = render(template, case, tokens)
            except jinja2.exceptions.TemplateError as error:
                result["refused"] = str(error)
            except TypeError as error:
                # The template does not foresee this case, and Python's error says nothing about it.
                print(f"{name}, {title}: {error}")
                continue
            if "refused" in result and case["messages"][0]["role"] == "system":
                try:
                    result["text"] = render(template, {**case, "messages": folded(case["messages"])}, tokens)
                    del result["refused"]
                except jinja2.exceptions.TemplateError:
                    pass
            results.append(result)
    cases = ",\n".join(f"  {json.dumps(title)}: {json.dumps(as_text(case), ensure_ascii=False)}" for title, case in CASES.items())
    rows = ",\n".join(json.dumps(result, ensure_ascii=False) for result in results)
    text = f'{{"cases": {{\n{cases}\n}},\n"results": [\n{rows}\n]}}\n'.encode()
    TARGET.write_bytes(gzip.compress(text, mtime=0) if TARGET.suffix == ".gz" else text)


if __name__ == "__main__":
    main()
