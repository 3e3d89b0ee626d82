"""HTTP as clients get it wrong, slowly, or all at once: the right answer or a clean refusal, bounded memory, and nobody who publishes notices."""
import errno
import json
import multiprocessing
import os
import pathlib
import random
import re
import selectors
import socket
import struct
import time

import pulsar
import pytest

from conftest import QUIET
from oxbowd import wait_for

RELEASE = "sanitize" not in os.environ.get("OX_BUILD", "").lower() and "dev" not in pathlib.Path(os.environ.get("OX_BUILD", "build/dev")).name
GAP_MS = 1000  # a stall; how long a turn takes is measured by tests/bench/operators.py
VERSION = b"/admin/v2/brokers/version"
HOST = b"Host: a\r\n"
SMALL = ("storeSegmentSizeMB=16",)
CONTEXT = multiprocessing.get_context("spawn")


def connect(broker, timeout=20):
    s = socket.create_connection(("127.0.0.1", broker.web_port), timeout=timeout)
    s.settimeout(timeout)
    return s


def get(path=VERSION, more=b""):
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + more + b"\r\n"


def put(more, body=b"", name=b"t"):
    return b"PUT /admin/v2/persistent/public/default/" + name + b"/partitions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n" + more + b"\r\n" + body


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def reason(self):
        return json.loads(self.body)["reason"]


def receive(s, got=b"", head=False):
    """One answer and what came behind it; None at the end of the connection."""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        if not piece:
            assert got == b"", got
            return None, b""
        got += piece
    top, _, rest = got.partition(b"\r\n\r\n")
    lines = top.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    status = int(lines[0].split()[1])
    length = 0 if head or status in (100, 204) else int(headers["content-length"])
    while len(rest) < length:
        piece = s.recv(65536)
        assert piece, "the answer is cut off"
        rest += piece
    return Reply(status, headers, rest[:length]), rest[length:]


def ask(broker, data, head=False):
    """Sends bytes on a connection of their own; the answer, and whether the connection is ended after it."""
    with connect(broker, 5) as s:
        s.sendall(data)
        reply, rest = receive(s, head=head)
        s.settimeout(0.2)
        try:
            ended = rest == b"" and s.recv(1) == b""
        except TimeoutError:
            ended = False
        except ConnectionResetError:
            ended = True
        return reply, ended


def publish(url, topic, pipe):
    """A producer of 1,000 messages a second until the pipe says something; tells the longest time between two receipts in ms, and what went wrong."""
    client = pulsar.Client(url, logger=QUIET)
    producer = client.create_producer(topic, batching_enabled=False, max_pending_messages=5000)
    receipts, failed, due = [], [], time.monotonic()

    def sent(result, _):
        receipts.append(time.monotonic())
        if "Ok" not in str(result):
            failed.append(str(result))

    while not pipe.poll():
        producer.send_async(b"x" * 100, sent)
        if len(receipts) > 100 and due:
            pipe.send("runs")
            due = 0
        time.sleep(0.001)
    producer.flush()
    client.close()
    pipe.send((max(b - a for a, b in zip(receipts, receipts[1:])) * 1000, failed[:3]))


class Publisher:
    """Somebody who publishes in a process of their own, and does not notice."""

    def __init__(self, broker, topic):
        here, there = CONTEXT.Pipe()
        self.pipe, self.process = here, CONTEXT.Process(target=publish, args=(broker.url, topic, there))

    def __enter__(self):
        self.process.start()
        assert self.pipe.poll(20) and self.pipe.recv() == "runs"
        return self

    def __exit__(self, kind, *_):
        self.pipe.send("enough")
        told = self.pipe.recv() if self.pipe.poll(20) else None
        self.process.kill()
        self.process.join()
        if kind is None:
            gap, failed = told
            assert not failed, failed
            assert gap < GAP_MS, f"{gap:.1f} ms between two receipts"


def resident_mb(broker):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{broker.process.pid}/status").read_text())[1]) / 1000


# ---- requests as they may be

GOOD = {
    "one after another": (get(), False),
    "HTTP/1.0": (b"GET " + VERSION + b" HTTP/1.0\r\n\r\n", True),
    "HTTP/1.0, kept": (b"GET " + VERSION + b" HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
    "closed": (get(more=b"Connection: close\r\n"), True),
    "bare line feeds": (b"GET " + VERSION + b" HTTP/1.1\nHost: a\n\n", False),
    "empty lines before it": (b"\r\n\r\n" + get(), False),
    "an absolute target": (get(b"http://b:1" + VERSION), False),
    "parameters of a segment": (get(VERSION + b";a=b"), False),
    "a slash at the end": (get(VERSION + b"/"), False),
    "many headers": (get(more=b"X: " + b"a" * 7900 + b"\r\n"), False),
}


@pytest.mark.parametrize("name", GOOD)
def test_requests_that_are_served(shared_broker, name):
    data, ends = GOOD[name]
    reply, ended = ask(shared_broker, data)
    assert (reply.status, ended) == (200, ends)
    assert reply.body == ask(shared_broker, get())[0].body


# As Pulsar 4.0.7 answers them, but for its 500 where a body is broken.
BAD = {
    "no version": (b"GET " + VERSION + b"\r\n\r\n", 505),
    "HTTP/1.2": (b"GET " + VERSION + b" HTTP/1.2\r\n" + HOST + b"\r\n", 505),
    "HTTP/2": (b"GET " + VERSION + b" HTTP/2.0\r\n" + HOST + b"\r\n", 426),
    "no host": (b"GET " + VERSION + b" HTTP/1.1\r\n\r\n", 400),
    "a broken method": (b"G(T " + VERSION + b" HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no path": (get(b"admin"), 400),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "a long path": (get(b"/" + b"a" * 9000), 414),
    "a very long path": (get(b"/" + b"a" * 100000), 414),
    "a long query": (get(VERSION + b"?x=" + b"a" * 9000), 414),
    "a long header": (get(more=b"X: " + b"a" * 9000 + b"\r\n"), 431),
    "too many headers": (get(more=b"X-y: abcdefghijklmnopqrst\r\n" * 400), 431),
    "a space before the colon": (get(more=b"X : a\r\n"), 400),
    "no colon": (get(more=b"Xa\r\n"), 400),
    "a folded header": (get(more=b"X: a\r\n b\r\n"), 400),
    "a zero byte": (get(more=b"X: a\x00b\r\n"), 400),
    "a length below zero": (put(b"Content-Length: -1\r\n", b"1"), 400),
    "a length that is none": (put(b"Content-Length: x\r\n", b"1"), 400),
    "an endless length": (put(b"Content-Length: 99999999999999999999\r\n", b"1"), 400),
    "two lengths": (put(b"Content-Length: 1\r\nContent-Length: 2\r\n", b"1"), 400),
    "a length and chunks": (put(b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", b"1\r\n2\r\n0\r\n\r\n"), 400),
    "an unknown encoding": (put(b"Transfer-Encoding: gzip\r\n", b"2"), 400),
    "broken chunks": (put(b"Transfer-Encoding: chunked\r\n", b"zz\r\n2\r\n0\r\n\r\n"), 400),
    "an unknown expectation": (put(b"Content-Length: 1\r\nExpect: beer\r\n", b"1"), 417),
    "a large body": (put(b"Content-Length: 3000000\r\n", b"1" * 3000000), 413),
    "a large body in chunks": (put(b"Transfer-Encoding: chunked\r\n", (b"10000\r\n" + b"1" * 65536 + b"\r\n") * 20), 413),
}


CHUNKED = b"Transfer-Encoding: chunked\r\n"
# What a server in front of the broker may read in another way, also where Pulsar's guesses.
AMBIGUOUS = {
    "chunks in HTTP/1.0": (put(CHUNKED, b"1\r\n2\r\n0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    "two hosts": (get(more=b"Host: b\r\n"), 400),
    "two encodings": (put(b"Transfer-Encoding: chunked, identity\r\n", b"1\r\n2\r\n0\r\n\r\n"), 400),
    "a bare return in a header": (get(more=b"X: a\rY: b\r\n"), 400),
    "a bare feed behind a size": (put(CHUNKED, b"1;a\n2\r\n0\r\n\r\n"), 400),
    "a bare return behind a size": (put(CHUNKED, b"1\r2\r\n0\r\n\r\n"), 400),
    "a bare feed behind a chunk": (put(CHUNKED, b"1\r\n2\n0\r\n\r\n"), 400),
    "a bare feed at the end": (put(CHUNKED, b"1\r\n2\r\n0\r\n\n"), 400),
    "a size beyond 64 bits": (put(CHUNKED, b"10000000000000001\r\n2\r\n0\r\n\r\n"), 413),
    "an endless extension": (put(CHUNKED, b"1;" + b"a" * 9000 + b"\r\n2\r\n0\r\n\r\n"), 400),
    "endless trailers": (put(CHUNKED, b"1\r\n2\r\n0\r\n" + b"X: y\r\n" * 2000 + b"\r\n"), 400),
}


@pytest.mark.parametrize("name", [*BAD, *AMBIGUOUS])
def test_requests_that_are_refused_end_the_connection(shared_broker, name):
    data, status = (BAD | AMBIGUOUS)[name]
    reply, ended = ask(shared_broker, data)
    assert reply.status == status and ended
    assert len(reply.reason()) > 10
    assert ask(shared_broker, get())[0].status == 200


@pytest.mark.parametrize("path", [b"/admin/v2//brokers/version", b"//admin/v2/brokers/version", b"/admin/v2/x/../brokers/version",
                                  b"/admin/v2/./brokers/version", b"*"])
def test_paths_are_taken_as_they_are(shared_broker, path):
    reply, ended = ask(shared_broker, get(path))
    assert (reply.status, ended) == (404, False)


def test_methods(shared_broker):
    for method in (b"TRACE", b"BREW", b"get", b"DELETE"):
        reply, ended = ask(shared_broker, get().replace(b"GET", method))
        assert (reply.status, ended) == (405, False)
        assert set(reply.headers["allow"].split(",")) == {"HEAD", "GET", "OPTIONS"}
    reply, _ = ask(shared_broker, get().replace(b"GET", b"OPTIONS"))
    assert (reply.status, reply.body) == (200, b"HEAD, GET, OPTIONS")
    body = ask(shared_broker, get())[0].body
    reply, ended = ask(shared_broker, get().replace(b"GET", b"HEAD"), head=True)
    assert (reply.status, reply.headers["content-length"], ended) == (200, str(len(body)), False)


def test_chunks_pieces_and_expectations(shared_broker):
    assert ask(shared_broker, put(b"Transfer-Encoding: chunked\r\n", b"1;a=b\r\n2\r\n0\r\nX: y\r\n\r\n", b"chunked"))[0].status == 204
    with connect(shared_broker) as s:
        for byte in put(b"Content-Length: 1\r\n", b"2", b"bytewise"):
            s.sendall(bytes([byte]))
        assert receive(s)[0].status == 204
        s.sendall(put(b"Content-Length: 1\r\nExpect: 100-continue\r\n", b"", b"expected"))
        assert receive(s)[0].status == 100
        s.sendall(b"2")
        assert receive(s)[0].status == 204
        s.sendall(put(b"Content-Length: 9000000\r\nExpect: 100-continue\r\n"))
        assert receive(s)[0].status == 413


def test_a_pipeline_is_answered_in_order(shared_broker):
    with connect(shared_broker) as s:
        s.sendall((get() + get(b"/nothing")) * 100)
        rest = b""
        for i in range(200):
            reply, rest = receive(s, rest)
            assert reply.status == (200, 404)[i % 2]


def test_a_client_that_ends_its_side_gets_its_answer(shared_broker):
    with connect(shared_broker) as s:
        s.sendall(get())
        s.shutdown(socket.SHUT_WR)
        assert receive(s)[0].status == 200
        assert s.recv(1) == b""


# ---- slow ones, and crowds

def break_off(s, how):
    """Leaves a connection in one of the ways in which clients do."""
    if how == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif how == "half":
        s.shutdown(socket.SHUT_WR)
        return
    s.close()


def test_clients_that_break_off_in_any_state(new_broker):
    """Whole and half requests of all kinds, cut anywhere, left in any way after any part of the answer; few connections are allowed, so that they push each other out."""
    broker = new_broker.start(*SMALL, "maxHttpServerConnections=30", "httpRequestTimeoutSeconds=1", "httpAnswerTimeoutSeconds=1")
    assert broker.rest("PUT", "persistent/public/default/wide/partitions", "50").status == 204
    stats = get(b"/admin/v2/persistent/public/default/wide/partitioned-stats?perPartition=true")
    walk, page = get(b"/admin/v2/broker-stats/topics"), get(b"/metrics")
    kinds = [get(), stats, walk, page, walk * 3, get() * 50 + page * 3, page.replace(b"GET", b"HEAD"), page.replace(b"1.1", b"1.0"), b"\r\n" * 50,
             put(CHUNKED, b"1\r\n2\r\n0\r\n\r\n"), put(CHUNKED, b"zz"), put(b"Content-Length: 5\r\nExpect: 100-continue\r\n", b"12345"), get(b"/" + b"a" * 9000)]
    dice, open_ones = random.Random(7), []
    for _ in range(1500):
        data = dice.choice(kinds)
        s = connect(broker, 5)
        try:
            s.sendall(data[:dice.choice((len(data), dice.randrange(len(data) + 1)))])
            if dice.random() < 0.4:
                s.settimeout(0.02)
                s.recv(dice.choice((1, 100, 65536)))
        except OSError:
            pass  # it was pushed out, or waits for more
        open_ones.append(s)
        if len(open_ones) > dice.randrange(60):
            leaver = open_ones.pop(dice.randrange(len(open_ones)))
            try:
                break_off(leaver, dice.choice(("close", "reset", "half")))
            except OSError:
                leaver.close()
    for s in open_ones:
        s.close()
    wait_for(lambda: broker.metrics()["oxbow_http_connections"] <= 1, "the others are gone", 20, 0.2)
    assert broker.http("GET", VERSION.decode()).status == 200
    assert broker.stop() == 0


def test_walks_of_clients_that_hung_up_keep_nobody_waiting(new_broker):
    broker = new_broker.start(*SMALL)
    count = 500 if RELEASE else 100
    assert broker.rest("PUT", "persistent/public/default/many/partitions", str(count)).status == 204
    client = pulsar.Client(broker.url, logger=QUIET)
    client.create_producer("many", lazy_start_partitioned_producers=False)
    walk = get(b"/admin/v2/broker-stats/topics")
    begin = time.monotonic()
    with connect(broker) as s:
        s.sendall(walk)
        receive(s)
    alone = time.monotonic() - begin
    for _ in range(150):
        with connect(broker) as s:
            s.sendall(walk)
    begin = time.monotonic()
    with connect(broker, 60) as s:
        s.sendall(walk)
        assert receive(s)[0].status == 200
    waited = time.monotonic() - begin
    client.close()
    assert waited < 1 + 20 * alone, f"{waited:.3f} s beside walks of the dead, {alone:.3f} s alone"

def test_half_requests_are_timed_out(new_broker):
    broker = new_broker.start(*SMALL, "httpRequestTimeoutSeconds=1")
    halves = [b"G", b"GET / HTTP/1.1\r\nHost:", put(b"Content-Length: 10\r\n", b"12"), put(b"Transfer-Encoding: chunked\r\n", b"5\r\n12")]
    with Publisher(broker, "beside"):
        open_ones = [connect(broker) for _ in halves]
        for s, half in zip(open_ones, halves):
            s.sendall(half)
        for s in open_ones:
            reply, _ = receive(s)
            assert reply.status == 408 and "httpRequestTimeoutSeconds" in reply.reason()
            assert s.recv(1) == b""
            s.close()


def test_drops_do_not_keep_a_request_alive(new_broker):
    broker = new_broker.start(*SMALL, "httpRequestTimeoutSeconds=1")
    with connect(broker) as s:
        begin = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError, AssertionError)):
            while time.monotonic() - begin < 10:
                s.sendall(b"G")
                time.sleep(0.05)
            raise TimeoutError
        assert time.monotonic() - begin < 5


def test_silent_clients_do_not_lock_others_out(new_broker):
    broker = new_broker.start(*SMALL, "maxHttpServerConnections=100")
    with Publisher(broker, "beside"):
        crowd = [connect(broker) for _ in range(100)]
        for s in crowd[::2]:
            s.sendall(b"GET / HT")
        for _ in range(20):
            assert broker.http("GET", VERSION.decode()).status == 200
        for s in crowd:
            s.close()
    assert broker.metrics()["oxbow_http_evicted_total"] >= 1


class Crowd:
    """Many connections, each with one request that is sent as soon as it stands."""

    def __init__(self, broker, request):
        self.broker, self.request, self.poll = broker, request, selectors.DefaultSelector()
        self.answered, self.ended = {}, 0  # by status; without an answer

    def add(self):
        s = socket.socket()
        s.setblocking(False)
        code = s.connect_ex(("127.0.0.1", self.broker.web_port))
        assert code in (0, errno.EINPROGRESS), os.strerror(code)
        self.poll.register(s, selectors.EVENT_WRITE, bytearray())

    def step(self, seconds):
        for key, events in self.poll.select(seconds):
            try:
                if events & selectors.EVENT_WRITE:
                    key.fileobj.send(self.request)
                    self.poll.modify(key.fileobj, selectors.EVENT_READ, key.data)
                    continue
                piece = key.fileobj.recv(65536)
            except OSError:
                piece = b""
            self.took(key, piece)

    def took(self, key, piece):
        key.data.extend(piece)
        if b"\r\n\r\n" in key.data:
            status = int(key.data.split()[1])
            self.answered[status] = self.answered.get(status, 0) + 1
        elif piece:
            return
        else:
            self.ended += 1
        self.poll.unregister(key.fileobj)
        key.fileobj.close()

    def run(self, count, seconds=55):
        end = time.monotonic() + seconds
        for i in range(count):
            self.add()
            if i % 20 == 0:
                self.step(0)
        while self.poll.get_map() and time.monotonic() < end:
            self.step(1)
        return len(self.poll.get_map())


@pytest.mark.skipif(os.sysconf("SC_OPEN_MAX") < 12000, reason="needs 12000 open files")
def test_ten_thousand_requests_at_once(new_broker):
    broker = new_broker.start(*SMALL)
    with Publisher(broker, "beside"):
        crowd = Crowd(broker, get(b"/admin/v2/persistent/public/default/beside/stats"))
        left = crowd.run(10000)
        assert (crowd.answered, crowd.ended, left) == ({200: 10000}, 0, 0)
    assert resident_mb(broker) < (300 if RELEASE else 1500)


@pytest.fixture
def wide_broker(new_broker):
    """A partitioned topic whose statistics are megabytes."""
    broker = new_broker.start(*SMALL)
    count = 3000 if RELEASE else 300
    assert broker.rest("PUT", "persistent/public/default/wide/partitions", str(count)).status == 204
    return broker


def wide_stats():
    return get(b"/admin/v2/persistent/public/default/wide/partitioned-stats?perPartition=true")


def test_clients_that_go_in_the_middle_of_a_long_answer(wide_broker):
    with Publisher(wide_broker, "beside"):
        for at in (0, 1, 100, 100000):
            with connect(wide_broker) as s:
                s.sendall(wide_stats())
                taken = 0
                while taken < at:
                    taken += len(s.recv(min(4096, at - taken)))
        with connect(wide_broker) as s:
            s.sendall(wide_stats())
            assert json.loads(receive(s)[0].body)["metadata"]["partitions"] > 0
    wait_for(lambda: wide_broker.metrics()["oxbow_http_connections"] <= 1, "the others are gone")


def test_a_client_that_takes_nothing_of_its_answer_is_given_up(new_broker):
    broker = new_broker.start(*SMALL, "httpAnswerTimeoutSeconds=1")
    count = 3000 if RELEASE else 300
    assert broker.rest("PUT", "persistent/public/default/wide/partitions", str(count)).status == 204
    with Publisher(broker, "beside"):
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", broker.web_port))
        for _ in range(20):  # more than the kernel keeps, also where each is short
            slow.sendall(wide_stats())
        wait_for(lambda: broker.metrics()["oxbow_http_connections"] == 1, "the slow client's connection has ended", 40, 0.2)
        slow.close()
        assert broker.http("GET", VERSION.decode()).status == 200
