#!/usr/bin/env python3
"""Each configuration key does something: its value is read somewhere in the program."""
import json
import re
import tree


def main():
    keys = [key["name"] for key in json.loads((tree.TOP / "spec/config.json").read_text())["keys"]]
    code = "".join(tree.code(path) for path in tree.files(".c") if str(path).startswith("oxbowd/") and not tree.is_test(path))
    findings = [f"spec/config.json: nobody reads {name}" for name in keys
                if not re.search(rf"(?:->|\.){re.escape(name.replace('.', '_'))}\b", code)]
    tree.report(findings, "a key that does nothing lies to whoever sets it")


main()
