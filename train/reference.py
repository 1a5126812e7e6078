"""What llama.cpp computes with the shipped file's weights in 32 bits: 64 tokens after each chat prompt, teacher-forced.

    python quantize.py --source ../public/models/potluck-small-Q4_K_M.gguf --kind F32 --out out/dequantized.gguf
    python reference.py --model out/dequantized.gguf --prompts eval/prompts.jsonl --out eval/reference.jsonl.gz

For each prompt: `prompt` the ids of the rendered chat, `ids` the 64 ids that follow (llama.cpp's own greedy choice; an answer
that ended goes on with whatever it says next), and for each of them, with all before it given: `best` the id of the largest
logit and `margin` its distance to the second. KV cache and weights are 32-bit, without repacking.
"""

import argparse
import gzip
import json

import numpy

from answers import render
from llama import THREADS, Library

LENGTH = 64


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with open(args.prompts) as file:
        prompts = [json.loads(line) for line in file if line.strip()]
    rows, smallest = [], []
    library = Library()
    with library.load(args.model, repack=False) as model:
        context = model.context(length=512, cache="f32", threads=THREADS)
        for entry in prompts:
            prompt = model.tokenize(render(entry["prompt"]))
            context.clear()
            ids = [int(context.logits(prompt)[-1].argmax())]
            while len(ids) < LENGTH:
                ids.append(int(context.logits([ids[-1]])[0].argmax()))
            context.clear()
            logits = context.logits(prompt + ids[:-1])[len(prompt) - 1 :]
            top = numpy.sort(numpy.partition(logits, -2, axis=-1)[:, -2:], axis=-1)
            margin = (top[:, 1] - top[:, 0]).tolist()
            smallest.append(min(margin))
            rows.append({"id": entry["id"], "prompt": prompt, "ids": ids, "best": logits.argmax(-1).tolist(), "margin": [float(f"{m:.4g}") for m in margin]})
    with gzip.open(args.out, "wt") as file:
        json.dump({"llama.cpp": library.version, "length": LENGTH}, file)
        file.write("\n")
        for row in rows:
            json.dump(row, file, separators=(",", ":"))
            file.write("\n")
    print(f"{len(rows)} prompts of {LENGTH} tokens, smallest margin {min(smallest):.2g}")


if __name__ == "__main__":
    main()
