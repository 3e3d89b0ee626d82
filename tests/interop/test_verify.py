"""test_verify.py - load with the real client, checked message by message by verify.py: nothing acknowledged is lost, altered, out of order or twice."""
import json
import os
import subprocess
import sys
import threading
import traceback

import pytest

from moving import Operator
from oxbowd import CRASH_STATUS, wait_for

RATE = int(os.environ.get("OX_VERIFY_RATE", "5000"))  # messages a second; a build with sanitizers wants fewer
HERE = os.path.dirname(os.path.abspath(__file__))


class Runner:
    """Runs verify.py against a broker; `during` is called while messages flow. again: it may deliver messages again that were not acknowledged."""

    def __init__(self, broker):
        self.broker = broker

    def __call__(self, *options, seconds=4, rate=RATE, during=None, at=2, again=True):
        command = [sys.executable, "-B", os.path.join(HERE, "verify.py"), "--url", self.broker.url, "--seconds", str(seconds), "--rate", str(rate), *options]
        if during:
            command += ["--at", str(at), "--during", self.arrange(during), *(["--allow-redelivery"] if again else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:] + self.broker.log()[-3000:]
        return json.loads(done.stdout[done.stdout.index("{"):])

    def arrange(self, during):
        """A shell command that has `during` done by this process and waits for the end of it."""
        go, gone = self.broker.folder / "go", self.broker.folder / "gone"
        os.mkfifo(go)
        os.mkfifo(gone)

        def serve():
            go.read_bytes()
            try:
                during()
                answer = b"0"
            except Exception as error:
                answer = f"1; echo {type(error).__name__}".encode()
                traceback.print_exc()
            gone.write_bytes(answer)
        threading.Thread(target=serve, daemon=True).start()
        return f"echo >{go}; eval \"exit $(cat {gone})\""


@pytest.fixture
def verify(new_broker):
    new_broker.start("storeSegmentSizeMB=64")
    return Runner(new_broker)


SHORT = [("--topics", "1", "--ack", "single"), ("--topics", "10", "--ack", "holes"), ("--topics", "1", "--ack", "cumulative", "--no-batching"),
         ("--topics", "10", "--ack", "single", "--no-batching")]


@pytest.mark.parametrize("options", SHORT, ids=" ".join)
def test_nothing_is_lost_or_twice(verify, options):
    report = verify(*options)
    assert report["acked"] == report["sent"] == report["consumed"] == report["reread"]


@pytest.mark.parametrize("options", [("--ack", "single"), ("--ack", "holes", "--topics", "10", "--no-batching")], ids=" ".join)
def test_nothing_is_lost_by_a_kill(verify, options):
    verify(*options, seconds=5, during=lambda: verify.broker.restart("kill"))


def test_nothing_is_lost_by_a_clean_restart(verify):
    verify("--ack", "cumulative", seconds=4, during=lambda: verify.broker.restart("stop"))


def test_nothing_is_lost_while_ledgers_and_segments_roll(new_broker):
    new_broker.start("storeSegmentSizeMB=8", "maxMessageSize=1048576", "managedLedgerMaxEntriesPerLedger=50", "managedLedgerMinLedgerRolloverTimeMinutes=0",
                     "managedLedgerCursorMaxEntriesPerLedger=20", "managedLedgerDefaultMarkDeleteRateLimit=20")
    Runner(new_broker)("--topics", "3", "--size", "2000", seconds=6, rate=RATE // 2, at=3, during=lambda: new_broker.restart("kill"))
    page = new_broker.metrics()
    assert page['oxbow_store_segments_sealed_total{place="default"}'] > 0 and page["oxbow_ml_rollovers_total"] > 0


# ---- the storage moves meanwhile: not even a redelivery

def switch(operator):
    operator.switch("two")


def switch_and_back(operator):
    operator.switch("two")
    operator.rollback()
    assert operator.active() == "default"


def switch_and_move_data(operator):
    operator.switch("two")
    operator.move_data("two")
    assert operator.place("default")["dataLedgers"] == 0 and operator.place("default")["cursorLedgers"] == 0


def move(broker, what):
    """A second bookie cluster, and a move to be made while messages flow."""
    operator = Operator(broker)
    operator.register("two", broker.folder / "two")
    return lambda: what(operator)


MOVES = [switch, switch_and_back, switch_and_move_data]


@pytest.mark.parametrize("topics", ["1", "50"])
@pytest.mark.parametrize("what", MOVES, ids=lambda f: f.__name__)
def test_nothing_is_lost_or_twice_by_a(verify, what, topics):
    report = verify("--topics", topics, seconds=5, during=move(verify.broker, what), again=False)
    assert report["acked"] == report["sent"] == report["consumed"] == report["reread"]


@pytest.mark.soak
@pytest.mark.parametrize("options", [("--ack", "single"), ("--ack", "holes"), ("--ack", "cumulative"), ("--no-batching",)], ids=" ".join)
@pytest.mark.parametrize("topics", ["1", "50"])
@pytest.mark.parametrize("what", MOVES, ids=lambda f: f.__name__)
def test_long_move(verify, what, topics, options):
    def moves():
        for _ in range(3):
            what(operator)
            operator.switch("default")
    operator = Operator(verify.broker)
    operator.register("two", verify.broker.folder / "two")
    report = verify("--topics", topics, *options, seconds=25, at=3, during=moves, again=False)
    assert report["acked"] == report["sent"] == report["consumed"] == report["reread"]


# Where it dies while messages flow: the move is given again after the restart, and goes to its end.
DEATHS = ["switch.after_directive", "follow.after_cursor_entry", "relocate.after_record"]
DEATHS_LONG = ["switch.after_directive", "switch.after_activate", "switch.after_follow", "switch.after_writes", "switch.after_metadata", "follow.after_log",
               "follow.after_cursor_create", "follow.after_cursor_entry", "follow.after_cursor_move", "copy.after_create", "copy.after_range",
               "copy.after_entries", "copy.after_close", "copy.after_verify", "relocate.after_record", "data.after_relocate"]


def die_in_a_move(broker, what):
    """The order runs into the crash point; then a new process, and the order again."""
    operator = Operator(broker)
    operator.register("two", broker.folder / "two")

    def dies():
        try:
            what(operator)
        except OSError:
            pass
        assert broker.process.wait(timeout=30) == CRASH_STATUS
        broker.start()
        what(operator)
    return dies


@pytest.mark.parametrize("point", DEATHS)
# fault: E3 H2
def test_nothing_is_lost_by_a_kill_in_a_move(new_broker, point):
    new_broker.start("storeSegmentSizeMB=64", crash_point=point)
    Runner(new_broker)("--topics", "10", seconds=6, during=die_in_a_move(new_broker, switch_and_move_data))


@pytest.mark.soak
@pytest.mark.parametrize("topics", ["1", "50"])
@pytest.mark.parametrize("point", DEATHS_LONG)
def test_long_kill_in_a_move(new_broker, point, topics):
    new_broker.start("storeSegmentSizeMB=64", crash_point=point)
    Runner(new_broker)("--topics", topics, seconds=12, during=die_in_a_move(new_broker, switch_and_move_data))


@pytest.mark.soak
@pytest.mark.parametrize("batching", [(), ("--no-batching",)], ids=["batches", "singles"])
@pytest.mark.parametrize("ack", ["single", "cumulative", "holes"])
@pytest.mark.parametrize("topics", ["1", "10"])
def test_long(verify, topics, ack, batching):
    verify("--topics", topics, "--ack", ack, *batching, seconds=20)


@pytest.mark.soak
@pytest.mark.parametrize("batching", [(), ("--no-batching",)], ids=["batches", "singles"])
@pytest.mark.parametrize("ack", ["single", "cumulative", "holes"])
@pytest.mark.parametrize("topics", ["1", "10"])
def test_long_with_kills(verify, topics, ack, batching):
    def kills():
        for _ in range(5):
            verify.broker.restart("kill")
            wait_for(lambda: has_moved(verify.broker), "messages after the restart", 30)
    verify("--topics", topics, "--ack", ack, *batching, seconds=30, at=3, during=kills)


def has_moved(broker):
    """True when a broker has taken messages since its start."""
    return sum(broker.stats(name)["msgInCounter"] for name in broker.rest("GET", "persistent/public/default").json()) > 1000
