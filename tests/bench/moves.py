"""moves.py - what moving the storage costs the clients, and what it costs itself.

    python moves.py [--build DIR] [--folder DIR] [--only pauses,copy,throttle,cursors] [--windows N] [--gb G] [--cursors N]

pauses    the longest gap between acknowledgements in windows with a switch and without, interleaved, at 2,000 and 20,000 messages/s
copy      move-data without a limit beside a plain copy (read, write, fdatasync every 64 MiB) of the same bytes, interleaved
throttle  move-data held to a rate: the rate that is seen, and the publish latency meanwhile beside that without a move
cursors   a switch with many subscriptions of topics that nobody has loaded: topics loaded by it (0), and the memory it took

Prints each figure with its limit and ends with 1 if one is missed. Needs a Release build and the Python packages of
tests/interop/requirements.txt.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from footprint import Report, client_of, memory_mb, stored_mb

MEDIAN_MS, MAXIMUM_MS = 20, 40  # how much later at most, with a switch in the window
COPY_SHARE, RATE_SHARE, LATENCY_FACTOR = 0.70, 0.10, 2.0
CURSOR_MEMORY_MB = 128  # what a switch with 100,000 subscriptions of unloaded topics may take on top
SEGMENT = "storeSegmentSizeMB=64"


def build(name):
    return str(pathlib.Path(os.environ["OX_BUILD"]) / name)


def ctl(broker, *words):
    """Runs oxbowctl and returns what it printed."""
    done = subprocess.run([build("oxbowctl"), "--url", broker.web_url, *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"oxbowctl {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def load(broker, rate, seconds, **options):
    """Starts oxbow-bench; its result is what `finish` returns."""
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return subprocess.Popen([build("oxbow-bench"), "publish", "--service-url", broker.url, "--size", "1k", "--rate", str(rate),
                             "--duration", f"{seconds * 1000:.0f}ms", "--warmup", "300ms", "--pause-window", f"{seconds * 1000:.0f}ms",
                             "-o", "json", *words], stdout=subprocess.PIPE, text=True)


def finish(process):
    output = process.communicate()[0]
    if process.returncode:
        raise SystemExit("oxbow-bench failed")
    result = json.loads(output)
    if result["failed"]:
        raise SystemExit(f"{result['failed']} messages failed")
    return result


def second_place(broker):
    ctl(broker, "bookie-clusters", "register", "two", "--metadata-service-uri", f"embedded:{broker.data}/two")


def histogram(name, values):
    """One line: how many windows had a longest gap up to each bound."""
    bounds = (1, 2, 5, 10, 20, 40, 80, 1e9)
    counts = [sum(low < value <= high for value in values) for low, high in zip((0,) + bounds, bounds)]
    print(f"    {name:<16}" + "  ".join(f"<={bound:g}: {count}" if bound < 1e9 else f"more: {count}" for bound, count in zip(bounds, counts)))


def measure_pauses(report, folder, Broker, args):
    for rate in (2000, 20000):
        with Broker(folder / f"pauses{rate}") as broker:
            broker.start(SEGMENT)
            second_place(broker)
            target, gaps = "two", {True: [], False: []}
            for window in range(2 * args.windows):
                switch = window % 2 == 1
                process = load(broker, rate, 1.0)
                if switch:
                    time.sleep(0.8)  # the warm-up is over by then
                    ctl(broker, "bookie-clusters", "switch", target)
                    target = "default" if target == "two" else "two"
                gaps[switch].append(finish(process)["pauseMs"]["max"])
                if switch:
                    ctl(broker, "bookie-clusters", "switch", "two" if target == "default" else "default", "--wait")  # the same again: only waits
            with_, without = gaps[True], gaps[False]
            print(f"longest gap between acknowledgements, {rate} messages/s, {args.windows} windows each, ms")
            histogram("with a switch", with_)
            histogram("without", without)
            report.line(f"{rate}/s: median with {statistics.median(with_):.2f}, without {statistics.median(without):.2f}: later by",
                        statistics.median(with_) - statistics.median(without), "ms", MEDIAN_MS)
            report.line(f"{rate}/s: maximum with {max(with_):.2f}, without {max(without):.2f}: later by", max(with_) - max(without), "ms", MAXIMUM_MS)
            broker.stop()
        shutil.rmtree(folder / f"pauses{rate}")


def fill(broker, gigabytes, topics=4):
    """Messages of 64 KiB that a subscription keeps."""
    client, payload, failed = client_of(broker), os.urandom(64 << 10), []
    producers = []
    for i in range(topics):
        client.subscribe(f"moves-{i}", "keeps").close()
        producers.append(client.create_producer(f"moves-{i}", batching_enabled=False, block_if_queue_full=True, max_pending_messages=64,
                                                send_timeout_millis=60000))
    for i in range(int(gigabytes * (1 << 30) / len(payload))):
        producers[i % topics].send_async(payload, lambda result, _: str(result).endswith("Ok") or failed.append(result))
    for producer in producers:
        producer.flush()
    client.close()
    if failed:
        raise SystemExit(f"{len(failed)} messages were not stored: {failed[0]}")


def plain_copy(source, target):
    """Bytes a second of a plain copy of a folder: read, write, fdatasync every 64 MiB."""
    copied, begin = 0, time.monotonic()
    target.mkdir()
    for file in sorted(source.rglob("*.seg")) or sorted(f for f in source.rglob("*") if f.is_file()):
        with open(file, "rb", buffering=0) as reader, open(target / file.name, "wb", buffering=0) as writer:
            while block := reader.read(1 << 20):
                writer.write(block)
                copied += len(block)
                if copied % (64 << 20) == 0:
                    os.fdatasync(writer.fileno())
            os.fdatasync(writer.fileno())
    return copied / (time.monotonic() - begin)


def moved_bytes(broker):
    stages = json.loads(ctl(broker, "-o", "json", "bookie-clusters", "status"))["switch"]["stages"]
    return next(stage for stage in stages if stage["name"] == "DATA_MOVED")["bytes"]


def measure_copy(report, folder, Broker, args):
    with Broker(folder / "copy") as broker:
        broker.start(SEGMENT)
        fill(broker, args.gb)
        second_place(broker)
        plain, moved, target = [], [], "two"
        for round_ in range(args.rounds):
            os.sync()
            plain.append(plain_copy(broker.data / ("store" if target == "two" else "two"), folder / "plain"))
            shutil.rmtree(folder / "plain")
            os.sync()
            ctl(broker, "bookie-clusters", "switch", target, "--wait")
            begin = time.monotonic()
            ctl(broker, "bookie-clusters", "move-data", target, "--wait")
            moved.append(moved_bytes(broker) / (time.monotonic() - begin))
            ctl(broker, "bookie-clusters", "cleanup", "--force")  # so that the way back is a copy again
            target = "default" if target == "two" else "two"
        for name, rates in (("plain copy", plain), ("move-data", moved)):
            print(f"    {name:<12}" + "  ".join(f"{rate / 1e6:.0f} MB/s" for rate in rates))
        share = statistics.median(moved) / statistics.median(plain)
        print(f"move-data reaches {share:.2f} of a plain copy (at least {COPY_SHARE}): {'good' if share >= COPY_SHARE else 'MISSED'}")
        report.missed += share < COPY_SHARE
        broker.stop()
    shutil.rmtree(folder / "copy")


def measure_throttle(report, folder, Broker, args):
    rate, alone, beside, seen = 20 << 20, [], [], []
    with Broker(folder / "throttle") as broker:
        broker.start(SEGMENT)
        fill(broker, 0.75)
        second_place(broker)
        ctl(broker, "bookie-clusters", "switch", "two", "--wait")
        ctl(broker, "bookie-clusters", "throttle", "--bytes", str(rate))
        ctl(broker, "bookie-clusters", "move-data", "two")
        for _ in range(2 * args.rounds):
            ctl(broker, "bookie-clusters", "pause")
            alone.append(finish(load(broker, 2000, 2.5))["latencyUs"]["p99"])
            ctl(broker, "bookie-clusters", "resume")
            process = load(broker, 2000, 2.5)
            time.sleep(0.5)
            before, begin = moved_bytes(broker), time.monotonic()
            time.sleep(2.0)
            seen.append((moved_bytes(broker) - before) / (time.monotonic() - begin))
            beside.append(finish(process)["latencyUs"]["p99"])
        for name, values in (("alone", alone), ("beside", beside)):
            print(f"    publish p99 {name:<8}" + "  ".join(f"{value:.0f}" for value in values) + "  us")
        middle = statistics.median(seen)
        report.line(f"throttled to {rate / 1e6:.0f} MB/s, seen {middle / 1e6:.2f}: off by", abs(middle / rate - 1) * 100, "%", RATE_SHARE * 100)
        report.line("publish p99 beside it, times that while it pauses (medians)", statistics.median(beside) / statistics.median(alone), "",
                    LATENCY_FACTOR)
        broker.kill()
    shutil.rmtree(folder / "throttle")


def subscribe_many(broker, topics, each):
    """Subscriptions that have acknowledged a message each, so that each has a ledger of its own."""
    client = client_of(broker)
    for t in range(topics):
        name = f"cursors-{t}"
        consumers = [client.subscribe(name, f"s{i}", receiver_queue_size=2) for i in range(each)]
        producer = client.create_producer(name, batching_enabled=False)
        producer.send(b"one")
        producer.send(b"two")
        for consumer in consumers:
            consumer.acknowledge(consumer.receive(30000))
        for consumer in consumers:
            consumer.close()
        producer.close()
    time.sleep(2)
    client.close()


def measure_cursors(report, folder, Broker, args):
    topics = 100
    with Broker(folder / "cursors") as broker:
        broker.start(SEGMENT)
        subscribe_many(broker, topics, args.cursors // topics)
        broker.restart("kill")
        second_place(broker)
        cursors = sum(place["cursorLedgers"] for place in json.loads(ctl(broker, "-o", "json", "bookie-clusters", "inventory"))["places"])
        before, begin = memory_mb(broker.process.pid)["VmRSS"], time.monotonic()
        ctl(broker, "bookie-clusters", "switch", "two")
        peak, loaded = before, 0
        while True:
            status = json.loads(ctl(broker, "-o", "json", "bookie-clusters", "status"))["switch"]
            peak = max(peak, memory_mb(broker.process.pid)["VmRSS"])
            if status["state"] not in ("RUNNING", "PAUSED"):
                break
            time.sleep(0.2)
        loaded = broker.metrics().get("pulsar_broker_topics_count", 0)
        print(f"{cursors} cursor ledgers of {topics} topics, none loaded: {status['state']} after {time.monotonic() - begin:.1f} s")
        report.line("topics that the switch has loaded", loaded, "", 1)
        report.line(f"memory while switching (from {before:.0f} MB): more by", peak - before, "MB", CURSOR_MEMORY_MB)
        broker.kill()
    shutil.rmtree(folder / "cursors")


MEASURES = {"pauses": measure_pauses, "copy": measure_copy, "throttle": measure_throttle, "cursors": measure_cursors}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder with the programs (default: OX_BUILD, or build/)")
    parser.add_argument("--folder", help="where the data folders are made (default: the system's temporary folder)")
    parser.add_argument("--only", default=",".join(MEASURES), help="which measures")
    parser.add_argument("--windows", type=int, default=20, help="windows with a switch, and as many without")
    parser.add_argument("--rounds", type=int, default=3, help="copies of each kind")
    parser.add_argument("--gb", type=float, default=2, help="gigabytes to move")
    parser.add_argument("--cursors", type=int, default=100000, help="subscriptions of topics that are not loaded")
    args = parser.parse_args()
    os.environ["OX_BUILD"] = args.build or os.environ.get("OX_BUILD") or str(pathlib.Path(__file__).resolve().parents[2] / "build")
    from oxbowd import Broker
    report = Report()
    with tempfile.TemporaryDirectory(prefix="oxbow-moves-", dir=args.folder) as name:
        for measure in args.only.split(","):
            MEASURES[measure](report, pathlib.Path(name), Broker, args)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
