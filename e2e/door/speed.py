"""The same answer through `serve` and by `run`, in turn.

    python3 speed.py BINARY MODEL --rounds 5 --tokens 512 [-- OPTIONS of both]

`run` says itself what first token and decode took; for `serve` a client's clock counts, from the request to the last piece.
"""

import argparse
import json
import subprocess
import sys

from client import Server, median

PROMPT = "Once upon a time there was a table, and on the table stood a pot."


def by_run(binary, model, tokens, options):
    """Milliseconds to the first token, and of all."""
    command = [binary, "run", model, "--prompt", PROMPT, "--raw", "--bench", "--temperature", "0", "--max-tokens", str(tokens), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    [line] = [line for line in done.stderr.splitlines() if line.startswith("{") and '"timings"' in line]
    timings = json.loads(line)["timings"]
    return timings["first_token_ms"], timings["first_token_ms"] + timings["decode_ms"], timings["answer_tokens"]


class Serving:
    """A `serve` of its own."""

    def __init__(self, binary, model, options):
        self.process = subprocess.Popen([binary, "serve", model, "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip().removesuffix("/v1")

    def answer(self, tokens):
        body = {"prompt": PROMPT, "temperature": 0, "max_tokens": tokens}
        _, first, last, usage = Server(self.url).stream("/v1/completions", body)
        return first * 1000, last * 1000, usage["completion_tokens"]

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("binary")
    arguments.add_argument("model")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--tokens", type=int, default=512)
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given, options = arguments.parse_args(sys.argv[1:end]), sys.argv[end + 1:]
    by_run(given.binary, given.model, 8, options)
    seen = {"run": [], "serve": []}
    for number in range(given.rounds):
        seen["run"].append(by_run(given.binary, given.model, given.tokens, options))
        serving = Serving(given.binary, given.model, options)
        # A process that has just begun answers its first question, as the one of `run` does.
        seen["serve"].append(serving.answer(given.tokens))
        serving.close()
        print(number, seen["run"][-1], seen["serve"][-1], file=sys.stderr, flush=True)
    rates = {}
    for way, rows in seen.items():
        rates[way] = median([(tokens - 1) / (all_ - first) * 1000 for first, all_, tokens in rows])
        whole = median([all_ for _, all_, _ in rows])
        print(f"speed, {way}: {rates[way]:.1f} tokens a second, first token {median([first for first, _, _ in rows]):.0f} ms, {whole:.0f} ms in all, {rows[0][2]} tokens")
    print(f"speed: serve has {100 * (rates['serve'] / rates['run'] - 1):+.1f}% of run's tokens a second")


main()
