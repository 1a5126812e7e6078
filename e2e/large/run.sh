#!/usr/bin/env bash
# The promise at full size: a generated file of 8 GB or more is refused on one device, with the shortfall, and answers on
# three. Native peers on whatever Vulkan adapter is here; needs 10 GB of disk and as much GPU memory.
#   e2e/large/run.sh BINARIES WORK      BINARIES holds potluck-node, potluck-relay and the example `synthetic`
set -euo pipefail
bin=$(realpath "${1:?usage: run.sh BINARIES WORK}") work=${2:?usage: run.sh BINARIES WORK}
budget=${BUDGET:-3900M} port=${PORT:-9917}
mkdir -p "$work/models" "$work/page"; cd "$work"
echo '<!doctype html><title>none</title>' > page/index.html
trap 'kill $(jobs -p) 2>/dev/null' EXIT

echo "== a file of the shape of a 9 B model, Q8_0"
[ -e models/large.gguf ] || "$bin/synthetic" --arch llama --type Q8_0 --fill blocks --hidden 4096 --blocks 36 --heads 32 --kv-heads 8 \
  --head-dim 128 --intermediate 14336 --vocabulary 32000 --context 4096 --seed 8 models/large.gguf
ls -l models

"$bin/potluck-relay" --local --port "$port" --models models --page page --data data > relay.log 2>&1 &
until curl -sf "http://localhost:$port/models" | grep -q '"phase":"ready"'; do sleep 1; done
curl -s "http://localhost:$port/models"; echo

echo "== one device lends $budget"
"$bin/potluck-node" host large --relay "http://localhost:$port" --budget "$budget" --context 1024 --cache cache0 > host.log 2>&1 &
until grep -q 'more and it fits' host.log; do sleep 0.5; done
cat host.log
link=$(grep -oE 'http[^ ]*/r/[^ ]*' host.log | head -1)

echo "== two more lend $budget each"
"$bin/potluck-node" join "$link" --budget "$budget" --cache cache1 > join.log 2>&1 &
sleep 2
time "$bin/potluck-node" join "$link" --budget "$budget" --cache cache2 --prompt 'Once upon a time' --raw --max-tokens 64 --bench
echo; tail -n 4 host.log join.log

echo "== the same on one device that lends enough"
time "$bin/potluck-node" run models/large.gguf --budget 12G --context 1024 --prompt 'Once upon a time' --raw --max-tokens 64 --bench
