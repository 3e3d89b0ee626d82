"""test_golden.py - a fresh oxbowd lives the histories and must keep the very bytes that Pulsar 4.0.7 kept.

A snapshot waits until the broker writes nothing any more, copies its data folder and reads the copy with oxbow-inspect.
"""
import json
import os
import shutil
import subprocess
import time

import history
import pytest
import wirefmt
from camera import TOPICS, Camera

from oxbowd import BUILD, SMALL, wait_for

GOLDEN = os.path.dirname(os.path.abspath(__file__))
QUIET_S = 0.5  # longer than clients keep an acknowledgement back; cursors are written without delay here
SETTINGS = (*SMALL, "managedLedgerDefaultMarkDeleteRateLimit=0", "acknowledgmentAtBatchIndexLevelEnabled=false", "producerResendWindowSeconds=0", "managedLedgerTrimDelaySeconds=0")
MORE = {
    "rollover": ("managedLedgerMaxEntriesPerLedger=10", "managedLedgerMinLedgerRolloverTimeMinutes=0"),
    "indexed": ("brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor,"
                "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",)}
KINDS = ("topic", "cursor", "ack", "message", "ledger")


class OxbowCamera(Camera):
    """Reads a copy of the broker's data folder, made when nothing in it has changed for a while."""

    def __init__(self, data, copy):
        super().__init__()
        self.data, self.copy, self.tree, self.info, self.shown = data, copy, {}, {}, {}

    def written(self):
        """What changes with every write: when each file was written, and how long it is."""
        found = {}
        for folder, _, names in os.walk(self.data):
            for name in names:
                try:
                    stat = os.stat(os.path.join(folder, name))
                    found[folder, name] = stat.st_mtime_ns, stat.st_size
                except FileNotFoundError:  # renamed meanwhile
                    found[folder, name] = None
        return found

    def settle(self):
        """Waits for QUIET_S seconds without a write, and copies."""
        last, since = self.written(), time.monotonic()

        def quiet():
            nonlocal last, since
            now = self.written()
            if now != last:
                last, since = now, time.monotonic()
            return time.monotonic() - since >= QUIET_S

        wait_for(quiet, f"no write to {self.data}", 30, 0.02)
        shutil.rmtree(self.copy, ignore_errors=True)
        subprocess.run(["cp", "-a", self.data, self.copy], check=True)
        assert self.written() == last, "written to while it was copied"
        self.inspect_copy()

    def inspect(self, *words):
        done = subprocess.run([BUILD / "oxbow-inspect", self.copy, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def inspect_copy(self):
        """Everything that the copy holds, read at once."""
        self.tree = {line["path"]: (bytes.fromhex(line["hex"]), line["version"]) for line in self.inspect("nodes")}
        self.info = {line["ledger"]: line for line in self.inspect("ledgers")}
        self.shown = {ident: [] for ident in self.info}
        if self.info:
            for line in self.inspect("ledger", *map(str, self.info)):
                self.shown[line["ledger"]].append(bytes.fromhex(line["hex"]))

    def nodes(self):
        """(topic, cursor or None) -> (bytes, version), in the order of the names, a topic before its cursors."""
        found = {}
        for path, node in self.tree.items():
            parts = path[len(TOPICS) + 1:].split("/") if path.startswith(TOPICS + "/") else []
            if parts:
                found[parts[0], parts[1] if len(parts) > 1 else None] = node
        return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or "")))

    def entries(self, ident):
        return self.shown[ident]

    def state(self, ident):
        if ident not in self.info:
            return "gone"
        info = self.info[ident]
        end = f" lastEntryId:{info['last_entry']} length:{info['length']}" if info["state"] == "closed" else ""
        return info["state"] + end


def accepted(name):
    """The differences that accepted.txt lists for a history, as wirefmt.differences writes them."""
    with open(os.path.join(GOLDEN, "accepted.txt"), encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line.strip() and not line.startswith("#")]
    return [f"{' | '.join(row[1:5])}\n  want {row[5]}\n  got  {row[6]}" for row in rows if row[0] == name]


@pytest.mark.parametrize("name", sorted(history.HISTORIES))
def test_bytes_equal_pulsars(name, new_broker, tmp_path):
    new_broker.start(*SETTINGS, *MORE.get(name, ()))
    camera = OxbowCamera(new_broker.data, tmp_path / "copy")
    live = history.HISTORIES[name]
    try:
        live(history.Broker(new_broker.url, new_broker.web_url, lambda: new_broker.restart("kill")), camera.snapshot)
    finally:
        wirefmt.write(tmp_path / f"{name}.txt", camera.records, [f"history {name}, oxbowd"])
    golden = wirefmt.read(os.path.join(GOLDEN, name + ".txt"))
    found, known = wirefmt.differences(golden, camera.records, KINDS), accepted(name)
    new, gone = [text for text in found if text not in known], [text for text in known if text not in found]
    assert not new, f"compare with {tmp_path / name}.txt:\n" + "\n".join(new)
    assert not gone, "not so any more, take it out of accepted.txt:\n" + "\n".join(gone)
