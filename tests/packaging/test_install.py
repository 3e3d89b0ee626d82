"""`make install` and `make uninstall`: what lies where, and that nothing else is touched."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ["OX_BUILD"])
PROGRAMS = {"oxbowd": 8, "oxbowctl": 1, "oxbow-bench": 1, "oxbow-inspect": 1}


def make(target, root, prefix="/opt/oxbow"):
    return subprocess.run(["make", "-s", "-C", TOP, target, f"BUILD={BUILD}", f"PREFIX={prefix}", f"DESTDIR={root}"], capture_output=True, text=True)


def files(root):
    return {str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    done = make("install", folder)
    assert done.returncode == 0, done.stderr
    return folder


def manual(root, name, section):
    return subprocess.run(["gzip", "-dc", root / f"opt/oxbow/share/man/man{section}/{name}.{section}.gz"], capture_output=True, text=True, check=True).stdout


def test_install_puts_everything_below_the_prefix(root):
    found = files(root)
    assert all(name.startswith("opt/oxbow/") for name in found)
    wanted = {f"bin/{name}" for name in PROGRAMS} | {f"share/man/man{section}/{name}.{section}.gz" for name, section in PROGRAMS.items()} | {
        "share/man/man5/oxbowd.conf.5.gz", "share/bash-completion/completions/oxbowctl", "share/zsh/site-functions/_oxbowctl",
        "share/fish/vendor_completions.d/oxbowctl.fish", "lib/systemd/system/oxbowd.service", "lib/sysusers.d/oxbow.conf", "etc/oxbow/oxbowd.conf",
        "share/oxbow/oxbowd.conf", "share/doc/oxbow/LICENSE", "share/doc/oxbow/README.md", "share/doc/oxbow/docs/operating.md"}
    assert wanted <= {name.removeprefix("opt/oxbow/") for name in found}


def test_install_modes(root):
    for name, mode in files(root).items():
        wanted = 0o755 if "/bin/" in name else 0o640 if "/etc/" in name else 0o644
        assert mode == wanted, f"{name} has the mode {mode:o}"


def test_unit_names_what_is_installed(root):
    unit = (root / "opt/oxbow/lib/systemd/system/oxbowd.service").read_text()
    assert "@" not in re.sub(r"~?@(system-service|privileged|resources)", "", unit)
    program, config = re.search(r"^ExecStart=(\S+) --config (\S+) --data /var/lib/oxbow$", unit, re.M).groups()
    assert (root / program[1:]).exists() and (root / config[1:]).exists()


def test_unit_waits_longer_than_the_broker(root):
    unit = (root / "opt/oxbow/lib/systemd/system/oxbowd.service").read_text()
    shutdown_ms = int(re.search(r"^#? *brokerShutdownTimeoutMs *= *(\d+)", (root / "opt/oxbow/etc/oxbow/oxbowd.conf").read_text(), re.M).group(1))
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M).group(1)) * 1000 > shutdown_ms


def test_installed_settings_are_accepted(root):
    done = subprocess.run([BUILD / "oxbowd", "--config", root / "opt/oxbow/etc/oxbow/oxbowd.conf", "--check-config"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_manual_has_every_option(root, name):
    help_text = subprocess.run([BUILD / name, "--help"], capture_output=True, text=True, check=True).stdout
    page = manual(root, name, PROGRAMS[name]).replace("\\-", "-").replace("Fl -", "--")
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_text):
        assert option in page, f"{name}'s manual page has no {option}"


@pytest.mark.parametrize("name", [*PROGRAMS, "oxbowd.conf"])
def test_manual_is_sound(root, name, tmp_path):
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    page = tmp_path / name
    page.write_text(manual(root, name, PROGRAMS.get(name, 5)))
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if "missing date" not in line]  # what is generated has none
    assert not wrong, "\n".join(wrong)


def test_user_is_the_same_everywhere(root):
    users = (root / "opt/oxbow/lib/sysusers.d/oxbow.conf").read_text()
    assert re.search(r'^u oxbow - "[^"]+" /var/lib/oxbow$', users, re.M)
    gecos = re.search(r'"([^"]+)"', users).group(1)
    assert f'--home /var/lib/oxbow --no-create-home --gecos "{gecos}" oxbow' in (TOP / "packaging/deb/postinst").read_text()


def test_uninstall_takes_its_own_and_no_more(tmp_path):
    (tmp_path / "opt/oxbow/bin").mkdir(parents=True)
    (tmp_path / "opt/oxbow/bin/other").write_text("not ours")
    for target in ("install", "install", "uninstall"):
        assert make(target, tmp_path).returncode == 0
    assert set(files(tmp_path)) == {"opt/oxbow/bin/other"}
    again = make("uninstall", tmp_path)
    assert again.returncode != 0 and "nothing was installed" in again.stderr


def test_changed_settings_stay(tmp_path):
    config = tmp_path / "opt/oxbow/etc/oxbow/oxbowd.conf"
    assert make("install", tmp_path).returncode == 0
    config.write_text("webServicePort=8081\n")
    assert make("install", tmp_path).returncode == 0
    assert config.read_text() == "webServicePort=8081\n"
    assert "stays" in make("uninstall", tmp_path).stdout
    assert set(files(tmp_path)) == {"opt/oxbow/etc/oxbow/oxbowd.conf"}


def test_install_without_a_build_says_what_to_do(tmp_path):
    done = subprocess.run(["make", "-s", "-C", TOP, "install", f"BUILD={tmp_path}", f"DESTDIR={tmp_path}"], capture_output=True, text=True)
    assert done.returncode != 0 and "'make' first" in done.stderr
