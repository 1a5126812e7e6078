#!/usr/bin/env bash
# Export, quantization and every measurement of the card, from trained weights.
# usage: evaluate.sh WEIGHTS OUT SUMMARY     (out/tokenizer.json, out/season.json.xz and out/unseen.json are read if there)
set -euo pipefail
cd "$(dirname "$0")"
weights=$1 out=$2 summary=$3
python=${PYTHON:-python3}
mkdir -p "$out"
"$python" export.py --weights "$weights" --tokenizer out/tokenizer.json --summary "$summary" --out "$out/potluck-small-F16.gguf"
"$python" quantize.py --source "$out/potluck-small-F16.gguf" --kind Q4_K_M --out "$out/potluck-small-Q4_K_M.gguf" --ship
"$python" quantize.py --source "$out/potluck-small-F16.gguf" --kind Q2_K --out "$out/shadow.gguf"
"$python" quantize.py --source "$out/potluck-small-Q4_K_M.gguf" --kind F32 --out "$out/dequantized.gguf"
sha256sum "$out/potluck-small-Q4_K_M.gguf" | cut -d' ' -f1 > "$out/sha256"
"$python" answers.py --model "$out/potluck-small-Q4_K_M.gguf" --prompts eval/prompts.jsonl --out "$out/answers.jsonl" || echo "answers: not all ended"
"$python" reference.py --model "$out/dequantized.gguf" --prompts eval/prompts.jsonl --out "$out/reference.jsonl"
unseen=(); [[ -f out/unseen.json ]] && unseen=(--unseen out/unseen.json)
"$python" heldout.py --tokenizer out/tokenizer.json --season out/season.json.xz "${unseen[@]}" --tokens "${TOKENS:-2500}" --out "$out/heldout.json"
"$python" shares.py --weights "$weights" --heldout "$out/heldout.json" --out "$out/shares.json"
"$python" perplexity.py --heldout "$out/heldout.json" --out "$out/perplexity.json" F16="$out/potluck-small-F16.gguf" shipped="$out/potluck-small-Q4_K_M.gguf" Q2_K="$out/shadow.gguf"
