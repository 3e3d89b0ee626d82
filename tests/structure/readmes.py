#!/usr/bin/env python3
"""Every folder below src/ that holds files has a README.md of 10 to 40 lines."""
import tree


def main():
    findings = []
    for folder in sorted({p.parent for p in tree.files(".c", ".h")}):
        readme = tree.SRC / folder / "README.md"
        if not readme.exists():
            findings.append(f"src/{folder}: no README.md")
            continue
        lines = len(readme.read_text().splitlines())
        if not 10 <= lines <= 40:
            findings.append(f"src/{folder}/README.md: {lines} lines")
    tree.report(findings, "purpose, public headers, numbered rules, files in reading order, what is not here; 10 to 40 lines")


main()
