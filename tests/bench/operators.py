"""operators.py - what operators' calls take, and what they cost those who publish meanwhile.

    python operators.py [--build DIR] [--folder DIR] [--rounds N] [--topics N] [--only WORD]

Prints each figure with its limit and ends with 1 if one is missed. Needs a Release build with `oxbow-bench-calls` (tests/bench/calls.c).
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))
from report import Report  # noqa: E402

CTL_MS, MAKE_SECONDS, LIST_MS, METRICS_MS, TURN_MS, RATIO = 20, 20, 200, 300, 5, 1.5
RATE, CALL_RATE, CALL_CONNECTIONS, PUBLISH_SECONDS = 20000, 1000, 16, 8
TURN = "oxbow_loop_longest_turn_microseconds"
QUIET = ("brokerDeleteInactiveTopicsEnabled=false",)
NAMESPACE = "public/default"
MEMORY = pathlib.Path("/dev/shm")


def program(name):
    from oxbowd import BUILD
    found = [path for path in (BUILD / name, BUILD / "tests" / "bench" / name) if path.exists()]
    if not found:
        raise SystemExit(f"{name} is not in {BUILD}")
    return str(found[0])


def calls(broker, lines, count, connections, rate=0, expected=()):
    """Makes the calls and returns what the generator says; statuses below 400 and those of `expected` are good, others end the run."""
    command = [program("oxbow-bench-calls"), str(broker.web_port), str(connections), str(rate), str(count)]
    done = subprocess.run(command, input="\n".join(lines), text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"oxbow-bench-calls: {done.stderr}\n{broker.log()[-2000:]}")
    said = json.loads(done.stdout)
    bad = {status: n for status, n in said["statuses"].items() if int(status) >= 400 and int(status) not in expected}
    if bad:
        raise SystemExit(f"calls were refused: {bad}")
    return said


def start(broker, *settings):
    """The log is written in memory where there is such a folder: writing to a disk that is busy with syncs would be part of the loop's turns."""
    if MEMORY.is_dir():
        broker.log_file = MEMORY / f"oxbow-operators-{os.getpid()}.log"
        broker.log_file.unlink(missing_ok=True)
    broker.launch(*QUIET, *settings)
    if not broker.wait_ready():
        raise SystemExit(broker.log()[-3000:])
    return broker


def longest_turn_ms(broker):
    page = broker.http("GET", "/metrics").text
    return float(re.search(rf"^{TURN}(?:{{.*}})? (\S+)", page, re.M)[1]) / 1000


def waited_ms(broker):
    """How long the loop's thread has waited for a processor: a turn that others have interrupted is no shorter for it."""
    return int(pathlib.Path(f"/proc/{broker.process.pid}/task/{broker.process.pid}/schedstat").read_text().split()[1]) / 1e6


def timed_ms(broker, path):
    begin = time.monotonic()
    answer = broker.http("GET", path)
    took = (time.monotonic() - begin) * 1000
    if answer.status != 200:
        raise SystemExit(f"GET {path}: {answer.status} {answer.text[:300]}")
    return took, answer


def measure_ctl(report, folder, Broker):
    with Broker(folder / "ctl") as broker:
        start(broker, "storeSegmentSizeMB=16")
        for words in (("tenants", "list"), ("namespaces", "list", "public"), ("topics", "list", NAMESPACE)):
            times = []
            for _ in range(21):
                begin = time.monotonic()
                subprocess.run([program("oxbowctl"), "--url", broker.web_url, *words], check=True, stdout=subprocess.DEVNULL)
                times.append((time.monotonic() - begin) * 1000)
            report.line(f"oxbowctl {' '.join(words)}, median of {len(times)}", statistics.median(times), "ms", CTL_MS)
        broker.stop()


# ---- many topics

def measure_make(report, folder, Broker, topics):
    """One call a topic: over one connection, then others over several; list and metrics with the first ones there."""
    with Broker(folder / "many") as broker:
        start(broker, "storeSegmentSizeMB=16")
        for connections in (1, CALL_CONNECTIONS):
            lines = [f"PUT /admin/v2/persistent/{NAMESPACE}/made-{connections}-{i}" for i in range(topics)]
            longest_turn_ms(broker)
            said = calls(broker, lines, topics, connections)
            report.line(f"{topics} topics, a PUT each, {connections} connection(s)", said["seconds"], "s", MAKE_SECONDS)
            report.line("  longest turn of the loop", longest_turn_ms(broker), "ms", TURN_MS)
            if connections == 1:
                measure_pages(report, broker, topics)
                measure_turns(report, broker, topics)
        broker.stop()


def measure_wide(report, folder, Broker, topics):
    with Broker(folder / "partitions") as broker:
        start(broker, "storeSegmentSizeMB=16")
        longest_turn_ms(broker)
        said = calls(broker, [f"PUT /admin/v2/persistent/{NAMESPACE}/wide/partitions {topics}"], 1, 1)
        report.line(f"one topic of {topics} partitions", said["seconds"], "s", MAKE_SECONDS)
        report.line("  longest turn of the loop", longest_turn_ms(broker), "ms", TURN_MS)
        took, answer = timed_ms(broker, f"/admin/v2/persistent/{NAMESPACE}/wide/partitioned-stats?perPartition=true")
        if len(answer.json()["partitions"]) != topics:
            raise SystemExit("partitioned-stats left partitions out")
        report.line(f"  its partitioned-stats, {len(answer.text) / 1e6:.1f} MB", took / 1000, "s")
        report.line("  longest turn of the loop", longest_turn_ms(broker), "ms", TURN_MS)
        broker.stop()


def measure_pages(report, broker, topics):
    for what, path, limit in (("list", f"/admin/v2/persistent/{NAMESPACE}", LIST_MS), ("/metrics", "/metrics", METRICS_MS)):
        times, turns = [], []
        for _ in range(5):
            longest_turn_ms(broker)
            took, answer = timed_ms(broker, path)
            times.append(took)
            turns.append(longest_turn_ms(broker))
        if what == "list" and len(answer.json()) < topics:
            raise SystemExit("the list leaves topics out")
        report.line(f"{what} with {topics} topics, median of 5", statistics.median(times), "ms", limit, f"{len(answer.text)} bytes")
        report.line("  longest turn of the loop", max(turns), "ms", TURN_MS)


def measure_turns(report, broker, topics):
    """What touches every topic of a namespace: none may hold up the others."""
    base = f"/admin/v2/namespaces/{NAMESPACE}"
    for what, line in (("policies changed", f'POST {base}/retention {{"retentionTimeInMinutes":5,"retentionSizeInMB":5}}'),
                       ("message TTL set", f"POST {base}/messageTTL 100"),
                       ("compaction threshold set", f"PUT {base}/compactionThreshold 100000000"),
                       ("topics of the namespace", f"GET {base}/topics"),
                       ("broker-stats/topics", "GET /admin/v2/broker-stats/topics"),
                       ("backlogs cleared", f"POST {base}/clearBacklog"),
                       ("unsubscribed", f"POST {base}/unsubscribe/nobody"),
                       ("unloaded", f"PUT {base}/unload"),
                       ("backlogs cleared of unloaded ones", f"POST {base}/clearBacklog")):
        longest_turn_ms(broker)
        said = calls(broker, [line], 1, 1)
        report.line(f"{what}, {topics} topics", said["seconds"], "s")
        report.line("  longest turn of the loop", longest_turn_ms(broker), "ms", TURN_MS)
    longest_turn_ms(broker)
    time.sleep(5)  # what comes by itself
    report.line(f"5 s of nothing, {topics} topics: longest turn of the loop", longest_turn_ms(broker), "ms", TURN_MS)


# ---- calls beside publishing

def day_of_calls():
    """What a dashboard and some scripts ask for."""
    topic, base = f"/admin/v2/persistent/{NAMESPACE}", f"/admin/v2/namespaces/{NAMESPACE}"
    lines = []
    for i in range(20):
        lines += [f"GET {topic}/bench-{i % 4}/stats", f"GET {topic}", f"GET {base}", f"GET /lookup/v2/topic/persistent/{NAMESPACE}/bench-{i % 4}",
                  f"GET {topic}/bench-{i % 4}/internalStats", f"PUT {topic}/short-{i}", f"GET {base}/retention", f"GET {topic}/bench-0/subscriptions",
                  f"DELETE {topic}/short-{i}", f'POST {base}/retention {{"retentionTimeInMinutes":{i},"retentionSizeInMB":{i}}}']
    return lines


def publish(broker, seconds, prepare):
    command = [program("oxbow-bench"), "publish", "--service-url", broker.url, "--topic", f"persistent://{NAMESPACE}/bench", "--topics", "4",
               "--rate", str(RATE), "--size", "1k", "--duration", f"{seconds}s", "--warmup", "2s", "-o", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    prepare()
    said = json.loads(process.communicate()[0])
    if process.returncode:
        raise SystemExit("oxbow-bench has failed")
    return said


def measure_beside(report, folder, Broker, rounds):
    alone, beside, call_p99, turns = [], [], [], []
    with Broker(folder / "beside") as broker:
        start(broker, "storeSegmentSizeMB=64")
        publish(broker, 2, lambda: None)
        for _ in range(rounds):
            alone.append(publish(broker, PUBLISH_SECONDS, lambda: longest_turn_ms(broker)))
            turns.append(longest_turn_ms(broker))

            def load():
                time.sleep(0.5)
                said = calls(broker, day_of_calls(), CALL_RATE * (PUBLISH_SECONDS + 1), CALL_CONNECTIONS, CALL_RATE,
                             expected=(404, 409))  # a topic may be deleted before it is made, over another connection
                call_p99.append(said["p99_ms"])
            beside.append(publish(broker, PUBLISH_SECONDS, load))
            turns.append(longest_turn_ms(broker))
        waited = waited_ms(broker)
        broker.stop()

    def p99(results):
        return statistics.median(r["latencyUs"]["p99"] / 1000 for r in results)
    report.line(f"publish p99 at {RATE}/s, median of {rounds} rounds", p99(alone), "ms")
    report.line(f"  beside {CALL_RATE} calls/s", p99(beside), "ms")
    report.line("  ratio", p99(beside) / p99(alone), "", RATIO)
    report.line("  p99 of the calls", statistics.median(call_p99), "ms")
    report.line("  longest turn of the loop", max(turns), "ms", TURN_MS)


# ---- the metrics page

def scrape(broker):
    """One page, as a client that only takes it: milliseconds, bytes."""
    import socket
    with socket.create_connection(("127.0.0.1", broker.web_port)) as s:
        begin, size, room = time.monotonic(), 0, bytearray(1 << 20)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
        while n := s.recv_into(room):
            size += n
        return (time.monotonic() - begin) * 1000, size


def measure_metrics(report, folder, Broker, topics):
    """Topics that nobody uses, then each with a subscription, a consumer and messages of this interval: every line that a topic can have."""
    def pages(what):
        longest_turn_ms(broker)
        found = [(*scrape(broker), longest_turn_ms(broker)) for _ in range(7)]
        report.line(f"/metrics, {topics} topics {what}, median of 7", statistics.median(f[0] for f in found), "ms", METRICS_MS, f"{found[0][1] / 1e6:.1f} MB")
        report.line("  longest turn of the loop", max(f[2] for f in found), "ms", TURN_MS)
        report.line("  resident", int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{broker.process.pid}/status").read_text())[1]) / 1024, "MiB")

    with Broker(folder / "metrics") as broker:
        start(broker, "storeSegmentSizeMB=16", "statsUpdateFrequencyInSecs=10")
        calls(broker, [f"PUT /admin/v2/persistent/{NAMESPACE}/bench-{i}" for i in range(topics)], topics, CALL_CONNECTIONS)
        pages("that nobody uses")
        load = subprocess.Popen([program("oxbow-bench"), "publish", "--service-url", broker.url, "--topics", str(topics), "--consumers", "1",
                                 "--connections", "4", "--rate", "2000", "--warmup", "15s", "--duration", "30s"], stdout=subprocess.DEVNULL)
        time.sleep(30)
        pages("with a consumer and messages")
        load.terminate()
        load.wait()
        broker.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder with the programs (default: OX_BUILD, or build/)")
    parser.add_argument("--folder", help="where the data folders are made (default: the system's temporary folder)")
    parser.add_argument("--rounds", type=int, default=3, help="of publishing with and without calls, in turns")
    parser.add_argument("--topics", type=int, default=10000)
    parser.add_argument("--only", choices=("ctl", "many", "wide", "metrics", "beside"), help="one of the parts")
    args = parser.parse_args()
    if args.build:
        os.environ["OX_BUILD"] = args.build
    from oxbowd import Broker
    report = Report()
    with tempfile.TemporaryDirectory(prefix="oxbow-operators-", dir=args.folder) as name:
        folder = pathlib.Path(name)
        if args.only in (None, "ctl"):
            measure_ctl(report, folder, Broker)
        if args.only in (None, "many"):
            measure_make(report, folder, Broker, args.topics)
        if args.only in (None, "wide"):
            measure_wide(report, folder, Broker, args.topics)
        if args.only in (None, "metrics"):
            measure_metrics(report, folder, Broker, args.topics)
        if args.only in (None, "beside"):
            measure_beside(report, folder, Broker, args.rounds)
    (MEMORY / f"oxbow-operators-{os.getpid()}.log").unlink(missing_ok=True)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
