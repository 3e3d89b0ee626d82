"""A Debian machine of its own for one test: a minimal system in memory, with systemd as its first process and a network of its own.

It needs root, mmdebstrap and the package archive. All of it is in namespaces of this process: when the process ends, nothing is left.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

SKIPPED = 77
# What a container's first process finds: no device but these, cgroups of its own.
BOOT = r"""
set -e
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for device in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "dev/${device%:*}" c 1 "${device#*:}"
done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
pivot_root . mnt
umount -l /mnt
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=console
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def alone():
    """Starts this program again in a mount namespace of its own."""
    if os.environ.get("OX_ALONE") == "yes":
        return
    if os.geteuid() != 0:
        skip("only root can set up a machine")
    if not shutil.which("mmdebstrap"):
        skip("mmdebstrap is not installed (scripts/setup test)")
    if subprocess.run(["unshare", "-m", "-p", "-f", "-n", "-C", "-u", "-i", "true"], capture_output=True).returncode:
        skip("this container may not make namespaces")
    os.environ["OX_ALONE"] = "yes"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, "-B", *sys.argv])


class Machine:
    def __init__(self, folder):
        self.root = Path(folder).resolve() / "machine"
        self.root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", self.root], check=True)
        self.first = None

    def install(self, files, packages):
        """Debian 12 as small as it gets, with systemd; `files` in /root, and what `packages` need already downloaded."""
        done = subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", "--include=systemd-sysv", "--skip=cleanup/apt", "--aptopt=DPkg::Post-Invoke \"\"",
                               *(f"--customize-hook=copy-in {shlex.quote(str(file))} /root" for file in files),
                               f'--customize-hook=chroot "$1" sh -c "cd /root && apt-get -q -y --download-only install {" ".join(packages)}"', "bookworm", self.root],
                              capture_output=True, text=True)
        if re.search("Could not resolve|Could not connect|Failed to fetch|Temporary failure|Cannot initiate", done.stderr):
            skip("the package archive cannot be reached:\n" + done.stderr[-2000:])
        if done.returncode:
            sys.exit("no machine could be made:\n" + done.stderr[-3000:])
        # Nobody is there to answer; without what is only recommended it shows that what the package demands is enough.
        (self.root / "etc/apt/apt.conf.d/90test").write_text('APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n')

    def boot(self):
        # If this process is killed, so is the machine.
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "-m", "-p", "-f", "-n", "-C", "-u", "-i", "--kill-child", "sh", "-c", BOOT, "boot", self.root]
        self.log = open(self.root.parent / "boot.log", "w")
        self.holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            if self.holder.poll() is not None:
                break
            self.first = children.read_text().strip()
            if self.first and Path(f"/proc/{self.first}/comm").read_text().strip() == "systemd":
                state = self.run("systemctl is-system-running --wait").stdout.strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.1)
        skip("systemd does not start in a container here:\n" + (self.root.parent / "boot.log").read_text()[-2000:])

    def run(self, script, timeout=120):
        """Runs a script as root would type it, in /root; its outputs come together."""
        enter = ["nsenter", "-t", self.first, "-m", "-p", "-n", "-u", "-i", "-C"]
        clean = ["env", "-i", "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"]
        return subprocess.run([*enter, *clean, "bash", "-c", "cd /root\n" + script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=timeout)

    def end(self):
        if self.first:
            os.kill(int(self.first), 9)
        self.holder.wait()
