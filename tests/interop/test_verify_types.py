"""test_verify_types.py - verify.py for every kind of subscription: one and several consumers, batches or single messages, holes in the acks, kill -9.

The short lists run with the other tests, every combination in soak."""
import itertools

import pytest

from test_verify import RATE, Runner, has_moved
from oxbowd import wait_for

TYPES = ["Exclusive", "Failover", "Shared", "KeyShared"]


@pytest.fixture
def verify(new_broker):
    new_broker.start("storeSegmentSizeMB=64")
    return Runner(new_broker)


def options_of(kind, consumers="1", topics="1", ack="single", batching=True):
    return ["--sub-type", kind, "--consumers", consumers, "--topics", topics, "--ack", ack, *([] if batching else ["--no-batching"])]


SHORT = [options_of("Failover", "3"), options_of("Shared", "3", ack="holes"), options_of("KeyShared", "3", batching=False),
         options_of("KeyShared", "3", topics="50"), options_of("Shared", "1", batching=False), options_of("Shared", "3", topics="50", ack="holes")]
KILLED = [options_of("Failover", "3", batching=False), options_of("Shared", "3", ack="holes"), options_of("KeyShared", "3")]
ALL = [options_of(*each) for each in itertools.product(TYPES, ["1", "3"], ["1", "50"], ["single", "holes"], [True, False])]


@pytest.mark.parametrize("options", SHORT, ids=" ".join)
def test_nothing_is_lost_or_twice(verify, options):
    report = verify(*options)
    assert report["acked"] == report["sent"] == report["consumed"] == report["reread"]


@pytest.mark.parametrize("options", KILLED, ids=" ".join)
def test_nothing_is_lost_by_a_kill(verify, options):
    verify(*options, seconds=5, during=lambda: verify.broker.restart("kill"))


@pytest.mark.soak
@pytest.mark.parametrize("options", ALL, ids=" ".join)
def test_long(verify, options):
    report = verify(*options, seconds=10)
    assert report["acked"] == report["sent"] == report["consumed"] == report["reread"]


@pytest.mark.soak
@pytest.mark.parametrize("options", ALL, ids=" ".join)
def test_long_with_kills(verify, options):
    def kills():
        for _ in range(3):
            verify.broker.restart("kill")
            wait_for(lambda: has_moved(verify.broker), "messages after the restart", 30)
    verify(*options, seconds=20, rate=RATE // 2, at=3, during=kills)
