#!/usr/bin/env python3
"""Each configuration key is whole (type, range, unit, help, default), does something, and stands in docs/configuration.md."""
import re
import sys
import tree

sys.path.insert(0, str(tree.TOP / "tools"))
import confgen


def unused(keys):
    """Names that a program sees (struct ox_config) and nobody reads. That nothing else is read, the compiler sees to."""
    code = "".join(tree.code(path) for path in tree.files(".c") if str(path).startswith("oxbowd/") and not tree.is_test(path))
    for key in keys:
        if not re.search(rf"(?:->|\.){re.escape(confgen.member(key))}\b", code):
            yield f"spec/config.json: nobody reads {key['name']}"


def main():
    spec, pulsar = confgen.load()
    findings = confgen.findings(spec, pulsar) + list(unused(spec["keys"]))
    text = confgen.PAGE.read_text()
    if {match.group(2) for match in confgen.MARK.finditer(text)} != {"all", "different"}:
        findings.append("docs/configuration.md: a table of keys is missing")
    if confgen.page(text, spec) != text:
        findings.append("docs/configuration.md is not what tools/confgen.py --docs makes: run it")
    tree.report(findings, "a key that is not whole, or does nothing, lies to whoever sets it")


main()
