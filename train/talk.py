"""Greedy answers straight from the training weights, for a first look.

    python talk.py --weights out/chat --tokenizer out/tokenizer.json --prompts eval/prompts.jsonl --out out/answers.jsonl
"""

import argparse
import json

import torch
from tokenizers import Tokenizer

import pieces
from model import Config, Model
from tokens import END, START


@torch.no_grad()
def answers(model, tokenizer, prompts, limit, device):
    """One greedy answer a prompt; all prompts run together, each row read at its own last token."""
    end, start = tokenizer.token_to_id(END), tokenizer.token_to_id(START)
    head = tokenizer.encode("assistant\n").ids
    newline = tokenizer.encode("\n").ids
    rows = [[start, *tokenizer.encode("user\n" + p, add_special_tokens=False).ids, end, *newline, start, *head] for p in prompts]
    said = [[] for _ in rows]
    open_rows = set(range(len(rows)))
    for _ in range(limit):
        if not open_rows:
            break
        order = sorted(open_rows)
        full = [rows[i] + said[i] for i in order]
        width = max(map(len, full))
        ids = torch.zeros(len(full), width, dtype=torch.long, device=device)
        for j, row in enumerate(full):
            ids[j, : len(row)] = torch.tensor(row)
        logits = model(ids, dtype=torch.float32 if device == "cpu" else torch.bfloat16)[0]
        for j, i in enumerate(order):
            token = int(logits[j, len(full[j]) - 1].argmax())
            if token == end:
                open_rows.discard(i)
            else:
                said[i].append(token)
    return [(tokenizer.decode(s), i not in open_rows) for i, s in enumerate(said)]


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--out")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config, state = pieces.load(args.weights)
    model = Model(Config(**config))
    model.load_state_dict(state)
    model.to(device).eval()
    with open(args.prompts) as file:
        prompts = [json.loads(line)["prompt"] for line in file if line.strip()]
    found = answers(model, Tokenizer.from_file(args.tokenizer), prompts, args.limit, device)
    for prompt, (answer, ended) in zip(prompts, found):
        print(f"> {prompt}\n{answer}{'' if ended else ' [cut]'}\n")
    if args.out:
        with open(args.out, "w") as file:
            for prompt, (answer, ended) in zip(prompts, found):
                print(json.dumps({"prompt": prompt, "answer": answer, "ended": ended}), file=file)


if __name__ == "__main__":
    main()
