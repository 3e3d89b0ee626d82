"""Lives a history on a real Pulsar broker and writes down the bytes that it kept, snapshot by snapshot.

Nodes are read from ZooKeeper, entries from the one bookie that the ledgers must be on (ensemble size 1).
"""
import argparse
import os
import socket
import struct
import subprocess
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

import history
import wirefmt
from camera import TOPICS, Camera

STATES = {1: "open", 2: "in recovery", 3: "closed"}


class Bookie:
    """Reads entries by the second version of the bookie protocol."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=20)

    def take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("bookie closed the connection")
            data += more
        return data

    def read(self, ledger, entry):
        """The payload of an entry, without the 36 bytes of its head and CRC32C digest; None if it is not there."""
        self.socket.sendall(struct.pack(">iIqq", 20, 0x02020000, ledger, entry))
        answer = self.take(struct.unpack(">i", self.take(4))[0])
        code = struct.unpack_from(">i", answer, 4)[0]
        if code in (1, 2):
            return None
        if code:
            raise IOError(f"entry {ledger}:{entry}: bookie says {code}")
        return answer[24 + 36:]


def ledger_path(ident):
    digits = f"{ident:010d}"
    return f"/ledgers/{digits[:2]}/{digits[2:6]}/L{digits[6:]}"


class PulsarCamera(Camera):
    """Reads the topics of the namespace that were made since: nodes from ZooKeeper, entries from the bookie."""

    def __init__(self, zk, bookie):
        super().__init__()
        self.zk, self.bookie = zk, bookie
        self.old = set(self.topics())

    def topics(self):
        try:
            return sorted(name for name in self.zk.get_children(TOPICS) if not name.startswith("__"))
        except NoNodeError:
            return []

    def node(self, path):
        """(bytes, version) of a node; None if there is none."""
        try:
            data, stat = self.zk.get(path)
            return data, stat.version
        except NoNodeError:
            return None

    def nodes(self):
        """(topic, cursor or None) -> (bytes, version) of every topic's and cursor's node."""
        found = {}
        for topic in self.topics():
            if topic not in self.old:
                found[topic, None] = self.node(f"{TOPICS}/{topic}")
                for cursor in sorted(self.zk.get_children(f"{TOPICS}/{topic}")):
                    found[topic, cursor] = self.node(f"{TOPICS}/{topic}/{cursor}")
        return {key: value for key, value in found.items() if value}

    def entries(self, ident):
        """The entries of a ledger up to the first one that is not there."""
        found = []
        while (entry := self.bookie.read(ident, len(found))) is not None:
            found.append(entry)
        return found

    def state(self, ident):
        """What BookKeeper's metadata says of a ledger: its state, and last entry and length of a closed one."""
        node = self.node(ledger_path(ident))
        if node is None:
            return "gone"
        body = node[0].split(b"\n", 1)[1]
        size, at = wirefmt.varint(body, 0)
        values = {number: value for number, _, value in wirefmt.fields(body[at:at + size])}
        text = STATES[values[5]]
        return text if values[5] != 3 else f"{text} lastEntryId:{wirefmt.signed(values[4])} length:{values[3]}"

    def look(self):
        """All that can be seen now: nodes, the entries of the ledgers that they name, the states of all ledgers."""
        nodes = self.nodes()
        return nodes, list(self.named(nodes)), self.states()

    def settle(self):
        """Waits until two looks agree, and at least PAUSE_S seconds."""
        start, last = time.monotonic(), None
        while True:
            now = self.look()
            if now == last and time.monotonic() - start >= history.PAUSE_S:
                return
            last = now
            time.sleep(0.4)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="pulsar://127.0.0.1:6650")
    parser.add_argument("--admin", default="http://127.0.0.1:8080")
    parser.add_argument("--zk", default="127.0.0.1:2181", help="ZooKeeper, with its chroot if there is one")
    parser.add_argument("--bookie", default="127.0.0.1:3181")
    parser.add_argument("--crash", help="a command that kills the broker and starts it again on the same ports")
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)), help="folder of the golden files")
    parser.add_argument("history", nargs="+", choices=sorted(history.HISTORIES))
    args = parser.parse_args()

    zk = KazooClient(args.zk)
    zk.start()
    host, port = args.bookie.rsplit(":", 1)
    crash = (lambda: subprocess.run(args.crash, shell=True, check=True)) if args.crash else None
    for name in args.history:
        camera = PulsarCamera(zk, Bookie(host, int(port)))
        history.HISTORIES[name](history.Broker(args.url, args.admin, crash), camera.snapshot)
        wirefmt.write(os.path.join(args.out, name + ".txt"), camera.records, [f"history {name}, Pulsar 4.0.7"])
    zk.stop()


if __name__ == "__main__":
    main()
