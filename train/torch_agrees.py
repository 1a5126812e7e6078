"""Whether the training code and llama.cpp compute the same: logits of both on the chat prompts.

    python torch_agrees.py --weights out/chat --model out/potluck-small-F16.gguf --prompts eval/prompts.jsonl
"""

import argparse
import json

import numpy
import torch

import pieces
from answers import render
from llama import THREADS, Library
from model import Config, Model

TOLERANCE = 0.02
"""Largest difference of logits, relative to their spread: llama.cpp rounds activations of 16-bit matrices to 16 bits."""


@torch.no_grad()
def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True)
    args = parser.parse_args()
    config, state = pieces.load(args.weights)
    ours = Model(Config(**config)).eval()
    ours.load_state_dict(state)
    with open(args.prompts) as file:
        prompts = [json.loads(line)["prompt"] for line in file if line.strip()]
    worst = 0.0
    with Library().load(args.model) as model:
        context = model.context(length=512, cache="f32", threads=THREADS)
        for prompt in prompts:
            ids = model.tokenize(render(prompt))
            context.clear()
            theirs = context.logits(ids)
            mine = ours(torch.tensor([ids]), dtype=torch.float32)[0][0].numpy()
            worst = max(worst, float(numpy.abs(mine - theirs).max() / theirs.std()))
    print(f"{len(prompts)} prompts, largest difference {worst:.4f} of the logits' spread")
    if worst > TOLERANCE:
        raise SystemExit("The training code and llama.cpp disagree.")


if __name__ == "__main__":
    main()
