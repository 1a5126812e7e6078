"""Renders the templates in ../templates with Jinja2, as Hugging Face Transformers does, into templates.json.

    pip install jinja2 && python make_templates.py

The templates are those that the named models are published with (Qwen and Mistral: Apache-2.0; Llama: the Llama
community licence), as they are collected in the source distribution of llama-cpp-python.
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 11, 21, 9, 5, 7)

TOKENS = {
    "llama-3": ("<|begin_of_text|>", "<|eot_id|>"),
    "llama-3.2": ("<|begin_of_text|>", "<|eot_id|>"),
    "qwen2.5": ("", "<|im_end|>"),
    "qwen3": ("", "<|im_end|>"),
    "mistral-7b": ("<s>", "</s>"),
    "mistral-nemo": ("<s>", "</s>"),
}


def message(role, content):
    return {"role": role, "content": content}


CONVERSATIONS = {
    "one question": [message("user", "What is a potluck?")],
    "with a system prompt": [message("system", "Be brief.\n"), message("user", "  Hi <b>you</b> & 'me'  ")],
    "several turns": [
        message("user", "Eins?"),
        message("assistant", "<think>\nhm\n</think>\n\nZwei."),
        message("user", "Drei? 🦙\n\n"),
        message("assistant", "Vier."),
        message("user", "Fünf?"),
    ],
    "not alternating": [message("user", "a"), message("user", "b")],
}

OPTIONS = [
    {},
    {"add_generation_prompt": False},
    {"enable_thinking": False},
    {"enable_thinking": True},
]


class Refused(Exception):
    pass


def refuse(reason):
    raise Refused(reason)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = NOW.strftime
    return env


def folded(messages):
    """A refused system message goes in front of the first question."""
    system, question, *rest = messages
    return [message("user", system["content"].strip() + "\n\n" + question["content"]), *rest]


def main():
    cases = []
    for name, (bos, eos) in TOKENS.items():
        source = (HERE / ".." / "templates" / f"{name}.jinja").read_text()
        template = environment().from_string(source)
        for title, messages in CONVERSATIONS.items():
            for options in OPTIONS:
                arguments = {"add_generation_prompt": True, **options}
                case = {"template": name, "title": title, "messages": messages, "options": options}
                arguments.update(bos_token=bos, eos_token=eos)
                try:
                    case["text"] = template.render(messages=messages, **arguments)
                except Refused as refusal:
                    if messages[0]["role"] == "system":
                        case["text"] = template.render(messages=folded(messages), **arguments)
                    else:
                        case["refused"] = str(refusal)
                cases.append({**case, "bos": bos, "eos": eos})
    (HERE / "templates.json").write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n")


main()
