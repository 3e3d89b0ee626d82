"""test_pulsar_admin.py - the real pulsar-admin on this broker, as it is on a real Pulsar 4.0.7 (golden/pulsar_admin.json); skipped without Java or Maven.

Where our answer differs on purpose, golden/pulsar_admin_calls.txt says why behind the command line.
"""
import json
import re
import shutil
import sys

import pytest

import pulsar_admin
from oxbowd import BUILD, SMALL, Broker

sys.path.insert(0, str(pulsar_admin.HERE.parents[1] / "tools"))
import ctlgen  # noqa: E402
import restgen  # noqa: E402

GOLDEN = pulsar_admin.HERE / "golden" / "pulsar_admin.json"
SERVED = ("clusters", "ns-isolation-policy", "brokers", "broker-stats", "tenants", "resourcegroups", "namespaces", "topics", "topicPolicies", "bookies", "resource-quotas")
LATER = {
    "schemas": "a later issue", "transactions": "a later issue", "functions": "none here", "functions-worker": "none here", "sources": "none here", "source": "none here",
    "sinks": "none here", "sink": "none here", "packages": "none here", "proxy-stats": "no proxy", "documents": "writes the tool's own pages",
    "persistent": "older names of topics", "non-persistent": "older names of topics", "properties": "an older name of tenants"}
# Verbs that no command line calls, or that oxbowctl has not, and why.
NOT_CALLED = {
    "brokers shutdown": "it would end the broker of the other tests", "broker-stats load-report": "the tool cannot read a real broker's answer and waits in vain"}
NOT_IN_CTL = {"brokers shutdown": "a signal ends a broker"}
# Options that oxbowctl has not, and why.
NO_OPTION = {
    ("clusters delete", "--all"): "too much for one word", ("namespaces unload", "--destinationBroker"): "one broker", ("namespaces split-bundle", "--bundle-type"): "bundles are named",
    ("namespaces split-bundle", "--split-boundaries"): "bundles are split in two", ("topics delete", "regex"): "a loop in a shell does it", ("topics delete", "--from-file"): "the same",
    ("topics peek-messages", "--show-server-marker"): "no markers are written", ("topics peek-messages", "--transaction-isolation-level"): "a later issue"}
# Verbs with second names for their options, for which oxbowctl has the first only.
OTHER_WORDS = {("topics", "set-offload-policies")}
# Routes that no verb of the tool asks for, and why.
NOT_DRIVEN = {
    "GET /metrics": "for Prometheus", "GET /admin/v2/brokers": "the tool names a cluster", "GET /admin/v2/brokers/ready": "for load balancers",
    "GET /admin/v2/broker-stats/load-report": "see NOT_CALLED", "GET /admin/v2/broker-stats/bookieops": "no verb", "GET /admin/v2/broker-stats/broker-resource-availability/{tenant}/{namespace}": "no verb",
    "DELETE {namespace}/{bundle}": "no verb", "GET {namespace}/scanOffloadedLedgers": "no verb", "GET {topic}/backlog": "no verb",
    "POST /admin/v2/namespaces/grantPermissionsOnTopics": "no verb", "POST /admin/v2/namespaces/revokePermissionsOnTopics": "no verb",
    "GET /admin/v2/namespaces/{cluster}/antiAffinity/{group}": "the tool asks the older path"}


@pytest.fixture(scope="module")
def jars():
    for program in ("java", "mvn"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    return pulsar_admin.fetch_jars(BUILD / "java-admin")


@pytest.fixture(scope="module")
def outcome(jars, tmp_path_factory):
    """What was said to the calls, and what the tool knows of itself; one JVM for it all."""
    with Broker(tmp_path_factory.mktemp("admin")) as broker:
        broker.start(*SMALL, "brokerDeleteInactiveTopicsEnabled=false")
        with pulsar_admin.Run(jars, broker.web_url, broker.url, "recorded") as run:
            said, described = list(run.all()), run.description()
        assert broker.stop() == 0
        assert broker.trouble() is None, broker.trouble()
    return said, described


@pytest.fixture(scope="module")
def answers(outcome):
    """[(call, answer, what was printed)]"""
    return outcome[0]


@pytest.fixture(scope="module")
def tool(outcome):
    """{noun: {verb: what the tool knows of it}}, without second names of a verb."""
    return {noun: {verb: one for verb, one in verbs.items() if verb == one["name"]} for noun, verbs in outcome[1].items()}


# ---- the answers


def lacks(wanted, given, where="the answer"):
    """What `given` has not that was wanted, or None. Members that only ours has are no fault."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        missing = [f"{where} has no {name}" for name in wanted if name not in given]
        return next(iter(missing), None) or next(filter(None, (lacks(wanted[name], given[name], f"{where}.{name}") for name in wanted)), None)
    if isinstance(wanted, list) and isinstance(given, list) and len(wanted) == len(given):
        return next(filter(None, (lacks(a, b, where) for a, b in zip(wanted, given))), None)
    return None if wanted == given else f"{where} is {json.dumps(given)[:300]}, Pulsar's {json.dumps(wanted)[:300]}"


def statuses(requests):
    return [(method, path, status) for method, path, _, status in requests]


def differs(golden, answer):
    """What is wrong with an answer, or None."""
    if statuses(golden[2]) != statuses(answer[2]):
        return f"requests {statuses(answer[2])}, with Pulsar {statuses(golden[2])}"
    if golden[1] != answer[1]:
        return f"exit status {answer[1]}, with Pulsar {golden[1]}"
    return lacks(golden[3], answer[3])


def test_answers_are_those_of_pulsar(answers):
    golden = json.loads(GOLDEN.read_text())
    assert [one[0] for one in golden] == [call.line for call, _, _ in answers], "golden/pulsar_admin.json is not of these calls: record it anew with capture_pulsar_admin.py"
    wrong = []
    for one, (call, answer, printed) in zip(golden, answers):
        why = differs(one, answer)
        if why and not call.ours:
            wrong.append(f"{call.line}\n    {why}\n    {printed.strip()[:300]}")
        elif call.ours and not why:
            wrong.append(f"{call.line}\n    is answered as by Pulsar, so its mark can go: {call.ours}")
    assert not wrong, f"{len(wrong)} of {len(golden)} answers differ:\n" + "\n".join(wrong)


# ---- nothing is left out


def test_every_noun_is_served_or_named(tool):
    assert set(tool) == {*SERVED, *LATER}


def test_every_verb_is_called(tool):
    called = {" ".join(call.words[:2]) for call in pulsar_admin.calls()}
    verbs = {f"{noun} {verb}" for noun in SERVED for verb, one in tool[noun].items() if not one["hidden"]}
    assert verbs - called == set(NOT_CALLED)


def asked_row(rows, method, path):
    """The row of spec/rest that a request is for: of those that match, the one with the fewest names in it."""
    matching = [path_of for of, path_of in rows if of == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", restgen.whole(path_of)), path)]
    return min(matching, key=lambda one: restgen.whole(one).count("{"), default=None)


def test_every_route_is_driven(answers):
    rows = [(row["method"], row["path"]) for name, group in restgen.groups().items() if name != "bookie_clusters" for row in group["routes"]]
    asked = {(method, asked_row(rows, method, path.partition("?")[0])) for _, answer, _ in answers for method, path, _, _ in answer[2]}
    assert {f"{method} {path}" for method, path in rows if (method, path) not in asked} == set(NOT_DRIVEN)


# ---- oxbowctl has the same verbs and options


@pytest.fixture(scope="module")
def ours():
    """{noun: {verb, or another name of it: row of spec/commands}}"""
    nouns = ctlgen.nouns()
    named = {noun["noun"]: {name: row for row in noun["verbs"] for name in [row["verb"], *row.get("aliases", [])]} for noun in nouns}
    return {noun["noun"]: {**named.get(noun.get("also"), {}), **named[noun["noun"]]} for noun in nouns}


def test_oxbowctl_has_every_verb(tool, ours):
    verbs = {f"{noun} {verb}" for noun in SERVED for verb, one in tool[noun].items() if not one["hidden"]}
    assert {verb for verb in verbs if verb.partition(" ")[2] not in ours[verb.partition(" ")[0]]} == set(NOT_IN_CTL)


def options_lacking(noun, verb, one, row):
    words = {name: word for word in row["words"] for name in word.get("names", [])}
    for option in one["options"]:
        if "--help" in option["names"] or option["names"] == ["-v", "--version"] or any((f"{noun} {verb}", name) in NO_OPTION for name in option["names"]):
            continue
        yield from (f"{noun} {verb} has no {name}" for name in option["names"] if name not in words)
        if option["required"] and not words.get(option["names"][0], {}).get("required"):
            yield f"{noun} {verb} {option['names'][0]} need not be given"


def test_oxbowctl_has_every_option(tool, ours):
    """Also of the verbs that pulsar-admin hides, where oxbowctl has them."""
    wrong = [text for noun in SERVED for verb, one in tool[noun].items() if verb in ours[noun] and (noun, verb) not in OTHER_WORDS for text in options_lacking(noun, verb, one, ours[noun][verb])]
    assert not wrong, "\n".join(wrong)
