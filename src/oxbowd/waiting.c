// waiting.c - one place after another, one at a time: what waits to be deleted in it, and the sweep that it has missed.
#include "oxbowd/waiting.h"

#define WAITING_ROUND_NS (5 * OX_SEC) // between two rounds over all places

static ox_step waiting_place(struct ox_seq *s);
static ox_step waiting_retried(struct ox_seq *s);
static ox_step waiting_swept(struct ox_seq *s);
static ox_step waiting_count(struct ox_seq *s);
static ox_step waiting_counted(struct ox_seq *s);

static struct waiting *waiting_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct waiting, seq);
}

// The place's present opening, or 0.
static uint32_t waiting_open(const struct waiting *w)
{
    return ox_router_opening(w->factory->router, w->place);
}

// Places are registered while the broker runs; their indexes stay.
static void waiting_grow(struct waiting *w)
{
    const struct ox_router *router = w->factory->router;
    if (w->place_count >= router->count)
        return;
    w->places = ox_realloc(w->places, router->count, sizeof *w->places);
    for (; w->place_count < router->count; w->place_count++)
        w->places[w->place_count] = ox_malloc(sizeof *w->places[0]);
}

static void waiting_metric(const struct waiting *w, struct ox_metric *m, enum ox_metric_kind kind, const char *name,
                           const char *help, const char *more)
{
    OX_CLEANUP(ox_free_ptr)
    char *labels = ox_asprintf("cluster=\"%s\"%s", ox_router_name(w->factory->router, w->place), more);
    ox_metric_init(m, w->factory->metrics, kind, name, help, labels);
}

static void waiting_register(const struct waiting *w, struct waiting_place *p)
{
    static const char opened[] = "Handles on ledgers of a place, as last counted",
                      reads[] = "Reads that a place was asked for";
    waiting_metric(w, &p->pending, OX_METRIC_GAUGE, "bookie_cluster_pending_deletes",
                   "Deletes that wait for their place, as last counted", "");
    waiting_metric(w, &p->bytes, OX_METRIC_GAUGE, "bookie_cluster_bytes", "Live bytes in a place, as last measured", "");
    waiting_metric(w, &p->open_data, OX_METRIC_GAUGE, "bookie_cluster_open_ledgers", opened, ",kind=\"data\"");
    waiting_metric(w, &p->open_cursors, OX_METRIC_GAUGE, "bookie_cluster_open_ledgers", opened, ",kind=\"cursor\"");
    waiting_metric(w, &p->reads, OX_METRIC_COUNTER, "bookie_cluster_reads_total", reads, ",outcome=\"answered\"");
    waiting_metric(w, &p->reads_failed, OX_METRIC_COUNTER, "bookie_cluster_reads_total", reads, ",outcome=\"failed\"");
    waiting_metric(w, &p->wrong, OX_METRIC_COUNTER, "bookie_cluster_misroute_total",
                   "Reads that found somebody else's ledger under the id on record", "");
    p->shown = true;
}

static void waiting_holder(void *ctx, const struct ox_ledger *l)
{
    struct waiting_place *p = ctx;
    bool cursor = ox_kv_find(&l->info.custom, "pulsar/cursor") != NULL;
    p->open_cursors.value += cursor;
    p->open_data.value += !cursor;
}

static void waiting_show(struct waiting *w, int64_t pending)
{
    struct waiting_place *p = w->places[w->place];
    const struct ox_router *router = w->factory->router;
    const struct ox_router_reads *reads = ox_router_reads(router, w->place);
    struct ox_capacity capacity = {0};
    if (!p->shown)
        waiting_register(w, p);
    if (ox_router_place(router, w->place))
        ox_place_capacity(ox_router_place(router, w->place), &capacity);
    p->pending.value = pending;
    p->bytes.value = (int64_t)capacity.used_live;
    p->open_data.value = p->open_cursors.value = 0;
    (void)ox_router_holders(router, w->place, waiting_holder, p);
    p->reads.value = reads->answered;
    p->reads_failed.value = reads->failed;
    p->wrong.value = reads->misrouted;
}

static void waiting_hide(struct waiting_place *p)
{
    struct ox_metric *all[] = {&p->pending, &p->bytes,        &p->open_data, &p->open_cursors,
                               &p->reads,   &p->reads_failed, &p->wrong};
    for (size_t i = 0; p->shown && i < OX_COUNT(all); i++)
        ox_metric_fini(all[i]);
    p->shown = false;
}

// Taken out of the registry: nothing was left in it, and its name may be another one's by now.
static bool waiting_is_forgotten(const struct waiting *w)
{
    const struct ox_router *router = w->factory->router;
    uint32_t index;
    return ox_router_find(router, ox_router_name(router, w->place), &index) != OX_OK || index != w->place;
}

static ox_step waiting_next(struct ox_seq *s)
{
    waiting_of(s)->place++;
    return OX_GOTO(s, waiting_place);
}

static ox_step waiting_place(struct ox_seq *s)
{
    struct waiting *w = waiting_of(s);
    if (w->over || w->factory->router->count < 2 || w->place >= w->place_count)
        return OX_FINISH(s, OX_OK);
    if (waiting_is_forgotten(w)) {
        waiting_hide(w->places[w->place]);
        return waiting_next(s);
    }
    if (!waiting_open(w)) {
        w->places[w->place]->swept = 0;
        return OX_GOTO(s, waiting_count);
    }
    ox_seq_bind(s, &w->op, "oxbowd.waiting.deletes");
    ox_ml_deletes_retry(w->factory, &w->op, w->place);
    return OX_WAIT(s, waiting_retried);
}

// The sweep comes after the deletes: what they take away need not be looked at.
static ox_step waiting_retried(struct ox_seq *s)
{
    struct waiting *w = waiting_of(s);
    uint32_t open = waiting_open(w);
    if (s->err != OX_OK || w->over || !open || open == w->places[w->place]->swept)
        return OX_GOTO(s, waiting_count);
    ox_seq_bind(s, &w->op, "oxbowd.waiting.sweep");
    ox_ml_orphans_sweep_place(w->factory, &w->op, w->place);
    w->places[w->place]->swept = open; // unless it fails, or the place is closed meanwhile
    return OX_WAIT(s, waiting_swept);
}

static ox_step waiting_swept(struct ox_seq *s)
{
    struct waiting *w = waiting_of(s);
    struct waiting_place *p = w->places[w->place];
    if (s->err != OX_OK || waiting_open(w) != p->swept)
        p->swept = 0; // once more in the next round
    else
        ox_info(w->factory->log, "oxbowd.waiting.swept", "place=%s", ox_router_name(w->factory->router, w->place));
    return OX_GOTO(s, waiting_count);
}

// Of closed ones too.
static ox_step waiting_count(struct ox_seq *s)
{
    struct waiting *w = waiting_of(s);
    if (w->over)
        return OX_FINISH(s, OX_OK);
    w->count = (struct ox_ml_deletes_count){.place = ox_router_name(w->factory->router, w->place)};
    ox_seq_bind(s, &w->count.op, "oxbowd.waiting.count");
    ox_ml_deletes_count(w->factory, &w->count);
    return OX_WAIT(s, waiting_counted);
}

static ox_step waiting_counted(struct ox_seq *s)
{
    struct waiting *w = waiting_of(s);
    if (s->err == OX_OK)
        waiting_show(w, (int64_t)w->count.count);
    return waiting_next(s);
}

static void waiting_round_over(struct ox_seq *s, enum ox_err err)
{
    struct waiting *w = waiting_of(s);
    (void)err;
    if (w->over)
        w->over(w);
    else
        ox_timer_start(&w->timer, WAITING_ROUND_NS);
}

static void waiting_round(struct ox_timer *t)
{
    struct waiting *w = CONTAINER_OF(t, struct waiting, timer);
    waiting_grow(w);
    w->place = 0;
    ox_seq_start(&w->seq, t->loop, "oxbowd.waiting", waiting_place, waiting_round_over);
}

void waiting_start(struct waiting *w, struct ox_ml_factory *f)
{
    w->factory = f;
    waiting_grow(w);
    for (w->place = 0; w->place < w->place_count; w->place++)
        w->places[w->place]->swept = waiting_open(w);
    ox_timer_init(&w->timer, f->loop, waiting_round);
    ox_timer_start(&w->timer, 0);
}

bool waiting_stop(struct waiting *w, void (*over)(struct waiting *w))
{
    ox_timer_stop(&w->timer);
    w->over = over;
    return !w->seq.active;
}

void waiting_fini(struct waiting *w)
{
    for (uint32_t i = 0; i < w->place_count; i++) {
        waiting_hide(w->places[i]);
        ox_free(w->places[i]);
    }
    ox_free(w->places);
}
