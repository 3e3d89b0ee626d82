"""Load a Pulsar-protocol broker with the real Python client and hold what came out against what was acknowledged.

Every message carries (producer, sequence, checksum) and a body that only that message can have. While producers and
consumers run, an optional command is run (`--during`, `--at` seconds after the start): a storage switch, an unload, a kill.
Afterwards a reader re-reads each topic from its beginning. Prints one JSON object; exit 0 only if the asked rate was held,
no acknowledged message is lost or altered, none is out of order (per producer; per key with KeyShared; not checked with
Shared or several topics' interleaving), and none comes twice: a reader must see none twice in any case, consumers only with
`--allow-redelivery`, and even then none whose ack had been confirmed. For correctness, at up to about 5,000 messages/s;
pauses and higher rates belong to the project's own load generator.

  verify.py --url pulsar://127.0.0.1:6650 --seconds 20 --rate 2000 --sub-type KeyShared --consumers 3 --topics 2 \
                   --during 'oxbowctl bookie-clusters switch two --wait' --at 8
"""
import argparse, collections, json, random, struct, subprocess, sys, threading, time, zlib
import pulsar

HEADER = struct.Struct(">IQI")  # producer, sequence, CRC32 of the rest
NOISE = random.Random(7).randbytes(1 << 20)
KEYS = 16


def body(ident, seq, size):
    start = (ident * 7919 + seq * 104729) % (len(NOISE) - size)
    return NOISE[start:start + size]


def pack(ident, seq, size):
    rest = body(ident, seq, max(0, size - HEADER.size))
    return HEADER.pack(ident, seq, zlib.crc32(rest)) + rest


def percentile(values, q):
    return round(values[min(len(values) - 1, int(q * len(values)))], 3) if values else None


class Producer(threading.Thread):
    def __init__(self, client, topics, ident, args):
        super().__init__(daemon=True)
        self.ident_, self.args, self.acked, self.failed, self.sent = ident, args, set(), 0, 0
        self.latencies, self.last_ack, self.gap, self.lock = [], None, 0.0, threading.Lock()
        self.producers = [client.create_producer(
            topic, producer_name=f"verify-{args.run}-{ident}-{i}", send_timeout_millis=60000, batching_enabled=args.batching,
            batching_type=pulsar.BatchingType.KeyBased if args.sub_type == "KeyShared" else pulsar.BatchingType.Default,
            batching_max_publish_delay_ms=1, max_pending_messages=5000, block_if_queue_full=True) for i, topic in enumerate(topics)]

    def done(self, seq, sent):
        def callback(result, _message_id):
            now = time.monotonic_ns()
            with self.lock:
                if result != pulsar.Result.Ok:
                    self.failed += 1
                    return
                self.acked.add(seq)
                self.latencies.append((now - sent) / 1e6)
                if self.last_ack is not None:
                    self.gap = max(self.gap, (now - self.last_ack) / 1e6)
                self.last_ack = now
        return callback

    def run(self):
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < self.args.seconds:
            while self.sent < elapsed * self.args.rate / self.args.producers:
                seq = self.sent
                self.producers[seq % len(self.producers)].send_async(
                    pack(self.ident_, seq, self.args.size), self.done(seq, time.monotonic_ns()), partition_key=f"k{seq // len(self.producers) % KEYS}")
                self.sent += 1
            time.sleep(0.001)
        for each in self.producers:
            each.flush()
        self.settle(time.monotonic() + 60)

    def settle(self, deadline):
        """flush returns before the last callbacks have run: a message whose fate nobody has said by the deadline has failed."""
        while time.monotonic() < deadline:
            with self.lock:
                if len(self.acked) + self.failed >= self.sent:
                    return
            time.sleep(0.01)
        with self.lock:
            self.failed += self.sent - len(self.acked) - self.failed


class Seen:
    """What consumers (or one reader) saw."""

    def __init__(self, order_by):
        self.lock, self.order_by, self.confirmed = threading.Lock(), order_by, set()
        self.next, self.times, self.count, self.disorder, self.altered, self.after_confirmed_ack = {}, collections.Counter(), 0, 0, 0, 0

    def add(self, topic, message):
        data = message.data()
        ident, seq, crc = HEADER.unpack_from(data)
        with self.lock:
            self.count += 1
            if zlib.crc32(data[HEADER.size:]) != crc or data[HEADER.size:] != body(ident, seq, len(data) - HEADER.size):
                self.altered += 1
                return None
            self.times[ident, seq] += 1
            if self.times[ident, seq] > 1:
                self.after_confirmed_ack += (ident, seq) in self.confirmed
                return ident, seq
            where = {"producer": (topic, ident), "key": (topic, ident, message.partition_key()), None: None}[self.order_by]
            if where is not None:
                self.disorder += seq < self.next.get(where, 0)
                self.next[where] = max(seq + 1, self.next.get(where, 0))
            return ident, seq

    @property
    def duplicates(self):
        return sum(n - 1 for n in self.times.values())


class Consumer(threading.Thread):
    def __init__(self, client, topic, args, seen, stop):
        super().__init__(daemon=True)
        self.topic, self.args, self.seen, self.stop, self.held = topic, args, seen, stop, []
        self.consumer = client.subscribe(
            topic, f"verify-{args.run}", consumer_type=getattr(pulsar.ConsumerType, args.sub_type), receiver_queue_size=1000,
            initial_position=pulsar.InitialPosition.Earliest, consumer_name=f"c{id(self) % 10**6}", batch_index_ack_enabled=args.ack == "holes")

    def run(self):
        since = 0
        while not self.stop.is_set():
            try:
                message = self.consumer.receive(timeout_millis=500)
            except pulsar.Timeout:
                continue
            which = self.seen.add(self.topic, message)
            since += 1
            if self.args.ack == "cumulative" and self.args.sub_type in ("Exclusive", "Failover"):
                if since % 100 == 0:
                    self.consumer.acknowledge_cumulative(message)
            elif self.args.ack == "holes" and which and which[1] % 20 == 0:
                self.held.append(message)  # acknowledged at the end: leaves holes meanwhile
            else:
                self.consumer.acknowledge(message)
                with self.seen.lock:
                    if which and self.args.confirmed:
                        self.seen.confirmed.add(which)
        for message in self.held:
            self.consumer.acknowledge(message)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--url", default="pulsar://127.0.0.1:6650")
    p.add_argument("--topic", default=f"persistent://public/default/verify-{int(time.time())}")
    p.add_argument("--topics", type=int, default=1, help="so many topics, named with a number after --topic")
    p.add_argument("--producers", type=int, default=2)
    p.add_argument("--consumers", type=int, default=1, help="per topic, on one subscription")
    p.add_argument("--rate", type=float, default=1000, help="messages per second, all producers together")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--size", type=int, default=256, help="bytes per message")
    p.add_argument("--sub-type", default="Exclusive", choices=["Exclusive", "Shared", "Failover", "KeyShared"])
    p.add_argument("--ack", default="single", choices=["single", "cumulative", "holes"])
    p.add_argument("--no-batching", dest="batching", action="store_false")
    p.add_argument("--during", help="shell command to run while messages flow")
    p.add_argument("--at", type=float, default=3, help="seconds after the start at which --during runs")
    p.add_argument("--drain", type=float, default=30, help="seconds allowed for the consumers to catch up at the end")
    p.add_argument("--max-gap-ms", type=float, help="fail if a producer waited longer than this between two acknowledgements")
    p.add_argument("--allow-redelivery", action="store_true")
    p.add_argument("--confirmed", action="store_true", help="treat an ack as confirmed when the client call returned (quiet runs only)")
    p.add_argument("--token")
    args = p.parse_args()
    args.run = int(time.time() * 1000) % 10**9
    topics = [args.topic] if args.topics == 1 else [f"{args.topic}-{i}" for i in range(args.topics)]

    client = pulsar.Client(args.url, authentication=pulsar.AuthenticationToken(args.token) if args.token else None,
                           io_threads=2, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    order = {"Exclusive": "producer", "Failover": "producer", "KeyShared": "key", "Shared": None}[args.sub_type]
    consumed, stop, consumers = Seen(order), threading.Event(), []
    for topic in topics:
        client.subscribe(topic, f"hold-{args.run}", initial_position=pulsar.InitialPosition.Earliest).close()  # keeps all data
        count = 1 if args.sub_type == "Exclusive" else args.consumers
        consumers += [Consumer(client, topic, args, consumed, stop) for _ in range(count)]
    producers = [Producer(client, topics, i, args) for i in range(args.producers)]
    for each in consumers + producers:
        each.start()
    during = None
    if args.during:
        time.sleep(args.at)
        began = time.monotonic()
        done = subprocess.run(args.during, shell=True, capture_output=True, text=True)
        during = {"command": args.during, "rc": done.returncode, "seconds": round(time.monotonic() - began, 3),
                  "output": (done.stdout + done.stderr)[-2000:]}
    for each in producers:
        each.join()
    acked = set()
    for each in producers:
        with each.lock:  # a message given up by settle may still be acknowledged
            acked |= {(each.ident_, seq) for seq in each.acked}
    deadline = time.monotonic() + args.drain
    while time.monotonic() < deadline and not acked <= consumed.times.keys():
        time.sleep(0.1)
    stop.set()
    for each in consumers:
        each.join()

    reread = Seen("key" if args.sub_type == "KeyShared" else "producer")
    for topic in topics:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        while reader.has_message_available():
            reread.add(topic, reader.read_next(timeout_millis=20000))
        reader.close()
    latencies = sorted(x for each in producers for x in each.latencies)
    sent = sum(each.sent for each in producers)
    report = {
        "sent": sent, "rate_held": round(sent / (args.rate * args.seconds), 3), "acked": len(acked), "failed": sum(each.failed for each in producers),
        "consumed": consumed.count, "lost_on_consumer": len(acked - consumed.times.keys()), "consumer_duplicates": consumed.duplicates,
        "redelivered_after_confirmed_ack": consumed.after_confirmed_ack, "consumer_disorder": consumed.disorder,
        "altered": consumed.altered + reread.altered,
        "reread": reread.count, "lost_on_reread": len(acked - reread.times.keys()), "reread_duplicates": reread.duplicates,
        "reread_disorder": reread.disorder,
        "publish_ms": {"p50": percentile(latencies, .5), "p99": percentile(latencies, .99), "p999": percentile(latencies, .999),
                       "max": percentile(latencies, 1)},
        "longest_ack_gap_ms": round(max((each.gap for each in producers), default=0), 1), "during": during}
    bad = [name for name in ("failed", "lost_on_consumer", "lost_on_reread", "reread_duplicates", "reread_disorder", "altered",
                             "redelivered_after_confirmed_ack") if report[name]]
    if not args.allow_redelivery:
        bad += [name for name in ("consumer_duplicates", "consumer_disorder") if report[name]]
    if not acked:
        bad.append("acked")
    if report["rate_held"] < 0.95:
        bad.append("rate_held")
    if during and during["rc"]:
        bad.append("during")
    if args.max_gap_ms and report["longest_ack_gap_ms"] > args.max_gap_ms:
        bad.append("longest_ack_gap_ms")
    report["verdict"] = "ok" if not bad else "bad: " + ", ".join(bad)
    print(json.dumps(report, indent=1))
    client.close()
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
