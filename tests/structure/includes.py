#!/usr/bin/env python3
"""Every #include below src/ follows an edge that its ox_module declares, and each library's header stays in its one folder."""
import tree

# Third-party header (prefix) -> the folders that may include it. Test frameworks are for tests only.
LIBRARIES = {
    "uv.h": {"io/posix"},
    "openssl/": {"metastore"},  # digests of long names
    "lmdb.h": {"metastore", "ledger/store"},  # a table each; both run it as jobs of the metadata lane
    "curl/": {"oxbowctl"},
    "jansson.h": {"broker", "move/storage", "admin", "oxbowctl", "oxbowd"},  # policies nodes, nodes of the switch; REST bodies; the node of dynamic settings
    "pcre2.h": {"broker"},  # patterns of topic names
    "protobuf-c/": {"wire"},
    "zlib.h": {"base", "wire"},  # a checksum; compression
    "lz4": {"wire"},
    "zstd": {"wire"},
    "snappy-c.h": {"wire"},
    "uthash.h": {"base"},
    "xxhash.h": {"base"},  # digests of ledgers
    "utlist.h": {"base"},
}
# System headers that stand for a thread, a socket, a clock or a file: the ports' bodies only.
PORTS = ("pthread.h", "threads.h", "sys/socket.h", "netinet/", "arpa/", "netdb.h", "poll.h", "sys/epoll.h", "sys/random.h",
         "sys/mman.h", "sys/file.h", "sys/timerfd.h", "semaphore.h")
PORT_FOLDERS = {"io/posix", "bench"}  # the load generator: its timer is finer than the loop's
MEMORY = {("io/direct.c", "sys/mman.h")}  # madvise on the program's own memory: nothing comes in from outside


def check_edge(path, module, included, table):
    if included.split("/")[0] in ("gen", "proto") or (included == "fuzz.h" and path.stem.endswith("_fuzz")):
        return None
    if not (tree.SRC / included).exists():
        return f'"{included}" is no file below src/ (write the path from src/)'
    target = tree.owner(included, table)
    if target == module:
        return None
    if included.endswith("_int.h") and not tree.is_test(path):
        return f'"{included}" is private to {target}'
    allowed = set(table[module]["uses"])
    if tree.is_test(path):
        allowed |= set(table[module]["test_uses"])
    return None if target in allowed else f'"{included}": the edge {module} -> {target} is not declared in USES'


def check_library(path, module, included):
    if included == "cmocka.h":
        return None if tree.is_test(path) else "<cmocka.h> outside a test"
    if included.startswith(PORTS) and module not in PORT_FOLDERS and (str(path), included) not in MEMORY and not tree.is_test(path):
        return f"<{included}> belongs to the ports' bodies ({', '.join(sorted(PORT_FOLDERS))})"
    for prefix, folders in LIBRARIES.items():
        if included.startswith(prefix) and module not in folders:
            return f"<{included}> may be included in {', '.join(sorted(folders))} only"
    return None


def main():
    table, findings = tree.modules(), []
    for path in tree.files(".c", ".h", ".def"):
        module, content = tree.owner(path, table), tree.code(path)
        if module is None:
            findings.append(f"src/{path}: belongs to no ox_module")
            continue
        for match in tree.INCLUDE.finditer(content):
            quote, included = match.groups()
            wrong = check_edge(path, module, included, table) if quote == '"' else check_library(path, module, included)
            if wrong:
                findings.append(f"src/{path}:{tree.line_of(content, match.start(2))}: {wrong}")
    tree.report(findings, "arrows point down, along declared edges; each library lives in one folder (ARCHITECTURE.md)")


main()
