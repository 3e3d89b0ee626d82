"""test_figures.py - what a broker tells of its topics, bundles and backlogs is true, and found under names of any kind."""
import json
import time
import urllib.parse

import pulsar
import pytest

NAMES = ["plain", "a/b", "x%2Fy", "with space", "plus+sign", "ключ"]


def send(client, topic, count, **options):
    producer = client.create_producer(topic, batching_enabled=False, **options)
    ids = [producer.send(b"m%d" % i) for i in range(count)]
    producer.close()
    return ids


def path_of(name):
    return f"persistent/public/default/{urllib.parse.quote(name, safe='')}"


def twice(name):
    return urllib.parse.quote(urllib.parse.quote(name, safe=""), safe="")


# ---- backlogs

@pytest.mark.parametrize("name", NAMES)
def test_a_backlog_is_looked_through_whatever_the_subscriptions_name(shared_broker, client, name):
    topic = "persistent://public/default/looked-through-" + name.replace("/", "-")
    path = path_of(topic.rpartition("/")[2])
    assert shared_broker.rest("PUT", path).status == 204
    subscription = f"{path}/subscription/{twice(name)}"
    assert shared_broker.rest("PUT", subscription, '"earliest"').status == 204
    send(client, topic, 4)
    assert shared_broker.rest("POST", f"{subscription}/skip/1").status == 204
    found = shared_broker.rest("POST", f"{subscription}/analyzeBacklog").json()
    assert (found["entries"], found["messages"], found["filterAcceptedEntries"], found["aborted"]) == (3, 3, 3, False)
    assert shared_broker.rest("POST", f"{subscription}/replicatedSubscriptionStatus", "true").status == 204
    assert shared_broker.rest("GET", f"{subscription}/replicatedSubscriptionStatus").json() == {topic: True}


def test_an_analysis_stops_where_the_settings_say(new_broker):
    broker = new_broker.start("subscriptionBacklogScanMaxEntries=10")
    assert broker.rest("PUT", "persistent/public/default/long").status == 204
    assert broker.rest("PUT", "persistent/public/default/long/subscription/s", '"earliest"').status == 204
    client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    send(client, "persistent://public/default/long", 12)
    client.close()
    found = broker.rest("POST", "persistent/public/default/long/subscription/s/analyzeBacklog").json()
    assert (found["entries"], found["aborted"]) == (10, True)


def test_an_estimated_backlog_is_exact(shared_broker, client):
    path = path_of("estimated")
    assert shared_broker.rest("PUT", path).status == 204
    for name, skipped in (("a", 0), ("b", 2)):
        assert shared_broker.rest("PUT", f"{path}/subscription/{name}", '"earliest"').status == 204
    send(client, "persistent://public/default/estimated", 5)
    assert shared_broker.rest("POST", f"{path}/subscription/b/skip/2").status == 204
    for _ in range(2):
        found = shared_broker.rest("GET", f"{path}/backlog").json()
        assert (found["totalMessages"], found["messageBacklog"]) == (5, 8)
        assert {name: one["cursorBacklog"] for name, one in found["cursorDetails"].items()} == {"a": 5, "b": 3}
        assert shared_broker.rest("PUT", f"{path}/unload").status == 204
    assert [one["entries"] for one in found["dataLedgerDetails"]] == [5]


def test_the_oldest_message_of_a_backlog_is_known(shared_broker, client):
    path, topic = path_of("oldest"), "persistent://public/default/oldest"
    assert shared_broker.rest("PUT", path).status == 204
    assert shared_broker.rest("GET", f"{path}/stats").json()["oldestBacklogMessageAgeSeconds"] == -1
    for name in ("fast", "slow"):
        assert shared_broker.rest("PUT", f"{path}/subscription/{name}", '"earliest"').status == 204
    before = int(time.time() * 1000)
    send(client, topic, 3)
    after = int(time.time() * 1000)
    assert shared_broker.rest("POST", f"{path}/subscription/fast/skip_all").status == 204
    stats = shared_broker.rest("GET", f"{path}/stats?getEarliestTimeInBacklog=true").json()
    assert before <= stats["earliestMsgPublishTimeInBacklogs"] <= after
    assert stats["subscriptions"]["slow"]["earliestMsgPublishTimeInBacklog"] == stats["earliestMsgPublishTimeInBacklogs"]
    assert stats["subscriptions"]["fast"]["earliestMsgPublishTimeInBacklog"] == 0
    assert stats["subscriptions"]["fast"]["lastMarkDeleteAdvancedTimestamp"] >= before
    assert stats["subscriptions"]["slow"]["lastMarkDeleteAdvancedTimestamp"] == 0
    plain = shared_broker.rest("GET", f"{path}/stats").json()
    assert plain["earliestMsgPublishTimeInBacklogs"] == 0
    assert plain["oldestBacklogMessageSubscriptionName"] == "slow" and 0 <= plain["oldestBacklogMessageAgeSeconds"] < 60


def test_a_look_at_a_partitioned_topics_age_takes_the_oldest(shared_broker, client):
    path = path_of("aged")
    assert shared_broker.rest("PUT", f"{path}/partitions", "2").status == 204
    assert shared_broker.rest("PUT", f"{path}/subscription/s", '"earliest"').status == 204
    send(client, "persistent://public/default/aged-partition-0", 1)
    time_of_first = shared_broker.rest("GET", f"{path}-partition-0/stats?getEarliestTimeInBacklog=true").json()["earliestMsgPublishTimeInBacklogs"]
    send(client, "persistent://public/default/aged-partition-1", 1)
    whole = shared_broker.rest("GET", f"{path}/partitioned-stats?getEarliestTimeInBacklog=true").json()
    assert whole["earliestMsgPublishTimeInBacklogs"] == time_of_first
    assert whole["oldestBacklogMessageAgeSeconds"] >= 0 and whole["subscriptions"]["s"]["msgBacklog"] == 2


def test_deliveries_that_waited_for_a_rate_are_counted(shared_broker, client):
    path, topic = path_of("waited"), "persistent://public/default/waited"
    assert shared_broker.rest("PUT", path).status == 204
    rate = '{"dispatchThrottlingRateInMsg":2,"dispatchThrottlingRateInByte":-1,"ratePeriodInSecond":1}'
    assert shared_broker.rest("POST", f"{path}/subscriptionDispatchRate", rate).status == 204
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    send(client, topic, 6)
    for _ in range(6):
        consumer.acknowledge(consumer.receive(10000))
    s = shared_broker.rest("GET", f"{path}/stats").json()["subscriptions"]["s"]
    assert s["dispatchThrottledMsgEventsBySubscriptionLimit"] > 0 and s["dispatchThrottledMsgEventsByTopicLimit"] == 0
    consumer.close()


def test_an_offload_fails_as_its_status_says(shared_broker):
    path = path_of("offloaded")
    assert shared_broker.rest("PUT", path).status == 204
    assert shared_broker.rest("GET", f"{path}/offload").json()["status"] == "NOT_RUN"
    assert shared_broker.rest("PUT", f"{path}/offload", '{"ledgerId":1,"entryId":0}').status == 204
    status = shared_broker.rest("GET", f"{path}/offload").json()
    assert status["status"] == "ERROR" and "offloader" in status["lastError"]


def test_offload_policies_outlive_a_kill(broker):
    path = path_of("kept")
    assert broker.rest("PUT", path).status == 204
    sent = {"managedLedgerOffloadDriver": "aws-s3", "managedLedgerOffloadBucket": "b", "managedLedgerOffloadedReadPriority": "tiered-storage-first",
            "managedLedgerExtraConfigurations": {"k": "v"}}
    assert broker.rest("POST", f"{path}/offloadPolicies", json.dumps(sent)).status == 204
    before = broker.rest("GET", f"{path}/offloadPolicies").json()
    assert before["managedLedgerOffloadBucket"] == "b" and before["managedLedgerExtraConfigurations"] == {"k": "v"} and before["s3Driver"]
    broker.restart("kill")
    assert broker.rest("GET", f"{path}/offloadPolicies").json() == before


# ---- the broker

def test_broker_stats_have_each_topic_in_its_bundle(shared_broker, client):
    assert shared_broker.rest("PUT", "namespaces/public/bundled", '{"bundles":{"numBundles":8}}').status == 204
    names = [f"persistent://public/bundled/t{i}" for i in range(20)] + ["non-persistent://public/bundled/n"]
    kept = [client.create_producer(name) for name in names]
    stats = shared_broker.rest("GET", "broker-stats/topics").json()["public/bundled"]
    found = {topic: bundle for bundle, domains in stats.items() for topics in domains.values() for topic in topics}
    assert set(names) <= set(found)
    for name in names:
        domain, _, rest = name.partition("://")
        bundle = shared_broker.http("GET", f"/lookup/v2/topic/{domain}/{rest}/bundle").text
        assert found[name] == bundle, name
        one = stats[bundle][domain][name]
        assert one["producerCount"] == 1 and len(one["publishers"]) == 1
    owned = shared_broker.rest("GET", f"brokers/standalone/{shared_broker.web_url.partition('://')[2]}/ownedNamespaces").json()
    assert {f"public/bundled/{bundle}" for bundle in stats} <= set(owned)
    report = shared_broker.rest("GET", "broker-stats/load-report").json()
    assert report["lastStats"][f"public/bundled/{found[names[0]]}"]["producerCount"] >= 1
    assert report["numTopics"] >= len(names) and report["numProducers"] >= len(names)
    assert 0 < report["memory"]["usage"] < report["memory"]["limit"] and report["cpu"]["limit"] >= 100
    by_namespace = {one["dimensions"].get("namespace"): one["metrics"] for one in shared_broker.rest("GET", "broker-stats/metrics").json()}
    assert by_namespace["public/bundled"]["brk_no_of_producers"] == len(names)
    assert set(shared_broker.rest("GET", "broker-stats/bookieops").json()["public/bundled"]) == set(names[:-1]) | (set(found) - set(names))
    for producer in kept:
        producer.close()


def test_non_persistent_topics_of_a_bundle(shared_broker, client):
    producer = client.create_producer("non-persistent://public/default/of-a-bundle")
    bundles = shared_broker.rest("GET", "namespaces/public/default/bundles").json()["boundaries"]
    listed = [shared_broker.rest("GET", f"non-persistent/public/default/{low}_{high}").json() for low, high in zip(bundles, bundles[1:])]
    assert sum(names.count("non-persistent://public/default/of-a-bundle") for names in listed) == 1
    assert shared_broker.rest("GET", "non-persistent/public/default/0x00000000_0x00000007").status == 412
    producer.close()


def test_a_quota_check_that_is_asked_for_happens(new_broker):
    """Long before the next round: producers above the quota are refused."""
    broker = new_broker.start("backlogQuotaCheckIntervalInSeconds=3600")
    path = "persistent/public/default/full"
    assert broker.rest("PUT", path).status == 204
    assert broker.rest("PUT", f"{path}/subscription/s", '"earliest"').status == 204
    client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), operation_timeout_seconds=3)
    send(client, "persistent://public/default/full", 20)
    assert broker.rest("POST", f"{path}/backlogQuota", '{"limitSize":10,"policy":"producer_exception"}').status == 204
    assert broker.rest("GET", "brokers/backlog-quota-check").status == 204
    deadline = time.time() + 20
    while time.time() < deadline:
        try:
            client.create_producer("persistent://public/default/full").close()
        except pulsar.PulsarException:
            break
    else:
        pytest.fail("a producer above the quota is still let in")
    client.close()


def test_views_of_a_partitioned_topic_show_its_properties(shared_broker):
    path = path_of("described")
    assert shared_broker.rest("PUT", f"{path}/partitions", '{"partitions":2,"properties":{"owner":"me"}}').status == 204
    for view in ("partitioned-stats", "partitioned-stats?perPartition=false", "partitioned-internalStats"):
        metadata = shared_broker.rest("GET", f"{path}/{view}").json()["metadata"]
        assert metadata == {"partitions": 2, "deleted": False, "properties": {"owner": "me"}}, view


def test_internal_views_name_cursors_as_their_nodes_are_named(shared_broker):
    path = path_of("cursors")
    assert shared_broker.rest("PUT", path).status == 204
    for name in NAMES:
        assert shared_broker.rest("PUT", f"{path}/subscription/{twice(name)}", '"earliest"').status == 204
    wanted = {urllib.parse.quote_plus(name, safe="*") for name in NAMES}
    assert set(shared_broker.rest("GET", f"{path}/internalStats").json()["cursors"]) == wanted
    info = shared_broker.rest("GET", f"{path}/internal-info").json()
    assert set(info["cursors"]) == wanted
    assert all({"creationDate", "modificationDate", "version"} <= set(one) for one in (info, *info["cursors"].values()))


def test_topics_are_listed_by_bundle(shared_broker):
    assert shared_broker.rest("PUT", "namespaces/public/by-bundle", '{"bundles":{"numBundles":4}}').status == 204
    names = {f"persistent://public/by-bundle/t{i}" for i in range(12)}
    for name in names:
        assert shared_broker.rest("PUT", name.replace("://", "/")).status == 204
    bounds = shared_broker.rest("GET", "namespaces/public/by-bundle/bundles").json()["boundaries"]
    found = []
    for low, high in zip(bounds, bounds[1:]):
        listed = shared_broker.rest("GET", f"persistent/public/by-bundle?bundle={low}_{high}").json()
        assert all(shared_broker.http("GET", f"/lookup/v2/topic/{name.replace('://', '/')}/bundle").text == f"{low}_{high}" for name in listed)
        found += listed
    assert sorted(found) == sorted(names)
    assert shared_broker.rest("GET", "persistent/public/by-bundle?bundle=none").json() == []
    assert shared_broker.rest("GET", "persistent/public/nowhere?bundle=none").status == 404


@pytest.mark.parametrize("partitions", [None, 3])
def test_a_subscription_may_be_made_as_one_to_be_replicated(shared_broker, partitions):
    path = path_of(f"replicated-{partitions}")
    made = shared_broker.rest("PUT", f"{path}/partitions", str(partitions)) if partitions else shared_broker.rest("PUT", path)
    assert made.status == 204
    for name, query, wanted in (("yes", "?replicated=true", True), ("no", "", False)):
        subscription = f"{path}/subscription/{name}"
        assert shared_broker.rest("PUT", subscription + query, '"earliest"').status == 204
        marks = shared_broker.rest("GET", f"{subscription}/replicatedSubscriptionStatus").json()
        assert list(marks.values()) == [wanted] * (partitions or 1)
    one = f"{path}-partition-1" if partitions else path
    info = shared_broker.rest("GET", f"{one}/internal-info").json()["cursors"]
    assert info["yes"]["properties"] == {"pulsar.replicated.subscription": 1} and "properties" not in info["no"]
