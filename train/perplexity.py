"""Perplexity of GGUF files on held-out documents of each part of the mix, by llama.cpp.

    python perplexity.py --heldout out/heldout.json --out eval/perplexity.json F16=out/potluck-small-F16.gguf shipped=…

Every document starts a context of its own. `all` counts every token after the first, `said` only what the assistant says
(in prose: all).
"""

import argparse
import json
import math

import numpy

from llama import THREADS, Library


def measure(library, path, heldout):
    """`{part: {"all": perplexity, "said": perplexity, "tokens": n}}`"""
    out = {}
    sums = {"all": [0.0, 0], "said": [0.0, 0]}
    with library.load(path) as model:
        context = model.context(length=2048, cache="f16", threads=THREADS)
        for part, documents in heldout.items():
            nll = {"all": [0.0, 0], "said": [0.0, 0]}
            for document in documents:
                ids, learn = document["ids"][:2000], document["learn"][:2000]
                context.clear()
                logits = context.logits(ids)[:-1].astype(numpy.float64)
                targets = numpy.array(ids[1:])
                top = logits.max(-1)
                each = numpy.log(numpy.exp(logits - top[:, None]).sum(-1)) + top - logits[numpy.arange(len(targets)), targets]
                said = numpy.array(learn[1:], dtype=bool)
                for key, mask in (("all", numpy.ones_like(said)), ("said", said)):
                    for total in (nll, sums):
                        total[key][0] += float(each[mask].sum())
                        total[key][1] += int(mask.sum())
            out[part] = {key: round(math.exp(total / max(count, 1)), 4) for key, (total, count) in nll.items()}
            out[part]["tokens"] = nll["all"][1]
    out["together"] = {key: round(math.exp(total / max(count, 1)), 4) for key, (total, count) in sums.items()}
    out["together"]["tokens"] = sums["all"][1]
    return out


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heldout", required=True)
    parser.add_argument("--out")
    parser.add_argument("files", nargs="+", help="LABEL=FILE")
    args = parser.parse_args()
    with open(args.heldout) as file:
        heldout = json.load(file)
    library = Library()
    table = {}
    for item in args.files:
        label, path = item.split("=", 1)
        table[label] = measure(library, path, heldout)
        print(label, table[label]["together"], flush=True)
    for part in next(iter(table.values())):
        print(f"{part:12}", *(f"{label} {rows[part]['all']:.3f}/{rows[part]['said']:.3f}" for label, rows in table.items()))
    if args.out:
        with open(args.out, "w") as file:
            json.dump(table, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
