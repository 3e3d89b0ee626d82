#!/usr/bin/env python3
"""Turns spec/commands/*.json, the verbs of oxbowctl, into its table in C, its man page and its completions.

ctlgen.py --check            says what is wrong with the rows
ctlgen.py --docs             writes the tables in docs/oxbowctl.md
ctlgen.py OUT-FOLDER BUILD   writes OUT-FOLDER/ctl_commands.h, BUILD/man/oxbowctl.1 and BUILD/completion/{oxbowctl.bash,_oxbowctl,oxbowctl.fish}

What a row may hold: spec/commands/README.md. The pages are made by tools/ctlpages.py.
"""
import json
import pathlib
import re
import sys

import ctlpages
import restgen

SPEC, PAGE = restgen.TOP / "spec" / "commands", restgen.TOP / "docs" / "oxbowctl.md"
VERB_MEMBERS = {"verb", "aliases", "summary", "help", "example", "route", "args", "options", "fixed", "exactly_one", "at_least_one", "update_of", "answer",
                "good", "done", "patient", "run", "like"}
WORD_MEMBERS = {"name", "names", "type", "value", "to", "required", "optional", "default", "help", "in", "min", "max", "values", "many", "encode"}
NOUN_MEMBERS = {"noun", "aliases", "about", "order", "also", "verbs"}
NAMING = {"topic": {"domain", "tenant", "namespace", "topic"}, "namespace": {"tenant", "namespace"}, "place": {"tenant", "namespace", "topic"}}
UNITS = {"time": ("ms", "s", "min", "h"), "size": ("B", "MB")}
SHOWN = {"int": "N", "number": "NUMBER", "bool": "true|false", "list": "A,B", "map": "NAME=VALUE", "time": "TIME", "ago": "TIME", "size": "SIZE", "id": "ID", "json": "JSON",
         "file": "FILE", "text": "TEXT"}
TYPES = {"flag", "enum", *SHOWN, *NAMING}
GLOBAL = [
    {"names": ["--url", "--admin-url"], "value": "URL", "help": "the broker's REST door; without it OXBOWCTL_URL of the environment, else http://127.0.0.1:8080"},
    {"names": ["--service-url"], "value": "URL", "help": "its door for clients (default pulsar://127.0.0.1:6650)"},
    {"names": ["-o", "--output"], "value": "FORMAT", "values": ["table", "json"], "help": "table (default) for people, json for programs"},
    {"names": ["--request-timeout"], "value": "SECONDS", "help": "how long to wait for an answer (default 60)"},
    {"names": ["--print-request"], "help": "show what would be asked, and ask nothing"},
    {"names": ["-h", "--help"], "help": "show help and end"},
    {"names": ["--version"], "help": "show the version and end"},
]


def listed(value):
    return value if isinstance(value, list) else [] if value is None else [value]


# ---- reading ------------------------------------------------------------------------------------------------------------


def word(item, common, positional):
    """One argument or option with what it takes from common.json."""
    use = item if isinstance(item, str) else item.get("use")
    own = {} if isinstance(item, str) else {name: value for name, value in item.items() if name != "use"}
    if use and use not in common:
        raise SystemExit(f"spec/commands: '{use}' is not in common.json")
    made = {**({"name": use} if use and positional else {}), **(common[use] if use else {}), **own, "positional": positional}
    if made.get("type") == "enum":
        made.setdefault("value", "|".join(made.get("values", [])))
    made.setdefault("value", made.get("name") or SHOWN.get(made.get("type"), ""))
    return made


def resolved(row, noun, rows):
    """A row with what it is like."""
    if "like" not in row:
        return row
    if row["like"] not in rows:
        raise SystemExit(f"spec/commands/{noun}.json: {row.get('verb')} is like '{row['like']}', which is no verb")
    other = resolved(rows[row["like"]], noun, rows)
    made = {**{name: value for name, value in other.items() if name not in ("aliases", "like")}, **{name: value for name, value in row.items() if name != "like"}}
    if "example" not in row:
        made["example"] = other.get("example", "").replace(f"oxbowctl {row['like']}", f"oxbowctl {noun} {row['verb']}", 1)
    return made


def nouns(folder=SPEC):
    """The nouns in the order of the overview, each verb with its words whole."""
    common = json.loads((folder / "common.json").read_text())
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json")) if path.name != "common.json"]
    rows = {f"{noun['noun']} {row['verb']}": row for noun in found for row in noun["verbs"]}
    for noun in found:
        noun["verbs"] = [dict(resolved(row, noun["noun"], rows)) for row in noun["verbs"]]
        for row in noun["verbs"]:
            row["words"] = [word(item, common["args"], True) for item in row.get("args", [])] + [word(item, common["options"], False) for item in row.get("options", [])]
            row["routes"] = listed(row.get("route"))
    return sorted(found, key=lambda noun: (noun.get("order", 500), noun["noun"]))


# ---- checking -----------------------------------------------------------------------------------------------------------


def wrong_word(item):
    if extra := set(item) - WORD_MEMBERS - {"positional"}:
        yield f"unknown members {sorted(extra)}"
    if item.get("type") not in TYPES:
        yield f"the type '{item.get('type')}' is none of {', '.join(sorted(TYPES))}"
    if item.get("type") in UNITS and item.get("in") not in UNITS[item["type"]]:
        yield f"'in' is none of {', '.join(UNITS[item['type']])}"
    if item.get("type") == "enum" and not item.get("values") or "values" in item and item.get("type") not in ("enum", "list"):
        yield "an enum has values, a list may have them, nothing else has"
    if not item["positional"] and not item.get("names"):
        yield "an option needs names"
    if item["positional"] and not item.get("name"):
        yield "an argument needs a name"
    if any(not re.fullmatch(r"--?[A-Za-z][\w-]*", name) for name in item.get("names", [])):
        yield f"a name among {item['names']} is not -x or --word"
    if "to" in item and not re.fullmatch(r"path\.\w+|query\.\w+|body(\.[\w-]+)*", item["to"]):
        yield f"'to' is not path.NAME, query.NAME, body or body.NAME: {item['to']}"
    if not item.get("help"):
        yield "help is missing"


def label(item):
    return item["names"][-1] if not item["positional"] and item.get("names") else item.get("name", "?")


def wrong_names(row):
    names = [name for item in row["words"] for name in item.get("names", [])]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two options are called {name}"
    for member in ("exactly_one", "at_least_one"):
        for name in row.get(member, []):
            if name not in names:
                yield f"{member} names {name}, which is no option of it"
    arguments = [item.get("optional", False) for item in row["words"] if item["positional"]]
    if arguments != sorted(arguments):
        yield "an argument that must be given stands behind one that need not"


def wrong_routes(row, known):
    filled = {item["to"][5:] for item in row["words"] if item.get("to", "").startswith("path.")}
    fixed = {name[5:] for name in row.get("fixed", {}) if name.startswith("path.")}
    wanted = set()
    for item in row["words"]:
        filled |= NAMING.get(item.get("type"), set())
    for route in row["routes"] + listed(row.get("update_of")):
        method, _, path = route.partition(" ")
        names = set(re.findall(r"\{(\w+)\}", restgen.whole(path)))
        wanted |= names
        if (method, restgen.whole(path)) not in known:
            yield f"'{route}' is not in spec/rest"
        if "run" not in row and names - filled - fixed:
            yield f"nothing fills {', '.join(sorted(names - filled - fixed))} of '{route}'"
    own = {item["to"][5:] for item in row["words"] if item.get("to", "").startswith("path.")}
    if own - wanted:
        yield f"no route has {', '.join(sorted(own - wanted))}"
    if not row["routes"] and "run" not in row:
        yield "it has neither route nor run"


def wrong_row(noun, row, known):
    if extra := set(row) - VERB_MEMBERS - {"words", "routes"}:
        yield f"unknown members {sorted(extra)}"
    for item in row["words"]:
        yield from (f"{label(item)}: {text}" for text in wrong_word(item))
    start = f"oxbowctl {noun['noun']} {row['verb']}".rstrip()
    if not row.get("summary"):
        yield "the summary is missing"
    if row.get("example", "").split(" ")[:len(start.split(" "))] != start.split(" "):
        yield f"the example does not begin with '{start}'"
    for member in ("run", "answer"):
        if not re.fullmatch(r"ctl_\w+|auto|text|none", row.get(member, "auto")):
            yield f"'{member}' is no function ctl_..."
    yield from wrong_names(row)
    yield from wrong_routes(row, known)


def check(found):
    """What is wrong, a line each."""
    known = {(row["method"], restgen.whole(row["path"])) for group in restgen.groups().values() for row in group["routes"]}
    taken = set()
    for noun in found:
        name = noun["noun"]
        if extra := set(noun) - NOUN_MEMBERS:
            yield f"{name}: unknown members {sorted(extra)}"
        if not noun.get("about"):
            yield f"{name}: 'about' is missing"
        if "also" in noun and noun["also"] not in [other["noun"] for other in found]:
            yield f"{name}: 'also' names {noun['also']}, which is no noun"
        for alias in [name, *noun.get("aliases", [])]:
            if alias in taken:
                yield f"{name}: there is another noun {alias}"
            taken.add(alias)
        verbs = [alias for row in noun["verbs"] for alias in [row["verb"], *row.get("aliases", [])]]
        for verb in sorted({verb for verb in verbs if verbs.count(verb) > 1}):
            yield f"{name} {verb}: it is there twice"
        for row in noun["verbs"]:
            yield from (f"{name} {row['verb']}: {text}" for text in wrong_row(noun, row, known))


# ---- C ------------------------------------------------------------------------------------------------------------------


def text(value):
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


def standard(item):
    """What is taken where an option is not given, as typed."""
    value = item.get("default")
    return {False: "false", True: "true", None: None}.get(value, value) if isinstance(value, bool) or value is None else str(value)


def shown(item):
    """The name of a word's value."""
    return item["name"] if item["positional"] else "" if item["type"] == "flag" else item["value"]


def word_row(item):
    members = [f".name = {text(shown(item))}", f".type = CTL_{item['type'].upper()}", f".help = {text(item['help'])}"]
    if item.get("names"):
        members.append(f".names = {text(' '.join(item['names']))}")
    for name in ("to", "in"):
        if name in item:
            members.append(f".{'unit' if name == 'in' else name} = {text(item[name])}")
    if "values" in item:
        members.append(f".values = {text('|'.join(item['values']))}")
    if item["type"] == "flag" and item["value"] != "":
        members.append(f".sent = {text(json.dumps(item['value']))}")
    if standard(item) is not None:
        members.append(f".standard = {text(standard(item))}")
    flags = {"positional": item["positional"], "required": item.get("required", item["positional"] and not item.get("optional")), "many": item.get("many"),
             "twice": item.get("encode") == "twice"}
    members += [f".{name} = true" for name, value in flags.items() if value]
    members += [f".has_{name} = true, .{name} = {item[name]}" for name in ("min", "max") if name in item]
    return f"    {{{', '.join(members)}}},"


def route_row(route):
    method, _, path = route.partition(" ")
    return f"{{{text(method)}, {text(restgen.whole(path))}}}"


def fixed_rows(row):
    return ", ".join(f"{{{text(name)}, {text(json.dumps(value))}}}" for name, value in row.get("fixed", {}).items())


def verb_row(row, name, out):
    """The initializer of a verb; its arrays go to out."""
    members = [f".verb = {text(row['verb'])}", f".summary = {text(row['summary'])}", f".example = {text(row['example'])}"]
    arrays = {"words": ("ctl_word", [word_row(item) for item in row["words"]]), "routes": ("ctl_route", [f"    {route_row(route)}," for route in row["routes"]]),
              "fixed": ("ctl_fixed", [f"    {fixed_rows(row)}"] if row.get("fixed") else [])}
    for kind, (struct, rows) in arrays.items():
        if rows:
            out += [f"static const struct {struct} {name}_{kind}[] = {{", *rows, "};"]
            members.append(f".{kind} = {name}_{kind}, .{kind[:-1] if kind != 'fixed' else kind}_count = OX_COUNT({name}_{kind})")
    for member in ("help", "good", "done"):
        if row.get(member):
            members.append(f".{member} = {text(row[member])}")
    for member in ("aliases", "exactly_one", "at_least_one"):
        if row.get(member):
            members.append(f".{member} = {text(' '.join(row[member]))}")
    if row.get("update_of"):
        members.append(f".update_of = {text(restgen.whole(row['update_of'].partition(' ')[2]))}")
    answer = row.get("answer", "auto")
    members.append(f".show = {'ctl_show_' + answer if answer in ('auto', 'text', 'none') else answer}")
    members += [f".run = {row['run']}"] if row.get("run") else []
    members += [".patient = true"] if row.get("patient") else []
    return f"    {{{', '.join(members)}}},"


def table(found):
    out = ["// ctl_commands.h - generated from spec/commands: the verbs of oxbowctl.", "#ifndef GEN_CTL_COMMANDS_H", "#define GEN_CTL_COMMANDS_H", ""]
    rows = []
    for at, noun in enumerate(found):
        verbs = [verb_row(row, f"noun{at}_verb{index}", out) for index, row in enumerate(noun["verbs"])]
        out += [f"static const struct ctl_row noun{at}_rows[] = {{", *verbs, "};", ""]
        aliases = text(" ".join(noun["aliases"])) if noun.get("aliases") else "NULL"
        rows.append(f"    {{{text(noun['noun'])}, {aliases}, {text(noun['about'])}, {text(noun.get('also'))}, noun{at}_rows, OX_COUNT(noun{at}_rows)}},")
    return "\n".join(out + ["static const struct ctl_noun ctl_noun_table[] = {", *rows, "};", "", "#endif", ""])


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != content:
        path.write_text(content)


def main():
    found = nouns()
    if wrong := list(check(found)):
        sys.exit("\n".join(f"spec/commands: {line}" for line in wrong))
    if sys.argv[1:] == ["--docs"]:
        write(PAGE, ctlpages.docs(PAGE.read_text(), found))
    elif len(sys.argv) == 3:
        out, build = map(pathlib.Path, sys.argv[1:])
        write(out / "ctl_commands.h", table(found))
        for name, content in ctlpages.pages(found, GLOBAL).items():
            write(build / name, content)
    elif sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
