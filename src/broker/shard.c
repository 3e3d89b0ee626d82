// shard.c - a broker's loop: settings, start (first nodes, number of producer names), statistics, stop.
#include "broker/shard.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/policing.h"
#include "broker/policy_scope.h"
#include "broker/producer_int.h"
#include "broker/setup.h"
#include "broker/topic_int.h"

#define TICK_TOPICS 1024u // whose statistics interval ends in one turn

void ox_broker_config_init(struct ox_broker_config *c)
{
    *c = (struct ox_broker_config){
        .cluster = "standalone",
        .service_url = "pulsar://127.0.0.1:6650",
        .web_url = "http://127.0.0.1:8080",
        .metadata_url = "memory:",
        .message_bytes_max = OX_MESSAGE_BYTES_MAX,
        .bundles = 4,
        .auto_topic_creation = true,
        .default_partitions = 1,
        .auto_subscription_creation = true,
        .persistent_topics = true,
        .non_persistent_topics = true,
        .patterns_here = true,
        .pattern_bytes_max = 50,
        .batch_index_acks = true,
        .topic_inflight_bytes = OX_TOPIC_INFLIGHT_BYTES,
        .total_inflight_bytes = OX_TOTAL_INFLIGHT_BYTES,
        .resend_ns = 300 * OX_SEC,
        .stats_interval_ns = 60 * OX_SEC,
        .metrics_topics = true,
        .metrics_logs = true,
        .dispatch_entries_max = 100,
        .failover_delay_ns = OX_SEC,
        .dispatch_bytes_max = 1024 * 1024,
        .key_points = 100,
        .delays_strict = true,
        .probe_ns = 5 * OX_SEC,
        .dedup_names_max = 10000,
        .dedup_entries = 1000,
        .dedup_idle_ns = 360 * 60 * OX_SEC,
        .topic_policies = true,
        .ttl_check_ns = 300 * OX_SEC,
        .expiry_check_ns = 300 * OX_SEC,
        .quota_check_ns = 60 * OX_SEC,
        .inactive_check_ns = 60 * OX_SEC,
        .compaction_check_ns = 60 * OX_SEC,
        .compaction_keys_bytes = 128u * 1024 * 1024,
        .scan_entries_max = 10000,
        .scan_ms_max = 120000,
    };
    ox_policies_init(&c->policies);
}

const char *ox_shard_state_name(enum ox_shard_state state)
{
    static const char *const names[] = {
#define OX_X(name) [OX_SHARD_##name] = #name,
        OX_SHARD_STATES(OX_X)
#undef OX_X
    };
    return names[state];
}

static void shard_set_state(struct ox_shard *sh, enum ox_shard_state to)
{
    static const unsigned allowed[] = {
        [OX_SHARD_NEW] = 1u << OX_SHARD_STARTING,
        [OX_SHARD_STARTING] = 1u << OX_SHARD_RUNNING | 1u << OX_SHARD_STOPPED,
        [OX_SHARD_RUNNING] = 1u << OX_SHARD_STOPPING,
        [OX_SHARD_STOPPING] = 1u << OX_SHARD_STOPPED,
        [OX_SHARD_STOPPED] = 0,
    };
    OX_ASSERT(allowed[sh->state] & 1u << to);
    ox_debug(sh->log, "shard.state", "from=%s to=%s", ox_shard_state_name(sh->state), ox_shard_state_name(to));
    sh->state = to;
}

struct shard_metric {
    size_t offset;
    enum ox_metric_kind kind;
    const char *name, *help;
};
#define METRIC(member, kind, name, help)                    \
    {                                                       \
        offsetof(struct ox_shard, member), kind, name, help \
    }
static const struct shard_metric shard_metrics[] = {
    METRIC(topics_count, OX_METRIC_GAUGE, "pulsar_broker_topics_count", "Loaded topics."),
    METRIC(subscriptions_count, OX_METRIC_GAUGE, "pulsar_broker_subscriptions_count", "Subscriptions of loaded topics."),
    METRIC(producers_count, OX_METRIC_GAUGE, "pulsar_broker_producers_count", "Connected producers."),
    METRIC(consumers_count, OX_METRIC_GAUGE, "pulsar_broker_consumers_count", "Connected consumers."),
    METRIC(in_messages, OX_METRIC_COUNTER, "oxbow_broker_in_messages_total", "Messages stored since the broker started."),
    METRIC(in_bytes, OX_METRIC_COUNTER, "oxbow_broker_in_bytes_total", "Their bytes."),
    METRIC(out_messages, OX_METRIC_COUNTER, "oxbow_broker_out_messages_total", "Messages delivered since the broker started."),
    METRIC(out_bytes, OX_METRIC_COUNTER, "oxbow_broker_out_bytes_total", "Their bytes."),
    METRIC(publish_errors, OX_METRIC_COUNTER, "oxbow_broker_publish_errors_total", "Messages that could not be stored."),
    METRIC(resends, OX_METRIC_COUNTER, "oxbow_broker_resends_total", "Messages sent again that were stored already."),
    METRIC(duplicates, OX_METRIC_COUNTER, "oxbow_broker_duplicates_total", "Messages that deduplication did not store."),
    METRIC(topic_loads, OX_METRIC_COUNTER, "oxbow_broker_topic_loads_total", "Topics loaded."),
    METRIC(topic_load_failures, OX_METRIC_COUNTER, "topic_load_failed_total", "Topics that could not be loaded."),
    METRIC(topics_loading, OX_METRIC_GAUGE, "pulsar_broker_topic_load_pending_requests", "Topics that are being loaded."),
};

static struct ox_metric *shard_metric(struct ox_shard *sh, const struct shard_metric *m)
{
    return (struct ox_metric *)(void *)((char *)sh + m->offset);
}

static struct shard_interval shard_totals(const struct ox_shard *sh)
{
    const struct ox_tail_cache *c = &sh->mledgers->cache;
    return (struct shard_interval){.cache_hits = c->hits,
                                   .cache_misses = c->misses,
                                   .cache_evictions = c->dropped,
                                   .cache_hit_bytes = c->hit_bytes,
                                   .read_miss_bytes = sh->mledgers->store_read_bytes};
}

static void shard_end_interval(struct ox_shard *sh, double seconds)
{
    struct shard_interval now = shard_totals(sh), before = sh->marks;
    sh->last = (struct shard_interval){.seconds = seconds,
                                       .cache_hits = now.cache_hits - before.cache_hits,
                                       .cache_misses = now.cache_misses - before.cache_misses,
                                       .cache_evictions = now.cache_evictions - before.cache_evictions,
                                       .cache_hit_bytes = now.cache_hit_bytes - before.cache_hit_bytes,
                                       .read_miss_bytes = now.read_miss_bytes - before.read_miss_bytes};
    sh->marks = now;
    ox_metrics_tick(sh->metrics);
}

static void shard_turn_over(struct ox_turn_hook *hook)
{
    CONTAINER_OF(hook, struct ox_shard, turn_over)->turn_ns = 0;
}

void shard_topic_gone(struct ox_topic *t)
{
    struct ox_shard *sh = t->shard;
    if (sh->tick_next == &t->by_name)
        sh->tick_next = ox_map_next(sh->tick_next);
    gauges_topic_gone(t);
}

static void shard_tick_begin(struct ox_shard *sh)
{
    uint64_t now = ox_now_ns(sh->loop);
    sh->tick_seconds = (double)(now - sh->tick_ns) / (double)OX_SEC;
    sh->tick_ns = now;
    sh->tick_next = ox_map_first(&sh->topics);
    shard_end_interval(sh, sh->tick_seconds);
}

// Many topics have their turns one portion after another; each is as long after its last one as any other.
static void shard_tick(struct ox_timer *timer)
{
    struct ox_shard *sh = CONTAINER_OF(timer, struct ox_shard, tick);
    if (!sh->tick_next)
        shard_tick_begin(sh);
    for (unsigned n = 0; sh->tick_next && n < TICK_TOPICS; n++) {
        struct ox_topic *t = CONTAINER_OF(sh->tick_next, struct ox_topic, by_name);
        sh->tick_next = ox_map_next(sh->tick_next);
        topic_tick(t, sh->tick_seconds);
    }
    ox_timer_start(&sh->tick, sh->tick_next ? OX_MS : sh->config.stats_interval_ns);
}

// The metrics with labels.
static void shard_traffic(struct ox_shard *sh)
{
    static const char *const topics[] = {"system_topic=\"false\"", "system_topic=\"true\""};
    static const char *const subscriptions[] = {"system_subscription=\"false\"", "system_subscription=\"true\""};
    static const char *const quotas[] = {"quota_type=\"size\"", "quota_type=\"time\""};
    for (size_t i = 0; i < 2; i++) {
        ox_metric_init(&sh->in_bytes_by[i], sh->metrics, OX_METRIC_COUNTER, "pulsar_broker_in_bytes_total",
                       "Bytes published since the broker started.", topics[i]);
        ox_metric_init(&sh->out_bytes_by[i], sh->metrics, OX_METRIC_COUNTER, "pulsar_broker_out_bytes_total",
                       "Bytes delivered since the broker started.", subscriptions[i]);
        ox_metric_init(&sh->evictions[i], sh->metrics, OX_METRIC_COUNTER,
                       "pulsar_broker_storage_backlog_quota_exceeded_evictions_total",
                       "How often a backlog beyond its quota was cut down.", quotas[i]);
    }
}

static void shard_traffic_fini(struct ox_shard *sh)
{
    for (size_t i = 0; i < 2; i++) {
        ox_metric_fini(&sh->in_bytes_by[i]);
        ox_metric_fini(&sh->out_bytes_by[i]);
        ox_metric_fini(&sh->evictions[i]);
    }
}

static void shard_summaries(struct ox_shard *sh)
{
    static const char *const publish[] = {"0.0", "0.5", "0.95", "0.99", "0.999", "0.9999", "1.0", NULL};
    static const char *const load[] = {"0.5", "0.75", "0.95", "0.99", "0.999", "0.9999", NULL};
    ox_summary_init(&sh->publish_latency, sh->metrics, "pulsar_broker_publish_latency",
                    "Milliseconds from a send to its receipt.", publish);
    ox_summary_init(&sh->topic_load_times, sh->metrics, "pulsar_topic_load_times",
                    "Milliseconds that topics took to load.", load);
}

void ox_shard_init(struct ox_shard *sh)
{
    sh->state = OX_SHARD_NEW;
    ox_list_init(&sh->blocked);
    ox_list_init(&sh->free_publishes);
    ox_list_init(&sh->walks);
    ox_list_init(&sh->rounds);
    ox_list_init(&sh->nonpersistent);
    ox_timer_init(&sh->tick, sh->loop, shard_tick);
    sh->turn_over.run = shard_turn_over;
    sh->policing = policing_new(sh);
    sh->compactions = compactions_new(sh);
    publish_limits_init(sh);
    for (size_t i = 0; i < OX_COUNT(shard_metrics); i++) {
        const struct shard_metric *m = &shard_metrics[i];
        ox_metric_init(shard_metric(sh, m), sh->metrics, m->kind, m->name, m->help, NULL);
    }
    shard_traffic(sh);
    shard_summaries(sh);
}

// ---- changed settings

void ox_shard_settings_changed(struct ox_shard *sh, const struct ox_broker_config *before)
{
    publish_limits_follow(sh);
    scopes_settings_changed(sh);
    if (sh->state != OX_SHARD_RUNNING)
        return;
    policing_follow(sh->policing);
    compactions_follow(sh->compactions, before);
    if (sh->config.stats_interval_ns != before->stats_interval_ns && !sh->tick_next)
        ox_timer_start(&sh->tick, sh->config.stats_interval_ns);
    blocked_wake(sh);
}

// ---- start

static ox_step start_node(struct ox_seq *s);
static ox_step start_counter(struct ox_seq *s);
static ox_step start_numbered(struct ox_seq *s);

static ox_step start_node_put(struct ox_seq *s)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    if (s->err == OX_OK)
        ox_free(sh->put.path);
    else if (s->err != OX_E_BAD_VERSION)
        return OX_FINISH(s, s->err);
    sh->setup->at++;
    return OX_GOTO(s, start_node);
}

// One node after another: each is made only where it is missing.
static ox_step start_node(struct ox_seq *s)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    struct shard_setup *setup = sh->setup;
    if (setup->at == setup->count)
        return OX_GOTO(s, start_counter);
    struct setup_node *node = &setup->nodes[setup->at];
    ox_seq_bind(s, &sh->put.op, "setup.put");
    ox_meta_put(sh->meta, &sh->put, node->path, ox_buf_static(node->value, strlen(node->value)), OX_META_ABSENT, 0);
    return OX_WAIT(s, start_node_put);
}

static ox_step start_counter(struct ox_seq *s)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    ox_seq_bind(s, &sh->put.op, "setup.producer_names");
    ox_meta_put(sh->meta, &sh->put, "/counters/producer-name/-", ox_buf_empty(), OX_META_ABSENT,
                OX_META_EPHEMERAL | OX_META_SEQUENTIAL);
    return OX_WAIT(s, start_numbered);
}

static ox_step start_numbered(struct ox_seq *s)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    if (s->err)
        return OX_FINISH(s, s->err);
    const char *digits = strrchr(sh->put.path, '-');
    int64_t number = 0;
    enum ox_err err = digits ? ox_parse_i64(digits + 1, 0, INT64_MAX, &number) : OX_E_CORRUPT;
    ox_free(sh->put.path);
    sh->producer_epoch = (uint64_t)number;
    return OX_FINISH(s, err);
}

static void start_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    setup_free(sh->setup);
    sh->setup = NULL;
    shard_set_state(sh, err ? OX_SHARD_STOPPED : OX_SHARD_RUNNING);
    if (err)
        ox_error(sh->log, "shard.start.failed", "step=%s error=%s", s->step, ox_err_name(err));
    else
        ox_info(sh->log, "shard.started", "cluster=%s producer_epoch=%llu", sh->config.cluster,
                (unsigned long long)sh->producer_epoch);
    sh->tick_ns = ox_now_ns(sh->loop);
    if (!err)
        ox_timer_start(&sh->tick, sh->config.stats_interval_ns);
    if (!err)
        policing_start(sh->policing);
    if (!err)
        compactions_start(sh->compactions);
    ox_op_finish(sh->user_op, err);
}

void ox_shard_start(struct ox_shard *sh, struct ox_op *op)
{
    ox_op_begin(op);
    shard_set_state(sh, OX_SHARD_STARTING);
    sh->user_op = op;
    sh->setup = setup_new(&sh->config);
    ox_seq_start(&sh->seq, sh->loop, "shard.start", start_node, start_done);
}

// ---- stop

static ox_step stop_topic(struct ox_seq *s);

static bool shard_is_busy(const struct ox_shard *sh)
{
    return ox_map_count(&sh->scopes) > 0 || policing_is_busy(sh->policing);
}

void shard_quieter(struct ox_shard *sh)
{
    if (!sh->stop_waits || shard_is_busy(sh))
        return;
    sh->stop_waits = false;
    ox_seq_resume(&sh->seq, OX_OK);
}

static ox_step stop_topic_closed(struct ox_seq *s)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    if (s->err && !sh->stop_err)
        sh->stop_err = s->err;
    return OX_GOTO(s, stop_topic);
}

// All topics begin to close at once; they are waited for one after another.
static ox_step stop_topic(struct ox_seq *s)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    struct ox_map_node *n = ox_map_first(&sh->topics);
    sh->stop_waits = !n && shard_is_busy(sh);
    if (sh->stop_waits)
        return OX_WAIT(s, stop_topic);
    if (!n)
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &sh->step, "topic.close");
    topic_close(CONTAINER_OF(n, struct ox_topic, by_name), &sh->step, OX_E_TOPIC_FENCED);
    return OX_WAIT(s, stop_topic_closed);
}

static ox_step stop_begin(struct ox_seq *s)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    OX_MAP_EACH(&sh->topics, n)
        topic_close(CONTAINER_OF(n, struct ox_topic, by_name), NULL, OX_E_TOPIC_FENCED);
    return OX_GOTO(s, stop_topic);
}

static void stop_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_shard *sh = CONTAINER_OF(s, struct ox_shard, seq);
    (void)err;
    shard_set_state(sh, OX_SHARD_STOPPED);
    ox_op_finish(sh->user_op, sh->stop_err);
}

void ox_shard_stop(struct ox_shard *sh, struct ox_op *op)
{
    ox_op_begin(op);
    shard_set_state(sh, OX_SHARD_STOPPING);
    ox_timer_stop(&sh->tick);
    policing_stop(sh->policing);
    compactions_stop(sh->compactions);
    sh->user_op = op;
    sh->stop_err = OX_OK;
    ox_seq_start(&sh->seq, sh->loop, "shard.stop", stop_begin, stop_done);
}

void ox_shard_fini(struct ox_shard *sh)
{
    OX_ASSERT(sh->state == OX_SHARD_NEW || sh->state == OX_SHARD_STOPPED);
    OX_ASSERT(ox_map_count(&sh->topics) == 0 && ox_map_count(&sh->scopes) == 0);
    policing_free(sh->policing);
    compactions_free(sh->compactions);
    publish_pool_free(sh);
    ox_timer_stop(&sh->unblock);
    ox_timer_stop(&sh->tick);
    for (size_t i = 0; i < OX_COUNT(shard_metrics); i++)
        ox_metric_fini(shard_metric(sh, &shard_metrics[i]));
    shard_traffic_fini(sh);
    ox_summary_fini(&sh->publish_latency);
    ox_summary_fini(&sh->topic_load_times);
    ox_turn_end_cancel(sh->loop, &sh->turn_over);
}
