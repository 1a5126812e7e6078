"""The share of tokens that each expert gets in each block, on held-out chat, with the trained weights.

    python shares.py --weights out/chat --heldout out/heldout.json --out eval/shares.json

Fails when a share lies outside 0.4 to 2.5 times the mean.
"""

import argparse
import json

import torch

import pieces
from model import Config, Model

LOW, HIGH = 0.4, 2.5


@torch.no_grad()
def measure(model, documents):
    """`[blocks][experts]`, 1 being the mean share."""
    total, tokens = 0, 0
    for document in documents:
        ids = torch.tensor([document["ids"][: model.c.context]])
        _, loads, _ = model(ids, dtype=torch.float32)
        total = total + loads * ids.numel()
        tokens += ids.numel()
    return total / tokens * model.c.experts, tokens


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--heldout", required=True)
    parser.add_argument("--out")
    parser.add_argument("--low", type=float, default=LOW)
    parser.add_argument("--high", type=float, default=HIGH)
    args = parser.parse_args()
    config, state = pieces.load(args.weights)
    model = Model(Config(**config))
    model.load_state_dict(state)
    with open(args.heldout) as file:
        heldout = json.load(file)
    shares, tokens = measure(model, [d for part, documents in heldout.items() if part != "prose" for d in documents])
    rows = [[round(v, 3) for v in row] for row in shares.tolist()]
    for block, row in enumerate(rows):
        print(block, *row)
    print(f"{tokens:,} tokens, lowest {shares.min():.3f}, highest {shares.max():.3f}")
    if args.out:
        with open(args.out, "w") as file:
            json.dump({"tokens": tokens, "shares": rows}, file)
            file.write("\n")
    if shares.min() < args.low or shares.max() > args.high:
        raise SystemExit("An expert's share is out of bounds.")


if __name__ == "__main__":
    main()
