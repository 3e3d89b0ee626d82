// pace.c - the data half's state, how fast it works, and what it counts.
#include <string.h>

#include "move/storage/data_int.h"

static void pace_tick(struct ox_timer *t);

static void data_counter(struct storage_data *d, struct ox_metric *m, enum ox_metric_kind kind, const char *name,
                         const char *help)
{
    ox_metric_init(m, d->st->p.metrics, kind, name, help, NULL);
}

struct storage_data *data_get(struct ox_storage *st)
{
    if (st->moving)
        return st->moving;
    struct storage_data *d = ox_malloc(sizeof *d);
    st->moving = d;
    d->st = st;
    d->flying.max = DATA_FLYING_BYTES;
    throttle_init(&d->copy, st->p.loop);
    throttle_init(&d->verify, st->p.loop);
    ox_timer_init(&d->tick, st->p.loop, pace_tick);
    ox_list_init(&d->parked);
    ox_list_init(&d->labelled);
    data_counter(d, &d->m_entries, OX_METRIC_COUNTER, "bookie_cluster_copied_entries_total",
                 "Entries copied to another place and compared");
    data_counter(d, &d->m_throttle, OX_METRIC_GAUGE, "bookie_cluster_throttle_bytes",
                 "Bytes a second that copying may take now; 0: no limit");
    data_counter(d, &d->m_eta, OX_METRIC_GAUGE, "bookie_cluster_eta_seconds",
                 "Until all data is moved, at the present rate; -1: not known");
    d->m_eta.value = -1;
    data_throttle_apply(d);
    return d;
}

void storage_data_fini(struct ox_storage *st)
{
    struct storage_data *d = st->moving;
    if (!d)
        return;
    OX_ASSERT(!d->run && d->sweeps == 0 && d->paced == 0);
    throttle_fini(&d->copy);
    throttle_fini(&d->verify);
    OX_LIST_EACH(&d->labelled, link) {
        struct data_metric *m = CONTAINER_OF(link, struct data_metric, link);
        ox_metric_fini(&m->metric);
        ox_free(m);
    }
    ox_metric_fini(&d->m_entries);
    ox_metric_fini(&d->m_throttle);
    ox_metric_fini(&d->m_eta);
    ox_free(d);
    st->moving = NULL;
}

// ---- counting

static struct ox_metric *data_metric(struct storage_data *d, enum ox_metric_kind kind, const char *name,
                                     const char *help, const char *labels)
{
    OX_LIST_EACH(&d->labelled, link) {
        struct data_metric *m = CONTAINER_OF(link, struct data_metric, link);
        if (strcmp(m->metric.name, name) == 0 && strcmp(m->metric.labels, labels) == 0)
            return &m->metric;
    }
    struct data_metric *m = ox_malloc(sizeof *m);
    ox_metric_init(&m->metric, d->st->p.metrics, kind, name, help, labels);
    ox_list_push_back(&d->labelled, &m->link);
    return &m->metric;
}

void data_count(struct storage_data *d, const char *name, const char *help, const char *labels, int64_t n)
{
    data_metric(d, OX_METRIC_COUNTER, name, help, labels)->value += n;
}

void data_gauge(struct storage_data *d, const char *name, const char *help, const char *labels, int64_t value)
{
    data_metric(d, OX_METRIC_GAUGE, name, help, labels)->value = value;
}

void data_count_error(struct storage_data *d, enum ox_err reason)
{
    OX_CLEANUP(ox_free_ptr)
    char *labels = ox_asprintf("reason=\"%s\"", ox_err_name(reason));
    data_count(d, "bookie_cluster_copy_errors_total", "Ledgers that could not be copied, by reason", labels, 1);
}

// ---- pacing

// The lower of what is configured and what clients leave.
void data_throttle_apply(struct storage_data *d)
{
    uint64_t bytes = d->st->bytes_per_s;
    if (d->yield > 0 && (bytes == 0 || d->yield < bytes))
        bytes = d->yield;
    throttle_set(&d->copy, bytes, d->st->ops_per_s);
    throttle_set(&d->verify, bytes, d->st->ops_per_s);
    d->m_throttle.value = (int64_t)bytes;
}

// True if clients append and wait longer than the setting allows.
static bool pace_clients_wait(struct storage_data *d)
{
    const struct ox_ml_factory *f = d->st->factory;
    uint64_t limit_ns = d->st->p.config.latency_ns;
    uint64_t waited_ns = f->probe ? ox_now_ns(d->st->p.loop) - f->probe_ns : 0; // an append that is still under way
    bool appends = f->appends.value != d->seen_appends;
    d->seen_appends = f->appends.value;
    return limit_ns > 0 && (waited_ns > limit_ns || (appends && f->append_ns > limit_ns));
}

// Halves what copying takes while clients wait, then gives back a quarter at each tick until the rate at which it began is passed.
static void pace_yield(struct storage_data *d, uint64_t rate)
{
    uint64_t before = d->yield;
    if (pace_clients_wait(d)) {
        if (d->yield == 0)
            d->yield = d->yield_from = OX_MAX(rate, (uint64_t)DATA_YIELD_MIN);
        d->yield = OX_MAX(d->yield / 2, (uint64_t)DATA_YIELD_MIN);
    } else if (d->yield > 0) {
        d->yield += d->yield / 4;
        if (d->yield > d->yield_from + d->yield_from / 2)
            d->yield = 0;
    }
    if (d->yield != before)
        data_throttle_apply(d);
}

static void pace_measure(struct storage_data *d)
{
    struct storage_progress *p = &d->st->data;
    p->bytes_per_s = d->rate;
    bool over = p->over || p->bytes >= p->bytes_total;
    d->m_eta.value = over ? 0 : data_seconds(d, p->bytes_total - p->bytes, d->rate);
}

static void pace_tick(struct ox_timer *t)
{
    struct storage_data *d = CONTAINER_OF(t, struct storage_data, tick);
    uint64_t now = ox_now_ns(t->loop), ns = now - d->seen_ns;
    uint64_t rate = ns > 0 ? (uint64_t)((double)(d->copy.taken - d->seen_bytes) * (double)OX_SEC / (double)ns) : d->rate;
    d->seen_bytes = d->copy.taken;
    d->seen_ns = now;
    uint64_t n = OX_MIN(d->ticks++, UINT64_C(31)); // a mean over all ticks, then over about three seconds
    d->rate = (d->rate * n + rate) / (n + 1);
    pace_yield(d, d->rate);
    pace_measure(d);
    if (d->st->stopping || (d->run && !data_run_goes_on(d->run))) { // whoever waits for a share has nothing to wait for
        throttle_wake(&d->copy);
        throttle_wake(&d->verify);
    }
    ox_timer_start(&d->tick, DATA_TICK_NS);
}

void data_pace_start(struct storage_data *d)
{
    if (d->paced++ > 0)
        return;
    d->seen_bytes = d->copy.taken;
    d->seen_ns = ox_now_ns(d->st->p.loop);
    d->seen_appends = d->st->factory->appends.value;
    d->rate = d->yield = d->ticks = 0;
    data_throttle_apply(d);
    ox_timer_start(&d->tick, DATA_TICK_NS);
}

void data_pace_stop(struct storage_data *d)
{
    OX_ASSERT(d->paced > 0);
    if (--d->paced == 0)
        ox_timer_stop(&d->tick);
}

int64_t data_seconds(const struct storage_data *d, uint64_t bytes, uint64_t bytes_per_s)
{
    uint64_t rate = bytes_per_s > 0 ? bytes_per_s : d->st->bytes_per_s > 0 ? d->st->bytes_per_s : d->rate;
    return rate > 0 ? (int64_t)((bytes + rate - 1) / rate) : -1;
}
