#!/usr/bin/env python3
"""Reads what publish.sh measured, lines of {"label", "result"}; prints medians over the rounds and the ratios to the ceilings."""
import json, statistics, sys

LATENCY_TIMES_MAX = 2.0  # publish latency less the null server's, against the bare loop's
THROUGHPUT_SHARE_MIN = 0.9  # of the lower ceiling


def read(lines):
    results = {}
    for line in lines:
        row = json.loads(line)
        results.setdefault(row["label"], []).append(row["result"])
    return results


def median(rows, *path):
    values = []
    for row in rows:
        for key in path:
            row = row[key]
        values.append(row)
    return statistics.median(values)


def print_latency(results):
    good = True
    print(f"\nlatency at a fixed rate, us (medians of {len(results['oxbow.rate'])} rounds)")
    print(f"{'':6}{'oxbowd':>10}{'null':>10}{'bare loop':>12}{'(oxbowd - null) / loop':>26}")
    for q in ("p50", "p99"):
        ours, null, loop = (median(results[name], "latencyUs", q) for name in ("oxbow.rate", "null.rate", "disk.rate"))
        ratio = (ours - null) / loop
        good &= ratio <= LATENCY_TIMES_MAX
        print(f"{q:6}{ours:10.1f}{null:10.1f}{loop:12.1f}{ratio:26.2f}  (at most {LATENCY_TIMES_MAX})")
    return good


def print_throughput(results, kind, bound):
    ours, null = (median(results[f"{who}.{kind}"], "mbPerSecond") for who in ("oxbow", "null"))
    disk = median(results["disk.max"], "mbPerSecond")
    ceiling = min(null, disk)
    limit = "null server" if null <= disk else "disk"
    print(f"{kind:8} oxbowd {ours:8.1f} MB/s  null {null:8.1f}  disk {disk:8.1f}  share of the lower ({limit}): {ours / ceiling:.2f}"
          + (f"  (at least {THROUGHPUT_SHARE_MIN})" if bound else "  (round trips of a small window: no bound)"))
    return not bound or ours / ceiling >= THROUGHPUT_SHARE_MIN


def main():
    results = read(sys.stdin)
    good = print_latency(results)
    print("\nthroughput with 10,000 messages on their way (max: one message an entry; batched: up to 1000) and with 1,000 (narrow: one message an entry)")
    for kind in ("max", "batched", "narrow"):
        good &= print_throughput(results, kind, kind != "narrow")
    print("\nall figures within their bounds" if good else "\nsome figures are out of their bounds")
    sys.exit(0 if good else 1)


main()
