#!/usr/bin/env python3
"""Functions stay short: median <= 16 lines, nine in ten <= 50, none over 100 (tests are not counted)."""
import subprocess, sys
import tree


def lengths():
    paths = [str(tree.SRC / p) for p in tree.files(".c", ".h") if not p.stem.endswith(("_test", "_fuzz"))]
    out = subprocess.run(["ctags", "-f", "-", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f", "--fields=+ne", "-L", "-"],
                         input="\n".join(paths), capture_output=True, text=True, check=True).stdout
    for row in out.splitlines():
        name, path, *rest = row.split("\t")
        fields = dict(field.split(":", 1) for field in rest if ":" in field)
        if "line" in fields and "end" in fields:
            yield int(fields["end"]) - int(fields["line"]) + 1, name, path


def main():
    rows = sorted(lengths(), reverse=True)
    if not rows:
        sys.exit("no function found")
    sizes = sorted(size for size, _, _ in rows)
    median, nine = sizes[len(sizes) // 2], sizes[int(len(sizes) * 0.9)]
    print(f"{len(sizes)} functions, median {median}, nine in ten up to {nine}, longest {sizes[-1]}")
    findings = [f"{path}: {name} has {size} lines" for size, name, path in rows if size > 100]
    if median > 16:
        findings.append(f"the median function has {median} lines")
    if nine > 50:
        findings.append(f"nine in ten functions have up to {nine} lines")
    tree.report(findings, "median <= 16 lines, nine in ten <= 50, none over 100")


main()
