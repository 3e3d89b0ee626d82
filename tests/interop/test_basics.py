"""test_basics.py - what the stock Python client does every day: produce, consume, acknowledge, read, seek; one broker for the whole file."""
import re
import subprocess

import pulsar
import pytest

from conftest import new_client
from oxbowd import topic_path, wait_for
from rawpulsar import Connection

WAIT_MS = 10000
EARLIEST = pulsar.InitialPosition.Earliest


def receive(consumer, count):
    return [consumer.receive(timeout_millis=WAIT_MS) for _ in range(count)]


def bodies(consumer, count):
    return [m.data() for m in receive(consumer, count)]


def read(reader, count):
    return [reader.read_next(timeout_millis=WAIT_MS) for _ in range(count)]


def read_all(reader):
    got = []
    while reader.has_message_available():
        got.append(reader.read_next(timeout_millis=WAIT_MS).data())
    return got


def send_numbers(client, topic, count, **options):
    """Sends "0", "1", ... one by one and gives their ids."""
    producer = client.create_producer(topic, **{"batching_enabled": False, **options})
    ids = [producer.send(str(i).encode()) for i in range(count)]
    producer.close()
    return ids


def numbers(first, end):
    return [str(i).encode() for i in range(first, end)]


def nothing_more(consumer, millis=200):
    with pytest.raises(pulsar.Timeout):
        consumer.receive(timeout_millis=millis)


def acked_at_broker(broker, topic, subscription="s"):
    """Waits until nothing is left to do for a subscription."""
    wait_for(lambda: broker.stats(topic)["subscriptions"][subscription]["msgBacklog"] == 0, f"{topic} {subscription} without backlog")


# ---- messages --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("batching", [False, True])
def test_messages_come_in_order_and_once(client, topic, batching):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=batching)
    sent = [f"message {i}".encode() for i in range(1000)]
    for body in sent:
        producer.send_async(body, None)
    producer.flush()
    got = receive(consumer, len(sent))
    for message in got:
        consumer.acknowledge(message)
    assert [m.data() for m in got] == sent
    nothing_more(consumer)


def test_all_that_a_message_carries_passes(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, producer_name="me")
    ident = producer.send(b"\0body\xff", properties={"a": "1", "b": "", "ü": "ö"}, partition_key="kéy", ordering_key="order", event_timestamp=1234567)
    m = receive(consumer, 1)[0]
    assert (m.data(), m.properties(), m.partition_key(), m.ordering_key()) == (b"\0body\xff", {"a": "1", "b": "", "ü": "ö"}, "kéy", "order")
    assert (m.event_timestamp(), m.producer_name(), m.redelivery_count()) == (1234567, "me", 0)
    assert m.topic_name() == f"persistent://public/default/{topic}"
    assert (m.message_id().ledger_id(), m.message_id().entry_id()) == (ident.ledger_id(), ident.entry_id())


def test_batch_keeps_each_message_apart(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=50, batching_max_publish_delay_ms=1000)
    for i in range(50):
        producer.send_async(str(i).encode(), None, properties={"i": str(i)}, partition_key=f"k{i}")
    producer.flush()
    got = receive(consumer, 50)
    assert [(m.data(), m.properties()["i"], m.partition_key()) for m in got] == [(str(i).encode(), str(i), f"k{i}") for i in range(50)]
    assert [m.message_id().batch_index() for m in got] == list(range(50))
    assert len({m.message_id().entry_id() for m in got}) == 1


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("kind", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_compressed_messages_pass(client, topic, kind, batching):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, compression_type=getattr(pulsar.CompressionType, kind), batching_enabled=batching)
    body = b"the same again and again " * 2000
    producer.send(body)
    producer.send(b"short")
    assert bodies(consumer, 2) == [body, b"short"]


def test_empty_message_passes(client, topic):
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"")
    assert bodies(consumer, 1) == [b""]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    private, public = folder / "private.pem", folder / "public.pem"
    subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True)
    subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    return pulsar.CryptoKeyReader(str(public), str(private))


@pytest.mark.parametrize("batching", [False, True])
def test_encrypted_messages_pass_unread(shared_broker, client, topic, keys, batching):
    consumer = client.subscribe(topic, "s", crypto_key_reader=keys)
    other = client.subscribe(topic, "without-key", crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME)
    producer = client.create_producer(topic, encryption_key="client-rsa.pem", crypto_key_reader=keys, batching_enabled=batching)
    producer.send(b"a secret of some length")
    assert bodies(consumer, 1) == [b"a secret of some length"]
    assert b"secret" not in receive(other, 1)[0].data()


def test_chunked_message_is_put_together(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    body = bytes(range(256)) * 50000
    producer.send(body)
    producer.send(b"small")
    first, second = receive(consumer, 2)
    assert (first.data(), second.data()) == (body, b"small")
    consumer.acknowledge(first)
    consumer.acknowledge(second)
    consumer.close()
    nothing_more(client.subscribe(topic, "s"))


def test_message_at_the_limit_passes_and_above_is_refused(client, topic):
    producer = client.create_producer(topic, batching_enabled=False)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    limit = bytes(range(256)) * (5 * 4096)  # the client counts its metadata too, some 60 bytes
    producer.send(limit[:-100])
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(limit + b"+")
    producer.send(b"still works")
    assert [m.data() for m in read(reader, 2)] == [limit[:-100], b"still works"]


def test_clients_learn_another_limit(new_broker):
    new_broker.start("maxMessageSize=65536")
    client = new_client(new_broker)
    producer = client.create_producer("t", batching_enabled=False)
    producer.send(bytes(65436))
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(bytes(65537))
    client.close()


# ---- acknowledgements --------------------------------------------------------------------------------------------------

def test_single_acks_leave_holes(client, topic):
    consumer = client.subscribe(topic, "s")
    send_numbers(client, topic, 10)
    got = receive(consumer, 10)
    for i in (0, 1, 2, 5, 9):
        consumer.acknowledge(got[i])
    consumer.close()
    again = client.subscribe(topic, "s")
    assert bodies(again, 5) == [b"3", b"4", b"6", b"7", b"8"]
    nothing_more(again)


def test_cumulative_ack_takes_all_before(shared_broker, client, topic):
    consumer = client.subscribe(topic, "s")
    send_numbers(client, topic, 10)
    got = receive(consumer, 10)
    consumer.acknowledge(got[8])
    consumer.acknowledge_cumulative(got[6])
    consumer.close()
    again = client.subscribe(topic, "s")
    last = receive(again, 2)
    assert [m.data() for m in last] == [b"7", b"9"]
    again.acknowledge_cumulative(last[1])
    again.close()
    acked_at_broker(shared_broker, topic)


@pytest.mark.parametrize("by_index", [False, True])
def test_batch_acked_in_part_comes_again(client, topic, by_index):
    consumer = client.subscribe(topic, "s", batch_index_ack_enabled=by_index)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=1000)
    for i in range(10):
        producer.send_async(str(i).encode(), None)
    producer.flush()
    got = receive(consumer, 10)
    for i in (1, 3, 5):
        consumer.acknowledge(got[i])
    consumer.close()
    again = client.subscribe(topic, "s", batch_index_ack_enabled=by_index)
    wanted = [i for i in range(10) if not by_index or i not in (1, 3, 5)]
    rest = receive(again, len(wanted))
    assert [m.data() for m in rest] == [str(i).encode() for i in wanted]
    for message in rest:
        again.acknowledge(message)
    again.close()
    nothing_more(client.subscribe(topic, "s", batch_index_ack_enabled=by_index))


def test_answered_ack_survives_a_kill(broker):
    """The Python client asks for no receipts, so this one speaks the protocol itself."""
    client = new_client(broker)
    client.subscribe("t", "s").close()
    ids = send_numbers(client, "t", 6)
    with Connection("127.0.0.1", broker.port) as raw:
        raw.connect()
        raw.ask("lookup", topic="persistent://public/default/t", request_id=1)
        raw.send("subscribe", topic="persistent://public/default/t", subscription="s", sub_type=0, consumer_id=1, request_id=2)
        raw.expect("success")
        raw.send("flow", consumer_id=1, message_permits=10)
        for _ in ids:
            raw.expect("message")
        chosen = [{"ledger_id": ids[i].ledger_id(), "entry_id": ids[i].entry_id()} for i in (0, 3, 4)]
        raw.send("ack", consumer_id=1, ack_type=0, message_id=chosen, request_id=7)
        answer = raw.expect("ack_response")
        assert (answer["request_id"], answer.error()) == (7, None)
        broker.kill()
    broker.start()
    consumer = client.subscribe("t", "s")
    assert bodies(consumer, 3) == [b"1", b"2", b"5"]
    nothing_more(consumer)
    client.close()


def test_negative_acknowledgement_brings_it_back(client, topic):
    consumer = client.subscribe(topic, "s", negative_ack_redelivery_delay_ms=100)
    send_numbers(client, topic, 3)
    got = receive(consumer, 3)
    consumer.acknowledge(got[0])
    consumer.acknowledge(got[2])
    consumer.negative_acknowledge(got[1])
    assert bodies(consumer, 1) == [b"1"]


def test_redeliver_all_unacknowledged(client, topic):
    consumer = client.subscribe(topic, "s")
    send_numbers(client, topic, 5)
    got = receive(consumer, 5)
    consumer.acknowledge(got[1])
    consumer.redeliver_unacknowledged_messages()
    assert bodies(consumer, 4) == [b"0", b"2", b"3", b"4"]
    nothing_more(consumer)


def test_more_messages_than_the_receiver_queue(client, topic):
    consumer = client.subscribe(topic, "s", receiver_queue_size=3)
    unbuffered = client.subscribe(topic, "zero", receiver_queue_size=0)
    send_numbers(client, topic, 100)
    assert bodies(consumer, 100) == numbers(0, 100)
    assert [unbuffered.receive().data() for _ in range(100)] == numbers(0, 100)  # with a time-out the client refuses


# ---- subscriptions -----------------------------------------------------------------------------------------------------

def test_second_exclusive_consumer_is_busy(client, topic):
    consumer = client.subscribe(topic, "s")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s")
    consumer.close()
    client.subscribe(topic, "s").close()


def test_a_subscription_changes_its_type_only_without_consumers(client, topic):
    send_numbers(client, topic, 4)
    shared = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared, initial_position=EARLIEST)
    assert sorted(bodies(shared, 4)) == numbers(0, 4)
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s")
    shared.close()
    assert bodies(client.subscribe(topic, "s"), 4) == numbers(0, 4)


def test_a_new_subscription_starts_where_it_says(client, topic):
    send_numbers(client, topic, 3)
    latest, earliest = client.subscribe(topic, "latest"), client.subscribe(topic, "earliest", initial_position=EARLIEST)
    client.create_producer(topic).send(b"new")
    assert bodies(earliest, 4) == [b"0", b"1", b"2", b"new"]
    assert bodies(latest, 1) == [b"new"]


def test_unsubscribe_forgets_the_position(shared_broker, client, topic):
    consumer = client.subscribe(topic, "s")
    client.subscribe(topic, "hold").close()
    send_numbers(client, topic, 2)
    consumer.acknowledge_cumulative(receive(consumer, 2)[1])
    consumer.unsubscribe()
    assert shared_broker.rest("GET", topic_path(topic) + "/subscriptions").json() == ["hold"]
    assert bodies(client.subscribe(topic, "s", initial_position=EARLIEST), 2) == [b"0", b"1"]


def test_several_topics_and_patterns_at_once(client, topic):
    topics = [f"{topic}-{i}" for i in range(4)]
    for name in topics:
        client.subscribe(name, "s").close()
        client.subscribe(name, "p").close()
        client.create_producer(name).send(name.encode())
    listed = client.subscribe(topics, "s")
    pattern = client.subscribe(re.compile(f"persistent://public/default/{topic}-.*"), "p")
    assert sorted(bodies(listed, 4)) == sorted(bodies(pattern, 4)) == [name.encode() for name in topics]


# ---- readers and seeks -------------------------------------------------------------------------------------------------

def test_readers_start_where_they_are_told(client, topic):
    ids = send_numbers(client, topic, 5)
    whole = client.create_reader(topic, pulsar.MessageId.earliest)
    after = client.create_reader(topic, ids[2])
    at = client.create_reader(topic, ids[2], start_message_id_inclusive=True)
    end = client.create_reader(topic, pulsar.MessageId.latest)
    last = client.create_reader(topic, pulsar.MessageId.latest, start_message_id_inclusive=True)
    assert not end.has_message_available()
    assert read_all(whole) == numbers(0, 5)
    assert read_all(after) == numbers(3, 5)
    assert read_all(at) == numbers(2, 5)
    assert read_all(last) == [b"4"]
    client.create_producer(topic).send(b"new")
    assert end.has_message_available() and read_all(end) == [b"new"]


def test_readers_start_inside_a_batch(client, topic):
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=6, batching_max_publish_delay_ms=1000)
    for i in range(6):
        producer.send_async(str(i).encode(), None)
    producer.flush()
    ids = [m.message_id() for m in read(client.create_reader(topic, pulsar.MessageId.earliest), 6)]
    assert read_all(client.create_reader(topic, ids[3])) == numbers(4, 6)
    assert read_all(client.create_reader(topic, ids[3], start_message_id_inclusive=True)) == numbers(3, 6)


def test_reader_of_an_empty_topic_waits(client, topic):
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert not reader.has_message_available()
    client.create_producer(topic).send(b"first")
    assert read(reader, 1)[0].data() == b"first"


def test_reader_seeks_by_id_and_time(client, topic):
    ids = send_numbers(client, topic, 5)
    reader = client.create_reader(topic, pulsar.MessageId.earliest, start_message_id_inclusive=True)
    got = read(reader, 5)
    reader.seek(ids[3])
    assert read_all(reader) == numbers(3, 5)
    reader.seek(got[0].publish_timestamp())
    assert read_all(reader) == numbers(0, 5)
    reader.seek(got[4].publish_timestamp() + 60000)
    assert not reader.has_message_available()
    reader.seek(pulsar.MessageId.earliest)
    assert read_all(reader) == numbers(0, 5)


def test_readers_do_not_share_a_position(client, topic):
    send_numbers(client, topic, 3)
    one, two = (client.create_reader(topic, pulsar.MessageId.earliest) for _ in range(2))
    assert read_all(one) == read_all(two) == numbers(0, 3)


def test_consumer_seeks_by_id(client, topic):
    consumer = client.subscribe(topic, "s", start_message_id_inclusive=True)
    ids = send_numbers(client, topic, 5)
    consumer.acknowledge_cumulative(receive(consumer, 5)[4])
    consumer.seek(ids[2])
    assert bodies(consumer, 3) == numbers(2, 5)
    consumer.seek(pulsar.MessageId.earliest)
    assert bodies(consumer, 5) == numbers(0, 5)
    consumer.seek(pulsar.MessageId.latest)
    nothing_more(consumer)
    client.create_producer(topic).send(b"new")
    assert bodies(consumer, 1) == [b"new"]


def test_consumer_seeks_by_time(client, topic):
    consumer = client.subscribe(topic, "s")
    first = send_numbers(client, topic, 3)
    got = receive(consumer, 3)
    wait_for(lambda: client.create_reader(topic, first[2], start_message_id_inclusive=True), "a later millisecond")
    producer = client.create_producer(topic)
    producer.send(b"later")
    later = receive(consumer, 1)[0]
    consumer.seek(later.publish_timestamp())
    assert bodies(consumer, 1)[-1] in (b"later", b"2")
    consumer.seek(got[0].publish_timestamp() - 1)
    assert bodies(consumer, 4) == numbers(0, 3) + [b"later"]
    consumer.seek(later.publish_timestamp() + 3600000)
    nothing_more(consumer)


def test_last_message_id(client, topic):
    consumer = client.subscribe(topic, "s")
    assert consumer.get_last_message_id().entry_id() == -1
    ids = send_numbers(client, topic, 3)
    assert consumer.get_last_message_id() == ids[2]
    assert pulsar.MessageId.deserialize(ids[2].serialize()) == ids[2]


# ---- topics ------------------------------------------------------------------------------------------------------------

def test_partitioned_topic(shared_broker, client, topic):
    assert shared_broker.rest("PUT", topic_path(topic) + "/partitions", "4").status == 204
    names = [f"persistent://public/default/{topic}-partition-{i}" for i in range(4)]
    assert client.get_topic_partitions(topic) == names
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    sent = {f"{i}".encode() for i in range(40)}
    for body in sent:
        producer.send(body)
    got = receive(consumer, 40)
    assert {m.data() for m in got} == sent
    assert {m.message_id().partition() for m in got} == {0, 1, 2, 3} and {m.topic_name() for m in got} == set(names)
    for message in got:
        consumer.acknowledge(message)
    consumer.close()
    nothing_more(client.subscribe(topic, "s"))
    assert len(read_all(client.create_reader(names[1], pulsar.MessageId.earliest))) >= 1


def test_keys_stay_in_one_partition(shared_broker, client, topic):
    shared_broker.rest("PUT", topic_path(topic) + "/partitions", "3")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for i in range(30):
        producer.send(str(i).encode(), partition_key=f"key-{i % 5}")
    places = {}
    for message in receive(consumer, 30):
        places.setdefault(message.partition_key(), []).append((message.message_id().partition(), int(message.data())))
    assert all(len({p for p, _ in seen}) == 1 and seen == sorted(seen) for seen in places.values()) and len(places) == 5


def test_a_plain_topic_has_no_partitions(client, topic):
    assert client.get_topic_partitions(topic) == [f"persistent://public/default/{topic}"]


def test_a_partition_beyond_the_count_is_refused(shared_broker, client, topic):
    shared_broker.rest("PUT", topic_path(topic) + "/partitions", "2")
    with pytest.raises(pulsar.PulsarException):
        client.create_producer(f"persistent://public/default/{topic}-partition-7", send_timeout_millis=1000)
    assert shared_broker.rest("GET", topic_path(f"{topic}-partition-7") + "/stats").status == 404


ODD_NAMES = ["with space", "ünïcödé-名前", "percent%2Fand%", "plus+plus", "ask?a=b&c#d", "quote\"'`", "semi;colon:at@", "back\\slash", "dots..", "~",
             "-partition-", "t-partition-x", "[brackets]{}<>|^", "x" * 400, "é" * 100]


@pytest.mark.parametrize("name", ODD_NAMES, ids=range(len(ODD_NAMES)))
def test_odd_names_are_topics_like_any_other(shared_broker, client, name):
    consumer = client.subscribe(name, "sub " + name[:60])
    client.create_producer(name).send(b"x")
    message = receive(consumer, 1)[0]
    assert message.data() == b"x" and message.topic_name() == f"persistent://public/default/{name}"
    stats = shared_broker.stats(name)
    assert (stats["msgInCounter"], list(stats["subscriptions"])) == (1, ["sub " + name[:60]])
    assert f"persistent://public/default/{name}" in shared_broker.rest("GET", "persistent/public/default").json()


def test_many_topics(client, topic):
    names = [f"{topic}-{i}" for i in range(150)]
    consumers = [client.subscribe(name, "s") for name in names]
    for name in names:
        client.create_producer(name).send(name.encode())
    assert [bodies(consumer, 1)[0] for consumer in consumers] == [name.encode() for name in names]


def test_two_clients_meet(shared_broker, client, topic):
    other = new_client(shared_broker)
    here, there = client.subscribe(topic, "here"), other.subscribe(topic, "there")
    client.create_producer(topic).send(b"from here")
    other.create_producer(topic).send(b"from there")
    assert bodies(here, 2) == bodies(there, 2) == [b"from here", b"from there"]
    other.close()
    client.subscribe(topic, "there").close()


# ---- the connection, the process ---------------------------------------------------------------------------------------

def test_idle_connection_is_kept_by_pings(new_broker):
    new_broker.start("keepAliveIntervalSeconds=1")
    client = new_client(new_broker)
    producer = client.create_producer("t")
    since = new_broker.stats("t")["publishers"][0]["connectedSince"]
    with Connection("127.0.0.1", new_broker.port) as silent, Connection("127.0.0.1", new_broker.port) as polite:
        silent.connect()
        polite.connect()
        silent.pongs = polite.pongs = False
        for _ in range(3):
            polite.expect("ping", timeout=5)
            polite.send("pong")
        assert silent.closed(timeout=5)
    producer.send(b"x")
    assert producer.is_connected() and new_broker.stats("t")["publishers"][0]["connectedSince"] == since
    client.close()


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_everything_acknowledged_survives(broker, how):
    client = new_client(broker)
    consumer = client.subscribe("t", "s")
    ids = send_numbers(client, "t", 200)
    for message in receive(consumer, 50):
        consumer.acknowledge(message)
    wait_for(lambda: broker.stats("t")["subscriptions"]["s"]["msgBacklog"] == 150, "50 acknowledgements at the broker")
    producer, reader = client.create_producer("t", batching_enabled=False), client.create_reader("t", pulsar.MessageId.earliest)
    broker.restart(how)
    assert [m.data() for m in read(reader, 200)] == numbers(0, 200)
    new = producer.send(b"after")
    assert (new.ledger_id(), new.entry_id()) > (ids[-1].ledger_id(), ids[-1].entry_id())
    assert read(reader, 1)[0].data() == b"after"
    client.close()
    if how == "stop":
        again = new_client(broker)
        assert bodies(again.subscribe("t", "s"), 151) == numbers(50, 200) + [b"after"]
        again.close()


def test_clients_go_on_over_restarts(broker):
    client = new_client(broker)
    consumer, producer = client.subscribe("t", "s"), client.create_producer("t", batching_enabled=False)
    for i, how in enumerate(("stop", "kill", "stop")):
        producer.send(str(i).encode())
        message = receive(consumer, 1)[0]
        assert message.data() == str(i).encode()
        broker.restart(how)
        producer.send(b"between")
        seen = []
        while b"between" not in seen:
            got = receive(consumer, 1)[0]
            seen.append(got.data())
        assert seen in ([b"between"], [str(i).encode(), b"between"])
        consumer.acknowledge_cumulative(got)
        wait_for(lambda: broker.stats("t")["subscriptions"]["s"]["msgBacklog"] == 0, "the acknowledgement at the broker")
    client.close()


def test_partitions_survive_a_restart(broker):
    broker.rest("PUT", topic_path("p") + "/partitions", "3")
    client = new_client(broker)
    producer = client.create_producer("p")
    for i in range(9):
        producer.send(str(i).encode())
    client.close()
    broker.restart("kill")
    client = new_client(broker)
    assert len(client.get_topic_partitions("p")) == 3
    assert sorted(bodies(client.subscribe("p", "s", initial_position=EARLIEST), 9)) == numbers(0, 9)
    client.close()
