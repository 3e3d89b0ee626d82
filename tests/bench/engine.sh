#!/bin/sh
# engine.sh - the engine's append rate beside fio's with the same batch sizes (one write and one fdatasync at a time, over blocks that were written before),
# interleaved. "one" (a single append outstanding) and "two" (a second one waiting, in a batch of its own: no two appends share one, so that every batch is just as
# large as fio's write) go through fresh segments, as a broker does whose messages are kept; "busy" is "one" with journalBusyWait; "recycled" writes emptied
# segments again (one append at a time), as it is where messages are consumed as fast as they come; for large batches only, because it has to fill some first.
# usage: engine.sh BUILD-FOLDER [WORK-FOLDER] [SECONDS] [ROUNDS]
set -eu
build=$1
work=${2:-/tmp/oxbow-bench-engine.$$}
seconds=${3:-3}
rounds=${4:-3}
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
dd if=/dev/zero of="$work/fio.dat" bs=1M count=64 conv=fsync 2>/dev/null

fio_rate() { # bytes
    fio --name=seq --filename="$work/fio.dat" --rw=write --bs="$1" --size=64m --fdatasync=1 --ioengine=psync --overwrite=1 \
        --fallocate=none --time_based --runtime="$seconds" --output-format=terse --terse-version=3 | cut -d';' -f49
}
engine_rate() { # bytes depth [recycle|apart|busy]
    rm -rf "$work/store"
    "$build/oxbow-bench-engine" "$work/store" "$1" "$2" "$seconds" ${3:-} | sed 's/.*appends_per_s=\([0-9]*\).*/\1/'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# One append at a time has two hand-overs between threads in each cycle; with a second one waiting the journal goes on at once.
printf '%10s %10s %10s %7s %10s %7s %10s %7s %10s %7s\n' bytes fio/s one/s ratio busy/s ratio two/s ratio recycled/s ratio
for bytes in 4096 16384 65536 262144 1048576; do
    : > "$work/f"; : > "$work/e1"; : > "$work/eb"; : > "$work/e2"; : > "$work/e3"
    for round in $(seq "$rounds"); do
        fio_rate "$bytes" >> "$work/f"
        engine_rate "$bytes" 1 >> "$work/e1"
        engine_rate "$bytes" 1 busy >> "$work/eb"
        engine_rate "$bytes" 2 apart >> "$work/e2"
        [ "$bytes" -lt 65536 ] || engine_rate "$bytes" 1 recycle >> "$work/e3"
    done
    awk -v b="$bytes" -v f="$(median < "$work/f")" -v e1="$(median < "$work/e1")" -v eb="$(median < "$work/eb")" -v e2="$(median < "$work/e2")" \
        -v e3="$(median < "$work/e3")" \
        'BEGIN { printf "%10d %10d %10d %6.0f%% %10d %6.0f%% %10d %6.0f%%", b, f, e1, 100 * e1 / f, eb, 100 * eb / f, e2, 100 * e2 / f
                 if (e3) printf " %10d %6.0f%%", e3, 100 * e3 / f
                 printf "\n" }'
done
for depth in 8 64 512; do
    printf '1 KiB entries, depth %4d: %s appends/s\n' "$depth" "$(engine_rate 1184 "$depth")"
done
