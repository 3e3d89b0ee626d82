"""What the stock Python client sees: produce, consume, acknowledge, seek, read; over restarts and kills."""
import pulsar
import pytest

WAIT_MS = 10000


def receive(consumer, count):
    messages = []
    for _ in range(count):
        messages.append(consumer.receive(timeout_millis=WAIT_MS))
    return messages


def nothing_more(consumer):
    with pytest.raises(pulsar.Timeout):
        consumer.receive(timeout_millis=300)


@pytest.mark.parametrize("batching", [False, True])
def test_messages_come_in_order_and_once(client, batching):
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", batching_enabled=batching)
    sent = [f"message {i}".encode() for i in range(500)]
    for body in sent:
        producer.send_async(body, None)
    producer.flush()
    got = receive(consumer, len(sent))
    for message in got:
        consumer.acknowledge(message)
    assert [m.data() for m in got] == sent
    nothing_more(consumer)


def test_properties_key_and_event_time_pass(client):
    consumer = client.subscribe("t", "s")
    client.create_producer("t").send(b"x", properties={"a": "1", "b": ""}, partition_key="key", event_timestamp=1234567)
    message = receive(consumer, 1)[0]
    assert (message.properties(), message.partition_key(), message.event_timestamp()) == ({"a": "1", "b": ""}, "key", 1234567)


@pytest.mark.parametrize("kind", ["LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_compressed_messages_pass(client, kind):
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", compression_type=getattr(pulsar.CompressionType, kind))
    body = b"the same again and again " * 2000
    producer.send(body)
    assert receive(consumer, 1)[0].data() == body


def test_chunked_message_is_put_together(client):
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", chunking_enabled=True, batching_enabled=False)
    body = bytes(range(256)) * 50000
    producer.send(body)
    assert receive(consumer, 1)[0].data() == body


def test_second_exclusive_consumer_is_busy(client):
    consumer = client.subscribe("t", "s")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe("t", "s")
    consumer.close()
    client.subscribe("t", "s").close()


def test_acked_messages_stay_acked_over_reconnect(client):
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", batching_enabled=False)
    for i in range(10):
        producer.send(str(i).encode())
    got = receive(consumer, 10)
    for i in (0, 1, 2, 5, 9):
        consumer.acknowledge(got[i])
    consumer.close()
    again = client.subscribe("t", "s")
    assert [m.data() for m in receive(again, 5)] == [b"3", b"4", b"6", b"7", b"8"]
    again.acknowledge_cumulative(got[8])
    again.close()
    nothing_more(client.subscribe("t", "s"))


def test_negative_acknowledgement_brings_it_back(client):
    consumer = client.subscribe("t", "s", negative_ack_redelivery_delay_ms=100)
    client.create_producer("t").send(b"again")
    consumer.negative_acknowledge(receive(consumer, 1)[0])
    assert receive(consumer, 1)[0].data() == b"again"


def test_seek_by_id_and_by_time(client):
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", batching_enabled=False)
    for i in range(5):
        producer.send(str(i).encode())
    got = receive(consumer, 5)
    consumer.seek(got[2].message_id())
    assert receive(consumer, 1)[0].data() in (b"2", b"3")
    consumer.seek(pulsar.MessageId.earliest)
    assert [m.data() for m in receive(consumer, 5)] == [b"0", b"1", b"2", b"3", b"4"]
    consumer.seek(got[0].publish_timestamp() - 1000)
    assert receive(consumer, 1)[0].data() == b"0"


def test_reader_reads_from_the_start_and_knows_the_end(client):
    producer = client.create_producer("t", batching_enabled=False)
    for i in range(5):
        producer.send(str(i).encode())
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    got = []
    while reader.has_message_available():
        got.append(reader.read_next(timeout_millis=WAIT_MS).data())
    assert got == [b"0", b"1", b"2", b"3", b"4"]


def test_unsubscribe_forgets_the_position(client):
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s", initial_position=pulsar.InitialPosition.Earliest)
    producer.send(b"x")
    consumer.acknowledge(receive(consumer, 1)[0])
    consumer.unsubscribe()
    again = client.subscribe("t", "s", initial_position=pulsar.InitialPosition.Earliest)
    assert receive(again, 1)[0].data() == b"x"


def test_message_above_the_limit_is_refused(client):
    producer = client.create_producer("t", batching_enabled=False)
    with pytest.raises(pulsar.PulsarException):
        producer.send(bytes(6 * 1024 * 1024))
    producer.send(b"still works")


def test_other_subscription_types_are_refused_clearly(client):
    with pytest.raises(pulsar.PulsarException):
        client.subscribe("t", "shared", consumer_type=pulsar.ConsumerType.Shared)
    client.subscribe("t", "s").close()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_acknowledged_messages_survive(broker, client, end):
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", batching_enabled=False)
    for i in range(200):
        producer.send(str(i).encode())
    for message in receive(consumer, 50):
        consumer.acknowledge(message)
    getattr(broker, end)()
    broker.start()
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    assert [reader.read_next(timeout_millis=WAIT_MS).data() for _ in range(200)] == [str(i).encode() for i in range(200)]
    producer.send(b"after")
    assert reader.read_next(timeout_millis=WAIT_MS).data() == b"after"
