"""What a snapshot shows of a broker's storage; where nodes and ledgers are read from is the subclass's part."""
import history
import wirefmt

TOPICS = "/managed-ledgers/" + history.NAMESPACE + "/persistent"


def ledgers_of(data, cursor):
    """The ids of the ledgers that a node names."""
    if cursor:
        ids = [wirefmt.signed(value) for number, _, value in wirefmt.fields(data) if number == 1]
    else:
        infos = [value for number, _, value in wirefmt.fields(data) if number == 1]
        ids = [value for info in infos for number, _, value in wirefmt.fields(info) if number == 1]
    return [ident for ident in ids if ident >= 0]


class Camera:
    """Takes the snapshots of a history; shows an entry, and a ledger's state, when it is new.

    A subclass supplies settle(), which returns once the broker has nothing left to write, and
    nodes(): (topic, cursor or None) -> (bytes, version); entries(ledger): its entries' bytes; state(ledger): text.
    """

    def __init__(self):
        self.masks, self.seen, self.ledgers, self.records = {}, set(), {}, []

    def named(self, nodes):
        """(topic, kind, ledger, entry's number, bytes) of all entries of the ledgers that the nodes name."""
        for (topic, cursor), (data, _) in nodes.items():
            for ident in ledgers_of(data, cursor):
                for at, entry in enumerate(self.entries(ident)):
                    yield topic, "ack" if cursor else "message", ident, at, entry

    def states(self):
        """(topic, ledger's name) -> state of every ledger that the snapshots so far have named."""
        return {(topic, name): self.state(ident) for topic, masks in self.masks.items() for ident, name in masks.names.items()}

    def snapshot(self, label):
        self.settle()
        nodes = self.nodes()
        for (topic, cursor), (data, version) in nodes.items():
            kind, masks = "cursor" if cursor else "topic", self.masks.setdefault(topic, wirefmt.Masks())
            self.add(label, topic, kind, cursor or "-", version, wirefmt.WRITERS[kind](data, masks), data)
        for topic, kind, ident, at, data in sorted(self.named(nodes), key=lambda found: (found[0], *found[2:4])):
            if (ident, at) not in self.seen:
                self.seen.add((ident, at))
                masks = self.masks[topic]
                self.add(label, topic, kind, f"{masks.names[ident]}:{at}", "-", wirefmt.WRITERS[kind](data, masks), data)
        for (topic, name), text in self.states().items():
            if self.ledgers.get((topic, name)) != text:
                self.ledgers[topic, name] = text
                self.add(label, topic, "ledger", name, "-", text, b"")

    def add(self, label, topic, kind, name, version, text, data):
        self.records.append(wirefmt.Record(label, topic, kind, name, version, text, data.hex() or "-"))
