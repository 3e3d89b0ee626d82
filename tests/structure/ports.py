#!/usr/bin/env python3
"""Nothing outside the ports' bodies calls the clock, the random generator, a socket, a file or a thread."""
import re
import tree

CALLS = re.compile(
    r"(?<![\w.>])(time|clock|clock_gettime|gettimeofday|rand|srand|random|srandom|getrandom|arc4random|open|openat|creat|fopen|fdopen|"
    r"pread|pwrite|pwritev|preadv|fsync|fdatasync|unlink|rename|mkdir|opendir|socket|bind|listen|accept|connect|sendmsg|"
    r"recvmsg|pthread_\w+|thrd_\w+|sleep|usleep|nanosleep|fork|mmap)\s*\(")
# The ports' bodies, and the programs that people run.
FREE = ("io/posix/", "oxbowd/", "oxbowctl/", "bench/")
# LMDB opens its own files, so the job that opens it makes and syncs their folder as well.
LMDB = {"metastore/lmdb.c": {"mkdir", "open", "fsync"}, "ledger/store/table.c": {"mkdir", "open", "fsync"}}
ATTRIBUTE_LINES = re.compile(r"^\s*#")


def main():
    findings = []
    for path in tree.files(".c", ".h"):
        if str(path).startswith(FREE) or tree.is_test(path):
            continue
        # A line that declares a function pointer member or a parameter of such a name holds "(*name)" and does not match.
        for number, line in enumerate(tree.code(path).split("\n"), 1):
            match = None if ATTRIBUTE_LINES.match(line) else CALLS.search(re.sub(r'"(\\.|[^"\\])*"', '""', line))
            if match and match.group(1) not in LMDB.get(str(path), ()):
                findings.append(f"src/{path}:{number}: {match.group(1)}() outside io/posix")
    tree.report(findings, "everything outside comes in through ports (docs/design/0002-ports.md)")


main()
