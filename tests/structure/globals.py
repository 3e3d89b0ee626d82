#!/usr/bin/env python3
"""No object file of ours holds a writable variable of file or static scope.

globals.py BUILD-FOLDER (a build without sanitizers: theirs add data of their own)
"""
import pathlib, subprocess, sys
import tree

# A signal handler is given nothing of its owner's: it has to find the crash report's state by itself.
ALLOWED = {("crash.c.o", "crash_state")}
WRITABLE = (".data", ".bss", ".tdata", ".tbss", "*COM*", "COMMON")


def objects(build):
    for path in sorted(pathlib.Path(build, "src").rglob("*.o")):
        name = str(path)
        if "_proto.dir" not in name and "/generated/" not in name and not path.name.endswith("_test.c.o"):
            yield path


def writable(paths):
    """(object file, name, section) of every symbol in a writable section."""
    out = subprocess.run(["nm", "-A", "--format=sysv", *paths], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        fields = [f.strip() for f in line.split("|")]
        if len(fields) == 7 and fields[6].startswith(WRITABLE) and not fields[6].startswith(".data.rel.ro"):
            path, name = fields[0].rsplit(":", 1)
            yield pathlib.Path(path).name, name.strip(), fields[6]


def main():
    found = list(objects(sys.argv[1]))
    if not found:
        sys.exit("no object files: build first")
    findings = [f"{path}: {name} is writable (section {section})" for path, name, section in writable(found) if (str(path), name) not in ALLOWED]
    tree.report(findings, "no mutable globals: state hangs off its owner, constants are const")


main()
