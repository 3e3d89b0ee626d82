"""test_oxbowctl_messages.py - oxbowctl produce and consume on topics with partitions: all of them at once, as Pulsar's own clients do."""
import json
import subprocess

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


@pytest.mark.parametrize("key, java_hash", [("a", 97), ("hello", 99162322), ("polygenelubricants", 0)])  # the last one's is negative, the smallest there is
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
