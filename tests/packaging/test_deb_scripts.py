"""What the package's scripts do on a machine where things are not as usual: in a mount namespace, with stand-ins for the programs that would change this machine."""
import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "packaging/deb"
STANDS_IN = "adduser chown deb-systemd-helper deb-systemd-invoke systemctl"
# /etc, /run and /var/lib are empty and in memory, systemd runs; `other` is a folder outside of them.
FRAME = r"""
set -e
mount -t tmpfs tmpfs /etc
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mkdir -p "$1/bin" "$1/other"
for name in %s; do printf '#!/bin/sh\necho %%s "$@" >>%%s\n' "$name" "$1/calls" >"$1/bin/$name"; done
printf '#!/bin/sh\nexit 1\n' >"$1/bin/dpkg-statoverride"
chmod +x "$1"/bin/*
PATH=$1/bin:$PATH
other=$1/other
mkdir -p /run/systemd/system /etc/oxbow /var/lib/oxbow/store
touch /etc/oxbow/oxbowd.conf /var/lib/oxbow/store/one
script() { name=$1; shift; sh "$SCRIPTS/$name" "$@"; }
""" % STANDS_IN


def run(folder, text):
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", FRAME + text, "sh", folder], capture_output=True, text=True,
                          env={**os.environ, "SCRIPTS": str(SCRIPTS)})
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(autouse=True)
def namespaces():
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs root and mount namespaces")


def test_purge_deletes_data_and_settings(tmp_path):
    status, out = run(tmp_path, 'script postrm purge\n[ ! -e /var/lib/oxbow ] && [ ! -e /etc/oxbow ]')
    assert status == 0, out


def test_purge_never_goes_through_a_link_or_into_a_mount(tmp_path):
    for arrange in ('rm -r /var/lib/oxbow; mkdir "$other/data"; touch "$other/data/kept"; ln -s "$other/data" /var/lib/oxbow',
                    'ln -s "$other" /var/lib/oxbow/store/link; touch "$other/kept"',
                    'mkdir -p "$other/disk"; touch "$other/disk/kept"; mount --bind "$other/disk" /var/lib/oxbow',
                    # below the data: another file system, and a folder of the same one
                    'mount -t tmpfs tmpfs /var/lib/oxbow/store; touch /var/lib/oxbow/store/kept',
                    'mkdir /var/lib/elsewhere; touch /var/lib/elsewhere/kept; mount --bind /var/lib/elsewhere /var/lib/oxbow/store'):
        status, out = run(tmp_path, f'{arrange}\nscript postrm purge\n[ ! -e /etc/oxbow ]\n'
                                    'find "$other" /var/lib -name kept | grep .\nrm -rf --one-file-system "$other" || true')
        assert status == 0 and "kept" in out, f"{arrange}:\n{out}"


def test_upgrade_where_the_settings_were_deleted(tmp_path):
    status, out = run(tmp_path, 'rm /etc/oxbow/oxbowd.conf\nscript postinst configure 0.0.9\n[ ! -e /etc/oxbow/oxbowd.conf ]')
    assert status == 0, out


def test_installation_sets_user_and_modes_once(tmp_path):
    status, out = run(tmp_path, 'script postinst configure ""\nstat -c "%a %n" /var/lib/oxbow /etc/oxbow /etc/oxbow/oxbowd.conf\ncat "$1/calls"')
    assert status == 0, out
    assert "750 /var/lib/oxbow\n750 /etc/oxbow\n640 /etc/oxbow/oxbowd.conf\n" in out and "adduser --system --group" in out
    assert "chown oxbow:oxbow /var/lib/oxbow\n" in out and "chown root:oxbow /etc/oxbow/oxbowd.conf\n" in out


@pytest.mark.parametrize("call, does", [("prerm remove", "stop"), ("prerm upgrade 0.2.0", None), ("postinst configure ''", "start"), ("postinst configure 0.0.9", "restart"),
                                        ("postinst abort-upgrade 0.2.0", None), ("postinst abort-remove", "start"), ("postrm remove", None)])
def test_what_becomes_of_the_service(tmp_path, call, does):
    status, out = run(tmp_path, f'touch "$1/calls"\nscript {call}\ncat "$1/calls"')
    assert status == 0, out
    assert re.findall(r"deb-systemd-invoke (\w+) oxbowd.service", out) == ([does] if does else []), out
