#!/usr/bin/env python3
"""What the documents point at exists: links, paths below src/ and the like, and "file: function" pairs."""
import os, re
import tree

LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
PATH = re.compile(r"`((?:src|tests|spec|docs|scripts|cmake|tools)/[\w./-]*\w)`")
PAIR = re.compile(r"`([\w/]+\.[ch]): (\w+)`")
SKIPPED = {".git", "build", "data"}


def documents():
    for folder, names, files in os.walk(tree.TOP):
        names[:] = [n for n in names if n not in SKIPPED]
        for name in sorted(files):
            if name.endswith(".md"):
                yield tree.pathlib.Path(folder, name)


def wrong(document, content):
    for match in LINK.finditer(content):
        if not (document.parent / match.group(1)).exists():
            yield match, f"no such file: {match.group(1)}"
    for match in (m for m in PATH.finditer(content) if "NNNN" not in m.group()):
        if not (tree.TOP / match.group(1)).exists():
            yield match, f"no such path: {match.group(1)}"
    for match in PAIR.finditer(content):
        path = tree.SRC / match.group(1)
        if not path.exists() or not re.search(rf"\b{match.group(2)}\(", path.read_text()):
            yield match, f"no {match.group(2)}() in src/{match.group(1)}"


def main():
    findings = []
    for document in documents():
        content = document.read_text()
        findings += [f"{document.relative_to(tree.TOP)}:{tree.line_of(content, m.start())}: {why}" for m, why in wrong(document, content)]
    tree.report(findings, "a document that points at what is gone misleads")


main()
