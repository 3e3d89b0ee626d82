// show.c - the live picture: two lines that stay where they are on a terminal, else a line a second.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

#define SHOW_BAR 12

void show_init(struct demo_show *s)
{
    *s = (struct demo_show){.terminal = isatty(STDOUT_FILENO)};
}

static double show_seconds(uint64_t now_ns, uint64_t began_ns)
{
    return (double)(now_ns - began_ns) / 1e9;
}

static long long show_number(const json_t *stage, const char *key)
{
    return (long long)json_integer_value(json_object_get(stage, key));
}

// "WRITES_MOVED ####........ 3/8"
static void show_stage(const json_t *stage, const char *name, struct ox_str *out)
{
    long long done = show_number(stage, "done"), total = show_number(stage, "total"), left = show_number(stage, "left");
    long long bytes = show_number(stage, "bytes"), bytes_total = show_number(stage, "bytesTotal");
    double share = bytes_total > 0 ? (double)bytes / (double)bytes_total
                   : total > 0     ? (double)done / (double)total
                                   : left == 0;
    int full = share >= 1 ? SHOW_BAR : share <= 0 ? 0 : (int)(share * SHOW_BAR);
    ox_str_addf(out, "  %s ", name);
    for (int i = 0; i < SHOW_BAR; i++)
        ox_str_adds(out, i < full ? "#" : ".");
    if (bytes_total > 0)
        ox_str_addf(out, " %.1f/%.1f MB", (double)bytes / 1e6, (double)bytes_total / 1e6);
    else if (total > 0)
        ox_str_addf(out, " %lld/%lld", done, total);
}

// The stages of data only when it was asked for.
static void show_stages(const json_t *status, struct ox_str *out)
{
    const json_t *present = json_object_get(status, "switch"), *stages = json_object_get(present, "stages");
    bool moves_data = json_is_true(json_object_get(present, "moveData"));
    json_t *stage;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)stages, i, stage)
    {
        const char *name = json_string_value(json_object_get(stage, "name"));
        bool of_data = name && (strcmp(name, "DATA_MOVED") == 0 || strcmp(name, "RELEASED") == 0);
        if (name && (moves_data || !of_data))
            show_stage(stage, name, out);
    }
}

void show_draw(struct demo_show *s, uint64_t now_ns, uint64_t began_ns, const struct demo_counts *c, const json_t *status)
{
    struct ox_str bars = {0};
    if (!s->terminal && now_ns - s->printed_ns < OX_SEC)
        return;
    s->printed_ns = now_ns;
    show_stages(status, &bars);
    if (s->lines)
        printf("\033[%dA", s->lines);
    printf("%s%5.1f s  sent %llu  received %llu  lost %llu  doubled %llu  longest pause %.0f ms%s\n",
           s->terminal ? "\033[K" : "", show_seconds(now_ns, began_ns), (unsigned long long)c->sent,
           (unsigned long long)c->received, (unsigned long long)(c->missing + c->lost), (unsigned long long)c->doubled,
           (double)c->pause_ns / 1e6, s->terminal ? "" : ox_str_get(&bars));
    if (s->terminal)
        printf("\033[K%s\n", ox_str_get(&bars));
    s->lines = s->terminal ? 2 : 0;
    fflush(stdout);
    ox_str_fini(&bars);
}

void show_chapter(struct demo_show *s, uint64_t now_ns, uint64_t began_ns, const char *what)
{
    snprintf(s->chapter, sizeof s->chapter, "%s", what);
    printf("%5.1f s  %s\n", show_seconds(now_ns, began_ns), what);
    s->lines = 0;
    fflush(stdout);
}
