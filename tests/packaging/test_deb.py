"""The Debian package as `make deb` leaves it; it stays in the working folder, where first_hour.py takes it."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ["OX_BUILD"])
VERSION = re.search(r'OX_VERSION "(.*)"', (TOP / "src/base/version.h").read_text()).group(1)


def pack(folder):
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], cwd=BUILD, capture_output=True, text=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1764590400"})
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("oxbow_*.deb"))


@pytest.fixture(scope="module")
def deb():
    if not shutil.which("dpkg-shlibdeps"):
        pytest.skip("dpkg-dev is not installed: no Debian packages here")
    for old in Path().glob("*deb"):
        old.unlink()
    return pack(Path.cwd())


def field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True).stdout.strip()


def contents(deb):
    """name -> (mode, owner) of every file and folder in it."""
    listed = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
    return {words[5].removeprefix("."): (words[0], words[1]) for words in (line.split() for line in listed.splitlines())}


def test_version_is_the_programs(deb):
    assert field(deb, "Version") == VERSION
    assert (TOP / "packaging/deb/changelog").read_text().startswith(f"oxbow ({VERSION}) ")


def test_needs_are_computed(deb):
    needs = field(deb, "Depends")
    for library in ("libc6", "liblmdb0", "libuv1", "adduser"):
        assert re.search(rf"\b{library}\b", needs), f"{library} is missing: {needs}"


def test_modes_are_tight(deb):
    found = contents(deb)
    assert found["/etc/oxbow/oxbowd.conf"][0] == "-rw-r-----"
    assert all(owner == "root/root" for _, owner in found.values())
    assert not [name for name, (mode, _) in found.items() if mode[5] == "w" or mode[8] == "w" or "s" in mode]
    assert "/lib/systemd/system/oxbowd.service" in found


def test_settings_are_a_conffile(deb):
    listed = subprocess.run(["dpkg-deb", "-I", deb, "conffiles"], capture_output=True, text=True, check=True).stdout
    assert listed.split() == ["/etc/oxbow/oxbowd.conf"]


def test_programs_are_stripped_and_debug_symbols_beside(deb):
    shown = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
    program = subprocess.run(["tar", "-xO", "./usr/bin/oxbowd"], input=shown, capture_output=True, check=True).stdout
    Path("oxbowd").write_bytes(program)
    sections = subprocess.run(["readelf", "-SW", "oxbowd"], capture_output=True, text=True, check=True).stdout
    Path("oxbowd").unlink()
    assert ".debug_info" not in sections and ".gnu_debuglink" in sections
    assert list(Path().glob("oxbow-dbgsym_*.ddeb"))


def test_same_sources_same_package(deb, tmp_path):
    other = pack(tmp_path / "again")
    assert other.read_bytes() == deb.read_bytes()


def test_lintian_has_nothing_to_say(deb):
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", deb], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
