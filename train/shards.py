"""Writes shards of tokens: rows that begin with a document's beginning, one after the other until the row is full.

    python shards.py --tokenizer out/tokenizer.json --season out/season.json.xz --out out/shards --count 200 --jobs 15

Shard number s is made from the seeds s * 2^24 onward, so every shard differs and each can be made again.
"""

import argparse
import json
import multiprocessing
import os

import numpy
from tokenizers import Tokenizer

from tokens import END_OF_TEXT, encode
from world import seasoning
from world.compose import Composer

BATCH = 400


def prompts(path):
    """The evaluation prompts that must stay out of training."""
    if not path:
        return []
    with open(path) as file:
        return [json.loads(line)["prompt"] for line in file if line.strip()]


def write_shard(composer, tokenizer, number, rows, width, path):
    """One file of `rows` rows of `width` ids (uint16, bit 15 marks what chat tuning learns)."""
    separator = tokenizer.token_to_id(END_OF_TEXT)
    table = numpy.full((rows, width), separator, dtype=numpy.uint16)
    row = at = 0
    seed = number << 24
    while row < rows:
        documents = [d for d in map(composer.train_document, range(seed, seed + BATCH)) if d]
        seed += BATCH
        for ids in encode(tokenizer, documents):
            ids = ids[: width - at]
            table[row, at : at + len(ids)] = ids
            at += len(ids) + 1
            if at >= width - 8:
                row, at = row + 1, 0
                if row == rows:
                    break
    temporary = f"{path}.part"
    with open(temporary, "wb") as file:
        numpy.save(file, table)
    os.replace(temporary, path)


def _work(job):
    args, numbers = job
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer.from_file(args.tokenizer)
    composer = Composer(seasoning.load(args.season), prompts(args.prompts))
    for number in numbers:
        path = os.path.join(args.out, f"shard_{number:05d}.npy")
        if not os.path.exists(path):
            write_shard(composer, tokenizer, number, args.rows, args.width, path)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--season")
    parser.add_argument("--prompts", help="prompts that must stay out of the text")
    parser.add_argument("--out", required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--width", type=int, default=1025)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    numbers = range(args.first, args.first + args.count)
    with multiprocessing.Pool(args.jobs) as pool:
        pool.map(_work, [(args, numbers[j :: args.jobs]) for j in range(args.jobs)], chunksize=1)


if __name__ == "__main__":
    main()
