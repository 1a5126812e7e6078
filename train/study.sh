#!/usr/bin/env bash
# The study model on one GPU: both phases of training, export, shadows in other types, and the routing traces of docs/lab/on-demand.md.
# usage: study.sh SCRATCH RESULT [PRETRAIN_SECONDS CHAT_SECONDS TRACE_SECONDS]
# Needs out/tokenizer.json, out/season.json.xz, out/heldout.json and lab (LAB names it, a release build: cargo build --release -p potluck-lab); leaves traces,
# perplexities, shares and logs in RESULT. Tracing runs on the processor; what was traced when its time is over is kept.
set -euo pipefail
cd "$(dirname "$0")"
scratch=$1 result=$2 pretrain=${3:-150} chat=${4:-80} tracing=${5:-150}
lab=${LAB:-../target/release/lab} python=${PYTHON:-python3} tokenizer=${TOKENIZER:-out/tokenizer.json} heldout=${HELDOUT:-out/heldout.json}
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
mkdir -p "$scratch" "$result"
say() { echo "== $SECONDS s: $*"; }

# A smoke test's model is smaller, and has no season.
shape=(--recipe study) season=(--season out/season.json.xz) rows=1024 width=1025 shards=$(( (pretrain + chat) * 3 / 4 + 20 )) batch=${BATCH:-64} every=10
if [[ -n ${CONFIG:-} ]]; then
    shape=(--config "$CONFIG") season=() rows=48 width=65 shards=2 batch=4 every=1
fi
say "text and training"
jobs=$(( $(nproc) > 2 ? $(nproc) - 1 : 1 ))
OMP_NUM_THREADS=1 setsid "$python" shards.py --tokenizer "$tokenizer" "${season[@]}" --prompts eval/prompts.jsonl --jobs "$jobs" --out "$scratch/shards" --count "$shards" --rows "$rows" --width "$width" > "$scratch/shards.log" 2>&1 &
writer=$!
# With its workers, which go on without it.
trap 'kill -- -"$writer" 2> /dev/null || true' EXIT
train() {
    local run=("$python" train.py --shards "$scratch/shards" --every "$every" --tokens 900e6 --single "$@")
    "${run[@]}" --batch "$batch" || { say "once more, without compiling"; "${run[@]}" --batch $(( batch / 2 )) --eager; }
}
train --phase pretrain "${shape[@]}" --seconds "$pretrain" --cool 0.4 --out "$scratch/pretrained"
say "chat tuning"
train --phase chat --init "$scratch/pretrained" --first $(( shards > 2 ? pretrain * 3 / 4 : 0 )) --seconds "$chat" --lr 0.008 --warm 0.03 --cool 0.9 --out "$scratch/chat"
kill -- -"$writer" 2> /dev/null || true
for phase in pretrained chat; do cp "$scratch/$phase/log.jsonl" "$scratch/study-$phase.jsonl"; done

say "export"
model() { echo "$scratch/study-$1.gguf"; }
types=(F16 Q8_0 Q4_0 Q2_K)
"$python" export.py --weights "$scratch/chat" --tokenizer "$tokenizer" --recipe study --kind F32 --out "$(model F32)"
pids=()
for type in "${types[@]}"; do
    "$lab" requantize "$(model F32)" "$(model "$type")" --type "$type" 2> "$scratch/requantize-$type.log" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
ls -l "$scratch"/*.gguf

say "perplexities and shares, beside the traces"
(
    for type in F32 "${types[@]}"; do
        echo "$type"
        "$python" shares.py --model "$(model "$type")" --heldout "$heldout" --low 0 --high 64 --out "$scratch/shares-$type.json" | tail -1
    done
) > "$scratch/perplexity.log" 2>&1 &
measuring=$!
say "traces"
shadows() { for type in $1; do for how in $2; do printf ",%s@%s" "$(model "$type")" "$how"; done; done; }
trace() {
    local seconds=$1 name=$2 prompts=$3 list
    list=$(shadows "$4" "$5")
    timeout "$seconds" "$lab" trace "$(model F32)" --prompts "$prompts" --max-tokens "${TOKENS:-128}" --cpu --shadows "${list#,}" --out "$result/$name.plrt" 2> "$scratch/$name.log" || say "$name: not everything was traced"
    tail -n 40 "$scratch/$name.log"
}
started=$SECONDS
"$python" -c 'import json, sys; [print(json.loads(line)["prompt"]) for line in open("eval/prompts.jsonl")]' > "$scratch/all.txt"
head -n "${PROMPTS:-24}" "$scratch/all.txt" > "$scratch/prompts.txt"
sed -n 12,14p "$scratch/all.txt" > "$scratch/stories.txt"
trace $(( tracing / 3 )) potluck-study-periods "$scratch/stories.txt" Q4_0 "T1 T1KV1 T1KV4 T1KV16 T4KV1 T16KV1 T4KV4 T16KV16"
say "the first trace is written"
trace $(( tracing - (SECONDS - started) )) potluck-study "$scratch/prompts.txt" "${types[*]}" "unaligned T1 KV1 T1KV1"
say "the second trace is written"
timeout 30 tail --pid="$measuring" -f /dev/null || kill "$measuring" 2> /dev/null || true
cat "$scratch/perplexity.log"
nvidia-smi --query-gpu=name,driver_version --format=csv > "$scratch/gpu.csv" 2> /dev/null || true
tar czf "$result/logs.tgz" -C "$scratch" $(cd "$scratch" && ls | grep -E '\.(jsonl|json|log|csv)$')
say "done"
