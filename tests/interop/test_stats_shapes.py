"""test_stats_shapes.py - figures have all the members that a real Pulsar 4.0.7 shows, with their types (golden/stats_shapes.json)."""
import json

import pytest

from rest_calls import GOLDEN
from stats_shapes import Figures, missing

NAMESPACE = "public/shapes"


@pytest.fixture(scope="module")
def figures(shared_broker):
    assert shared_broker.rest("PUT", f"namespaces/{NAMESPACE}").status == 204
    return dict(Figures(shared_broker.web_url, shared_broker.url, NAMESPACE).all())


def recorded():
    return json.loads((GOLDEN / "stats_shapes.json").read_text().replace("NAMESPACE", NAMESPACE))


@pytest.mark.parametrize("what, wanted", recorded(), ids=[what for what, _ in recorded()])
def test_no_member_is_missing(figures, what, wanted):
    lacks = list(missing(wanted, figures[what]))
    assert not lacks, "\n".join(lacks)
