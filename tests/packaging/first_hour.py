#!/usr/bin/env python3
"""What README.md says under "Install" and "The first hour" is typed on a fresh machine, command by command; then an upgrade, and a purge.

usage: first_hour.py FOLDER      where the package is
"""
import re
import subprocess
import sys
import time
from pathlib import Path

import machine

TOP = Path(__file__).resolve().parent.parent.parent
# What a command of the README must print, beside ending well: (how it begins, what is in its output). Each must be in the README.
EXPECTED = [
    ("apt install", r"Setting up oxbow"),
    ("systemctl status", r"active \(running\)"),
    ("oxbowctl brokers health", r"(?i)ok|well|healthy"),
    ("oxbowctl consume shop/sales/orders", r"^1000$"),
    ("oxbowctl topics stats", r"^billing"),
    ("curl", r'^pulsar_in_messages_total\{.*orders-partition-3"\} 250$'),
    ("journalctl", r"settings.changed key=defaultRetentionTimeInMinutes"),
    ("apt purge", r"Purging configuration files for oxbow"),
]


def section(title):
    found = re.search(rf"^## {title}\n(.*?)(?=^## )", (TOP / "README.md").read_text(), re.M | re.S)
    return found.group(1) if found else sys.exit(f"README.md has no section '{title}'")


def commands(text):
    """The commands in a section's blocks marked `sh`; a line that ends with a backslash goes on."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            if line.strip() and not line.startswith("#"):
                yield line


class Hour:
    def __init__(self, fresh):
        self.machine = fresh
        self.typed = []

    def type(self, command):
        """As the README has it: it must end well, and print what is expected of it."""
        self.typed.append(command)
        pattern = next((pattern for start, pattern in EXPECTED if command.startswith(start)), "")
        if command.startswith("journalctl"):  # a reload goes on behind the command that asks for it
            self.check(f"for i in $(seq 50); do {command} | grep -q '{pattern}' && break; sleep 0.1; done")
        self.check(command, pattern)
        if command.startswith("apt remove"):
            self.check("test -e /var/lib/oxbow/store && test -e /etc/oxbow/oxbowd.conf && test ! -e /usr/bin/oxbowd")

    def check(self, command, pattern=""):
        started = time.monotonic()
        try:
            done = self.machine.run(f"set -o pipefail\n{command}", timeout=60)
        except subprocess.TimeoutExpired as late:
            self.fail(f"{command}: not done within a minute:\n{(late.stdout or b'').decode()}")
        print(f"# {command}   ({time.monotonic() - started:.1f} s)\n{done.stdout}", flush=True)
        if done.returncode:
            self.fail(f"exit status {done.returncode}")
        if not re.search(pattern, done.stdout, re.M):
            self.fail(f"its output has no {pattern}")
        return done.stdout

    def fail(self, why):
        print(f"FAILED: {why}\n" + self.machine.run("systemctl status oxbowd; journalctl --no-pager -u oxbowd -n 50").stdout)
        sys.exit(1)

    def service(self):
        """What the README does not show: how the unit holds the broker."""
        self.check("systemd-analyze verify --man=no /lib/systemd/system/oxbowd.service")
        exposure = self.check("systemd-analyze security --no-pager oxbowd.service", r"Overall exposure")
        level = float(re.search(r"exposure level for oxbowd.service: ([\d.]+)", exposure).group(1))
        if level > 2:
            self.fail(f"the exposure level is {level}, above 2")
        self.check("stat -c %U /proc/$(systemctl show -P MainPID oxbowd)", r"^oxbow")
        self.check("stat -c '%a %U:%G' /var/lib/oxbow /etc/oxbow /etc/oxbow/oxbowd.conf", r"750 oxbow:oxbow\n750 root:oxbow\n640 root:oxbow")

    def another_disk(self):
        """As docs/operating.md says: a folder elsewhere is refused until the unit allows it."""
        register = "oxbowctl bookie-clusters register big --metadata-service-uri embedded:/disk2/oxbow"
        self.check(f"install -d -o oxbow -g oxbow -m 0750 /disk2/oxbow && ! {register}", "access is denied.*ReadWritePaths=")
        unit = "/etc/systemd/system/oxbowd.service.d"
        self.check(f"mkdir {unit} && printf '[Service]\\nReadWritePaths=/disk2/oxbow\\n' >{unit}/disk.conf && systemctl daemon-reload && systemctl restart oxbowd")
        self.check(f"{register} && oxbowctl bookie-clusters precheck big")

    def crash(self):
        """A broker that crashes leaves a report in its folder and is started again."""
        before = self.check("systemctl show -P MainPID oxbowd").strip()
        self.check(f"kill -SEGV {before}")
        self.check(f"for i in $(seq 100); do sleep 0.1; [ $(systemctl show -P MainPID oxbowd) = {before} ] || systemctl -q is-active oxbowd && break; done; oxbowctl brokers health")
        self.check("cat /var/lib/oxbow/crash-*.txt", "signal SIGSEGV")
        told = self.check("journalctl --no-pager -u oxbowd -p warning", "oxbowd.crash_reports")
        if "oxbowd.ready" in told:
            self.fail("lines of the log have no priority of their own")

    def upgrade(self):
        """A package over itself: the broker is started again, data and settings are there."""
        self.check("echo '# mine' >>/etc/oxbow/oxbowd.conf; echo kept | oxbowctl produce kept-over-upgrades")
        before = self.check("systemctl show -P MainPID oxbowd")
        self.check("apt-get -q -y install --reinstall ./oxbow_*.deb")
        after = self.check("systemctl show -P MainPID oxbowd && systemctl is-active oxbowd")
        if before.split()[0] == after.split()[0]:
            self.fail("the broker was not started again")
        self.check("oxbowctl consume kept-over-upgrades", "^kept$")
        self.check("tail -n 1 /etc/oxbow/oxbowd.conf", "^# mine$")


def main():
    machine.alone()
    fresh = machine.Machine(".")
    debs = list(Path(sys.argv[1]).glob("oxbow_*.deb"))
    fresh.install(debs, ["./oxbow_*.deb", "curl"])
    fresh.boot()
    hour = Hour(fresh)
    try:
        for command in commands(section("Install")):
            hour.type(command)
        hour.service()
        hour.another_disk()
        hour.crash()
        hour.upgrade()
        for command in commands(section("The first hour")):
            hour.type(command)
        hour.check("test ! -e /var/lib/oxbow && test ! -e /etc/oxbow && test ! -e /lib/systemd/system/oxbowd.service")
    finally:
        fresh.end()
    unseen = [start for start, _ in EXPECTED if not any(command.startswith(start) for command in hour.typed)]
    if unseen:
        sys.exit(f"README.md has no command that begins so: {unseen}")
    print(f"{len(hour.typed)} commands of README.md done")


main()
