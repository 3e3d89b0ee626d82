"""test_storage.py - the storage moves while the broker runs: the operator's path from register to a deleted directory, with clients at work; and what is
said and kept when something is wrong."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import threading
import urllib.parse

import pulsar
import pytest

from conftest import new_client
from oxbowd import SMALL, topic_path, wait_for
from test_bad_input import MARK, flip, small_disk  # noqa: F401 (a fixture)
from test_basics import EARLIEST, numbers, receive, send_numbers
from test_operations import OXBOWCTL, ctl, needs_oxbowctl

pytestmark = needs_oxbowctl
# Many small ledgers, so that there is something to move.
SETTINGS = (*SMALL, "managedLedgerMaxEntriesPerLedger=50", "managedLedgerMinLedgerRolloverTimeMinutes=0")
BASE = "bookie-clusters"
MIB = 1 << 20


@pytest.fixture
def moving(new_broker):
    """A broker with small ledgers."""
    return new_broker.start(*SETTINGS)


def uri(broker, name):
    return f"embedded:{broker.folder / name}"


def run(broker, *words, status=0):
    return ctl(broker, BASE, *words, status=status)


def asked(broker, *words):
    """The last line of JSON that a verb prints."""
    return json.loads(ctl(broker, "-o", "json", BASE, *words).splitlines()[-1])


def names_of(broker):
    return sorted(c["name"] for c in asked(broker, "list"))


def register(broker, *names):
    for name in names:
        run(broker, "register", name, "--metadata-service-uri", uri(broker, name))


def post(broker, path, **body):
    return broker.rest("POST", f"{BASE}/{path}", json.dumps(body) if body else None)


def active(broker):
    return asked(broker, "status")["active"]


def switch_state(broker):
    return asked(broker, "status")["switch"]["state"]


def stage(broker, name):
    return next(s for s in asked(broker, "status")["switch"]["stages"] if s["name"] == name)


def place(broker, name):
    """What the inventory says about a bookie cluster."""
    return next(p for p in asked(broker, "inventory")["places"] if p["name"] == name)


def safe(broker, name):
    return broker.rest("GET", f"{BASE}/safe-to-release/{name}").json()


def keep(client, *topics):
    """A subscription that never acknowledges, so that nothing is trimmed."""
    for topic in topics:
        client.subscribe(topic, "keeper", initial_position=EARLIEST).close()


def all_of(client, topic):
    """Every message of a topic, from its beginning."""
    reader, got = client.create_reader(topic, pulsar.MessageId.earliest), []
    while reader.has_message_available():
        got.append(reader.read_next(timeout_millis=10000).data())
    reader.close()
    return got


def fill(broker, topic="t", count=300, size=0):
    client = new_client(broker)
    keep(client, topic)
    producer = client.create_producer(topic, batching_enabled=False)
    sent = [b"%d" % i + bytes(size) for i in range(count)]
    for body in sent:
        producer.send(body)
    client.close()
    return sent


class Traffic:
    """A producer that never rests, and what it was promised."""

    def __init__(self, broker, topic):
        self.client = new_client(broker)
        keep(self.client, topic)
        self.producer = self.client.create_producer(topic, batching_enabled=False, send_timeout_millis=30000)
        self.acknowledged, self.trouble, self.ending = [], None, threading.Event()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        number = 0
        try:
            while not self.ending.is_set():
                self.producer.send(b"%d" % number)
                self.acknowledged.append(b"%d" % number)
                number += 1
        except Exception as error:  # told by end()
            self.trouble = error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.client.close()

    def end(self):
        self.ending.set()
        self.thread.join()
        assert self.trouble is None, self.trouble
        return self.acknowledged


# ---- the operator's path ---------------------------------------------------------------------------------------------

def release(broker, name):
    """Deletes the copies that were left behind, and waits until nothing is."""
    run(broker, "cleanup", "--force", "--src-cluster", name)
    wait_for(lambda: safe(broker, name)["safe"], f"{name} is safe to release: {safe(broker, name)}", 30)


# fault: H1
def test_old_directory_can_be_deleted_in_the_end(moving):
    broker, topics = moving, ("a", "b", "c")
    client = new_client(broker)
    keep(client, *topics)
    for topic in topics:
        consumer = client.subscribe(topic, "s")
        send_numbers(client, topic, 200)
        for message in receive(consumer, 120):
            consumer.acknowledge(message)
        consumer.close()
    register(broker, "big", "spare")
    assert names_of(broker) == ["big", "default", "spare"]
    assert asked(broker, "precheck", "big")["ready"] is True
    plan = asked(broker, "plan", "big", "--rate", "100M")
    assert plan["fits"] is True and plan["topics"] >= 3 and plan["ledgers"] >= 12 and plan["bytes"] > 0
    with Traffic(broker, "live") as traffic:
        wait_for(lambda: len(traffic.acknowledged) > 100, "messages before the switch")
        run(broker, "switch", "big", "--wait")
        assert active(broker) == "big" and place(broker, "default")["dataLedgers"] > 0
        seen = len(traffic.acknowledged)
        wait_for(lambda: len(traffic.acknowledged) > seen + 100, "messages after the switch")
        run(broker, "move-data", "big", "--wait")
        old = place(broker, "default")
        assert (old["dataLedgers"], old["cursorLedgers"], old["bytes"]) == (0, 0, 0), old
        assert asked(broker, "verify", "big")["bad"] == []
        release(broker, "default")
        assert f"{broker.data / 'store'} any more: it can be deleted" in run(broker, "unregister", "default")
        shutil.rmtree(broker.data / "store")
        seen = len(traffic.acknowledged)
        wait_for(lambda: len(traffic.acknowledged) > seen + 100, "messages without the old directory")
        live = traffic.end()
    client.close()
    for how in ("stop", "kill"):
        broker.restart(how)
        assert not broker.events("mledger.sweep.place_away")  # nobody misses what was unregistered
        client = new_client(broker)
        for topic in topics:
            assert all_of(client, topic) == numbers(0, 200)
        assert list(dict.fromkeys(all_of(client, "live"))) == live
        client.close()
    client = new_client(broker)
    for topic in topics:
        consumer = client.subscribe(topic, "s")
        assert [m.data() for m in receive(consumer, 80)] == numbers(120, 200)
    assert names_of(broker) == ["big", "spare"]
    client.close()


# fault: F6 H3
def test_rollback_and_back_again_lose_nothing(moving):
    broker = moving
    register(broker, "big")
    client = new_client(broker)
    keep(client, "t")
    producer, sent = client.create_producer("t", batching_enabled=False), 0
    for words in (("switch", "big"), ("rollback",), ("switch", "big"), ("rollback",)):
        for _ in range(70):
            producer.send(b"%d" % sent)
            sent += 1
        run(broker, *words, "--wait")
    assert active(broker) == "default"
    assert all_of(client, "t") == numbers(0, sent)
    run(broker, "move-data", "default", "--wait")
    release(broker, "big")
    run(broker, "unregister", "big")
    shutil.rmtree(broker.folder / "big")
    client.close()
    broker.restart("kill")
    client = new_client(broker)
    assert all_of(client, "t") == numbers(0, sent)
    client.close()


def test_registered_alone_changes_nothing(moving):
    broker = moving
    fill(broker)
    register(broker, "big")
    used = place(broker, "big")
    assert (active(broker), used["dataLedgers"], used["cursorLedgers"]) == ("default", 0, 0)
    register(broker, "big")  # the same again is fine
    run(broker, "unregister", "big")
    broker.restart()
    assert names_of(broker) == ["default"]
    client = new_client(broker)
    assert all_of(client, "t") == numbers(0, 300)
    client.close()


# fault: H2
def test_killed_in_the_middle_goes_on(moving):
    broker = moving
    sent = fill(broker, count=400, size=10000)
    register(broker, "big")
    run(broker, "switch", "big", "--wait")
    run(broker, "throttle", "--bytes", "1M")
    run(broker, "move-data", "big")
    wait_for(lambda: stage(broker, "DATA_MOVED")["bytes"] > 0, "a first ledger was moved", 20)
    broker.restart("kill")
    assert asked(broker, "status")["switch"]["throttle"]["bytesPerSecond"] == MIB
    run(broker, "throttle", "--bytes", "0")
    run(broker, "watch")
    assert place(broker, "default")["dataLedgers"] == 0
    client = new_client(broker)
    assert all_of(client, "t") == sent
    client.close()


# ---- what the operator sees ------------------------------------------------------------------------------------------

@pytest.fixture
def slow(moving):
    """A broker whose data moves slowly: the stage is not over until the throttle is opened."""
    moving.sent = fill(moving, count=400, size=10000)
    register(moving, "big", "other")
    run(moving, "switch", "big", "--wait")
    run(moving, "throttle", "--bytes", "100K")
    return moving


def begin(broker, *words, **options):
    return subprocess.Popen([OXBOWCTL, "--url", broker.web_url, BASE, *words], stderr=subprocess.PIPE, **options)


def test_waiting_prints_lines_without_a_terminal_and_ctrl_c_leaves_the_move(slow):
    broker = slow
    process = begin(broker, "move-data", "big", "--wait", stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if re.match(r"DATA_MOVED \d+ % [\d.]+/[\d.]+ MiB", line):
            break
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=20)
    assert process.returncode == 1 and "goes on" in said and "watch" in said, said
    assert "\033" not in rest
    assert switch_state(broker) == "RUNNING"
    run(broker, "throttle", "--bytes", "0")
    assert "all data is in big" in run(broker, "watch")


def test_waiting_draws_bars_on_a_terminal(slow):
    broker = slow
    main, side = pty.openpty()
    process = begin(broker, "move-data", "big", "--wait", stdout=side)
    os.close(side)
    drawn = b""
    while drawn.count(b"DATA_MOVED") < 3:
        drawn += os.read(main, 4096)
    run(broker, "throttle", "--bytes", "0")
    try:
        while piece := os.read(main, 4096):
            drawn += piece
    except OSError:  # how a terminal says that it ended
        pass
    os.close(main)
    assert process.wait(timeout=20) == 0, process.stderr.read()
    text = drawn.decode()
    assert "\033[5A" in text and re.search(r"DATA_MOVED +\[#*\.+\] +\d+ %", text) and re.search(r"DATA_MOVED +\[#+\] +100 %", text), text
    assert all(len(line) < 80 for line in re.sub(r"\033\[\d*[AK]", "", text).replace("\r", "").split("\n") if line[:1].isupper()), text


# fault: F13
def test_pause_resume_and_abort(slow):
    broker = slow
    run(broker, "move-data", "big")
    run(broker, "pause")
    assert switch_state(broker) == "PAUSED"
    run(broker, "resume")
    assert switch_state(broker) == "RUNNING"
    run(broker, "abort")
    assert switch_state(broker) == "ABORTED" and active(broker) == "big"
    assert "rollback" in ctl(broker, BASE, "watch", status=1)
    client = new_client(broker)
    assert all_of(client, "t") == broker.sent
    client.close()


# fault: F4
def test_an_unfinished_switch_stands_in_the_way(slow):
    broker = slow
    run(broker, "move-data", "big")
    epoch = asked(broker, "status")["epoch"]
    refused = post(broker, "switch", target="other")
    assert refused.status == 409 and "supersede" in refused.reason(), refused.text
    assert (active(broker), asked(broker, "status")["epoch"]) == ("big", epoch)
    answer = post(broker, "switch", target="other", supersede=True)
    assert answer.status == 202 and answer.json()["epoch"] == epoch + 1, answer.text
    run(broker, "throttle", "--bytes", "0")
    wait_for(lambda: stage(broker, "METADATA_MOVED")["left"] == 0, "the switch to other", 20)
    client = new_client(broker)
    assert all_of(client, "t") == broker.sent
    client.close()


# fault: F1
def test_two_switches_at_once_have_one_winner(moving):
    broker = moving
    fill(broker)
    register(broker, "one", "two")
    answers = {}

    def order(name):
        answers[name] = post(broker, "switch", target=name)

    threads = [threading.Thread(target=order, args=(name,)) for name in ("one", "two")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    won = [name for name, answer in answers.items() if answer.status == 202]
    lost = [answer for answer in answers.values() if answer.status != 202]
    assert len(won) == 1 and all(a.status == 409 and a.reason() for a in lost), {n: (a.status, a.text) for n, a in answers.items()}
    assert active(broker) == won[0]
    run(broker, "watch")


# fault: F12
def test_read_modes(moving):
    broker = moving
    fill(broker)
    register(broker, "big")
    run(broker, "switch", "big", "--wait")
    assert post(broker, "read-mode", mode="SIDEWAYS").status == 400
    run(broker, "set-read-mode", "NEW_CLUSTER_ONLY")
    broker.restart()  # which ends it, and empties the cache
    assert asked(broker, "status")["readMode"] == "DUAL_READ"
    run(broker, "set-read-mode", "NEW_CLUSTER_ONLY")
    assert asked(broker, "status")["readMode"] == "NEW_CLUSTER_ONLY"
    client = new_client(broker)
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    with pytest.raises(pulsar.Timeout):
        reader.read_next(timeout_millis=1500)
    run(broker, "set-read-mode", "--mode", "DUAL_READ")
    assert reader.read_next(timeout_millis=30000).data() == b"0"
    assert all_of(client, "t") == numbers(0, 300)
    client.close()


# ---- bad input -------------------------------------------------------------------------------------------------------

RESERVED = ("switch-target", "bootstrap", "orchestrator", "acks", "switch", "status", "read-mode", "precheck", "cleanup", "cleanup-targets", "internal",
            "close-client", "rollback", "pause", "resume", "abort", "plan", "inventory", "failures", "move-data", "throttle", "verify", "safe-to-release")
ODD = ("a b", "ä", "x" * 65, "a/b", ".", "..", "a\nb", "%", "default\t", "a:b")


@pytest.mark.parametrize("names", [RESERVED, ODD], ids=["reserved", "odd"])
# fault: F11
def test_names_that_cannot_be(moving, names):
    for name in names:
        answer = moving.rest("POST", f"{BASE}/{urllib.parse.quote(name, safe='')}", json.dumps({"metadataServiceUri": uri(moving, "x")}))
        assert answer.status == 400 and "name" in answer.reason(), (name, answer.status, answer.text)
    assert names_of(moving) == ["default"]
    assert not (moving.folder / "x").exists()


# fault: B11
def test_same_place_in_other_words(moving):
    broker, real = moving, moving.folder / "big"
    register(broker, "big")
    os.symlink(real, broker.folder / "link")
    for words in (f"{real}/", f"{real}/../big", f"/{real}", f"{broker.folder}/./big"):
        answer = post(broker, "again", metadataServiceUri=f"embedded:{words}")
        assert answer.status == 400 and "big" in answer.reason(), (words, answer.status, answer.text)
    answer = post(broker, "again", metadataServiceUri=uri(broker, "link"))  # found out by its lock
    assert answer.status in (400, 409) and "registered" in answer.reason(), (answer.status, answer.text)
    answer = post(broker, "again", metadataServiceUri=f"embedded:{broker.data / 'store'}")
    assert answer.status == 400 and "default" in answer.reason(), answer.text
    answer = post(broker, "big", metadataServiceUri=uri(broker, "elsewhere"))
    assert answer.status == 409 and "big" in answer.reason(), answer.text
    assert names_of(broker) == ["big", "default"]


@pytest.mark.parametrize("bad", ["", "embedded:", "embedded:relative/path", "/just/a/path", "ftp://host/x", "embedded", "zk+odd://h:1/x"])
# fault: F11
def test_uris_that_are_not_understood(moving, bad):
    answer = post(moving, "x", metadataServiceUri=bad)
    assert answer.status == 400 and answer.reason(), answer.text
    assert names_of(moving) == ["default"]


def test_storage_that_cannot_be_reached(moving):
    (moving.folder / "file").write_text("I am no directory")
    answer = post(moving, "x", metadataServiceUri=uri(moving, "file/below"))
    assert answer.status in (400, 500) and "file/below" in answer.reason(), answer.text
    assert names_of(moving) == ["default"]
    assert moving.rest("GET", "brokers/health").status == 200


# fault: H3
def test_storage_without_room(moving, small_disk):  # noqa: F811
    with open(small_disk / "ballast", "wb", buffering=0) as ballast, pytest.raises(OSError):
        while True:
            ballast.write(bytes(4096))
    answer = post(moving, "x", metadataServiceUri=f"embedded:{small_disk}/oxbow")
    assert answer.status >= 400 and "full" in answer.reason() and str(small_disk) in answer.reason(), answer.text
    assert names_of(moving) == ["default"] and active(moving) == "default"
    assert moving.rest("GET", "brokers/health").status == 200
    (small_disk / "ballast").unlink()
    run(moving, "register", "x", "--metadata-service-uri", f"embedded:{small_disk}/oxbow")
    space = next(c for c in moving.rest("GET", f"{BASE}/precheck/x").json()["checks"] if c["name"] == "space")
    assert space["result"] == "fail" and f"keeps {256 * MIB} free" in space["detail"], space
    refused = post(moving, "switch", target="x")
    assert refused.status == 409 and space["detail"] in refused.reason(), refused.text
    assert active(moving) == "default"
    moving.stop()
    moving.start(*SETTINGS, "storeReserveMB=1")
    run(moving, "switch", "x", "--wait")


def test_storage_in_a_directory_of_its_own(moving):
    register(moving, "big")
    for words in (moving.folder / "big" / "inner", moving.folder, moving.data, moving.data / "store" / "x", moving.data / "..", "/"):
        answer = post(moving, "x", metadataServiceUri=f"embedded:{words}")
        assert answer.status == 400 and "directory of its own" in answer.reason(), (words, answer.text)
    assert names_of(moving) == ["big", "default"]
    assert post(moving, "x", metadataServiceUri=f"embedded:{moving.data / 'x'}").status == 204


def test_move_data_without_a_switch_leaves_nothing_behind(moving):
    register(moving, "big")
    answer = post(moving, "move-data", target="default")
    assert (answer.status, answer.json()["ledgers"]) == (202, 0), answer.text
    run(moving, "unregister", "big")


def test_id_conflicts_are_counted_once_on_the_page(moving):
    register(moving, "big")
    run(moving, "plan", "big")  # the half that copies is at work
    lines = [line for line in moving.http("GET", "/metrics").text.splitlines() if line.startswith("migration_ledger_id_conflict_total")]
    assert len(lines) == 1, lines


@pytest.mark.parametrize("path, body, says", [
    ("x", "", "metadataServiceUri"), ("x", "{", "JSON"), ("x", "[]", "object"), ("x", '{"metadataServiceUri": 5}', "metadataServiceUri"),
    ("x", '{"metadataServiceUri": "embedded:/x", "stat": "STANDBY"}', "stat"), ("x", '{"metadataServiceUri": "a", "metadataServiceUri": "b"}', "JSON"),
    ("switch", "{}", "target"), ("switch", '{"target": "default", "supersede": "yes"}', "supersede"), ("move-data", "null", "JSON"),
    ("read-mode", '{"mode": null}', "mode"), ("cleanup", '{"dryrun": false}', "dryrun"), ("cleanup", '{"maxDeletions": -1}', "maxDeletions"),
    ("cleanup", '{"maxDeletions": 1.5}', "maxDeletions"), ("abort", '{"metadataServiceUri": "embedded:/x"}', "metadataServiceUri"),
    ("internal/promote-cursor", '{"topic": "t", "cursorName": "s", "targetClusterName": "default"}', "expectedCursorsLedgerId"),
])
# fault: F11
def test_bodies_are_checked(shared_broker, path, body, says):
    answer = shared_broker.rest("POST", f"{BASE}/{path}", body)
    assert answer.status == 400 and says in answer.reason(), answer.text


@pytest.mark.parametrize("method, path", [("GET", "nobody"), ("DELETE", "nobody"), ("GET", "precheck/nobody"), ("GET", "plan?target=nobody"),
                                          ("GET", "verify/nobody"), ("GET", "safe-to-release/nobody"), ("POST", "close-client/nobody")])
# fault: F10
def test_unknown_names_are_404(shared_broker, method, path):
    answer = shared_broker.rest(method, f"{BASE}/{path}")
    assert answer.status == 404 and "nobody" in answer.reason(), answer.text


def test_switch_to_an_unknown_one_is_404(shared_broker):
    answer = post(shared_broker, "switch", target="nobody")
    assert answer.status == 404 and "nobody" in answer.reason(), answer.text
    assert "nobody" in run(shared_broker, "switch", "nobody", status=1)


# fault: F3
def test_switch_to_the_active_one_changes_nothing(moving):
    before = asked(moving, "status")
    answer = post(moving, "switch", target="default")
    assert answer.status == 202 and answer.json()["noop"] is True, answer.text
    after = asked(moving, "status")
    assert (after["active"], after["epoch"]) == (before["active"], before["epoch"])
    register(moving, "big")
    run(moving, "switch", "big", "--wait")
    epoch = asked(moving, "status")["epoch"]
    assert asked(moving, "switch", "big")["noop"] is True
    assert asked(moving, "status")["epoch"] == epoch


# fault: F10 F15
def test_what_is_needed_cannot_be_unregistered(moving):
    broker = moving
    fill(broker)
    register(broker, "big")
    refused = broker.rest("DELETE", f"{BASE}/default")
    assert refused.status == 409 and "active" in refused.reason(), refused.text
    run(broker, "switch", "big", "--wait")
    refused = broker.rest("DELETE", f"{BASE}/default")
    assert refused.status == 409 and "ledger" in refused.reason(), refused.text
    answer = safe(broker, "default")
    assert answer["safe"] is False and answer["reasons"]
    assert "not safe" in subprocess.run([OXBOWCTL, "--url", broker.web_url, BASE, "safe-to-release", "default"], capture_output=True, text=True).stdout
    refused = broker.rest("DELETE", f"{BASE}/big")
    assert refused.status == 409 and "active" in refused.reason(), refused.text
    client = new_client(broker)
    assert all_of(client, "t") == numbers(0, 300)
    client.close()


def test_move_data_wants_the_active_one(moving):
    register(moving, "big")
    refused = post(moving, "move-data", target="big")
    assert refused.status == 409 and "big" in refused.reason(), refused.text


# ---- damage ----------------------------------------------------------------------------------------------------------

# fault: D4
def test_corrupt_entry_stays_where_it_is_and_all_else_moves(moving):
    broker = moving
    client = new_client(broker)
    keep(client, "t", "whole")
    producer = client.create_producer("t", batching_enabled=False)
    ids = [producer.send(MARK if i == 60 else b"entry %d" % i) for i in range(200)]
    send_numbers(client, "whole", 200)
    client.close()
    broker.stop()
    assert len(flip(broker.data / "store", MARK)) == 1
    broker.start(*SETTINGS)
    register(broker, "big")
    run(broker, "switch", "big", "--wait")
    said = ctl(broker, BASE, "move-data", "big", "--wait", status=1)
    assert "could not be moved" in said, said
    failures = asked(broker, "failures")
    assert len(failures) == 1 and failures[0]["ledger"] == ids[60].ledger_id() and failures[0]["place"] == "default", failures
    assert "t" in failures[0]["topic"] and failures[0]["reason"], failures
    assert switch_state(broker) == "DONE_WITH_FAILURES"
    old = place(broker, "default")
    assert old["dataLedgers"] == 1, old
    assert broker.rest("DELETE", f"{BASE}/default").status == 409
    client = new_client(broker)
    assert all_of(client, "whole") == numbers(0, 200)
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    assert [reader.read_next(timeout_millis=5000).data() for _ in range(60)] == [b"entry %d" % i for i in range(60)]
    behind = client.create_reader("t", ids[61], start_message_id_inclusive=True)
    assert [behind.read_next(timeout_millis=5000).data() for _ in range(61, 200)] == [b"entry %d" % i for i in range(61, 200)]
    client.close()


# fault: B12
def test_exchanged_directory_is_noticed(moving):
    """Another storage stands where one was registered: nothing is read from it or written to it, and nothing is taken for gone."""
    broker = moving
    sent = fill(broker)
    register(broker, "big", "other")
    run(broker, "switch", "big", "--wait")
    run(broker, "switch", "other", "--wait")
    broker.stop()
    os.rename(broker.folder / "big", broker.folder / "put-aside")
    broker.start()
    states = {c["name"]: c["state"] for c in asked(broker, "list")}
    assert states["other"] == states["default"] == "OPEN" and states["big"] != "OPEN", states
    broker.stop()
    shutil.rmtree(broker.folder / "big", ignore_errors=True)
    shutil.copytree(broker.data / "store", broker.folder / "big")
    broker.start()
    assert asked(broker, "get", "big")["state"] == "PLACE_CHANGED"
    assert "identity changed" in run(broker, "list") and "identity changed" in run(broker, "get", "big")
    refused = post(broker, "switch", target="big")
    assert refused.status >= 400 and "identity" in refused.reason(), refused.text
    assert active(broker) == "other"
    client = new_client(broker)
    assert all_of(client, "t") == sent
    client.close()
    broker.stop()
    shutil.rmtree(broker.folder / "big")
    os.rename(broker.folder / "put-aside", broker.folder / "big")
    broker.start()
    assert asked(broker, "precheck", "big")["ready"] is True


def test_start_without_the_active_directory_is_refused(moving):
    broker = moving
    sent = fill(broker)
    register(broker, "big")
    run(broker, "switch", "big", "--wait")
    broker.stop()
    os.rename(broker.folder / "big", broker.folder / "put-aside")
    broker.launch()
    assert not broker.wait_ready() and broker.process.returncode != 0
    said = [line for line in broker.log().splitlines() if line.startswith("oxbowd: ")]
    assert said and "big" in said[-1], broker.log()[-2000:]
    shutil.rmtree(broker.folder / "big", ignore_errors=True)
    os.rename(broker.folder / "put-aside", broker.folder / "big")
    broker.start()
    client = new_client(broker)
    assert all_of(client, "t") == sent
    client.close()


# fault: E10
def test_topic_in_two_places_is_deleted_without_having_been_loaded(moving):
    """Its ledgers go from both places, and nothing of anybody else goes with them."""
    broker = moving
    fill(broker, "gone")
    stays = fill(broker, "stays")
    register(broker, "big")
    run(broker, "switch", "big", "--wait")
    client = new_client(broker)
    send_numbers(client, "gone", 200)
    client.close()
    assert place(broker, "default")["dataLedgers"] >= 12 and place(broker, "big")["dataLedgers"] >= 4
    broker.restart("kill")
    assert broker.rest("DELETE", topic_path("gone") + "?force=true").status == 204
    client = new_client(broker)
    assert all_of(client, "stays") == stays
    wait_for(lambda: not any(place(broker, name)["pendingDeletes"] for name in ("default", "big")), "the deletes", 20)
    run(broker, "move-data", "big", "--wait")
    release(broker, "default")  # nothing that nobody names has been left there
    assert all_of(client, "stays") == stays
    assert client.get_topic_partitions("gone") == ["persistent://public/default/gone"] and all_of(client, "gone") == []
    client.close()


# fault: E12
def test_topics_go_on_over_a_switch(moving):
    """Subscriptions keep their place, and a topic can be unloaded and deleted, whichever bookie cluster holds it."""
    broker = moving
    client = new_client(broker)
    consumer = client.subscribe("t", "s")
    send_numbers(client, "t", 120)
    for message in receive(consumer, 60):
        consumer.acknowledge(message)
    register(broker, "big")
    run(broker, "switch", "big", "--wait")
    assert broker.rest("PUT", topic_path("t") + "/unload").status == 204
    assert [m.data() for m in receive(consumer, 60)] == numbers(60, 120)
    consumer.close()
    assert broker.rest("DELETE", topic_path("t") + "?force=true").status == 204
    client.close()
    release(broker, "default")
