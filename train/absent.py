"""Checks that the evaluation prompts are absent from the training text: no 13 words in a row, and no prompt as a whole turn.

    python absent.py --prompts eval/prompts.jsonl --season out/season.json.xz --documents 100000

The corpus is checked whole, generated text on so many documents, everything in them included. What training reads is also
filtered while it is written (`Guard` in world/compose.py).
"""

import argparse

from shards import prompts
from tokens import text_of
from world import seasoning
from world.compose import Composer, Guard


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--season")
    parser.add_argument("--documents", type=int, default=20_000)
    args = parser.parse_args()
    season, wanted = seasoning.load(args.season), prompts(args.prompts)
    guard = Guard(wanted)
    found = [text for text in season["prose"] + [question for question, *_ in season["questions"]] if guard.catches(text)]
    unguarded = Composer(season)
    before = sum(1 for seed in range(args.documents) if (doc := unguarded.train_document(seed)) and guard.catches(text_of(*doc)))
    composer = Composer(season, wanted)
    found += [text_of(*doc) for seed in range(args.documents) if (doc := composer.train_document(seed)) and guard.catches(text_of(*doc))]
    print(f"{len(season['prose'])} texts and {len(season['questions'])} questions of the corpus, {args.documents:,} documents: {before} caught before the filter, {len(found)} after it")
    if found:
        raise SystemExit(f"An evaluation prompt is in the training text: {found[0][:300]!r}")


if __name__ == "__main__":
    main()
