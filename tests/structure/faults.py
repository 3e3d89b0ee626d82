#!/usr/bin/env python3
"""Every row of the fault tables (spec/faults.json) has a test that is marked with it, or a reason why there is none; and their page says so."""
import sys
import tree

sys.path.insert(0, str(tree.TOP / "tools"))
import faults


def wrong_marks(rows, marks):
    for path, line, row, function in marks:
        if row not in rows:
            yield f"{path}:{line}: {row} is no row of spec/faults.json"
        if not function:
            yield f"{path}:{line}: the mark of {row} stands above no function"


def wrong_rows(rows, marked):
    for name, row in rows.items():
        if name not in marked and not row.get("reason"):
            yield f"spec/faults.json: {name} has neither a test that is marked with it nor a reason"
        if name in marked and row.get("reason"):
            yield f"spec/faults.json: {name} has a test: its reason is out of date (what is not covered yet is told by 'later')"


def main():
    rows = {row["id"]: row for table in faults.tables() for row in table["rows"]}
    marks = list(faults.marks())
    findings = [*wrong_marks(rows, marks), *wrong_rows(rows, {row for _, _, row, _ in marks})]
    if not faults.PAGE.exists() or faults.PAGE.read_text() != faults.page():
        findings.append("docs/design/faults.md is not what tools/faults.py makes: run it")
    tree.report(findings, "each fault that can happen today is injected by a test that is marked with its row")


main()
