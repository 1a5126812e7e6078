"""Trains the model on shards; they may still be written while it runs.

    python train.py --phase pretrain --shards out/shards --width 1025 --tokens 500e6 --seconds 420 --out out/pretrained
    python train.py --phase chat --init out/pretrained --shards out/long --width 2049 --tokens 80e6 --quantize --out out/chat

`pretrain` learns every token; `chat` only what the assistant says (and prose). A run that was cut off goes on from its last
checkpoint when started again with the same arguments.
"""

import argparse
import glob
import json
import os
import time

import numpy
import torch

import pieces
from model import RECIPES, Config, Model, count_parameters
from muon import Muon
from tokens import LEARN

BALANCE = 0.02
USER_WEIGHT = 0.4
"""What a token that the user says counts in pretraining."""


class Rows:
    """Batches of rows from shards in their order, waiting for a shard that is not there yet."""

    def __init__(self, folder, batch, device, first=0, shard=None, row=0):
        self.folder, self.batch, self.device, self.first = folder, batch, device, first
        self.shard, self.row, self.table, self.wraps = first if shard is None else shard, row, None, 0

    def _open(self):
        path = os.path.join(self.folder, f"shard_{self.shard:05d}.npy")
        waited = 0.0
        while not os.path.exists(path):
            if waited > 20 and self.shard > self.first and not glob.glob(os.path.join(self.folder, "*.part")):
                self.shard, self.wraps = self.first, self.wraps + 1
                path = os.path.join(self.folder, f"shard_{self.shard:05d}.npy")
            elif waited > 120:
                raise SystemExit(f"No shard {path} came within two minutes.")
            else:
                time.sleep(0.2)
                waited += 0.2
        self.table = torch.from_numpy(numpy.load(path).astype(numpy.int32))

    def next(self):
        """`[batch, width]` ids with marks."""
        if self.table is None:
            self._open()
        if self.row + self.batch > len(self.table):
            self.shard, self.row = self.shard + 1, 0
            self._open()
        rows = self.table[self.row : self.row + self.batch]
        self.row += self.batch
        return rows.to(self.device, non_blocking=True)


def split(rows, chat):
    """Inputs, targets and the weight of each target."""
    ids, marked = rows & (LEARN - 1), (rows & LEARN) != 0
    weights = marked[:, 1:].float()
    if not chat:
        weights = USER_WEIGHT + (1 - USER_WEIGHT) * weights
    return ids[:, :-1], ids[:, 1:].long(), weights


def rate(progress, warm, cool):
    """Learning rate factor: linear warm-up, a plateau, a linear end."""
    return max(0.0, min(1.0, progress / warm if warm else 1.0, (1 - progress) / cool))


def build(args, device):
    """The model, fresh or from `--init`."""
    shape = Config(**json.loads(args.config)) if args.config else RECIPES[args.recipe]
    if args.init:
        config, state = pieces.load(args.init)
        shape = Config(**config)
    torch.manual_seed(args.seed)
    model = Model(shape)
    if args.init:
        model.load_state_dict(state)
    return model.to(device)


def run(args):
    """The loop."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = build(args, device)
    matrices = [p for n, p in model.named_parameters() if p.ndim >= 2 and n != "embedding" and not n.endswith("router")]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    optimizers = [Muon(matrices, lr=args.lr), torch.optim.AdamW(others, lr=args.lr * 0.15, betas=(0.9, 0.95), weight_decay=0.0)]
    os.makedirs(args.out, exist_ok=True)
    rows = Rows(args.shards, args.batch, device, args.first)
    step, seen, spent = 0, 0, 0.0
    checkpoint = os.path.join(args.out, "resume.pt")
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        for optimizer, state in zip(optimizers, saved["optimizers"]):
            optimizer.load_state_dict(state)
        step, seen, spent = saved["step"], saved["seen"], saved["spent"]
        rows = Rows(args.shards, args.batch, device, args.first, saved["shard"], saved["row"])
        print(f"goes on at step {step}", flush=True)

    loss_of = model.loss
    if device == "cuda" and not args.eager:
        loss_of = model.compiled()
    model.train()
    print(f"{count_parameters(model):,} parameters on {device}", flush=True)
    log = open(os.path.join(args.out, "log.jsonl"), "a")
    chat = args.phase == "chat"
    started, last = None, time.time()
    window, loads_sum = [], 0
    while True:
        progress = max(seen / args.tokens, spent / args.seconds)
        if progress >= 1:
            break
        factor = rate(progress, args.warm, args.cool)
        for optimizer, base in zip(optimizers, (args.lr, args.lr * 0.15)):
            for group in optimizer.param_groups:
                group["lr"] = base * factor
        inputs, targets, weights = split(rows.next(), chat)
        loss, loads, balance = loss_of(inputs, targets, weights, args.quantize, dtype)
        (loss + BALANCE * balance).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        seen += targets.numel()
        window.append(loss.detach())
        loads_sum = loads_sum + loads.detach()
        if started is None:
            if device == "cuda":
                torch.cuda.synchronize()
            started = time.time() - spent
            print(f"first step after {time.time() - last:.0f} s", flush=True)
        if step % args.every == 0:
            mean = torch.stack(window).mean().item()
            shares = loads_sum / len(window) * model.c.experts
            spent = time.time() - started
            line = {"step": step, "tokens": seen, "seconds": round(spent, 1), "loss": round(mean, 4), "lr": round(args.lr * factor, 5), "share_low": round(shares.min().item(), 3), "share_high": round(shares.max().item(), 3)}
            print(json.dumps(line), file=log, flush=True)
            if step % (args.every * 10) == 0:
                print(json.dumps(line), flush=True)
            window, loads_sum = [], 0
            if args.save_every and step % args.save_every == 0 or step == args.pause:
                torch.save({"model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers], "step": step, "seen": seen, "spent": spent, "shard": rows.shard, "row": rows.row}, checkpoint)
            if step == args.pause:
                print(f"paused at step {step}", flush=True)
                return
        elif device == "cpu":
            spent = time.time() - started
    (pieces.save_single if args.single else pieces.save)(model, args.out)
    if rows.wraps:
        print(f"the shards were read {rows.wraps + 1} times", flush=True)
    print(f"{step} steps, {seen:,} tokens in {spent:.0f} s, saved in {args.out}", flush=True)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phase", choices=("pretrain", "chat"), required=True)
    parser.add_argument("--shards", required=True)
    parser.add_argument("--first", type=int, default=0, help="number of the first shard")
    parser.add_argument("--out", required=True)
    parser.add_argument("--init", help="folder with weights to begin from")
    parser.add_argument("--recipe", choices=tuple(RECIPES), default="small", help="shape of the model")
    parser.add_argument("--config", help="another shape, as JSON, for the smoke test")
    parser.add_argument("--eager", action="store_true", help="do not compile the model, which is slower and takes more memory")
    parser.add_argument("--single", action="store_true", help="save weights in single precision, in one file")
    parser.add_argument("--batch", type=int, default=128, help="rows a step")
    parser.add_argument("--tokens", type=float, required=True, help="stops after so many")
    parser.add_argument("--seconds", type=float, default=1e9, help="or after so long, the first step not counted")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--warm", type=float, default=0.02, help="share of the run")
    parser.add_argument("--cool", type=float, default=0.5, help="share of the run")
    parser.add_argument("--quantize", action="store_true", help="train with weights rounded to 4 bits")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--save-every", type=int, default=0)
    parser.add_argument("--pause", type=int, help="saves and ends at this step, a multiple of --every")
    parser.add_argument("--seed", type=int, default=20)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
