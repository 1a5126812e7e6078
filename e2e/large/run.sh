#!/usr/bin/env bash
# The promise at full size: a generated file that one device refuses, with the shortfall, is answered from by several. Native
# peers on whatever Vulkan adapter is here.
#   e2e/large/run.sh BINARIES WORK      BINARIES holds potluck-node, potluck-relay and the example `synthetic`
#   large=60 e2e/large/run.sh …         60 GB over four peers instead of 8.6 GB over three
# Disk: the file at WORK/models, and about as much for what the peers keep at CACHE (WORK); as much GPU memory as the file has.
set -euo pipefail
bin=$(realpath "${1:?usage: run.sh BINARIES WORK}") work=${2:?usage: run.sh BINARIES WORK}
case ${large:-8} in
  8) shape="--hidden 4096 --blocks 36 --heads 32 --intermediate 14336" peers=3 budget=3900M whole=12G tokens=64 ;;
  60) shape="--hidden 8192 --blocks 66 --heads 64 --intermediate 28672" peers=4 budget=17G whole= tokens=32 ;;
  *) echo "large is 8 or 60" >&2; exit 2 ;;
esac
port=${PORT:-9917} cache=${CACHE:-$work}
mkdir -p "$work/models" "$work/page" "$cache"; cache=$(realpath "$cache"); cd "$work"
echo '<!doctype html><title>none</title>' > page/index.html
trap 'kill $(jobs -p) 2>/dev/null' EXIT

echo "== a file of Q8_0, $shape"
# shellcheck disable=SC2086 # the shape is words
[ -e models/large.gguf ] || time "$bin/synthetic" --arch llama --type Q8_0 --fill blocks $shape --kv-heads 8 \
  --head-dim 128 --vocabulary 32000 --context 4096 --seed 8 models/large.gguf
ls -l models

"$bin/potluck-relay" --local --port "$port" --models models --page page --data data > relay.log 2>&1 &
until curl -sf "http://localhost:$port/models" | grep -q '"phase":"ready"'; do sleep 1; done
curl -s "http://localhost:$port/models"; echo

echo "== one device lends $budget"
"$bin/potluck-node" host large --relay "http://localhost:$port" --budget "$budget" --context 1024 --cache "$cache/cache0" > host.log 2>&1 &
until grep -q 'more it fits' host.log; do sleep 0.5; done
cat host.log
link=$(grep -oE 'http[^ ]*/r/[^ ]*' host.log | head -1)

echo "== $((peers - 1)) more lend $budget each"
for number in $(seq 1 $((peers - 2))); do
  "$bin/potluck-node" join "$link" --budget "$budget" --cache "$cache/cache$number" > "join$number.log" 2>&1 &
done
sleep 2
time "$bin/potluck-node" join "$link" --budget "$budget" --cache "$cache/cache$((peers - 1))" --prompt 'Once upon a time' --raw \
  --max-tokens "$tokens" --bench
echo; tail -n 4 host.log join*.log

[ -n "$whole" ] || exit 0
echo "== the same on one device that lends enough"
time "$bin/potluck-node" run models/large.gguf --budget "$whole" --context 1024 --prompt 'Once upon a time' --raw --max-tokens "$tokens" --bench
