#!/usr/bin/env bash
# The whole training on one GPU: text is written by the processor's cores while the GPU learns from it.
# usage: gpu.sh SCRATCH RESULT PRETRAIN_SECONDS CHAT_SECONDS FIRST_SHARD [INIT]
# With INIT the weights of an earlier sitting go on learning; with 0 PRETRAIN_SECONDS they are tuned only.
# Needs out/tokenizer.json and out/season.json.xz; leaves weights, logs and answers in RESULT.
set -euo pipefail
cd "$(dirname "$0")"
scratch=$1 result=$2 pretrain=$3 chat=$4 first=$5 init=${6:-}
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
mkdir -p "$scratch" "$result"
jobs=$(( $(nproc) > 2 ? $(nproc) - 1 : 1 ))
common=(--tokenizer out/tokenizer.json --season out/season.json.xz --prompts eval/prompts.jsonl --jobs "$jobs")
start=$init rate=${RATE:-0.008} cool=0.9
(
    if (( pretrain > 0 )); then
        OMP_NUM_THREADS=1 python3 shards.py "${common[@]}" --out "$scratch/short" --first "$first" --count $(( pretrain * 3 / 2 + 30 ))
    fi
    OMP_NUM_THREADS=1 python3 shards.py "${common[@]}" --out "$scratch/long" --first $(( first + 50000 )) --count $(( chat * 3 / 2 + 20 )) --rows 512 --width 2049
) > "$scratch/shards.log" 2>&1 &
writer=$!
if (( pretrain > 0 )); then
    python3 train.py --phase pretrain --shards "$scratch/short" --first "$first" --batch 128 --tokens 900e6 --seconds "$pretrain" --out "$scratch/pretrained" ${init:+--init "$init"} --cool 0.4
    cp "$scratch/pretrained/log.jsonl" "$scratch/pretrain.jsonl"
    start=$scratch/pretrained
fi
python3 train.py --phase chat --init "$start" --quantize --shards "$scratch/long" --first $(( first + 50000 )) --batch 64 --tokens 900e6 --seconds "$chat" --lr "$rate" --warm 0.03 --cool "$cool" --out "$scratch/chat"
cp "$scratch/chat/log.jsonl" "$scratch/chat.jsonl"
cp "$scratch"/chat/weights.* "$result/"
kill "$writer" 2> /dev/null || true
python3 talk.py --weights "$scratch/chat" --tokenizer out/tokenizer.json --prompts eval/prompts.jsonl --out "$scratch/answers.jsonl"
nvidia-smi --query-gpu=name,driver_version --format=csv > "$scratch/gpu.csv" || true
tar czf "$result/logs.tgz" -C "$scratch" $(cd "$scratch" && ls -- *.jsonl gpu.csv shards.log)
