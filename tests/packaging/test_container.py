"""packaging/Containerfile holds what it must, also where no engine can build it (image.py does where there is one)."""
import fnmatch
import json
import re
from pathlib import Path

import pytest

from containerfile import FILE, TOP, stages

KNOWN = {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "HEALTHCHECK", "LABEL", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}
KEYS = {key["name"]: key for key in json.loads((TOP / "spec/config.json").read_text())["keys"]}


@pytest.fixture(scope="module")
def found():
    return stages(FILE.read_text())


def test_instructions_are_known_and_in_order(found):
    assert len(found) == 2 and found[0].name
    assert {word for stage in found for word, _ in stage.steps} <= KNOWN
    words = [word for word, _ in found[-1].steps]
    assert words.index("USER") > words.index("RUN"), "packages are installed by root, before USER"


def test_bases_are_pinned_and_qualified(found):
    names = {stage.name for stage in found}
    for stage in found:
        if stage.base not in names:
            assert re.fullmatch(r"[\w.-]+\.[a-z]+/[\w./-]+:\d+\.\d+[\w.-]*", stage.base), f"{stage.base}: registry/name:version, not 'latest'"
    assert found[0].base == found[-1].base, "libraries must be those the programs were linked with"


def test_what_is_copied_exists_and_is_not_ignored(found):
    ignored = [line for line in (TOP / "packaging/Containerfile.dockerignore").read_text().splitlines() if line and line[0] != "#"]
    for copy in (rest.split() for rest in found[0].all("COPY")):
        for source in copy[:-1]:
            assert (TOP / source).exists(), f"COPY {source}: there is no such file"
            assert not any(fnmatch.fnmatch(source.split("/")[0], pattern) for pattern in ignored), f"COPY {source}: it is ignored"
    for copy in found[-1].all("COPY"):
        assert copy.startswith(f"--from={found[0].name} "), "the image is made of what was built, nothing else"


def test_all_folders_of_the_build_are_copied(found):
    copied = {source for rest in found[0].all("COPY") for source in rest.split()[:-1]}
    folders = re.search(r"foreach\(folder(.*?)\)", (TOP / "CMakeLists.txt").read_text(), re.S).group(1).split()
    wanted = {folder.split("/")[0] for folder in folders} - {"tests"} | {"cmake", "CMakeLists.txt", "CMakePresets.json"}
    scripts = {word.split("/")[0] for path in (TOP / "src").rglob("CMakeLists.txt") for word in re.findall(r"\b(?:tools|spec)/[\w./-]+", path.read_text())}
    installed = {word.split("/")[0] for word in re.findall(r"\$\{source\}/([\w./-]+)", (TOP / "packaging/install.cmake").read_text())}
    assert wanted | scripts | installed <= copied


def test_packages_come_from_the_list(found):
    listed = {line.split()[0] for line in (TOP / "scripts/packages.txt").read_text().splitlines() if line and line[0] != "#" and line.split()[1] == "build"}
    assert {"cmake", "ninja-build", "gcc", "dpkg-dev", "file"} <= listed
    for stage in found:
        for run in stage.all("RUN"):
            for install in re.findall(r"apt-get install ([^&]*)", run):
                names = [word for word in install.split() if not word.startswith("-")]
                assert {"-y", "--no-install-recommends"} <= set(install.split())
                assert all(name.startswith("/tmp/oxbow_") for name in names), f"{names}: what is needed stands in the package or in scripts/packages.txt"
                assert "rm -rf" in run and "/var/lib/apt/lists/*" in run


def test_it_runs_as_an_ordinary_user(found):
    user = found[-1].one("USER")
    assert user not in ("root", "0") and re.search(rf"adduser .* {user}$", (TOP / "packaging/deb/postinst").read_text(), re.M)
    assert not [run for run in found[-1].all("RUN") if "sudo" in run or "chmod" in run]


def test_ports_and_data(found):
    last = found[-1]
    assert last.one("EXPOSE").split() == [str(KEYS[name]["default"]) for name in ("brokerServicePort", "webServicePort")]
    start = json.loads(last.one("ENTRYPOINT"))
    assert start[0] == "oxbowd" and start[start.index("--data") + 1] == last.one("VOLUME")
    unit = (TOP / "packaging/systemd/oxbowd.service.in").read_text()
    assert f"--data {last.one('VOLUME')}" in unit
    assert last.one("STOPSIGNAL") == "SIGTERM"


def test_settings_in_the_environment_are_keys(found):
    for name, value in (pair.split("=", 1) for rest in found[-1].all("ENV") for pair in rest.split()):
        assert name.removeprefix("OXBOW_") in KEYS, f"{name}: no such key"
    assert "OXBOW_bindAddress=0.0.0.0" in found[-1].all("ENV"), "a container that listens on its own 127.0.0.1 is reached by nobody"


def test_health_is_asked(found):
    health = found[-1].one("HEALTHCHECK")
    assert json.loads(health[health.index("CMD ") + 4:]) == ["oxbowctl", "brokers", "health"]
    assert "--start-period=" in health and "--timeout=" in health
