"""test_java.py - the Java client: java/src/Scenarios.java, one test a scenario; skipped where Java or Maven is missing."""
import pathlib
import re
import shutil
import subprocess

import pytest
from oxbowd import BUILD, Broker

HERE = pathlib.Path(__file__).resolve().parent / "java"
SOURCE = HERE / "src/Scenarios.java"
NAMES = [name for name in re.findall(r"^    public static void (\w+)\(\)", SOURCE.read_text(), re.M)]


@pytest.fixture(scope="module")
def jars():
    """The client's jars, fetched once a build folder."""
    for program in ("java", "mvn"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    lib = BUILD / "java"
    if not (lib / "done").exists():
        done = subprocess.run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={lib}"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
        (lib / "done").touch()
    return lib


@pytest.fixture(scope="module")
def outcome(jars, tmp_path_factory):
    """What each scenario said; one JVM runs them all."""
    with Broker(tmp_path_factory.mktemp("java")) as broker:
        broker.start()
        done = subprocess.run(["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(SOURCE), broker.url],
                              capture_output=True, text=True, timeout=240)
        broker.stop()
    said = dict(re.findall(r"^(?:ok|FAILED) (\w+)(.*)$", done.stdout, re.M))
    return said, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("name", NAMES)
def test_java_client(outcome, name):
    said, output = outcome
    assert name in said, output
    assert not said[name], said[name]
