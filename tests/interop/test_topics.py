"""test_topics.py - topics as stock clients and raw ones see them: partitions that grow under load, non-persistent ones, ending, deleting, lists, patterns, odd names, the last message's id."""
import re
import threading
import time
import urllib.parse

import pulsar
import pytest

from conftest import new_client
from oxbowd import BUILD, wait_for
from rawpulsar import Connection

WAIT_MS = 10000
EARLIEST = pulsar.InitialPosition.Earliest
PUBLIC = "persistent://public/default/"
LOSSY = "non-persistent://public/default/"


def admin(broker, method, path, body=None, status=204):
    answer = broker.rest(method, path, body)
    assert answer.status == status, (method, path, answer.status, answer.text)
    return answer


def raw(broker):
    connection = Connection("127.0.0.1", broker.port)
    connection.connect()
    return connection


def produce(connection, topic, producer_id=1, request_id=1):
    return connection.ask("producer", topic=topic, producer_id=producer_id, request_id=request_id)


def subscribe(connection, topic, consumer_id=1, request_id=2, subscription="s", **values):
    return connection.ask("subscribe", **{"topic": topic, "subscription": subscription, "sub_type": 1, "consumer_id": consumer_id,
                                          "request_id": request_id, "durable": 1, **values})


# ---- partitions ------------------------------------------------------------------------------------------------------

# fault: P12
def test_growing_under_load_loses_nothing_of_a_subscription_from_latest(shared_broker, topic):
    """A publisher polls the count and writes to new partitions at once; a durable subscription without a consumer gets all of it later."""
    admin(shared_broker, "PUT", f"persistent/public/default/{topic}/partitions", "2")
    client = new_client(shared_broker)
    client.subscribe(PUBLIC + topic, "s").close()
    sent, stop, failures = set(), threading.Event(), []

    def publish():
        producers, connection = {}, raw(shared_broker)
        try:
            while not stop.is_set():
                count = connection.ask("partition_metadata", topic=PUBLIC + topic, request_id=9)["partitions"]
                for i in range(count):
                    if i not in producers:
                        producers[i] = client.create_producer(f"{PUBLIC}{topic}-partition-{i}")
                    body = f"{i}:{len(sent)}".encode()
                    producers[i].send(body)
                    sent.add(body)
        except Exception as error:  # noqa: BLE001 - it is told by the test's thread
            failures.append(error)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        for count in (3, 5, 8):
            before = len(sent)
            wait_for(lambda: failures or len(sent) > before + 10, "messages before growing")
            admin(shared_broker, "POST", f"persistent/public/default/{topic}/partitions", str(count))
        wait_for(lambda: failures or {s.split(b":")[0] for s in sent} == {str(i).encode() for i in range(8)}, "messages in every partition")
    finally:
        stop.set()
        thread.join()
    assert not failures
    consumer = client.subscribe(PUBLIC + topic, "s")
    got = set()
    while len(got) < len(sent):
        message = consumer.receive(timeout_millis=WAIT_MS)
        got.add(message.data())
        consumer.acknowledge(message)
    assert got == sent
    client.close()


def test_partition_count_only_grows_and_what_is_behind_it_is_refused(shared_broker, topic):
    path = f"persistent/public/default/{topic}/partitions"
    admin(shared_broker, "PUT", path, "3")
    assert shared_broker.rest("POST", path, "2").status in (406, 409, 412, 422)
    admin(shared_broker, "POST", path, "3")
    with raw(shared_broker) as c:
        beyond = f"{PUBLIC}{topic}-partition-3"
        assert c.ask("partition_metadata", topic=beyond, request_id=1, metadata_auto_creation_enabled=1).error() == "TopicNotFound"
        assert produce(c, beyond).error() == "TopicNotFound"
        assert subscribe(c, beyond).error() == "TopicNotFound"
        assert c.ask("partition_metadata", topic=f"{PUBLIC}{topic}-partition-2", request_id=3)["partitions"] == 0
        listed = c.ask("get_topics", request_id=4, namespace="public/default", mode=0)["topics"]
        assert [t for t in listed if topic in t] == [f"{PUBLIC}{topic}-partition-{i}" for i in range(3)]


def test_missing_topic_has_no_partitions_and_is_not_made(shared_broker, topic):
    with raw(shared_broker) as c:
        asked = c.ask("partition_metadata", topic=PUBLIC + topic, request_id=1, metadata_auto_creation_enabled=1)
        assert asked["partitions"] == 0
        assert c.ask("partition_metadata", topic=PUBLIC + topic, request_id=2, metadata_auto_creation_enabled=0).error() == "TopicNotFound"
        assert PUBLIC + topic not in c.ask("get_topics", request_id=3, namespace="public/default").get("topics", [])


# ---- non-persistent --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "KeyShared"])
def test_nonpersistent_messages_reach_consumers_that_wait(client, topic, kind):
    consumer = client.subscribe(LOSSY + topic, "s", consumer_type=getattr(pulsar.ConsumerType, kind))
    producer = client.create_producer(LOSSY + topic)
    for i in range(20):
        producer.send(str(i).encode(), partition_key=str(i % 3))
    got = [consumer.receive(timeout_millis=WAIT_MS) for _ in range(20)]
    assert sorted(int(m.data()) for m in got) == list(range(20))
    for m in got:
        consumer.acknowledge(m)
    consumer.close()
    producer.send(b"nobody is there")
    again = client.subscribe(LOSSY + topic, "s", consumer_type=getattr(pulsar.ConsumerType, kind))
    with pytest.raises(pulsar.Timeout):
        again.receive(timeout_millis=300)


def test_nonpersistent_answers_as_pulsar(shared_broker, topic):
    with raw(shared_broker) as c:
        produce(c, LOSSY + topic)
        c.send_message(1, 0, b"lost")
        assert c.expect("send_receipt")["message_id"] == {"ledger_id": 0, "entry_id": 0}
        assert subscribe(c, LOSSY + topic).name == "success"
        c.send("flow", consumer_id=1, message_permits=10)
        c.send_message(1, 1, b"kept")
        frames = {f.name: f for f in (c.receive(), c.receive())}
        assert frames["message"].payload == b"kept"
        assert (frames["message"]["message_id"]["ledger_id"], frames["message"]["message_id"]["entry_id"]) == (0, 0)
        assert c.ask("get_last_message_id", consumer_id=1, request_id=3).error() == "UnknownError"
        assert c.ask("seek", consumer_id=1, request_id=4, message_publish_time=5).name == "success"
        assert c.ask("ack", consumer_id=1, ack_type=0, message_id=[{"ledger_id": 0, "entry_id": 0}], request_id=5).error() is None
        assert c.ask("get_topics", request_id=6, namespace="public/default", mode=1).get("topics").count(LOSSY + topic) == 1
        assert LOSSY + topic not in c.ask("get_topics", request_id=7, namespace="public/default", mode=0).get("topics", [])


def test_nonpersistent_partitions(shared_broker, client, topic):
    admin(shared_broker, "PUT", f"non-persistent/public/default/{topic}/partitions", "3")
    consumer = client.subscribe(LOSSY + topic, "s")
    producer = client.create_producer(LOSSY + topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution, batching_enabled=False)
    for i in range(9):
        producer.send(str(i).encode())
    assert sorted(int(consumer.receive(timeout_millis=WAIT_MS).data()) for _ in range(9)) == list(range(9))


def test_domains_that_are_switched_off(new_broker):
    new_broker.start("enableNonPersistentTopics=false")
    with raw(new_broker) as c:
        assert produce(c, LOSSY + "t").error() == "NotAllowedError"
        assert produce(c, PUBLIC + "t", 2, 3).name == "producer_success"


# ---- ending and deleting ---------------------------------------------------------------------------------------------

def test_terminated_topic_gives_what_it_has_and_takes_nothing(shared_broker, topic):
    with raw(shared_broker) as c:
        produce(c, PUBLIC + topic)
        subscribe(c, PUBLIC + topic, initial_position=1)
        c.send_message(1, 0, b"first")
        first = c.expect("send_receipt")["message_id"]
        last = admin(shared_broker, "POST", f"persistent/public/default/{topic}/terminate", status=200).json()
        assert (last["ledgerId"], last["entryId"]) == (first["ledger_id"], first["entry_id"])
        assert c.expect("close_producer")["producer_id"] == 1
        assert produce(c, PUBLIC + topic, 2, 3).error() == "TopicTerminatedError"
        c.send("flow", consumer_id=1, message_permits=10)
        assert c.expect("message").payload == b"first"
        again = admin(shared_broker, "POST", f"persistent/public/default/{topic}/terminate", status=200).json()
        assert again["entryId"] == last["entryId"]


def test_deleting_a_topic_in_use_needs_force_and_it_can_be_made_again(shared_broker, topic):
    path = f"persistent/public/default/{topic}"
    with raw(shared_broker) as c:
        produce(c, PUBLIC + topic)
        subscribe(c, PUBLIC + topic)
        assert shared_broker.rest("DELETE", path).status == 412
        admin(shared_broker, "DELETE", f"{path}?force=true")
        assert {c.receive().name, c.receive().name} == {"close_consumer", "close_producer"}
        assert produce(c, PUBLIC + topic, 2, 5).name == "producer_success"
        c.send_message(2, 0, b"new")
        c.expect("send_receipt")


def test_partitioned_topic_is_deleted_as_a_whole(shared_broker, topic):
    path = f"persistent/public/default/{topic}/partitions"
    admin(shared_broker, "PUT", path, "4")
    with raw(shared_broker) as c:
        produce(c, f"{PUBLIC}{topic}-partition-1")
        assert shared_broker.rest("DELETE", path).status == 412
        admin(shared_broker, "DELETE", f"{path}?force=true")
        c.expect("close_producer")
        assert shared_broker.rest("GET", path).status == 404
        listed = c.ask("get_topics", request_id=4, namespace="public/default").get("topics", [])
        assert not [t for t in listed if topic in t]
    admin(shared_broker, "PUT", path, "2")


# ---- lists, patterns, watches ----------------------------------------------------------------------------------------

def test_pattern_subscription_takes_the_topics_that_match(client, topic):
    for name in ("a", "b", "c"):
        client.create_producer(f"{PUBLIC}{topic}-{name}").send(name.encode())
    consumer = client.subscribe(re.compile(f"{PUBLIC}{topic}-[ab]"), "s", initial_position=EARLIEST)
    assert {consumer.receive(timeout_millis=WAIT_MS).data() for _ in range(2)} == {b"a", b"b"}
    with pytest.raises(pulsar.Timeout):
        consumer.receive(timeout_millis=300)


def test_lists_know_whether_anything_has_changed(broker):
    with raw(broker) as c:
        empty = c.ask("get_topics", request_id=1, namespace="public/default")
        assert empty["topics_hash"] == "00000000"
        produce(c, PUBLIC + "b")
        produce(c, PUBLIC + "a", 2, 2)
        listed = c.ask("get_topics", request_id=3, namespace="public/default", topics_hash="00000000")
        assert (listed["changed"], listed["topics"]) == (1, [PUBLIC + "a", PUBLIC + "b"])
        same = c.ask("get_topics", request_id=4, namespace="public/default", topics_hash=listed["topics_hash"])
        assert (same["changed"], same.get("topics")) == (0, None)
        assert c.ask("get_topics", request_id=5, namespace="public/default", topics_pattern="(").error() == "MetadataError"


def test_watch_tells_of_partitions_that_come_and_go(shared_broker, topic):
    topic = f"w-{topic[-2:]}"  # patterns have fifty bytes
    path = f"persistent/public/default/{topic}/partitions"
    with raw(shared_broker) as c:
        assert c.ask("watch_topics", request_id=1, watcher_id=7, namespace="public/default", topics_pattern=f"public/default/{topic}.*")["topics_hash"] == "00000000"
        admin(shared_broker, "PUT", path, "3")
        seen = set()
        while len(seen) < 3:
            seen |= set(c.expect("watch_topics_update")["new_topics"])
        admin(shared_broker, "DELETE", path)
        while seen:
            update = c.expect("watch_topics_update")
            seen -= set(update["deleted_topics"])
        assert update["topics_hash"] == "00000000"
        assert c.ask("watch_topics_close", request_id=2, watcher_id=7).name == "success"
        produce(c, f"{PUBLIC}{topic}-x", 5, 6)
        assert c.quiet()


# ---- names -----------------------------------------------------------------------------------------------------------

# fault: P03
@pytest.mark.parametrize("local", ["t#1", "t%41", "t+u", "name with space", "тема", "a%2Fb", "q?x=1&y"])
def test_names_with_special_characters(shared_broker, client, topic, local):
    name = f"{PUBLIC}{topic}{local}"
    subscriptions = ["a/b", "x%2Fy", "x/y", "q#1", "name with space", "ключ"]
    consumers = {s: client.subscribe(name, s) for s in subscriptions}
    client.create_producer(name).send(local.encode())
    for s in subscriptions:
        assert consumers[s].receive(timeout_millis=WAIT_MS).data() == local.encode()
    with raw(shared_broker) as c:
        assert name in c.ask("get_topics", request_id=1, namespace="public/default")["topics"]
    path = f"persistent/public/default/{urllib.parse.quote(topic + local, safe='')}"
    assert set(admin(shared_broker, "GET", f"{path}/stats", status=200).json()["subscriptions"]) == set(subscriptions)


# ---- the last message ------------------------------------------------------------------------------------------------

def after(reader):
    """What a reader has to read: nothing now, and then what is published."""
    assert not reader.has_message_available()
    with pytest.raises(pulsar.Timeout):
        reader.read_next(timeout_millis=200)


def then_one(reader, producer):
    producer.send(b"one more")
    assert wait_for(reader.has_message_available, "a message")
    assert reader.read_next(timeout_millis=WAIT_MS).data() == b"one more"
    assert not reader.has_message_available()


# fault: P04
@pytest.mark.parametrize("where", ["future", "latest"])
def test_reader_after_a_seek_to_the_end_has_nothing_to_read(client, topic, where):
    producer = client.create_producer(PUBLIC + topic, batching_enabled=False)
    for i in range(5):
        producer.send(str(i).encode())
    reader = client.create_reader(PUBLIC + topic, pulsar.MessageId.earliest)
    assert reader.has_message_available()
    reader.seek(int(time.time() * 1000) + 3600 * 1000 if where == "future" else pulsar.MessageId.latest)
    after(reader)
    then_one(reader, producer)


# fault: P04
def test_reader_of_an_empty_topic_has_nothing_to_read(client, topic):
    producer = client.create_producer(PUBLIC + topic)
    reader = client.create_reader(PUBLIC + topic, pulsar.MessageId.earliest)
    after(reader)
    then_one(reader, producer)


# fault: P04
def test_reader_that_begins_at_the_last_message(client, topic):
    producer = client.create_producer(PUBLIC + topic, batching_enabled=False)
    ids = [producer.send(str(i).encode()) for i in range(5)]
    inclusive = client.create_reader(PUBLIC + topic, ids[-1], start_message_id_inclusive=True)
    assert inclusive.has_message_available()
    assert inclusive.read_next(timeout_millis=WAIT_MS).data() == b"4"
    after(inclusive)
    exclusive = client.create_reader(PUBLIC + topic, ids[-1])
    after(exclusive)
    then_one(exclusive, producer)


# fault: P04
def test_last_id_carries_the_mark_delete_position(shared_broker, topic):
    with raw(shared_broker) as c:
        produce(c, PUBLIC + topic)
        subscribe(c, PUBLIC + topic, initial_position=1)
        ids = []
        for i in range(3):
            c.send_message(1, i, b"x")
            ids.append(c.expect("send_receipt")["message_id"])
        c.send("ack", consumer_id=1, ack_type=0, message_id=[ids[0]], request_id=8)
        c.expect("ack_response")
        answer = c.ask("get_last_message_id", consumer_id=1, request_id=9)
        assert answer["last_message_id"]["entry_id"] == ids[2]["entry_id"]
        mark = answer["consumer_mark_delete_position"]
        assert (mark["ledger_id"], mark["entry_id"]) == (ids[0]["ledger_id"], ids[0]["entry_id"])
        assert "batch_index" not in mark


def test_last_id_of_a_topic_without_a_message_is_none(shared_broker, topic):
    with raw(shared_broker) as c:
        subscribe(c, PUBLIC + topic)
        last = c.ask("get_last_message_id", consumer_id=1, request_id=9)["last_message_id"]
        assert (last["ledger_id"], last["entry_id"]) == (-1, -1)


# ---- many ------------------------------------------------------------------------------------------------------------

def resident_kib(broker):
    with open(f"/proc/{broker.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


@pytest.mark.skipif(b"__asan_init" in (BUILD / "oxbowd").read_bytes(), reason="sanitizers need memory of their own")
@pytest.mark.parametrize("subscribed", [False, True])
def test_ten_thousand_idle_topics_fit(broker, subscribed):
    count, open_at_once, answered = 10000, 200, 0
    with raw(broker) as c:
        for i in range(count):
            topic = f"{PUBLIC}idle-{i}"
            if subscribed:
                c.send("subscribe", topic=topic, subscription="s", sub_type=1, consumer_id=i, request_id=i, durable=1)
            else:
                c.send("producer", topic=topic, producer_id=i, request_id=i)
            if i - answered >= open_at_once:
                assert c.receive().error() is None
                answered += 1
        while answered < count:
            assert c.receive().error() is None
            answered += 1
    assert resident_kib(broker) < 200 * 1024
    if subscribed:
        assert resident_kib(broker) < 120 * 1024
    else:
        assert resident_kib(broker) < (12 + 2) * count  # 12 KiB each, and the process itself
