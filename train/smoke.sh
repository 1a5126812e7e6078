#!/usr/bin/env bash
# The whole chain with a tiny model on a processor, in about a minute: world, tokenizer, shards, both phases of training,
# a resumed run, talk, many experts, GGUF, llama.cpp's quantization, perplexity and answers, expert shares, and the prompts' absence.
# usage: smoke.sh [PYTHON]     needs requirements.txt; llama.cpp as in e2e/golden (POTLUCK_LLAMA_CPP or npm)
set -euo pipefail
cd "$(dirname "$0")"
python=${1:-python3}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export PYTHONUNBUFFERED=1 POTLUCK_THREADS=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
step() { echo "== $*"; }

step tokenizer
"$python" tokens.py --documents 1500 --vocabulary 1024 --out "$out/tokenizer.json"
step shards
"$python" shards.py --tokenizer "$out/tokenizer.json" --prompts eval/prompts.jsonl --out "$out/shards" --count 2 --rows 48 --width 65 --jobs 2
step "training is the same twice and goes on where it stopped"
shape='{"vocabulary":1024,"hidden":256,"blocks":2,"heads":4,"kv_heads":2,"experts":4,"used":2}'
train() { "$python" train.py --phase pretrain --shards "$out/shards" --batch 4 --tokens 2e3 --every 2 --config "$shape" "$@"; }
train --out "$out/pretrained" --pause 4
train --out "$out/pretrained" > "$out/resumed.txt"
grep "goes on at step 4" "$out/resumed.txt"
train --out "$out/again"
"$python" - "$out" <<'PY'
import json, sys
first, again = ([json.loads(line)["loss"] for line in open(f"{sys.argv[1]}/{run}/log.jsonl")] for run in ("pretrained", "again"))
assert len(again) == 4 and first == again, (first, again)
assert again[-1] < again[0], again
PY
step "chat tuning"
"$python" train.py --phase chat --quantize --init "$out/pretrained" --shards "$out/shards" --batch 4 --tokens 1e3 --every 2 --out "$out/chat"
head -2 eval/prompts.jsonl > "$out/prompts.jsonl"
"$python" talk.py --weights "$out/chat" --tokenizer "$out/tokenizer.json" --prompts "$out/prompts.jsonl" --limit 3 > "$out/talk.txt"
test -s "$out/talk.txt"
step "many experts, each with a bucket of tokens, compute what they compute for every token"
"$python" - <<'PY'
from dataclasses import replace
import torch
from model import Config, Model

torch.manual_seed(1)
model = Model(Config(vocabulary=64, hidden=32, blocks=2, heads=2, kv_heads=1, head=16, experts=8, used=3, inner=16, context=64, capacity=8 / 3))
for parameter in model.parameters():
    if parameter.ndim > 1:
        parameter.data.normal_(std=0.2)
ids, weights = torch.randint(0, 64, (4, 33)), torch.rand(4, 32)
def gradients(training):
    model.train(training).zero_grad()
    loss, _, balance = model.loss(ids[:, :-1], ids[:, 1:], weights, dtype=torch.float32)
    (loss + balance).backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]
worst = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(gradients(True), gradients(False)))
assert worst < 1e-5, worst
for block in model.blocks:
    block.c = replace(model.c, capacity=1.0)
assert (gradients(True)[0] - gradients(False)[0]).abs() > 1e-4, "full buckets leave tokens out"
PY
many='{"vocabulary":1024,"hidden":256,"blocks":2,"heads":4,"kv_heads":2,"experts":16,"used":3,"inner":32,"context":512,"capacity":1.6}'
"$python" train.py --phase pretrain --shards "$out/shards" --batch 4 --tokens 1e3 --every 2 --config "$many" --single --out "$out/many"
"$python" export.py --weights "$out/many" --tokenizer "$out/tokenizer.json" --recipe study --kind F32 --out "$out/many.gguf"
"$python" torch_agrees.py --weights "$out/many" --model "$out/many.gguf" --prompts "$out/prompts.jsonl"
step export
"$python" export.py --weights "$out/chat" --tokenizer "$out/tokenizer.json" --out "$out/F16.gguf"
"$python" quantize.py --source "$out/F16.gguf" --kind Q4_K_M --out "$out/Q4_K_M.gguf" --ship
"$python" quantize.py --source "$out/Q4_K_M.gguf" --kind F32 --out "$out/F32.gguf"
step measurements
"$python" heldout.py --tokenizer "$out/tokenizer.json" --tokens 60 --out "$out/heldout.json"
"$python" perplexity.py --heldout "$out/heldout.json" --out "$out/perplexity.json" F16="$out/F16.gguf" shipped="$out/Q4_K_M.gguf"
"$python" shares.py --weights "$out/chat" --heldout "$out/heldout.json" --low 0 --high 4
for source in "--weights $out/many" "--model $out/many.gguf"; do "$python" shares.py $source --heldout "$out/heldout.json" --low 0 --high 16 | tail -1; done | uniq > "$out/same.txt"
test "$(wc -l < "$out/same.txt")" = 1
"$python" answers.py --model "$out/Q4_K_M.gguf" --prompts eval/prompts.jsonl --first 2 --limit 4 --untrained --out "$out/answers.jsonl"
"$python" reference.py --model "$out/F32.gguf" --prompts "$out/prompts.jsonl" --out "$out/reference.jsonl"
"$python" torch_agrees.py --weights "$out/chat" --model "$out/F16.gguf" --prompts "$out/prompts.jsonl"
"$python" absent.py --prompts eval/prompts.jsonl --documents 1500
echo "smoke: all steps ran"
