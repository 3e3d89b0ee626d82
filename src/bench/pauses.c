// pauses.c - the longest gap between acknowledgements in each window of time.
#include <stdlib.h>

#include "base/mem.h"
#include "bench/bench.h"

void bench_pauses_init(struct bench_pauses *p, uint64_t window_ns, uint64_t now_ns)
{
    *p = (struct bench_pauses){.window_ns = window_ns, .window_end_ns = now_ns + window_ns, .last_ns = now_ns};
}

static void pauses_close_window(struct bench_pauses *p)
{
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 64;
        p->windows = ox_realloc(p->windows, p->cap, sizeof *p->windows);
    }
    p->windows[p->count++] = p->longest_ns;
    p->longest_ns = 0;
    p->window_end_ns += p->window_ns;
}

static void pauses_gap(struct bench_pauses *p, uint64_t now_ns)
{
    uint64_t gap = now_ns - p->last_ns;
    p->longest_ns = OX_MAX(p->longest_ns, gap);
}

void bench_pauses_note(struct bench_pauses *p, uint64_t now_ns)
{
    while (now_ns >= p->window_end_ns)
        pauses_close_window(p);
    pauses_gap(p, now_ns);
    p->last_ns = now_ns;
}

static int pauses_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void bench_pauses_end(struct bench_pauses *p, uint64_t now_ns)
{
    while (now_ns >= p->window_end_ns) {
        if (p->last_ns < p->window_end_ns - p->window_ns)
            pauses_gap(p, p->window_end_ns); // nothing came in it at all
        pauses_close_window(p);
    }
    if (p->count)
        qsort(p->windows, p->count, sizeof *p->windows, pauses_compare);
}

uint64_t bench_pauses_max(const struct bench_pauses *p)
{
    return p->count ? p->windows[p->count - 1] : 0;
}

uint64_t bench_pauses_median(const struct bench_pauses *p)
{
    return p->count ? p->windows[p->count / 2] : 0;
}

void bench_pauses_fini(struct bench_pauses *p)
{
    ox_free(p->windows);
    *p = (struct bench_pauses){0};
}
