"""Scripted histories of topics, driven through the Python client and one REST call only, so that any broker can live them.

Each history takes a `Broker` and calls `snapshot(label)` after each step. The caller's snapshot must wait until the broker
has nothing left to write, and at least `PAUSE_S`, which keeps each acknowledgement apart from the next one for brokers that
write a cursor at most once a second. `Broker.crash`, if given, kills the broker without warning and starts it again.
"""
import urllib.parse
import urllib.request

import pulsar

PAUSE_S = 1.5
NAMESPACE = "public/default"


class Broker:
    """Where a broker is: url (pulsar://...), admin (http://...), and how to kill and restart it (or None)."""

    def __init__(self, url, admin, crash=None):
        self.url, self.admin, self.crash = url, admin, crash

    def client(self):
        return pulsar.Client(self.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), operation_timeout_seconds=30)

    def unload(self, name):
        """Closes the topic on its broker; the next use opens it again."""
        path = f"{self.admin}/admin/v2/persistent/{NAMESPACE}/{urllib.parse.quote(name, safe='')}/unload"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy of the machine's
        with direct.open(urllib.request.Request(path, method="PUT"), timeout=60) as answer:
            if answer.status not in (200, 204):
                raise RuntimeError(f"unload of {name}: HTTP {answer.status}")


def topic(name):
    return f"persistent://{NAMESPACE}/{name}"


def producer(client, name, batch=0):
    """A producer `p1`; with batch > 0 it sends batches of that many messages, and otherwise none."""
    return client.create_producer(
        topic(name), producer_name="p1", send_timeout_millis=30000, block_if_queue_full=True, batching_enabled=batch > 0,
        batching_max_messages=batch or 1000, batching_max_publish_delay_ms=60000)


def consumer(client, name, subscription, first=True):
    position = pulsar.InitialPosition.Earliest if first else pulsar.InitialPosition.Latest
    return client.subscribe(topic(name), subscription, pulsar.ConsumerType.Exclusive, initial_position=position)


def receive(source, count):
    return [source.receive(timeout_millis=20000) for _ in range(count)]


def send(sink, count, first=0):
    for i in range(first, first + count):
        sink.send(f"hello{i}".encode())


def send_batch(sink, count, word):
    """Hands over `count` messages without waiting, then waits for them all."""
    for i in range(count):
        sink.send_async(f"{word}{i}".encode(), None)
    sink.flush()


def acks(broker, snapshot):
    """Single and cumulative acknowledgements, a clean close, a reopening, a crash."""
    client = broker.client()
    sink = producer(client, "acks")
    snapshot("producer created")
    plain = consumer(client, "acks", "plain")
    snapshot("subscribed plain")
    odd = consumer(client, "acks", "sub/1")
    snapshot("subscribed sub/1")
    send(sink, 10)
    snapshot("sent 0-9")
    messages = receive(odd, 10)
    for i in (0, 1, 4, 6):
        odd.acknowledge(messages[i])
        snapshot(f"sub/1 acked {i}")
    messages_plain = receive(plain, 10)
    plain.acknowledge_cumulative(messages_plain[5])
    snapshot("plain acked up to 5")
    plain.acknowledge_cumulative(messages_plain[7])
    snapshot("plain acked up to 7")
    odd.acknowledge(messages[3])
    snapshot("sub/1 acked 3")
    odd.acknowledge(messages[2])
    snapshot("sub/1 acked 2")
    client.close()
    snapshot("clients closed")
    broker.unload("acks")
    snapshot("unloaded")

    client = broker.client()
    sink = producer(client, "acks")
    snapshot("reopened by producer")
    odd = consumer(client, "acks", "sub/1")
    plain = consumer(client, "acks", "plain")
    snapshot("subscribed again")
    send(sink, 3, 10)
    snapshot("sent 10-12")
    messages = receive(odd, 7)
    odd.acknowledge(messages[5])
    snapshot("sub/1 acked 11")
    messages_plain = receive(plain, 5)
    plain.acknowledge_cumulative(messages_plain[4])
    snapshot("plain acked up to 12")
    odd.acknowledge_cumulative(messages[4])
    snapshot("sub/1 acked up to 10")
    client.close()
    snapshot("clients closed again")
    if broker.crash:
        broker.crash()
        snapshot("crashed")
        client = broker.client()
        odd = consumer(client, "acks", "sub/1")
        snapshot("reopened after crash")
        messages = receive(odd, 1)
        odd.acknowledge(messages[0])
        snapshot("sub/1 acked 12")
        client.close()


def entries(broker, snapshot):
    """What messages look like when they are stored: plain, with everything set, compressed, in batches."""
    client = broker.client()
    sub = consumer(client, "entries", "s")
    snapshot("subscribed")
    sink = producer(client, "entries")
    sink.send(b"plain")
    sink.send(b"", properties={"b": "2", "a": "1"})
    sink.send(b"all", properties={"k": "v"}, partition_key="key", ordering_key="order", event_timestamp=1000, sequence_id=77)
    snapshot("sent plain")
    sink.close()
    sink = producer(client, "entries", 5)
    send_batch(sink, 5, "batch")
    send_batch(sink, 1, "single")
    snapshot("sent batches")
    sink.close()
    sink = client.create_producer(topic("entries"), producer_name="p2", compression_type=pulsar.CompressionType.LZ4,
                                  batching_enabled=False)
    sink.send(b"compress" * 20)
    snapshot("sent compressed")
    messages = receive(sub, 10)
    for message in messages[3:5]:
        sub.acknowledge(message)
    snapshot("acked two of the batch")
    for message in messages[5:8]:
        sub.acknowledge(message)
    snapshot("acked the batch")
    reader = client.create_reader(topic("entries"), pulsar.MessageId.earliest)
    for _ in range(4):
        reader.read_next(timeout_millis=20000)
    snapshot("read by a reader")
    reader.close()
    snapshot("reader closed")
    sub.acknowledge_cumulative(messages[9])
    snapshot("acked all")
    sub.seek(messages[1].message_id())
    snapshot("seek to the second")
    sub.seek(1)
    snapshot("seek to a time before all")
    late = consumer(client, "entries", "late", first=False)
    snapshot("subscribed at the end")
    late.unsubscribe()
    snapshot("unsubscribed")
    sub.unsubscribe()
    snapshot("unsubscribed the last")
    client.close()


def empties(broker, snapshot):
    """Ledgers with nothing in them, a name with a space, a topic made by its subscription."""
    name = "a b"
    client = broker.client()
    consumer(client, name, "s s")
    snapshot("topic made by subscription")
    client.close()
    broker.unload(name)
    snapshot("unloaded empty")
    client = broker.client()
    sink = producer(client, name)
    snapshot("reopened empty")
    send(sink, 3)
    snapshot("sent 0-2")
    client.close()
    broker.unload(name)
    snapshot("unloaded with three")
    client = broker.client()
    producer(client, name)
    snapshot("reopened with three")
    client.close()
    broker.unload(name)
    snapshot("unloaded, last ledger empty")
    client = broker.client()
    sub = consumer(client, name, "s s")
    snapshot("reopened, last ledger empty")
    sub.acknowledge_cumulative(receive(sub, 3)[-1])
    snapshot("acked all")
    client.close()
    broker.unload(name)
    snapshot("unloaded, all acked")
    client = broker.client()
    sink = producer(client, name)
    snapshot("reopened, all acked")
    send(sink, 1, 3)
    snapshot("sent 3")
    client.close()
    if broker.crash:
        broker.crash()
        snapshot("crashed")
        client = broker.client()
        producer(client, name)
        snapshot("reopened after crash")
        client.close()


def rollover(broker, snapshot):
    """Ledgers of ten entries (the broker must be set so): rolling over, trimming after consumption, reopening."""
    client = broker.client()
    sink = producer(client, "roll")
    one, two = consumer(client, "roll", "one"), consumer(client, "roll", "two")
    snapshot("subscribed")
    send(sink, 9)
    snapshot("sent 0-8")
    send(sink, 1, 9)
    snapshot("sent 9")
    send(sink, 1, 10)
    snapshot("sent 10")
    send(sink, 14, 11)
    snapshot("sent 11-24")
    messages_one, messages_two = receive(one, 25), receive(two, 25)
    one.acknowledge_cumulative(messages_one[12])
    snapshot("one acked up to 12")
    two.acknowledge_cumulative(messages_two[9])
    snapshot("two acked up to 9")
    two.acknowledge_cumulative(messages_two[12])
    snapshot("two acked up to 12")
    one.acknowledge_cumulative(messages_one[24])
    two.acknowledge_cumulative(messages_two[24])
    snapshot("both acked all")
    send(sink, 5, 25)
    snapshot("sent 25-29")
    one.acknowledge_cumulative(receive(one, 5)[-1])
    two.acknowledge_cumulative(receive(two, 5)[-1])
    snapshot("both acked all again")
    client.close()
    broker.unload("roll")
    snapshot("unloaded")
    client = broker.client()
    sink = producer(client, "roll")
    snapshot("reopened")
    send(sink, 1, 30)
    snapshot("sent 30")
    client.close()


def indexed(broker, snapshot):
    """Entries with broker metadata (the broker must be set so), and the count going on after a reopening."""
    client = broker.client()
    consumer(client, "indexed", "s")
    snapshot("subscribed")
    sink = producer(client, "indexed")
    send(sink, 2)
    snapshot("sent 0-1")
    sink.close()
    sink = producer(client, "indexed", 5)
    send_batch(sink, 5, "batch")
    send_batch(sink, 1, "single")
    snapshot("sent batches")
    client.close()
    broker.unload("indexed")
    snapshot("unloaded")
    client = broker.client()
    sink = producer(client, "indexed")
    snapshot("reopened")
    send(sink, 1, 2)
    snapshot("sent 2")
    client.close()


HISTORIES = {"acks": acks, "entries": entries, "empties": empties, "rollover": rollover, "indexed": indexed}
