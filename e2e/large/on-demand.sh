#!/usr/bin/env bash
# Experts on demand, measured with a known recall: native peers on this machine's Vulkan adapter have slots for a third of the experts.
#   e2e/large/on-demand.sh BINARIES WORK       the 48 blocks of Qwen3-30B-A3B (18.6 GB), eight holders
#   shape=small e2e/large/on-demand.sh …       a file of some MB, for a machine without a GPU
# `set` names the cases; with the large shape and tokens=32 each set takes less than nine minutes of an H100, the file included:
#   goal     everything resident; slots with no guesses, 95.7 and 99.9%; the same with a shadow beside it that is not believed, and one that is
#   recalls  slots at each recall
#   lengths  table 2 of od-moe.txt: prompts and answers of 16/64, 16/256, 128/64 and 128/256 tokens, everything resident and slots without guesses
#   lengths-shadow  the same with a shadow's hints
#   slow     figure 10: holders that compute everything twice, everything resident and slots
#   cold     files that are in no cache
#   alone    one device without a room
# BINARIES holds lab, potluck-relay and the example `synthetic`. Instead of a set, `cases` may be given. Each of its lines is
#   room HOLDERS LENT HOST OPTIONS    a host that lends HOST, for everything but experts, and holders of these; OPTIONS are the host's, those
#                                     that begin with join: the holders' (join:--slow=2)
#   alone LENT OPTIONS                one device with the file and no room
# Prints a line of JSON for each round. In rooms a second one for each round says what all holders together did: the share of experts that were in
# memory, that a hint had named, stalls, MB loaded, waiting, and how long the bus was busy.
# A text is answered several times. With `--recalls` (in rooms beside `--hints recorded`) the first round records which experts it
# needs, and each of the others guesses these with the next of them (percent; 0: nobody guesses). Answers are sampled: greedy ones of random
# weights repeat themselves. The same seed gives the same tokens in every round.
# With `--shadow FILE` beside them a shadow computes too, to be timed, and is not believed. Its file here is the model's own, so it knows everything
# that it is asked for in time, and takes 18.6 GB more and the time of a model that is not smaller.
# The plan may keep one of many devices as a spare, so measuring begins with `wanted` holders: one less than there are, from five on.
# `--cold` among the options drops the page cache all the time, so that experts come from storage; the line with `from_storage_MB` says
# how many of the bytes that were read did (/proc/PID/io). `a_call_ms` is what a call of a block's experts took on a holder, on average: the whole,
# and of it waiting for calls before it, for slots, for experts that were missing, for the engine, and the rest.
# gpus=2 spreads the devices over two GPUs, the host on the first. gpu=1 begins with the second one. CACHE: folder for the devices' caches, about the file's size.
set -euo pipefail
bin=$(realpath "${1:?usage: on-demand.sh BINARIES WORK}") work=$(realpath -m "${2:?usage: on-demand.sh BINARIES WORK}")
# Seconds for one case, and after which no further case begins.
tokens=${tokens:-32} limit=${limit:-340} stop=${stop:-100000}
known() { local commas=${1//[^,]/}; echo "--always-guess --recalls $1 --rounds $((${#commas} + 2))"; }
case ${shape:-large} in
  large) resident="room 8 2500M 4G" slots="room 8 740M 1160M --on-demand" one="alone 6500M" file="--shape qwen3-30b-a3b" ;;
  small) resident="room 3 300M 1G" slots="room 3 35M 35500K --on-demand" one="alone 47M"
    file="--arch qwen3moe --type Q4_K --hidden 512 --blocks 4 --heads 8 --kv-heads 2 --head-dim 64 --intermediate 256 --experts 32 --used 4 --vocabulary 512 --context 4096 --seed 8" ;;
  *) echo "shape is large or small" >&2; exit 2 ;;
esac
recalls=${recalls:-0,33,86,91,95.7,97.3,99.9} shadow="--shadow models/experts.gguf"
table_2="--rounds 2 --prompt-tokens 16/64,16/256,128/64,128/256"
case ${set:-goal} in
  goal) sets="$resident
$slots --hints recorded $(known 0,95.7,99.9)
$slots $shadow --hints recorded $(known 95.7,99.9)
$slots $shadow --always-guess" ;;
  recalls) sets="$slots --hints recorded $(known "$recalls")" ;;
  lengths) sets="$resident $table_2
$slots --hints none $table_2" ;;
  lengths-shadow) sets="$slots $shadow --always-guess $table_2" ;;
  slow) sets="$resident join:--slow=2
$slots --hints recorded $(known 0,95.7,99.9) join:--slow=2" ;;
  cold) sets="$slots --hints none --cold --rounds 2
$slots --hints recorded $(known 95.7) --cold
$one --cold --rounds 2" ;;
  alone) sets="$one $(known "$recalls")
$one $shadow $(known 0,95.7,99.9)
$one $shadow --always-guess" ;;
  *) echo "set is goal, recalls, lengths, lengths-shadow, slow, cold or alone" >&2; exit 2 ;;
esac
cases=${cases:-$sets}
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(realpath "$0")")/relay.sh"
text=$(printf 'once %.0s' $(seq 1 16)) before=
asked=(--raw --prompt "$text" --max-tokens "$tokens" --rounds 3 --temperature 1 --seed 15 --context "${context:-2048}")

# What is cached of the files leaves memory, again and again. Where the kernel does not drop it for us, each file is asked to.
drop_cache() {
  while sleep 0.1; do
    { echo 3 > /proc/sys/vm/drop_caches; } 2>/dev/null ||
      find -L models "$cache" -type f -print0 | xargs -0 -r -P 4 -I {} dd if={} iflag=nocache count=0 status=none 2>/dev/null || true
  done
}
# read_bytes PROCESS…: what they have read so far, and what of it was not in memory.
read_bytes() {
  for process in "$@"; do cat "/proc/$process/io" 2>/dev/null || true; done | awk '
    /^rchar/ { all += $2 } /^read_bytes/ { storage += $2 }
    END { printf "{\"read_MB\":%.0f,\"from_storage_MB\":%.0f}\n", all / 1e6, storage / 1e6 }'
}
# What holders did in each round, all together.
served() {
  (grep -hE '^\{.*"served"' join*.log || true) | awk '
    function of(key) { return match($0, "\"" key "\":[0-9.]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
    { r = of("served"); holders[r]++; if (of("tokens") > tokens[r]) tokens[r] = of("tokens"); if (r > last) last = r
      slots[r] += of("slots"); experts[r] += of("experts"); hits[r] += of("hits"); misses[r] += of("misses"); hinted[r] += of("hinted")
      stalls[r] += of("stalls"); bytes[r] += of("bytes"); network[r] += of("network_bytes"); wait[r] += of("wait_ms")
      loads[r] += of("loads"); busy[r] += of("load_ms"); c = of("calls"); calls[r] += c
      whole[r] += c * of("total"); queued[r] += c * of("queued"); slot[r] += c * of("slots_wait"); missing[r] += c * of("reads_wait")
      engine[r] += c * of("engine"); rest[r] += c * of("rest") }
    END { for (r = 0; r <= last; r++) { t = tokens[r]; used = hits[r] + misses[r]; if (!t || !used) continue; each = t * holders[r]
      printf "{\"served\":%d,\"holders\":%d,\"tokens\":%d,\"slots\":%d,\"experts\":%d,\"in_memory\":%.4f,\"hinted\":%.4f,", r, holders[r], t, slots[r], experts[r], hits[r] / used, hinted[r] / used
      printf "\"stalls_a_token\":%.1f,\"MB_a_token\":%.2f,\"network_MB_a_token\":%.2f,", stalls[r] / t, bytes[r] / t / 1e6, network[r] / t / 1e6
      printf "\"a_holder_and_token\":{\"waits_ms\":%.2f,\"loads\":%.2f,\"bus_busy_ms\":%.2f},\"load_ms_an_expert\":%.3f,", wait[r] / each, loads[r] / each, busy[r] / each, loads[r] ? busy[r] / loads[r] : 0
      c = calls[r] ? calls[r] : 1
      printf "\"calls\":%d,\"a_call_ms\":{\"total\":%.3f,\"queued\":%.3f,\"slots_wait\":%.3f,\"reads_wait\":%.3f,\"engine\":%.3f,\"rest\":%.3f}}\n", calls[r], whole[r] / c, queued[r] / c, slot[r] / c, missing[r] / c, engine[r] / c, rest[r] / c } }'
}

alone() {
  local lent=$1 read='' device
  shift
  "$bin/lab" room alone models/experts.gguf --budget "$lent" --gpu-index "${gpu:-0}" --cache "$cache/alone" "${asked[@]}" "$@" > host.out 2> host.log &
  device=$!
  while kill -0 "$device" 2>/dev/null; do
    [ "$((SECONDS - began))" -lt "$limit" ] || kill "$device"
    now=$(read_bytes "$device")
    case $now in *:0,*) ;; *) read=$now ;; esac
    sleep 0.3
  done
  wait "$device" || echo "the device ended with $?"
  grep '^{' host.out || tail -n 3 host.log
  echo "$read"
}

room() {
  local holders=$1 lent=$2 host=$3 asking link peers='' word options=() joined=()
  shift 3
  for word in "$@"; do
    case $word in join:*) joined+=("${word#join:}") ;; *) options+=("$word") ;; esac
  done
  # Other parts go to the same devices: their folders would only grow.
  [ "$before" = "$lent" ] || rm -rf "$cache"/[0-9]*
  before=$lent
  # The link of the room before must not be found.
  : > host.out
  timeout "$limit" "$bin/lab" room host experts --relay "http://localhost:$port" --share experts --replicas 1 --hedging off --budget "$host" \
    --cache "$cache/host" --members "$((holders + 1))" --holders "${wanted:-$((holders > 4 ? holders - 1 : holders))}" --gpu-index "${gpu:-0}" "${asked[@]}" "${options[@]}" > host.out 2> host.log &
  asking=$!
  await "$asking" host.log grep -qE 'http[^ ]*/r/' host.out || return 0
  link=$(grep -oE 'http[^ ]*/r/[^ ]*' host.out | head -1)
  for number in $(seq 1 "$holders"); do
    "$bin/lab" room join "$link" "${joined[@]}" --budget "$lent" --cache "$cache/$number" \
      --gpu-index "$((${gpu:-0} + number % ${gpus:-1}))" > "join$number.log" 2>&1 &
    peers+=" $!"
  done
  wait "$asking" || echo "the host ended with $?"
  grep '^{' host.out || tail -n 3 host.log
  tail -n 1 host.log
  served
  # shellcheck disable=SC2086 # several processes
  read_bytes $peers
  # shellcheck disable=SC2086 # several processes
  kill $peers 2>/dev/null || true; wait $peers 2>/dev/null || true
  rm -f join*.log
}

while read -r line; do
  [ "$SECONDS" -lt "$stop" ] || { echo "== no time left for: $line"; continue; }
  echo "== $line, at $SECONDS s, load $(cut -d' ' -f1 /proc/loadavg)"
  began=$SECONDS dropping=
  case $line in *--cold*) drop_cache & dropping=$! ;; esac
  # shellcheck disable=SC2086 # a case is words
  ${line/ --cold/}
  [ -z "$dropping" ] || { kill "$dropping"; wait "$dropping" 2>/dev/null || true; }
done <<< "$cases"
