"""Greedy answers of a GGUF file to the chat prompts, by llama.cpp.

    python answers.py --model ../public/models/potluck-small-Q4_K_M.gguf --prompts eval/prompts.jsonl --out eval/answers.jsonl

Fails when an answer is cut off within the limit or repeats itself.
"""

import argparse
import json

from llama import THREADS, Library
from tokens import END

LIMIT = 200


def render(prompt):
    """One user turn in the chat template of the file."""
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def loops(ids, span=12):
    """Whether a run of `span` tokens comes three times."""
    seen = {}
    for i in range(len(ids) - span + 1):
        gram = tuple(ids[i : i + span])
        seen[gram] = seen.get(gram, 0) + 1
    return any(count >= 3 for count in seen.values())


def greedy(context, ids, stop, limit):
    """The most likely tokens after `ids`, up to and without `stop`, and whether it came."""
    context.clear()
    token = int(context.logits(ids)[-1].argmax())
    said = []
    while token != stop and len(said) < limit:
        said.append(token)
        token = int(context.logits([token])[0].argmax())
    return said, token == stop


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--limit", type=int, default=LIMIT)
    parser.add_argument("--first", type=int, help="only so many prompts")
    parser.add_argument("--untrained", action="store_true", help="do not fail over answers that are cut off or loop")
    args = parser.parse_args()
    with open(args.prompts) as file:
        prompts = [json.loads(line) for line in file if line.strip()][: args.first]
    bad = []
    with Library().load(args.model) as model, open(args.out, "w") as out:
        context = model.context(length=512, cache="f16", threads=THREADS)
        stop = model.tokenize(END)[0]
        for entry in prompts:
            said, ended = greedy(context, model.tokenize(render(entry["prompt"])), stop, args.limit)
            row = {**entry, "answer": model.detokenize(said), "tokens": len(said), "ended": ended, "loops": loops(said)}
            print(json.dumps(row), file=out, flush=True)
            if not ended or row["loops"]:
                bad.append(entry["id"])
    print(f"{len(prompts)} answers, cut off or looping: {bad or 'none'}")
    if bad and not args.untrained:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
