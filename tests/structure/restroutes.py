#!/usr/bin/env python3
"""The table of REST routes (spec/rest) is sound, each group is a file of src/admin that uses it, and docs/admin.md shows it."""
import sys
import tree

sys.path.insert(0, str(tree.TOP / "tools"))
import restgen


def wrong_files(found):
    routes = (tree.TOP / "src" / "admin" / "routes.c").read_text()
    for name, group in found.items():
        source = tree.TOP / "src" / "admin" / group["file"]
        if not source.exists() or f"ADMIN_ROUTES_{name.upper()}" not in source.read_text():
            yield f"spec/rest/{name}.json: src/admin/{group['file']} has no table ADMIN_ROUTES_{name.upper()}"
        if f"&admin_{name}," not in routes:
            yield f"spec/rest/{name}.json: src/admin/routes.c does not look through admin_{name}"


def wrong_page(found):
    text = restgen.PAGE.read_text()
    shown = {name for match in restgen.MARK.finditer(text) for name in match.group(2).split()}
    for name in sorted(set(found) - shown):
        yield f"docs/admin.md: the routes of {name} have no table"
    if restgen.page(text, found) != text:
        yield "docs/admin.md is not what tools/restgen.py --docs makes: run it"


def main():
    found = restgen.groups()
    findings = [line for group in found.values() for line in restgen.check(group)]
    tree.report([*findings, *wrong_files(found), *wrong_page(found)], "each REST route has a row, a handler and a line in docs/admin.md")


main()
