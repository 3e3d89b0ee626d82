#!/usr/bin/env python3
"""Turns spec/config.json into config_keys.h and config_keys.c: a struct with a member for each key and a table of the keys.

usage: confgen.py spec/config.json OUT-FOLDER
"""
import json
import re
import sys
from pathlib import Path

FIELDS = {"name", "type", "default", "min", "max", "unit", "help", "values"}
C_TYPES = {"string": "char *", "bool": "bool ", "int": "int64_t ", "float": "double ", "enum": "int "}


def check(key):
    name = key.get("name", "?")
    if not re.fullmatch(r"[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)?", name):
        sys.exit(f"{name}: not a key's name (letters and digits, at most one dot)")
    extra = set(key) - FIELDS
    if extra:
        sys.exit(f"{name}: unknown fields {sorted(extra)}")
    if key["type"] not in C_TYPES:
        sys.exit(f"{name}: unknown type {key['type']}")
    if key["type"] in ("int", "float") and not key["min"] <= key["default"] <= key["max"]:
        sys.exit(f"{name}: the default is outside the range")
    if key["type"] == "enum" and key["default"] not in key["values"]:
        sys.exit(f"{name}: the default is not one of the values")


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


def header(keys):
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
            "    const char *const *values; // of an enum, NULL-terminated", "};",
            f"#define OX_CONFIG_KEY_COUNT {len(keys)}", "extern const struct ox_config_key ox_config_keys[OX_CONFIG_KEY_COUNT];", "", "#endif", ""]
    return "\n".join(out)


def body(keys):
    out = ["// config_keys.c - generated from spec/config.json.", '#include "gen/config_keys.h"', ""]
    for key in keys:
        if key["type"] == "enum":
            out.append(f"static const char *const values_{member(key)}[] = {{{', '.join(map(quote, key['values']))}, NULL}};")
    out += ["", "const struct ox_config_key ox_config_keys[OX_CONFIG_KEY_COUNT] = {"]
    for key in keys:
        values = f"values_{member(key)}" if key["type"] == "enum" else "NULL"
        out.append(f"    {{{quote(key['name'])}, OX_CONFIG_{key['type'].upper()}, offsetof(struct ox_config, {member(key)}), "
                   f"{quote(default_text(key))}, {key.get('min', 0)}, {key.get('max', 0)}, {quote(key.get('unit', ''))}, "
                   f"{quote(key['help'])}, {values}}},")
    out += ["};", ""]
    return "\n".join(out)


def main():
    keys = json.loads(Path(sys.argv[1]).read_text())["keys"]
    for key in keys:
        check(key)
    names = [member(key) for key in keys]
    if len(set(names)) != len(names):
        sys.exit("a key stands twice")
    out = Path(sys.argv[2])
    (out / "config_keys.h").write_text(header(keys))
    (out / "config_keys.c").write_text(body(keys))


if __name__ == "__main__":
    main()
