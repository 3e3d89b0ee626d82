"""test_oxbowctl_messages.py - oxbowctl produce and consume on topics with partitions: all of them at once, as Pulsar's own clients do."""
import json
import os
import signal
import subprocess

import pulsar
import pytest

from oxbowd import BUILD

OXBOWCTL = BUILD / "oxbowctl"
pytestmark = pytest.mark.skipif(not OXBOWCTL.exists(), reason="oxbowctl is not built")


def run(broker, *words, text=""):
    done = subprocess.run([OXBOWCTL, "--url", broker.web_url, "--service-url", broker.url, *words], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def split(shared_broker, topic):
    assert shared_broker.rest("PUT", f"persistent/public/default/{topic}/partitions", "3").status == 204
    return topic


def part(topic, n):
    return f"{topic}-partition-{n}"


def test_lines_go_round_and_all_come_back(shared_broker, split):
    run(shared_broker, "produce", split, text="".join(f"{n}\n" for n in range(300)))
    each = [run(shared_broker, "consume", part(split, n)) for n in range(3)]
    assert [len(lines) for lines in each] == [100, 100, 100]
    assert sorted(map(int, run(shared_broker, "consume", split, "-s", "all"))) == list(range(300))
    assert run(shared_broker, "consume", split, "-s", "all") == []


def test_batches_go_to_one_partition_each(shared_broker, split):
    run(shared_broker, "produce", split, "--batch", "10", text="x\n" * 90)
    assert [shared_broker.stats(part(split, n))["msgInCounter"] for n in range(3)] == [30, 30, 30]


@pytest.mark.parametrize("key, java_hash", [("a", 97), ("hello", 99162322), ("polygenelubricants", 0),  # negative, the smallest there is
                                            ("é", 233), ("a☃", 3007 + 0x2603), ("😀", 31 * 0xD83D + 0xDE00)])  # Java counts in UTF-16
def test_a_key_keeps_the_partition_that_java_clients_choose(shared_broker, split, key, java_hash):
    ids = [json.loads(line)["messageId"] for line in run(shared_broker, "-o", "json", "produce", split, "--key", key, "-m", "one", "-m", "two")]
    assert [int(ident.split(":")[2]) for ident in ids] == [java_hash % 3] * 2
    assert run(shared_broker, "consume", part(split, java_hash % 3)) == ["one", "two"]


def test_count_is_over_all_partitions(shared_broker, split):
    run(shared_broker, "produce", split, text="x\n" * 30)
    assert len(run(shared_broker, "consume", split, "-s", "some", "-n", "20")) == 20
    assert len(run(shared_broker, "consume", split, "-s", "some")) == 10


def test_a_partition_that_cannot_be_opened_ends_it(shared_broker, split):
    shared_broker.rest("POST", f"persistent/public/default/{part(split, 1)}/terminate")
    done = subprocess.run([OXBOWCTL, "--url", shared_broker.web_url, "--service-url", shared_broker.url, "produce", split], input="x\n", capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 1 and part(split, 1) in done.stderr


def ctl(broker, *words, **more):
    return subprocess.run([OXBOWCTL, "--url", broker.web_url, "--service-url", broker.url, *words], stderr=subprocess.PIPE, text=True, timeout=60, **more)


def backlog(broker, topic, subscription):
    return broker.stats(topic)["subscriptions"][subscription]["msgBacklog"]


@pytest.fixture
def kept(shared_broker, topic):
    """A topic with 50 messages, some of them larger than any buffer, and a subscription that wants all."""
    shared_broker.rest("PUT", f"persistent/public/default/{topic}/subscription/all")
    run(shared_broker, "produce", topic, text=("small\n" * 9 + "x" * 50000 + "\n") * 5)
    assert backlog(shared_broker, topic, "all") == 50
    return topic


def test_what_cannot_be_written_is_not_acknowledged(shared_broker, kept):
    with open("/dev/full", "w") as full:
        done = ctl(shared_broker, "consume", kept, "-s", "all", stdout=full)
    assert done.returncode == 1 and "standard output: write failed" in done.stderr
    assert len(run(shared_broker, "consume", kept, "-s", "all")) == 50


def test_a_reader_that_goes_away_ends_it_silently(shared_broker, kept):
    reads, writes = os.pipe()
    os.close(reads)
    done = ctl(shared_broker, "consume", kept, "-s", "all", stdout=writes)
    os.close(writes)
    assert done.returncode == -signal.SIGPIPE and done.stderr == ""
    assert backlog(shared_broker, kept, "all") == 50


def test_a_failure_is_said_once_and_names_the_topic(shared_broker, topic):
    shared_broker.rest("PUT", f"persistent/public/default/{topic}")
    shared_broker.rest("POST", f"persistent/public/default/{topic}/terminate")
    said = ctl(shared_broker, "produce", topic, "-m", "x").stderr
    assert said.count("terminated") == 1 and f"persistent://public/default/{topic}" in said
    said = ctl(shared_broker, "consume", "nope/none/there").stderr
    assert said.count("the namespace does not exist") == 1 and "persistent://nope/none/there: " in said


def test_what_is_no_broker_is_said_to_be_none(shared_broker):
    web = shared_broker.web_url.replace("http://", "pulsar://")
    said = ctl(shared_broker, "--service-url", web, "produce", "x", "-m", "y").stderr
    assert "no Pulsar broker" in said and "--service-url" in said


def test_a_topic_that_goes_away_ends_it(shared_broker, topic):
    """Its namespace makes no topics, so that the consumers cannot come back."""
    space = f"public/{topic}"
    assert shared_broker.rest("PUT", f"namespaces/{space}").status == 204
    assert shared_broker.rest("POST", f"namespaces/{space}/autoTopicCreation", '{"allowAutoTopicCreation":false}').status == 204
    assert shared_broker.rest("PUT", f"persistent/{space}/{topic}/partitions", "3").status == 204
    run(shared_broker, "produce", f"{space}/{topic}", text="x\n" * 30)
    consumer = subprocess.Popen([OXBOWCTL, "--service-url", shared_broker.url, "consume", f"{space}/{topic}", "-s", "s", "--follow"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    try:
        assert [consumer.stdout.readline() for _ in range(30)] == ["x\n"] * 30
        assert shared_broker.rest("DELETE", f"persistent/{space}/{topic}/partitions?force=true").status == 204
        out, said = consumer.communicate(timeout=30)
    finally:
        consumer.kill()
    assert (out, consumer.returncode) == ("", 1) and "the topic does not exist" in said and part(topic, "") in said, said


def test_silence_of_a_broker_that_is_gone_is_not_the_end(broker):
    """The last message was acknowledged by itself: only silence can tell that nothing is left."""
    client = pulsar.Client(broker.url)
    shared = client.subscribe("quiet", "s", consumer_type=pulsar.ConsumerType.Shared)
    run(broker, "produce", "quiet", "-m", "first", "-m", "last")
    shared.acknowledge([shared.receive(5000) for _ in range(2)][1])
    client.close()
    assert run(broker, "consume", "quiet") == ["first", "last"]
    consumer = subprocess.Popen([OXBOWCTL, "--service-url", broker.url, "--url", broker.web_url, "consume", "quiet", "-s", "s"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    assert consumer.stdout.readline() == "first\n"
    broker.kill()
    said = consumer.communicate(timeout=60)[1]
    assert consumer.returncode == 1 and "quiet" in said
