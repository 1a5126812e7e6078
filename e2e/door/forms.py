"""What a form costs a token: the same prompt with forms and without, in turn.

    python3 forms.py http://127.0.0.1:8788 --rounds 5 --tokens 256

A token's time is the difference between a long answer and a short one, over the difference in tokens.
"""

import argparse

from client import Server, median

PROMPT = "Tell a very long story of a lighthouse keeper, with many chapters. Reply with JSON: {\"story\": \"...\"}"
STORY = {"type": "object", "additionalProperties": False, "required": ["story"], "properties": {"story": {"type": "string"}}}
TALE = {
    "type": "object", "additionalProperties": False, "required": ["chapters"],
    "properties": {"chapters": {"type": "array", "minItems": 40, "items": {
        "type": "object", "additionalProperties": False, "required": ["number", "mood", "words"],
        "properties": {"number": {"type": "integer"}, "mood": {"enum": ["calm", "sad", "glad"]}, "words": {"type": "array", "items": {"type": "string"}}},
    }}},
}
SHORT = 16


def schema(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("url")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--tokens", type=int, default=256)
    arguments.add_argument("--temperature", type=float, default=0, help="above 0, drafts of the text so far are seldom right")
    arguments.add_argument("--biased", default="5", help="a token that would not come anyway")
    given = arguments.parse_args()
    server = Server(given.url)
    ways = {
        "free": {},
        "free, token by token": {"logit_bias": {given.biased: -1}},
        "any text, as a form": {"guided_regex": "(?s:.*)"},
        "a schema with one text": schema(STORY),
        "a schema with objects, numbers and choices": schema(TALE),
    }
    seen = {way: [] for way in ways}
    for number in range(given.rounds + 1):
        for way, fields in ways.items():
            took = []
            for tokens in [SHORT, SHORT + given.tokens]:
                body = {"messages": [{"role": "user", "content": PROMPT}], "temperature": given.temperature, "seed": number, "max_tokens": tokens, **fields}
                _, _, seconds, usage = server.stream("/v1/chat/completions", body)
                took.append((seconds, usage["completion_tokens"]))
            (short, few), (long, many) = took
            if number and many > few:
                seen[way].append(((long - short) / (many - few) * 1000, many - few))
    for way, values in seen.items():
        each = median([value for value, _ in values])
        print(f"forms, {way}: {each:.2f} ms a token, {1000 / each:.1f} tokens a second, {min(tokens for _, tokens in values)} tokens", flush=True)


main()
