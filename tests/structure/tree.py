"""tree.py - what the structure tests share: the source files, their modules, and how a test reports."""
import functools, json, os, pathlib, re, sys

TOP = pathlib.Path(__file__).resolve().parents[2]
SRC = TOP / "src"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def files(*suffixes):
    """Every file below src/ with one of the suffixes, as paths relative to src/, sorted."""
    return sorted(p.relative_to(SRC) for p in SRC.rglob("*") if p.suffix in suffixes and p.is_file())


def text(path):
    return (SRC / path).read_text()


def code(path):
    """The file without comments; lines keep their numbers."""
    return COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text(path))


@functools.cache
def modules():
    """What ox_module was told, by module: level, uses, test_uses, packages, tests, test_sources. argv[1] is the build folder."""
    return json.loads((pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "build") / "modules.json").read_text())


@functools.cache
def test_stems():
    """Paths without suffix of everything that only tests link: a fixture's header counts as well as its source."""
    return {pathlib.PurePath(os.path.normpath(f"{name}/{file}")).with_suffix("") for name, m in modules().items() for file in m["tests"] + m["test_sources"]}


def is_test(path):
    """True for tests and fuzz targets, for what only tests link, and for the simulator."""
    return path.stem.endswith(("_test", "_fuzz")) or path.stem.startswith("test_") or path.parts[0] == "sim" or path.with_suffix("") in test_stems()


def line_of(content, offset):
    return content.count("\n", 0, offset) + 1


def owner(path, names):
    """The module whose folder holds the path: the longest module name that is a prefix of it; None if there is none."""
    parts = pathlib.PurePath(path).parts
    for n in range(len(parts) - 1, 0, -1):
        if "/".join(parts[:n]) in names:
            return "/".join(parts[:n])
    return None


def report(findings, rule):
    """Prints each finding and the rule, and ends the test."""
    for finding in findings:
        print(finding)
    if findings:
        sys.exit(f"{len(findings)} finding(s). The rule: {rule}")
