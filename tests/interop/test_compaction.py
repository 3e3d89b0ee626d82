"""test_compaction.py - compaction as an administrator asks for it and as stock clients see it: readers, table views, reconnecting consumers, restarts."""
import pulsar
import pytest

from conftest import new_client
from oxbowd import SMALL, topic_path, wait_for
from test_operations import needs_oxbowctl
from test_storage import register, release, run, safe

WAIT_MS = 10000


def send(client, topic, messages, **options):
    """Sends (key, value) one after another; a key of None: none."""
    producer = client.create_producer(topic, **{"batching_enabled": False, **options})
    for key, value in messages:
        producer.send_async(value.encode(), lambda *_: None, **({"partition_key": key} if key else {}))
    producer.flush()
    producer.close()


def compact(broker, topic):
    path = topic_path(topic) + "/compaction"
    assert broker.rest("PUT", path).status == 204
    wait_for(lambda: broker.rest("GET", path).json()["status"] != "RUNNING", "compaction has ended")
    status = broker.rest("GET", path).json()
    assert status == {"status": "SUCCESS", "lastError": ""}


def read_all(client, topic, **options):
    """What a reader of the compacted topic gets; clients show messages that were taken out of a batch as empty ones without a key."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True, **options)
    got = []
    while reader.has_message_available():
        message = reader.read_next(WAIT_MS)
        if message.partition_key():
            got.append((message.partition_key(), message.data().decode()))
    reader.close()
    return got


@pytest.mark.parametrize("batching", [False, True])
def test_compaction_leaves_the_last_of_each_key(shared_broker, client, topic, batching):
    send(client, topic, [("a", "1"), ("b", "1"), (None, "nokey"), ("a", "2"), ("c", "1"), ("c", "")], batching_enabled=batching)
    assert shared_broker.rest("GET", topic_path(topic) + "/compaction").json()["status"] == "NOT_RUN"
    compact(shared_broker, topic)
    assert read_all(client, topic) == [("b", "1"), ("a", "2")]
    send(client, topic, [("b", "2")])
    assert read_all(client, topic) == [("b", "1"), ("a", "2"), ("b", "2")]
    compact(shared_broker, topic)
    assert read_all(client, topic) == [("a", "2"), ("b", "2")]
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert len([reader.read_next(WAIT_MS) for _ in range(7)]) == 7  # who does not ask for it gets everything
    reader.close()


@pytest.mark.parametrize("compression", [pulsar.CompressionType.LZ4, pulsar.CompressionType.ZSTD, pulsar.CompressionType.ZLib, pulsar.CompressionType.SNAPPY])
def test_compaction_of_compressed_batches(shared_broker, client, topic, compression):
    send(client, topic, [(f"k{i % 7}", f"v{i}" + "x" * 200) for i in range(100)], batching_enabled=True, compression_type=compression)
    compact(shared_broker, topic)
    assert read_all(client, topic) == [(f"k{i % 7}", f"v{i}" + "x" * 200) for i in range(93, 100)]


# fault: P06
def test_last_message_a_tombstone(shared_broker, client, topic):  # the reader must not wait for it
    send(client, topic, [("a", "1"), ("b", "1"), ("b", "")])
    compact(shared_broker, topic)
    assert read_all(client, topic) == [("a", "1")]
    compact(shared_broker, topic)
    assert read_all(client, topic) == [("a", "1")]


def test_durable_consumer_reads_compacted(shared_broker, client, topic):
    send(client, topic, [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1")])
    compact(shared_broker, topic)

    def subscribe():
        return client.subscribe(topic, "s", is_read_compacted=True, initial_position=pulsar.InitialPosition.Earliest)
    consumer = subscribe()
    message = consumer.receive(WAIT_MS)
    assert message.data() == b"1" and message.partition_key() == "b"
    consumer.acknowledge_cumulative(message)
    consumer.close()
    consumer = subscribe()
    assert [consumer.receive(WAIT_MS).data() for _ in range(2)] == [b"2", b"1"]
    consumer.close()
    with pytest.raises(pulsar.PulsarException):
        client.subscribe(topic, "t", is_read_compacted=True, consumer_type=pulsar.ConsumerType.Shared)


def test_reader_goes_back_and_stays_at_the_end(shared_broker, client, topic):
    send(client, topic, [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1")])
    compact(shared_broker, topic)
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    first = [reader.read_next(WAIT_MS) for _ in range(3)]
    assert [m.data() for m in first] == [b"1", b"2", b"1"] and not reader.has_message_available()
    reader.seek(pulsar.MessageId.earliest)
    assert [reader.read_next(WAIT_MS).message_id() for _ in range(3)] == [m.message_id() for m in first]
    reader.seek(first[1].message_id())
    assert reader.has_message_available()
    assert reader.read_next(WAIT_MS).partition_key() == "c"  # what was sought is excluded, as everywhere in this client
    assert not reader.has_message_available()
    send(client, topic, [("d", "1")])
    assert reader.read_next(WAIT_MS).partition_key() == "d"
    reader.close()


def test_table_view(shared_broker, client, topic):
    send(client, topic, [(f"k{i % 5}", str(i)) for i in range(50)])
    compact(shared_broker, topic)
    view = client.create_table_view(topic)
    assert len(view) == 5 and view.get("k4") == b"49"
    send(client, topic, [("k4", "new"), ("k9", "late")])
    wait_for(lambda: view.get("k9") == b"late", "the view follows")
    assert view.get("k4") == b"new"
    view.close()


def test_compacted_topic_survives_kill_and_restart(broker, topic):
    client = new_client(broker)
    send(client, topic, [(f"k{i % 10}", str(i)) for i in range(200)])
    compact(broker, topic)
    send(client, topic, [("k3", "after")])
    want = [(f"k{i % 10}", str(i)) for i in range(190, 200)] + [("k3", "after")]
    assert read_all(client, topic) == want
    client.close()
    broker.kill()
    broker.start()
    client = new_client(broker)
    assert read_all(client, topic) == want
    compact(broker, topic)
    assert sorted(read_all(client, topic)) == sorted(want[:3] + want[4:])
    client.close()


@pytest.mark.parametrize("step", ["create", "note", "close", "switch", "forget"])
def test_killed_in_the_middle_of_a_compaction(new_broker, topic, step):
    new_broker.start()
    client = new_client(new_broker)
    send(client, topic, [("a", "1"), ("b", "1"), ("a", "2")], batching_enabled=True)
    compact(new_broker, topic)
    send(client, topic, [("b", "2"), ("c", "1")])
    client.close()
    new_broker.restart("kill", crash_point=f"compaction.after_{step}")
    try:
        new_broker.rest("PUT", topic_path(topic) + "/compaction")
    except OSError:
        pass  # it died before it could answer
    new_broker.process.wait(20)
    new_broker.start()
    client = new_client(new_broker)
    got = read_all(client, topic)
    assert got in ([("a", "2"), ("b", "2"), ("c", "1")], [("b", "1"), ("a", "2"), ("b", "2"), ("c", "1")])
    compact(new_broker, topic)
    assert read_all(client, topic) == [("a", "2"), ("b", "2"), ("c", "1")]
    client.close()


@needs_oxbowctl
def test_compacted_topics_move_with_the_storage(new_broker, topic):
    """One is loaded, one is not; in the end nothing is left in the old place."""
    new_broker.start(*SMALL)
    client = new_client(new_broker)
    topics, want = (topic, topic + "-unloaded"), [("b", "1"), ("a", "2")]
    for name in topics:
        send(client, name, [("a", "1"), ("b", "1"), ("a", "2")])
        compact(new_broker, name)
    client.close()
    assert new_broker.rest("PUT", topic_path(topics[1]) + "/unload").status == 204
    register(new_broker, "big")
    run(new_broker, "switch", "big", "--wait")
    assert not safe(new_broker, "default")["safe"]
    assert any("compacted" in reason for reason in safe(new_broker, "default")["reasons"])
    run(new_broker, "move-data", "big", "--wait")
    release(new_broker, "default")
    new_broker.restart("kill")
    client = new_client(new_broker)
    for name in topics:
        assert read_all(client, name) == want
    client.close()
