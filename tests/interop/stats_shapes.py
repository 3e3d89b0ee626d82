"""stats_shapes.py - makes topics with a subscription of each type on any broker and tells what its figures look like: each member's name and type.

test_stats_shapes.py compares with golden/stats_shapes.json, recorded from a real Pulsar by golden/capture_stats.py.
"""
import json
import re
import time
import urllib.request

import pulsar

PLAIN = urllib.request.build_opener(urllib.request.ProxyHandler({}))
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
TYPES = {"exclusive": pulsar.ConsumerType.Exclusive, "failover": pulsar.ConsumerType.Failover,
         "shared": pulsar.ConsumerType.Shared, "keyed": pulsar.ConsumerType.KeyShared}
NAMES = re.compile(r"^reader-\w+$")


def shape(value):
    """Names of members with their types; of a list that of its first element."""
    if isinstance(value, dict):
        return {NAMES.sub("READER", name): shape(member) for name, member in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {bool: "bool", int: "int", float: "real", str: "text"}.get(type(value), "null")


def missing(wanted, have, path=""):
    """What a shape lacks of another one, a line each."""
    if type(wanted) is not type(have):
        yield f"{path}: {have}, Pulsar: {wanted}"
    elif isinstance(wanted, dict):
        for name, member in wanted.items():
            if name not in have:
                yield f"{path}/{name} is missing"
            else:
                yield from missing(member, have[name], f"{path}/{name}")
    elif isinstance(wanted, list):
        if wanted and not have:
            yield f"{path}: an empty list, Pulsar: {wanted}"
        elif wanted:
            yield from missing(wanted[0], have[0], f"{path}[]")
    elif wanted != have:
        yield f"{path}: {have}, Pulsar: {wanted}"


class Figures:
    """Clients at work in a namespace, and what the broker says of them."""

    def __init__(self, web_url, service_url, namespace):
        self.web_url, self.namespace = web_url, namespace
        self.client = pulsar.Client(service_url, logger=QUIET)
        self.kept = []

    def topic(self, name, domain="persistent"):
        return f"{domain}://{self.namespace}/{name}"

    def get(self, path):
        with PLAIN.open(f"{self.web_url}/admin/v2/{path}", timeout=40) as answer:
            return json.loads(answer.read())

    def work(self):
        """Five messages to each topic, two of them acknowledged; a reader; a partitioned topic."""
        for name, kind in TYPES.items():
            for domain in ("persistent", "non-persistent"):
                consumer = self.client.subscribe(self.topic(name, domain), "s", consumer_type=kind)
                producer = self.client.create_producer(self.topic(name, domain), properties={"a": "b"})
                for i in range(5):
                    producer.send(b"x%d" % i, partition_key=f"k{i % 2}")
                for _ in range(2):
                    consumer.acknowledge(consumer.receive(5000))
                self.kept += [consumer, producer]
        self.kept.append(self.client.create_reader(self.topic("exclusive"), pulsar.MessageId.earliest))
        request = urllib.request.Request(f"{self.web_url}/admin/v2/persistent/{self.namespace}/parts/partitions", b"2", {"Content-Type": "application/json"}, method="PUT")
        PLAIN.open(request, timeout=40).close()
        self.kept += [self.client.subscribe(self.topic("parts"), "s", consumer_type=TYPES["shared"]), self.client.create_producer(self.topic("parts"))]
        self.kept[-1].send(b"x")

    def of_topics(self):
        for name in TYPES:
            for domain in ("persistent", "non-persistent"):
                for view in ("stats?getEarliestTimeInBacklog=true", "internalStats?metadata=true"):
                    yield f"{domain}/{name}/{view.partition('?')[0]}", self.get(f"{domain}/{self.namespace}/{name}/{view}")
        yield "exclusive/internal-info", self.get(f"persistent/{self.namespace}/exclusive/internal-info")
        for view in ("partitioned-stats", "partitioned-internalStats"):
            yield f"parts/{view}", self.get(f"persistent/{self.namespace}/parts/{view}")

    def of_the_broker(self):
        """What broker-stats says of the namespace's topics; a real Pulsar knows them when its statistics have been made."""
        found = {}
        for _ in range(100):
            bundles = self.get("broker-stats/topics").get(self.namespace, {})
            found = {topic: figures for bundle in bundles.values() for topics in bundle.values() for topic, figures in topics.items()}
            if all(self.topic(name, domain) in found for name in TYPES for domain in ("persistent", "non-persistent")):
                break
            time.sleep(1)
        for name in TYPES:
            for domain in ("persistent", "non-persistent"):
                yield f"broker-stats/{domain}/{name}", found[self.topic(name, domain)]
        pending = self.get("broker-stats/bookieops")[self.namespace]
        yield "broker-stats/bookieops", pending[self.topic("exclusive")]
        report = self.get("broker-stats/load-report")
        yield "broker-stats/load-report", {**report, "lastStats": next(iter(report["lastStats"].values())), "lastBundleGains": []}  # gains are of the moment

    def all(self):
        """(what, shape)"""
        self.work()
        figures = [*self.of_topics(), *self.of_the_broker()]
        self.client.close()
        return [(what, shape(value)) for what, value in figures]
