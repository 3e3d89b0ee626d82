"""test_producers.py - producers as clients see them: who may be alone, names and epochs, what is sent again, limits. Raw sockets where the answer's bytes count."""
import threading
import time

import pulsar
import pytest

from conftest import new_client
from oxbowd import SMALL, topic_path, wait_for
from rawpulsar import Connection

SHARED, EXCLUSIVE, WAIT, FENCING = range(4)


def full(topic):
    return f"persistent://public/default/{topic}"


def raw_to(broker, topic):
    """A connection that has looked the topic up."""
    connection = Connection("127.0.0.1", broker.port)
    assert connection.connect().name == "connected"
    assert connection.ask("lookup", topic=full(topic), request_id=1).error() is None
    return connection


def produce(connection, topic, producer_id=1, mode=SHARED, **values):
    return connection.ask("producer", topic=full(topic), producer_id=producer_id, request_id=100 + producer_id, producer_access_mode=mode, **values)


def produce_beside(holder, connection, topic, producer_id=1, mode=SHARED, **values):
    """While the holder of what is contested answers the ping that it gets."""
    connection.send("producer", topic=full(topic), producer_id=producer_id, request_id=100 + producer_id, producer_access_mode=mode, **values)
    assert holder.quiet(0.3)
    return connection.receive()


def keep(connection, topic):
    """A subscription, so that the topic keeps its messages."""
    assert connection.ask("subscribe", topic=full(topic), subscription="keep", sub_type=0, consumer_id=99, request_id=99).name == "success"


def send(connection, sequence_id, producer_id=1, name="p", payload=b"x", **values):
    metadata = {"producer_name": name, "sequence_id": sequence_id} | values.pop("metadata", {})
    connection.send_message(producer_id, sequence_id, payload, metadata=metadata, **values)
    return connection.receive()


def stored(receipt):
    assert receipt.name == "send_receipt", receipt
    return receipt["message_id"]["ledger_id"] >= 0


def dropped(receipt):
    return receipt.name == "send_receipt" and (receipt["message_id"]["ledger_id"], receipt["message_id"]["entry_id"]) == (-1, -1)


def payloads(broker, topic, count):
    """What the topic holds, from the earliest message on; there must not be more."""
    client = new_client(broker)
    reader = client.create_reader(full(topic), pulsar.MessageId.earliest)
    got = [reader.read_next(5000).data() for _ in range(count)]
    assert not reader.has_message_available()
    client.close()
    return got


@pytest.fixture
def two(shared_broker, topic):
    """Two connections."""
    with raw_to(shared_broker, topic) as a, raw_to(shared_broker, topic) as b:
        yield a, b


# ---- access modes


def test_exclusive_keeps_others_out(two, topic):
    a, b = two
    assert produce(a, topic, mode=EXCLUSIVE)["topic_epoch"] == 0
    assert produce_beside(a, b, topic, mode=EXCLUSIVE).error() == "ProducerFenced"
    assert produce_beside(a, b, topic, 2).error() == "ProducerBusy"
    assert stored(send(a, 0))
    a.ask("close_producer", producer_id=1, request_id=9)
    assert produce(b, topic, 3)["producer_ready"] == 1
    assert produce(a, topic, 4, EXCLUSIVE).error() == "ProducerFenced"


def test_wait_for_exclusive_is_answered_twice(two, topic):
    a, b = two
    produce(a, topic, mode=EXCLUSIVE)
    first = produce(b, topic, mode=WAIT)
    assert (first["producer_ready"], first["request_id"], first.get("topic_epoch")) == (0, 101, None)
    assert b.quiet(0.3)
    a.send("close_producer", producer_id=1, request_id=9)
    second = b.expect("producer_success")
    assert (second["producer_ready"], second["request_id"], second["topic_epoch"]) == (1, 101, 1)
    assert second["producer_name"] == first["producer_name"]
    assert stored(send(b, 0))


def test_waiting_producers_that_go_away_lose_their_turn(shared_broker, two, topic):
    a, b = two
    produce(a, topic, mode=EXCLUSIVE)
    gone = raw_to(shared_broker, topic)
    produce(gone, topic, mode=WAIT)
    assert produce(b, topic, 1, WAIT)["producer_ready"] == 0
    assert produce(b, topic, 2, WAIT)["producer_ready"] == 0
    gone.close()
    assert b.ask("close_producer", producer_id=1, request_id=9).name == "success"
    a.send("close_producer", producer_id=1, request_id=9)
    assert b.expect("producer_success")["request_id"] == 102


def test_fencing_throws_out_holder_and_waiters(shared_broker, two, topic):
    a, b = two
    produce(a, topic, mode=EXCLUSIVE)
    produce(b, topic, mode=WAIT)
    with raw_to(shared_broker, topic) as c:
        assert produce(c, topic, mode=FENCING)["topic_epoch"] == 1
        assert b.expect("error").error() == "ProducerFenced"
        assert a.expect("close_producer")["producer_id"] == 1
        assert produce(a, topic, 2, EXCLUSIVE, topic_epoch=0).error() == "ProducerFenced"
    wait_for(lambda: produce(a, topic, 3, EXCLUSIVE, topic_epoch=1).error() is None, "the same epoch is taken when nobody is there")
    a.ask("close_producer", producer_id=3, request_id=9)
    assert produce(a, topic, 4, EXCLUSIVE, topic_epoch=0).error() == "ProducerFenced"
    assert produce(a, topic, 5)["topic_epoch"] == 1


def test_topic_epoch_survives_a_kill(broker, topic):
    with raw_to(broker, topic) as a:
        for producer_id in range(1, 4):
            epoch = produce(a, topic, producer_id, EXCLUSIVE)["topic_epoch"]
            a.ask("close_producer", producer_id=producer_id, request_id=9)
        assert epoch == 2
    broker.kill()
    broker.start()
    with raw_to(broker, topic) as a:
        assert produce(a, topic, 1, EXCLUSIVE, topic_epoch=1).error() == "ProducerFenced"
        assert produce(a, topic, 2, EXCLUSIVE)["topic_epoch"] == 3


def test_unload_tells_those_who_wait(shared_broker, two, topic):
    a, b = two
    produce(a, topic, mode=EXCLUSIVE)
    produce(b, topic, mode=WAIT)
    assert shared_broker.rest("PUT", topic_path(topic) + "/unload").status == 204
    assert a.expect("close_producer")["producer_id"] == 1
    assert b.expect("error").error() == "ServiceNotReady"


# ---- names


def test_names_and_epochs(two, topic):
    a, b = two
    mine = {"producer_name": "n", "user_provided_producer_name": 1}
    assert produce(a, topic, 1, **mine)["producer_name"] == "n"
    assert produce(a, topic, 2, **mine).error() == "ProducerBusy"
    assert produce_beside(a, b, topic, epoch=5, **mine).error() == "ProducerBusy"
    assert produce(a, topic, 1, epoch=5, **mine)["producer_name"] == "n"
    made = produce(a, topic, 3)["producer_name"]
    assert produce(a, topic, 4, producer_name=made, epoch=1, user_provided_producer_name=0).error() == "ProducerBusy"
    assert made.startswith("standalone-") and produce(b, topic, 4)["producer_name"] != made


# ---- deduplication


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """A broker with deduplication for all topics."""
    from conftest import end
    from oxbowd import Broker
    with Broker(tmp_path_factory.mktemp("exact")) as broker:
        broker.start(*SMALL, "brokerDeduplicationEnabled=true", "brokerDeduplicationEntriesInterval=100", "producerResendWindowSeconds=0")
        yield broker
        end(broker)


def named(connection, topic, producer_id=1, name="p"):
    return produce(connection, topic, producer_id, producer_name=name, user_provided_producer_name=1)


def test_duplicates_get_a_receipt_and_are_not_stored(exact, topic):
    with raw_to(exact, topic) as a:
        assert named(a, topic)["last_sequence_id"] == -1
        assert stored(send(a, 0, payload=b"a")) and stored(send(a, 5, payload=b"b"))
        assert dropped(send(a, 5)) and dropped(send(a, 3))
        batch = {"num_messages_in_batch": 3, "highest_sequence_id": 8}
        assert stored(send(a, 6, metadata=batch, highest_sequence_id=8, payload=b"c"))
        refused = send(a, 8, metadata=batch | {"highest_sequence_id": 10}, highest_sequence_id=10)
        assert refused.name == "send_error" and refused["sequence_id"] == 8
        for sequence_id in (11, 11, 12):
            a.send_message(1, sequence_id, b"d", metadata={"producer_name": "p"})
        receipts = [a.receive() for _ in range(3)]
        assert [r["sequence_id"] for r in receipts] == [11, 11, 12]
        assert stored(receipts[0]) and dropped(receipts[1]) and stored(receipts[2])
        a.ask("close_producer", producer_id=1, request_id=9)
        assert named(a, topic, 2)["last_sequence_id"] == 12


def test_last_sequence_is_known_after_unload_and_kill(exact, topic):
    with raw_to(exact, topic) as a:
        keep(a, topic)
        assert a.ask("close_consumer", consumer_id=99, request_id=98).name == "success"
        named(a, topic)
        for i in range(150):
            assert stored(send(a, i))
        assert exact.rest("PUT", topic_path(topic) + "/unload").status == 204
        assert a.expect("close_producer")["producer_id"] == 1
        assert named(a, topic, 2)["last_sequence_id"] == 149
        for i in range(150, 180):
            assert stored(send(a, i, 2))
    exact.kill()
    exact.start()
    with raw_to(exact, topic) as a:
        assert named(a, topic)["last_sequence_id"] == 179
        assert dropped(send(a, 179)) and stored(send(a, 180))
        listed = exact.rest("GET", topic_path(topic) + "/subscriptions")
        assert listed.status != 200 or listed.json() == ["keep"]
    assert len(payloads(exact, topic, 181)) == 181


def test_chunks_share_their_sequence_id(exact, topic):
    with raw_to(exact, topic) as a:
        named(a, topic)

        def chunk(i):
            return send(a, 3, payload=b"c%d" % i, is_chunk=1, metadata={"uuid": "p-3", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4, "chunk_id": i})

        assert stored(chunk(0)) and stored(chunk(1))
        assert dropped(chunk(0)) and dropped(chunk(1))
        assert stored(send(a, 4))


def test_deduplication_follows_the_policy(shared_broker, topic):
    with raw_to(shared_broker, topic) as a:
        assert named(a, topic)["last_sequence_id"] == -1
        assert stored(send(a, 5)) and stored(send(a, 5))
        answer = shared_broker.rest("POST", topic_path(topic) + "/deduplicationEnabled", "true")
        if answer.status != 204:
            pytest.skip("REST has no topic policies")
        wait_for(lambda: dropped(send(a, 5)), "deduplication is on")
        a.ask("close_producer", producer_id=1, request_id=9)
        assert named(a, topic, 2)["last_sequence_id"] == 5


def test_client_that_begins_anew_goes_on_where_it_was(exact, topic):
    """The client asks for the last sequence id and numbers its messages from there."""
    for run in range(2):
        client = new_client(exact)
        producer = client.create_producer(full(topic), producer_name="worker")
        assert producer.last_sequence_id() == run * 10 - 1
        for i in range(10):
            producer.send(b"%d" % (run * 10 + i))
        producer.send(b"again", sequence_id=run * 10 + 3)
        client.close()
    assert payloads(exact, topic, 20) == [b"%d" % i for i in range(20)]


# ---- policies


def test_initial_subscription_keeps_the_first_message(shared_broker, client, topic):
    with raw_to(shared_broker, topic) as a:
        assert produce(a, topic, initial_subscription_name="dlq")["producer_ready"] == 1
        assert stored(send(a, 0, payload=b"dead"))
    consumer = client.subscribe(full(topic), "dlq")
    assert consumer.receive(5000).data() == b"dead"


def test_settings_limit_producers_and_delays(new_broker, topic):
    new_broker.start(*SMALL, "maxProducersPerTopic=2", "delayedDeliveryMaxDelayInMillis=5000", "allowAutoSubscriptionCreation=false")
    with raw_to(new_broker, topic) as a:
        assert produce(a, topic, 1)["producer_ready"] and produce(a, topic, 2)["producer_ready"]
        assert produce(a, topic, 3).error() == produce(a, topic, 4, WAIT).error() == "ProducerBusy"
        now = int(time.time() * 1000)
        assert stored(send(a, 0, metadata={"deliver_at_time": now + 3000}))
        late = send(a, 1, metadata={"deliver_at_time": now + 600000})
        assert (late.name, late.error()) == ("send_error", "NotAllowedError")
        assert stored(send(a, 2))
    with raw_to(new_broker, topic + "-dlq") as a:
        assert produce(a, topic + "-dlq", initial_subscription_name="dlq").error() == "NotAllowedError"
        assert produce(a, topic + "-dlq", 2)["producer_ready"] == 1


def test_largest_message_of_a_topic(shared_broker, topic):
    with raw_to(shared_broker, topic) as a:
        produce(a, topic)
        assert shared_broker.rest("POST", topic_path(topic) + "/maxMessageSize", "200").status == 204
        wait_for(lambda: send(a, 0, payload=b"x" * 250).error() == "NotAllowedError", "the limit is in force")
        assert stored(send(a, 1, payload=b"x" * 50))
        chunk = {"uuid": "p-2", "num_chunks_from_msg": 2, "total_chunk_msg_size": 600, "chunk_id": 0}
        assert stored(send(a, 2, payload=b"x" * 300, is_chunk=1, metadata=chunk))


def test_unencrypted_messages_where_encryption_is_required(new_broker, topic):
    new_broker.start()
    assert new_broker.rest("POST", "namespaces/public/default/encryptionRequired", "true").status == 204
    with raw_to(new_broker, topic) as a:
        wait_for(lambda: produce(a, topic).error() == "MetadataError", "the policy is in force")
        assert produce(a, topic, 2, encrypted=1)["producer_ready"] == 1
        assert send(a, 0, 2).error() == "MetadataError"
    with raw_to(new_broker, topic) as a:
        produce(a, topic, 3, encrypted=1)
        assert stored(send(a, 1, 3, metadata={"encryption_keys": [{"key": "k", "value": "v"}]}))


def test_terminated_topic(shared_broker, topic):
    with raw_to(shared_broker, topic) as a:
        produce(a, topic)
        assert stored(send(a, 0))
        assert shared_broker.rest("POST", topic_path(topic) + "/terminate").status == 200
        assert a.expect("close_producer")["producer_id"] == 1
        for producer_id, mode in ((2, SHARED), (3, EXCLUSIVE), (4, WAIT), (5, FENCING)):
            assert produce(a, topic, producer_id, mode).error() == "TopicTerminatedError"


@pytest.mark.parametrize("policy, error", [("producer_request_hold", "ProducerBlockedQuotaExceededError"),
                                           ("producer_exception", "ProducerBlockedQuotaExceededException")])
def test_backlog_quota(new_broker, topic, policy, error):
    new_broker.start(*SMALL, "backlogQuotaCheckIntervalInSeconds=1", "backlogQuotaDefaultLimitBytes=2000", f"backlogQuotaDefaultRetentionPolicy={policy}")
    with raw_to(new_broker, topic) as a:
        a.ask("subscribe", topic=full(topic), subscription="s", sub_type=0, consumer_id=1, request_id=3)
        produce(a, topic)
        for i in range(30):
            assert stored(send(a, i, payload=b"x" * 100))
        assert produce(a, topic, 2).error() == error
        assert a.expect("close_producer", 10)["producer_id"] == 1
        assert produce(a, topic, 3).error() == error
        a.ask("unsubscribe", consumer_id=1, request_id=4)
        assert produce(a, topic, 4)["producer_ready"] == 1


def test_publish_rate_slows_a_topic_down_and_loses_nothing(new_broker, topic):
    new_broker.start(*SMALL, "maxPublishRatePerTopicInMessages=50")
    client, got = new_client(new_broker), []
    producer = client.create_producer(full(topic), batching_enabled=False)
    begin = time.monotonic()
    for i in range(200):
        producer.send_async(b"%d" % i, lambda result, _: got.append(result))
    wait_for(lambda: len(got) == 200, "all are stored", 20)
    assert 2 <= time.monotonic() - begin <= 6
    assert set(got) == {pulsar.Result.Ok}
    client.close()
    assert payloads(new_broker, topic, 200) == [b"%d" % i for i in range(200)]


def test_fields_for_others_pass_untouched(shared_broker, topic):
    with raw_to(shared_broker, topic) as a:
        a.ask("subscribe", topic=full(topic), subscription="s", sub_type=0, consumer_id=1, request_id=3)
        produce(a, topic)
        fields = {"replicated_from": "east", "event_time": 7, "ordering_key": b"o", "uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 9, "chunk_id": 0}
        assert stored(send(a, 0, metadata=fields, is_chunk=1))
        a.send("flow", consumer_id=1, message_permits=1)
        got = a.expect("message")
        assert {name: got.metadata[name] for name in fields} == fields
        refused = send(a, 1, txnid_least_bits=1, txnid_most_bits=1)
        assert (refused.name, refused.error()) == ("send_error", "NotAllowedError")


# ---- the same with a real client


def test_clients_take_turns(shared_broker, client, topic):
    first = client.create_producer(full(topic), access_mode=pulsar.ProducerAccessMode.Exclusive)
    other, got = new_client(shared_broker), []
    with pytest.raises(pulsar.ProducerFenced):
        other.create_producer(full(topic), access_mode=pulsar.ProducerAccessMode.Exclusive)
    with pytest.raises(pulsar.ProducerBusy):
        other.create_producer(full(topic), access_mode=pulsar.ProducerAccessMode.Shared)
    waiting = threading.Thread(target=lambda: got.append(other.create_producer(full(topic), access_mode=pulsar.ProducerAccessMode.WaitForExclusive)))
    waiting.start()
    first.send(b"1")
    assert not got
    first.close()
    waiting.join(10)
    got[0].send(b"2")
    fencing = client.create_producer(full(topic), access_mode=pulsar.ProducerAccessMode.ExclusiveWithFencing)
    fencing.send(b"3")
    with pytest.raises(pulsar.PulsarException):
        for _ in range(50):
            got[0].send(b"never")
    other.shutdown()  # its producer may know already that it was closed


def test_exclusive_client_comes_back_after_a_kill(broker, topic):
    client = new_client(broker)
    client.subscribe(full(topic), "keep").close()
    producer = client.create_producer(full(topic), access_mode=pulsar.ProducerAccessMode.Exclusive, producer_name="alone")
    for i in range(20):
        producer.send(b"%d" % i)
        if i == 10:
            broker.kill()
            broker.start()
    assert payloads(broker, topic, 20) == [b"%d" % i for i in range(20)]
    client.close()
