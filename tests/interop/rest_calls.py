"""rest_calls.py - makes the REST calls of a list in golden (LISTS) on any broker and sums up each answer: its status, and what its body is.

Names of the run (TEN, L) stand in the calls; tenants, ledgers, brokers and bundles have the same names in the summaries of any two brokers.
"""
import json
import pathlib
import re
import urllib.error
import urllib.request

import pulsar

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
LISTS = {"admin_calls.txt": "admin_rest.json", "admin_calls_namespaces.txt": "admin_rest_namespaces.json",
         "admin_calls_topics.txt": "admin_rest_topics.json"}  # calls and the answers of a real Pulsar
PLAIN = urllib.request.build_opener(urllib.request.ProxyHandler({}))
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
# Answers whose values are a matter of the moment or of the machine: only their members are compared.
OF_THE_MOMENT = re.compile(r"(stats|[iI]nternalStats|internal-info|terminate(/partitions)?|/backlog|standalone|brokers.*|broker-stats/.*|/lookup/.*|namespaces/TEN/ns)(\?.*)?$")


def calls(name):
    """Of a list: (line, METHOD, path, body or None, (status, reason) if the answer differs on purpose)"""
    for line in (GOLDEN / name).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        line, _, ours = line.partition(" !! ")
        method, path, *body = line.split(" ", 2)
        status, _, why = ours.partition(" ")
        yield line, method, path, body[0] if body else None, (int(status), why) if ours else None


class Run:
    """One run through the calls."""

    def __init__(self, web_url, service_url, tenant):
        self.web_url, self.tenant, self.ledger = web_url, tenant, -1
        self.client = pulsar.Client(service_url, logger=QUIET)
        self.consumers = []

    def real(self, text):
        text = text.replace("TEN", self.tenant)
        return re.sub(r"\bL\b", str(self.ledger), text) if self.ledger >= 0 else text

    def masked(self, text):
        text = text.replace(self.tenant, "TEN")
        text = re.sub(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}$", "BUNDLE", text)
        text = re.sub(r'"127\.0\.0\.1:\d+"', '"BROKER"', text)
        text = re.sub(r'MessageId":"\d+:', 'MessageId":"0:', text)
        return re.sub(r'"ledgerId":\d+', '"ledgerId":0', text)

    def topic(self, name):
        return f"persistent://{self.tenant}/ns/{name}"

    def act(self, verb, arguments):
        if verb == "SEND":
            producer = self.client.create_producer(self.topic(arguments[0]), batching_enabled=False)
            ids = [producer.send(b"m%d" % i, properties={"p": f"v{i}"}, partition_key=f"k{i}") for i in range(int(arguments[1]))]
            self.ledger = ids[0].ledger_id()
            producer.close()
        elif verb == "SUBSCRIBE":
            self.consumers.append(self.client.subscribe(self.topic(arguments[0]), arguments[1]))
        elif verb == "CLOSE":
            while self.consumers:
                self.consumers.pop().close()

    def ask(self, method, path, body):
        url = self.web_url + (path if path.startswith("/") else f"/admin/v2/{path}")
        headers = {"Content-Type": "application/json"} if body is not None else {}
        request = urllib.request.Request(self.real(url), data=None if body is None else self.real(body).encode(), method=method, headers=headers)
        try:
            with PLAIN.open(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(errors="replace")

    def summary(self, path, status, text):
        """What a body is, in a word, a value, or the names of its members."""
        text = self.masked(text)
        if status >= 400:
            return "reason"
        try:
            value = json.loads(text) if text else ""
        except ValueError:
            return text
        if path.endswith("/backlogSize"):
            return "bytes"  # names of producers count
        if isinstance(value, list):
            return sorted(value) if all(isinstance(one, str) for one in value) else "list"
        if isinstance(value, dict) and OF_THE_MOMENT.search(path):
            return sorted(value)
        return value

    def all(self, name):
        """Makes the calls of a list."""
        for line, method, path, body, ours in calls(name):
            if method in ("SEND", "SUBSCRIBE", "CLOSE"):
                self.act(method, line.split()[1:])
                continue
            status, text = self.ask(method, path, body)
            yield line, status, self.summary(path, status, text), text, ours
        self.client.close()
