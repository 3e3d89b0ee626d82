#!/usr/bin/env python3
"""Writes the names of the crash points in some sources into a C header: crash_names.py OUT.h SOURCE...

Of src/mledger the points of moves alone (those that every life passes are armed by number).
"""
import pathlib
import re
import sys

POINT = re.compile(r'OX_CRASHPOINT\s*\([^";]*?,\s*"([^"]+)"\s*\)')
MOVES = ("cleanup.", "follow.", "cursor_move.", "deletes.", "relocate.")


def main():
    names = set()
    for source in sys.argv[2:]:
        if not source.endswith("_test.c"):
            found = POINT.findall(pathlib.Path(source).read_text())
            names.update(name for name in found if "/move/" in source or name.startswith(MOVES))
    rows = ", ".join(f'"{name}"' for name in sorted(names) or ["none"])
    pathlib.Path(sys.argv[1]).write_text(f"// crash_names.h - generated: the crash points of moves.\nstatic const char *const world_move_points[] = {{{rows}}};\n")


main()
