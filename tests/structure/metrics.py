#!/usr/bin/env python3
"""The table of metrics (spec/metrics.json) is sound, names what the code registers and nothing else, says of each of Pulsar's families whether it is there, and is what docs/metrics.md shows."""
import json
import re
import sys
import tree

sys.path.insert(0, str(tree.TOP / "tools"))
import metricsgen

NAME = re.compile(r'"((?:oxbow|pulsar|process|topic|bookie_cluster|migration)_[a-z0-9_]+)"')
GOLDEN = tree.TOP / "tests/interop/golden/metrics_pulsar.json"
REGISTERS = re.compile(r"ox_metric_init|METRIC\(|METRICS\(|OX_METRIC_|_gauge\(|data_count\(|ox_summary_init|factory_counter")


def registered():
    """Names of families in the files that register any, each with its file."""
    names = {}
    for path in tree.files(".c", ".h"):
        text = tree.text(path)
        if not tree.is_test(path) and REGISTERS.search(text):
            names.update((name, path) for name in NAME.findall(text))
    return names


def wrong_names(whole):
    spec = {family["name"]: family for family in whole["families"] if family["level"] == "registry"}
    found = registered()
    for name in sorted(set(spec) - set(found)):
        yield f"spec/metrics.json: nothing in src registers {name}"
    for name in sorted(set(found) - set(spec)):
        yield f"src/{found[name]}: {name} is not in spec/metrics.json"


def wrong_pulsar(whole):
    pages = json.loads(GOLDEN.read_text())
    served = {family["name"]: family for family in whole["families"]}
    theirs = {name for page in pages.values() for name in page}
    for name in sorted(theirs - set(served)):
        if not any(metricsgen.covers(row["name"], name) for row in whole["absent"]):
            yield f"spec/metrics.json: Pulsar's {name} is neither served nor absent"
    for row in whole["absent"]:
        if not any(metricsgen.covers(row["name"], name) for name in theirs):
            yield f"spec/metrics.json: Pulsar has no {row['name']}"
    for name in sorted(name for name in served if metricsgen.is_pulsars(name) and name not in theirs):
        yield f"spec/metrics.json: {name} is called like one of Pulsar's, and is none"
    for name in sorted(theirs & set(served)):
        ours = sorted(metricsgen.labels(served[name]))
        for labels in pages["default"].get(name, {"labels": []})["labels"]:
            if sorted(labels) != ours:
                yield f"spec/metrics.json: {name} has the labels {ours}, Pulsar's {sorted(labels)}"


def main():
    whole = metricsgen.spec()
    findings = [*metricsgen.check(whole), *wrong_names(whole), *wrong_pulsar(whole)]
    text = metricsgen.PAGE.read_text()
    if metricsgen.page(text, whole) != text:
        findings.append("docs/metrics.md is not what tools/metricsgen.py --docs makes: run it")
    tree.report(findings, "each family of /metrics stands in spec/metrics.json and in docs/metrics.md, and each of Pulsar's")


main()
