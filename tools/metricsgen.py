#!/usr/bin/env python3
"""Turns spec/metrics.json, the table of what /metrics serves, into C and into the tables of docs/metrics.md.

metricsgen.py spec/metrics.json OUT-FOLDER   writes metric_columns.h: an enum of columns and their rows (struct ox_metric_column) for each level
metricsgen.py --docs                         writes the tables in docs/metrics.md

A family has: name; level (whose figures they are: broker, namespace, topic, subscription, consumer, producer, log; or registry: counted where it happens, the code names it);
type; help (a sentence); labels (beside those of its level); series (one label with the values that it takes: a column for each); sum (true: without topic-level series its sum is
a namespace's); sum_labels (labels it has only then, with their values); when (it is not always there: why).
`absent` are Pulsar's families that are not served: name (a * at its end: all that begin so) and why.
"""
import json
import pathlib
import re

import tablegen

TOP = pathlib.Path(__file__).resolve().parents[1]
SPEC, PAGE = TOP / "spec" / "metrics.json", TOP / "docs" / "metrics.md"
LABELS = {"broker": ["cluster"], "namespace": ["cluster", "namespace"], "topic": ["cluster", "namespace", "topic"], "subscription": ["cluster", "namespace", "topic", "subscription"],
          "consumer": ["cluster", "namespace", "topic", "subscription", "consumer_name", "consumer_id"],
          "producer": ["cluster", "namespace", "topic", "producer_name", "producer_id"], "log": ["cluster", "namespace"], "registry": []}
FIELDS = {"name", "level", "type", "help", "labels", "series", "sum", "sum_labels", "when"}
TYPES = ("counter", "gauge", "summary")
MARK = re.compile(r"(<!-- metrics: (\w+) -->\n)(.*?)(<!-- end of metrics -->)", re.S)


def spec(path=SPEC):
    return json.loads(path.read_text())


def is_pulsars(name):
    """True for names that Pulsar has: they carry the cluster."""
    return name.startswith(("pulsar_", "topic_", "process_"))


def labels(family):
    """All labels of a family's lines where topic-level series are on."""
    own = [*family.get("labels", []), *family.get("series", {})]
    base = LABELS[family["level"]] or (["cluster"] if is_pulsars(family["name"]) else [])
    return [*base, *own]


def wrong(family):
    """What is wrong with a family, or None."""
    if extra := set(family) - FIELDS:
        return f"unknown members {sorted(extra)}"
    if missing := {"name", "level", "type", "help"} - set(family):
        return f"without {sorted(missing)}"
    if family["level"] not in LABELS or family["type"] not in TYPES:
        return "the level or the type is unknown"
    if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", family["name"]):
        return "not a name of Prometheus"
    if family["type"] == "counter" and family["level"] != "registry" and not re.search(r"_(total|times|total_msg_expired)$", family["name"]):
        return "a counter's name ends with _total"
    if not family["help"].strip() or "\n" in family["help"] or "\\" in family["help"]:
        return "help is one plain line"
    return None


def check(whole):
    seen = set()
    for family in whole["families"]:
        if why := wrong(family):
            yield f"{family.get('name')}: {why}"
        if family["name"] in seen:
            yield f"{family['name']}: it is there twice"
        seen.add(family["name"])
    for row in whole["absent"]:
        pattern = row["name"]
        if set(row) != {"name", "why"} or not row["why"].strip():
            yield f"{pattern}: an absent family has a name and a reason"
        if any(covers(pattern, name) for name in seen):
            yield f"{pattern}: it is served and absent"


def covers(pattern, name):
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def c_text(text):
    return json.dumps(text, ensure_ascii=False)


def columns(family):
    """The columns of a family: their names in C, and (head, extra, summed)."""
    head = f"# HELP {family['name']} {family['help']}\n# TYPE {family['name']} {family['type']}\n"
    base = "OX_GAUGE_" + re.sub(r"^pulsar_", "", family["name"]).upper()
    extras = [f'{name}="{value}"' for name, values in family.get("series", {}).items() for value in values] or [""]
    summed = ",".join(f'{name}="{value}"' for name, value in family.get("sum_labels", {}).items())
    for i, extra in enumerate(extras):
        own = re.sub(r"\W", "_", extra.split('"')[1]).upper() if extra else ""
        yield "_".join(filter(None, [base, own])), c_text(head) if i == 0 else "NULL", extra, (extra or summed) if family.get("sum") else None


def header(whole):
    out = ["// metric_columns.h - generated from spec/metrics.json: the columns of each level's table.", "#ifndef GEN_METRIC_COLUMNS_H", "#define GEN_METRIC_COLUMNS_H", ""]
    for level in LABELS:
        rows = [(name, family["name"], *rest) for family in whole["families"] if family["level"] == level for name, *rest in columns(family)]
        if level == "registry":
            continue
        out += [f"enum ox_gauge_{level} {{", *[f"    {row[0]}," for row in rows], f"    OX_GAUGES_OF_{level.upper()}", "};", f"#define OX_GAUGE_COLUMNS_{level.upper()} \\"]
        lines = [f"    {{{head}, {c_text(name)}, {c_text(extra)}, {'NULL' if summed is None else c_text(summed)}}}," for _, name, head, extra, summed in rows]
        out += [*[line + " \\" for line in lines[:-1]], lines[-1], ""]
    return "\n".join([*out, "#endif", ""])


def table(whole, level):
    if level == "absent":
        yield from ("| family | why not |", "|---|---|")
        yield from (f"| `{row['name']}` | {row['why']} |" for row in whole["absent"])
        return
    yield from ("| family | type | labels | meaning |", "|---|---|---|---|")
    for family in whole["families"]:
        if level == ("own" if not is_pulsars(family["name"]) else family["level"]):
            note = f" *({family['when']})*" if "when" in family else ""
            mark = " Σ" if family.get("sum") else ""
            yield f"| `{family['name']}`{mark} | {family['type']} | {', '.join(labels(family)) or '-'} | {family['help']}{note} |"


def page(text, whole):
    """docs/metrics.md with its tables made anew."""
    return MARK.sub(lambda m: m.group(1) + "\n".join(table(whole, m.group(2))) + "\n" + m.group(4), text)


def main():
    whole = spec()
    tablegen.run(__doc__, list(check(whole)), PAGE, lambda text: page(text, whole), "metric_columns.h", lambda path: header(spec(path)))


if __name__ == "__main__":
    main()
