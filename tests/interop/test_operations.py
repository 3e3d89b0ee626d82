"""test_operations.py - what an operator sees: clean ends, REST, metrics, oxbowctl."""
import json
import re
import signal
import subprocess

import pulsar
import pytest

from conftest import new_client
from oxbowd import BUILD, topic_path, wait_for
from test_basics import EARLIEST, bodies, numbers, receive, send_numbers

OXBOWCTL = BUILD / "oxbowctl"
needs_oxbowctl = pytest.mark.skipif(not OXBOWCTL.exists(), reason="oxbowctl is not built")


# ---- starting and ending -----------------------------------------------------------------------------------------------

def test_clean_end_leaves_nothing_to_recover(broker):
    client = new_client(broker)
    consumer = client.subscribe("t", "s")
    send_numbers(client, "t", 100)
    for message in receive(consumer, 40):
        consumer.acknowledge(message)
    client.close()
    assert broker.stop() == 0
    assert broker.events("oxbowd.stopped")[-1].endswith("error=OK")
    broker.start()
    stats = broker.stats("t")
    assert stats["subscriptions"]["s"]["msgBacklog"] == 60
    assert not broker.events("mledger.open.last_failed") and not broker.events("mledger.sweep.orphan"), broker.log()
    client = new_client(broker)
    assert bodies(client.subscribe("t", "s"), 60) == numbers(40, 100)
    client.close()


def test_end_under_load_answers_every_send(broker):
    client = new_client(broker)
    producer = client.create_producer("t", batching_enabled=False, max_pending_messages=2000, block_if_queue_full=True)
    acknowledged = []
    for i in range(3000):
        producer.send_async(str(i).encode(), lambda result, ident, i=i: acknowledged.append(i) if result == pulsar.Result.Ok else None)
    wait_for(lambda: len(acknowledged) > 100, "some receipts")
    assert broker.stop() == 0
    broker.start()
    producer.flush()
    assert acknowledged == list(range(3000))
    consumer = client.subscribe("t", "s", initial_position=EARLIEST)
    got = []
    while len(got) < 3000 or got[-1] != 2999:
        got.append(int(consumer.receive(timeout_millis=10000).data()))
    assert list(dict.fromkeys(got)) == list(range(3000))
    client.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(broker, number):
    broker.process.send_signal(number)
    assert broker.process.wait(timeout=20) == 0
    assert broker.events("oxbowd.signal") and broker.events("oxbowd.stopped")


def test_restart_is_quick_after_a_kill(broker):
    client = new_client(broker)
    send_numbers(client, "t", 500)
    client.close()
    broker.restart("kill")
    assert int(re.search(r"ms=(\d+)", broker.events("oxbowd.ready")[-1])[1]) < 2000


def test_settings_of_all_kinds_are_taken(new_broker):
    config = new_broker.folder / "oxbow.conf"
    config.write_text("# a comment\nclusterName = filed\nmaxMessageSize=100000\n")
    process = subprocess.run([*new_broker.command("clusterName=argued"), "--config", config, "--check-config"], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    new_broker.start("clusterName=argued", env={"OXBOW_clusterName": "environment"})
    assert new_broker.rest("GET", "clusters").json() == ["argued"]


def test_help_and_version():
    for option, says in (("--help", "--data DIR"), ("--version", "oxbowd "), ("--help-config", "brokerServicePort")):
        done = subprocess.run([BUILD / "oxbowd", option], capture_output=True, text=True)
        assert done.returncode == 0 and says in done.stdout


# ---- REST --------------------------------------------------------------------------------------------------------------

def test_health(shared_broker):
    for path in ("health", "ready"):
        answer = shared_broker.rest("GET", f"brokers/{path}")
        assert (answer.status, answer.text) == (200, "ok")
    assert shared_broker.rest("GET", "brokers/version").status == 200
    assert shared_broker.rest("GET", "clusters").json() == ["standalone"]


# Members that pulsar-admin 4.0.7 prints and tools read, as far as they have a meaning here.
TOPIC_MEMBERS = {"msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut", "bytesInCounter", "msgInCounter", "bytesOutCounter", "msgOutCounter",
                 "averageMsgSize", "storageSize", "backlogSize", "publishers", "subscriptions", "replication", "deduplicationStatus", "ownerBroker"}
SUBSCRIPTION_MEMBERS = {"msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "msgBacklog", "backlogSize", "unackedMessages", "type", "consumers",
                        "isDurable", "lastConsumedTimestamp", "lastAckedTimestamp", "lastConsumedFlowTimestamp"}
CONSUMER_MEMBERS = {"msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "availablePermits", "consumerName", "address", "connectedSince", "metadata"}
PUBLISHER_MEMBERS = {"accessMode", "msgRateIn", "msgThroughputIn", "averageMsgSize", "producerId", "producerName", "address", "connectedSince", "metadata"}


def test_stats_have_pulsars_members(shared_broker, client, topic):
    consumer = client.subscribe(topic, "s", consumer_name="eater", properties={"a": "b"})
    producer = client.create_producer(topic, producer_name="maker", batching_enabled=False)
    for i in range(10):
        producer.send(bytes(100))
    for message in receive(consumer, 4):
        consumer.acknowledge(message)
    wait_for(lambda: shared_broker.stats(topic)["subscriptions"]["s"]["msgBacklog"] == 6, "four acknowledgements")
    stats = shared_broker.stats(topic)
    sub, publisher = stats["subscriptions"]["s"], stats["publishers"][0]
    assert TOPIC_MEMBERS <= stats.keys() and SUBSCRIPTION_MEMBERS <= sub.keys()
    assert CONSUMER_MEMBERS <= sub["consumers"][0].keys() and PUBLISHER_MEMBERS <= publisher.keys()
    assert (stats["msgInCounter"], sub["msgOutCounter"], sub["type"], sub["isDurable"], publisher["producerName"]) == (10, 10, "Exclusive", True, "maker")
    assert (sub["consumers"][0]["consumerName"], sub["consumers"][0]["metadata"]) == ("eater", {"a": "b"})
    assert stats["bytesInCounter"] >= 1000 and stats["storageSize"] >= 1000 and sub["unackedMessages"] == 6


def test_topics_are_made_listed_and_deleted(shared_broker, client, topic):
    path = topic_path(topic)
    assert shared_broker.rest("PUT", path).status == 204
    assert shared_broker.rest("PUT", path).status == 409
    assert f"persistent://public/default/{topic}" in shared_broker.rest("GET", "persistent/public/default").json()
    consumer = client.subscribe(topic, "s")
    busy = shared_broker.rest("DELETE", path)
    assert busy.status == 412 and topic in busy.reason()
    consumer.close()
    assert shared_broker.rest("DELETE", path).status == 204
    assert shared_broker.rest("DELETE", path).status == 404
    assert shared_broker.rest("GET", path + "/stats").status == 404
    assert f"persistent://public/default/{topic}" not in shared_broker.rest("GET", "persistent/public/default").json()


def test_delete_by_force_closes_clients(shared_broker, topic):
    client = new_client(shared_broker)
    client.subscribe(topic, "s")
    assert shared_broker.rest("DELETE", topic_path(topic) + "?force=true").status == 204
    client.close()


def test_unload_is_not_noticed_by_clients(shared_broker, client, topic):
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic, batching_enabled=False)
    for i in range(5):
        producer.send(str(i).encode())
        message = receive(consumer, 1)[0]
        assert message.data() == str(i).encode()
        consumer.acknowledge_cumulative(message)
        wait_for(lambda: shared_broker.stats(topic)["subscriptions"]["s"]["msgBacklog"] == 0, "the acknowledgement")
        assert shared_broker.rest("PUT", topic_path(topic) + "/unload").status == 204


def test_partitions_by_rest(shared_broker, topic):
    path = topic_path(topic) + "/partitions"
    assert shared_broker.rest("PUT", path, "5").status == 204
    assert shared_broker.rest("GET", path).json()["partitions"] == 5
    assert shared_broker.rest("PUT", path, "5").status == 409
    assert shared_broker.rest("PUT", topic_path(topic + "-x") + "/partitions", "none").status == 400
    assert shared_broker.rest("PUT", topic_path(topic + "-x") + "/partitions", "-1").status == 406


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/", 404), ("GET", "/admin/v2/nothing", 404), ("POST", "/metrics", 405), ("GET", "/admin/v2/persistent/public/default/nobody/stats", 404),
    ("GET", "/admin/v2/persistent/public/default/bad%zz/stats", 400), ("GET", "/" + "a/" * 100, 404), ("GET", "/admin/v2/persistent/public/none", 404),
    ("PUT", "/admin/v2/persistent/public/none/t", 404), ("GET", "/admin/v2/persistent/public/default/%00/stats", 400),
])
def test_bad_requests_say_why(shared_broker, method, path, status):
    answer = shared_broker.http(method, path)
    assert answer.status == status and answer.reason()


def test_too_large_a_body_is_refused(shared_broker, topic):
    answer = shared_broker.rest("PUT", topic_path(topic) + "/partitions", "9" * 5_000_000)
    assert answer.status in (406, 413) and answer.reason()


# ---- metrics -----------------------------------------------------------------------------------------------------------

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_]\w*="(?:[^"\\\n]|\\.)*",?)*\})? (-?\d+(\.\d+)?([eE][-+]?\d+)?|NaN|[-+]Inf)$')


def test_metrics_page_is_prometheus_text(shared_broker, client):
    client.create_producer('odd "name" \\ with\ttab').send(b"x")
    answer = shared_broker.http("GET", "/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain")
    kinds, seen, last = {}, set(), None
    assert answer.text.endswith("\n")
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds and kind in ("counter", "gauge", "histogram", "summary"), line
            kinds[name] = kind
        elif line.startswith("# HELP "):
            assert len(line.split(" ", 3)) == 4
        else:
            sample = SAMPLE.match(line)
            assert sample, line
            family = next((n for n in (sample[1], re.sub(r"_(bucket|sum|count)$", "", sample[1])) if n in kinds), None)
            assert family, f"no TYPE for {line}"
            assert family == last or family not in seen, f"{family} stands in two places"
            assert line.rsplit(" ", 1)[0] not in seen, f"twice: {line}"
            seen |= {family, line.rsplit(" ", 1)[0]}
            last = family
    assert len(kinds) > 10


def test_metrics_count(new_broker):
    new_broker.start()
    client = new_client(new_broker)
    before = new_broker.metrics()
    send_numbers(client, "t", 10)
    after = new_broker.metrics()
    grown = {name for name in after if after[name] > before.get(name, 0)}
    assert any("oxbow_store" in name for name in grown) and len(grown) > 3, grown
    client.close()


# ---- oxbowctl ----------------------------------------------------------------------------------------------------------

def ctl(broker, *words, text=None, status=0):
    command = [OXBOWCTL, "--url", broker.web_url, "--service-url", broker.url, *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


@needs_oxbowctl
def test_ctl_produces_and_consumes_lines(shared_broker, client, topic):
    consumer = client.subscribe(topic, "python")
    ctl(shared_broker, "produce", topic, text="one\ntwo\nthrée\n")
    assert bodies(consumer, 3) == ["one".encode(), b"two", "thrée".encode()]
    assert ctl(shared_broker, "consume", topic, "--count", "3") == "one\ntwo\nthrée\n"


@needs_oxbowctl
def test_ctl_health_and_stats(shared_broker, client, topic):
    client.create_producer(topic).send(b"x")
    assert "ok" in ctl(shared_broker, "brokers", "health")
    assert json.loads(ctl(shared_broker, "-o", "json", "topics", "stats", topic))["msgInCounter"] == 1


@needs_oxbowctl
def test_ctl_failures_have_their_status(shared_broker, topic):
    assert topic in ctl(shared_broker, "topics", "stats", topic, status=1)
    assert ctl(shared_broker, "topics", "nonsense", status=2)
    done = subprocess.run([OXBOWCTL, "--url", "http://127.0.0.1:1", "brokers", "health"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr
