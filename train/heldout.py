"""Writes held-out documents of each part of the mix, as text and as tokens, for perplexity and expert shares.

    python heldout.py --tokenizer out/tokenizer.json --season out/season.json.xz --out out/heldout.json
"""

import argparse
import json

from tokenizers import Tokenizer

from tokens import LEARN, encode
from world import seasoning
from world.compose import PARTS, Composer

SEED = 1 << 50


def collect(composer, tokenizer, each):
    """`{part: [[id, ...], ...]}` with about `each` tokens a part, and which ids the assistant says."""
    out = {}
    parts = list(PARTS) + (["strangers"] if composer.strange else []) + (["prose"] if composer.unread else [])
    for number, part in enumerate(parts):
        documents, size, seed = [], 0, SEED + (number << 30)
        while size < each and seed < SEED + (number << 30) + 20_000:
            seed += 1
            found = composer.held_out_document(seed, part)
            if found is None:
                continue
            ids = encode(tokenizer, [found])[0]
            if any(d["ids"] == [i & ~LEARN for i in ids] for d in documents):
                continue
            documents.append({"ids": [i & ~LEARN for i in ids], "learn": [int(bool(i & LEARN)) for i in ids]})
            size += len(ids)
        if documents:
            out[part] = documents
    return out


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--season")
    parser.add_argument("--tokens", type=int, default=6000, help="about this many a part")
    parser.add_argument("--unseen", help="JSON with the only corpus prose and questions to take, when training had several sittings")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    composer = Composer(seasoning.load(args.season))
    if args.unseen:
        with open(args.unseen) as file:
            unseen = json.load(file)
        composer.unread, composer.strange = unseen["prose"], unseen["questions"]
    found = collect(composer, Tokenizer.from_file(args.tokenizer), args.tokens)
    with open(args.out, "w") as file:
        json.dump(found, file)
    print({part: sum(len(d["ids"]) for d in documents) for part, documents in found.items()})


if __name__ == "__main__":
    main()
