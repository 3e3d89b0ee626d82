#!/bin/sh
# publish.sh - publish latency and throughput of oxbowd beside its two ceilings, the null server and a bare write loop, measured in one run.
#
#   tests/bench/publish.sh [BUILD-FOLDER]      (default: build; a Release build)
#
# DURATION (10s), RATE (2000), SIZE (1k), ROUNDS (3) and DIR (a temporary folder: use one on the disk in question) may be set in the environment.
# Prints each measurement as a line of JSON, then the ratios. The three are measured in turn, ROUNDS times: the disk is shared with others.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$top/build}
duration=${DURATION:-10s} rate=${RATE:-2000} size=${SIZE:-1k} rounds=${ROUNDS:-3}
null_port=${NULL_PORT:-27650} port=${PORT:-27660} web_port=${WEB_PORT:-27680}
work=${DIR:-$(mktemp -d "${TMPDIR:-/var/tmp}/oxbow-bench.XXXXXX")}
mkdir -p "$work"
bench=$build/oxbow-bench
null_pid='' broker_pid=''

stop() {
    [ -z "$null_pid" ] || kill "$null_pid" 2>/dev/null || true
    [ -z "$broker_pid" ] || kill "$broker_pid" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

wait_for() { # until the command succeeds
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "publish.sh: not ready: $*" >&2; exit 1; }
        sleep 0.05
    done
}

"$bench" null --port "$null_port" >/dev/null &
null_pid=$!
"$build/oxbowd" --data "$work/data" --set brokerServicePort="$port" --set webServicePort="$web_port" --set logLevel=warn 2>"$work/oxbowd.log" &
broker_pid=$!
wait_for "$build/oxbowctl" --url "http://127.0.0.1:$web_port" brokers health
wait_for "$bench" publish --service-url "pulsar://127.0.0.1:$null_port" --duration 10ms --warmup 0ms --rate 100

publish() { # label, port, further options
    label=$1 to=$2
    shift 2
    printf '{"label":"%s","result":%s}\n' "$label" \
        "$("$bench" publish --service-url "pulsar://127.0.0.1:$to" --size "$size" --duration "$duration" --warmup 1s -o json "$@")"
}
disk() { # label, further options
    label=$1
    shift
    printf '{"label":"%s","result":%s}\n' "$label" "$("$bench" disk --dir "$work" --duration "$duration" --warmup 1s -o json "$@")"
}
round() {
    publish null.rate "$null_port" --rate "$rate"
    disk disk.rate --size 4k --rate "$rate"
    publish oxbow.rate "$port" --rate "$rate"
    publish null.max "$null_port" --rate 0 --window 10000
    disk disk.max --size 1m --rate 0
    publish oxbow.max "$port" --rate 0 --window 10000
    publish null.narrow "$null_port" --rate 0 --window 1000
    publish oxbow.narrow "$port" --rate 0 --window 1000
    publish null.batched "$null_port" --rate 0 --batch 1000 --window 10000
    publish oxbow.batched "$port" --rate 0 --batch 1000 --window 10000
}

for _ in $(seq "$rounds"); do
    round
done >"$work/results"
cat "$work/results"
python3 "$top/tests/bench/ratios.py" <"$work/results"
