#!/usr/bin/env bash
# Experts as a service, measured: the host keeps all attention, native peers on this machine's Vulkan adapter hold the experts.
#   e2e/large/experts.sh BINARIES WORK       the 48 blocks of Qwen3-30B-A3B (18.6 GB), eight holders
#   shape=small e2e/large/experts.sh …       a file of some MB, for a machine without a GPU
# BINARIES holds lab, potluck-relay and the example `synthetic`. Each line of `cases` is one room: replicas, hedging,
# holders, what each of them lends, how late its messages leave (`--delay`; with `answers=` how long its experts' outputs wait,
# each for itself: `--hesitate`), how often it computes (`--slow`; 0 answers with zeros), and further options of the host. With
# `/` between them, several amounts, delays or numbers go to one holder after the other. Prints a line of JSON for each round, and one for
# each longer prompt. `cases` may also be the name of a set. Of the small shape: `hedging` (holders that answer late, and how many are asked
# at once; in the last round of each room none is late, which tells what the same takes without waits), `forecast` (what tokens were expected
# to take after each round, and took in the next), `vanish` (a holder is killed). Of both shapes: `small-device` (the last holder lends little,
# and is killed). Of what is printed, tables.py makes tables. Each round also tells where experts lie, which calls blocks waited for, and
# what was recorded in its longest gaps (`recorded`).
# A case waits until `wanted_holders` devices hold experts (all of them, unless given) and nothing changes any more.
# With --on-demand among them the host has `host_on_demand`, and holders have slots for as many experts as they lend memory for: less than
# they hold. Besides the rounds, each device that loads prints a line of JSON: slots, recall, stalls, bytes and waiting a token.
# vanish=1 kills the last device to enter that many seconds after the first round was printed, in the middle of the second one.
# gpus=2 spreads the devices over two GPUs, the host on the first. gpu=1 begins with the second one.
# CACHE: folder for the devices' caches, about twice the file at most.
set -euo pipefail
bin=$(realpath "${1:?usage: experts.sh BINARIES WORK}") work=$(realpath -m "${2:?usage: experts.sh BINARIES WORK}")
# Seconds for one room, and after which no further room begins.
limit=${limit:-300} stop=${stop:-100000}
several="--conversations 1,8 --prompt-tokens 16,128,512"
set=${cases:-}
case ${shape:-large} in
  large) case $set in
      small-device) vanish=${vanish:-2} tokens=${tokens-64} rounds=${rounds-2} host=${host:-6G}
        cases="2 adaptive 9 5G/5G/5G/5G/5G/5G/5G/5G/300M 0 1" ;;
    esac
    host=${host:-4G} file="--shape qwen3-30b-a3b" cases=${cases:-"1 off 8 2500M 0 1 $several
1 off 8 2500M 0.5 1
1 off 8 2500M 2 1
1 off 8 2500M 0 0
1 off 8 2500M 0 1 --wire f16 --prompt-tokens 512
1 off 8 2500M 0 1 --share fastest $several
2 2 8 5G 0 1 --conversations 1,8
2 2 8 5G 2 1
2 adaptive 8 5G 2 1
1 off 8 900M 0 1 --on-demand
1 off 8 900M 2 1 --on-demand"} ;;
  small) case $set in
      # Where answers are late the planner may have few devices hold experts, and a forecast is about what it chose.
      hedging|forecast) wanted_holders=${wanted_holders:-1} ;;
      vanish|small-device) wanted_holders=${wanted_holders:-4} ;;
    esac
    case $set in
      # Devices need about 30 MB besides. Holders of 37 MB have no room for a whole block: each asks several of them.
      hedging) tokens=${tokens-200} rounds=${rounds-4} host=${host:-36M} cases="1 off 6 300M answers=20,0.5 1 --share fastest
2 2 6 300M answers=20,0.5 1 --share fastest
3 3 6 300M answers=20,0.5 1 --share fastest
4 4 6 300M answers=20,0.5 1 --share fastest
2 off 12 37M answers=20,0.5 1
2 2 12 37M answers=20,0.5 1
2 adaptive 12 37M answers=20,0.5 1" ;;
      forecast) tokens=${tokens-100} rounds=${rounds-4} cases="1 off 3 300M 0 1
1 off 4 300M 2 1
1 off 4 300M 0.5/2/5/10 1
2 off 4 300M 0 4/1/1/1
2 off 5 300M 5 1 --wire f16
1 off 8 300M 1 1
2 adaptive 6 300M answers=20,0.5 1
2 2 6 300M answers=20,0.5 1
3 3 6 300M answers=20,0.5 1
2 adaptive 5 300M answers=0/0/0/0/20,0.5 1" ;;
      vanish) tokens=${tokens-1500} rounds=${rounds-2} vanish=${vanish:-1} host=${host:-120M} cases="2 off 4 300M 0 1
2 off 4 300M 2 1
2 adaptive 5 300M answers=5,0.5 1" ;;
      small-device) tokens=${tokens-600} rounds=${rounds-2} vanish=${vanish:-1} host=${host:-1G}
        cases="2 adaptive 4 60M/60M/60M/37M 0 1" ;;
    esac
    host=${host:-1G} host_on_demand=${host_on_demand:-36M} wanted_holders=${wanted_holders:-2} cases=${cases:-"1 off 3 300M 0 1 $several
1 off 3 300M 0 0
1 off 3 300M 0 1 --wire f16
1 off 3 300M 0 1 --share fastest
2 2 3 300M 20,0.5 1
2 adaptive 3 300M 20,0.5 1
1 off 3 35M 0 1 --on-demand"}
    file="--arch qwen3moe --type Q4_K --hidden 512 --blocks 4 --heads 8 --kv-heads 2 --head-dim 64 --intermediate 256 --experts 32 --used 4 --vocabulary 512 --context 4096 --seed 8" ;;
  *) echo "shape is large or small" >&2; exit 2 ;;
esac
tokens=${tokens:-64} rounds=${rounds:-3}
# Further options of the host in a set. A sampled answer hardly repeats itself, so few tokens have drafts beside them (tables.py tells them apart). Where
# phases are measured the host protects its file, so that it is the one that asks, and nobody else.
asking_more= model=experts
case $set in
  forecast|vanish|small-device) asking_more="--temperature 1 --seed 1" ;;
  hedging) asking_more="--temperature 1 --seed 1 --last-round last-round --protect" model=models/experts.gguf ;;
esac
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(realpath "$0")")/relay.sh"
text=$(printf 'once %.0s' $(seq 1 16)) lent=

# of LIST NUMBER: what a list of one or several has for a holder.
of() {
  local all
  IFS=/ read -ra all <<< "$1"
  echo "${all[$((($2 - 1) % ${#all[@]}))]}"
}
has_round() { grep -q '^{' host.out; }

while read -r replicas hedging holders budget delay slow more; do
  [ "$SECONDS" -lt "$stop" ] || { echo "== no time left for: $replicas $hedging $holders $budget $delay $slow $more"; continue; }
  echo "== replicas $replicas, hedging $hedging, $holders holders of $budget, delay $delay ms, slow $slow $more, at $SECONDS s, load $(cut -d' ' -f1 /proc/loadavg)"
  # Other parts go to the same devices: their caches would only grow.
  [ "$lent" = "$budget" ] || rm -rf "$cache"/*
  lent=$budget
  case $more in *--share*) wanted=0 ;; *) wanted=${wanted_holders:-$holders} more="--share experts $more" ;; esac
  # The host of this set has no memory for them all, so somebody holds experts in any case.
  case $set in hedging) wanted=1 ;; esac
  memory=$host
  case $more in *--on-demand*) memory=${host_on_demand:-2200M} ;; esac
  # shellcheck disable=SC2086 # further options are words
  : > host.out; rm -f last-round
  timeout "$limit" "$bin/lab" room host "$model" --relay "http://localhost:$port" --replicas "$replicas" --hedging "$hedging" \
    --budget "$memory" --context "${context:-2048}" --cache "$cache/host" --raw --prompt "$text" --max-tokens "$tokens" \
    --rounds "$rounds" --members "$((holders + 1))" --holders "$wanted" --gpu-index "${gpu:-0}" $asking_more $more > host.out 2> host.log &
  asking=$! peers=
  await "$asking" host.log grep -qE 'http[^ ]*/r/' host.out
  link=$(grep -oE 'http[^ ]*/r/[^ ]*' host.out | head -1)
  for number in $(seq 1 "$holders"); do
    late="--delay $(of "$delay" "$number")"
    case $delay in answers=*) late="--hesitate $(of "${delay#answers=}" "$number")" ;; esac
    case $set in hedging) late="$late --hesitate-until last-round" ;; esac
    # shellcheck disable=SC2086 # an option and its value
    "$bin/lab" room join "$link" --budget "$(of "$budget" "$number")" $late --slow "$(of "$slow" "$number")" \
      --gpu-index "$((${gpu:-0} + number % ${gpus:-1}))" \
      --cache "$cache/$number" > "join$number.log" 2>&1 &
    peers+=" $!"
  done
  # One of the devices vanishes in the middle of an answer, if so wished.
  if [ -n "${vanish:-}" ]; then
    await "$asking" host.log has_round
    sleep "$vanish"; kill -9 "${peers##* }"; echo "vanished at $(date +%s%3N) ms"
  fi
  wait "$asking" || echo "the host ended with $?"
  grep '^{' host.out || true
  tail -n 1 host.log
  # A device that is asked to leave says what it has loaded.
  # shellcheck disable=SC2086 # several processes
  kill -INT $peers 2>/dev/null || true; sleep 1
  grep -hE '^\{.*"misses"' join*.log || true
  rm -f join*.log
  # shellcheck disable=SC2086 # several processes
  kill $peers 2>/dev/null || true; wait $peers 2>/dev/null || true
done <<< "$cases"
