#!/usr/bin/env python3
"""Every log event's name is greppable to one place."""
import collections, re
import tree

EVENT = re.compile(r'\box_(?:debug|info|warn|error|log_line)\s*\((?:[^";]*?),\s*"([^"]*)"')
NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")


def main():
    places = collections.defaultdict(list)
    for path in tree.files(".c", ".h"):
        if tree.is_test(path):
            continue
        content = tree.code(path)
        for match in EVENT.finditer(content):
            places[match.group(1)].append(f"src/{path}:{tree.line_of(content, match.start())}")
    findings = [f"{' '.join(where)}: event {name} stands at several places" for name, where in sorted(places.items()) if len(where) > 1]
    findings += [f"{where[0]}: event {name!r} is not dotted lower case" for name, where in sorted(places.items()) if not NAME.fullmatch(name)]
    tree.report(findings, "a log event is a fixed name in dotted lower case, written in one place")


main()
