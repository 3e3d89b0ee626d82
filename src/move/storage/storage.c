// storage.c - life of the whole: settings, start, stop; the list of places; what follows from which one is active.
#include <string.h>

#include "move/storage/control_int.h"

void ox_storage_config_init(struct ox_storage_config *c)
{
    *c = (struct ox_storage_config){
        .root = "/admin/bookie-clusters",
        .current = "",
        .window_ms = UINT64_C(15) * 24 * 3600 * 1000,
        .concurrency = 16,
        .latency_ns = 20 * OX_MS,
        .broker = "127.0.0.1:8080",
        .default_uri = "",
    };
}

void ox_storage_settings_changed(struct ox_storage *st, const struct ox_storage_config *config)
{
    struct ox_storage_config *c = &st->p.config;
    c->skip_idgen = config->skip_idgen;
    c->window_ms = config->window_ms;
    c->concurrency = config->concurrency;
    c->latency_ns = config->latency_ns;
}

bool ox_storage_activated(const struct ox_storage *st)
{
    return st->activated;
}

// ---- places ----------------------------------------------------------------------------------------------------------

static char *storage_dup(const char *text)
{
    return text ? ox_strdup(text) : NULL;
}

static void storage_place_gauge(struct ox_storage *st, const struct storage_place *p, struct ox_metric *m,
                                const char *name, const char *help, const char *more)
{
    OX_CLEANUP(ox_free_ptr)
    char *labels = ox_asprintf("cluster=\"%s\"%s", p->name, more);
    ox_metric_init(m, st->p.metrics, OX_METRIC_GAUGE, name, help, labels);
}

struct storage_place *storage_place_new(struct ox_storage *st, const char *name, const char *uri, const char *identity)
{
    static const char ledgers[] = "Ledgers that records name in a bookie cluster, as the last inventory has found";
    struct storage_place *p = ox_malloc(sizeof *p);
    p->name = ox_strdup(name);
    p->uri = storage_dup(uri);
    p->version = -1;
    p->index = STORAGE_NO_INDEX;
    memcpy(p->identity, identity, strlen(identity) + 1);
    storage_place_gauge(st, p, &p->active, "bookie_cluster_active", "1: new ledgers are made in this bookie cluster", "");
    storage_place_gauge(st, p, &p->data_ledgers, "bookie_cluster_ledgers", ledgers, ",kind=\"data\"");
    storage_place_gauge(st, p, &p->cursor_ledgers, "bookie_cluster_ledgers", ledgers, ",kind=\"cursor\"");
    ox_map_put_str(&st->places, &p->by_name, p->name);
    return p;
}

void storage_place_free(struct ox_storage *st, struct storage_place *p)
{
    ox_map_remove(&st->places, &p->by_name);
    ox_metric_fini(&p->active);
    ox_metric_fini(&p->data_ledgers);
    ox_metric_fini(&p->cursor_ledgers);
    ox_free(p->name);
    ox_free(p->uri);
    ox_free(p->status);
    json_decref(p->raw);
    ox_free(p);
}

void storage_place_take(struct storage_place *p, struct storage_entry *take_entry, int64_t version)
{
    if (!p->uri) {
        p->uri = take_entry->uri;
        take_entry->uri = NULL;
    }
    if (!*p->identity && take_entry->identity)
        memcpy(p->identity, take_entry->identity, strlen(take_entry->identity) + 1);
    ox_free(p->status);
    p->status = take_entry->status;
    take_entry->status = NULL;
    json_decref(p->raw);
    p->raw = take_entry->raw;
    take_entry->raw = NULL;
    p->version = version;
    storage_entry_fini(take_entry);
}

// ---- what follows from the active place --------------------------------------------------------------------------------

static bool storage_mode_blocks(const char *mode, bool active)
{
    if (!strcmp(mode, "OLD_CLUSTER_ONLY"))
        return active;
    return !strcmp(mode, "NEW_CLUSTER_ONLY") && !active;
}

void storage_refresh(struct ox_storage *st)
{
    struct ox_router *r = st->p.router;
    for (uint32_t i = 0; i < r->count; i++)
        ox_router_block_reads(r, i, storage_mode_blocks(st->read_mode, i == r->active));
    OX_MAP_EACH(&st->places, node) {
        struct storage_place *p = CONTAINER_OF(node, struct storage_place, by_name);
        p->active.value = p->index == r->active;
    }
    st->control->epoch.value = st->directive.epoch;
}

void ox_storage_read_mode(struct ox_storage *st, struct ox_storage_call *c, const char *mode)
{
    static const char *const modes[] = {"DUAL_READ", "OLD_CLUSTER_ONLY", "NEW_CLUSTER_ONLY"};
    if (!storage_call_begin(st, c))
        return;
    for (size_t i = 0; i < OX_COUNT(modes); i++)
        if (!strcmp(mode, modes[i])) {
            st->read_mode = modes[i];
            storage_refresh(st);
            ox_info(st->p.log, "storage.read_mode", "mode=%s", mode);
            storage_call_answer(st, c, NULL);
            return;
        }
    storage_call_fail(st, c, OX_E_INVALID,
                      "read mode \"%s\" is not known: use DUAL_READ, OLD_CLUSTER_ONLY or NEW_CLUSTER_ONLY", mode);
}

// ---- start and stop ----------------------------------------------------------------------------------------------------

void storage_stamp(struct ox_storage *st)
{
    struct ox_ml_settings *set = &st->factory->settings;
    int64_t max = st->control->bootstrap.max_ledger;
    set->stamps = st->activated;
    set->unstamped_max = st->activated && max >= 0 ? max : INT64_MAX;
}

void ox_storage_start(struct ox_storage *st, struct ox_ml_factory *f)
{
    OX_ASSERT(!st->factory && !st->stopping);
    st->factory = f;
    f->target = storage_home_hook;
    f->target_ctx = st;
    storage_stamp(st);
    if (st->control->interrupted)
        ox_warn(st->p.log, "storage.register.interrupted", "root=%s hint=" OX_LOG_Q, st->p.config.root,
                "the registration of a second bookie cluster was cut off; nothing has changed: register it once more");
    storage_watch_start(st);
    ox_ml_follow_pause(f, st->state == STORAGE_PAUSED);
    if (st->activated)
        ox_ml_follow(f);
    if (st->control->restore)
        storage_header_save(st);
    storage_orchestrate(st);
}

void storage_settle(struct ox_storage *st)
{
    const struct storage_control *control = st->control;
    if (!st->stop_op || st->calls > 0 || control->watch.seq.active || control->saver.seq.active ||
        control->stages.seq.active || control->census.seq.active)
        return;
    struct ox_op *op = st->stop_op;
    st->stop_op = NULL;
    ox_op_finish(op, OX_OK);
}

void ox_storage_stop(struct ox_storage *st, struct ox_op *op)
{
    OX_ASSERT(!st->stopping);
    ox_op_begin(op);
    st->stopping = true;
    st->stop_op = op;
    storage_watch_stop(st);
    storage_stages_stop(st);
    storage_saver_stop(st);
    storage_settle(st);
}

static void storage_free_metrics(struct storage_control *control)
{
    struct ox_metric *all[] = {&control->epoch,      &control->lag,       &control->duration,
                               &control->alarms,     &control->switch_ok, &control->switch_refused,
                               &control->switch_lost};
    for (size_t i = 0; i < OX_COUNT(all); i++)
        ox_metric_fini(all[i]);
    for (size_t i = 0; i < 9; i++)
        ox_metric_fini(&control->items[i / 3][i % 3]);
}

void ox_storage_free(struct ox_storage *st)
{
    OX_ASSERT(st->calls == 0 && !st->stop_op);
    storage_data_fini(st);
    storage_saver_fini(st);
    storage_failures_clear(st);
    storage_targets_fini(st);
    OX_MAP_EACH(&st->places, node)
        storage_place_free(st, CONTAINER_OF(node, struct storage_place, by_name));
    storage_free_metrics(st->control);
    ox_metric_fini(&st->conflicts);
    json_decref(st->control->acked);
    json_decref(st->control->missing);
    storage_bootstrap_fini(&st->control->bootstrap);
    storage_directive_fini(&st->directive);
    ox_free(st->bootstrap);
    ox_free(st->control);
    ox_free(st);
}
