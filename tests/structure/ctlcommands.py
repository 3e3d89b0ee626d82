#!/usr/bin/env python3
"""The table of oxbowctl's verbs (spec/commands) is sound, each REST route of spec/rest has a verb or a reason, and the man page and completions are well formed."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tree

sys.path.insert(0, str(tree.TOP / "tools"))
import ctlgen
import ctlpages
import restgen

NO_VERB = "pulsar-admin has no verb either: programs ask for it"
# Routes without a verb: a pattern of "METHOD path", and why.
EXCEPTIONS = {
    r"GET /metrics": "for Prometheus, not for people",
    r"GET /admin/v2/brokers/ready": "for probes, which look at the status alone",
    r"POST /admin/v2/bookie-clusters/internal/.*": "asked by brokers among themselves",
    r"GET /admin/namespaces/.*": "the old path of a route that has its verb",
    r"GET /admin/v2/broker-stats/(bookieops|broker-resource-availability/.*)": NO_VERB,
    r"POST /admin/v2/namespaces/(grant|revoke)PermissionsOnTopics": NO_VERB,
    r"DELETE /admin/v2/namespaces/\{tenant\}/\{namespace\}/\{bundle\}": NO_VERB,
    r"GET /admin/v2/namespaces/\{tenant\}/\{namespace\}/scanOffloadedLedgers": NO_VERB,
    r"GET /admin/v2/non-persistent/\{tenant\}/\{namespace\}/\{bundle\}": NO_VERB,
    r"GET /admin/v2/\{domain\}/\{tenant\}/\{namespace\}/\{topic\}/backlog": NO_VERB,
}
LINTERS = {"man/oxbowctl.1": ["mandoc", "-T", "lint", "-W", "error"], "completion/oxbowctl.bash": ["bash", "-n"], "completion/_oxbowctl": ["zsh", "-n"],
           "completion/oxbowctl.fish": ["fish", "-n"]}


def used(found):
    """Every "METHOD path" that a verb asks, paths written out."""
    for noun in found:
        for row in noun["verbs"]:
            yield from row["routes"]
            yield from ctlgen.listed(row.get("update_of"))


def wrong_routes(found):
    asked = {f"{method} {restgen.whole(path)}" for method, _, path in (route.partition(" ") for route in used(found))}
    for name, group in restgen.groups().items():
        for row in group["routes"]:
            route = f"{row['method']} {restgen.whole(row['path'])}"
            if route not in asked and not any(re.fullmatch(pattern, route) for pattern in EXCEPTIONS):
                yield f"spec/rest/{name}.json: {row['method']} {row['path']}: no verb of spec/commands asks for it"


def wrong_exceptions():
    routes = [f"{row['method']} {restgen.whole(row['path'])}" for group in restgen.groups().values() for row in group["routes"]]
    for pattern in EXCEPTIONS:
        if not any(re.fullmatch(pattern, route) for route in routes):
            yield f"tests/structure/ctlcommands.py: no route is excepted by '{pattern}'"


def wrong_globals():
    """The program reads the options that help, man page and completions name."""
    source = (tree.SRC / "oxbowctl" / "args.c").read_text()
    read = re.findall(r'\[GLOBAL_\w+\] = "([^"]+)"', source)
    if read != [" ".join(item["names"]) for item in ctlgen.GLOBAL]:
        yield f"src/oxbowctl/args.c reads {read}, tools/ctlgen.py names {[' '.join(item['names']) for item in ctlgen.GLOBAL]}"
    shown = (tree.SRC / "oxbowctl" / "help.c").read_text()
    yield from (f"src/oxbowctl/help.c does not name {name}" for item in ctlgen.GLOBAL for name in item["names"] if name not in shown)


def wrong_pages(found):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in ctlpages.pages(found, ctlgen.GLOBAL).items():
            path = pathlib.Path(folder) / pathlib.PurePath(name).name
            path.write_text(content)
            linter = LINTERS[name]
            if shutil.which(linter[0]) and (said := subprocess.run([*linter, str(path)], capture_output=True, text=True)).returncode:
                yield f"{name}: {linter[0]} says: {(said.stdout + said.stderr).strip()[:500]}"
            missing = [row["verb"] for noun in found for row in noun["verbs"] if ctlpages.roff(row["verb"]) not in content and row["verb"] not in content]
            if missing:
                yield f"{name} lacks {', '.join(missing)}"


def wrong_docs(found):
    text = ctlgen.PAGE.read_text()
    if ctlpages.docs(text, found) != text:
        yield "docs/oxbowctl.md is not what tools/ctlgen.py --docs makes: run it"


def main():
    found = ctlgen.nouns()
    findings = [f"spec/commands: {line}" for line in ctlgen.check(found)]
    findings += [*wrong_routes(found), *wrong_docs(found), *wrong_exceptions(), *wrong_globals(), *wrong_pages(found)]
    tree.report(findings, "each REST route has a verb of oxbowctl, each verb its help and example, and the pages made of them are well formed")


main()
