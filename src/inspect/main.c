// main.c - oxbow-inspect: command line, then one dump to standard output.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/version.h"
#include "inspect/inspect.h"
#include "io/posix/posix.h"

#define EXIT_USAGE 2

static const char usage[] = "usage: oxbow-inspect DIR nodes [PATH]\n"
                            "       oxbow-inspect DIR ledgers\n"
                            "       oxbow-inspect DIR ledger ID...\n"
                            "       oxbow-inspect --version | --help\n";

static const char manual[] =
    "\n"
    "Shows what a stopped broker's data folder DIR (oxbowd --data DIR) holds, one JSON object a line.\n"
    "\n"
    "  nodes [PATH]   the metadata nodes at and below PATH (default: all): {\"path\",\"version\",\"hex\"}\n"
    "  ledgers        the ledgers of the embedded store: {\"ledger\",\"state\",\"last_entry\",\"length\",\"custom\"};\n"
    "                 state is open, in recovery or closed, custom is the ledger's custom metadata\n"
    "  ledger ID...   the entries of these ledgers: {\"ledger\",\"entry\",\"hex\"}; an entry that cannot be read is "
    "shown as\n"
    "                 {\"ledger\",\"entry\",\"error\",\"where\"}, where names the file and offset, and the dump goes "
    "on\n"
    "\n"
    "Metadata is opened read-only. Opening the store does what the broker does at its start: the journal is replayed "
    "and a new\n"
    "segment begun; nothing that was acknowledged changes. While the broker runs, inspect a copy of the folder (cp -a "
    "DIR COPY).\n"
    "\n"
    "Exit status: 0 all shown, 1 something could not be shown (standard error says what), 2 wrong usage.\n";

static int usage_error(const char *what, const char *argument)
{
    fprintf(stderr, "oxbow-inspect: %s%s%s\n%s", what, *argument ? " " : "", argument, usage);
    return EXIT_USAGE;
}

// How a dump went.
struct outcome {
    enum ox_err err;
    int write_errno; // of the first line that could not be written
};

static void print_line(struct inspect *i, const char *text, size_t len)
{
    struct outcome *o = i->owner;
    if (!o->write_errno && fwrite(text, 1, len, stdout) != len)
        o->write_errno = errno;
}

static void stop_loop(struct inspect *i, enum ox_err err)
{
    struct outcome *o = i->owner;
    o->err = err;
    ox_posix_stop(i->loop);
}

// Nobody reads on behind a closed pipe (`| head`): that is said by the exit status alone.
static void check_output(struct outcome *o)
{
    if (fflush(stdout) != 0 && !o->write_errno)
        o->write_errno = errno;
    if (o->write_errno && o->write_errno != EPIPE)
        fprintf(stderr, "oxbow-inspect: standard output could not be written: %s\n", strerror(o->write_errno));
    if (o->write_errno)
        o->err = OX_E_IO;
}

static int run(struct inspect *i)
{
    struct ox_log log;
    struct outcome o = {0};
    ox_posix_log_init(&log, OX_LOG_ERROR);
    i->loop = ox_posix_loop_new(&log);
    i->fs = ox_posix_fs(i->loop);
    i->owner = &o;
    i->line = print_line;
    i->ended = stop_loop;
    inspect_start(i);
    ox_posix_run(i->loop);
    ox_posix_loop_free(i->loop);
    check_output(&o);
    if (i->trouble.len > 0)
        fprintf(stderr, "oxbow-inspect: %s", ox_str_get(&i->trouble));
    inspect_fini(i);
    return o.err == OX_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_entries(struct inspect *i, char **ids, int count)
{
    OX_CLEANUP(ox_free_ptr)
    int64_t *numbers = ox_calloc((size_t)count, sizeof *numbers);
    if (count == 0)
        return usage_error("a ledger's id is missing", "");
    for (int k = 0; k < count; k++)
        if (ox_parse_i64(ids[k], 0, INT64_MAX, &numbers[k]) != OX_OK)
            return usage_error("not a ledger's id:", ids[k]);
    i->what = INSPECT_ENTRIES;
    i->ids = numbers;
    i->id_count = (size_t)count;
    return run(i);
}

static int run_command(struct inspect *i, const char *command, char **rest, int count)
{
    if (strcmp(command, "ledger") == 0)
        return run_entries(i, rest, count);
    if (strcmp(command, "nodes") == 0) {
        i->what = INSPECT_NODES;
        i->prefix = count > 0 ? rest[0] : NULL;
        return count <= 1 ? run(i) : usage_error("one path at most, and then came", rest[1]);
    }
    if (strcmp(command, "ledgers") == 0) {
        i->what = INSPECT_LEDGERS;
        return count == 0 ? run(i) : usage_error("ledgers takes no argument, and then came", rest[0]);
    }
    return usage_error("unknown command", command);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return printf("%s%s", usage, manual) < 0;
    if (argc >= 2 && strcmp(argv[1], "--version") == 0)
        return printf("oxbow-inspect %s\n", OX_VERSION) < 0;
    if (argc < 3)
        return usage_error("a folder and a command are needed", "");
    struct inspect i = {.dir = argv[1]};
    return run_command(&i, argv[2], argv + 3, argc - 3);
}
