"""suite.py - runs a client's own test suite against oxbowd, and holds what passed against what should pass.

    suite.py go|go_admin|rust|python [--build DIR] [--work DIR] [--source DIR] [--only REGEX] [--soak] [--table]

Sources are fetched where the suite runs (a Go module, a crate, a git repository) and kept outside the project, in --work
(default BUILD/suites). The suites have 127.0.0.1:6650 and :8080 written in: those ports must be free. `<suite>.json` beside
this file names what is left out and why, and what fails on a real Pulsar too; everything else must pass. Exit status: 0 all
as expected, 1 a test failed (or one named as failing passed) or the broker died, 77 the suite cannot run here, with a sentence why.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRIES = 6
SKIPPED = 77  # CTest's SKIP_RETURN_CODE
PORTS = (6650, 8080)
PLAIN = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class CannotRun(Exception):
    """The suite cannot run on this machine; the text says why."""


def command(*args, **options):
    """Runs a command to its end; a failure is CannotRun with the end of what it said."""
    done = subprocess.run(args, capture_output=True, text=True, **options)
    if done.returncode:
        raise CannotRun(f"{' '.join(map(str, args[:4]))} failed: {(done.stdout + done.stderr)[-500:]}")
    return done.stdout


def need(program, *version_args, least=None):
    """The program must be there, at least in a version."""
    if not shutil.which(program):
        raise CannotRun(f"{program} is not installed")
    if least:
        found = re.search(r"(\d+)\.(\d+)", command(program, *version_args))
        if tuple(map(int, found.groups())) < least:
            raise CannotRun(f"{program} {found.group(0)} is older than {least[0]}.{least[1]}")


class Broker:
    """oxbowd on the ports that the suites expect, on a folder that goes with it."""

    def __init__(self, build, settings):
        self.folder = tempfile.mkdtemp(prefix="oxbow-suite-")
        self.log = open(pathlib.Path(self.folder) / "log", "w")
        for port in PORTS:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    raise CannotRun(f"port {port} is taken")
        sets = [x for pair in (("--set", f"{k}={v}") for k, v in settings.items()) for x in pair]
        self.process = subprocess.Popen([build / "oxbowd", "--data", f"{self.folder}/data", *sets], stdout=self.log, stderr=self.log)

    def __enter__(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                PLAIN.open("http://127.0.0.1:8080/admin/v2/brokers/health", timeout=2).read()
                return self
            except OSError:
                time.sleep(0.05)
        raise CannotRun("oxbowd did not start:\n" + self.text()[-2000:])

    def make_namespace(self, name):
        PLAIN.open(urllib.request.Request(f"http://127.0.0.1:8080/admin/v2/namespaces/{name}", method="PUT"), timeout=10).read()

    def text(self):
        self.log.flush()
        return (pathlib.Path(self.folder) / "log").read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        said = re.search(r"Sanitizer|runtime error:|[Aa]ssertion|oxbowd.crash", self.text())
        self.trouble = bool(said) or self.process.returncode not in (0, -15)
        if self.trouble:
            sys.stderr.write(f"oxbowd ended with {self.process.returncode}:\n{self.text()[-3000:]}\n")
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- the suites: prepare() makes it ready and returns the tests' names, run() yields (name, PASS|FAIL|SKIP, output, seconds)

class Go:
    """A package of github.com/apache/pulsar-client-go; the module brings its tests."""

    def __init__(self, plan, args):
        self.plan, self.work = plan, args.work / "go"
        self.source = self.work / "source"
        self.folder = self.source / plan["package"]

    def prepare(self):
        need("go", "version", least=(1, 26))
        self.work.mkdir(parents=True, exist_ok=True)
        self.binary = self.work / f"{self.folder.name}-{self.plan['version']}.test"
        if not self.binary.exists():
            self.fetch()
            command("go", "test", "-c", "-o", str(self.binary), f"./{self.plan['package']}", cwd=self.source)
        out = command(str(self.binary), "-test.list", ".*", cwd=self.folder)
        return [line for line in out.split() if line.startswith("Test")]

    def fetch(self):
        told = command("go", "mod", "download", "-json", f"github.com/apache/pulsar-client-go@{self.plan['version']}", cwd=self.work)
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.copytree(json.loads(told)["Dir"], self.source)
        for path in [self.source, *self.source.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)

    def run(self, tests):
        """A test that takes the process down is a failure; the rest goes on in a new process."""
        left = list(tests)
        while left:
            done = yield from self.once(left)
            left = [name for name in left if name not in done]

    def watch(self, process):
        """A test that takes too long ends its process, which then says where it stood."""
        timer = threading.Timer(self.plan["test_seconds"], process.send_signal, [signal.SIGQUIT])
        timer.daemon = True
        timer.start()
        return timer

    def once(self, tests):
        pattern = "^(" + "|".join(tests) + ")$"
        process = subprocess.Popen([str(self.binary), "-test.v", f"-test.timeout={self.plan['minutes']}m", f"-test.run={pattern}"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        done, running, output, watch = set(), None, [], self.watch(process)
        for line in process.stdout:
            began = re.match(r"=== RUN   (Test\w+)$", line)
            ended = re.match(r"--- (PASS|FAIL|SKIP): (Test\w+) \(([\d.]+)s\)", line)
            if began:
                running, output = began.group(1), []
                watch.cancel()
                watch = self.watch(process)
            output.append(line)
            del output[:-200]
            if ended:
                done.add(ended.group(2))
                yield ended.group(2), ended.group(1), "".join(output), float(ended.group(3))
                running = None
        watch.cancel()
        process.wait()
        if running or not done:
            name = running or tests[0]
            done.add(name)
            yield name, "FAIL", "the test ended its process:\n" + "".join(output), 0.0
        return done


class Rust:
    """The crate pulsar: unit tests in its sources."""

    def __init__(self, plan, args):
        self.plan, self.work = plan, args.work / "rust"

    def prepare(self):
        need("cargo")
        need("protoc")
        self.source = self.work / f"pulsar-{self.plan['version']}"
        if not self.source.exists():
            self.fetch()
        self.flags = ["--lib", "--no-default-features", "--features", "compression,tokio-runtime"]
        command("cargo", "test", "--quiet", *self.flags, "--no-run", cwd=self.source)
        out = command("cargo", "test", "--quiet", *self.flags, "--", "--list", cwd=self.source)
        return re.findall(r"^(\S+): test$", out, re.M)

    def fetch(self):
        """cargo fetches what a project needs: one that needs only this crate."""
        project = self.work / "project"
        (project / "src").mkdir(parents=True, exist_ok=True)
        (project / "src/main.rs").write_text("fn main() {}\n")
        (project / "Cargo.toml").write_text('[package]\nname = "project"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
                                            f'pulsar = {{ version = "={self.plan["version"]}", default-features = false, features = ["compression", "tokio-runtime"] }}\n')
        command("cargo", "fetch", cwd=project)
        home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
        shutil.copytree(next(home.glob(f"registry/src/*/pulsar-{self.plan['version']}")), self.source)

    def run(self, tests):
        out = subprocess.run(["cargo", "test", "--quiet", *self.flags, "--", "--exact", "--format=pretty", *tests], cwd=self.source,
                             capture_output=True, text=True, timeout=self.plan["minutes"] * 60)
        text = out.stdout + out.stderr
        said = dict(re.findall(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", text, re.M))
        for name in tests:
            where = text.find(f"---- {name} stdout")
            yield name, {"ok": "PASS", "ignored": "SKIP"}.get(said.get(name), "FAIL"), text[where:where + 3000] if where >= 0 else text[-3000:], 0.0


class Python:
    """apache/pulsar-client-python, tests/: not in the wheel, so from --source or a clone."""

    def __init__(self, plan, args):
        self.plan, self.work, self.source = plan, args.work / "python", args.source
        self.python = args.python

    def prepare(self):
        self.work.mkdir(parents=True, exist_ok=True)
        if not self.source:
            self.source = self.work / "source"
            if not self.source.exists():
                need("git")
                command("git", "clone", "--quiet", "--depth", "1", "--branch", self.plan["version"],
                        "https://github.com/apache/pulsar-client-python", str(self.source))
        self.tests = pathlib.Path(self.source) / "tests"
        venv = self.work / "venv"
        if not venv.exists():
            command(sys.executable, "-m", "venv", str(venv))
            command(str(venv / "bin/pip"), "install", "-q", *self.plan["packages"])
        self.python = str(venv / "bin/python")
        out = command(self.python, "-m", "pytest", "-q", "--collect-only", *self.plan["files"], cwd=self.tests)
        return [line for line in out.split("\n") if "::" in line]

    def run(self, tests):
        report = self.work / "report.xml"
        subprocess.run([self.python, "-m", "pytest", "-q", "--timeout", "60", "--junitxml", str(report), *tests], cwd=self.tests,
                       capture_output=True, text=True, timeout=self.plan["minutes"] * 60)
        import xml.etree.ElementTree as tree
        said = {}
        for case in tree.parse(report).iter("testcase"):
            bad = next((x for x in case if x.tag in ("failure", "error")), None)
            how = "FAIL" if bad is not None else "SKIP" if case.find("skipped") is not None else "PASS"
            said[(case.get("classname").split(".")[0], case.get("name"))] = how, (bad.text or "") if bad is not None else "", float(case.get("time"))
        for name in tests:
            file, *_, test = name.split("::")
            yield name, *said.get((file.removesuffix(".py"), test), ("FAIL", "it did not run", 0.0))


SUITES = {"go": Go, "go_admin": Go, "rust": Rust, "python": Python}


def reason_of(name, table):
    """The entry of a table whose pattern fits the whole name, or None."""
    return next((why for pattern, why in table.items() if re.fullmatch(pattern, name)), None)


def outcomes(suite, tests, plan):
    """Runs the tests. What fails is tried again after all others: once must do for a test that fails sometimes, on a real Pulsar too; any other must
    then pass twice, and is named: the suites have tests that race with themselves on a busy machine."""
    again, doubtful = [], []
    for one in suite.run(tests):
        known = reason_of(one[0], plan["fails"]) or ""
        if one[1] != "FAIL" or (known and not known.startswith("sometimes")):
            yield one
        else:
            (again if known else doubtful).append(one)
    for name, how, output, seconds in doubtful:
        if all(list(suite.run([name]))[-1][1] == "PASS" for _ in range(2)):
            how = "PASS"
            print(f"{name} failed once and passed twice when tried again", flush=True)
        yield name, how, output, seconds
    for name, *_ in again:
        for _ in range(TRIES):
            last = list(suite.run([name]))[-1]
            if last[1] != "FAIL":
                break
        yield last


def judge(name, how, plan):
    """None if the outcome is as it should be, else what is wrong."""
    known = reason_of(name, plan["fails"])
    always = known and not known.startswith("sometimes")
    if how == "FAIL" and not always:
        return "failed"
    if how == "PASS" and always:
        return "passed, though it is named as failing"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("suite", choices=SUITES)
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    p.add_argument("--work", type=pathlib.Path)
    p.add_argument("--source", type=pathlib.Path, default=os.environ.get("OX_SUITE_SOURCE"))
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--only", default=".*", help="tests whose name has this pattern")
    p.add_argument("--soak", action="store_true", help="the tests too that take long")
    p.add_argument("--table", action="store_true", help="one line a test: its outcome and time")
    args = p.parse_args()
    args.work = args.work or args.build / "suites"
    plan = json.loads((HERE / f"{args.suite}.json").read_text())
    try:
        sys.exit(run(SUITES[args.suite](plan, args), plan, args))
    except CannotRun as why:
        print(f"skipped: {why}")
        sys.exit(SKIPPED)


def left_out(tests, plan, soak):
    """{test: why it does not run}"""
    table = {**plan["skip"], **({} if soak else plan.get("soak", {}))}
    return {name: why for name in tests if (why := reason_of(name, table))}


def run(suite, plan, args):
    tests = [name for name in suite.prepare() if re.search(args.only, name)]
    skipped = left_out(tests, plan, args.soak)
    count, wrong, began = {"PASS": 0, "FAIL": 0, "SKIP": 0}, [], time.monotonic()
    with Broker(args.build, plan["settings"]) as broker:
        for namespace in plan.get("namespaces", []):
            broker.make_namespace(namespace)
        for name, how, output, seconds in outcomes(suite, [name for name in tests if name not in skipped], plan):
            count[how] += 1
            bad = judge(name, how, plan)
            if args.table:
                print(f"{how} {seconds:6.1f} s {name}", flush=True)
            if bad:
                wrong.append(name)
                print(f"== {name} {bad}\n{output[-3000:]}", flush=True)
            if not broker.alive():
                print(f"== oxbowd ended during {name}\n{broker.text()[-3000:]}")
                return 1
    print(f"{args.suite}: {count['PASS']} passed, {count['FAIL']} failed ({len(wrong)} of them unexpected), "
          f"{count['SKIP']} skipped themselves, {len(skipped)} left out; {time.monotonic() - began:.0f} s")
    for why, number in collections.Counter(skipped.values()).most_common():
        print(f"left out {number}: {why}")
    for name in wrong:
        print(f"unexpected: {name}")
    return bool(wrong) or broker.trouble


if __name__ == "__main__":
    main()
