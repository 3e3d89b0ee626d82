// store.c - the engine as a whole: configuration, free space, closing.
#include "ledger/store/store.h"

#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "ledger/store/store_int.h"

#define SPACE_EVERY_NS (2 * OX_SEC)

void ox_store_config_init(struct ox_store_config *config, const char *dir)
{
    *config = (struct ox_store_config){
        .dir = dir,
        .name = "default",
        .segment_bytes = OX_SEGMENT_BYTES,
        .sync = OX_STORE_SYNC,
        .sync_interval_ms = 10,
        .reserve_bytes = UINT64_C(256) << 20,
        .index_cache_bytes = OX_INDEX_CACHE_BYTES,
        .batch_bytes_max = UINT64_C(4) << 20,
        .inflight_bytes_max = 2 * (uint64_t)OX_TOTAL_INFLIGHT_BYTES,
        .compaction_bytes_per_s = UINT64_C(16) << 20,
        .compaction_percent = 40,
        .journal_lane = OX_LANE_JOURNAL,
        .table = ox_table_lmdb(),
    };
}

uint64_t store_entry_max(const struct store *s)
{
    return s->cfg.segment_bytes / 2 - 64 * 1024;
}

static void store_space_tick(struct ox_timer *t)
{
    store_measure_space(CONTAINER_OF(t, struct store, space_timer));
}

static void store_space_measured(struct ox_op *op)
{
    struct store *s = CONTAINER_OF(op, struct store, space_op);
    if (op->err == OX_OK)
        s->space = s->space_new2;
    if (!s->closing && !s->loop->dead)
        ox_timer_start(&s->space_timer, SPACE_EVERY_NS);
    store_woken(s);
}

void store_measure_space(struct store *s)
{
    if (ox_op_pending(&s->space_op))
        return;
    ox_op_init(&s->space_op, s->loop, store_space_measured, "free space");
    ox_fs_space(s->fs, &s->space_op, s->dir, &s->space_new2);
}

// Gauges are those that are not totals.
static enum ox_metric_kind store_metric_kind(const char *name)
{
    return strstr(name, "_total") ? OX_METRIC_COUNTER : OX_METRIC_GAUGE;
}

struct store *store_new(struct ox_loop *loop, struct ox_fs *fs, const struct ox_store_config *config)
{
    struct store *s = ox_malloc(sizeof *s);
    s->loop = loop;
    s->fs = fs;
    s->log = loop->log;
    s->cfg = *config;
    s->cfg.batch_bytes_max = OX_MIN(s->cfg.batch_bytes_max, s->cfg.segment_bytes / 4);
    s->dir = ox_strdup(config->dir);
    s->place = (struct ox_place){
        .body = &store_body, .loop = loop, .name = ox_strdup(config->name), .uri = ox_asprintf("embedded:%s", config->dir)};
    s->cfg.dir = s->dir;
    ox_place_init(&s->place);
    s->cfg.name = s->place.name;
    ox_list_init(&s->tails);
    ox_list_init(&s->id_waiters);
    ox_index_cache_init(&s->cache, s->cfg.index_cache_bytes);
    ox_timer_init(&s->space_timer, loop, store_space_tick);
    journal_init(s);
    prepare_init(s);
    maintain_init(s);
    ox_metrics_init(&s->own_metrics);
    struct ox_metrics *metrics = config->metrics ? config->metrics : &s->own_metrics;
    OX_CLEANUP(ox_free_ptr)
    char *labels = ox_asprintf("place=\"%s\"", config->name);
#define X(field, name, help) ox_metric_init(&s->m_##field, metrics, store_metric_kind(name), name, help, labels);
    STORE_METRICS(X)
#undef X
    return s;
}

void ox_store_settings_changed(struct ox_place *place, const struct ox_store_config *config)
{
    if (place->body != &store_body)
        return;
    struct store *s = store_of(place);
    s->cfg.sync_interval_ms = config->sync_interval_ms;
    s->cfg.reserve_bytes = config->reserve_bytes;
    s->cfg.inflight_bytes_max = config->inflight_bytes_max;
    s->cfg.compaction_percent = config->compaction_percent;
    if (config->compaction_bytes_per_s) // a run that is under way goes on at its old rate when there are to be no more
        s->cfg.compaction_bytes_per_s = config->compaction_bytes_per_s;
    compact_kick(s);
}

static void store_free_tails(struct store *s)
{
    struct ox_link *link;
    while ((link = ox_list_pop_front(&s->tails)) != NULL)
        tail_free(CONTAINER_OF(link, struct tail, link));
    if (s->next)
        tail_free(s->next);
}

void store_free(struct store *s)
{
    OX_ASSERT(ox_map_count(&s->ledgers) == 0); // every handle has been released
    journal_fini(s);
    compact_fini(s);
    maintain_fini(s);
    ox_timer_stop(&s->prepare_timer);
    ox_timer_stop(&s->space_timer);
    store_free_tails(s);
    while (s->seg_count > 0)
        segment_free(s, s->segs[s->seg_count - 1]);
    ox_free(s->segs);
    for (size_t i = 0; i < s->spare_count; i++)
        ox_free(s->spares[i]);
    ox_free(s->spares);
    ox_index_cache_fini(&s->cache);
    if (s->lock)
        ox_file_close(s->lock);
#define X(field, name, help) ox_metric_fini(&s->m_##field);
    STORE_METRICS(X)
#undef X
    ox_free(s->dir);
    ox_free(s->place.name);
    ox_free(s->place.uri);
    ox_free(s);
}

void store_capacity(struct ox_place *p, struct ox_capacity *ret)
{
    const struct store *s = store_of(p);
    bool stuck = s->stuck && s->tails.count >= STORE_TAILS_MAX;
    *ret = (struct ox_capacity){.total = s->space.total,
                                .available = s->space.available,
                                .reserve = s->cfg.reserve_bytes,
                                .step = s->cfg.segment_bytes,
                                .writable = s->open && !s->failed && !s->full && !stuck};
    for (size_t i = 0; i < s->seg_count; i++)
        ret->used_live += s->segs[i]->live;
    for (struct ox_link *link = s->tails.head.next; link != &s->tails.head; link = link->next)
        ret->used_live += CONTAINER_OF(link, struct tail, link)->planned;
}

// Closing.

static ox_step close_wait(struct ox_seq *q);
static ox_step close_seal(struct ox_seq *q);
static ox_step close_next(struct ox_seq *q);
static ox_step close_table(struct ox_seq *q);
static ox_step close_end(struct ox_seq *q);

static struct store *close_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct store, closing_seq);
}

static bool close_quiet(const struct store *s)
{
    return journal_idle(s) && !prepare_active(s) && maintain_idle(s) && compact_idle(s) && s->place.busy == 0 &&
           !ox_op_pending(&s->space_op);
}

void store_woken(struct store *s)
{
    if (s->opening) {
        recover_woken(s);
        return;
    }
    if (s->open) {
        journal_pump(s);
        maintain_kick(s);
        compact_kick(s);
    }
    if (s->closing_waits && close_quiet(s)) {
        s->closing_waits = false;
        ox_seq_resume(&s->closing_seq, OX_OK);
    }
}

static ox_step close_quieten(struct ox_seq *q, ox_step_fn next, const char *name)
{
    struct store *s = close_of(q);
    ox_step step = ox_seq_goto(q, next, name, OX_STEP_WAIT);
    s->closing_waits = true;
    store_woken(s);
    return step;
}

static ox_step close_wait(struct ox_seq *q)
{
    return close_quieten(q, close_seal, "close_seal");
}

// Seals what is not sealed, so that the next start replays nothing. Where that fails, the journal holds it all anyway.
static ox_step close_seal(struct ox_seq *q)
{
    struct store *s = close_of(q);
    struct tail *t = tail_current(s);
    if (s->failed || s->loop->dead || !s->open || ox_timer_started(&s->maintain_timer))
        return OX_GOTO(q, close_next);
    if (t && t->seg->state == SEGMENT_CURRENT)
        segment_set_state(s, t->seg, SEGMENT_SEALING);
    return ox_list_empty(&s->tails) ? OX_GOTO(q, close_next) : close_quieten(q, close_seal, "close_seal");
}

// The prepared segment is a spare again, not to be scanned at the next start.
static ox_step close_next(struct ox_seq *q)
{
    struct store *s = close_of(q);
    s->open = false;
    OX_CRASHPOINT(s->loop, "store.close.sealed");
    if (!s->next || s->loop->dead)
        return OX_GOTO(q, close_table);
    OX_CLEANUP(ox_free_ptr)
    char *from = segment_path(s, s->next->seg->number);
    OX_CLEANUP(ox_free_ptr)
    char *to = segment_spare_path(s, s->next->seg->number);
    ox_seq_bind(q, &s->closing_op, "give prepared segment back");
    ox_fs_rename(s->fs, &s->closing_op, from, to);
    return OX_WAIT(q, close_table);
}

static ox_step close_table(struct ox_seq *q)
{
    struct store *s = close_of(q);
    if (!s->table)
        return OX_GOTO(q, close_end);
    ox_seq_bind(q, &s->closing_op, "close table");
    ox_table_close(s->table, &s->closing_op);
    s->table = NULL;
    return OX_WAIT(q, close_end);
}

static ox_step close_end(struct ox_seq *q)
{
    return OX_FINISH(q, OX_OK);
}

static void close_done(struct ox_seq *q, enum ox_err err)
{
    struct store *s = close_of(q);
    struct ox_op *op = s->close_op;
    (void)err;
    enum ox_err outcome = s->loop->dead ? OX_E_SHUTDOWN : s->close_err;
    store_free(s);
    ox_op_finish(op, outcome);
}

void store_abandon(struct store *s)
{
    s->closing = true;
    prepare_hurry(s);
    ox_timer_stop(&s->prepare_timer);
    ox_timer_stop(&s->space_timer);
    ox_seq_start(&s->closing_seq, s->loop, "close store", close_wait, close_done);
}

void store_close_place(struct ox_place *p, struct ox_op *op)
{
    struct store *s = store_of(p);
    OX_ASSERT(!s->closing && s->open);
    s->close_op = op;
    s->close_err = OX_OK;
    store_abandon(s);
}
