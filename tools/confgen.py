#!/usr/bin/env python3
"""Turns spec/config.json into code and documents.

usage: confgen.py spec/config.json OUT-FOLDER   config_keys.h and config_keys.c: a struct with a member for each key, a table of the keys
       confgen.py --docs                        docs/configuration.md: the tables between its marks
       confgen.py --conf FILE                   oxbowd.conf with every key in a comment, with its help and default
       confgen.py --man FILE                    oxbowd.conf(5)
"""
import json
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SPEC, PULSAR, PAGE = TOP / "spec/config.json", TOP / "spec/pulsar_keys.json", TOP / "docs/configuration.md"
MARK = re.compile(r"(<!-- keys: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)
FIELDS = {"name", "type", "default", "min", "max", "unit", "help", "values", "live", "own", "pulsar"}
C_TYPES = {"string": "char *", "bool": "bool ", "int": "int64_t ", "float": "double ", "enum": "int "}
# How a key's name ends, and the unit that it promises; the first that fits counts.
UNITS = (("RateMBPerSecond", "MiB/s"), ("BytesPerSecond", "bytes/s"), ("OpsPerSecond", "entries/s"), ("InSeconds", "s"), ("InSecs", "s"), ("Seconds", "s"), ("Second", "s"),
         ("InMinutes", "min"), ("Minutes", "min"), ("InMillis", "ms"), ("Millis", "ms"), ("Ms", "ms"), ("Hours", "h"), ("Days", "d"), ("InMB", "MiB"), ("MB", "MiB"),
         ("Mbytes", "MiB"), ("InMsg", "messages/s"), ("InMessages", "messages/s"), ("MessageRate", "messages/s"), ("TopicInByte", "bytes/s"), ("SubscriptionInByte", "bytes/s"),
         ("TopicInBytes", "bytes/s"), ("ByteRate", "bytes/s"), ("Bytes", "bytes"), ("MessageSize", "bytes"))


def wrong_range(key):
    if key["type"] not in ("int", "float"):
        return None if not {"min", "max", "unit"} & set(key) else "a range or a unit, but it is no number"
    if "min" not in key or "max" not in key:
        return "a number without min and max"
    return None if key["min"] <= key["default"] <= key["max"] else "the default is outside the range"


def wrong_unit(key):
    promised = next((unit for end, unit in UNITS if key["name"].endswith(end)), None) if key["type"] in ("int", "float") else None
    return f"its name promises the unit {promised}" if promised and key.get("unit") != promised else None


def wrong(key):
    """What is wrong with a key, or None."""
    missing = {"name", "type", "default", "help"} - set(key)
    if missing:
        return f"without {', '.join(sorted(missing))}"
    if not re.fullmatch(r"[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)?", key["name"]):
        return "not a key's name (letters and digits, at most one dot)"
    if set(key) - FIELDS:
        return f"unknown fields {sorted(set(key) - FIELDS)}"
    if key["type"] not in C_TYPES:
        return f"unknown type {key['type']}"
    if key["type"] == "enum" and key["default"] not in key.get("values", ()):
        return "the default is not one of the values"
    if not key["help"].strip() or key["help"].endswith("."):
        return "help is a phrase without a full stop"
    return wrong_range(key) or wrong_unit(key)


def quote(text):
    return json.dumps(text)


def default_text(key):
    value = key["default"]
    return str(value).lower() if isinstance(value, bool) else str(value)


def member(key):
    """The member's name: a dot in a key's name is an underscore in C."""
    return key["name"].replace(".", "_")


def enum_name(key):
    return "ox_config_" + "".join("_" + c.lower() if c.isupper() else c for c in member(key))


def constant(key, value):
    return (enum_name(key) + "_" + value).upper().replace("-", "_")


# ---- code

def header(keys, pulsar):
    out = ["// config_keys.h - generated from spec/config.json.", "#ifndef GEN_CONFIG_KEYS_H", "#define GEN_CONFIG_KEYS_H", "",
           "#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>", ""]
    for key in keys:
        if key["type"] == "enum":
            out += [f"enum {enum_name(key)} {{ " + ", ".join(constant(key, v) for v in key["values"]) + " };"]
    out += ["", "// The settings; strings are owned.", "struct ox_config {"]
    for key in keys:
        unit = f" ({key['unit']})" if "unit" in key else ""
        out.append(f"    {C_TYPES[key['type']]}{member(key)}; // {key['help']}{unit}")
    out += ["};", "", "enum ox_config_type { OX_CONFIG_STRING, OX_CONFIG_BOOL, OX_CONFIG_INT, OX_CONFIG_FLOAT, OX_CONFIG_ENUM };",
            "// One key.", "struct ox_config_key {", "    const char *name;", "    enum ox_config_type type;", "    size_t offset;",
            "    const char *default_text;", "    int64_t min, max;", "    const char *unit;", "    const char *help;",
            "    const char *const *values; // of an enum, NULL-terminated", "    bool live; // may change while the broker runs", "};",
            f"#define OX_CONFIG_KEY_COUNT {len(keys)}", "extern const struct ox_config_key ox_config_keys[OX_CONFIG_KEY_COUNT];",
            "// Names of Pulsar's keys that are not among them, sorted bytewise.",
            f"#define OX_CONFIG_PULSAR_COUNT {len(pulsar)}", "extern const char *const ox_config_pulsar[OX_CONFIG_PULSAR_COUNT];", "", "#endif", ""]
    return "\n".join(out)


def body(keys, pulsar):
    out = ["// config_keys.c - generated from spec/config.json.", '#include "gen/config_keys.h"', ""]
    for key in keys:
        if key["type"] == "enum":
            out.append(f"static const char *const values_{member(key)}[] = {{{', '.join(map(quote, key['values']))}, NULL}};")
    out += ["", "const struct ox_config_key ox_config_keys[OX_CONFIG_KEY_COUNT] = {"]
    for key in keys:
        values = f"values_{member(key)}" if key["type"] == "enum" else "NULL"
        out.append(f"    {{{quote(key['name'])}, OX_CONFIG_{key['type'].upper()}, offsetof(struct ox_config, {member(key)}), "
                   f"{quote(default_text(key))}, {key.get('min', 0)}, {key.get('max', 0)}, {quote(key.get('unit', ''))}, "
                   f"{quote(key['help'])}, {values}, {'true' if key.get('live') else 'false'}}},")
    out += ["};", "", "const char *const ox_config_pulsar[OX_CONFIG_PULSAR_COUNT] = {"]
    out += [f"    {quote(name)}," for name in pulsar] + ["};", ""]
    return "\n".join(out)


# ---- documents

def allowed(key):
    """What a key may be, in words."""
    unit = f" {key['unit']}" if "unit" in key else ""
    if key["type"] == "enum":
        return ", ".join(key["values"])
    return {"bool": "true, false", "string": "text"}.get(key["type"]) or f"{key['min']} to {key['max']}{unit}"


def sections(spec):
    """(title, keys) in order."""
    out = []
    for key in spec["keys"]:
        if key["name"] in spec["sections"]:
            out.append((spec["sections"][key["name"]], []))
        out[-1][1].append(key)
    return out


def table_all(spec):
    for title, keys in sections(spec):
        yield f"### {title}\n\n| key | default | allowed | live | what it does |\n|---|---|---|---|---|\n"
        for key in keys:
            name = f"`{key['name']}`" + (" *" if key.get("own") else "")
            default = f"`{default_text(key)}`" if default_text(key) else "empty"
            yield f"| {name} | {default} | {allowed(key)} | {'yes' if key.get('live') else ''} | {key['help'].replace('|', chr(92) + '|')} |\n"
        yield "\n"


def table_different(spec):
    yield "| key | default here | Pulsar's default |\n|---|---|---|\n"
    for key in spec["keys"]:
        if "pulsar" in key:
            yield f"| `{key['name']}` | {('`' + default_text(key) + '`') if default_text(key) else 'empty'} | {key['pulsar']} |\n"


def page(text, spec):
    tables = {"all": table_all, "different": table_different}
    return MARK.sub(lambda m: m.group(1) + "".join(tables[m.group(2)](spec)) + m.group(4), text)


def wrap(text, start):
    """Lines of a comment, no wider than 110 columns."""
    line = start
    for word in text.split():
        if len(line) + len(word) > 109 and line != start:
            yield line.rstrip()
            line = start
        line += word + " "
    yield line.rstrip()


def conf(spec):
    yield ("# oxbowd.conf - settings of the broker oxbowd: lines KEY=VALUE. Each key stands here in a comment, with its default.\n"
           "# Take the '#' away from a line to change it; an empty value is the default. \"live\" keys may change while the broker\n"
           "# runs (SIGHUP, 'systemctl reload oxbowd'); the others need a restart. oxbowd --config THIS --check-config looks at all.\n")
    for title, keys in sections(spec):
        yield f"\n# ---- {title}\n"
        for key in keys:
            live = "; live" if key.get("live") else ""
            yield "\n" + "\n".join(wrap(f"{key['help']} [{allowed(key)}{live}]", "# ")) + f"\n#{key['name']}={default_text(key)}\n"


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def man(spec):
    yield (".\\\" generated from spec/config.json by tools/confgen.py\n.TH OXBOWD.CONF 5 \"\" Oxbow \"Oxbow settings\"\n.SH NAME\noxbowd.conf \\- settings of the broker oxbowd\n"
           ".SH DESCRIPTION\nLines of\n.IR KEY = VALUE ,\nas in Pulsar\\(aqs broker.conf; lines that begin with\n.B #\nare comments. An empty value is the default. "
           "A key that is not below, or a value out of its range, is refused with its line and the nearest known key, and the broker does not start.\n.PP\n"
           "Stronger than the file is the environment\n.RB ( OXBOW_KEY ,\nupper or lower case, with or without underscores), then\n.BR \\-\\-set ,\n"
           "then, for keys that are live, what has been set over REST\n.RI ( \"pulsar\\-admin brokers update\\-dynamic\\-config\" ).\n.PP\n"
           "Keys marked\n.I live\nfollow SIGHUP; a change of another one is named in the log and waits for a restart.\n")
    for title, keys in sections(spec):
        yield f".SH {roff(title).upper()}\n"
        for key in keys:
            live = " Live." if key.get("live") else ""
            default = default_text(key) or "(empty)"
            yield f".TP\n.B {roff(key['name'])}\n{roff(key['help'])}. Allowed: {roff(allowed(key))}. Default: {roff(default)}.{live}\n"
    yield ".SH SEE ALSO\n.BR oxbowd (8),\n.BR oxbowctl (1)\n"


# ---- the program

def load():
    spec = json.loads(SPEC.read_text())
    ours = {key.get("name") for key in spec["keys"]}
    return spec, [name for name in json.loads(PULSAR.read_text())["names"] if name not in ours]


def findings(spec, pulsar):
    """Everything that is wrong with the two files."""
    out = [f"{key.get('name', '?')}: {why}" for key in spec["keys"] if (why := wrong(key))]
    names = [member(key) for key in spec["keys"]]
    out += [f"{name}: stands twice" for name in sorted({n for n in names if names.count(n) > 1})]
    out += [f"sections: no key {name}" for name in spec["sections"] if name not in {key["name"] for key in spec["keys"]}]
    out += ["spec/pulsar_keys.json: not sorted"] if pulsar != sorted(set(pulsar)) else []
    return out if spec["keys"][0]["name"] in spec["sections"] else out + ["sections: the first key begins none"]


def main():
    spec, pulsar = load()
    bad = findings(spec, pulsar)
    if bad:
        sys.exit("\n".join(bad))
    if sys.argv[1] == "--docs":
        PAGE.write_text(page(PAGE.read_text(), spec))
    elif sys.argv[1] in ("--conf", "--man"):
        out = Path(sys.argv[2])
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join((conf if sys.argv[1] == "--conf" else man)(spec)))
    else:
        out = Path(sys.argv[2])
        (out / "config_keys.h").write_text(header(spec["keys"], pulsar))
        (out / "config_keys.c").write_text(body(spec["keys"], pulsar))


if __name__ == "__main__":
    main()
