"""pulsar_admin.py - the command lines of golden/pulsar_admin_calls.txt, given to the real pulsar-admin on any broker, and what it says summed up.

One JVM runs them all (java/admin/Admin.java), and a tap between it and the broker sees the requests it makes. Names, ids, addresses and times have the
same words in the summaries of any two brokers.
"""
import http.client
import http.server
import json
import pathlib
import re
import shlex
import subprocess
import threading
import time

import pulsar

HERE = pathlib.Path(__file__).resolve().parent
CALLS = HERE / "golden" / "pulsar_admin_calls.txt"
PROGRAM = HERE / "java" / "admin" / "Admin.java"
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
ACTS = ("SEND", "SUBSCRIBE", "CLOSE")


class Call:
    """One command line; `ours`: why it is answered otherwise here; `moment`: why values are not compared; `hidden`: why nothing that is printed is."""

    def __init__(self, line, ours="", moment="", hidden=""):
        self.line, self.ours, self.moment, self.hidden = line, ours, moment, hidden
        self.words = shlex.split(line)


def calls():
    for line in CALLS.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        line, _, ours = line.partition(" !! ")
        line, _, moment = line.partition(" ?? ")
        line, _, hidden = line.partition(" ~~ ")
        for one in spread(line):
            yield Call(one, ours, moment, hidden)


def spread(line):
    """The command lines that one of the file stands for."""
    kind, _, rest = line.partition(" ")
    if kind not in ("*", "+", "-"):
        return [line]
    words = rest.split(" ")
    get = f"{words[0]} {words[1].replace('set-', 'get-', 1)} {words[2]}"
    wide = " -g" if words[-1] == "-g" else ""
    asked = [get + wide, rest, get + wide]
    if kind == "+":
        asked.append(f"{get} --applied{wide}")
    if kind != "-":
        asked += [f"{words[0]} {words[1].replace('set-', 'remove-', 1)} {words[2]}{wide}", get + wide]
    return asked


def fetch_jars(lib):
    """The tool's jars, fetched once a folder."""
    if not (lib / "done").exists():
        done = subprocess.run(["mvn", "-q", "-B", "-f", str(PROGRAM.with_name("pom.xml")), "dependency:copy-dependencies", f"-DoutputDirectory={lib}"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
        (lib / "done").touch()
    return lib


def java(jars, url):
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{jars}/*", str(PROGRAM), url]


class Tap(http.server.ThreadingHTTPServer):
    """Hands requests on to a broker and notes them: [method, path, body, status]."""
    daemon_threads = True

    def __init__(self, broker):
        super().__init__(("127.0.0.1", 0), TapHandler)
        self.broker, self.seen = broker, []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class TapHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        broker = http.client.HTTPConnection(self.server.broker, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection", "accept-encoding")}
        broker.request(self.command, self.path, body or None, headers)
        answer = broker.getresponse()
        text = answer.read()
        broker.close()
        self.server.seen.append([self.command, self.path, body.decode(errors="replace"), answer.status])
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def log_message(self, *_):
        pass


class Run:
    """One run through the calls. `pause`: seconds to wait after a topic's policy has changed, until a real broker has heard of it itself."""

    def __init__(self, jars, web_url, service_url, tenant, pause=0.0):
        self.tenant, self.ledger, self.pause = tenant, -1, pause
        self.broker = web_url.removeprefix("http://")
        self.client = pulsar.Client(service_url, logger=QUIET)
        self.consumers = []
        self.tap = Tap(self.broker)
        self.tool = subprocess.Popen(java(jars, self.tap.url), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tool.stdin.close()
        self.tool.wait(timeout=20)
        self.tap.shutdown()
        self.tap.server_close()
        self.client.close()

    def real(self, word):
        return word.replace("TEN", self.tenant).replace("LEDGER", str(self.ledger)).replace("BROKER", self.broker)

    def masked(self, text):
        """The text with the words that any broker would have said."""
        text = text.replace(self.tenant, "TEN")
        if self.ledger >= 0:
            text = re.sub(rf"\b{self.ledger}(?=:-?\d)|(?<=/ledger/){self.ledger}\b", "LEDGER", text)
        for pattern, word in MASKS:
            text = pattern.sub(word, text)
        return text

    def act(self, words):
        topic = f"persistent://{self.tenant}/ns/{words[1]}" if len(words) > 1 else None
        if words[0] == "SEND":
            producer = self.client.create_producer(topic, batching_enabled=False)
            ids = [producer.send(b"m%d" % i, properties={"p": f"v{i}"}, partition_key=f"k{i}") for i in range(int(words[2]))]
            self.ledger = ids[0].ledger_id() if words[1] == "log" else self.ledger
            producer.close()
        elif words[0] == "SUBSCRIBE":
            self.consumers.append(self.client.subscribe(topic, words[2]))
        else:
            while self.consumers:
                self.consumers.pop().close()

    def ask(self, words):
        return self.tell(["--request-timeout", "10", *(self.real(word) for word in words)])

    def tell(self, words):
        self.tool.stdin.write(json.dumps(words) + "\n")
        self.tool.stdin.flush()
        answer = self.tool.stdout.readline()
        assert answer, f"pulsar-admin ended with {self.tool.wait()}"
        return json.loads(answer)

    def description(self):
        """What the tool knows of itself: {noun: {verb: {"options": [...], "args": [...]}}}"""
        return json.loads(self.tell(["--describe"])["out"])

    def asked(self):
        """The requests of the last command line; one that was made again and again, until it was answered otherwise, stands once."""
        requests = [[method, self.masked(path), self.masked(body), status] for method, path, body, status in self.tap.seen]
        return [one for at, one in enumerate(requests) if one not in requests[:at]]

    def hear_all(self, answer):
        """Some verbs do not wait for the broker's answer."""
        end = time.monotonic() + 2
        while not answer["status"] and not self.tap.seen and time.monotonic() < end:
            time.sleep(0.005)

    def all(self):
        """(call, its answer in short, what was printed): the answer is [command line, exit status, requests, what was printed in short]"""
        for call in calls():
            if call.words[0] in ACTS:
                self.act(call.words)
                continue
            self.tap.seen.clear()
            answer = self.ask(call.words)
            self.hear_all(answer)
            if changes_topic_policy(call.words):
                time.sleep(self.pause)
            yield call, [call.line, answer["status"], sorted(self.asked()), self.summary(call, answer)], answer["out"] + answer["err"]

    def summary(self, call, answer):
        """What was printed: a value if it is JSON, else its lines, texts in order of the alphabet; nothing of an error."""
        if answer["status"] or call.hidden:
            return None
        text = self.masked(answer["out"].strip())
        try:
            value = in_order_within(json.loads(text))
        except ValueError:
            value = sorted(in_order(line) for line in text.splitlines())
        return shape(value) if call.moment else value


def changes_topic_policy(words):
    return words[0] in ("topicPolicies", "topics") and words[1].startswith(("set-", "remove-", "enable-", "disable-", "delete"))


def in_order(line):
    """A list inside a line, [b, a], stands for a set."""
    return re.sub(r"\[([^\[\]=]*)\]", lambda found: f"[{', '.join(sorted(found[1].split(', ')))}]", line)


def in_order_within(value):
    """The same for lists of texts, anywhere in a value."""
    if isinstance(value, dict):
        return {name: in_order_within(one) for name, one in value.items()}
    if isinstance(value, list):
        return sorted(value) if all(isinstance(one, str) for one in value) else [in_order_within(one) for one in value]
    return value


def shape(value):
    """The names of members, and what kind of values they have."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value[:1]]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


MASKS = [(re.compile(pattern), word) for pattern, word in (
    (r"127\.0\.0\.1(:|%3A)\d+", "BROKER"),
    (r"(Publish time: |resetcursor/|timestamp/|messageid/)\d{13}", r"\1TIME"),
    (r'("ledgerId" ?: ?)\d+', r'\1"LEDGER"'),
    (r"(Failed to delete .* Exception: [\w.$]+).*", r"\1"),
    (r"(terminated at |messages before )\d+:", r"\1L:"),
)]
