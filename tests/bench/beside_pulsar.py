"""beside_pulsar.py - oxbowd beside a real Pulsar standalone, measured in turns in one run; prints a table of ratios.

    beside_pulsar.py --build BUILD --peers PEERS [--rounds 2] [--seconds 5] [--only publish,batched,latency,catchup,fanout,perf,memory]

PEERS is the script that installs and starts Pulsar 4.0.7 (standalone, fsync on, full JIT). The client is oxbow-bench, the same
program on both sides, and once `pulsar-perf produce`. Policy `sync` on both. Processor time is the broker's own (user and
system), per message published. A round in which Pulsar fails (its store may stop taking appends under this load) is said and done again on a fresh one. Exit status 1 if a figure is out of its bound (README.md of this folder).
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
import oxbowd  # noqa: E402
from oxbowd import Broker  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
CELLS = [(batch, topics, consumers) for batch in (1, 1000) for topics in (1, 10) for consumers in (0, 1)]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_mb(pid, what="VmRSS"):
    return int(re.search(rf"{what}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


class SideFailed(Exception):
    """The client could not do its work with this broker."""


class Side:
    """One of the two brokers (or the null server): where it listens and its process."""

    def __init__(self, name, port, pid):
        self.name, self.url, self.pid, self.run = name, f"pulsar://127.0.0.1:{port}", pid, 0

    def topic(self):
        """A name that nobody has used."""
        self.run += 1
        return f"persistent://public/default/bench-{os.getpid()}-{self.run}"


class Bench:
    def __init__(self, args, work):
        self.args, self.work, self.rows = args, work, []

    def bench(self, mode, side, *options):
        out = subprocess.run([self.args.build / "oxbow-bench", mode, "--service-url", side.url, "--size", "1k", "-o", "json", *map(str, options)],
                             capture_output=True, text=True, timeout=300)
        if out.returncode:
            raise SideFailed(f"{side.name}: oxbow-bench {mode} {' '.join(map(str, options))}: {out.stdout}{out.stderr}")
        return json.loads(out.stdout)

    def publish(self, side, batch, topics, consumers, rate=0, seconds=None):
        before, seconds = cpu_seconds(side.pid), seconds or self.args.seconds
        got = self.bench("publish", side, "--topic", side.topic(), "--topics", topics, "--consumers", consumers, "--rate", rate, "--batch", batch,
                         "--window", 10000 // topics, "--duration", f"{round(seconds * 1000)}ms", "--warmup", "2s")
        used = cpu_seconds(side.pid) - before
        total = got["perSecond"] * (seconds + 2)  # the warm-up is not counted by the client but used the broker's processor
        return {"rate": got["perSecond"], "us": used / max(1, total) * 1e6, "p50": got["latencyUs"]["p50"] / 1e3, "p99": got["latencyUs"]["p99"] / 1e3}

    def catchup(self, side, batch, count=200000):
        topic = side.topic()
        self.bench("publish", side, "--topic", topic, "--rate", 0, "--batch", batch, "--window", 10000, "--duration", "4s", "--warmup", "0s")
        return {"rate": self.bench("drain", side, "--topic", topic, "--messages", count if batch > 1 else count // 5)["perSecond"]}

    def fanout(self, side, subscriptions=100, count=5000):
        topic = side.topic()
        self.bench("publish", side, "--topic", topic, "--rate", 5000, "--duration", "2s", "--warmup", "0s")
        return {"rate": self.bench("drain", side, "--topic", topic, "--messages", count, "--consumers", subscriptions, "--connections", 4)["perSecond"]}

    def perf(self, side, seconds=8):
        out = subprocess.run([self.args.peers, "perf", "produce", "-u", side.url, "-r", "1000000", "-o", "5000", "-s", "1024", "-time", str(seconds), side.topic()],
                             capture_output=True, text=True, timeout=120)
        whole = re.search(r"Aggregated throughput stats --- *(\d+) records sent --- *([\d.]+) *msg/s", out.stdout + out.stderr)
        return {"rate": float(whole.group(2)) if whole else 0.0}

    def turns(self, what, sides, measure):
        """Medians of each side, measured in turn."""
        got = {side.name: [] for side in sides}
        for _ in range(self.args.rounds):
            for side in sides:
                got[side.name].append(self.again(side, measure))
                print(json.dumps({"what": what, "side": side.name, **got[side.name][-1]}), file=sys.stderr, flush=True)
        return {name: {key: statistics.median(x[key] for x in values) for key in values[0]} for name, values in got.items()}

    def again(self, side, measure):
        """One measurement; a Pulsar that fails is replaced by a fresh one, once."""
        try:
            return measure(side)
        except SideFailed as why:
            if side.name != "pulsar":
                raise
            print(why, file=sys.stderr, flush=True)
            stop_pulsar(self.args, self.work)
            fresh = start_pulsar(self.args, self.work)
            side.url, side.pid = fresh.url, fresh.pid
            return measure(side)

    def row(self, what, bound, value, holds, sides):
        self.rows.append((what, bound, value, holds, sides))

    def rates(self, what, median, ceiling=None, least=2.0):
        ratio = median["oxbow"]["rate"] / max(1e-9, median["pulsar"]["rate"])
        part = median["oxbow"]["rate"] / ceiling if ceiling else 0
        sides = f"{median['oxbow']['rate']:.0f}/s, Pulsar {median['pulsar']['rate']:.0f}/s" + (f", null {ceiling:.0f}/s" if ceiling else "")
        self.row(what, f">= {least} or >= 0.9 of the ceiling", f"{ratio:.1f}" + (f" ({part:.2f} of the ceiling)" if ceiling else ""), ratio >= least or part >= 0.9, sides)


def name(batch, topics, consumers):
    return f"{'batched' if batch > 1 else 'one an entry'}, {topics} topic{'s' if topics > 1 else ''}, {consumers} consumer{'' if consumers == 1 else 's'}"


def measure(b, oxbow, pulsar, null, only):
    both = [oxbow, pulsar]
    if "publish" in only or "batched" in only:
        for batch, topics, consumers in CELLS if "publish" in only else CELLS[4:]:
            what = name(batch, topics, consumers)
            m = b.turns(what, both, lambda side: b.publish(side, batch, topics, consumers))
            ceiling = b.publish(null, batch, topics, 0, seconds=2)["rate"] if not consumers else None
            b.rates("publish, " + what, m, ceiling)
            cost = m["oxbow"]["us"] / m["pulsar"]["us"]
            b.row("processor a message, " + what, "<= 0.25", f"{cost:.2f}", cost <= 0.25, f"{m['oxbow']['us']:.2f} us, Pulsar {m['pulsar']['us']:.2f} us")
    if "latency" in only:
        m = b.turns("2,000/s", both, lambda side: b.publish(side, 1, 1, 0, rate=2000, seconds=10))
        for key, bound in (("p50", 1 / 3), ("p99", 1 / 4)):
            ratio = m["oxbow"][key] / m["pulsar"][key]
            b.row(f"latency {key} at 2,000/s", f"<= {bound:.2f}", f"{ratio:.2f}", ratio <= bound, f"{m['oxbow'][key]:.2f} ms, Pulsar {m['pulsar'][key]:.2f} ms")
    if "catchup" in only:
        for batch in (1, 1000):
            b.rates("catch-up reads, " + ("batched" if batch > 1 else "one an entry"), b.turns("catch-up", both, lambda side: b.catchup(side, batch)))
    if "fanout" in only:
        b.rates("one topic to 100 subscriptions, deliveries", b.turns("fan-out", both, b.fanout))
    if "perf" in only:
        b.rates("pulsar-perf produce", b.turns("pulsar-perf", both, b.perf))
    if "memory" in only:
        mine, theirs = resident_mb(oxbow.pid, "VmHWM"), resident_mb(pulsar.pid, "VmHWM")
        b.row("resident at most, after all this", "< 128 MB", f"{mine:.0f} MB", mine < 128, f"Pulsar {theirs:.0f} MB")


def peers(args, work, *words):
    env = dict(os.environ, PEERS_RUN=str(work / "peers"), PEERS_STANDALONE_SYNC="true", PEERS_JIT="full")
    return subprocess.run([args.peers, *words], env=env, capture_output=True, text=True)


def stop_pulsar(args, work):
    peers(args, work, "wipe")


def start_pulsar(args, work):
    out = peers(args, work, "start", "pulsar", "--standalone", "--name", "beside")
    if out.returncode:
        raise SystemExit(out.stdout + out.stderr)
    pid = int(re.search(r"pid=(\d+)", (work / "peers/beside/state").read_text()).group(1))
    return Side("pulsar", int(re.search(r"pulsar://127.0.0.1:(\d+)", out.stdout).group(1)), pid)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    p.add_argument("--peers", required=True)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--only", default="publish,latency,catchup,fanout,perf,memory")
    args = p.parse_args()
    oxbowd.BUILD = args.build
    work = pathlib.Path(tempfile.mkdtemp(prefix="oxbow-beside-", dir=os.environ.get("TMPDIR", "/var/tmp")))
    null = subprocess.Popen([args.build / "oxbow-bench", "null", "--port", "27650"], stdout=subprocess.DEVNULL)
    pulsar = start_pulsar(args, work)
    b = Bench(args, work)
    try:
        with Broker(work) as broker:
            broker.start("clusterName=standalone")  # one setting, so that the tests' small segments are not taken
            measure(b, Side("oxbow", broker.port, broker.process.pid), pulsar, Side("null", 27650, null.pid), args.only.split(","))
    finally:
        null.terminate()
        stop_pulsar(args, work)
        subprocess.run(["rm", "-rf", str(work)])
    print("| what | wanted | measured | the sides of it |\n|---|---|---|---|")
    for what, bound, value, holds, sides in b.rows:
        print(f"| {what} | {bound} | {value if holds else f'**{value}, missed**'} | {sides} |")
    sys.exit(not all(row[3] for row in b.rows))


if __name__ == "__main__":
    main()
