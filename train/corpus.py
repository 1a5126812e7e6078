"""Packs what is taken of the gathered corpus into one file.

    python corpus.py --corpus FOLDER --out out/season.json.xz
"""

import argparse
import os

from world import seasoning


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, help="folder with the corpus and its MANIFEST.md")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    seasoning.pack(args.corpus, args.out)
    print(f"{os.path.getsize(args.out):,} bytes in {args.out}")


if __name__ == "__main__":
    main()
