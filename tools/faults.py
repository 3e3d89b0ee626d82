#!/usr/bin/env python3
"""Makes docs/design/faults.md: each row of spec/faults.json with the tests that are marked with it.

tools/faults.py            writes docs/design/faults.md
tools/faults.py --print    prints it instead

A mark is a comment above the test, `// fault: A3 E2` in C and `# fault: A3 E2` in Python; between it and the function nothing but comments and decorators
may stand. Functions of tests/sim count as tests: random histories go through them.
"""
import json, pathlib, re, sys

TOP = pathlib.Path(__file__).resolve().parents[1]
TABLE, PAGE = TOP / "spec" / "faults.json", TOP / "docs" / "design" / "faults.md"
MARK = re.compile(r"[ \t]*(?://|#) fault: ([A-Z0-9 ]+)$")
FUNCTION = re.compile(r"[ \t]*(?:def |(?:[a-z]\w*[ *]+)+)(\w+)\(")
BETWEEN = re.compile(r"[ \t]*(?://|#|@)")
HEAD = """# Fault tables

Made by `tools/faults.py` from `spec/faults.json` and the marks above tests (`fault: A3 E2`): what is broken on purpose, what must come of it, and
the test that holds it, or why none can today. Paths below `src/` are shortened by it.
"""


def tables():
    return json.loads(TABLE.read_text())["tables"]


def sources():
    """The files in which marks may stand."""
    yield from sorted((TOP / "src").rglob("*_test.c"))
    for folder, pattern in (("interop", "*.py"), ("sim", "*.c")):
        yield from sorted((TOP / "tests" / folder).glob(pattern))


def marked_function(lines):
    """The name of the function that begins behind a mark, or None."""
    for line in lines:
        if match := FUNCTION.match(line):
            return match.group(1)
        if not BETWEEN.match(line):
            return None
    return None


def marks():
    """(path from the top, line, row, function or None) of each mark, in reading order."""
    for path in sources():
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if match := MARK.match(line):
                function = marked_function(lines[number + 1:])
                for row in match.group(1).split():
                    yield path.relative_to(TOP), number + 1, row, function


def test_text(path, function):
    if path.parts[0] == "src":
        return f"`{path.relative_to('src')}: {function}`"
    return f"`{path}`: `{function}`"


def row_text(row, tests):
    last = "<br>".join(tests) if tests else f"*not yet:* {row.get('reason', '')}"
    if "later" in row:
        last += f"<br>*not yet:* {row['later']}"
    return f"| {row['id']} | {row['fault']} | {row['expected']} | {last} |\n"


def page():
    tests = {}
    for path, _, row, function in marks():
        tests.setdefault(row, []).append(test_text(path, function))
    out = [HEAD]
    for table in tables():
        out.append(f"\n## {table['id']}. {table['title']}\n\n| row | fault | what must come of it | test |\n|---|---|---|---|\n")
        out.extend(row_text(row, tests.get(row["id"], [])) for row in table["rows"])
    return "".join(out)


def main():
    if "--print" in sys.argv:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page())


if __name__ == "__main__":
    main()
