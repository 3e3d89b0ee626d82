"""test_oxbowctl_answers.py - what oxbowctl makes of a server that is no broker, or not the right one: never a success that is none, and a sentence that helps."""
import http.server
import subprocess
import threading

import pytest

from oxbowd import BUILD, TROUBLE

OXBOWCTL = BUILD / "oxbowctl"
pytestmark = pytest.mark.skipif(not OXBOWCTL.exists(), reason="oxbowctl is not built")
PAGE = b"<html>\r\n<head><title>hello</title></head>\r\n</html>\r\n"
ASKS = ["topics list public/default", "topics stats t", "topics peek-messages t -s s", "topics offload t -s 1M", "brokers health", "tenants get a",
        "bookie-clusters unregister a", "bookie-clusters status", "topics create-partitioned-topic t -p 2"]


class Door(http.server.BaseHTTPRequestHandler):
    """Answers everything with what the server holds: status, body, more headers, the length it claims."""

    def do_GET(self):
        self.server.asked.append((self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length", 0)))))
        status, body, headers, length = self.server.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def door():
    servers = []

    def start(status, body, headers=None, length=None):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
        server.answer, server.asked = (status, body, headers or {}, length), []
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(server, words, *options):
    done = subprocess.run([OXBOWCTL, "--url", server.url, "--request-timeout", "10", *options, *words.split()], capture_output=True, text=True, timeout=30)
    assert not TROUBLE.search(done.stderr), done.stderr
    return done


def no_success(server, words):
    for options in ([], ["-o", "json"]):
        done = ask(server, words, *options)
        assert (done.returncode, done.stdout) == (1, ""), done.stdout
        assert "127.0.0.1" in done.stderr or "no JSON" in done.stderr


@pytest.mark.parametrize("words", ASKS)
@pytest.mark.parametrize("body", [PAGE, b'{"a":', b"[" * 5000 + b"]" * 5000], ids=["page", "half", "deep"])
def test_an_answer_of_something_else_is_no_success(door, words, body):
    no_success(door(200, body), words)


@pytest.mark.parametrize("words", ["topics list public/default", "brokers health"])
def test_an_answer_of_another_kind_is_no_success(door, words):
    no_success(door(200, b'"what?"'), words)


@pytest.mark.parametrize("words", ASKS)
def test_an_answer_that_ends_half_way_is_no_success(door, words):
    done = ask(door(200, b"[]", length=100), words)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("\n") == 1


def test_a_web_page_is_not_printed(door):
    done = ask(door(502, PAGE), "topics stats t")
    assert done.returncode == 1 and "502" in done.stderr and "--url" in done.stderr and "<" not in done.stderr


def test_another_broker_is_asked_when_it_is_the_one(door):
    there = door(200, b"{}")
    here = door(307, b"moved", {"Location": f"{there.url}/admin/v2/elsewhere"})
    done = ask(here, "namespaces set-retention a/b -t 1h -s 1M")
    assert done.returncode == 0, done.stderr
    assert there.asked == [("POST", "/admin/v2/elsewhere", b'{"retentionTimeInMinutes":60,"retentionSizeInMB":1}')]


def test_a_circle_of_brokers_ends(door):
    here = door(307, b"", {"Location": "/admin/v2/tenants"})
    done = ask(here, "tenants list")
    assert done.returncode == 1 and len(here.asked) < 10 and here.url in done.stderr
