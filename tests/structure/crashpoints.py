#!/usr/bin/env python3
"""Every crash point in the sources is armed by name in some test, and every name stands at one place."""
import collections, re, sys
import tree

POINT = re.compile(r'OX_CRASHPOINT\s*\([^";]*?,\s*"([^"]+)"\s*\)')
QUOTED = re.compile(r'"([a-z0-9_.]+)"')
TEST_SUFFIXES = (".c", ".h", ".def", ".py", ".txt")


def declared():
    points = collections.defaultdict(list)
    for path in tree.files(".c", ".h"):
        if not tree.is_test(path):
            content = tree.code(path)
            for match in POINT.finditer(content):
                points[match.group(1)].append(f"src/{path}:{tree.line_of(content, match.start())}")
    return points


def armed():
    names = set()
    for path in tree.files(*TEST_SUFFIXES):
        if tree.is_test(path):
            names.update(QUOTED.findall(tree.code(path)))
    for path in (tree.TOP / "tests").rglob("*"):
        if path.suffix in TEST_SUFFIXES and path.parent.name != "structure":
            names.update(QUOTED.findall(path.read_text()))
    return names


def main():
    points, tests = declared(), armed()
    if "--list" in sys.argv:
        print("\n".join(sorted(points)))
        return
    findings = [f"{places[0]}: no test arms {name}" for name, places in sorted(points.items()) if name not in tests]
    findings += [f"{' '.join(places)}: {name} stands at several places" for name, places in sorted(points.items()) if len(places) > 1]
    tree.report(findings, "one crash point per arrow of each multi-step job, each armed by a test")


main()
