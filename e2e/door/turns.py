"""An agent's conversation: ten turns up to some 4,000 tokens, each sent whole; the seconds to the first token of each.

    python3 turns.py http://127.0.0.1:8788 TEXT --keep turns.json     # the conversation; --again sends its last turn once more

TEXT is a file whose pieces the agent reads.
"""

import argparse
import json
import pathlib

from client import Server

PIECE = 1_080  # characters, some 270 tokens
SYSTEM = 3_200


def turn(server, messages):
    body = {"messages": messages, "temperature": 0, "max_tokens": 48}
    text, first, last, usage = server.stream("/v1/chat/completions", body)
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    print(f"turn {len(messages) // 2}: first token {first * 1000:.0f} ms, prompt {usage['prompt_tokens']} tokens, {cached} of them cached, {usage['completion_tokens']} tokens in {last - first:.3f} s", flush=True)
    return text


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("url")
    arguments.add_argument("text", type=pathlib.Path)
    arguments.add_argument("--turns", type=int, default=10)
    arguments.add_argument("--keep", type=pathlib.Path)
    arguments.add_argument("--again", action="store_true")
    given = arguments.parse_args()
    server = Server(given.url)
    if given.again:
        for _ in range(2):
            turn(server, json.loads(given.keep.read_text()))
        return
    # Kernels are compiled before.
    server.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8})
    text = given.text.read_text()
    messages = [{"role": "system", "content": "You read files and say what they are about.\n" + text[:SYSTEM]}]
    for number in range(given.turns):
        begin = SYSTEM + number * PIECE
        messages.append({"role": "user", "content": f"Part {number + 1} of the file:\n{text[begin:begin + PIECE]}\nWhat is it about, in one sentence?"})
        answer = turn(server, messages)
        if given.keep:
            given.keep.write_text(json.dumps(messages))
        messages.append({"role": "assistant", "content": answer})


main()
