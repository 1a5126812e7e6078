# Sourced by the scripts beside it: a relay that serves a generated file with experts. Needs `bin`, `work` and the options `file` of
# `synthetic`; goes to `work`, and sets `port` and the devices' folder, `cache`.
port=${PORT:-9918} cache=${CACHE:-$work}/potluck-caches
mkdir -p "$work/models" "$work/page" "$cache"; cache=$(realpath "$cache"); cd "$work"
echo '<!doctype html><title>none</title>' > page/index.html
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$cache"' EXIT
# await PROCESS LOG COMMAND…: until the command succeeds; an error if the process ends before.
await() {
  local process=$1 log=$2
  shift 2
  until "$@"; do
    kill -0 "$process" 2>/dev/null || { echo "it ended too early, see $work/$log:" >&2; tail -n 5 "$log" >&2; return 1; }
    sleep 0.2
  done
}
models() { exec 3<>"/dev/tcp/localhost/$port" && printf 'GET /models HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3 && cat <&3; }
is_ready() { (models) 2>/dev/null | grep -q '"phase":"ready"'; }
# shellcheck disable=SC2086 # the file's options are words
[ -e models/experts.gguf ] || time "$bin/synthetic" $file models/experts.gguf
ls -lL models/experts.gguf

"$bin/potluck-relay" --local --port "$port" --models models --page page --data data > relay.log 2>&1 &
await $! relay.log is_ready
