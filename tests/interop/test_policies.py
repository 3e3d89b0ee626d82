"""test_policies.py - policies as clients meet them: namespaces' and topics' own, by REST, over restarts, and the events that real brokers read and write."""
import json
import time

import pulsar
import pytest

from conftest import new_client
from oxbowd import SMALL, wait_for

NAMESPACE = "namespaces/public/default"
EVENTS = "persistent://public/default/__change_events"
# What a Pulsar 4.0.7 broker wrote for persistent://public/policies/a: messageTTL 77, retention 10 minutes and 20 MB, a quota of 1000 bytes.
OF_PULSAR = bytes.fromhex(
    "020402000202147374616e64616c6f6e650002021470657273697374656e740210706f6c6963696573020002022664657374696e6174696f6e5f73746f72616765"
    "d00f02d00f0002020000000000000000000000020000000000000000029a010000000000022814000000000002000200020c7075626c6963020261")
QUICK = (*SMALL, "backlogQuotaCheckIntervalInSeconds=1", "brokerDeleteInactiveTopicsFrequencySeconds=1")


@pytest.fixture(scope="module")
def quick_broker(tmp_path_factory):
    from conftest import end
    from oxbowd import Broker
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        broker.start(*QUICK)
        yield broker
        end(broker)


@pytest.fixture
def quick(quick_broker):
    c = new_client(quick_broker)
    yield c
    c.close()


def post(broker, path, body=None, method="POST"):
    answer = broker.rest(method, path, None if body is None else json.dumps(body))
    assert answer.status in (200, 204), (path, answer.status, answer.text)
    return answer


def get(broker, path):
    answer = broker.rest("GET", path)
    assert answer.status == 200, (path, answer.status, answer.text)
    return answer.json() if answer.text else None


def made(broker, topic):
    post(broker, f"persistent/public/default/{topic}", method="PUT")
    return f"persistent/public/default/{topic}"


def events(broker):
    c = new_client(broker)
    reader, out = c.create_reader(EVENTS, pulsar.MessageId.earliest), []
    while reader.has_message_available():
        message = reader.read_next(5000)
        out.append((message.partition_key(), message.schema_version(), message.data()))
    c.close()
    return out


# ---- topics' own

def test_topic_policies_outlive_a_kill(broker):
    path = made(broker, "t")
    post(broker, f"{path}/messageTTL?messageTTL=77")
    post(broker, f"{path}/maxProducers", 3)
    post(broker, f"{path}/messageTTL?messageTTL=78")
    broker.restart("kill")
    assert get(broker, f"{path}/messageTTL") == 78
    assert get(broker, f"{path}/maxProducers") == 3
    post(broker, f"{path}/messageTTL", method="DELETE")
    broker.restart("kill")
    assert get(broker, f"{path}/messageTTL") is None
    assert get(broker, f"{path}/maxProducers") == 3
    assert broker.rest("GET", "persistent/public/default").json() == ["persistent://public/default/t"]
    post(broker, path, method="DELETE")
    made(broker, "t")
    assert get(broker, f"{path}/maxProducers") is None


def test_topic_policies_are_events_as_pulsar_writes_them(broker):
    path = made(broker, "a")
    post(broker, f"{path}/messageTTL?messageTTL=77")
    post(broker, f"{path}/retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": 20})
    post(broker, f"{path}/backlogQuota?backlogQuotaType=destination_storage", {"limitSize": 1000, "policy": "producer_exception"})
    key, version, value = events(broker)[-1]
    assert (key, version) == ("persistent://public/default/a", "\0" * 8)
    assert value == OF_PULSAR.replace(b"\x10policies", b"\x0edefault")


def test_topic_policies_of_another_writer_are_read(broker):
    path, other = made(broker, "a"), made(broker, "b")
    post(broker, f"{other}/maxProducers", 3)
    c = new_client(broker)
    c.create_producer(EVENTS).send(OF_PULSAR, partition_key="persistent://public/default/a")
    wait_for(lambda: get(broker, f"{path}/messageTTL") == 77, "the event is applied")
    assert get(broker, f"{path}/retention") == {"retentionTimeInMinutes": 10, "retentionSizeInMB": 20}
    c.create_producer(EVENTS).send(b"", partition_key="persistent://public/default/b")
    wait_for(lambda: get(broker, f"{other}/maxProducers") is None, "the policies are removed")
    c.create_producer(EVENTS).send(b"no event", partition_key="persistent://public/default/a")
    c.create_producer(EVENTS).send(OF_PULSAR)
    c.close()
    broker.restart("kill")
    assert get(broker, f"{path}/messageTTL") == 77
    assert len(broker.events("topic.policies.ignored")) == 2


# ---- what clients are told

def test_limits_of_a_namespace_and_of_a_topic(shared_broker, client, topic):
    path = made(shared_broker, topic)
    post(shared_broker, f"{path}/maxProducers", 1)
    post(shared_broker, f"{path}/subscriptionTypesEnabled", ["Shared"])
    first = client.create_producer(topic)
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic)
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(topic, "s")
    client.subscribe(topic, "s", pulsar.ConsumerType.Shared).close()
    post(shared_broker, f"{path}/maxProducers", method="DELETE")
    client.create_producer(topic).close()
    first.close()


def test_quota_refuses_producers_until_the_backlog_is_gone(quick_broker, quick, topic):
    path = made(quick_broker, topic)
    post(quick_broker, f"{path}/backlogQuota?backlogQuotaType=destination_storage", {"limitSize": 5000, "policy": "producer_exception"})
    consumer = quick.subscribe(topic, "s")
    producer = quick.create_producer(topic)
    for _ in range(10):
        producer.send(b"x" * 1000)
    wait_for(lambda: not quick_broker.stats(topic)["publishers"], "the producer is disconnected")
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
        quick.create_producer(topic)
    for _ in range(10):
        consumer.acknowledge(consumer.receive(5000))
    wait_for(lambda: quick_broker.stats(topic)["subscriptions"]["s"]["msgBacklog"] == 0, "all is acknowledged")
    quick.create_producer(topic).send(b"again")


def test_quota_evicts_the_oldest(quick_broker, quick, topic):
    path = made(quick_broker, topic)
    post(quick_broker, f"{path}/backlogQuota?backlogQuotaType=destination_storage", {"limitSize": 5000, "policy": "consumer_backlog_eviction"})
    quick.subscribe(topic, "s").close()
    producer = quick.create_producer(topic)
    for i in range(10):
        producer.send(b"%d" % i * 1000)
    wait_for(lambda: 0 < quick_broker.stats(topic)["subscriptions"]["s"]["msgBacklog"] < 5, "the oldest are skipped")
    first = quick.subscribe(topic, "s").receive(5000).data()
    assert first[:1] not in b"01234"


def test_unused_topic_goes_and_a_used_one_stays(quick_broker, quick, topic):
    producer = quick.create_producer(topic)
    producer.send(b"x")
    kept = quick.create_producer(topic + "-kept")
    quick.subscribe(topic + "-subscribed", "s").close()
    producer.close()
    listed = lambda: [name.rsplit("/", 1)[1] for name in quick_broker.rest("GET", "persistent/public/default").json()]  # noqa: E731
    wait_for(lambda: topic not in listed(), "the unused topic is deleted")
    time.sleep(2.5)  # three more looks
    assert {topic + "-kept", topic + "-subscribed"} <= set(listed())
    kept.close()


def test_expiry_by_request_moves_all_subscriptions(shared_broker, client, topic):
    client.subscribe(topic, "a").close()
    client.subscribe(topic, "b").close()
    producer = client.create_producer(topic)
    for _ in range(5):
        producer.send(b"x")
    time.sleep(1.2)
    producer.send(b"young")
    post(shared_broker, f"persistent/public/default/{topic}/all_subscription/expireMessages/1")
    wait_for(lambda: [s["msgBacklog"] for s in shared_broker.stats(topic)["subscriptions"].values()] == [1, 1], "the old ones are expired")


def test_namespace_policies_reach_topics_that_are_loaded(broker):
    c = new_client(broker)
    first = c.create_producer("t")
    post(broker, f"{NAMESPACE}/maxProducersPerTopic", 1)
    with pytest.raises(pulsar.ProducerBusy):
        c.create_producer("t")
    post(broker, f"{NAMESPACE}/maxProducersPerTopic", method="DELETE")
    c.create_producer("t")
    post(broker, f"{NAMESPACE}/maxTopicsPerNamespace", 1)
    with pytest.raises(pulsar.PulsarException):
        c.create_producer("t2")
    first.close()
    c.close()
