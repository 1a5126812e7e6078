"""The share of tokens that each expert gets in each block on held-out chat, and the perplexity, with the trained weights or a GGUF file's.

    python shares.py --weights out/chat --heldout out/heldout.json --out eval/shares.json
    python shares.py --model out/study-Q4_0.gguf --heldout out/heldout.json

Fails when a share lies outside 0.4 to 2.5 times the mean.
"""

import argparse
import json
import math

import torch
import torch.nn.functional as F

import pieces
from model import Config, Model

LOW, HIGH = 0.4, 2.5


@torch.no_grad()
def measure(model, documents, device="cpu"):
    """`[blocks][experts]`, 1 being the mean share; tokens; perplexity of all but the first tokens, and of what the assistant says."""
    total, tokens, nll = 0, 0, {"all": [0.0, 0], "said": [0.0, 0]}
    for document in documents:
        ids = torch.tensor([document["ids"][: model.c.context]], device=device)
        learn = torch.tensor(document["learn"][1 : model.c.context], device=device)
        logits, loads, _ = model(ids, dtype=torch.float32)
        each = F.cross_entropy(logits[0, :-1], ids[0, 1:], reduction="none")
        for key, mask in (("all", torch.ones_like(learn)), ("said", learn)):
            nll[key][0] += float((each * mask).sum())
            nll[key][1] += int(mask.sum())
        total = total + loads.cpu() * ids.numel()
        tokens += ids.numel()
    perplexity = {key: round(math.exp(sum_ / max(count, 1)), 4) for key, (sum_, count) in nll.items()}
    return total / tokens * model.c.experts, tokens, perplexity


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--weights")
    source.add_argument("--model", help="GGUF file that export.py or potluck-node wrote")
    parser.add_argument("--heldout", required=True)
    parser.add_argument("--out")
    parser.add_argument("--low", type=float, default=LOW)
    parser.add_argument("--high", type=float, default=HIGH)
    args = parser.parse_args()
    config, state = pieces.load(args.weights) if args.weights else pieces.load_gguf(args.model)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model(Config(**config)).to(device).eval()
    model.load_state_dict(state)
    with open(args.heldout) as file:
        heldout = json.load(file)
    documents = [d for part, documents in heldout.items() if part != "prose" for d in documents]
    shares, tokens, perplexity = measure(model, documents, device)
    rows = [[round(v, 3) for v in row] for row in shares.tolist()]
    for block, row in enumerate(rows):
        print(block, *row)
    print(f"{tokens:,} tokens, lowest {shares.min():.3f}, highest {shares.max():.3f}, perplexity {perplexity['all']:.4f}, of what the assistant says {perplexity['said']:.4f}")
    if args.out:
        with open(args.out, "w") as file:
            json.dump({"tokens": tokens, "shares": rows, "perplexity": perplexity}, file)
            file.write("\n")
    if shares.min() < args.low or shares.max() > args.high:
        raise SystemExit("An expert's share is out of bounds.")


if __name__ == "__main__":
    main()
