#!/usr/bin/env python3
"""Every file says in its first line what it is; every prototype of a header has its comment above: its own, or one that it
shares with the struct or the prototypes next to it."""
import re
import tree

PROTOTYPE = re.compile(r"^(?!typedef|return|#|//)[A-Za-z_][\w \t*()]*?\b(ox_\w+)\s*\(")
FIRST = {".c": "//", ".h": "//", ".def": "//"}


def prototypes(lines):
    """Line numbers (from 0) and names of functions declared or defined at file scope."""
    depth = macro = 0
    for number, line in enumerate(lines):
        bare = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
        in_macro, macro = macro or bare.lstrip().startswith("#"), line.endswith("\\")
        if in_macro:
            continue
        match = PROTOTYPE.match(bare) if depth == 0 else None
        if match:
            yield number, match.group(1)
        depth += bare.count("{") - bare.count("}")


def begins_at(lines, number):
    """The line where the declaration that ends at `number` begins: the first line of a struct, a function or a wrapped prototype."""
    depth = 0
    while number > 0:
        bare = re.sub(r"//.*", "", lines[number])
        depth += bare.count("}") + bare.count(")") - bare.count("{") - bare.count("(")
        if depth <= 0:
            break
        number -= 1
    return number - 1 if lines[number] == "{" else number


def documented(lines, number):
    """True if a comment stands directly above, or above the struct or prototypes that stand directly above: they share it."""
    while number > 0:
        above = lines[number - 1]
        if above.lstrip().startswith(("//", "*")):
            return True
        if not above.rstrip().split("//")[0].rstrip().endswith((";", "}")):
            return False
        number = begins_at(lines, number - 1)
    return False


def main():
    findings = []
    for path in tree.files(".c", ".h", ".def"):
        lines = tree.text(path).split("\n")
        if not lines[0].startswith(f"// {path.name} - "):
            findings.append(f'src/{path}:1: the first line should be "// {path.name} - what it is"')
        if path.suffix != ".h":
            continue
        for number, name in prototypes(lines):
            if not documented(lines, number):
                findings.append(f"src/{path}:{number + 1}: {name} has no comment above")
    tree.report(findings, "the header is the manual: pointers, units, errors, completion, above each prototype")


main()
