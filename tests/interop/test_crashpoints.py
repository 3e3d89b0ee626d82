"""test_crashpoints.py - the real process dies at each named crash point in the middle of its ordinary life (story.py), and of one in which its storage moves
(moving.py): nothing promised is lost."""
import pathlib
import re

import pytest

from oxbowd import CRASH_STATUS
from moving import MovingStory
from story import Story

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src"

REACHED = [
    "cursor.after_append", "cursor.after_create", "cursor.after_first_entry", "cursor.after_move", "cursor.after_node", "cursor.after_remove",
    "delete.after_ledger", "delete.after_node", "delete.after_record", "discard.after_delete", "end.after_cursors", "end.after_ledger",
    "open.after_create", "open.after_node", "open.after_record", "open.after_recover", "roll.after_close", "roll.after_create", "roll.after_record",
    "store.batch.after_ack", "store.batch.after_sync", "store.batch.before_write", "store.close.before_record", "store.close.sealed",
    "store.compact.before_move", "store.compact.done", "store.compact.moved", "store.create.before_record", "store.delete.before_table",
    "store.delete.recorded", "store.delete.told", "store.open.copied", "store.open.fenced", "store.open.replayed", "store.recycle.done",
    "store.recycle.forgotten", "store.recycle.renamed", "store.seal.before_footer", "store.seal.committed", "store.seal.footer_written",
    "store.segment.created", "store.segment.header_written", "store.segment.listed", "store.segment.renamed", "store.segment.switched",
    "store.segment.reserved", "sweep.after_delete", "trim.after_record",
]
# Those of a life in which the storage moves; the first few of them in every run, all in soak.
MOVING = [
    "cleanup.after_delete", "cleanup.after_drop", "copy.after_close", "copy.after_create", "copy.after_entries",
    "copy.after_range", "copy.after_verify", "cursor_move.after_ledger", "cursor_move.after_node", "cursor_move.after_read", "data.after_relocate",
    "deletes.after_delete", "deletes.after_intent", "deletes.after_node", "follow.after_cursor", "follow.after_cursor_create",
    "follow.after_cursor_entry", "follow.after_cursor_move", "follow.after_log", "register.after_bootstrap", "register.after_entries",
    "register.after_first_entry", "register.after_identity", "register.after_ids", "register.after_open", "relocate.after_node",
    "relocate.after_record", "switch.after_ack", "switch.after_activate", "switch.after_data", "switch.after_directive", "switch.after_follow",
    "switch.after_header", "switch.after_lease", "switch.after_metadata", "switch.after_precheck", "switch.after_swapped", "switch.after_writes",
    "unregister.after_close", "unregister.after_identity",
]
MOVING_SHORT = ["register.after_bootstrap", "switch.after_directive", "follow.after_cursor_entry", "cursor_move.after_ledger", "copy.after_close",
                "relocate.after_record", "cleanup.after_drop"]
# What no ordinary life reaches, and where it is armed instead.
ELSEWHERE = """
target.after_record: a life gives no topic a target of its own; src/move/storage/targets_test.c
target.after_remove: likewise; src/move/storage/targets_test.c
cleanup.after_leftover: a copy that no record names, which moving again would have taken over; src/move/storage/data_test.c
partitions.after_part: a growth too large for one transaction; src/broker/partitions_test.c
partitions.after_mark: a partitioned topic that is deleted; src/broker/partitions_test.c
partitions.after_delete: likewise; src/broker/partitions_test.c
namespace.after_mark: a namespace that is deleted; src/broker/topic_list_test.c
namespace.after_topic: likewise; src/broker/topic_list_test.c
namespace.before_node: likewise; src/broker/topic_list_test.c
compaction.after_create: a topic that is compacted; tests/interop/test_compaction.py
compaction.after_note: likewise; tests/interop/test_compaction.py
compaction.after_close: likewise; tests/interop/test_compaction.py
compaction.after_switch: likewise; tests/interop/test_compaction.py
compaction.after_forget: likewise; tests/interop/test_compaction.py
terminate.after_close: a topic that is terminated; src/mledger/terminate_test.c
terminate.after_record: likewise; src/mledger/terminate_test.c
roll.after_abandon: a next ledger that fails before it is recorded; src/mledger/roll_test.c
"""
BEFORE = {"sweep.after_delete": "roll.after_create:3"}  # an earlier life that must leave something behind


def live_and_die(broker, point):
    name = point.split(":")[0]
    story = Story(broker, BEFORE.get(name, point))
    reached = story.tell()
    if name in BEFORE:
        assert reached
        story.crash_point = point
        reached = story.tell()
    if reached:
        assert broker.process.returncode == CRASH_STATUS
    story.check()
    return reached


@pytest.mark.parametrize("point", REACHED)
def test_nothing_is_lost_at(new_broker, point):
    assert live_and_die(new_broker, point), f"{point} was not reached"


@pytest.mark.soak
@pytest.mark.parametrize("nth", [2, 5, 20, 60])
@pytest.mark.parametrize("point", REACHED)
def test_nothing_is_lost_at_a_later_pass(new_broker, point, nth):
    live_and_die(new_broker, f"{point}:{nth}")


def move_and_die(broker, point):
    story = MovingStory(broker, point)
    reached = story.tell()
    if reached:
        assert broker.process.returncode == CRASH_STATUS
    story.check()
    return reached


@pytest.mark.parametrize("point", MOVING_SHORT)
# fault: A1 H2
def test_a_move_goes_on_after(new_broker, point):
    assert move_and_die(new_broker, point), f"{point} was not reached"


@pytest.mark.soak
@pytest.mark.parametrize("point", MOVING)
def test_any_move_goes_on_after(new_broker, point):
    assert move_and_die(new_broker, point), f"{point} was not reached"


@pytest.mark.soak
@pytest.mark.parametrize("nth", [2, 5, 12])
@pytest.mark.parametrize("point", MOVING)
def test_any_move_goes_on_after_a_later_pass(new_broker, point, nth):
    move_and_die(new_broker, f"{point}:{nth}")


def test_a_life_with_moves_keeps_its_promises(new_broker):
    story = MovingStory(new_broker)
    assert not story.tell()
    story.check()


def test_a_whole_life_keeps_its_promises(new_broker):
    story = Story(new_broker)
    assert not story.tell()
    story.check()


def test_each_point_has_its_place():
    files = [p for p in SOURCE.rglob("*.c") if not p.stem.endswith("_test") and p.relative_to(SOURCE).parts[0] != "sim"]
    declared = {name for p in files for name in re.findall(r'OX_CRASHPOINT\s*\([^";]*,\s*"([^"]+)"', p.read_text())}
    elsewhere = set(re.findall(r"^([a-z_.]+):", ELSEWHERE, re.M))
    assert declared == set(REACHED) | set(MOVING) | elsewhere
