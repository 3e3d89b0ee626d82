"""test_oxbowctl.py - every verb of oxbowctl on a fresh broker: the requests are those that pulsar-admin makes of the same words, and what is set is read back.

The command lines are those of golden/pulsar_admin_calls.txt, with the requests that the real tool made of them (golden/pulsar_admin.json), and of golden/oxbowctl_calls.txt.
"""
import itertools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import time
import urllib.parse

import pulsar
import pytest

import pulsar_admin
from oxbowd import BUILD, SMALL, TROUBLE, Broker

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import ctlgen  # noqa: E402

OXBOWCTL = BUILD / "oxbowctl"
GOLDEN = pulsar_admin.HERE / "golden" / "pulsar_admin.json"
OWN_CALLS = pulsar_admin.HERE / "golden" / "oxbowctl_calls.txt"
PARTS = 10
pytestmark = pytest.mark.skipif(not OXBOWCTL.exists(), reason="oxbowctl is not built")

# Command lines whose requests are others than pulsar-admin's, on purpose: a pattern, and why.
OTHERWISE = {
    r" set-offload-policies ": "what was said alone, by the names that hold for every kind of storage",
    r" -[mp] a=1,b=2": "two properties, as pulsar-admin's help says; the tool makes one of it",
    r"^topics list TEN/nope": "ends at the first failure",
    r"^topics stats TEN/ns/none": "it may be a topic with partitions",
    r"^topics compaction-status .* -w": "asked until it is over, once or more often",
    r"^topics delete TEN/ns/(plain|part)$": "what is not deleted is a failure; the tool says so and ends with 0",
    r"^(namespaces get-schema-autoupdate-strategy|topics get-shadow-topics) ": "nothing set is no failure",
    r"^namespaces get-anti-affinity-namespaces ": "/admin/v2, where the tool asks /admin",
    r" set-offload-policies ": "by the names that hold for every driver",
    r"^topics expire-messages-all-subscriptions ": "nothing to expire is no failure of this broker (docs/admin.md)",
    r"^topics stats .* -sbs": "switched on by its option, which pulsar-admin's switches off",
}
# What pulsar-admin asks beside the thing itself: it looks a default up that the broker knows.
BESIDE = re.compile(r"/admin/v2/brokers/configuration/runtime$")
# Members that pulsar-admin sends with their default, or under a second name.
DEFAULTS = {"JKS", "org.apache.pulsar.common.util.DefaultPulsarSslFactory", "None", "UNDEFINED"}
SECOND_NAMES = {"limit": "limitSize", "clusterThatCanDeleteNamespace": "replication_clusters"}


class CtlRun(pulsar_admin.Run):
    """The command lines given to oxbowctl."""

    def __init__(self, web_url, service_url, tenant, folder):
        self.tenant, self.ledger, self.service_url, self.folder = tenant, -1, service_url, str(folder)
        self.broker = web_url.removeprefix("http://")
        self.client = pulsar.Client(service_url, logger=pulsar_admin.QUIET)
        self.consumers = []
        self.tap = pulsar_admin.Tap(self.broker)

    def __exit__(self, *_):
        self.tap.shutdown()
        self.tap.server_close()
        self.client.close()

    def real(self, word):
        return super().real(word).replace("FOLDER", self.folder)

    def ask(self, words):
        command = [OXBOWCTL, "--url", self.tap.url, "--service-url", self.service_url, "--request-timeout", "20", "-o", "json", *(self.real(word) for word in words)]
        done = subprocess.run(command, input="line\n", capture_output=True, text=True, timeout=30)
        assert done.returncode in (0, 1, 2) and not TROUBLE.search(done.stderr), f"{words}: {done.returncode}\n{done.stderr}"
        return {"status": done.returncode, "out": done.stdout, "err": done.stderr}

    def answers(self, calls):
        """(call, exit status, requests, what was printed, what was said)"""
        for call in calls:
            if call.words[0] in pulsar_admin.ACTS:
                self.act(call.words)
                continue
            self.tap.seen.clear()
            answer = self.ask(call.words)
            yield call, answer["status"], self.asked(), self.masked(answer["out"]), answer["err"]


def own_calls():
    for line in OWN_CALLS.read_text().splitlines():
        if line and not line.startswith("#"):
            yield from (pulsar_admin.Call(one) for one in pulsar_admin.spread(line))


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("ctl")) as broker:
        yield broker.start(*SMALL, "brokerDeleteInactiveTopicsEnabled=false")
        assert broker.stop() == 0
        assert broker.trouble() is None, broker.trouble()


class Recording:
    """What came of pulsar-admin's command lines; the tests of PARTS make it bit by bit, so that none of them takes long."""

    def __init__(self, run):
        self.answers, self.done = run.answers(pulsar_admin.calls()), []

    def advance(self, count):
        self.done += itertools.islice(self.answers, count)
        return self.done


@pytest.fixture(scope="module")
def recording(broker):
    with CtlRun(broker.web_url, broker.url, "recorded", broker.folder) as run:
        yield Recording(run)


@pytest.fixture
def recorded(recording):
    return recording.advance(None)


@pytest.fixture(scope="module")
def own(broker, recording):
    """What came of the other ones, afterwards."""
    recording.advance(None)
    with CtlRun(broker.web_url, broker.url, "own", broker.folder) as run:
        return list(run.answers(own_calls()))


@pytest.mark.parametrize("part", range(PARTS))
def test_command_lines_are_understood(recording, part):
    """Status 2, wrong usage, is for what pulsar-admin refuses too."""
    golden = json.loads(GOLDEN.read_text())
    known = len(recording.done)
    size = -(-len(golden) // PARTS)
    for call, status, _, _, said in recording.advance(size)[known:]:
        refused = any(line == call.line and wanted for line, wanted, *_ in golden)
        assert status != 2 or refused, f"{call.line}: {said}"


# ---- the requests


def parsed(request):
    """A request as it is meant: method, path and query decoded, body as a value."""
    method, path, body, status = request
    path, _, query = path.partition("?")
    segments = [urllib.parse.unquote_plus(segment) for segment in path.split("/")]
    pairs = {(name, value) for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True) if value not in ("false", "-1", "0")}
    try:
        value = json.loads(body) if body else None
    except ValueError:
        value = body
    return method, tuple(urllib.parse.unquote(segment) for segment in segments), pairs, value


def means_nothing(value):
    if isinstance(value, dict):
        return all(map(means_nothing, value.values()))
    return value in ([], None, False, 0, "", -1) or (isinstance(value, str) and value in DEFAULTS)


def same_body(ours, theirs):
    """True if both say the same; a member that one of them leaves out says nothing in the other."""
    if means_nothing(ours) and means_nothing(theirs):
        return True
    if isinstance(ours, dict) and isinstance(theirs, dict):
        theirs = {name: value for name, value in theirs.items() if SECOND_NAMES.get(name) not in theirs}
        return all(same_body(ours[name], theirs[name]) if name in ours and name in theirs else means_nothing(ours.get(name, theirs.get(name))) for name in {*ours, *theirs})
    if isinstance(ours, list) and isinstance(theirs, list):
        return sorted(map(json.dumps, ours)) == sorted(map(json.dumps, theirs))
    return ours == theirs


def differs(wanted, seen):
    """What is wrong with the requests, or None."""
    wanted = [parsed(request) for request in wanted if len(wanted) == 1 or not BESIDE.search(request[1])]
    seen = [parsed(request) for request in seen if len(seen) == 1 or not BESIDE.search(request[1])]
    if [(method, path) for method, path, *_ in wanted] != [(method, path) for method, path, *_ in seen]:
        return f"asked {[(m, '/'.join(p)) for m, p, *_ in seen]}, pulsar-admin {[(m, '/'.join(p)) for m, p, *_ in wanted]}"
    for (_, path, their_query, theirs), (_, _, query, ours) in zip(wanted, seen):
        if query != their_query:
            return f"{'/'.join(path)}: the query is {sorted(query)}, pulsar-admin's {sorted(their_query)}"
        if not same_body(ours, theirs):
            return f"{'/'.join(path)}: the body is {json.dumps(ours)}, pulsar-admin's {json.dumps(theirs)}"
    return None


def beside(recorded):
    """(what pulsar-admin did, what oxbowctl did)"""
    golden = json.loads(GOLDEN.read_text())
    assert [one[0] for one in golden] == [call.line for call, *_ in recorded], "golden/pulsar_admin.json is not of these calls: record it anew with capture_pulsar_admin.py"
    return zip(golden, recorded)


def is_otherwise(call):
    return any(re.search(pattern, call.line) for pattern in OTHERWISE)


def test_requests_are_those_of_pulsar_admin(recorded):
    wrong = []
    for (_, wanted_status, wanted, _), (call, status, requests, _, said) in beside(recorded):
        why = differs(wanted, requests)
        if why and not is_otherwise(call) and not (status == 2 and wanted_status):  # both refuse it, we before anything is asked
            wrong.append(f"{call.line}\n    {why}\n    {said.strip()[:300]}")
    assert not wrong, f"{len(wrong)} of {len(recorded)} command lines:\n" + "\n".join(wrong)


def test_what_is_otherwise_on_purpose_is_there():
    lines = [call.line for call in pulsar_admin.calls()]
    assert [pattern for pattern in OTHERWISE if not any(re.search(pattern, line) for line in lines)] == []


def test_exit_statuses_are_those_of_pulsar_admin(recorded):
    wrong = []
    for (_, wanted_status, *_), (call, status, _, _, said) in beside(recorded):
        if bool(status) != bool(wanted_status) and not call.ours and not is_otherwise(call):
            wrong.append(f"{call.line}: {status}, pulsar-admin {wanted_status}: {said.strip()[:300]}")
    assert not wrong, "\n".join(wrong)


# ---- all of it


# Verbs that cannot end well on a fresh broker, and why.
FRUITLESS = {
    ("namespaces", "set-entry-filters"): "no filter is installed",
    ("topicPolicies", "set-entry-filters-per-topic"): "no filter is installed",
}


def test_every_verb_is_called_and_does_it(recorded, own):
    verbs = {(noun["noun"], row["verb"]) for noun in ctlgen.nouns() for row in noun["verbs"]}
    done = {}
    for call, status, *_ in [*recorded, *own]:
        name = (call.words[0], call.words[1] if (call.words[0], "") not in verbs else "")
        done[name] = done.get(name, False) or status == 0
    assert verbs - set(done) == set(), "verbs that no command line calls: add them to golden/oxbowctl_calls.txt"
    fruitless = verbs - {name for name, good in done.items() if good}
    assert fruitless == set(FRUITLESS), "verbs that never end with status 0"


def test_own_command_lines_end_well(own):
    wrong = [f"{call.line}: {status}: {said}" for call, status, _, _, said in own if status != 0]
    assert not wrong, "\n".join(wrong)


def test_failures_are_told_in_one_line(recorded):
    for call, status, _, printed, said in recorded:
        if status == 1:
            assert said.startswith("oxbowctl: ") and said.count("\n") == 1 and len(said) > 20, f"{call.line}: {said}"
        if status == 2:
            assert said.startswith("oxbowctl: ") and "usage: " in said, f"{call.line}: {said}"


def test_what_is_set_is_read_back(recorded, own):
    """get, set, get, remove, get: the second get shows what the first and the third do not."""
    checked = 0
    answers = [*recorded, *own]
    for at, (call, status, _, before, _) in enumerate(answers[:-2]):
        words, setting = call.words, answers[at + 1][0].words
        if not words[1].startswith("get-") or setting[:2] != [words[0], words[1].replace("get-", "set-", 1)] or answers[at + 1][1] != 0:
            continue
        if answers[at + 2][0].line != call.line:
            continue
        assert status == 0, call.line
        after = answers[at + 2][3]
        assert after.strip() not in ("", "null"), f"{shlex.join(setting)}: {after}"
        removal = [other for other in answers[at + 3:at + 5] if other[0].words[1] == words[1].replace("get-", "remove-", 1)]
        if removal:
            assert before != after, f"{shlex.join(setting)}: nothing has changed: {after}"
            last = answers[answers.index(removal[0]) + 1]
            assert last[0].line == call.line and last[3] == before, f"{shlex.join(removal[0][0].words)}: {last[3]}, before all: {before}"
        checked += 1
    assert checked > 50


def test_messages_of_a_batch_are_shown_one_by_one(broker):
    def ctl(*words):
        done = subprocess.run([OXBOWCTL, "--url", broker.web_url, "--service-url", broker.url, "-o", "json", *words], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]
    ctl("topics", "create-subscription", "batches", "-s", "s", "-m", "earliest")
    sent = ctl("produce", "batches", "-m", "one", "-m", "two", "--batch", "2", "--key", "k", "--property", "a=b,c", "--compression", "zstd") + ctl("produce", "batches", "-m", "three")
    shown = ctl("topics", "peek-messages", "batches", "-s", "s", "-n", "9")
    assert [m["payload"] for m in shown] == ["one", "two", "three"]
    assert [m["messageId"] for m in shown] == [m["messageId"] for m in sent]
    assert shown[1]["key"] == "k" and shown[1]["properties"] == {"a": "b,c"} and "key" not in shown[2]
    assert ctl("topics", "peek-messages", "batches", "-s", "s", "-n", "1") == shown[:1]
    ledger, entry, *_ = shown[2]["messageId"].split(":")
    assert ctl("topics", "get-message-by-id", "batches", "-l", ledger, "-e", entry) == shown[2:]
    assert [m["payload"] for m in ctl("consume", "batches", "-s", "s")] == ["one", "two", "three"]
    assert ctl("topics", "peek-messages", "batches", "-s", "s") == []


def test_people_see_a_table_and_programs_json(broker):
    def ctl(*words):
        done = subprocess.run([OXBOWCTL, "--url", broker.web_url, *words], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout
    place = "public/default"
    assert ctl("namespaces", "set-retention", place, "-t", "3h", "-s", "10G") == ""
    assert ctl("namespaces", "get-retention", place).split() == ["retentionTimeInMinutes", "180", "retentionSizeInMB", "10240"]
    assert json.loads(ctl("namespaces", "get-retention", place, "-o", "json")) == {"retentionTimeInMinutes": 180, "retentionSizeInMB": 10240}
    ctl("namespaces", "remove-retention", place)
    assert ctl("namespaces", "get-retention", place) == "not set\n"
    assert ctl("-o", "json", "namespaces", "get-retention", place) == "null\n"
    ctl("topics", "create-partitioned-topic", "tables", "-p", "2")
    assert {f"persistent://public/default/tables-partition-{n}" for n in (0, 1)} <= set(ctl("topics", "list", place).splitlines())
    assert "2 partitions" in ctl("topics", "stats", "tables")


def test_names_with_all_kinds_of_characters_arrive(broker):
    def ctl(*words):
        done = subprocess.run([OXBOWCTL, "--url", broker.web_url, "--service-url", broker.url, *words], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout
    subscriptions = ["a/b", "x%2Fy", "q#1", "name with space", "ключ", "plus+sign", "100%", "a?b&c=d"]
    for topic in ("odd t%41#1", "т+u&v"):
        ctl("topics", "create", topic)
        for name in subscriptions:
            ctl("topics", "create-subscription", topic, "-s", name, "-m", "earliest")
        assert sorted(ctl("topics", "subscriptions", topic).splitlines()) == sorted(subscriptions)
        ctl("produce", topic, "-m", "hello")
        for name in subscriptions:
            assert "hello" in ctl("topics", "peek-messages", topic, "-s", name)
            ctl("topics", "unsubscribe", topic, "-s", name)
        assert ctl("topics", "subscriptions", topic) == ""


def test_nobody_answers_and_nothing_hangs():
    start = time.monotonic()
    done = subprocess.run([OXBOWCTL, "topics", "list", "public/default", "--url", "http://127.0.0.1:1"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "is it running?" in done.stderr
    assert time.monotonic() - start < 5
