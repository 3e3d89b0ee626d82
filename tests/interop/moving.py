"""moving.py - an operator who moves a broker's storage, by REST; and an ordinary life (story.py) in which that happens.

`Operator(broker)` gives orders and follows them to their end. `MovingStory` registers a second bookie cluster, switches there and back with the topics
loaded and not, moves the data, cleans up, loses the second one for a while and lets it go. Wherever the process dies, `check` holds a new one
against what was promised to clients, and then an operator must be able to bring everything to an end.
"""
import json

from oxbowd import topic_path, wait_for
from story import DOOMED, HELD, SETTINGS, TRIMMED, Crashed, Session, Story

FOLLOW_SECONDS = 60
FEW_RANGES = (*SETTINGS, "managedLedgerMaxUnackedRangesToPersistInMetadataStore=3")  # so that some positions need a ledger
OVER = ("DONE", "DONE_WITH_FAILURES", "ABORTED")


class Operator:
    """Orders to a broker; each must be taken unless a status is named."""

    def __init__(self, broker):
        self.broker = broker

    def ask(self, method, path, body=None, status=None):
        answer = self.broker.http(method, f"/admin/v2/bookie-clusters{path}", None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        assert answer.status == status if status else answer.status // 100 == 2, f"{method} {path}: {answer.status} {answer.text}"
        return answer.json() if answer.text else None

    def register(self, name, folder, **how):
        return self.ask("POST", f"/{name}", {"metadataServiceUri": f"embedded:{folder}"}, **how)

    def status(self):
        return self.ask("GET", "/status")

    def active(self):
        return self.status()["active"]

    def state(self):
        return (self.status().get("switch") or {}).get("state")

    def follow(self, seconds=FOLLOW_SECONDS):
        """Waits for the end of the present switch, which must be a good one."""
        state = wait_for(lambda: (s := self.state()) in OVER and s, "the end of the switch", seconds, 0.05)
        assert state == "DONE", f"{state}: {self.status()} {self.ask('GET', '/failures')}"

    def switch(self, target, **more):
        answer = self.ask("POST", "/switch", {"target": target, **more})
        self.follow()
        return answer

    def rollback(self):
        answer = self.ask("POST", "/rollback")
        self.follow()
        return answer

    def move_data(self, target):
        self.ask("POST", "/move-data", {"target": target})
        self.follow()

    def cleanup(self, force=True):
        return self.ask("POST", "/cleanup", {"dryRun": False, "force": force})

    def place(self, name):
        """What the inventory says of one bookie cluster."""
        return next(p for p in self.ask("GET", "/inventory")["places"] if p["name"] == name)

    def empty(self, name):
        """True if nothing is in it, nor waits to be deleted there."""
        place = self.place(name)
        return not any(place[key] for key in ("dataLedgers", "cursorLedgers", "copies", "pendingDeletes"))


class MovingStory(Story):
    """A life in which the storage moves. The second bookie cluster is the folder `two` beside the data."""

    def __init__(self, broker, crash_point=None):
        super().__init__(broker, crash_point)
        self.operator, self.two = Operator(broker), broker.folder / "two"
        self.away = broker.folder / "two.away"

    def chapters(self):
        return self.moves_with_topics_loaded, self.moves_with_topics_not_loaded, self.loses_the_second, self.lets_it_go

    # Chapters.

    def moves_with_topics_loaded(self):
        session = self.work(25)
        self.fill_doomed(session)
        self.operator.register("two", self.two)
        self.operator.switch("two")
        self.go_on(session, 15)
        self.operator.move_data("two")
        self.go_on(session, 10)
        self.operator.cleanup()
        self.operator.rollback()
        self.go_on(session, 10)
        self.operator.switch("two")
        self.go_on(session, 5)
        self.broker.kill()
        session.raw.close()

    def moves_with_topics_not_loaded(self):
        self.operator.switch("default")
        self.operator.move_data("default")
        self.end(self.work(10))

    # fault: E11
    def loses_the_second(self):
        """What is deleted while one that holds copies of it cannot be reached is deleted there later."""
        self.deleted = True
        self.rest("DELETE", topic_path(DOOMED) + "?force=true")
        self.end(self.work(15))

    def lets_it_go(self):
        session = self.work(5)
        wait_for(lambda: not self.operator.place("two")["pendingDeletes"], "the deletes that waited", 30, 0.1)
        self.operator.cleanup()
        wait_for(lambda: self.operator.empty("two"), "two to be empty", 30, 0.1)
        assert self.operator.ask("GET", "/safe-to-release/two")["safe"]
        self.operator.ask("DELETE", "/two")
        self.end(session)

    # What lies between.

    def fill_doomed(self, session):
        session.open(DOOMED, 3)
        for _ in range(25):
            session.send(DOOMED, 3)
        session.settle()
        session.ask("close_producer", producer_id=3)
        session.ask("close_consumer", consumer_id=3)

    def begin(self):
        self.broker.launch(*FEW_RANGES, crash_point=self.crash_point)
        if not self.broker.wait_ready():
            raise Crashed

    def begin_chapter(self, chapter):
        if chapter == self.loses_the_second:
            self.two.rename(self.away)
            self.two.write_text("not a directory")
        elif chapter == self.lets_it_go:
            self.come_back()
        self.begin()

    def come_back(self):
        if self.away.exists():
            self.two.unlink(missing_ok=True)
            self.away.rename(self.two)

    # What must hold.

    def check(self):
        self.come_back()
        super().check()
        self.finish()

    def finish(self):
        """Whatever a death has left behind, an operator brings it to an end."""
        self.broker.start()
        self.operator.register("two", self.two)
        wait_for(lambda: self.operator.state() in (None, *OVER), "the end of what was begun", FOLLOW_SECONDS, 0.05)
        self.operator.switch("two")
        self.operator.move_data("two")
        self.operator.cleanup()
        assert not self.operator.ask("GET", "/verify/two")["bad"]
        wait_for(lambda: self.operator.empty("default"), "the first one to be empty", 60, 0.1)
        session = Session(self)
        session.open(HELD, 1, ("s", "hold"))
        session.open(TRIMMED, 2)
        session.raw.send("flow", consumer_id=101, message_permits=1000000)
        self.promises[HELD].check(self.read_to(session, HELD, 101, max(self.promises[HELD].sent)), acks=False)
        session.raw.close()
        assert self.broker.stop() == 0
        assert self.broker.trouble() is None, self.broker.trouble()

