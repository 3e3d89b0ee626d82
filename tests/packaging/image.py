#!/usr/bin/env python3
"""Builds the image of packaging/Containerfile and waits until the broker in it says it is healthy. Needs an engine that works."""
import shutil
import subprocess
import sys
import time

from containerfile import FILE, TOP

NAME = "oxbow-image-test"


def engine():
    for name in ("podman", "docker"):
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True).returncode == 0:
            return name
    print("skipped: neither podman nor docker works here; test_container.py has read the file")
    sys.exit(77)


def main():
    run = engine()
    subprocess.run([run, "build", "-f", FILE, "-t", NAME, TOP], check=True)
    started = subprocess.run([run, "run", "-d", "--rm", "--name", NAME, NAME], capture_output=True, text=True, check=True)
    print("started", started.stdout.strip())
    try:
        limit = time.monotonic() + 60
        while subprocess.run([run, "exec", NAME, "oxbowctl", "brokers", "health"]).returncode:
            if time.monotonic() > limit:
                sys.exit(subprocess.run([run, "logs", NAME], capture_output=True, text=True).stderr)
            time.sleep(0.5)
        user = subprocess.run([run, "exec", NAME, "id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        if user != "oxbow":
            sys.exit(f"the broker's container runs as {user}")
    finally:
        subprocess.run([run, "stop", NAME], check=True)


main()
