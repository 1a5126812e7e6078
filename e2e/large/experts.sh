#!/usr/bin/env bash
# Experts as a service, measured: the host keeps all attention, native peers on this machine's Vulkan adapter hold the experts.
#   e2e/large/experts.sh BINARIES WORK       the 48 blocks of Qwen3-30B-A3B (18.6 GB), eight holders
#   shape=small e2e/large/experts.sh …       a file of some MB, for a machine without a GPU
# BINARIES holds potluck-node, potluck-relay and the example `synthetic`. Each line of `cases` is one room: replicas, hedging,
# holders, what each of them lends, and how late its messages leave (`--delay`). Prints a line of JSON for each round.
set -euo pipefail
bin=$(realpath "${1:?usage: experts.sh BINARIES WORK}") work=$(realpath -m "${2:?usage: experts.sh BINARIES WORK}")
# `words=16` gives a prompt of about 16 words; longer ones likewise.
words=${words:-16} tokens=${tokens:-64} rounds=${rounds:-3} conversations=${conversations:-1} share=${share:-experts}
case ${shape:-large} in
  large) host=${host:-6G} file="--shape qwen3-30b-a3b" cases=${cases:-"1 off 8 2500M 0
1 off 8 2500M 0.5
1 off 8 2500M 2
2 2 8 5G 0
2 adaptive 8 5G 0"} ;;
  small) host=${host:-1G} cases=${cases:-"1 off 3 300M 0
2 2 3 300M 0
1 off 3 300M 20,0.5
2 2 3 300M 20,0.5
2 adaptive 3 300M 20,0.5"}
    file="--arch qwen3moe --type Q4_K --hidden 512 --blocks 4 --heads 8 --kv-heads 2 --head-dim 64 --intermediate 256 --experts 32 --used 4 --vocabulary 512 --context 4096 --seed 8" ;;
  *) echo "shape is large or small" >&2; exit 2 ;;
esac
port=${PORT:-9918} cache=${CACHE:-$work}
mkdir -p "$work/models" "$work/page" "$cache"; cache=$(realpath "$cache"); cd "$work"
echo '<!doctype html><title>none</title>' > page/index.html
trap 'kill $(jobs -p) 2>/dev/null' EXIT
# await PROCESS LOG COMMAND…: until the command succeeds; an error if the process ends before.
await() {
  local process=$1 log=$2
  shift 2
  until "$@"; do
    kill -0 "$process" 2>/dev/null || { echo "it ended too early, see $work/$log:" >&2; tail -n 5 "$log" >&2; exit 1; }
    sleep 0.2
  done
}
is_ready() { curl -sf "http://localhost:$port/models" | grep -q '"phase":"ready"'; }
# shellcheck disable=SC2086 # the file's options are words
[ -e models/experts.gguf ] || time "$bin/synthetic" $file models/experts.gguf
ls -l models/experts.gguf

"$bin/potluck-relay" --local --port "$port" --models models --page page --data data > relay.log 2>&1 &
await $! relay.log is_ready
text=$(printf 'once %.0s' $(seq 1 "$words"))

while read -r replicas hedging holders budget delay; do
  echo "== replicas $replicas, hedging $hedging, $holders holders of $budget, delay $delay ms, load $(cut -d' ' -f1 /proc/loadavg)"
  "$bin/potluck-node" host experts --relay "http://localhost:$port" --share "$share" --replicas "$replicas" --hedging "$hedging" \
    --budget "$host" --context 1024 --cache "$cache/cache0" > host.log 2>&1 &
  peers=$!
  await "$peers" host.log grep -qE 'http[^ ]*/r/' host.log
  link=$(grep -oE 'http[^ ]*/r/[^ ]*' host.log | head -1)
  for number in $(seq 1 "$holders"); do
    "$bin/potluck-node" join "$link" --budget "$budget" --delay "$delay" --cache "$cache/cache$number" > "join$number.log" 2>&1 &
    peers+=" $!"
  done
  [ "$share" = experts ] && wanted=$holders || wanted=0
  "$bin/potluck-node" join "$link" --guest --raw --prompt "$text" --max-tokens "$tokens" --rounds "$rounds" \
    --conversations "$conversations" --holders "$wanted" 2> guest.log
  tail -n 2 guest.log
  # shellcheck disable=SC2086 # several processes
  kill $peers; wait $peers 2>/dev/null || true
done <<< "$cases"
