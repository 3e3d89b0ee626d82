// gauges.c - walking over the topics: one row for each thing, or sums by namespace.
#include "broker/gauges.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/compaction.h"
#include "broker/delayed.h"
#include "broker/producer.h"
#include "broker/publish_hist.h"
#include "broker/shared.h"
#include "broker/subscription_int.h"

#define STEPS_A_LOOK 8u // between two looks at the clock
#define STEPS_MAX 4096u // in one portion, whatever the clock says

#define OX_X(member, level) static const struct ox_metric_column member##_columns[] = {OX_GAUGE_COLUMNS_##level};
OX_GAUGE_TABLES(OX_X)
#undef OX_X

// A namespace with topics: its labels, and its rows (the first two where rows are sums).
struct gauges_namespace {
    struct ox_map_node by_name;
    char *name;
    struct ox_str labels; // `cluster="..",namespace=".."`
    size_t row, topics, subscriptions, consumers;
    size_t logs; // SIZE_MAX: it has no persistent topic
};

struct gauges_walk {
    struct ox_shard *shard;
    bool by_topic, by_consumer, by_producer, by_log, split;
    uint64_t began_ns;
    struct ox_map namespaces;    // of struct gauges_namespace
    struct ox_map_node *next;    // of the shard's topics; NULL: that was all
    struct ox_link in_shard;     // in shard->walks
    struct ox_topic *topic;      // at work, held; NULL: none
    struct gauges_namespace *ns; // of it
    struct ox_str subscriptions; // names of it, each with its zero
    size_t subscriptions_at;
    struct ox_str labels;              // of it
    struct ox_str line;                // of what is below it
    double sum[OX_GAUGES_OF_BROKER];   // of all topics
    double values[OX_GAUGES_OF_TOPIC]; // of the topic
};

static void values_none(double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (double)NAN;
}

// Adds values to a row of sums; what is not there changes nothing.
static void row_add(const struct ox_metric_table *t, size_t row, const double *values)
{
    double *sums = ox_metric_table_row(t, row);
    for (size_t i = 0; i < t->column_count; i++) {
        if (!isnan(values[i]))
            sums[i] = isnan(sums[i]) ? values[i] : sums[i] + values[i];
    }
}

static void row_put(struct ox_metric_table *t, const struct ox_str *labels, const double *values)
{
    size_t row = ox_metric_table_add(t, ox_str_get(labels), labels->len);
    memcpy(ox_metric_table_row(t, row), values, t->column_count * sizeof *values);
}

// ---- labels

static void label_add(struct ox_str *labels, const char *name, const char *value)
{
    if (labels->len)
        ox_str_add(labels, ",", 1);
    ox_str_adds(labels, name);
    ox_str_adds(labels, "=\"");
    ox_metric_escape(labels, value);
    ox_str_add(labels, "\"", 1);
}

static void label_number(struct ox_str *labels, const char *name, long long value)
{
    ox_str_addf(labels, ",%s=\"%lld\"", name, value);
}

static void topic_labels(struct gauges_walk *w)
{
    const struct ox_topic_name *name = &w->topic->name;
    OX_CLEANUP(ox_free_ptr)
    char *base = w->split ? ox_topic_name_base(name) : NULL;
    ox_str_truncate(&w->labels, 0);
    ox_str_add(&w->labels, ox_str_get(&w->ns->labels), w->ns->labels.len);
    label_add(&w->labels, "topic", w->split ? base : name->full);
    if (w->split)
        label_number(&w->labels, "partition", name->partition);
}

static const struct ox_str *line_begin(struct gauges_walk *w, const char *name, const char *value)
{
    ox_str_truncate(&w->line, 0);
    ox_str_add(&w->line, w->labels.data, w->labels.len);
    label_add(&w->line, name, value);
    return &w->line;
}

// ---- namespaces

static struct gauges_namespace *namespace_new(struct ox_gauges *g, const char *name)
{
    struct gauges_walk *w = g->walk;
    struct gauges_namespace *ns = ox_malloc(sizeof *ns);
    ns->name = ox_strdup(name);
    ns->logs = SIZE_MAX;
    label_add(&ns->labels, "cluster", w->shard->config.cluster);
    label_add(&ns->labels, "namespace", name);
    ns->row = ox_metric_table_add(&g->namespaces, ns->labels.data, ns->labels.len);
    ox_metric_table_row(&g->namespaces, ns->row)[OX_GAUGE_TOPICS_COUNT] = 0;
    if (!w->by_topic) {
        ns->topics = ox_metric_table_add(&g->topics, ns->labels.data, ns->labels.len);
        ns->subscriptions = ox_metric_table_add(&g->subscriptions, ns->labels.data, ns->labels.len);
        ns->consumers = ox_metric_table_add(&g->consumers, ns->labels.data, ns->labels.len);
    }
    ox_map_put_str(&w->namespaces, &ns->by_name, ns->name);
    return ns;
}

static struct gauges_namespace *namespace_get(struct ox_gauges *g, const char *name)
{
    struct ox_map_node *node = ox_map_find_str(&g->walk->namespaces, name);
    return node ? CONTAINER_OF(node, struct gauges_namespace, by_name) : namespace_new(g, name);
}

static void namespace_free(struct gauges_walk *w, struct gauges_namespace *ns)
{
    ox_map_remove(&w->namespaces, &ns->by_name);
    ox_str_fini(&ns->labels);
    ox_free(ns->name);
    ox_free(ns);
}

// ---- logs

static void log_interval(double *v, const struct publish_interval *last, double seconds)
{
    for (size_t i = 0; i < PUBLISH_LATENCIES; i++)
        v[OX_GAUGE_ML_ADDENTRYLATENCYBUCKETS_0_0_0_5 + i] = seconds > 0 ? last->latencies[i] / seconds : 0;
    for (size_t i = 0; i < PUBLISH_SIZES; i++)
        v[OX_GAUGE_ML_ENTRYSIZEBUCKETS_0_0_128_0 + i] = seconds > 0 ? last->sizes[i] / seconds : 0;
    v[OX_GAUGE_ML_ADDENTRYSUCCEED] = last->entries;
}

static void log_fill(const struct gauges_walk *w, double *v)
{
    static const struct publish_interval none;
    const struct ox_topic *t = w->topic;
    double seconds = w->shard->last.seconds;
    log_interval(v, t->hist ? &t->hist->last : &none, seconds);
    v[OX_GAUGE_ML_ADDENTRYBYTESRATE] = t->in.bytes_per_s;
    v[OX_GAUGE_ML_ADDENTRYWITHREPLICASBYTESRATE] = t->in.bytes_per_s;
    v[OX_GAUGE_ML_ADDENTRYMESSAGESRATE] = t->in.entries_per_s;
    v[OX_GAUGE_ML_READENTRIESRATE] = t->read.entries_per_s;
    v[OX_GAUGE_ML_READENTRIESBYTESRATE] = t->read.bytes_per_s;
    v[OX_GAUGE_ML_READENTRIESSUCCEEDED] = (double)(uint64_t)(t->read.entries_per_s * seconds + 0.5);
    v[OX_GAUGE_ML_READENTRIESOPSCACHEMISSESRATE] = t->read_store.entries_per_s;
    v[OX_GAUGE_ML_NUMBEROFMESSAGESINBACKLOG] = w->values[OX_GAUGE_MSG_BACKLOG];
    v[OX_GAUGE_ML_STOREDMESSAGESSIZE] = (double)t->ml->total_bytes;
}

static void log_put(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    double values[OX_GAUGES_OF_LOG];
    if (!w->by_log || !w->topic->ml)
        return;
    if (w->ns->logs == SIZE_MAX) {
        struct ox_str labels = {0};
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_asprintf("%s/persistent", w->ns->name);
        label_add(&labels, "cluster", w->shard->config.cluster);
        label_add(&labels, "namespace", name);
        w->ns->logs = ox_metric_table_add(&g->logs, labels.data, labels.len);
        ox_str_fini(&labels);
    }
    log_fill(w, values);
    row_add(&g->logs, w->ns->logs, values);
}

// ---- consumers and producers

static void consumer_put(struct ox_gauges *g, const struct ox_consumer *c, const struct ox_str *subscription)
{
    struct gauges_walk *w = g->walk;
    double v[OX_GAUGES_OF_CONSUMER] = {[OX_GAUGE_CONSUMER_MSG_RATE_OUT] = c->out.messages_per_s,
                                       [OX_GAUGE_CONSUMER_MSG_THROUGHPUT_OUT] = c->out.bytes_per_s,
                                       [OX_GAUGE_CONSUMER_MSG_ACK_RATE] = c->acks.messages_per_s,
                                       [OX_GAUGE_CONSUMER_MSG_RATE_REDELIVER] = c->again.messages_per_s,
                                       [OX_GAUGE_CONSUMER_UNACKED_MESSAGES] = c->unacked,
                                       [OX_GAUGE_CONSUMER_BLOCKED_ON_UNACKED_MESSAGES] = c->held_back,
                                       [OX_GAUGE_CONSUMER_AVAILABLE_PERMITS] = (double)c->permits};
    if (!w->by_topic) {
        row_add(&g->consumers, w->ns->consumers, v);
        return;
    }
    struct ox_str labels = {0};
    ox_str_add(&labels, subscription->data, subscription->len);
    label_add(&labels, "consumer_name", c->name);
    label_number(&labels, "consumer_id", (long long)c->id);
    row_put(&g->consumers, &labels, v);
    ox_str_fini(&labels);
}

static void producers_put(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    if (!w->by_producer || !w->by_topic)
        return;
    OX_LIST_EACH(&w->topic->producers, link) {
        const struct ox_producer *p = CONTAINER_OF(link, struct ox_producer, link);
        double v[OX_GAUGES_OF_PRODUCER] = {[OX_GAUGE_PRODUCER_MSG_RATE_IN] = p->in.messages_per_s,
                                           [OX_GAUGE_PRODUCER_MSG_THROUGHPUT_IN] = p->in.bytes_per_s,
                                           [OX_GAUGE_PRODUCER_MSG_AVERAGE_SIZE] = ox_rate_mean_bytes(&p->in)};
        (void)line_begin(w, "producer_name", p->name);
        label_number(&w->line, "producer_id", (long long)p->id);
        row_put(&g->producers, &w->line, v);
    }
}

// ---- subscriptions

static double delayed_bytes(const struct ox_subscription *s)
{
    if (!s->cursor || !s->dispatcher || (s->type != OX_SUB_SHARED && s->type != OX_SUB_KEY_SHARED) || !s->topic->ml)
        return 0;
    return (double)(shared_of(s->dispatcher)->delayed.count * sizeof(struct ox_delayed_item));
}

static void subscription_times(const struct ox_subscription *s, double *v)
{
    v[OX_GAUGE_SUBSCRIPTION_LAST_EXPIRE_TIMESTAMP] = (double)s->last_expired_ms;
    v[OX_GAUGE_SUBSCRIPTION_LAST_ACKED_TIMESTAMP] = (double)s->last_acked_ms;
    v[OX_GAUGE_SUBSCRIPTION_LAST_CONSUMED_TIMESTAMP] = (double)s->last_consumed_ms;
    v[OX_GAUGE_SUBSCRIPTION_LAST_CONSUMED_FLOW_TIMESTAMP] = (double)s->last_flow_ms;
    v[OX_GAUGE_SUBSCRIPTION_LAST_MARK_DELETE_ADVANCED_TIMESTAMP] = s->cursor ? (double)s->cursor->last_active_ms : 0;
}

static void subscription_fill(const struct ox_subscription *s, const struct ox_subscription_stats *f, double *v)
{
    const struct ox_rate *dropped = ox_subscription_dropped(s);
    uint64_t delayed = OX_MIN(s->delayed, f->backlog_entries);
    v[OX_GAUGE_SUBSCRIPTION_BACK_LOG] = (double)f->backlog_entries;
    v[OX_GAUGE_SUBSCRIPTION_BACK_LOG_NO_DELAYED] = (double)(f->backlog_entries - delayed);
    v[OX_GAUGE_SUBSCRIPTION_DELAYED] = (double)s->delayed;
    v[OX_GAUGE_SUBSCRIPTION_DELAYED_MESSAGE_INDEX_SIZE_BYTES] = delayed_bytes(s);
    v[OX_GAUGE_SUBSCRIPTION_IN_REPLAY] = (double)f->waiting;
    v[OX_GAUGE_SUBSCRIPTION_UNACKED_MESSAGES] = (double)f->unacked;
    v[OX_GAUGE_SUBSCRIPTION_BLOCKED_ON_UNACKED_MESSAGES] = s->held_back;
    v[OX_GAUGE_SUBSCRIPTION_MSG_RATE_OUT] = s->out.messages_per_s;
    v[OX_GAUGE_SUBSCRIPTION_MSG_THROUGHPUT_OUT] = s->out.bytes_per_s;
    v[OX_GAUGE_SUBSCRIPTION_MSG_ACK_RATE] = f->acks_per_s;
    v[OX_GAUGE_SUBSCRIPTION_MSG_RATE_REDELIVER] = f->again_per_s;
    v[OX_GAUGE_SUBSCRIPTION_MSG_RATE_EXPIRED] = s->expired_per_s;
    v[OX_GAUGE_SUBSCRIPTION_TOTAL_MSG_EXPIRED] = (double)s->expired;
    v[OX_GAUGE_SUBSCRIPTION_MSG_DROP_RATE] = dropped ? dropped->messages_per_s : 0;
    v[OX_GAUGE_SUBSCRIPTION_CONSUMERS_COUNT] = (double)f->consumers;
    v[OX_GAUGE_OUT_MESSAGES_TOTAL] = (double)s->out.messages;
    v[OX_GAUGE_OUT_BYTES_TOTAL] = (double)s->out.bytes;
    subscription_times(s, v);
}

// Adds what a topic's figures say of its subscriptions.
static void subscription_sum(struct gauges_walk *w, const struct ox_subscription *s, const struct ox_subscription_stats *f)
{
    double *v = w->values;
    v[OX_GAUGE_SUBSCRIPTIONS_COUNT]++;
    v[OX_GAUGE_CONSUMERS_COUNT] += (double)f->consumers;
    v[OX_GAUGE_MSG_BACKLOG] += (double)f->backlog_entries;
    v[OX_GAUGE_DELAYED_MESSAGE_INDEX_SIZE_BYTES] += delayed_bytes(s);
    if (s->durable)
        v[OX_GAUGE_STORAGE_BACKLOG_SIZE] = OX_MAX(v[OX_GAUGE_STORAGE_BACKLOG_SIZE], (double)f->backlog_bytes);
}

static void subscription_put(struct ox_gauges *g, const struct ox_subscription *s)
{
    struct gauges_walk *w = g->walk;
    struct ox_subscription_stats figures;
    double values[OX_GAUGES_OF_SUBSCRIPTION];
    ox_subscription_stats(s, &figures);
    subscription_sum(w, s, &figures);
    subscription_fill(s, &figures, values);
    const struct ox_str *labels = line_begin(w, "subscription", s->name);
    if (w->by_topic)
        row_put(&g->subscriptions, labels, values);
    else
        row_add(&g->subscriptions, w->ns->subscriptions, values);
    if (w->by_topic && !w->by_consumer)
        return;
    OX_LIST_EACH(&s->consumers, link)
        consumer_put(g, CONTAINER_OF(link, struct ox_consumer, link), labels);
}

// ---- topics

static void topic_published(const struct publish_hist *hist, double *v)
{
    if (!hist)
        return;
    for (size_t i = 0; i < PUBLISH_LATENCIES; i++)
        v[OX_GAUGE_STORAGE_WRITE_LATENCY_LE_0_5 + i] = hist->last.latencies[i];
    for (size_t i = 0; i < PUBLISH_SIZES; i++)
        v[OX_GAUGE_ENTRY_SIZE_LE_128 + i] = hist->last.sizes[i];
    v[OX_GAUGE_STORAGE_WRITE_LATENCY_COUNT] = v[OX_GAUGE_ENTRY_SIZE_COUNT] = hist->last.entries;
    v[OX_GAUGE_STORAGE_WRITE_LATENCY_SUM] = (double)hist->last.us;
    v[OX_GAUGE_ENTRY_SIZE_SUM] = (double)hist->last.bytes;
}

static void topic_compacted(const struct ox_topic *t, double *v)
{
    struct ox_compaction_info info;
    if (!t->compaction)
        return;
    ox_compaction_info(t, &info);
    if (!info.succeeded && !info.failed)
        return;
    v[OX_GAUGE_COMPACTION_REMOVED_EVENT_COUNT] = (double)info.removed;
    v[OX_GAUGE_COMPACTION_SUCCEED_COUNT] = (double)info.succeeded;
    v[OX_GAUGE_COMPACTION_FAILED_COUNT] = (double)info.failed;
    v[OX_GAUGE_COMPACTION_DURATION_TIME_IN_MILLS] = (double)info.duration_ms;
    v[OX_GAUGE_COMPACTION_COMPACTED_ENTRIES_COUNT] = (double)OX_MAX(info.entries, 0);
    v[OX_GAUGE_COMPACTION_COMPACTED_ENTRIES_SIZE] = (double)OX_MAX(info.bytes, 0);
}

static void topic_storage(const struct ox_topic *t, double *v)
{
    v[OX_GAUGE_STORAGE_SIZE] = v[OX_GAUGE_STORAGE_LOGICAL_SIZE] = t->ml ? (double)t->ml->total_bytes : 0;
    v[OX_GAUGE_STORAGE_BACKLOG_SIZE] = 0;
    v[OX_GAUGE_STORAGE_WRITE_RATE] = t->ml ? t->in.entries_per_s : 0;
    v[OX_GAUGE_STORAGE_READ_RATE] = t->read.entries_per_s;
    v[OX_GAUGE_STORAGE_READ_CACHE_MISSES_RATE] = t->read_store.entries_per_s;
    v[OX_GAUGE_STORAGE_BACKLOG_QUOTA_LIMIT] = (double)t->policies.quota_bytes;
    v[OX_GAUGE_STORAGE_BACKLOG_QUOTA_LIMIT_TIME] = t->policies.quota_s > 0 ? (double)t->policies.quota_s : -1;
    v[OX_GAUGE_STORAGE_BACKLOG_QUOTA_EXCEEDED_EVICTIONS_TOTAL_SIZE] = (double)t->evictions[0];
    v[OX_GAUGE_STORAGE_BACKLOG_QUOTA_EXCEEDED_EVICTIONS_TOTAL_TIME] = (double)t->evictions[1];
}

static void topic_fill(const struct ox_topic *t, double *v)
{
    values_none(v, OX_GAUGES_OF_TOPIC);
    v[OX_GAUGE_SUBSCRIPTIONS_COUNT] = v[OX_GAUGE_CONSUMERS_COUNT] = v[OX_GAUGE_MSG_BACKLOG] = 0;
    v[OX_GAUGE_DELAYED_MESSAGE_INDEX_SIZE_BYTES] = 0;
    v[OX_GAUGE_PRODUCERS_COUNT] = (double)t->producers.count;
    v[OX_GAUGE_RATE_IN] = t->in.messages_per_s;
    v[OX_GAUGE_RATE_OUT] = t->out.messages_per_s;
    v[OX_GAUGE_THROUGHPUT_IN] = t->in.bytes_per_s;
    v[OX_GAUGE_THROUGHPUT_OUT] = t->out.bytes_per_s;
    v[OX_GAUGE_AVERAGE_MSG_SIZE] = ox_rate_mean_bytes(&t->in);
    v[OX_GAUGE_IN_MESSAGES_TOTAL] = (double)t->in.messages;
    v[OX_GAUGE_IN_BYTES_TOTAL] = (double)t->in.bytes;
    v[OX_GAUGE_PUBLISH_RATE_LIMIT_TIMES] = (double)t->publish_waits;
    topic_storage(t, v);
    topic_published(t->hist, v);
    topic_compacted(t, v);
}

static void topic_sum(struct gauges_walk *w)
{
    // Which of a topic's figures belong to which of the broker's.
    static const struct {
        enum ox_gauge_topic from;
        enum ox_gauge_broker to;
    } pairs[] = {
        {OX_GAUGE_RATE_IN, OX_GAUGE_BROKER_RATE_IN},
        {OX_GAUGE_RATE_OUT, OX_GAUGE_BROKER_RATE_OUT},
        {OX_GAUGE_THROUGHPUT_IN, OX_GAUGE_BROKER_THROUGHPUT_IN},
        {OX_GAUGE_THROUGHPUT_OUT, OX_GAUGE_BROKER_THROUGHPUT_OUT},
        {OX_GAUGE_STORAGE_SIZE, OX_GAUGE_BROKER_STORAGE_SIZE},
        {OX_GAUGE_STORAGE_LOGICAL_SIZE, OX_GAUGE_BROKER_STORAGE_LOGICAL_SIZE},
        {OX_GAUGE_STORAGE_WRITE_RATE, OX_GAUGE_BROKER_STORAGE_WRITE_RATE},
        {OX_GAUGE_STORAGE_READ_RATE, OX_GAUGE_BROKER_STORAGE_READ_RATE},
        {OX_GAUGE_STORAGE_READ_CACHE_MISSES_RATE, OX_GAUGE_BROKER_STORAGE_READ_CACHE_MISSES_RATE},
        {OX_GAUGE_MSG_BACKLOG, OX_GAUGE_BROKER_MSG_BACKLOG},
    };
    for (size_t i = 0; i < OX_COUNT(pairs); i++)
        w->sum[pairs[i].to] += w->values[pairs[i].from];
}

// ---- the walk

static void walk_let_go(struct gauges_walk *w)
{
    if (w->topic)
        ox_topic_put(w->topic);
    w->topic = NULL;
}

void gauges_topic_gone(struct ox_topic *t)
{
    OX_LIST_EACH(&t->shard->walks, link) {
        struct gauges_walk *w = CONTAINER_OF(link, struct gauges_walk, in_shard);
        if (w->next == &t->by_name)
            w->next = ox_map_next(w->next);
    }
}

static void walk_begin_topic(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    struct ox_topic *t = CONTAINER_OF(w->next, struct ox_topic, by_name);
    w->next = ox_map_next(w->next);
    if (t->state != OX_TOPIC_OPEN || t->loaded_ns > w->began_ns)
        return; // one that was loaded meanwhile may have had its lines already
    ox_topic_hold(t);
    w->topic = t;
    ox_str_truncate(&w->subscriptions, 0);
    w->subscriptions_at = 0;
    w->ns = namespace_get(g, w->topic->name.ns);
    topic_labels(w);
    topic_fill(w->topic, w->values);
    OX_MAP_EACH(&w->topic->subscriptions, node) {
        const char *name = SUBSCRIPTION_OF(node)->name;
        ox_str_add(&w->subscriptions, name, strlen(name) + 1);
    }
}

static void walk_subscription(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    const char *name = w->subscriptions.data + w->subscriptions_at;
    w->subscriptions_at += strlen(name) + 1;
    const struct ox_subscription *s = ox_subscription_find(w->topic, name);
    if (s)
        subscription_put(g, s);
}

static void walk_end_topic(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    ox_metric_table_row(&g->namespaces, w->ns->row)[OX_GAUGE_TOPICS_COUNT]++;
    if (w->by_topic)
        row_put(&g->topics, &w->labels, w->values);
    else
        row_add(&g->topics, w->ns->topics, w->values);
    topic_sum(w);
    producers_put(g);
    log_put(g);
    walk_let_go(w);
}

// Takes one step. False: there is none any more.
static bool walk_step(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    if (!w->topic && !w->next)
        return false;
    if (!w->topic)
        walk_begin_topic(g);
    else if (w->subscriptions_at < w->subscriptions.len)
        walk_subscription(g);
    else
        walk_end_topic(g);
    return true;
}

static void gauges_cache(const struct ox_shard *sh, double *v)
{
    const struct ox_tail_cache *c = &sh->mledgers->cache;
    double seconds = sh->last.seconds > 0 ? sh->last.seconds : 1; // no interval: nothing in it
    v[OX_GAUGE_ML_COUNT] = (double)ox_map_count(&sh->mledgers->open);
    v[OX_GAUGE_ML_CACHE_USED_SIZE] = (double)c->bytes;
    v[OX_GAUGE_ML_CACHE_ENTRIES] = (double)(c->inserted - c->dropped);
    v[OX_GAUGE_ML_CACHE_INSERTED_ENTRIES_TOTAL] = (double)c->inserted;
    v[OX_GAUGE_ML_CACHE_EVICTED_ENTRIES_TOTAL] = (double)c->dropped;
    v[OX_GAUGE_ML_CACHE_EVICTIONS] = (double)sh->last.cache_evictions;
    v[OX_GAUGE_ML_CACHE_HITS_RATE] = (double)sh->last.cache_hits / seconds;
    v[OX_GAUGE_ML_CACHE_MISSES_RATE] = (double)sh->last.cache_misses / seconds;
    v[OX_GAUGE_ML_CACHE_HITS_THROUGHPUT] = (double)sh->last.cache_hit_bytes / seconds;
    v[OX_GAUGE_ML_CACHE_MISSES_THROUGHPUT] = (double)sh->last.read_miss_bytes / seconds;
}

static void walk_free(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    if (!w)
        return;
    walk_let_go(w);
    ox_list_remove(&w->shard->walks, &w->in_shard);
    OX_MAP_EACH(&w->namespaces, node)
        namespace_free(w, CONTAINER_OF(node, struct gauges_namespace, by_name));
    ox_str_fini(&w->subscriptions);
    ox_str_fini(&w->labels);
    ox_str_fini(&w->line);
    ox_free(w);
    g->walk = NULL;
}

static void walk_over(struct ox_gauges *g)
{
    struct gauges_walk *w = g->walk;
    double *row = ox_gauges_broker_row(g, w->shard, "");
    for (size_t i = OX_GAUGE_BROKER_RATE_IN; i < OX_GAUGE_LB_CPU_USAGE; i++)
        row[i] = w->sum[i];
    gauges_cache(w->shard, row);
    walk_free(g);
}

bool ox_gauges_collect(struct ox_gauges *g, uint64_t ns)
{
    struct gauges_walk *w = g->walk;
    struct ox_loop *loop = w->shard->loop;
    uint64_t begin = ox_now_ns(loop);
    if (w->topic && w->topic->state != OX_TOPIC_OPEN)
        walk_let_go(w); // it went between two portions
    for (unsigned n = 1; n <= STEPS_MAX; n++) {
        if (!walk_step(g)) {
            walk_over(g);
            return false;
        }
        if (!ns || (n % STEPS_A_LOOK == 0 && ox_now_ns(loop) - begin >= ns))
            break;
    }
    return true;
}

// ---- the whole

static void walk_begin(struct ox_gauges *g, struct ox_shard *sh)
{
    const struct ox_broker_config *c = &sh->config;
    struct gauges_walk *w = g->walk = ox_malloc(sizeof *w);
    w->shard = sh;
    w->began_ns = ox_now_ns(sh->loop);
    w->by_topic = c->metrics_topics;
    w->by_consumer = c->metrics_consumers;
    w->by_producer = c->metrics_producers;
    w->by_log = c->metrics_logs;
    w->split = c->metrics_split;
    w->next = ox_map_first(&sh->topics);
    ox_list_push_back(&sh->walks, &w->in_shard);
}

struct ox_gauges *ox_gauges_new(struct ox_shard *sh)
{
    struct ox_gauges *g = ox_malloc(sizeof *g);
#define OX_X(member, level)               \
    g->member.columns = member##_columns; \
    g->member.column_count = OX_COUNT(member##_columns);
    OX_GAUGE_TABLES(OX_X)
#undef OX_X
    walk_begin(g, sh);
    g->topics.summed = g->subscriptions.summed = g->consumers.summed = !g->walk->by_topic;
    return g;
}

double *ox_gauges_broker_row(struct ox_gauges *g, const struct ox_shard *sh, const char *more)
{
    struct ox_str labels = {0};
    label_add(&labels, "cluster", sh->config.cluster);
    if (*more)
        ox_str_addf(&labels, ",%s", more);
    size_t row = ox_metric_table_add(&g->broker, labels.data, labels.len);
    ox_str_fini(&labels);
    return ox_metric_table_row(&g->broker, row);
}

void ox_gauges_free(struct ox_gauges *g)
{
    walk_free(g);
#define OX_X(member, level) ox_metric_table_fini(&g->member);
    OX_GAUGE_TABLES(OX_X)
#undef OX_X
    ox_str_fini(&g->text);
    ox_free(g);
}

// ---- printing

// Whole lines of the text.
static size_t text_print(const struct ox_str *text, size_t *at, char *data, size_t cap)
{
    size_t n = OX_MIN(text->len - *at, cap);
    while (n && text->data[*at + n - 1] != '\n')
        n--;
    if (n)
        memcpy(data, text->data + *at, n);
    *at += n;
    return n;
}

size_t ox_gauges_print(const struct ox_gauges *g, struct ox_gauges_place *place, char *data, size_t cap)
{
#define OX_X(member, level) &g->member,
    const struct ox_metric_table *const tables[] = {OX_GAUGE_TABLES(OX_X)};
#undef OX_X
    size_t n = text_print(&g->text, &place->at, data, cap);
    while (!n && place->table < OX_COUNT(tables)) {
        n = ox_metric_table_print(tables[place->table], &place->place, data, cap);
        if (!n) {
            place->table++;
            place->place = (struct ox_metric_place){0};
        }
    }
    return n;
}
