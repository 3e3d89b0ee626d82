// factory.c - what all logs of a process share, and Pulsar's default settings.
#include "mledger/mledger_int.h"

#define MINUTE_NS (60 * OX_SEC)
#define SHRINK_BYTES (UINT64_C(1) << 20) // of the cache, given up in one turn

void ox_ml_settings_init(struct ox_ml_settings *s)
{
    *s = (struct ox_ml_settings){
        .ledger_entries_max = 50000,
        .ledger_bytes_max = UINT64_C(2048) << 20,
        .rollover_ns_min = 10 * MINUTE_NS,
        .rollover_ns_max = 240 * MINUTE_NS,
        .cursor_entries_max = 50000,
        .cursor_rollover_ns = 14400 * OX_SEC,
        .ranges_persisted_max = 10000,
        .ranges_in_node_max = 1000,
        .batch_sets_persisted_max = 10000,
        .mark_delete_interval_ns = OX_SEC,
        .ack_flush_ns = 10 * OX_MS,
        .ack_flush_count = 1000,
        .guarded_records = true,
        .unstamped_max = INT64_MAX,
        .away_read_ns = 5 * OX_SEC,
        .follow_max = 16,
    };
}

static void factory_counter(struct ox_ml_factory *f, struct ox_metric *m, const char *name, const char *help)
{
    ox_metric_init(m, f->metrics, OX_METRIC_COUNTER, name, help, NULL);
}

static void factory_shrink(struct ox_timer *timer)
{
    struct ox_ml_factory *f = CONTAINER_OF(timer, struct ox_ml_factory, shrink);
    uint64_t used = OX_MIN(f->cache.bytes_max, f->cache.bytes), step = OX_MIN(used, SHRINK_BYTES);
    ox_tail_cache_limit(&f->cache, OX_MAX(f->cache_bytes, used - step));
    if (f->cache.bytes_max > f->cache_bytes)
        ox_timer_start(timer, OX_MS);
}

void ox_ml_factory_resize(struct ox_ml_factory *f, uint64_t cache_bytes)
{
    f->cache_bytes = cache_bytes;
    if (cache_bytes >= f->cache.bytes_max)
        ox_tail_cache_limit(&f->cache, cache_bytes);
    else
        ox_timer_start(&f->shrink, 0);
}

void ox_ml_factory_init(struct ox_ml_factory *f, uint64_t cache_bytes)
{
    ox_tail_cache_init(&f->cache, cache_bytes);
    f->cache_bytes = cache_bytes;
    ox_timer_init(&f->shrink, f->loop, factory_shrink);
    f->open = f->claims = (struct ox_map){0};
    ox_list_init(&f->handles);
    ox_list_init(&f->discards);
    ml_follow_init(f);
    ox_timer_init(&f->idle, f->loop, ml_handles_tick);
    factory_counter(f, &f->appends, "oxbow_ml_appends_total", "Entries acknowledged by all logs");
    factory_counter(f, &f->append_bytes, "oxbow_ml_append_bytes_total", "Bytes of those entries");
    factory_counter(f, &f->append_failures, "oxbow_ml_append_failures_total", "Appends that ended with an error");
    factory_counter(f, &f->rollovers, "oxbow_ml_rollovers_total", "Ledgers replaced by a next one");
    factory_counter(f, &f->trimmed_ledgers, "oxbow_ml_trimmed_ledgers_total", "Ledgers dropped because nobody needed them");
    factory_counter(f, &f->lost_entries, "oxbow_ml_lost_entries_total", "Entries passed because they could not be read");
    factory_counter(f, &f->lost_ledgers, "oxbow_ml_lost_ledgers_total", "Ledgers that their place does not have any more");
    factory_counter(f, &f->orphans, "oxbow_ml_orphans_total", "Ledgers without an owner that the start-up sweep deleted");
    factory_counter(f, &f->kept_orphans, "oxbow_ml_kept_orphans_total", "Data ledgers whose topic has no node, kept");
    factory_counter(f, &f->cursor_flushes, "oxbow_ml_cursor_flushes_total", "Cursor positions written");
}

void ox_ml_factory_fini(struct ox_ml_factory *f)
{
    OX_ASSERT(ox_map_count(&f->open) == 0 && ox_map_count(&f->claims) == 0 && ox_list_empty(&f->handles));
    struct ox_metric *all[] = {&f->appends,         &f->append_bytes,  &f->append_failures, &f->rollovers,
                               &f->trimmed_ledgers, &f->lost_entries,  &f->lost_ledgers,    &f->orphans,
                               &f->kept_orphans,    &f->cursor_flushes};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        ox_metric_fini(all[i]);
    ox_timer_stop(&f->idle);
    ox_timer_stop(&f->shrink);
    ox_free(f->sweep_bounds);
    ml_discard_fini(f);
    ml_follow_fini(f);
    ox_tail_cache_fini(&f->cache);
}
