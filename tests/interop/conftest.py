"""conftest.py - the fixtures: a fresh broker for a test, one broker for the tests of a file that leave it as it is, and clients of both."""
import itertools

import pulsar
import pytest

from oxbowd import SMALL, Broker

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
numbers = itertools.count(1)


def new_client(broker, **options):
    return pulsar.Client(broker.url, **{"operation_timeout_seconds": 15, "logger": QUIET, **options})


def end(broker):
    """Every test ends with a clean stop, unless it stopped or killed the broker itself, and without a word of a sanitizer."""
    status = broker.stop() if broker.alive() else 0
    trouble = broker.trouble()
    assert trouble is None, trouble
    assert status == 0, broker.log()[-4000:]


@pytest.fixture
def new_broker(tmp_path):
    """A broker that is not started yet, its folder empty."""
    with Broker(tmp_path) as broker:
        yield broker
        if broker.process:
            end(broker)


@pytest.fixture
def broker(new_broker):
    return new_broker.start()


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory):
    """One for all tests of a file: they use topics of their own and leave it running."""
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        broker.start(*SMALL)
        yield broker
        assert broker.alive(), broker.log()[-4000:]
        end(broker)


@pytest.fixture
def client(shared_broker):
    c = new_client(shared_broker)
    yield c
    c.close()


@pytest.fixture
def topic(request):
    """A name that no other test uses."""
    return f"{request.node.originalname}-{next(numbers)}"
