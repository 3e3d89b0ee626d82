#!/usr/bin/env python3
"""Turns spec/rest/*.json, the table of REST routes, into C and into the tables of docs/admin.md.

restgen.py spec/rest OUT-FOLDER   writes rest_routes.h: a macro of rows (struct admin_route) for each group
restgen.py --docs                 writes the tables in docs/admin.md

A group is a file of src/admin. Its `routes` have: method; path; handler (a static function of that file); arg (a C expression, default NULL);
state (done, or kept: stored and shown, nothing follows it); note (what differs from Pulsar, in a few words); help. In a path `{topic}` and
`{namespace}` at its beginning stand for the whole prefix, other names in braces match any segment. The first route that matches wins: a literal
path stands before one with a name.
"""
import json
import pathlib
import re

import tablegen

TOP = pathlib.Path(__file__).resolve().parents[1]
SPEC, PAGE = TOP / "spec" / "rest", TOP / "docs" / "admin.md"
PREFIXES = {"{topic}": "/admin/v2/{domain}/{tenant}/{namespace}/{topic}", "{namespace}": "/admin/v2/namespaces/{tenant}/{namespace}"}
FIELDS = {"method", "path", "handler", "arg", "state", "note", "help"}
METHODS = ("GET", "PUT", "POST", "DELETE")
MARK = re.compile(r"(<!-- routes: ([a-z_ ]+) -->\n)(.*?)(<!-- end of routes -->)", re.S)


def groups(folder=SPEC):
    """The groups, by name."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {group["group"]: group for group in found}


def whole(path):
    """A path with its prefix written out."""
    for short, long in PREFIXES.items():
        if path.startswith(short):
            return long + path[len(short):]
    return path


def pattern(path):
    """A path as routes.c matches it: D a domain, N N a namespace's names, T T T a topic's, * any segment."""
    text = whole(path).lstrip("/")
    text = text.replace("{domain}/{tenant}/{namespace}/{topic}", "D/T/T/T").replace("{domain}/{tenant}/{namespace}", "D/N/N")
    if text.startswith("admin/v2/namespaces/"):
        text = text.replace("{tenant}/{namespace}", "N/N", 1)
    return re.sub(r"\{\w+\}", "*", text)


def covers(first, second):
    """True if whatever matches the second pattern matches the first."""
    a, b = first.split("/"), second.split("/")
    return len(a) == len(b) and all(x == y or x in "*NT" or (x == "D" and y in ("persistent", "non-persistent")) for x, y in zip(a, b))


def check(group):
    """What is wrong with a group's rows."""
    seen = []
    for row in group["routes"]:
        name = f"{group['group']}: {row.get('method')} {row.get('path')}"
        if extra := set(row) - FIELDS:
            yield f"{name}: unknown members {sorted(extra)}"
        if row.get("method") not in METHODS:
            yield f"{name}: the method is none of {', '.join(METHODS)}"
        if row.get("state") not in ("done", "kept"):
            yield f"{name}: the state is neither done nor kept"
        if not re.fullmatch(r"[a-z]\w*", row.get("handler", "")):
            yield f"{name}: the handler is not a function's name"
        for earlier in seen:
            if earlier["method"] == row["method"] and covers(pattern(earlier["path"]), pattern(row["path"])):
                yield f"{name}: {earlier['path']} stands before it and takes its requests"
        seen.append(row)


def header(found):
    out = ["// rest_routes.h - generated from spec/rest: the routes of each file of src/admin.", "#ifndef GEN_REST_ROUTES_H", "#define GEN_REST_ROUTES_H", ""]
    for name, group in found.items():
        rows = [f'    {{"{r["method"]}", "{pattern(r["path"])}", {r["handler"]}, {r.get("arg", "NULL")}}},' for r in group["routes"]]
        out += [f"#define ADMIN_ROUTES_{name.upper()} \\", *[row + " \\" for row in rows[:-1]], rows[-1], ""]
    return "\n".join(out + ["#endif", ""])


def table(group):
    """A group's rows of docs/admin.md: one for each path."""
    paths = {}
    for row in group["routes"]:
        paths.setdefault(row["path"], []).append(row)
    for path, rows in paths.items():
        states = sorted({row["state"] for row in rows})
        notes = list(dict.fromkeys(row["note"] for row in rows if row.get("note")))
        shown = path.replace("{topic}", "TOPIC", 1) if path.startswith("{topic}") else path.replace("{namespace}", "NS", 1) if path.startswith("{namespace}") else path
        yield f"| `{shown}` | {' '.join(row['method'] for row in rows)} | {'; '.join([' '.join(states), *notes])} |"


def page(text, found):
    """docs/admin.md with its tables made anew."""
    def fill(match):
        rows = [line for name in match.group(2).split() for line in table(found[name])]
        return match.group(1) + "\n".join(["| route | methods | state |", "|---|---|---|", *rows]) + "\n" + match.group(4)
    return MARK.sub(fill, text)


def main():
    found = groups()
    wrong = [line for group in found.values() for line in check(group)]
    tablegen.run(__doc__, wrong, PAGE, lambda text: page(text, found), "rest_routes.h", lambda spec: header(groups(spec)))


if __name__ == "__main__":
    main()
