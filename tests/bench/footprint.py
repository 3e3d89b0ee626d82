"""footprint.py - what a broker costs before it does anything: time to ready, memory and processor time when idle.

    python footprint.py [--build DIR] [--gb N] [--folder DIR] [--idle-seconds S]

Prints each figure with its limit and ends with 1 if one is missed. Needs a Release build and the Python packages of
tests/interop/requirements.txt. The page cache is only dropped when this runs as root; where it is not, the figure says so.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))
from report import Report  # noqa: E402

FRESH_MS, COLD_MS, IDLE_RSS_MB, IDLE_CPU_PERCENT = 300, 1000, 30, 0.5
TOPICS = 10


def start(broker, *settings):
    """Starts it and returns the milliseconds from the start of the process until its log says that it is ready."""
    begin = time.monotonic()
    broker.launch(*settings)
    while "oxbowd.ready" not in broker.log():
        if not broker.alive() or time.monotonic() - begin > 120:
            raise SystemExit("oxbowd is not ready:\n" + broker.log()[-3000:])
        time.sleep(0.001)
    took = (time.monotonic() - begin) * 1000
    broker.wait_ready()
    return took


def cool(folder):
    """Empties the page cache; a remark where that is not possible."""
    os.sync()
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        return "cold page cache"
    except OSError:
        return "page cache NOT cold: run it as root"


def client_of(broker):
    import pulsar
    return pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def fill(broker, gigabytes):
    """Sends that much in messages of 1 MiB to TOPICS topics, each with a subscription that keeps them."""
    client, payload, failed = client_of(broker), os.urandom(1 << 20), []
    producers = []
    for i in range(TOPICS):
        client.subscribe(f"footprint-{i}", "keeps").close()
        producers.append(client.create_producer(f"footprint-{i}", batching_enabled=False, block_if_queue_full=True,
                                                max_pending_messages=8, send_timeout_millis=60000))

    def sent(result, _):
        if str(result) != "Result.Ok" and str(result) != "Ok":
            failed.append(str(result))

    for i in range(int(gigabytes * 1024)):
        producers[i % TOPICS].send_async(payload, sent)
    for producer in producers:
        producer.flush()
    client.close()
    if failed:
        raise SystemExit(f"{len(failed)} messages were not stored: {failed[0]}")


def stored_mb(folder):
    return sum(file.stat().st_blocks * 512 for file in pathlib.Path(folder).rglob("*") if file.is_file()) / 1e6


def busy_ns(pid):
    """Processor time that all threads have had, in nanoseconds."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def memory_mb(pid):
    """What /proc says of resident memory: field -> MB."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) / 1000 for line in lines if line.startswith(("VmRSS", "RssAnon", "RssFile"))}


def measure_fresh(report, folder, Broker):
    times = []
    for i in range(5):
        with Broker(folder / f"fresh{i}") as broker:
            times.append(start(broker, "storeSegmentSizeMB=64"))
            broker.stop()
    report.line("ready from an empty folder, median of 5", sorted(times)[2], "ms", FRESH_MS)
    report.line("ready from an empty folder, slowest of 5", max(times), "ms", FRESH_MS)


def measure_cold(report, folder, Broker, gigabytes):
    with Broker(folder / "cold") as broker:
        start(broker, "storeSegmentSizeMB=64")
        fill(broker, gigabytes)
        report.line("data folder", stored_mb(broker.data), "MB")
        for how in ("kill", "stop"):
            getattr(broker, how)()
            remark = cool(broker.data)
            took = start(broker)
            report.line(f"ready with {gigabytes:g} GB, {'clean stop' if how == 'stop' else 'kill -9'}", took, "ms", COLD_MS, remark)
        broker.stop()
    shutil.rmtree(folder / "cold")


def measure_idle(report, folder, Broker, seconds):
    with Broker(folder / "idle") as broker:
        start(broker, "storeSegmentSizeMB=64")
        client = client_of(broker)
        for i in range(TOPICS):
            consumer, producer = client.subscribe(f"idle-{i}", "s"), client.create_producer(f"idle-{i}", batching_enabled=False)
            for _ in range(100):
                producer.send(b"x" * 1024)
            for _ in range(100):
                consumer.acknowledge(consumer.receive(10000))
        client.close()
        time.sleep(3)
        before, begin = busy_ns(broker.process.pid), time.monotonic()
        time.sleep(seconds)
        cpu = (busy_ns(broker.process.pid) - before) / 1e9 / (time.monotonic() - begin) * 100
        memory = memory_mb(broker.process.pid)
        report.line(f"idle, {TOPICS} topics: resident", memory["VmRSS"], "MB", IDLE_RSS_MB,
                    f"anonymous {memory['RssAnon']:.1f}, files {memory['RssFile']:.1f}")
        report.line(f"idle, {TOPICS} topics: processor over {seconds:g} s", cpu, "%", IDLE_CPU_PERCENT)
        broker.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder with oxbowd (default: OX_BUILD, or build/)")
    parser.add_argument("--gb", type=float, default=1, help="gigabytes of data for the cold start (0: leave it out)")
    parser.add_argument("--folder", help="where the data folders are made (default: the system's temporary folder)")
    parser.add_argument("--idle-seconds", type=float, default=20, help="how long idleness is watched")
    args = parser.parse_args()
    if args.build:
        os.environ["OX_BUILD"] = args.build
    from oxbowd import Broker
    report = Report()
    with tempfile.TemporaryDirectory(prefix="oxbow-footprint-", dir=args.folder) as name:
        folder = pathlib.Path(name)
        measure_fresh(report, folder, Broker)
        measure_idle(report, folder, Broker, args.idle_seconds)
        if args.gb > 0:
            measure_cold(report, folder, Broker, args.gb)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
