"""test_metrics.py - /metrics: Prometheus can read it, it has Pulsar's families with Pulsar's labels, and says what is true."""
import datetime
import http.client
import json
import pathlib
import re
import socket
import sys
import threading

import pulsar
import pytest
from prometheus_client.parser import text_string_to_metric_families

from conftest import new_client
from oxbowd import SMALL, topic_path, wait_for

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import metricsgen

SPEC = metricsgen.spec()
SERVED = {family["name"]: family for family in SPEC["families"]}
GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden/metrics_pulsar.json").read_text())
KINDS = {"excl": pulsar.ConsumerType.Exclusive, "shared": pulsar.ConsumerType.Shared, "failover": pulsar.ConsumerType.Failover,
         "keyed": pulsar.ConsumerType.KeyShared}
TWICE = ("pulsar_out_bytes_total", "pulsar_out_messages_total")  # Pulsar shows what went out by subscription and again by consumer: docs/metrics.md
ODD = 'odd "name" \\ é'
NAMESPACE = {"cluster": "standalone", "namespace": "public/default"}


def check_lines(text):
    """What a strict reader of the text format holds: one HELP and TYPE before a family's lines, all of them together, none twice."""
    kinds, last, lines = {}, None, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in kinds, f"{name} begins twice"
            kinds[name], last = None, name
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == last and kinds[name] is None and kind in ("counter", "gauge", "summary"), line
            kinds[name] = kind
        else:
            name = re.match(r"[a-zA-Z_:][\w:]*", line)[0]
            suffix = name[len(last):] if name.startswith(last) else None
            assert suffix == "" or (kinds[last] == "summary" and suffix in ("_count", "_sum")), f"{line} stands among the lines of {last}"
            series = line.rsplit(" ", 1)[0]
            assert series not in lines, f"twice: {line}"
            lines.add(series)


def scrape(broker):
    """{family: list of (labels, value)}, checked."""
    answer = broker.http("GET", "/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    check_lines(answer.text)
    found = {}
    for family in text_string_to_metric_families(answer.text):
        name = family.name + "_total" if family.type == "counter" and family.name + "_total" in SERVED else family.name
        for sample in family.samples:
            assert name in SERVED, f"{name} is not in spec/metrics.json"
            assert SERVED[name]["type"] == family.type or family.type == "unknown", name
            assert SERVED[name]["help"] == family.documentation, name
            found.setdefault(name, []).append((dict(sample.labels), sample.value))
    return found


def value(page, name, **labels):
    """The one value of a family whose line has these labels."""
    rows = [v for found, v in page.get(name, ()) if all(found.get(k) == x for k, x in labels.items())]
    assert len(rows) == 1, (name, labels, page.get(name))
    return rows[0]


def in_topic(topic):
    return {**NAMESPACE, "topic": f"persistent://public/default/{topic}"}


class Life:
    """Topics of every kind with clients: what the golden pages were taken of."""

    def __init__(self, broker):
        self.broker, self.client, self.keep = broker, new_client(broker), []
        for kind, type_ in KINDS.items():
            self.subscribe(f"t-{kind}", f"s-{kind}", type_, f"c-{kind}")
            producer = self.produce(f"t-{kind}", f"p-{kind}")
            for _ in range(10):
                producer.send(b"x" * 100)
        self.keep[-1].send(b"later", deliver_after=datetime.timedelta(minutes=10), partition_key="k")
        self.partitioned()
        self.nonpersistent()
        self.compacted()
        self.produce(ODD, "p\"\n").send(b"y")
        self.subscribe(ODD, 's"\\\né', pulsar.ConsumerType.Shared, "c")

    def subscribe(self, topic, name, type_, consumer):
        self.keep.append(self.client.subscribe(topic, name, consumer_type=type_, consumer_name=consumer))
        return self.keep[-1]

    def produce(self, topic, name=None):
        self.keep.append(self.client.create_producer(topic, producer_name=name))
        return self.keep[-1]

    def partitioned(self):
        assert self.broker.rest("PUT", f"{topic_path('parts')}/partitions", "2").status == 204
        self.subscribe("parts", "sp", pulsar.ConsumerType.Shared, "cp")
        for i in range(20):
            self.produce("parts").send(b"z" * 2000) if i == 0 else self.keep[-1].send(b"z" * 2000)

    def nonpersistent(self):
        self.subscribe("non-persistent://public/default/np", "snp", pulsar.ConsumerType.Shared, "cnp")
        self.produce("non-persistent://public/default/np").send(b"n")

    def compacted(self):
        producer = self.client.create_producer("compacted", batching_enabled=False)
        self.keep.append(producer)
        for i in range(20):
            producer.send(b"v", partition_key=f"k{i % 3}")
        path = f"{topic_path('compacted')}/compaction"
        assert self.broker.rest("PUT", path).status == 204
        wait_for(lambda: self.broker.rest("GET", path).json()["status"] == "SUCCESS", "compaction")

    def close(self):
        self.client.close()


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    from oxbowd import Broker
    with Broker(tmp_path_factory.mktemp("metrics")) as broker:
        broker.start(*SMALL, "statsUpdateFrequencyInSecs=1")
        world = Life(broker)
        yield world
        world.close()
        assert broker.stop() == 0 and broker.trouble() is None, broker.log()[-4000:]


def set_key(broker, key, text):
    assert broker.rest("POST", f"brokers/configuration/{key}/{text}").status == 200


@pytest.fixture
def switches(life):
    """Settings by name, as they were again after the test."""
    changed = []

    def switch(**keys):
        for key, text in keys.items():
            set_key(life.broker, key, text)
            changed.append(key)
    yield switch
    for key in changed:
        assert life.broker.rest("DELETE", f"brokers/configuration/{key}").status == 200


# ---- the form ----------------------------------------------------------------------------------------------------------

def test_every_family_that_is_served_is_in_the_table_and_the_other_way_round(life, switches):
    switches(exposeConsumerLevelMetricsInPrometheus="true", exposeProducerLevelMetricsInPrometheus="true")
    life.keep[1].send(b"again")
    page = wait_for(lambda: (p := scrape(life.broker)) and "pulsar_storage_write_latency_count" in p and p, "the topic has been published to lately")
    absent = {name for name in SERVED if name not in page}
    moving = {name for name in absent if name.startswith("bookie_cluster_") and "when" in SERVED[name]}
    assert absent == moving, f"not on the page: {sorted(absent - moving)}"


@pytest.mark.parametrize("kind, keys", [
    ("default", {}),
    ("all", {"exposeConsumerLevelMetricsInPrometheus": "true", "exposeProducerLevelMetricsInPrometheus": "true", "splitTopicAndPartitionLabelInPrometheus": "true"}),
    ("namespace", {"exposeTopicLevelMetricsInPrometheus": "false"})])
def test_labels_and_families_are_those_of_pulsar(life, switches, kind, keys):
    switches(**keys)
    life.keep[1].send(b"again")
    page = wait_for(lambda: (p := scrape(life.broker)) and "pulsar_storage_write_latency_count" in p and p, "the topic has been published to lately")
    for name, theirs in GOLDEN[kind].items():
        if name not in SERVED:
            continue
        assert name in page, f"{name} is not there"
        summary = SERVED[name]["type"] == "summary"  # whose count and sum have no quantile
        ours = {tuple(sorted(labels)) for labels, _ in page[name] if not summary or "quantile" in labels}
        assert ours == {tuple(sorted(labels)) for labels in theirs["labels"] if name not in TWICE or "consumer_id" not in labels}, name
    for name in page:
        assert not metricsgen.is_pulsars(name) or name in GOLDEN[kind], f"Pulsar does not show {name} so"


def test_odd_names_come_back_as_they_are(life):
    page = scrape(life.broker)
    odd = {**in_topic(ODD), "subscription": 's"\\\né'}
    assert value(page, "pulsar_subscription_consumers_count", **odd) == 1
    assert value(page, "pulsar_in_messages_total", **in_topic(ODD)) == 1


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
def test_head_has_no_body(life, path):
    port = int(life.broker.web_url.rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(2):  # the connection stays
        connection.request("HEAD", path)
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read() == b"" and answer.headers["Transfer-Encoding"] == "chunked"
    connection.close()


def test_http_1_0_gets_the_page_up_to_the_end_of_the_connection(life):
    port = int(life.broker.web_url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        whole = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    head, _, body = whole.partition("\r\n\r\n")
    assert "Transfer-Encoding" not in head and "Content-Length" not in head and "Connection: close" in head
    check_lines(body)


def test_clients_that_go_in_the_middle_leave_nothing_behind(life):
    port = int(life.broker.web_url.rsplit(":", 1)[1])
    for i in range(20):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            if i % 2:
                s.recv(100)
    assert scrape(life.broker)


def test_scrapes_at_the_same_time_each_get_a_whole_page(life):
    pages = []
    threads = [threading.Thread(target=lambda: pages.append(life.broker.http("GET", "/metrics").text)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pages) == 20
    for page in pages:
        check_lines(page)


# ---- the values --------------------------------------------------------------------------------------------------------

def test_values_are_those_of_the_stats(life):
    def still():
        """A page, and the statistics of the topics, between which nothing was delivered."""
        before = {kind: life.broker.stats(f"t-{kind}") for kind in KINDS}
        page, after = scrape(life.broker), {kind: life.broker.stats(f"t-{kind}") for kind in KINDS}
        moved = any(before[kind]["msgOutCounter"] != after[kind]["msgOutCounter"] or after[kind]["msgOutCounter"] < 10 for kind in KINDS)
        return None if moved else (page, after)
    page, all_stats = wait_for(still, "everything is delivered")
    for kind in KINDS:
        stats, labels = all_stats[kind], in_topic(f"t-{kind}")
        sub = stats["subscriptions"][f"s-{kind}"]
        own = {**labels, "subscription": f"s-{kind}"}
        assert value(page, "pulsar_in_messages_total", **labels) == stats["msgInCounter"]
        assert value(page, "pulsar_in_bytes_total", **labels) == stats["bytesInCounter"]
        assert value(page, "pulsar_storage_size", **labels) == stats["storageSize"]
        assert value(page, "pulsar_producers_count", **labels) == 1
        assert value(page, "pulsar_subscription_back_log", **own) == sub["msgBacklog"]
        assert value(page, "pulsar_subscription_unacked_messages", **own) == sub["unackedMessages"]
        assert value(page, "pulsar_out_messages_total", **own) == sub["msgOutCounter"]
        assert value(page, "pulsar_out_bytes_total", **own) == sub["bytesOutCounter"]
        assert value(page, "pulsar_subscription_delayed", **own) == sub["msgDelayed"]
    assert value(page, "pulsar_subscription_back_log_no_delayed", **in_topic("t-keyed"), subscription="s-keyed") == \
        value(page, "pulsar_subscription_back_log", **in_topic("t-keyed"), subscription="s-keyed") - 1
    assert value(page, "pulsar_compaction_removed_event_count", **in_topic("compacted")) == 17
    assert value(page, "pulsar_compaction_compacted_entries_count", **in_topic("compacted")) == 3
    assert value(page, "pulsar_health") == 1


def test_broker_is_the_sum_of_its_topics(life):
    page = scrape(life.broker)

    def total(name):
        return sum(v for _, v in page[name])
    assert value(page, "pulsar_broker_topics_count") == total("pulsar_topics_count") == len(page["pulsar_rate_in"])
    assert value(page, "pulsar_broker_producers_count") == total("pulsar_producers_count")
    assert value(page, "pulsar_broker_consumers_count") == total("pulsar_consumers_count")
    assert value(page, "pulsar_broker_subscriptions_count") == total("pulsar_subscriptions_count")
    assert value(page, "pulsar_broker_storage_size") == total("pulsar_storage_size")
    assert value(page, "pulsar_broker_msg_backlog") == total("pulsar_msg_backlog") == total("pulsar_subscription_back_log")
    assert total("pulsar_broker_in_bytes_total") == total("pulsar_in_bytes_total")
    assert total("pulsar_broker_out_bytes_total") == total("pulsar_out_bytes_total")
    before = {name: value(page, name, **labels) for name, labels in (("pulsar_broker_in_bytes_total", {"system_topic": "false"}), ("pulsar_broker_out_bytes_total", {"system_subscription": "false"}))}
    assert life.broker.rest("PUT", f"{topic_path('compacted')}/unload").status == 204
    after = scrape(life.broker)
    for name, was in before.items():
        assert max(v for labels, v in after[name] if "false" in labels.values()) >= was, f"{name} has fallen with a topic that was unloaded"
    wait_for(lambda: (in_topic("compacted"), 1) in scrape(life.broker)["pulsar_producers_count"], "its producer comes back")


def test_namespace_sums_are_those_of_the_topics(life, switches):
    topics = scrape(life.broker)
    switches(exposeTopicLevelMetricsInPrometheus="false")
    sums = scrape(life.broker)
    for name in ("pulsar_producers_count", "pulsar_in_messages_total", "pulsar_storage_size", "pulsar_msg_backlog", "pulsar_out_bytes_total"):
        assert value(sums, name, **NAMESPACE) == sum(v for labels, v in topics[name] if labels["namespace"] == "public/default"), name


def test_latencies_and_sizes_are_counted_once_each(life):
    producer = life.keep[1]
    sent = [3, 200, 3000, 200000]

    def interval():
        for size in sent:
            producer.send(b"s" * size)
        page, labels = scrape(life.broker), in_topic("t-excl")
        if not any(found.get("topic") == labels["topic"] for found, _ in page.get("pulsar_entry_size_count", ())):
            return None
        sizes = [value(page, f"pulsar_entry_size_le_{n}", **labels) for n in ("128", "512", "1_kb", "2_kb", "4_kb", "16_kb", "100_kb", "1_mb", "overflow")]
        times = [value(page, f"pulsar_storage_write_latency_{n}", **labels)
                 for n in ("le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000", "overflow")]
        assert sum(sizes) == value(page, "pulsar_entry_size_count", **labels) == sum(times) == value(page, "pulsar_storage_write_latency_count", **labels)
        used = sizes[0] and sizes[1] and sizes[4] and sizes[7]
        return used and value(page, "pulsar_storage_write_latency_sum", **labels) > 0
    wait_for(interval, "an interval with entries of each size")


def test_publish_latency_and_lookups_are_counted(life):
    before = scrape(life.broker)
    life.keep[1].send(b"one more")
    life.produce("looked-up").close()
    after = scrape(life.broker)
    text = life.broker.metrics()
    assert text["pulsar_broker_publish_latency_count"] > 0 and text["pulsar_broker_publish_latency_sum"] > 0
    assert value(after, "pulsar_broker_lookup_answers_total") > value(before, "pulsar_broker_lookup_answers_total")
    assert text["pulsar_broker_lookup_count"] == value(after, "pulsar_broker_lookup_answers_total") + value(after, "pulsar_broker_lookup_failures_total")
    assert value(after, "pulsar_connection_created_total_count") >= value(after, "pulsar_active_connections") >= 1


def test_the_process_is_told_of(life):
    page = scrape(life.broker)
    pid = life.broker.process.pid
    resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024
    assert abs(value(page, "process_resident_memory_bytes") - resident) < 64 << 20
    assert value(page, "process_virtual_memory_bytes") > value(page, "process_resident_memory_bytes")
    files = len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))
    assert abs(value(page, "process_open_fds") - files) <= 10 and value(page, "process_max_fds") >= files
    assert 0 < value(page, "process_cpu_seconds_total") < 600
    assert value(page, "pulsar_lb_memory_usage") > 0
    assert value(page, "process_start_time_seconds") == pytest.approx(datetime.datetime.now().timestamp(), abs=300)


def test_topics_that_come_and_go_while_it_is_made(new_broker):
    new_broker.start(*SMALL)
    stop = threading.Event()

    def churn(letter):
        i = 0
        while not stop.is_set():
            assert new_broker.rest("PUT", topic_path(f"{letter}{i % 40}")).status in (204, 409)
            assert new_broker.rest("DELETE", topic_path(f"{letter}{(i + 20) % 40}")).status in (204, 404)
            i += 1
    threads = [threading.Thread(target=churn, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            scrape(new_broker)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_clients_that_take_nothing_cost_little_and_hide_nothing(new_broker):
    """Pages that are larger than what the kernel takes: the figures of the oldest ones are given up, and others get new ones."""
    new_broker.start(*SMALL, "brokerDeleteInactiveTopicsEnabled=false")
    port = int(new_broker.web_url.rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    for i in range(2000):
        connection.request("PUT", f"/admin/v2/persistent/public/default/{'long' * 60}-{i}")
        answer = connection.getresponse()
        assert answer.read() == b"" and answer.status == 204
    connection.close()

    def resident():
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{new_broker.process.pid}/status").read_text())[1])
    before, stuck = resident(), []
    for _ in range(12):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(20)
        s.connect(("127.0.0.1", port))
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert s.recv(15) == b"HTTP/1.1 200 OK"
        stuck.append(s)
    assert resident() - before < 150_000
    page = wait_for(lambda: (p := new_broker.http("GET", "/metrics")).status == 200 and p.text, "a page beside those")
    assert page.endswith("\n") and page.count("pulsar_rate_in{") == 2000
    first, size = stuck[0], 0
    with pytest.raises(ConnectionError):  # it wants more: its figures are not kept for it
        while data := first.recv(1 << 20):
            size += len(data)
        raise ConnectionError if not data and size < len(page) else AssertionError("the first client got all of its page")
    for s in stuck:
        s.close()
    wait_for(lambda: "pulsar_topics_count" in new_broker.http("GET", "/metrics").text, "the others go")
