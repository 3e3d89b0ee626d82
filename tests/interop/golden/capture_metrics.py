#!/usr/bin/env python3
"""Records which families a real Pulsar serves under /metrics, with their types and labels: metrics_pulsar.json. Names only, no values.

usage: capture_metrics.py DEFAULT-PAGE ALL-PAGE NAMESPACE-PAGE

The pages are those of standalones 4.0.7 with topics of every kind, a producer each, consumers of every type, a reader, a delayed message and a compaction,
a minute after they were made: with the default settings; with exposeConsumerLevelMetricsInPrometheus, exposeProducerLevelMetricsInPrometheus,
exposeManagedCursorMetricsInPrometheus and splitTopicAndPartitionLabelInPrometheus on; with exposeTopicLevelMetricsInPrometheus off.
"""
import json
import pathlib
import re
import sys

OUT = pathlib.Path(__file__).with_name("metrics_pulsar.json")
LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+")
LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')


def families(path):
    """{family: {"type", "labels": list of label lists}}; the parts of summaries and histograms belong to their family."""
    types, found = {}, {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            types[name] = kind
        elif line and not line.startswith("#") and (match := LINE.fullmatch(line)) and not match.group(1).endswith("_created"):
            name, labels = match.group(1), [label for label in LABEL.findall(match.group(2) or "")]
            base = re.sub(r"_(count|sum|bucket)$", "", name)
            if base != name and types.get(base) in ("summary", "histogram"):
                name, labels = base, [label for label in labels if label != "le"]
                if types[base] == "summary":
                    labels.append("quantile")
            kind = types.get(name) or types.get(name.removesuffix("_total"), "untyped")
            rows = found.setdefault(name, {"type": kind, "labels": []})["labels"]
            if labels not in rows:
                rows.append(labels)
    return found


def main():
    pages = {kind: families(path) for kind, path in zip(("default", "all", "namespace"), sys.argv[1:], strict=True)}
    text = ",\n".join(f"  {json.dumps(kind)}: {{\n" + ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items())) + "\n  }"
                      for kind, rows in pages.items())
    OUT.write_text("{\n" + text + "\n}\n")


main()
