"""story.py - an ordinary life of a broker, told through the raw protocol, with a memory of what the broker has promised.

It fills segments and ledgers, acknowledges with holes, trims, unloads, deletes, is killed, ends cleanly and starts again. Wherever
the process dies, `check` holds a new one against the promises: a send with a receipt is there, byte for byte and in order; what
was acknowledged with an answer does not come again; what was not acknowledged comes.
"""
import random

from oxbowd import CRASH_STATUS, topic_path
from rawpulsar import Closed, Connection

SETTINGS = ("storeSegmentSizeMB=8", "maxMessageSize=1048576", "managedLedgerMaxEntriesPerLedger=20", "managedLedgerMinLedgerRolloverTimeMinutes=0", "managedLedgerTrimDelaySeconds=0",
            "managedLedgerCursorMaxEntriesPerLedger=10", "managedLedgerDefaultMarkDeleteRateLimit=0", "storeCompactionRateMBPerSecond=1000")
HELD, TRIMMED, DOOMED = "held", "trimmed", "doomed"
BODY_BYTES = 60000
NOISE = random.Random(1).randbytes(1 << 17)


class Crashed(Exception):
    """The process has died at its crash point."""


def full(topic):
    return f"persistent://public/default/{topic}"


def body(topic, seq):
    return b"%s:%08d:" % (topic.encode(), seq) + NOISE[seq % 7919:seq % 7919 + BODY_BYTES - seq % 1000]


def seq_of(topic, payload):
    seq = int(payload.split(b":")[1])
    assert payload == body(topic, seq), f"{topic} {seq}: other bytes than were sent"
    return seq


class Promises:
    """What was tried and what was promised for one topic; acknowledgements are those of its subscription `s`."""

    def __init__(self):
        self.next, self.sent, self.tried_acks, self.acks = 0, set(), set(), set()

    def check(self, got, acks=True):
        assert got == sorted(set(got)), f"not in order, or twice: {got}"
        assert set(got) <= set(range(self.next))
        lost = self.sent - set(got) - (self.tried_acks if acks else set())
        assert not lost, f"lost: {sorted(lost)}"
        again = set(got) & self.acks if acks else set()
        assert not again, f"acknowledged with an answer, and delivered again: {sorted(again)}"


class Session:
    """One connection with a producer and subscriptions on each topic; ids are the same everywhere: the topic's number."""

    def __init__(self, story):
        self.story, self.requests, self.waiting, self.messages = story, 100, {}, {}
        self.raw = Connection("127.0.0.1", story.broker.port)
        assert self.raw.connect().name == "connected"

    def ask(self, name, **values):
        """Sends a request and takes frames until its answer comes."""
        self.requests += 1
        self.raw.send(name, request_id=self.requests, **values)
        while True:
            got = self.take()
            if got.get("request_id") == self.requests:
                assert got.error() is None, got
                return got

    def take(self):
        """Takes one frame and notes what it promises."""
        got = self.raw.receive()
        if got.name == "send_receipt":
            topic, seq = self.waiting.pop(("send", got["producer_id"], got["sequence_id"]))
            self.story.promises[topic].sent.add(seq)
        elif got.name == "ack_response":
            assert got.error() is None, got
            topic, seqs = self.waiting.pop(("ack", got["request_id"]))
            self.story.promises[topic].acks.update(seqs)
        elif got.name == "message":
            self.messages.setdefault(got["consumer_id"], []).append((got["message_id"], got.payload))
        else:
            assert got.name not in ("send_error", "error"), got
        return got

    def settle(self):
        while self.waiting:
            self.take()

    def open(self, topic, number, subscriptions=("s",)):
        self.ask("lookup", topic=full(topic))
        self.ask("producer", topic=full(topic), producer_id=number)
        for i, name in enumerate(subscriptions):
            self.ask("subscribe", topic=full(topic), subscription=name, sub_type=0, consumer_id=number + 100 * i, initial_position=1)
        self.raw.send("flow", consumer_id=number, message_permits=1000000)

    def send(self, topic, number):
        promises = self.story.promises[topic]
        seq, promises.next = promises.next, promises.next + 1
        self.waiting["send", number, seq] = topic, seq
        self.raw.send_message(number, seq, body(topic, seq), checksum=False)
        return seq

    def ack(self, topic, number, messages):
        """Acknowledges (id, seq) pairs in one request, with an answer."""
        self.requests += 1
        seqs = [seq for _, seq in messages]
        self.story.promises[topic].tried_acks.update(seqs)
        self.waiting["ack", self.requests] = topic, seqs
        ids = [{"ledger_id": ident["ledger_id"], "entry_id": ident["entry_id"]} for ident, _ in messages]
        self.raw.send("ack", consumer_id=number, ack_type=0, message_id=ids, request_id=self.requests)

    def taken(self, topic, number):
        """The messages that have come since the last call, as (id, seq)."""
        return [(ident, seq_of(topic, payload)) for ident, payload in self.messages.pop(number, [])]


class Story:
    def __init__(self, broker, crash_point=None):
        self.broker, self.crash_point = broker, crash_point
        self.promises = {HELD: Promises(), TRIMMED: Promises(), DOOMED: Promises()}
        self.deleted = False

    def tell(self):
        """Lives until the process dies at its crash point; True if it did."""
        try:
            for chapter in self.chapters():
                self.begin_chapter(chapter)
                chapter()
            return False
        except (Closed, OSError, Crashed) as error:
            if self.broker.process.wait(timeout=20) != CRASH_STATUS:
                raise AssertionError(f"{error!r}: {self.broker.log()[-3000:]}") from error
            return True

    def chapters(self):
        return self.first, self.after_a_kill, self.after_an_end

    def begin_chapter(self, _):
        self.begin()

    def begin(self):
        self.broker.launch(*SETTINGS, crash_point=self.crash_point)
        if not self.broker.wait_ready():
            raise Crashed

    # Chapters.

    def first(self):
        session = self.work(90)
        self.leave_one(session)
        self.doom(session)
        self.broker.kill()
        session.raw.close()

    def after_a_kill(self):
        session = self.work(30)
        self.unload(session)
        self.end(self.work(10))

    def after_an_end(self):
        self.end(self.work(10))

    # Scenes.

    def work(self, rounds):
        session = Session(self)
        session.open(HELD, 1, ("s", "hold"))
        session.open(TRIMMED, 2)
        return self.go_on(session, rounds)

    def go_on(self, session, rounds):
        """Three messages to a topic that is consumed and trimmed, one to a topic of which all is kept; so segments become sparse."""
        late = []
        for _ in range(rounds):
            for topic, number in ((HELD, 1), (TRIMMED, 2), (TRIMMED, 2), (TRIMMED, 2)):
                session.send(topic, number)
            session.settle()
            late = self.consume(session, late)
        if late:
            session.ack(TRIMMED, 2, late)
        session.settle()
        return session

    def consume(self, session, late):
        """Acknowledges what has come: of the trimmed topic the later ones first, one stays for the next round; of the held one not every fifth."""
        held = [m for m in session.taken(HELD, 1) if m[1] % 5]
        trimmed = session.taken(TRIMMED, 2)
        if held:
            session.ack(HELD, 1, held)
        if trimmed[1:]:
            session.ack(TRIMMED, 2, trimmed[1:])
        if late:
            session.ack(TRIMMED, 2, late)
        return trimmed[:1]

    def leave_one(self, session):
        """A subscription with a position that goes again."""
        session.ask("subscribe", topic=full(HELD), subscription="leaver", sub_type=0, consumer_id=900, initial_position=1)
        session.raw.send("flow", consumer_id=900, message_permits=2)
        while len(session.messages.get(900, [])) < 2:
            session.take()
        ident = session.messages.pop(900)[1][0]
        session.requests += 1
        session.raw.send("ack", consumer_id=900, ack_type=0, message_id=[{"ledger_id": ident["ledger_id"], "entry_id": ident["entry_id"]}], request_id=session.requests)
        while session.raw.receive().name != "ack_response":
            pass
        session.ask("unsubscribe", consumer_id=900)

    def doom(self, session):
        session.open(DOOMED, 3)
        for _ in range(25):
            session.send(DOOMED, 3)
        session.settle()
        self.deleted = True
        self.rest("DELETE", topic_path(DOOMED) + "?force=true")

    def unload(self, session):
        for topic in (HELD, TRIMMED):
            self.rest("PUT", topic_path(topic) + "/unload")
        session.raw.close()

    def end(self, session):
        status = self.broker.stop()
        session.raw.close()
        if status == CRASH_STATUS:
            raise Crashed
        assert status == 0, self.broker.log()[-3000:]

    def rest(self, method, path):
        answer = self.broker.rest(method, path)
        assert answer.status == 204, answer.text

    # What must hold.

    def check(self):
        """Starts a broker that is not armed and holds it against the promises; then ends it."""
        self.broker.start(*SETTINGS)
        session = Session(self)
        for number, topic in enumerate((HELD, TRIMMED), 1):
            session.open(topic, number, ("s", "hold") if topic == HELD else ("s",))
            sentinel = session.send(topic, number)
            session.settle()
            self.promises[topic].check(self.read_to(session, topic, number, sentinel))
        session.raw.send("flow", consumer_id=101, message_permits=1000000)
        self.promises[HELD].check(self.read_to(session, HELD, 101, max(self.promises[HELD].sent)), acks=False)
        if not self.deleted and self.promises[DOOMED].next:
            session.open(DOOMED, 3)
            self.promises[DOOMED].check(self.read_to(session, DOOMED, 3, max(self.promises[DOOMED].sent)))
        session.raw.close()
        assert self.broker.stop() == 0
        assert self.broker.trouble() is None, self.broker.trouble()

    def read_to(self, session, topic, number, last):
        got = []
        while not got or got[-1] < last:
            while not session.messages.get(number):
                session.take()
            got += [seq for _, seq in session.taken(topic, number)]
        return got
