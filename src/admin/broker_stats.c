// broker_stats.c - /broker-stats: figures of the whole broker, in Pulsar's shapes. What is about all topics is put together over several turns.
#include <stdlib.h>
#include <string.h>

#include "admin/process.h"
#include "admin/walk.h"
#include "base/version.h"
#include "broker/consumer.h"
#include "broker/producer.h"
#include "broker/subscription.h"
#include "gen/rest_routes.h"

static void put(json_t *object, const char *name, json_t *take_value)
{
    json_object_set_new(object, name, take_value);
}

static void put_count(json_t *object, const char *name, uint64_t value)
{
    put(object, name, json_integer((json_int_t)value));
}

static void put_real(json_t *object, const char *name, double value)
{
    put(object, name, json_real(value));
}

static void put_client(json_t *o, const char *peer, const char *version, uint64_t connected_ms, const struct ox_kv *metadata)
{
    char text[40];
    json_t *name = *version ? json_string(version) : NULL;
    admin_time(connected_ms, text);
    put(o, "address", json_sprintf("/%s", peer));
    put(o, "connectedSince", json_string(text));
    if (name)
        put(o, "clientVersion", name);
    put(o, "metadata", admin_kv_json(metadata));
}

// ---- topics: each one's text goes to its bundle, then the bundles to the answer

static json_t *topics_publisher(const struct ox_producer *p)
{
    json_t *o = json_object();
    put_real(o, "msgRateIn", p->in.messages_per_s);
    put_real(o, "msgThroughputIn", p->in.bytes_per_s);
    put_real(o, "averageMsgSize", ox_rate_mean_bytes(&p->in));
    put_count(o, "producerId", p->id);
    put(o, "producerName", json_string(p->name));
    put_client(o, p->peer, p->client_version, p->connected_ms, &p->metadata);
    return o;
}

static bool shares(const struct ox_subscription *s)
{
    return s->dispatcher && (s->type == OX_SUB_SHARED || s->type == OX_SUB_KEY_SHARED);
}

static json_t *topics_consumer(const struct ox_consumer *c)
{
    json_t *o = json_object();
    put(o, "consumerName", json_string(c->name));
    put(o, "availablePermits", json_integer((json_int_t)c->permits));
    put_real(o, "msgRateOut", c->out.messages_per_s);
    put_real(o, "msgThroughputOut", c->out.bytes_per_s);
    put_real(o, "msgRateRedeliver", c->again.messages_per_s);
    put_count(o, "avgMessagesPerEntry", c->out.entries ? c->out.messages / c->out.entries : 0);
    put_real(o, "messageAckRate", c->acks.messages_per_s);
    if (shares(c->subscription)) {
        put_count(o, "unackedMessages", c->unacked);
        put(o, "blockedConsumerOnUnackedMsgs", json_boolean(c->held_back));
    }
    put_client(o, c->peer, c->client_version, c->connected_ms, &c->metadata);
    return o;
}

// What depends on the subscription's kind.
static void topics_kind(json_t *o, const struct ox_subscription *s, const struct ox_subscription_stats *figures)
{
    static const char *const filters[] = {"filterProcessedMsgCount", "filterAcceptedMsgCount", "filterRejectedMsgCount",
                                          "filterRescheduledMsgCount"};
    put(o, "type", json_string(s->dispatcher ? ox_sub_type_name(s->type) : "None"));
    for (size_t i = 0; s->dispatcher && i < OX_COUNT(filters); i++)
        put_count(o, filters[i], 0);
    if (ox_subscription_dropped(s))
        put_real(o, "msgDropRate", ox_subscription_dropped(s)->messages_per_s);
    if (!s->cursor || !shares(s))
        return;
    put(o, "blockedSubscriptionOnUnackedMsgs", json_boolean(s->held_back));
    put_count(o, "unackedMessages", figures->unacked);
}

static json_t *topics_subscription(const struct ox_subscription *s)
{
    struct ox_subscription_stats figures;
    json_t *o = json_object(), *consumers = json_array();
    ox_subscription_stats(s, &figures);
    OX_LIST_EACH(&s->consumers, link)
        json_array_append_new(consumers, topics_consumer(CONTAINER_OF(link, struct ox_consumer, link)));
    put(o, "consumers", consumers);
    put_count(o, "msgBacklog", figures.backlog_entries);
    put_real(o, "msgRateExpired", s->expired_per_s);
    put_real(o, "msgRateOut", s->out.messages_per_s);
    put_real(o, "messageAckRate", figures.acks_per_s);
    put_real(o, "msgThroughputOut", s->out.bytes_per_s);
    put_real(o, "msgRateRedeliver", figures.again_per_s);
    if (s->cursor && s->topic->ml) {
        put_count(o, "numberOfEntriesSinceFirstNotAckedMessage",
                  ox_ml_count(s->topic->ml, s->cursor->mark_delete, ox_ml_prev(s->topic->ml, s->cursor->read)) + 1);
        put_count(o, "totalNonContiguousDeletedMessagesRange", s->cursor->hole_count);
    }
    topics_kind(o, s, &figures);
    return o;
}

static void topics_rates(json_t *o, const struct ox_topic *t)
{
    put_real(o, "averageMsgSize", ox_rate_mean_bytes(&t->in));
    put_real(o, "msgRateIn", t->in.messages_per_s);
    put_real(o, "msgRateOut", t->out.messages_per_s);
    put_real(o, "msgThroughputIn", t->in.bytes_per_s);
    put_real(o, "msgThroughputOut", t->out.bytes_per_s);
    put_count(o, "msgInCount", t->in.messages);
    put_count(o, "bytesInCount", t->in.bytes);
    put_count(o, "msgOutCount", t->out.messages);
    put_count(o, "bytesOutCount", t->out.bytes);
    put_count(o, "filteredEntriesCount", 0);
}

static json_t *topics_one(const struct ox_topic *t)
{
    struct ox_topic_stats figures;
    json_t *o = json_object(), *publishers = json_array(), *subscriptions = json_object();
    ox_topic_stats(t, &figures);
    OX_LIST_EACH(&t->producers, link)
        json_array_append_new(publishers, topics_publisher(CONTAINER_OF(link, struct ox_producer, link)));
    OX_MAP_EACH(&t->subscriptions, node) {
        const struct ox_subscription *s = CONTAINER_OF(node, struct ox_subscription, by_name);
        put(subscriptions, s->name, topics_subscription(s));
    }
    put(o, "publishers", publishers);
    put(o, "replication", json_object());
    put(o, "subscriptions", subscriptions);
    put_count(o, "producerCount", figures.producers);
    topics_rates(o, t);
    if (t->ml) {
        put_count(o, "storageSize", figures.storage_bytes);
        put_count(o, "backlogSize", figures.backlog_bytes);
        put_count(o, "pendingAddEntriesCount", t->inflight);
    }
    return o;
}

// "name": value, and frees both. A name of the metadata is UTF-8, or it were no topic's.
static void text_member(struct ox_str *to, const char *name, json_t *take_value)
{
    json_t *key = json_string(name);
    char *quoted = json_dumps(key, JSON_ENCODE_ANY), *value = json_dumps(take_value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (quoted && value)
        ox_str_addf(to, "%s%s:", to->len ? "," : "", quoted);
    if (quoted && value)
        ox_str_adds(to, value);
    free(quoted);
    free(value);
    json_decref(key);
    json_decref(take_value);
}

static void topics_visit(struct admin_walk *w, struct walk_bundle *bundle, const struct ox_topic *t)
{
    (void)w;
    text_member(&bundle->text[t->name.domain], t->name.full, topics_one(t));
}

// The answer grows by a namespace; what its bundles had is freed on the way.
static void topics_join(struct admin_walk *w, struct walk_namespace *ns)
{
    struct admin_request *r = w->request;
    const char *between = "";
    admin_addf(r, "%s\"%s\":{", r->answer.bytes ? "," : "{", ns->name);
    OX_MAP_EACH(&ns->bundles, node) {
        struct walk_bundle *bundle = WALK_BUNDLE_OF(node);
        admin_addf(r, "%s\"%s\":{\"persistent\":{", between, bundle->name);
        admin_add(r, bundle->text[0].data, bundle->text[0].len);
        admin_adds(r, bundle->text[1].len ? "},\"non-persistent\":{" : "");
        admin_add(r, bundle->text[1].data, bundle->text[1].len);
        admin_adds(r, "}}");
        ox_str_fini(&bundle->text[0]);
        ox_str_fini(&bundle->text[1]);
        between = ",";
    }
    admin_adds(r, "}");
}

static void topics_done(struct admin_walk *w)
{
    struct admin_request *r = w->request;
    admin_text(r, HTTP_OK, "application/json", r->answer.bytes ? "}" : "{}");
}

static void stats_topics(struct admin_request *r)
{
    struct admin_walk *w = walk_new(r, topics_done);
    w->visit = topics_visit;
    w->join = topics_join;
    walk_start(w);
}

// ---- what topics wait for in the ledger stores

static json_t *pending_one(const struct ox_mledger *ml)
{
    static const char *const zeros[] = {"dataLedgerOpenOp", "dataLedgerDeleteOp", "cursorLedgerOpenOp",
                                        "cursorLedgerDeleteOp"};
    json_t *o = json_object();
    uint64_t switching = 0, closing = 0;
    OX_LIST_EACH(&ml->cursors, link) {
        const struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        switching += c->state == OX_CURSOR_SWITCHING;
        closing += c->state == OX_CURSOR_CLOSING;
    }
    for (size_t i = 0; i < OX_COUNT(zeros); i++)
        put_count(o, zeros[i], 0);
    put_count(o, "dataLedgerCreateOp", ml->state == OX_ML_ROLLING);
    put_count(o, "dataLedgerCloseOp", ml->state == OX_ML_CLOSING);
    put_count(o, "cursorLedgerCreateOp", switching);
    put_count(o, "cursorLedgerCloseOp", closing);
    return o;
}

static void pending_visit(struct admin_walk *w, struct walk_bundle *bundle, const struct ox_topic *t)
{
    (void)w;
    if (t->ml)
        text_member(&bundle->text[0], t->name.full, pending_one(t->ml));
}

static void pending_join(struct admin_walk *w, struct walk_namespace *ns)
{
    struct admin_request *r = w->request;
    const char *between = "";
    admin_addf(r, "%s\"%s\":{", r->answer.bytes ? "," : "{", ns->name);
    OX_MAP_EACH(&ns->bundles, node) {
        const struct ox_str *text = &WALK_BUNDLE_OF(node)->text[0];
        admin_adds(r, text->len ? between : "");
        admin_add(r, text->data, text->len);
        between = text->len ? "," : between;
    }
    admin_adds(r, "}");
}

static void stats_pending(struct admin_request *r)
{
    struct admin_walk *w = walk_new(r, topics_done);
    w->visit = pending_visit;
    w->join = pending_join;
    walk_start(w);
}

// ---- the broker's load

static json_t *usage(double used, double limit)
{
    return json_pack("{s:f, s:f}", "usage", used, "limit", limit);
}

static void put_sums(json_t *o, const struct walk_sums *s)
{
    put_real(o, "msgRateIn", s->messages_in);
    put_real(o, "msgThroughputIn", s->bytes_in);
    put_real(o, "msgRateOut", s->messages_out);
    put_real(o, "msgThroughputOut", s->bytes_out);
}

static json_t *load_bundle(const struct walk_sums *s)
{
    json_t *o = json_object();
    put_sums(o, s);
    put_count(o, "consumerCount", s->consumers);
    put_count(o, "producerCount", s->producers);
    put_count(o, "topics", s->topics);
    put_count(o, "cacheSize", 0);
    return o;
}

static void load_bundles(const struct admin_walk *w, json_t *report)
{
    json_t *stats = json_object(), *names = json_array();
    OX_MAP_EACH(&w->namespaces, node) {
        const struct walk_namespace *ns = WALK_NAMESPACE_OF(node);
        OX_MAP_EACH(&ns->bundles, inner) {
            const struct walk_bundle *bundle = WALK_BUNDLE_OF(inner);
            OX_CLEANUP(ox_free_ptr)
            char *name = ox_asprintf("%s/%s", ns->name, bundle->name);
            put(stats, name, load_bundle(&bundle->sums));
            json_array_append_new(names, json_string(name));
        }
    }
    put_count(report, "numBundles", json_array_size(names));
    put(report, "lastStats", stats);
    put(report, "bundles", names);
}

static void load_machine(json_t *report, const struct admin_load *load)
{
    const double mib = 1024 * 1024;
    put(report, "cpu", usage(load->cpu_percent, load->cpu_limit_percent));
    put(report, "memory", usage((double)load->resident_bytes / mib, (double)load->memory_bytes / mib));
    put(report, "directMemory", usage((double)load->cache_bytes / mib, (double)load->cache_limit_bytes / mib));
    put(report, "bandwidthIn", usage(0, -1000)); // of the network card: not known
    put(report, "bandwidthOut", usage(0, -1000));
    put_real(report, "maxResourceUsage", load->max_share);
}

static void load_done(struct admin_walk *w)
{
    struct admin_request *r = w->request;
    const struct ox_broker_config *c = &r->admin->shard->config;
    struct walk_sums all = walk_all_sums(w);
    struct admin_load load;
    admin_load_now(r->admin, &load);
    json_t *o = json_pack("{s:s, s:s, s:b, s:b, s:s, s:{}, s:{}, s:[], s:[], s:s, s:s}", "webServiceUrl", c->web_url,
                          "pulsarServiceUrl", c->service_url, "persistentTopicsEnabled", c->persistent_topics,
                          "nonPersistentTopicsEnabled", c->non_persistent_topics, "brokerVersionString", OX_VERSION,
                          "protocols", "advertisedListeners", "lastBundleGains", "lastBundleLosses",
                          "loadManagerClassName", "none: one broker", "loadReportType", "LocalBrokerData");
    put_sums(o, &all);
    put_count(o, "numTopics", all.topics);
    put_count(o, "numConsumers", all.consumers);
    put_count(o, "numProducers", all.producers);
    put_count(o, "lastUpdate", ox_wall_ms(r->admin->shard->loop));
    put_count(o, "startTimestamp", load.started_ms);
    load_bundles(w, o);
    load_machine(o, &load);
    admin_json(r, HTTP_OK, o);
}

static void stats_load(struct admin_request *r)
{
    walk_start(walk_new(r, load_done));
}

// One broker: nobody places bundles, as with Pulsar's simpler load managers.
static void stats_availability(struct admin_request *r)
{
    admin_fail(r, HTTP_CONFLICT, "one broker has all bundles: there is no load manager that tells what is available for %s/%s",
               r->segments[4], r->segments[5]);
}

// ---- groups of figures

// Adds a group to the list; the caller fills it.
static json_t *group_new(json_t *list, json_t *take_dimensions)
{
    json_t *metrics = json_object();
    json_array_append_new(list, json_pack("{s:o, s:o}", "metrics", metrics, "dimensions", take_dimensions));
    return metrics;
}

static json_t *broker_dimensions(const struct admin_request *r, const char *metric)
{
    const char *broker = admin_broker_id(r->admin->shard);
    return json_pack("{s:o, s:s, s:s}", "broker", json_stringn(broker, strcspn(broker, ":")), "cluster",
                     r->admin->shard->config.cluster, "metric", metric);
}

static void metrics_logs(json_t *list, const struct admin_walk *w, const struct admin_load *load)
{
    const struct ox_shard *sh = w->request->admin->shard;
    json_t *m = group_new(list, json_object());
    put_count(m, "brk_ml_count", walk_all_sums(w).logs);
    put_count(m, "brk_ml_cache_used_size", load->cache_bytes);
    put_count(m, "brk_ml_cache_hits_total", sh->mledgers->cache.hits);
    put_count(m, "brk_ml_cache_misses_total", sh->mledgers->cache.misses);
}

static void metrics_broker(json_t *list, const struct admin_request *r, const struct admin_load *load)
{
    const struct ox_shard *sh = r->admin->shard;
    json_t *m = group_new(list, broker_dimensions(r, "pulsar_topic_load_times"));
    put_count(m, "brk_topic_load_total", (uint64_t)sh->topic_loads.value);
    put_count(m, "brk_topic_load_failed_count", (uint64_t)sh->topic_load_failures.value);
    m = group_new(list, broker_dimensions(r, "loadBalancing"));
    put_real(m, "brk_lb_cpu_usage", load->cpu_percent);
    put_real(m, "brk_lb_memory_usage",
             load->memory_bytes ? 100.0 * (double)load->resident_bytes / (double)load->memory_bytes : 0);
    m = group_new(list, broker_dimensions(r, "process"));
    put_count(m, "resident_memory_bytes", load->resident_bytes);
    put_real(m, "cpu_seconds_total", load->cpu_seconds);
    put_count(m, "start_time", load->started_ms);
    m = group_new(list, broker_dimensions(r, "broker_health"));
    put(m, "brk_health", json_integer(admin_broker_trouble(sh) ? 0 : 1));
}

static void metrics_namespace(json_t *list, const struct walk_namespace *ns)
{
    struct walk_sums s = walk_namespace_sums(ns);
    json_t *m = group_new(list, json_pack("{s:s}", "namespace", ns->name));
    put_real(m, "brk_in_rate", s.messages_in);
    put_real(m, "brk_in_tp_rate", s.bytes_in);
    put_real(m, "brk_out_rate", s.messages_out);
    put_real(m, "brk_out_tp_rate", s.bytes_out);
    put_count(m, "brk_no_of_consumers", s.consumers);
    put_count(m, "brk_no_of_producers", s.producers);
    put_count(m, "brk_no_of_subscriptions", s.subscriptions);
    put_count(m, "brk_no_of_replicators", 0);
    put_real(m, "brk_msg_backlog", (double)s.backlog_entries);
    put_real(m, "brk_storage_size", (double)s.storage_bytes);
    put_real(m, "brk_replication_backlog", 0);
    put_real(m, "brk_max_replication_delay_second", 0);
}

static void metrics_done(struct admin_walk *w)
{
    struct admin_request *r = w->request;
    json_t *list = json_array();
    struct admin_load load;
    admin_load_now(r->admin, &load);
    metrics_logs(list, w, &load);
    metrics_broker(list, r, &load);
    OX_MAP_EACH(&w->namespaces, node)
        metrics_namespace(list, WALK_NAMESPACE_OF(node));
    admin_json(r, HTTP_OK, list);
}

static void stats_metrics(struct admin_request *r)
{
    walk_start(walk_new(r, metrics_done));
}

// Pulsar lists its runtime's beans; this process has one.
static void stats_beans(struct admin_request *r)
{
    const char *name = "oxbow:type=Process";
    struct admin_load load;
    admin_load_now(r->admin, &load);
    json_t *list = json_array(), *m = group_new(list, json_pack("{s:s}", "MBean", name));
    put(m, "Version", json_string(OX_VERSION));
    put_count(m, "StartTime", load.started_ms);
    put_count(m, "Uptime", ox_wall_ms(r->admin->shard->loop) - load.started_ms);
    put_real(m, "ProcessCpuTimeSeconds", load.cpu_seconds);
    put_count(m, "AvailableProcessors", load.processors);
    put_count(m, "ResidentMemoryBytes", load.resident_bytes);
    put_count(m, "TotalMemoryBytes", load.memory_bytes);
    admin_json(r, HTTP_OK, list);
}

// Memory as Pulsar's allocators tell it: there are no arenas here.
static void stats_allocator(struct admin_request *r)
{
    const char *name = r->segments[4];
    struct admin_load load;
    bool cache = strcmp(name, "ml-cache") == 0;
    if (!cache && strcmp(name, "default") != 0) {
        admin_fail(r, HTTP_NOT_ACCEPTABLE, "Invalid allocator name : %s; it is default or ml-cache", name);
        return;
    }
    admin_load_now(r->admin, &load);
    json_t *o =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:[], s:[]}", "numDirectArenas", 0, "numHeapArenas", 0,
                  "numThreadLocalCaches", 0, "normalCacheSize", 0, "smallCacheSize", 0, "directArenas", "heapArenas");
    put_count(o, "usedDirectMemory", load.cache_bytes);
    put(o, "usedHeapMemory", json_integer(cache ? -1 : (json_int_t)load.resident_bytes));
    admin_json(r, HTTP_OK, o);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_BROKER_STATS};
const struct admin_route_table admin_broker_stats = {routes, OX_COUNT(routes)};
