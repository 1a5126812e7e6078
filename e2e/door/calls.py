"""Calls of functions, held to their schemas and free: how many fit.

    python3 calls.py http://127.0.0.1:8788 --count 200

Needs the package `jsonschema`, which judges the arguments.
"""

import argparse
import json

import jsonschema

from client import Server

UNITS = {"type": "string", "enum": ["celsius", "fahrenheit"]}
FUNCTIONS = {
    "weather": {
        "type": "object", "additionalProperties": False, "required": ["city", "days", "units"],
        "properties": {"city": {"type": "string", "maxLength": 40}, "days": {"type": "integer", "minimum": 1, "maximum": 14}, "units": UNITS},
    },
    "edit_file": {
        "type": "object", "additionalProperties": False, "required": ["path", "edits"],
        "properties": {
            "path": {"type": "string", "maxLength": 60},
            "edits": {
                "type": "array", "minItems": 1, "maxItems": 3,
                "items": {
                    "type": "object", "additionalProperties": False, "required": ["line", "text"],
                    "properties": {"line": {"type": "integer", "minimum": 1}, "text": {"type": "string", "maxLength": 80}},
                },
            },
        },
    },
    "search": {
        "type": "object", "additionalProperties": False, "required": ["query", "limit", "exact"],
        "properties": {
            "query": {"type": "string", "maxLength": 60}, "limit": {"type": "integer", "minimum": 1, "maximum": 100}, "exact": {"type": "boolean"},
            "kind": {"anyOf": [{"const": "file"}, {"const": "symbol"}, {"type": "null"}]},
        },
    },
}
TASKS = [
    "What will the weather be in Lisbon for the next 3 days?", "Is it going to rain in Oslo this week? I think in Fahrenheit.",
    "In src/main.rs, line 12 must say `let x = 5;`.", "Fix the typo in README.md: line 3 should read \"Potluck runs models together\".",
    "Find all places where `parse_header` is used.", "Search for files whose name has \"config\" in it, 20 at most.",
    "How warm is Nairobi over the next two weeks?", "Replace lines 1 and 2 of notes.txt with \"a\" and \"b\".",
    "Which symbols are called exactly Session? Five are enough.", "Weather in Reykjavik, 5 days, Celsius please.",
]


def tools(strict):
    more = {"strict": True} if strict else {}
    return [{"type": "function", "function": {"name": name, "description": name.replace("_", " "), "parameters": schema, **more}} for name, schema in FUNCTIONS.items()]


def verdict(reply):
    """`fits`, or what is wrong."""
    calls = reply["choices"][0]["message"].get("tool_calls")
    if not calls:
        return "no call"
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name not in FUNCTIONS:
            return "no such function"
        try:
            jsonschema.validate(json.loads(arguments), FUNCTIONS[name])
        except json.JSONDecodeError:
            return "cut short" if reply["choices"][0]["finish_reason"] == "length" else "no JSON"
        except jsonschema.ValidationError:
            return "another schema"
    return "fits"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("url")
    arguments.add_argument("--count", type=int, default=200)
    given = arguments.parse_args()
    server = Server(given.url)
    for name, strict, choice in [("strict, a call demanded", True, "required"), ("strict, a call possible", True, "auto"), ("free", False, "auto")]:
        seen, tokens, seconds = {}, 0, 0.0
        for number in range(given.count):
            body = {
                "messages": [{"role": "user", "content": TASKS[number % len(TASKS)]}], "tools": tools(strict), "tool_choice": choice,
                "temperature": [0.7, 1.0][number // len(TASKS) % 2], "seed": number, "max_tokens": 512, "parallel_tool_calls": False,
            }
            reply, took = server.ask("/v1/chat/completions", body)
            outcome = verdict(reply)
            seen[outcome] = seen.get(outcome, 0) + 1
            tokens += reply["usage"]["completion_tokens"]
            seconds += took
        print(f"calls, {name}: {seen.get('fits', 0)} of {given.count} fit; {seen}; {tokens} tokens in {seconds:.1f} s", flush=True)


main()
