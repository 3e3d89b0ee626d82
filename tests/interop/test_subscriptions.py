"""test_subscriptions.py - subscriptions of all types over a bare connection: who gets what, what comes again, what acknowledgements and permits do at
their edges. With PULSAR_PORT and PULSAR_NAMESPACE set the same is asked of another broker, e.g. a real Pulsar."""
import os
import time

import pytest

from rawpulsar import Connection

OTHER = int(os.environ.get("PULSAR_PORT", 0))
NAMESPACE = os.environ.get("PULSAR_NAMESPACE", "public/default")
STAMP = os.environ.get("PULSAR_STAMP", "")  # so that a broker that lives on sees new names
EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED = range(4)
ALL_BITS = 2 ** 64 - 1
NO_REQUEST = (-1, ALL_BITS)  # the request id of what the broker does by itself


@pytest.fixture(scope="module")
def port(request):
    return OTHER or request.getfixturevalue("shared_broker").port


class Client(Connection):
    """A connection with a producer (id 1) and consumers on one topic."""

    def __init__(self, port, topic):
        super().__init__("127.0.0.1", port)
        self.topic = f"persistent://{NAMESPACE}/{topic}{STAMP}"
        self.requests, self.sequence, self.later = 100, 0, []
        assert self.connect().name == "connected"
        self.request("partition_metadata", topic=self.topic)
        self.request("lookup", topic=self.topic)

    def next(self, timeout=None):
        return self.later.pop(0) if self.later else self.receive(timeout)

    def request(self, name, **values):
        """Asks and gives the answer; what else comes is kept for `next`."""
        self.requests += 1
        self.send(name, request_id=self.requests, **values)
        kept = []
        while True:
            frame = self.receive(15)
            if frame.get("request_id") == self.requests:
                self.later += kept
                return frame
            kept.append(frame)

    def subscribe(self, consumer, kind=SHARED, subscription="s", **values):
        values = {"durable": 1, "initial_position": 1, "consumer_name": f"c{consumer}", **values}
        return self.request("subscribe", topic=self.topic, subscription=subscription, sub_type=kind, consumer_id=consumer, **values)

    def flow(self, consumer, permits=1000):
        self.send("flow", consumer_id=consumer, message_permits=permits)

    def publish(self, payload, **metadata):
        if not self.sequence:
            assert self.request("producer", topic=self.topic, producer_id=1).name == "producer_success"
        self.sequence += 1
        self.send_message(1, self.sequence, payload, metadata=metadata or None)
        frame = self.next(10)
        while frame.name != "send_receipt":
            self.later.append(frame)
            frame = self.receive(10)
        return frame["message_id"]

    def publish_batch(self, count):
        return self.publish(single_messages(count), num_messages_in_batch=count)

    def message(self, timeout=5):
        frame = self.next(timeout)
        while frame.name == "active_consumer_change":
            frame = self.next(timeout)
        assert frame.name == "message", frame
        return frame

    def nothing(self, seconds=0.4):
        return not [f for f in self.later if f.name == "message"] and self.quiet(seconds)

    def ack(self, consumer, message, ack_set=None, kind=0):
        mid = {k: message["message_id"][k] for k in ("ledger_id", "entry_id")}
        if ack_set is not None:
            mid["ack_set"] = ack_set
        return self.request("ack", consumer_id=consumer, ack_type=kind, message_id=[mid])

    def redeliver(self, consumer, *messages, **values):
        ids = [{k: m["message_id"][k] for k in ("ledger_id", "entry_id")} for m in messages]
        self.send("redeliver", consumer_id=consumer, message_ids=ids, **values)

    def stats(self, consumer):
        return self.request("consumer_stats", consumer_id=consumer)


def single_messages(count):
    """A batch's payload: per message the size of its metadata, the metadata (payload_size), the payload."""
    return b"".join(b"\0\0\0\x02\x18\x01" + bytes([65 + i]) for i in range(count))


def signed64(value):
    return value - 2 ** 64 if value >= 2 ** 63 else value


@pytest.fixture
def one(port, topic):
    with Client(port, topic) as client:
        yield client


@pytest.fixture
def two(port, topic):
    with Client(port, topic) as client:
        yield client


# fault: P01
def test_acked_parts_of_a_batch_stay_acked_over_redeliveries(one):
    one.subscribe(1)
    one.flow(1)
    one.publish_batch(4)
    first = one.message()
    assert not first.get("ack_set") and not first.get("redelivery_count")
    assert not one.ack(1, first, [0b1110]).error()
    one.redeliver(1, first)
    second = one.message()
    assert second["ack_set"] == [0b1110] and second["redelivery_count"] == 1
    assert not one.ack(1, second, [0b1101]).error()
    one.redeliver(1, second)
    third = one.message()
    assert third["ack_set"] == [0b1100] and third["redelivery_count"] == 2
    assert not one.ack(1, third, [0b1011]).error() and not one.ack(1, third, [0b0111]).error()
    one.redeliver(1)
    assert one.nothing()
    assert not one.stats(1).get("msg_backlog")


# fault: P01
def test_cumulative_ack_inside_a_batch_brings_the_rest_of_it_again(one, two):
    one.subscribe(1, EXCLUSIVE)
    one.flow(1)
    one.publish_batch(5)
    assert not one.ack(1, one.message(), [0b11000], kind=1).error()
    one.close()
    for _ in range(50):
        if two.subscribe(1, EXCLUSIVE).name == "success":
            break
        time.sleep(0.1)
    two.flow(1)
    again = two.message()
    assert again["ack_set"] == [0b11000] and again["message_id"]["entry_id"] == 0
    assert two.nothing()


def test_cumulative_ack_on_shared_acks_nothing_and_is_answered_without_error(one):
    one.subscribe(1)
    one.flow(1)
    one.publish(b"a")
    message = one.message()
    answer = one.ack(1, message, kind=1)
    assert answer.name == "ack_response" and not answer.error()
    assert one.stats(1)["msg_backlog"] == 1


def test_acks_of_ids_that_do_not_exist_are_answered_without_error(one):
    one.subscribe(1)
    one.flow(1)
    one.publish(b"a")
    message = one.message()
    for ledger, entry in ((message["message_id"]["ledger_id"], 99), (987654321, 0), (message["message_id"]["ledger_id"], 2 ** 63 - 1)):
        for ack_set in (None, [0b10], [0] * 5):
            one.ack(1, {"message_id": {"ledger_id": ledger, "entry_id": entry}}, ack_set)
    assert one.stats(1)["msg_backlog"] == 1
    assert not one.ack(1, message).error()


@pytest.mark.parametrize("bits", [[0], [0, 0, 0], [ALL_BITS], [ALL_BITS] * 9, [0b1110] * 3])
def test_ack_sets_of_any_shape_keep_the_connection_and_lose_nothing_else(one, bits):
    one.subscribe(1)
    one.flow(1)
    one.publish_batch(4)
    one.publish(b"next")
    message = one.message()
    one.ack(1, message, bits)
    assert one.message()["message_id"]["entry_id"] == 1
    one.redeliver(1)
    entries = {one.message()["message_id"]["entry_id"]}
    if any(bits):
        entries.add(one.message()["message_id"]["entry_id"])
    assert entries == ({0, 1} if any(bits) else {1})


def test_redelivery_counts_grow_by_requests_and_not_by_leaving(one, two):
    one.subscribe(1)
    one.flow(1, 1)
    one.publish(b"a")
    message = one.message()
    two.subscribe(1)
    two.flow(1, 10)
    one.close()
    message = two.message()
    assert not message.get("redelivery_count")
    two.redeliver(1, message)
    message = two.message()
    assert message["redelivery_count"] == 1
    two.redeliver(1)
    assert two.message()["redelivery_count"] == 2


def test_exclusive_says_zero_redeliveries_and_the_epoch_of_the_last_request(one):
    one.subscribe(1, EXCLUSIVE)
    one.flow(1)
    one.publish(b"a")
    one.message()
    one.redeliver(1, consumer_epoch=7)
    again = one.message()
    assert not again.get("redelivery_count") and again["consumer_epoch"] == 7


def test_permits_count_messages_and_may_fall_below_zero(one):
    one.subscribe(1)
    for _ in range(3):
        one.publish_batch(10)
    one.flow(1, 1)
    one.message()
    assert signed64(one.stats(1)["available_permits"]) == -9
    one.flow(1, 9)
    assert one.nothing()
    one.flow(1, 1)
    one.message()


def test_permits_without_end_are_taken(one):
    one.subscribe(1)
    for _ in range(20):
        one.flow(1, 2 ** 31 - 1)
    one.publish(b"a")
    one.message()


def test_a_flow_of_nothing_ends_the_connection(one):
    one.subscribe(1)
    one.flow(1, 0)
    assert one.closed()


def test_commands_for_unknown_consumers(one):
    one.flow(77)
    one.redeliver(77)
    one.send("ack", consumer_id=77, ack_type=0, message_id=[{"ledger_id": 1, "entry_id": 1}])
    for name, values in (("unsubscribe", {}), ("seek", {"message_publish_time": 1}), ("get_last_message_id", {})):
        assert one.request(name, consumer_id=77, **values).error() == "MetadataError", name
    assert one.request("close_consumer", consumer_id=77).name == "success"


def test_a_second_exclusive_consumer_and_another_type_are_refused(one, two):
    one.subscribe(1, EXCLUSIVE)
    assert two_asks(one, two, EXCLUSIVE) == "ConsumerBusy"
    assert two_asks(one, two, SHARED) == "ConsumerBusy"
    one.request("close_consumer", consumer_id=1)
    assert two.subscribe(3, SHARED).name == "success"
    assert two_asks(two, one, FAILOVER) == "ConsumerBusy"


def two_asks(holder, asker, kind):
    """The error of a subscribe, while the holder answers pings."""
    asker.requests += 1
    asker.send("subscribe", topic=asker.topic, subscription="s", sub_type=kind, consumer_id=2, request_id=asker.requests, durable=1)
    for _ in range(40):
        holder.quiet(0.05)
        try:
            return asker.receive(0.05).error()
        except TimeoutError:
            pass
    return None


def test_priorities_come_before_turns(one):
    one.subscribe(1, priority_level=1)
    one.subscribe(2, priority_level=0)
    one.flow(1, 10)
    one.flow(2, 2)
    for i in range(4):
        one.publish(b"%d" % i)
    got = [one.message()["consumer_id"] for _ in range(4)]
    assert got == [2, 2, 1, 1]


def test_unsubscribing_a_shared_subscription_with_others(one):
    one.subscribe(1)
    one.subscribe(2)
    assert one.request("unsubscribe", consumer_id=1).error() == "MetadataError"
    assert one.request("unsubscribe", consumer_id=1, force=1).name == "success"
    closed = one.later[0] if one.later else one.receive(5)
    assert closed.name == "close_consumer" and closed["consumer_id"] == 2


def test_seeking_closes_all_consumers_first_and_delivers_from_there(one):
    one.subscribe(1)
    one.subscribe(2)
    ids = [one.publish(b"%d" % i) for i in range(5)]
    answer = one.request("seek", consumer_id=1, message_id={k: ids[2][k] for k in ("ledger_id", "entry_id")})
    assert answer.name == "success"
    assert sorted(f["consumer_id"] for f in one.later if f.name == "close_consumer") == [1, 2]
    assert all(f["request_id"] in NO_REQUEST for f in one.later if f.name == "close_consumer")
    one.later.clear()
    one.subscribe(3)
    one.flow(3)
    assert [one.message()["message_id"]["entry_id"] for _ in range(3)] == [2, 3, 4]


def test_seeking_into_a_batch_brings_its_rest_with_the_set(one):
    one.subscribe(1)
    batch = one.publish_batch(4)
    one.publish(b"after")
    mid = {k: batch[k] for k in ("ledger_id", "entry_id")}
    assert one.request("seek", consumer_id=1, message_id={**mid, "ack_set": [0b1100]}).name == "success"
    one.later.clear()
    one.subscribe(2)
    one.flow(2)
    first = one.message()
    assert first["message_id"]["entry_id"] == 0 and first["ack_set"] == [0b1100]
    assert one.message()["message_id"]["entry_id"] == 1


def test_seeks_beyond_the_ends_go_to_the_ends(one):
    one.subscribe(1)
    last = [one.publish(b"%d" % i) for i in range(3)][-1]
    beyond = {"ledger_id": last["ledger_id"] + 1000, "entry_id": 0}
    assert one.request("seek", consumer_id=1, message_id=beyond).name == "success"
    one.later.clear()
    one.subscribe(1)
    one.flow(1)
    assert one.nothing()
    assert one.request("seek", consumer_id=1, message_id={"ledger_id": 0, "entry_id": 0}).name == "success"
    one.later.clear()
    one.subscribe(1)
    one.flow(1)
    assert one.message()["message_id"]["entry_id"] == 0


def test_failover_tells_who_is_active_and_delivers_a_second_later(one):
    one.subscribe(1, FAILOVER, priority_level=1)
    one.subscribe(2, FAILOVER, priority_level=0)
    one.flow(1)
    one.flow(2)
    told = {}
    end = time.monotonic() + 3
    while len(told) < 2 and time.monotonic() < end:
        frame = one.next(3)
        if frame.name == "active_consumer_change" and (frame.get("is_active") or frame["consumer_id"] == 1):
            told[frame["consumer_id"]] = bool(frame.get("is_active"))
    assert told == {1: False, 2: True}
    one.publish(b"a")
    assert one.message()["consumer_id"] == 2
    start = time.monotonic()
    one.request("close_consumer", consumer_id=2)
    again = one.message()
    assert again["consumer_id"] == 1 and not again.get("redelivery_count")
    assert 0.8 < time.monotonic() - start < 3


def test_a_reader_starts_at_its_own_entry(one):
    ids = [one.publish(b"%d" % i) for i in range(3)]
    for index in (None, 0):
        start = {**{k: ids[1][k] for k in ("ledger_id", "entry_id")}, **({} if index is None else {"batch_index": index})}
        consumer = 5 if index is None else 6
        one.subscribe(consumer, EXCLUSIVE, f"r{consumer}", durable=0, start_message_id=start)
        one.flow(consumer)
        assert [one.message()["message_id"]["entry_id"] for _ in range(2)] == [1, 2]


def test_one_slow_connection_does_not_stop_the_others(one, two):
    one.subscribe(1)
    two.subscribe(1)
    one.flow(1, 3)
    two.flow(1, 1000)
    for i in range(10):
        one.publish(b"%d" % i)
    assert len([one.message() for _ in range(3)]) == 3
    assert len([two.message() for _ in range(7)]) == 7
