"""test_admin_rest.py - REST as a real Pulsar 4.0.7 answers it: call by call the status, and what the body is, as recorded in golden."""
import concurrent.futures
import json
import socket
import time
import urllib.parse

import pulsar
import pytest

import rawpulsar
from rest_calls import GOLDEN, LISTS, Run, calls


def differs(golden, status, summary, ours):
    """What is wrong with an answer, or None. Members that only ours has are no fault."""
    _, wanted_status, wanted = golden
    if ours:
        return None if status == ours[0] else f"{status}, and not {ours[0]} as meant here ({ours[1]})"
    if status != wanted_status:
        return f"{status}, Pulsar: {wanted_status}"
    if isinstance(wanted, list) and isinstance(summary, list) and set(wanted) <= set(summary):
        return None if golden[0].endswith(("tats", "info")) or wanted == summary or "tats" in golden[0] else f"{summary}, Pulsar: {wanted}"
    if isinstance(wanted, dict) and isinstance(summary, dict) and wanted.items() <= summary.items():
        return None
    return None if wanted == summary else f"{summary}, Pulsar: {wanted}"


@pytest.mark.parametrize("name", LISTS)
def test_answers_are_those_of_pulsar(shared_broker, name):
    golden = json.loads((GOLDEN / LISTS[name]).read_text())
    asked = [line for line, method, *_ in calls(name) if method not in ("SEND", "SUBSCRIBE", "CLOSE")]
    assert [one[0] for one in golden] == asked, f"golden/{LISTS[name]} is not of these calls: record it anew with capture_admin.py"
    wrong = []
    tenant = f"recorded{list(LISTS).index(name) + 1}" if list(LISTS).index(name) else "recorded"
    for one, (line, status, summary, text, ours) in zip(golden, Run(shared_broker.web_url, shared_broker.url, tenant).all(name)):
        why = differs(one, status, summary, ours)
        if why:
            wrong.append(f"{line}\n    {why}\n    {text[:300]}")
    assert not wrong, f"{len(wrong)} of {len(golden)} answers differ:\n" + "\n".join(wrong)


# ---- names in paths (docs/admin.md)

TOPICS = ["t#1", "t%41", "t+u", "t v", "т"]
SUBSCRIPTIONS = ["a/b", "x%2Fy", "q#1", "name with space", "ключ", "plus+sign", "100%"]


def quoted(text, times=1):
    return quoted(urllib.parse.quote(text, safe=""), times - 1) if times else text


def once_is_enough(name):
    """Pulsar decodes a subscription's name twice: what looks like an encoding, or has a '+', must be encoded twice."""
    return not any(letter in name for letter in "%+")


@pytest.mark.parametrize("name", TOPICS)
def test_subscriptions_of_any_name_are_found(shared_broker, client, name):
    path = f"persistent/public/default/{quoted(name)}"
    for subscription in SUBSCRIPTIONS:
        client.subscribe(f"persistent://public/default/{name}", subscription).close()
    producer = client.create_producer(f"persistent://public/default/{name}", batching_enabled=False)
    for i in range(4):
        producer.send(b"x")
    producer.close()
    assert sorted(shared_broker.rest("GET", f"{path}/subscriptions").json()) == sorted(SUBSCRIPTIONS)
    for subscription in SUBSCRIPTIONS:
        for times in (1, 2) if once_is_enough(subscription) else (2,):
            at = f"{path}/subscription/{quoted(subscription, times)}"
            assert shared_broker.rest("POST", f"{at}/resetcursor/0").status == 204
            assert shared_broker.rest("POST", f"{at}/skip/3").status == 204
            assert shared_broker.rest("GET", f"{at}/position/1").status == 200
            assert shared_broker.rest("GET", f"{path}/stats").json()["subscriptions"][subscription]["msgBacklog"] == 1
            assert shared_broker.rest("PUT", f"{at}/properties", '{"a":"b"}').status == 204
        assert shared_broker.rest("DELETE", f"{path}/subscription/{quoted(subscription, 2)}").status == 204
    assert shared_broker.rest("GET", f"{path}/subscriptions").json() == []
    assert shared_broker.rest("DELETE", path).status == 204


def test_roles_are_decoded_once(shared_broker):
    role = "spiffe://x/y"
    assert shared_broker.rest("POST", f"namespaces/public/default/permissions/{quoted(role)}", '["produce"]').status == 204
    assert shared_broker.rest("POST", f"namespaces/public/default/permissions/{quoted(role, 2)}", '["consume"]').status == 204
    assert shared_broker.rest("GET", "namespaces/public/default/permissions").json() == {role: ["produce"], quoted(role): ["consume"]}
    for times in (1, 2):
        assert shared_broker.rest("DELETE", f"namespaces/public/default/permissions/{quoted(role, times)}").status == 204
    assert shared_broker.rest("GET", "namespaces/public/default/permissions").json() == {}


@pytest.mark.parametrize("body", ["3", '"3"', '{"partitions":3}'])
def test_a_number_of_partitions_may_be_text(shared_broker, body):
    path = "persistent/public/default/in-many-ways/partitions"
    assert shared_broker.rest("PUT", path, body).status == 204
    assert shared_broker.rest("GET", path).json()["partitions"] == 3
    assert shared_broker.rest("DELETE", path).status == 204
    assert shared_broker.rest("PUT", path, '"three"').status == 400


@pytest.mark.parametrize("policy, given, kept", [
    ("messageTTL", '"77"', 77),
    ("retention", '{"retentionTimeInMinutes":"5","retentionSizeInMB":"6"}', {"retentionTimeInMinutes": 5, "retentionSizeInMB": 6}),
    ("deduplication", '"true"', True)])
def test_policies_take_numbers_as_text(shared_broker, policy, given, kept):
    path = f"namespaces/public/text/{policy}"
    shared_broker.rest("PUT", "namespaces/public/text")
    assert shared_broker.rest("POST", path, given).status == 204
    assert shared_broker.rest("GET", path).json() == kept
    assert shared_broker.rest("POST", path, '"no such value"').status == 400


def test_a_client_without_a_name_has_none_in_stats(shared_broker):
    with rawpulsar.Connection("127.0.0.1", shared_broker.port) as peer:
        peer.connect(client_version="")
        peer.send("producer", topic="persistent://public/default/nameless", producer_id=1, request_id=1)
        peer.expect("producer_success")
        assert "clientVersion" not in shared_broker.stats("persistent://public/default/nameless")["publishers"][0]


@pytest.mark.parametrize("bounds", [["x"], ["0x00000000"], ["0x00000000", "0x80000000"], ["0x00000001", "0xffffffff"], ["0x00000000", "0x90000000", "0x80000000", "0xffffffff"], [1, None]])
def test_bundles_must_cover_all_hashes(shared_broker, bounds):
    """A topic in a gap could never be looked up."""
    body = json.dumps({"bundles": {"numBundles": len(bounds) - 1, "boundaries": bounds}})
    assert shared_broker.rest("PUT", "namespaces/public/gap", body).status == 400
    assert shared_broker.rest("GET", "namespaces/public/gap").status == 404


def test_names_of_the_brokers_own_cursors_are_no_subscriptions(shared_broker):
    """Who deletes such a one would delete what compaction has left of a topic."""
    topic = "persistent/public/default/own-cursors"
    assert shared_broker.rest("PUT", topic).status == 204
    for name in ("__compaction", "pulsar.dedup"):
        assert shared_broker.rest("PUT", f"{topic}/subscription/{name}", '"latest"').status == 412
        assert shared_broker.rest("DELETE", f"{topic}/subscription/{name}").status == 404


def test_a_property_that_many_change_at_once(broker):
    """Changes that lose races are tried again; under a sanitizer nothing may be left of the lost tries."""
    path = "namespaces/public/default/property/k"

    def change(method, suffix):
        return [broker.rest(method, path + suffix).status for _ in range(40)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        calls_at_once = [pool.submit(change, *call) for call in [("PUT", "/v"), ("DELETE", "")] * 4]
        answers = {status for call in calls_at_once for status in call.result()}
    assert answers <= {200, 204, 409}
    assert broker.rest("DELETE", path).status == 200
    assert broker.rest("GET", path).text == ""


# ---- bundles

def positions(broker, namespace, bundle):
    return broker.rest("GET", f"namespaces/{namespace}/{bundle}/topicHashPositions").json()["topicHashPositions"]


def test_a_bundle_is_split_among_its_topics(shared_broker, client):
    """Half of the topics to each side; every topic is looked up in the bundle that it is shown in, and its clients go on."""
    assert shared_broker.rest("PUT", "namespaces/public/split", '{"bundles":{"numBundles":1}}').status == 204
    producers = [client.create_producer(f"persistent://public/split/t{i}", batching_enabled=False) for i in range(10)]
    path = "namespaces/public/split/0x00000000_0xffffffff/split"
    assert shared_broker.rest("PUT", f"{path}?splitAlgorithmName=topic_count_equally_divide&unload=true").status == 204
    bounds = shared_broker.rest("GET", "namespaces/public/split/bundles").json()
    assert bounds["numBundles"] == 2
    shown = {}
    for low, high in zip(bounds["boundaries"], bounds["boundaries"][1:]):
        topics = positions(shared_broker, "public/split", f"{low}_{high}")
        assert len(topics) == 5
        shown.update({topic: f"{low}_{high}" for topic in topics})
    for topic, bundle in shown.items():
        assert shared_broker.http("GET", f"/lookup/v2/topic/{topic.replace('://', '/')}/bundle").text == bundle
    for producer in producers:
        producer.send(b"after the split")
    assert shared_broker.rest("PUT", path).status == 412  # it is no bundle any more


def test_the_bundle_with_most_topics_is_split(shared_broker):
    """As `pulsar-admin namespaces split-bundle --bundle-type LARGEST` asks; of equal ones the first."""
    assert shared_broker.rest("PUT", "namespaces/public/largest").status == 204
    assert shared_broker.rest("PUT", "namespaces/public/largest/LARGEST/split").status == 204
    bounds = ["0x00000000", "0x20000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    assert shared_broker.rest("GET", "namespaces/public/largest/bundles").json()["boundaries"] == bounds
    for i in range(9):
        assert shared_broker.rest("PUT", f"persistent/public/largest/t{i}").status == 204
    counts = [len(positions(shared_broker, "public/largest", f"{low}_{high}")) for low, high in zip(bounds, bounds[1:])]
    most = counts.index(max(counts))
    assert shared_broker.rest("PUT", "namespaces/public/largest/LARGEST/split?splitAlgorithmName=topic_count_equally_divide").status == 204
    after = shared_broker.rest("GET", "namespaces/public/largest/bundles").json()["boundaries"]
    assert after[:most + 1] == bounds[:most + 1] and after[most + 2:] == bounds[most + 1:] and sum(counts) == 9
    assert shared_broker.rest("PUT", "namespaces/public/no-such/LARGEST/split").status == 404


def test_positions_of_some_topics_of_a_bundle(shared_broker):
    """Named several times, encoded once or twice, a partitioned one for its partitions."""
    assert shared_broker.rest("PUT", "namespaces/public/some", '{"bundles":{"numBundles":1}}').status == 204
    for name in ("a", "b", "c"):
        assert shared_broker.rest("PUT", f"persistent/public/some/{name}").status == 204
    assert shared_broker.rest("PUT", "persistent/public/some/parts/partitions", "2").status == 204
    full = "persistent://public/some/"

    def asked(*topics, times=1):
        query = "&".join(f"topics={quoted(full + topic, times)}" for topic in topics)
        found = shared_broker.rest("GET", f"namespaces/public/some/0x00000000_0xffffffff/topicHashPositions?{query}").json()
        return sorted(topic.removeprefix(full) for topic in found["topicHashPositions"])

    assert asked() == ["a", "b", "c", "parts-partition-0", "parts-partition-1"]
    for times in (1, 2):
        assert asked("a", "c", "no-such", times=times) == ["a", "c"]
        assert asked("parts", times=times) == ["parts-partition-0", "parts-partition-1"]
    assert asked("no-such") == []


@pytest.mark.parametrize("given, kept", [
    ('{"numBundles":200}', 200), ('{"numBundles":4097}', None), ('{"numBundles":4294967297}', None), ('{"numBundles":"x"}', None), ("7", None), ('{"numBundles":3,"boundaries":{}}', None),
    ('{"numBundles":1,"boundaries":["0x00000000","0x10000000","0x20000000","0xffffffff"]}', 3)])
def test_a_namespace_gets_the_bundles_that_are_asked_for_or_none(shared_broker, given, kept):
    assert shared_broker.rest("PUT", "namespaces/public/asked", '{"bundles":%s}' % given).status == (204 if kept else 400)
    made = shared_broker.rest("GET", "namespaces/public/asked/bundles")
    if kept:
        assert (made.json()["numBundles"], len(made.json()["boundaries"])) == (kept, kept + 1)
        assert shared_broker.rest("DELETE", "namespaces/public/asked").status == 204
    else:
        assert made.status == 404


def test_many_who_ask_for_all_topics_hold_nobody_up(broker):
    """One walk over all topics goes on at a time; the others wait without a share of the turns."""
    assert broker.rest("PUT", "persistent/public/default/many/partitions", "600").status == 204
    assert broker.rest("PUT", "persistent/public/default/many/subscription/s", '"earliest"').status == 204
    asking = [socket.create_connection(("127.0.0.1", broker.web_port), timeout=60) for _ in range(60)]
    began = time.monotonic()
    for one in asking:
        one.sendall(b"GET /admin/v2/broker-stats/topics HTTP/1.1\r\nHost: a\r\n\r\n")
    took = []
    for one in (asking[0], asking[-1]):
        assert one.recv(15) == b"HTTP/1.1 200 OK"
        took.append(time.monotonic() - began)
    assert took[0] < took[1] / 4
    for one in asking:
        one.close()


def test_a_namespace_with_a_wrong_policy_is_not_made(shared_broker):
    for member, value in {"message_ttl_in_seconds": "x", "retention_policies": [], "topicDispatchRate": {"standalone": 7}, "subscription_types_enabled": ["Bad"]}.items():
        answer = shared_broker.rest("PUT", "namespaces/public/wrong", json.dumps({member: value}))
        assert answer.status == 400, answer.text
        assert shared_broker.rest("GET", "namespaces/public/wrong").status == 404
    assert shared_broker.rest("PUT", "namespaces/public/wrong", '{"message_ttl_in_seconds":"7","replication_clusters":[]}').status == 204
    made = shared_broker.rest("GET", "namespaces/public/wrong").json()
    assert (made["message_ttl_in_seconds"], made["replication_clusters"]) == (7, ["standalone"])


# ---- what must outlive a process

def test_what_is_kept_for_other_brokers_outlives_a_kill(broker):
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
    kept = {
        "clusters/standalone/failureDomains/d": {"brokers": ["b:1"]},
        "clusters/standalone/namespaceIsolationPolicies/p": {"namespaces": ["a/b"], "primary": ["b"], "secondary": [], "auto_failover_policy": failover},
        "namespaces/public/default/persistence/bookieAffinity": {"bookkeeperAffinityGroupPrimary": "g"},
        "resource-quotas/public/default/0x00000000_0x40000000": {"msgRateIn": 1.5, "msgRateOut": 2.0, "bandwidthIn": 3.0, "bandwidthOut": 4.0, "memory": 5.0, "dynamic": False},
    }
    for path, value in kept.items():
        assert broker.rest("POST", path, json.dumps(value)).status == 204
    assert broker.rest("PUT", "resourcegroups/g", '{"publishRateInMsgs":1}').status == 204
    assert broker.rest("PUT", "namespaces/public/default/0x40000000_0x80000000/split").status == 204
    broker.restart("kill")
    for path, value in kept.items():
        assert broker.rest("GET", path).json() == value
    assert broker.rest("GET", "resourcegroups/g").json()["publishRateInMsgs"] == 1
    assert broker.rest("GET", "namespaces/public/default/bundles").json()["boundaries"] == ["0x00000000", "0x40000000", "0x60000000", "0x80000000", "0xc0000000", "0xffffffff"]


def test_policies_properties_and_positions_outlive_a_kill(broker):
    assert broker.rest("PUT", "tenants/own", '{"allowedClusters":["standalone"]}').status == 204
    assert broker.rest("PUT", "namespaces/own/ns").status == 204
    assert broker.rest("POST", "namespaces/own/ns/retention", '{"retentionTimeInMinutes":7,"retentionSizeInMB":8}').status == 204
    assert broker.rest("PUT", "persistent/own/ns/t", '{"owner":"me"}').status == 204
    assert broker.rest("POST", "persistent/own/ns/t/maxConsumers", "3").status == 204
    client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer("persistent://own/ns/t", batching_enabled=False)
    ids = [producer.send(b"%d" % i) for i in range(10)]
    client.close()
    assert broker.rest("PUT", "persistent/own/ns/t/subscription/s", json.dumps({"ledgerId": ids[4].ledger_id(), "entryId": ids[4].entry_id()})).status == 204
    assert broker.rest("POST", "persistent/own/ns/t/subscription/s/skip/2").status == 204
    assert broker.rest("POST", "namespaces/own/ns/messageTTL", "1000").status == 204
    broker.restart("kill")
    assert broker.rest("GET", "namespaces/own/ns/retention").json() == {"retentionTimeInMinutes": 7, "retentionSizeInMB": 8}
    assert broker.rest("GET", "namespaces/own/ns/messageTTL").json() == 1000
    assert broker.rest("GET", "persistent/own/ns/t/properties").json() == {"owner": "me"}
    assert broker.rest("GET", "persistent/own/ns/t/maxConsumers").json() == 3
    assert broker.stats("persistent://own/ns/t")["subscriptions"]["s"]["msgBacklog"] == 4
    assert broker.rest("GET", "persistent/own/ns/t/subscription/s/position/1").text == "6"


def test_members_that_nobody_knows_stay(broker):
    """A newer broker's policies survive this one's changes."""
    assert broker.rest("PUT", "namespaces/public/kept", '{"bundles":{"numBundles":4},"of_a_later_version":{"a":[1]}}').status == 204
    before = broker.rest("GET", "namespaces/public/kept").json()
    assert before["of_a_later_version"] == {"a": [1]}
    assert broker.rest("POST", "namespaces/public/kept/messageTTL", "5").status == 204
    assert broker.rest("GET", "namespaces/public/kept").json() == {**before, "message_ttl_in_seconds": 5}
