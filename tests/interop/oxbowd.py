"""oxbowd.py - a real broker process on a folder of its own: started, killed, started again on the same ports, asked by REST.

    with Broker(folder) as broker:
        broker.start("storeSegmentSizeMB=8", crash_point="roll.after_create")
        broker.rest("PUT", "persistent/public/default/t/partitions", "3")
        broker.kill(); broker.start()

Nothing here sleeps for a fixed time: `wait_for` asks a condition again and again until it holds or time is up.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

BUILD = pathlib.Path(os.environ.get("OX_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
READY = re.compile(r" INFO oxbowd\.ready .*?\bpulsar=\S*?:(\d+) web=\S*?:(\d+)")
READY_SECONDS = 20
STOP_SECONDS = 40
CRASH_STATUS = 137  # how a process ends at its crash point
SMALL = ("storeSegmentSizeMB=16",)  # quick to make, and large enough for the largest message
TROUBLE = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|^.*assertion.*$", re.M | re.I)
PLAIN = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever proxy the machine has is not for 127.0.0.1


def wait_for(condition, what, seconds=10.0, pause=0.01):
    """The first true value of condition(); an AssertionError that says `what` if there is none in time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(pause)


def topic_path(topic):
    """The REST path of a topic, `persistent://public/default/` before it unless it is a whole name."""
    domain, _, rest = topic.partition("://") if "://" in topic else ("persistent", "", f"public/default/{topic}")
    tenant, namespace, local = rest.split("/", 2)
    return "/".join((domain, tenant, namespace, urllib.parse.quote(local, safe="")))


class Answer:
    """What REST said: status, text, json() and reason()."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.text = status, headers, body.decode()

    def json(self):
        return json.loads(self.text)

    def reason(self):
        return self.json()["reason"]


class Broker:
    """One broker process and its data folder; the ports stay the same over restarts."""

    def __init__(self, folder, data=None):
        self.folder = pathlib.Path(folder)
        self.data, self.log_file = data or self.folder / "data", self.folder / "oxbowd.log"
        self.port = self.web_port = 0
        self.process, self.log_start, self.settings = None, 0, SMALL

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.kill()

    @property
    def url(self):
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def web_url(self):
        return f"http://127.0.0.1:{self.web_port}"

    def command(self, *settings):
        pairs = [f"brokerServicePort={self.port}", f"webServicePort={self.web_port}", *settings]
        return [str(BUILD / "oxbowd"), "--data", str(self.data), *(word for pair in pairs for word in ("--set", pair))]

    def launch(self, *settings, crash_point=None, env=None):
        """Starts the process and does not wait. Settings are kept for the next start without any."""
        self.settings = settings or self.settings
        environment = dict(os.environ, **(env or {}))
        if crash_point:
            environment["OXBOW_CRASH_POINT"] = crash_point
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(self.command(*self.settings), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        return self

    def start(self, *settings, crash_point=None, env=None):
        """Starts the process and waits until it says that it is ready."""
        self.launch(*settings, crash_point=crash_point, env=env)
        if not self.wait_ready():
            raise RuntimeError(f"oxbowd ended with {self.process.returncode}:\n{self.log()[-3000:]}")
        return self

    def wait_ready(self):
        """True when it is ready, False if it has ended before."""
        def known():
            found = READY.search(self.log())
            return found or self.process.poll() is not None
        found = wait_for(known, f"oxbowd ready, its log: {self.log_file}", READY_SECONDS, 0.005)
        if found is True:
            return False
        self.port, self.web_port = int(found[1]), int(found[2])
        return True

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """As a power cut would, but for the kernel's memory."""
        self.process.kill()
        self.process.wait()
        return self

    def stop(self):
        """Asks for a clean end and returns the exit status."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STOP_SECONDS)

    def restart(self, how="stop", **options):
        """Ends it (stop or kill) and starts it again on the same ports and folder."""
        getattr(self, how)()
        return self.start(**options)

    def log(self, whole=False):
        """What the process has written since its last start, or since its first."""
        try:
            with open(self.log_file, "rb") as log:
                log.seek(0 if whole else self.log_start)
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def events(self, name, whole=False):
        """The log's lines of one event."""
        return [line for line in self.log(whole).splitlines() if line.split(" ", 3)[2:3] == [name]]

    def trouble(self):
        """What a sanitizer or an assertion has said, or None."""
        found = TROUBLE.search(self.log(whole=True))
        return self.log(whole=True)[max(0, found.start() - 500):found.start() + 6000] if found else None

    def http(self, method, path, body=None, headers=None):
        """A request of any path; errors are answers too."""
        data = body.encode() if isinstance(body, str) else body
        request = urllib.request.Request(self.web_url + path, data=data, method=method, headers=headers or {})
        try:
            with PLAIN.open(request, timeout=20) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def rest(self, method, path, body=None):
        """A request below /admin/v2/; a body is sent as JSON."""
        return self.http(method, f"/admin/v2/{path}", body, {"Content-Type": "application/json"} if body is not None else None)

    def stats(self, topic):
        answer = self.rest("GET", f"{topic_path(topic)}/stats")
        assert answer.status == 200, answer.text
        return answer.json()

    def metrics(self):
        """The metrics page as {name with labels: value}, the cluster's label left out."""
        page = re.sub(r'^((?:pulsar|process|topic)_\w+){cluster="[^"]*"(?:,|(}))', lambda m: m[1] if m[2] else m[1] + "{", self.http("GET", "/metrics").text, flags=re.M)
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in page.splitlines() if line and line[0] != "#")}
