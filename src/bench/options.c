// options.c - the command line of oxbow-bench.
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"

enum option_kind { OPTION_TEXT, OPTION_COUNT, OPTION_BYTES, OPTION_TIME, OPTION_FORMAT };

// One option: where its value goes, what it means and what holds without it.
struct option {
    const char *name;
    enum option_kind kind;
    void *to;
    const char *standard;
    const char *help;
};

#define OPTION_ROWS(o)                                                                                                        \
    {                                                                                                                         \
        {"--service-url", OPTION_TEXT, &(o)->service_url, "pulsar://127.0.0.1:6650", "publish: the broker"},                  \
            {"--topic", OPTION_TEXT, &(o)->topic, "persistent://public/default/bench",                                        \
             "publish: topics are TOPIC-0, TOPIC-1, ..."},                                                                    \
            {"--topics", OPTION_COUNT, &(o)->topics, "1", "publish: how many topics"},                                        \
            {"--producers", OPTION_COUNT, &(o)->producers, "1", "publish: producers of each topic"},                          \
            {"--consumers", OPTION_COUNT, &(o)->consumers, "0",                                                               \
             "publish: subscriptions of each topic, with one consumer each"},                                                 \
            {"--subscription", OPTION_TEXT, &(o)->subscription, "drain", "drain: subscriptions are SUBSCRIPTION-0, -1, ..."}, \
            {"--messages", OPTION_COUNT, &(o)->messages, "0", "drain: messages that each subscription finds"},                \
            {"--connections", OPTION_COUNT, &(o)->connections, "1", "publish: connections to share"},                         \
            {"--rate", OPTION_COUNT, &(o)->rate, "1000", "messages (disk: writes) a second in all; 0: as many as possible"},  \
            {"--size", OPTION_BYTES, &(o)->size, "1k", "bytes of a message (disk: of a write)"},                              \
            {"--window", OPTION_COUNT, &(o)->window, "1000", "publish with --rate 0: messages of a producer in flight"},      \
            {"--batch", OPTION_COUNT, &(o)->batch, "1", "publish: messages of a batch at most"},                              \
            {"--batch-bytes", OPTION_BYTES, &(o)->batch_bytes, "128k", "publish: bytes of a batch at most"},                  \
            {"--batch-delay", OPTION_TIME, &(o)->batch_delay_ns, "1ms", "publish: a batch is sent after this"},               \
            {"--compression", OPTION_TEXT, &(o)->compression, "none", "publish: none, lz4, zlib, zstd, snappy"},              \
            {"--duration", OPTION_TIME, &(o)->duration_ns, "10s", "how long to measure"},                                     \
            {"--warmup", OPTION_TIME, &(o)->warmup_ns, "2s", "how long to run before"},                                       \
            {"--pause-window", OPTION_TIME, &(o)->pause_window_ns, "1s",                                                      \
             "publish: the longest pause is taken of each such span"},                                                        \
            {"--dir", OPTION_TEXT, &(o)->dir, ".", "disk: where the file is made"},                                           \
            {"--file-bytes", OPTION_BYTES, &(o)->file_bytes, "64m",                                                           \
             "disk: size of the file, which is written over in turns"},                                                       \
            {"--host", OPTION_TEXT, &(o)->host, "127.0.0.1", "null: where to listen"},                                        \
            {"--port", OPTION_COUNT, &(o)->port, "6650", "null: port to listen on"},                                          \
            {"-o", OPTION_FORMAT, &(o)->json, "table", "table or json"},                                                      \
    }

void bench_usage(void)
{
    struct bench_options o;
    const struct option rows[] = OPTION_ROWS(&o);
    fputs("usage: oxbow-bench publish|drain|null|disk [OPTION VALUE]...\n"
          "\n"
          "  publish  sends messages at fixed times, whether answers come or not (open loop); latency is counted from "
          "the intended time\n"
          "  drain    subscriptions read what lies in their topics, from the first message on, as fast as it comes\n"
          "  null     a server that answers every client at once and stores nothing: what publish reaches on it is the "
          "client's ceiling\n"
          "  disk     a bare loop of write and fdatasync into a preallocated file: the disk's ceiling\n"
          "\n",
          stdout);
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        printf("  %-16s %s (%s)\n", rows[i].name, rows[i].help, rows[i].standard);
}

static enum ox_err option_set(const struct option *row, const char *value)
{
    switch (row->kind) {
    case OPTION_TEXT: *(const char **)row->to = value; return OX_OK;
    case OPTION_COUNT: return ox_parse_i64(value, 0, 100000000, row->to);
    case OPTION_BYTES: return ox_parse_bytes(value, row->to);
    case OPTION_TIME: return ox_parse_duration(value, row->to);
    case OPTION_FORMAT:
        *(bool *)row->to = strcmp(value, "json") == 0;
        return strcmp(value, "json") == 0 || strcmp(value, "table") == 0 ? OX_OK : OX_E_INVALID;
    }
    return OX_E_INVALID;
}

static const struct option *option_find(const struct option *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static bool options_make_sense(const struct bench_options *o)
{
    if (o->topics && o->producers && o->connections && o->window && o->duration_ns && o->pause_window_ns && o->size >= 8 &&
        o->port <= 65535 && o->topics * o->producers <= 100000 && o->size <= 64u << 20 && o->file_bytes >= o->size)
        return true;
    fputs("oxbow-bench: numbers must be above 0 (topics, producers, connections, window, duration), the size 8 bytes "
          "to 64 MiB and not above the file's\n",
          stderr);
    return false;
}

bool bench_options_parse(struct bench_options *o, int argc, char **argv)
{
    *o = (struct bench_options){0};
    const struct option rows[] = OPTION_ROWS(o);
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        if (option_set(&rows[i], rows[i].standard) != OX_OK)
            OX_UNREACHABLE("a standard value is not valid");
    for (int i = 0; i < argc; i += 2) {
        const struct option *row = option_find(rows, OX_COUNT(rows), argv[i]);
        if (!row || i + 1 >= argc || option_set(row, argv[i + 1]) != OX_OK) {
            fprintf(stderr, "oxbow-bench: %s %s (see oxbow-bench --help)\n",
                    row ? "no good value after" : "unknown option", argv[i]);
            return false;
        }
    }
    return options_make_sense(o);
}
