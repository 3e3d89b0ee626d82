"""test_bad_input.py - broken frames, impossible requests, wrong settings, damaged and full disks: the answer that Pulsar's clients expect or a
sentence that names the thing and the way out; other connections unharmed, the broker alive, nothing acknowledged lost."""
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile

import pulsar
import pytest

from conftest import end, new_client
from oxbowd import SMALL, Broker, wait_for
from rawpulsar import Closed, Connection, command, frame, message_part

FRAME_MAX = 5242880 + 10240
UNKNOWN = 424242  # an id that nobody has given


def full(topic):
    return f"persistent://public/default/{topic}"


@pytest.fixture
def raw(shared_broker):
    """A connection that has said CONNECT."""
    with Connection("127.0.0.1", shared_broker.port) as connection:
        assert connection.connect().name == "connected"
        yield connection


@pytest.fixture
def bare(shared_broker):
    """A connection that has said nothing yet."""
    with Connection("127.0.0.1", shared_broker.port) as connection:
        yield connection


@pytest.fixture(scope="module")
def witness(shared_broker):
    """Another connection, with a producer and a consumer, that must not notice anything."""
    with Connection("127.0.0.1", shared_broker.port) as connection:
        connection.connect()
        make_producer(connection, "witness")
        subscribe(connection, "witness")
        connection.send("flow", consumer_id=1, message_permits=100000)
        connection.count = 0
        yield connection


@pytest.fixture(autouse=True)
def unharmed(request):
    """After each test that breaks something on a connection the witness' messages still go round."""
    breaks = "raw" in request.fixturenames or "bare" in request.fixturenames
    other = request.getfixturevalue("witness") if breaks else None
    yield
    if breaks:
        other.send_message(1, other.count, b"still here %d" % other.count)
        got = sorted((other.receive(), other.receive()), key=lambda f: f.name)
        assert [f.name for f in got] == ["message", "send_receipt"] and got[0].payload == b"still here %d" % other.count
        other.count += 1


def ready(connection, topic):
    """Looks a topic up, as every client does first."""
    assert connection.ask("lookup", topic=full(topic), request_id=1).error() is None


def make_producer(connection, topic, producer_id=1, **values):
    ready(connection, topic)
    return connection.ask("producer", topic=full(topic), producer_id=producer_id, request_id=2, **values)


def subscribe(connection, topic, consumer_id=1, subscription="s", **values):
    ready(connection, topic)
    return connection.ask("subscribe", topic=full(topic), subscription=subscription, sub_type=values.pop("sub_type", 0), consumer_id=consumer_id,
                          request_id=3, **values)


# ---- frames ------------------------------------------------------------------------------------------------------------

PING = frame(command("ping"))
BROKEN_FRAMES = {
    "length 0": struct.pack(">I", 0),
    "length 1": struct.pack(">I", 1) + b"x",
    "length 3": struct.pack(">I", 3) + b"xxx",
    "length above the limit": struct.pack(">I", FRAME_MAX + 1),
    "length of 4 GiB": b"\xff\xff\xff\xff",
    "length of 2 GiB": b"\x7f\xff\xff\xff",
    "command beyond the frame": struct.pack(">II", 8, 100) + b"\x08\x12\x92\x01",
    "command length negative": struct.pack(">II", 8, 0xFFFFFFFF) + b"\x08\x12\x92\x01",
    "command length 0": struct.pack(">II", 4, 0),
    "garbage": frame(b"\xff" * 20),
    "random text": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 4,
    "unknown type": frame(b"\x08\x63"),
    "huge type": frame(b"\x08\xff\xff\xff\xff\x0f"),
    "type without its field": frame(b"\x08\x05"),
    "field of another type": frame(b"\x08\x05\x92\x01\x00"),
    "required field missing": frame(b"\x08\x05\x2a\x03\x0a\x01t"),
    "nested length too long": frame(b"\x08\x05\x2a\x7f\x0a\x01t"),
    "varint without end": frame(b"\x08\x05\x2a\x0b\x10" + b"\x80" * 10),
    "text too long": frame(b"\x08\x05\x2a\x05\x0a\xff\xff\xff\x7f"),
    "no type": frame(b"\x2a\x00"),
    "answer meant for clients": frame(command("success", request_id=1)),
    "message meant for clients": frame(command("message", consumer_id=1, message_id={"ledger_id": 1, "entry_id": 1}), message_part(b"x")),
    "send without a message": frame(command("send", producer_id=1, sequence_id=0)),
    "second connect": frame(command("connect", client_version="again", protocol_version=21)),
}


@pytest.mark.parametrize("data", BROKEN_FRAMES.values(), ids=BROKEN_FRAMES.keys())
def test_broken_frames_close_their_connection_alone(shared_broker, raw, topic, data):
    make_producer(raw, topic)
    raw.send_bytes(data)
    assert raw.closed()


@pytest.mark.parametrize("data", [d for n, d in BROKEN_FRAMES.items() if n != "second connect"],
                         ids=[n for n in BROKEN_FRAMES if n != "second connect"])
def test_broken_frames_before_connect_close(bare, data):
    bare.send_bytes(data)
    assert bare.closed()


@pytest.mark.parametrize("name, values", [("lookup", {"topic": full("t"), "request_id": 1}), ("producer", {"topic": full("t"), "producer_id": 1, "request_id": 1}),
                                          ("flow", {"consumer_id": 1, "message_permits": 1}), ("close_producer", {"producer_id": 1, "request_id": 1})])
def test_commands_before_connect_close(bare, name, values):
    bare.send(name, **values)
    assert bare.closed()


def test_frame_in_small_pieces_is_a_frame(bare):
    for data in (frame(command("connect", client_version="slow", protocol_version=21)), PING):
        for at in range(len(data)):
            bare.send_bytes(data[at:at + 1])
        assert bare.receive().name in ("connected", "pong")


def test_many_frames_at_once_are_answered_in_order(raw):
    raw.send_bytes(b"".join(frame(command("partition_metadata", topic=full("t"), request_id=i)) for i in range(500)))
    assert [raw.expect("partition_metadata_response")["request_id"] for _ in range(500)] == list(range(500))


def test_unknown_fields_are_skipped(raw):
    raw.send_bytes(frame(command("ping") + b"\xf2\x7f\x03abc"))
    raw.expect("pong")
    raw.send_bytes(frame(command("partition_metadata", topic=full("t"), request_id=9) + b"\xf8\x7f\x05"))
    assert raw.expect("partition_metadata_response")["request_id"] == 9


def test_half_a_frame_holds_nothing_up(raw, topic):
    raw.send_bytes(struct.pack(">II", FRAME_MAX, 100) + b"\x08")
    assert raw.quiet(0.2)


def test_connect_answers_the_lower_version(bare):
    answer = bare.connect(protocol_version=12)
    assert (answer.name, answer["protocol_version"], answer["max_message_size"]) == ("connected", 12, 5242880)


def test_a_newer_client_is_answered_with_our_version(bare):
    assert bare.connect(protocol_version=99)["protocol_version"] == 21


# ---- names -------------------------------------------------------------------------------------------------------------

BAD_NAMES = ["bogus://public/default/t", "persistent://public/default", "persistent://public", "persistent://public/default/", "persistent:///default/t",
             "persistent://public//t", "a/b", "", "://", "persistent://", "persistent://public/default/ "]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_topic_names_are_named_by_all_four_commands(raw, name):
    answers = [raw.ask("partition_metadata", topic=name, request_id=1), raw.ask("lookup", topic=name, request_id=2),
               raw.ask("producer", topic=name, producer_id=1, request_id=3),
               raw.ask("subscribe", topic=name, subscription="s", sub_type=0, consumer_id=1, request_id=4)]
    assert [(a["request_id"], a.error()) for a in answers] == [(i, "InvalidTopicName") for i in (1, 2, 3, 4)]
    assert all(a["message"] for a in answers)


def test_missing_namespace(raw):
    name = "persistent://public/none/t"
    for answer in (raw.ask("partition_metadata", topic=name, request_id=1), raw.ask("lookup", topic=name, request_id=1)):
        assert answer.error() == "TopicNotFound" and "amespace" in answer["message"]
    assert raw.ask("producer", topic=name, producer_id=1, request_id=1).error() in ("ServiceNotReady", "TopicNotFound")


@pytest.mark.parametrize("name", [b"\xff\xfe\x80", b"nul\0nul", b"x" * 3000, b"x" * 100000, b"%" * 300, b"\n\r\t", "é".encode() * 200],
                         ids=["not UTF-8", "NUL", "3000", "100000", "percents", "blanks", "accents"])
def test_names_of_any_bytes_and_length_harm_nobody(raw, name):
    """An answer, or the end of this connection for what is no text."""
    name = full("").encode() + name
    try:
        assert raw.ask("lookup", topic=name, request_id=1).name == "lookup_response"
        assert raw.ask("producer", topic=name, producer_id=1, request_id=2).name in ("error", "producer_success")
        assert raw.ask("subscribe", topic=name, subscription="s", sub_type=0, consumer_id=1, request_id=3).name in ("error", "success")
    except Closed:
        assert b"\xff" in name or b"\0" in name


def test_metadata_without_creation_says_not_found(raw):
    answer = raw.ask("partition_metadata", topic=full("nobody-made-this"), request_id=1, metadata_auto_creation_enabled=0)
    assert (answer["response"], answer.error()) == (1, "TopicNotFound")


# ---- sends -------------------------------------------------------------------------------------------------------------

def test_wrong_checksum_is_refused_and_not_stored(shared_broker, raw, topic):
    make_producer(raw, topic)
    raw.send_message(1, 0, b"damaged on its way", crc=12345)
    error = raw.expect("send_error")
    assert (error["producer_id"], error["sequence_id"], error.error()) == (1, 0, "ChecksumError") and error["message"]
    raw.send_message(1, 1, b"whole")
    assert raw.expect("send_receipt")["sequence_id"] == 1
    assert shared_broker.stats(topic)["msgInCounter"] == 1


def test_message_without_a_checksum_passes(raw, topic):
    make_producer(raw, topic)
    subscribe(raw, topic)
    raw.send_message(1, 0, b"bare", checksum=False)
    raw.expect("send_receipt")
    raw.send("flow", consumer_id=1, message_permits=1)
    assert raw.expect("message").payload == b"bare"


def test_old_clients_get_no_checksum(bare, topic):
    bare.connect(protocol_version=5)
    make_producer(bare, topic)
    subscribe(bare, topic)
    bare.send_message(1, 0, b"x")
    bare.expect("send_receipt")
    bare.send("flow", consumer_id=1, message_permits=1)
    got = bare.expect("message")
    assert (got.payload, got.checksum_ok) == (b"x", None)


def message_frame(payload_bytes):
    return frame(command("send", producer_id=1, sequence_id=0), message_part(bytes(payload_bytes), checksum=False))


def test_only_a_frame_above_the_limit_closes(shared_broker, raw, topic):
    """Clients mind maxMessageSize themselves; the broker takes what fits the frame's limit, and never answers a size with an error
    after which the client would send the same again."""
    make_producer(raw, topic)
    raw.send_bytes(message_frame(5242880 + 5000))
    raw.expect("send_receipt")
    raw.send_message(1, 1, b"goes on")
    assert raw.expect("send_receipt")["sequence_id"] == 1
    with pytest.raises(Closed):
        raw.send_bytes(message_frame(5242880 + 20000))
        raw.receive()
    assert shared_broker.stats(topic)["msgInCounter"] == 2


@pytest.mark.parametrize("part", [b"", b"\x0e", b"\x0e\x01\x00", b"\x0e\x01\x00\x00\x00\x00", struct.pack(">I", 1 << 20), struct.pack(">I", 0xFFFFFFFF) + b"x",
                                  struct.pack(">HI", 0x0E01, 0) + struct.pack(">I", 5) + b"\xff" * 5])
def test_messages_that_are_no_messages_are_refused(shared_broker, raw, topic, part):
    make_producer(raw, topic)
    raw.send_bytes(frame(command("send", producer_id=1, sequence_id=0), part))
    try:
        assert raw.receive().name == "send_error"
    except Closed:
        pass
    assert shared_broker.stats(topic)["msgInCounter"] == 0


def test_send_in_a_transaction_is_refused(raw, topic):
    make_producer(raw, topic)
    raw.send_message(1, 0, b"x", txnid_least_bits=1, txnid_most_bits=1)
    assert raw.expect("send_error").error() == "NotAllowedError"
    raw.send_message(1, 1, b"y")
    raw.expect("send_receipt")


def test_send_of_an_unknown_producer_closes(raw):
    raw.send_message(UNKNOWN, 0, b"x")
    assert raw.closed()


def test_send_after_the_producer_was_closed_closes(raw, topic):
    make_producer(raw, topic)
    raw.ask("close_producer", producer_id=1, request_id=5)
    raw.send_message(1, 0, b"x")
    assert raw.closed()


# ---- requests about nobody ---------------------------------------------------------------------------------------------

def test_unknown_producers_and_consumers(raw):
    assert raw.ask("close_producer", producer_id=UNKNOWN, request_id=1).name == "success"
    assert raw.ask("close_consumer", consumer_id=UNKNOWN, request_id=2).name == "success"
    assert raw.ask("unsubscribe", consumer_id=UNKNOWN, request_id=3).error() == "MetadataError"
    assert raw.ask("seek", consumer_id=UNKNOWN, request_id=4, message_publish_time=1).error() == "MetadataError"
    assert raw.ask("get_last_message_id", consumer_id=UNKNOWN, request_id=5).error() == "MetadataError"
    stats = raw.ask("consumer_stats", consumer_id=UNKNOWN, request_id=6)
    assert (stats.name, stats["request_id"], stats.error()) == ("consumer_stats_response", 6, "ConsumerNotFound")


def test_messages_to_unknown_consumers_are_ignored(raw):
    raw.send("flow", consumer_id=UNKNOWN, message_permits=10)
    raw.send("ack", consumer_id=UNKNOWN, ack_type=0, message_id=[{"ledger_id": 1, "entry_id": 1}])
    raw.send("redeliver", consumer_id=UNKNOWN)
    raw.send("ping")
    raw.expect("pong")


def test_flow_of_nothing_closes(raw, topic):
    subscribe(raw, topic)
    raw.send("flow", consumer_id=1, message_permits=0)
    assert raw.closed()


def test_acks_of_what_is_not_there_change_nothing(shared_broker, raw, topic):
    make_producer(raw, topic)
    subscribe(raw, topic)
    raw.send_message(1, 0, b"x")
    ident = raw.expect("send_receipt")["message_id"]
    for kind in (0, 1):
        for ledger, entry in ((999999, 0), (ident["ledger_id"], ident["entry_id"] + 1000), (-1, -1), (2**62, 2**62)):
            raw.send("ack", consumer_id=1, ack_type=kind, message_id=[{"ledger_id": ledger, "entry_id": entry}], request_id=9)
            answer = raw.expect("ack_response")
            assert answer["request_id"] == 9
    assert shared_broker.stats(topic)["subscriptions"]["s"]["msgBacklog"] == 1
    raw.send("flow", consumer_id=1, message_permits=10)
    assert raw.expect("message").payload == b"x"


def test_seek_to_nowhere_is_refused(raw, topic):
    subscribe(raw, topic)
    answer = raw.ask("seek", consumer_id=1, request_id=4)
    assert answer.error() == "MetadataError" and answer["message"]


def test_second_exclusive_consumer_is_busy(shared_broker, raw, topic):
    subscribe(raw, topic)
    with Connection("127.0.0.1", shared_broker.port) as other:
        other.connect()
        ready(other, topic)
        other.send("subscribe", topic=full(topic), subscription="s", sub_type=0, consumer_id=1, request_id=7)
        raw.quiet(0.2)  # it answers the ping by which the broker asks whether the holder is alive
        answer = other.receive()
        assert answer.error() == "ConsumerBusy" and answer["message"].startswith("Exclusive consumer is already connected")
        other.send("subscribe", topic=full(topic), subscription="s", sub_type=1, consumer_id=2, request_id=8)
        raw.quiet(0.2)
        assert other.receive().error() == "ConsumerBusy"
        assert subscribe(other, topic, durable=0, consumer_id=3).error() in ("NotAllowedError", "ConsumerBusy")


def test_a_holder_that_is_dead_gives_way(new_broker):
    new_broker.start(*SMALL, "connectionLivenessCheckTimeoutMillis=300")
    with Connection("127.0.0.1", new_broker.port) as dead, Connection("127.0.0.1", new_broker.port) as other:
        dead.connect()
        other.connect()
        subscribe(dead, "t")
        make_producer(dead, "t", producer_name="me")
        dead.pongs = False
        assert subscribe(other, "t").name == "success"
        assert make_producer(other, "t", producer_name="me").name == "producer_success"


def test_same_producer_name_is_busy(shared_broker, raw, topic):
    make_producer(raw, topic, producer_name="me")
    answer = make_producer(raw, topic, producer_id=2, producer_name="me")
    assert answer.error() == "ProducerBusy" and "me" in answer["message"]


def test_subscription_without_a_name(raw, topic):
    answer = subscribe(raw, topic, subscription="")
    assert answer.name == "error" and answer["message"]


def test_missing_topic_without_creation(raw, topic):
    assert subscribe(raw, topic, force_topic_creation=0).error() == "TopicNotFound"


def test_transactions_are_refused_one_by_one(raw):
    for name, values, answer in (("new_txn", {}, "error"), ("tc_connect", {"tc_id": 0}, "error"),
                                 ("add_partition_to_txn", {"partitions": ["t"]}, "error"), ("end_txn", {"txn_action": 0}, "error")):
        got = raw.ask(name, request_id=11, **values)
        assert got["request_id"] == 11 and got.error() is not None and got["message"], (name, got, answer)
    raw.send("ping")
    raw.expect("pong")


def test_connections_that_say_nothing(shared_broker, raw):
    idle = [socket.create_connection(("127.0.0.1", shared_broker.port)) for _ in range(200)]
    raw.send("ping")
    raw.expect("pong")
    for one in idle:
        one.close()


# ---- the program: settings, folders, ports -----------------------------------------------------------------------------

def run(broker, *settings, data=None, env=None, before=()):
    """Runs oxbowd where it should refuse, and gives its status and what it says."""
    words = broker.command(*settings)
    if data:
        words[words.index("--data") + 1] = str(data)
    done = subprocess.run([*before, *words], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
    return done.returncode, done.stderr


def sentence(text):
    """The one sentence for the user: the line that begins with the program's name."""
    lines = [line for line in text.splitlines() if line.startswith("oxbowd: ")]
    assert len(lines) == 1, text
    return lines[0]


@pytest.mark.parametrize("setting, says", [
    ("maxMesageSize=1000000", ["maxMesageSize", "maxMessageSize"]),
    ("brokerServicePort=hello", ["brokerServicePort", "hello"]),
    ("brokerServicePort=70000", ["brokerServicePort", "70000", "65535"]),
    ("storeSyncPolicy=sometimes", ["storeSyncPolicy", "sometimes", "sync-interval"]),
    ("allowAutoTopicCreation=perhaps", ["allowAutoTopicCreation", "perhaps", "true"]),
    ("metadataStoreUrl=zk:localhost", ["metadataStoreUrl", "zk:localhost", "lmdb:"]),
    ("noEquals", ["noEquals"]),
])
def test_bad_settings_are_named(new_broker, setting, says):
    status, text = run(new_broker, setting)
    assert status == 2 and all(word in sentence(text) for word in says), text
    assert not new_broker.data.exists()


def test_bad_settings_in_a_file_are_named_with_their_line(new_broker):
    file = new_broker.folder / "oxbow.conf"
    file.write_text("# ours\n\nclusterName=one\nmaxMesageSize=5\n")
    done = subprocess.run([new_broker.command()[0], "--config", file, "--check-config"], capture_output=True, text=True)
    assert done.returncode == 2 and all(word in done.stderr for word in ("oxbow.conf", "4", "maxMesageSize", "maxMessageSize")), done.stderr
    file.write_text("clusterName=one\n")
    assert subprocess.run([new_broker.command()[0], "--config", file, "--check-config"], capture_output=True).returncode == 0
    done = subprocess.run([new_broker.command()[0], "--config", new_broker.folder / "none.conf"], capture_output=True, text=True)
    assert done.returncode == 2 and "none.conf" in sentence(done.stderr)


def test_bad_settings_in_the_environment_are_named(new_broker):
    status, text = run(new_broker, env={"OXBOW_maxMessageSize": "tiny"})
    assert status == 2 and "maxMessageSize" in sentence(text) and "tiny" in text


def test_unknown_options_are_named(new_broker):
    done = subprocess.run([new_broker.command()[0], "--dta", "x"], capture_output=True, text=True)
    assert done.returncode == 2 and "--dta" in done.stderr


def test_messages_that_fit_no_segment_are_refused_at_the_start(new_broker):
    status, text = run(new_broker, "storeSegmentSizeMB=8", "maxMessageSize=5242880")
    assert status == 2 and all(word in sentence(text) for word in ("maxMessageSize", "storeSegmentSizeMB")), text


# fault: H4
def test_data_folder_in_use(broker):
    status, text = run(broker, "brokerServicePort=0", "webServicePort=0")
    assert status == 1 and "another oxbowd runs on this directory" in sentence(text) and str(broker.data) in sentence(text)
    client = new_client(broker)
    client.create_producer("t").send(b"unharmed")
    client.close()


@pytest.mark.parametrize("key", ["brokerServicePort", "webServicePort"])
def test_taken_port(broker, key):
    port = broker.port if key == "brokerServicePort" else broker.web_port
    other = {"brokerServicePort": "webServicePort", "webServicePort": "brokerServicePort"}[key]
    status, text = run(broker, f"{key}={port}", f"{other}=0", data=broker.folder / "other")
    assert status == 1 and str(port) in sentence(text) and key in sentence(text)


def test_data_folder_below_a_file(new_broker):
    (new_broker.folder / "file").write_text("")
    status, text = run(new_broker, data=new_broker.folder / "file" / "data")
    assert status == 1 and str(new_broker.folder / "file") in sentence(text) and "--data" in sentence(text)


@pytest.fixture
def nobody(new_broker):
    """What goes before a command so that it is run by somebody who is not root: root may write everywhere."""
    before = () if os.geteuid() else ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    program = pathlib.Path(new_broker.command()[0])
    if before and not (shutil.which("setpriv") and all(parent.stat().st_mode & 1 for parent in program.parents)):
        pytest.skip("needs a user that is not root and can reach the program")
    return before


@pytest.mark.parametrize("env, says_unit", [({}, False), ({"INVOCATION_ID": "0123456789abcdef"}, True)])
def test_data_folder_that_may_not_be_written(new_broker, nobody, env, says_unit):
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        data.mkdir(mode=0o555)
        os.chmod(folder, 0o755)
        status, text = run(new_broker, data=data, before=nobody, env=env)
    assert status == 1 and str(data) in sentence(text) and "right to write" in sentence(text), text
    assert ("ReadWritePaths=" in sentence(text)) == says_unit


def test_storage_folder_that_the_unit_forbids(nobody):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        with Broker(folder) as broker:
            plain, other = broker.command, pathlib.Path(folder) / "other"
            other.mkdir(mode=0o555)
            broker.command = lambda *settings: [*nobody, *plain(*settings)]
            broker.start(env={"INVOCATION_ID": "0123456789abcdef"})
            answer = broker.rest("POST", "bookie-clusters/big", json.dumps({"metadataServiceUri": f"embedded:{other}/big"}))
            assert answer.status == 400 and str(other) in answer.reason() and "its unit: ReadWritePaths=" in answer.reason(), answer.text
            end(broker)


# ---- full disks --------------------------------------------------------------------------------------------------------

def fill_up(broker, topic):
    """Sends until the disk is full; gives what was acknowledged and the answer to the first send that was not."""
    with Connection("127.0.0.1", broker.port) as raw:
        raw.connect()
        make_producer(raw, topic)
        for i in range(4000):
            raw.send_message(1, i, b"%08d" % i + bytes(100000), checksum=False)
            answer = raw.receive()
            if answer.name != "send_receipt":
                return list(range(i)), answer
    raise AssertionError("the disk did not fill up")


def test_no_new_segment_below_the_reserve(broker):
    """The reserve is larger than the disk: the one segment that a start may always make is filled, then nothing new is taken and all is served."""
    client = new_client(broker)
    client.create_producer("t").send(b"before")
    client.close()
    broker.stop()
    if shutil.disk_usage(broker.folder).total > 2**40:
        pytest.skip("the disk is larger than the largest reserve")
    broker.start(*SMALL, "storeReserveMB=1048576")
    client = new_client(broker, operation_timeout_seconds=5)
    acknowledged, answer = fill_up(broker, "t")
    assert 10 < len(acknowledged) < 200 and answer.error() == "PersistenceError" and "full" in answer["message"], answer
    health = broker.rest("GET", "brokers/health")
    assert health.status == 503 and "full" in health.reason()
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    assert reader.read_next(timeout_millis=5000).data() == b"before"
    assert [int(reader.read_next(timeout_millis=5000).data()[:8]) for _ in acknowledged] == acknowledged
    client.close()
    broker.stop()
    broker.start(*SMALL)
    client = new_client(broker)
    reader = client.create_reader("t", client.create_producer("t").send(b"after"), start_message_id_inclusive=True)
    assert reader.read_next(timeout_millis=5000).data() == b"after"
    client.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 96 MiB; needs root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("needs root and the right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_that_fills_up(tmp_path, small_disk):
    with Broker(tmp_path, small_disk / "data") as broker:
        broker.start(*SMALL, "storeReserveMB=1", "managedLedgerMaxEntriesPerLedger=100", "managedLedgerMinLedgerRolloverTimeMinutes=0")
        client = new_client(broker, operation_timeout_seconds=5)
        consumer = client.subscribe("t", "s")
        reader = client.create_reader("t", pulsar.MessageId.earliest)
        acknowledged, answer = fill_up(broker, "t")
        assert len(acknowledged) > 300 and answer.error() == "PersistenceError" and "full" in answer["message"], answer
        health = broker.rest("GET", "brokers/health")
        assert health.status == 503 and "full" in health.reason()
        refused_while_full(broker)
        seen = [int(reader.read_next(timeout_millis=10000).data()[:8]) for _ in acknowledged]
        assert seen == acknowledged
        for _ in acknowledged:
            consumer.acknowledge(consumer.receive(timeout_millis=10000))
        wait_for(lambda: broker.rest("GET", "brokers/health").status == 200, "space was freed", 30)
        client.create_producer("t", batching_enabled=False).send(b"after")
        assert consumer.receive(timeout_millis=10000).data() == b"after"
        client.close()
        end(broker)


def refused_while_full(broker):
    """Sooner or later there is no room even for a ledger: a producer that comes then is told so, and the topic stays as it is for its consumers."""
    def answer():
        with Connection("127.0.0.1", broker.port) as raw:
            raw.connect()
            got = make_producer(raw, "t")
            if got.name == "producer_success":
                raw.send_message(1, 0, bytes(100000), checksum=False)
                assert raw.expect("send_error").error() == "PersistenceError"
            return got if got.error() == "PersistenceError" else None
    assert "full" in wait_for(answer, "a producer refused for the full disk", 10, 0.1)["message"]


# ---- damage ------------------------------------------------------------------------------------------------------------

MARK = b"THIS-ENTRY-WILL-BE-DAMAGED"


def flip(folder, pattern):
    """Flips a byte inside each place where the pattern stands in segment files; gives (file, offset of the pattern)."""
    found = []
    for path in sorted(folder.glob("seg-*")):
        data = bytearray(path.read_bytes())
        at = data.find(pattern)
        while at >= 0:
            data[at + 3] ^= 0x40
            found.append((path.name, at))
            at = data.find(pattern, at + 1)
        path.write_bytes(data)
    return found


def fill_and_damage(broker, how):
    client = new_client(broker)
    client.subscribe("t", "s").close()
    producer = client.create_producer("t", batching_enabled=False)
    ids = [producer.send(MARK if i == 40 else b"entry %d" % i) for i in range(100)]
    for i in range(200 if how == "sealed" else 0):
        client.create_producer("other").send(bytes(100000))
    client.close()
    broker.stop()
    damaged = flip(broker.data / "store", MARK)
    assert len(damaged) == 1
    return *damaged[0], ids[41]


@pytest.mark.parametrize("how", ["active", "sealed"])
def test_damaged_entry_is_reported_and_all_else_served(broker, how):
    file, offset, ident = fill_and_damage(broker, how)
    broker.start(*SMALL)
    client = new_client(broker)
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    assert [reader.read_next(timeout_millis=5000).data() for _ in range(40)] == [b"entry %d" % i for i in range(40)]
    with pytest.raises(pulsar.Timeout):
        reader.read_next(timeout_millis=500)
    lines = broker.events("store.entry.corrupt")
    assert lines and file in lines[0] and "entry=40 " in lines[0], broker.log()[-3000:]
    told = int(lines[0].split("offset=")[1].split()[0])
    assert told <= offset < told + 4096
    behind = client.create_reader("t", ident, start_message_id_inclusive=True)
    assert [behind.read_next(timeout_millis=5000).data() for _ in range(59)] == [b"entry %d" % i for i in range(41, 100)]
    client.create_producer("t").send(b"new")
    assert behind.read_next(timeout_millis=5000).data() == b"new"
    client.close()
    broker.stop()
    broker.start(*SMALL, "autoSkipNonRecoverableData=true")
    client = new_client(broker)
    consumer = client.subscribe("t", "s")
    wanted = [b"entry %d" % i for i in range(100) if i != 40] + [b"new"]
    assert [consumer.receive(timeout_millis=5000).data() for _ in wanted] == wanted
    assert broker.events("mledger.read.lost_entry") and "skipped=" in broker.events("mledger.read.lost_entry")[0]
    client.close()
