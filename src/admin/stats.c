// stats.c - the figures of topics under the names that Pulsar's tools read.
#include <string.h>

#include "admin/each.h"
#include "admin/node.h"
#include "broker/compaction.h"
#include "broker/policing.h"
#include "broker/producer.h"
#include "gen/rest_routes.h"

static void put(json_t *object, const char *name, json_t *take_value)
{
    json_object_set_new(object, name, take_value);
}

static void put_count(json_t *object, const char *name, uint64_t value)
{
    put(object, name, json_integer((json_int_t)value));
}

// Members that are there for tools that ask for them, of things that do not happen here.
static void put_zeros(json_t *object, const char *const *names)
{
    for (; *names; names++)
        put_count(object, *names, 0);
}

static void put_time(json_t *object, const char *name, uint64_t ms)
{
    char text[40];
    admin_time(ms, text);
    put(object, name, json_string(text));
}

static void put_peer(json_t *object, const char *peer)
{
    put(object, "address", json_sprintf("/%s", peer));
}

// A client may call itself anything: what is no text, or none, is left out.
static void put_version(json_t *object, const char *version)
{
    json_t *text = *version ? json_string(version) : NULL;
    if (text)
        put(object, "clientVersion", text);
}

// The names of a rate's members in one direction.
struct rate_names {
    const char *messages_per_s, *bytes_per_s, *bytes, *messages;
};
static const struct rate_names names_in = {"msgRateIn", "msgThroughputIn", "bytesInCounter", "msgInCounter"};
static const struct rate_names names_out = {"msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter"};

static void put_rate(json_t *object, const struct ox_rate *rate, const struct rate_names *names)
{
    put(object, names->messages_per_s, json_real(rate->messages_per_s));
    put(object, names->bytes_per_s, json_real(rate->bytes_per_s));
    put_count(object, names->bytes, rate->bytes);
    put_count(object, names->messages, rate->messages);
}

static json_t *stats_publisher(const struct ox_producer *p)
{
    static const char *const modes[] = {"Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"};
    json_t *o = json_object();
    put(o, "accessMode", json_string(modes[p->mode]));
    put_count(o, "producerId", p->id);
    put(o, "producerName", json_string(p->name));
    put_peer(o, p->peer);
    put_version(o, p->client_version);
    put_time(o, "connectedSince", p->connected_ms);
    put(o, "msgRateIn", json_real(p->in.messages_per_s));
    put(o, "msgThroughputIn", json_real(p->in.bytes_per_s));
    put(o, "averageMsgSize", json_real(p->in.messages ? (double)p->in.bytes / (double)p->in.messages : 0));
    put(o, "chunkedMessageRate", json_real(0));
    put(o, "supportsPartialProducer", json_false());
    put(o, "metadata", admin_kv_json(&p->metadata));
    if (!p->topic->ml)
        put(o, "msgDropRate", json_real(0));
    return o;
}

static void add_range(void *ctx, uint32_t from, uint32_t to)
{
    json_t *last = json_array_get(ctx, json_array_size(ctx) - 1);
    if (last && json_integer_value(json_array_get(last, 1)) + 1 == (json_int_t)from)
        json_array_set_new(last, 1, json_integer((json_int_t)to));
    else
        json_array_append_new(ctx, json_pack("[I, I]", (json_int_t)from, (json_int_t)to));
}

static void put_ranges(json_t *o, const struct ox_consumer *c)
{
    bool out_of_order;
    const struct ox_selector *selector = ox_subscription_selector(c->subscription, &out_of_order);
    json_t *ranges = selector ? json_array() : NULL;
    if (!selector)
        return;
    ox_selector_ranges(selector, c, add_range, ranges);
    put(o, "keyHashRangeArrays", ranges);
}

static void put_key_sharing(json_t *o, const struct ox_subscription *s)
{
    bool out_of_order = false;
    const struct ox_selector *selector = ox_subscription_selector(s, &out_of_order);
    put(o, "allowOutOfOrderDelivery", json_boolean(out_of_order));
    if (selector)
        put(o, "keySharedMode", json_string(ox_selector_mode(selector) == OX_KEY_STICKY ? "STICKY" : "AUTO_SPLIT"));
}

// ---- Key_Shared: hashes whose entries are still with a former consumer

struct drained {
    const struct ox_consumer *consumer; // NULL: of all
    json_t *list;                       // NULL: only figures
    uint64_t hashes, entries;
};

static void add_draining(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries, uint32_t refused)
{
    struct drained *d = (struct drained *)ctx;
    if (d->consumer && d->consumer != holder)
        return;
    d->hashes++;
    d->entries += entries;
    if (d->list)
        json_array_append_new(d->list, json_pack("{s:I, s:I, s:I}", "hash", (json_int_t)hash, "unackMsgs",
                                                 (json_int_t)entries, "blockedAttempts", (json_int_t)refused));
}

// consumer NULL: of the whole subscription.
static void put_draining(json_t *o, const struct ox_subscription *s, const struct ox_consumer *consumer)
{
    bool keyed = s->cursor && s->dispatcher && s->type == OX_SUB_KEY_SHARED;
    struct drained d = {.consumer = consumer, .list = consumer && keyed ? json_array() : NULL};
    if (keyed)
        ox_subscription_draining(s, add_draining, &d);
    put_count(o, "drainingHashesCount", d.hashes);
    put_count(o, "drainingHashesClearedTotal", consumer ? consumer->hashes_cleared : s->hashes_cleared);
    put_count(o, "drainingHashesUnackedMessages", d.entries);
    if (d.list)
        put(o, "drainingHashes", d.list);
}

static json_t *stats_consumer(const struct ox_consumer *c)
{
    json_t *o = json_object();
    put(o, "consumerName", json_string(c->name));
    put_peer(o, c->peer);
    put_version(o, c->client_version);
    put_time(o, "connectedSince", c->connected_ms);
    put(o, "availablePermits", json_integer((json_int_t)c->permits));
    put_count(o, "unackedMessages", c->unacked);
    put_count(o, "avgMessagesPerEntry", c->out.entries ? c->out.messages / c->out.entries : 0);
    put(o, "blockedConsumerOnUnackedMsgs", json_boolean(c->held_back));
    put_count(o, "lastAckedTimestamp", c->last_acked_ms);
    put_count(o, "lastConsumedTimestamp", c->last_consumed_ms);
    put_count(o, "lastConsumedFlowTimestamp", c->last_flow_ms);
    put_time(o, "lastAckedTime", c->last_acked_ms);
    put_time(o, "lastConsumedTime", c->last_consumed_ms);
    put(o, "metadata", admin_kv_json(&c->metadata));
    put(o, "msgRateRedeliver", json_real(c->again.messages_per_s));
    put(o, "messageAckRate", json_real(c->acks.messages_per_s));
    put(o, "chunkedMessageRate", json_real(0));
    put_ranges(o, c);
    put_draining(o, c->subscription, c);
    put_rate(o, &c->out, &names_out);
    return o;
}

static json_t *stats_position(struct ox_pos p)
{
    return json_sprintf(OX_POS_FMT, OX_POS_ARG(p));
}

static const struct ox_consumer *active_consumer(const struct ox_subscription *s)
{
    OX_LIST_EACH(&s->consumers, link) {
        const struct ox_consumer *c = CONTAINER_OF(link, struct ox_consumer, link);
        if (c->is_active || s->type == OX_SUB_EXCLUSIVE)
            return c;
    }
    return NULL;
}

static void put_subscription_state(json_t *o, const struct ox_subscription *s)
{
    static const char *const zeros[] = {"filterProcessedMsgCount", "filterAcceptedMsgCount", "filterRejectedMsgCount",
                                        "filterRescheduledMsgCount", NULL};
    struct ox_cursor_figures cursor = {0};
    const struct ox_consumer *active = active_consumer(s);
    bool single = s->type == OX_SUB_EXCLUSIVE || s->type == OX_SUB_FAILOVER;
    put(o, "type", json_string(s->dispatcher ? ox_sub_type_name(s->type) : "None"));
    put(o, "isDurable", json_boolean(s->durable));
    put(o, "durable", json_boolean(s->durable));
    put(o, "isReplicated", json_boolean(ox_subscription_is_replicated(s)));
    put(o, "replicated", json_boolean(ox_subscription_is_replicated(s)));
    put_key_sharing(o, s);
    if (single && active)
        put(o, "activeConsumerName", json_string(active->name));
    put(o, "blockedSubscriptionOnUnackedMsgs", json_boolean(s->held_back));
    put(o, "msgRateExpired", json_real(s->expired_per_s));
    put_count(o, "totalMsgExpired", s->expired);
    put_count(o, "lastExpireTimestamp", s->last_expired_ms);
    put_count(o, "msgDelayed", s->delayed);
    if (s->cursor)
        ox_cursor_figures(s->cursor, &cursor);
    put_count(o, "nonContiguousDeletedMessagesRanges", cursor.acked_ranges);
    put_count(o, "lastMarkDeleteAdvancedTimestamp", s->cursor ? s->cursor->advanced_ms : 0);
    put(o, "subscriptionProperties", s->cursor ? admin_kv_json(&s->cursor->properties) : json_object());
    put(o, "consumersAfterMarkDeletePosition", json_object());
    put_zeros(o, zeros);
}

// How often deliveries waited for a rate. The broker as a whole has none.
static void put_throttled(json_t *o, const struct ox_subscription *s)
{
    put_count(o, "dispatchThrottledMsgEventsBySubscriptionLimit", s->throttled.messages);
    put_count(o, "dispatchThrottledBytesEventsBySubscriptionLimit", s->throttled.bytes);
    put_count(o, "dispatchThrottledMsgEventsByTopicLimit", s->throttled_topic.messages);
    put_count(o, "dispatchThrottledBytesEventsByTopicLimit", s->throttled_topic.bytes);
    put_count(o, "dispatchThrottledMsgEventsByBrokerLimit", 0);
    put_count(o, "dispatchThrottledBytesEventsByBrokerLimit", 0);
}

// What an answer leaves out, and what has been read for it.
struct stats_options {
    bool no_publishers, no_consumers;
    bool earliest;       // it says how old each backlog is
    const json_t *times; // of the oldest messages, by subscription
};

static uint64_t stats_oldest(const struct stats_options *options, const struct ox_subscription *s)
{
    return (uint64_t)json_integer_value(json_object_get(options->times, s->name));
}

static struct stats_options stats_options(struct admin_request *r)
{
    return (struct stats_options){.no_publishers = admin_query_true(r, "excludePublishers"),
                                  .no_consumers = admin_query_true(r, "excludeConsumers"),
                                  .earliest = admin_query_true(r, "getEarliestTimeInBacklog")};
}

static json_t *stats_subscription(struct ox_subscription *s, const struct stats_options *options)
{
    struct ox_subscription_stats figures;
    json_t *o = json_object(), *consumers = json_array();
    ox_subscription_stats(s, &figures);
    OX_LIST_EACH(&s->consumers, link) {
        if (!options->no_consumers)
            json_array_append_new(consumers, stats_consumer(CONTAINER_OF(link, struct ox_consumer, link)));
    }
    put_subscription_state(o, s);
    put_throttled(o, s);
    put_draining(o, s, NULL);
    put(o, "chunkedMessageRate", json_real(0));
    put_count(o, "delayedMessageIndexSizeInBytes", 0);
    put_count(o, "nonContiguousDeletedMessagesRangesSerializedSize", 0);
    put_count(o, "earliestMsgPublishTimeInBacklog", options->earliest ? stats_oldest(options, s) : 0);
    put_count(o, "msgBacklog", figures.backlog_entries);
    put_count(o, "msgBacklogNoDelayed", figures.backlog_entries - OX_MIN(figures.backlog_entries, s->delayed));
    put_count(o, "backlogSize", figures.backlog_bytes);
    put_count(o, "unackedMessages", figures.unacked);
    put_count(o, "msgInReplay", figures.waiting);
    put(o, "msgRateRedeliver", json_real(figures.again_per_s));
    put(o, "messageAckRate", json_real(figures.acks_per_s));
    put(o, "markDeletePosition", stats_position(figures.mark_delete));
    put(o, "readPosition", stats_position(figures.read));
    put_count(o, "lastConsumedTimestamp", s->last_consumed_ms);
    put_count(o, "lastAckedTimestamp", s->last_acked_ms);
    put_count(o, "lastConsumedFlowTimestamp", s->last_flow_ms);
    put(o, "consumers", consumers);
    put_rate(o, &s->out, &names_out);
    if (ox_subscription_dropped(s))
        put(o, "msgDropRate", json_real(ox_subscription_dropped(s)->messages_per_s));
    return o;
}

static json_t *stats_subscriptions(struct ox_topic *t, const struct stats_options *options)
{
    json_t *object = json_object();
    OX_MAP_EACH(&t->subscriptions, node) {
        struct ox_subscription *s = CONTAINER_OF(node, struct ox_subscription, by_name);
        put(object, s->name, stats_subscription(s, options));
    }
    return object;
}

// Messages a second of a non-persistent topic that its subscriptions could not deliver.
static double stats_drops(const struct ox_topic *t)
{
    double drops = 0;
    OX_MAP_EACH(&t->subscriptions, node) {
        const struct ox_rate *dropped = ox_subscription_dropped(CONTAINER_OF(node, struct ox_subscription, by_name));
        drops += dropped ? dropped->messages_per_s : 0;
    }
    return drops;
}

static json_t *stats_compaction(const struct ox_topic *t)
{
    struct ox_compaction_info info;
    json_t *o = json_object();
    ox_compaction_info(t, &info);
    put_count(o, "lastCompactionRemovedEventCount", info.removed);
    put_count(o, "lastCompactionSucceedTimestamp", info.succeeded_ms);
    put_count(o, "lastCompactionFailedTimestamp", info.failed_ms);
    put_count(o, "lastCompactionDurationTimeInMills", info.duration_ms);
    return o;
}

// How old the oldest message is that a durable subscription waits for, and whose it is.
static void put_oldest(json_t *o, struct ox_topic *t, const struct stats_options *options)
{
    const struct ox_subscription *slowest = NULL;
    uint64_t oldest = 0, now = ox_wall_ms(t->shard->loop);
    OX_MAP_EACH(&t->subscriptions, node) {
        const struct ox_subscription *s = CONTAINER_OF(node, struct ox_subscription, by_name);
        uint64_t ms = s->durable ? stats_oldest(options, s) : 0;
        if (ms && (!oldest || ms < oldest)) {
            oldest = ms;
            slowest = s;
        }
    }
    put_count(o, "earliestMsgPublishTimeInBacklogs", options->earliest ? oldest : 0);
    put(o, "oldestBacklogMessageAgeSeconds", json_integer(oldest ? (json_int_t)((now - OX_MIN(oldest, now)) / 1000) : -1));
    if (slowest)
        put(o, "oldestBacklogMessageSubscriptionName", json_string(slowest->name));
}

static void put_topic_rest(json_t *o, struct ox_topic *t)
{
    static const char *const zeros[] = {"systemTopicBytesInCounter",
                                        "bytesOutInternalCounter",
                                        "publishRateLimitedTimes",
                                        "offloadedStorageSize",
                                        "lastOffloadLedgerId",
                                        "lastOffloadSuccessTimeStamp",
                                        "lastOffloadFailureTimeStamp",
                                        "ongoingTxnCount",
                                        "abortedTxnCount",
                                        "committedTxnCount",
                                        "delayedMessageIndexSizeInBytes",
                                        "nonContiguousDeletedMessagesRanges",
                                        "nonContiguousDeletedMessagesRangesSerializedSize",
                                        NULL};
    put(o, "backlogQuotaLimitSize", json_integer((json_int_t)t->policies.quota_bytes));
    put(o, "backlogQuotaLimitTime", json_integer((json_int_t)t->policies.quota_s));
    put(o, "msgChunkPublished", json_false());
    put(o, "replication", json_object());
    put_count(o, "waitingPublishers", t->queued.count);
    put(o, "deduplicationStatus", json_string(t->policies.dedup ? "Enabled" : "Disabled"));
    put(o, "ownerBroker", json_string(admin_broker_id(t->shard)));
    put(o, "compaction", stats_compaction(t));
    if (!t->ml)
        put(o, "msgDropRate", json_real(stats_drops(t)));
    put_zeros(o, zeros);
}

static json_t *stats_topic(struct ox_topic *t, struct stats_options options)
{
    struct ox_topic_stats figures;
    json_t *o = json_object(), *publishers = json_array();
    ox_topic_stats(t, &figures);
    OX_LIST_EACH(&t->producers, link) {
        if (!options.no_publishers)
            json_array_append_new(publishers, stats_publisher(CONTAINER_OF(link, struct ox_producer, link)));
    }
    put_rate(o, &t->in, &names_in);
    put_rate(o, &t->out, &names_out);
    put(o, "averageMsgSize", json_real(figures.mean_message_bytes));
    put_count(o, "storageSize", figures.storage_bytes);
    put_count(o, "backlogSize", figures.backlog_bytes);
    put(o, "publishers", publishers);
    put(o, "subscriptions", stats_subscriptions(t, &options));
    put_oldest(o, t, &options);
    put_topic_rest(o, t);
    return o;
}

// ---- the oldest message of a backlog is read: how long has it been there?

static ox_step stats_look(struct admin_each *e);
static ox_step partitioned_tell(struct admin_each *e);

static ox_step stats_tell(struct admin_each *e)
{
    struct stats_options options = stats_options(e->request);
    options.times = e->notes;
    e->result = stats_topic(e->topic, options);
    return each_ran(e, OX_OK);
}

// The first entry that a subscription has not acknowledged; entry -1: none, or one in a place that may be slow to answer.
static struct ox_pos stats_first(const struct ox_subscription *s)
{
    struct ox_pos pos = s && s->cursor ? ox_subscription_nth(s, 1) : OX_POS_EARLIEST;
    const struct ox_ml_ledger *l = pos.entry >= 0 ? ox_ml_ledger(s->topic->ml, pos.ledger) : NULL;
    return l && !l->lost && l->where.place == s->topic->shard->router->active ? pos : OX_POS_EARLIEST;
}

static ox_step stats_looked(struct ox_seq *s)
{
    struct admin_each *e = CONTAINER_OF(s, struct admin_each, seq);
    uint64_t ms = 0;
    if (!s->err && entry_time_ms(&e->u.peek.entry, &ms))
        json_object_iter_set_new(e->notes, e->note, json_integer((json_int_t)ms));
    if (!s->err)
        ox_buf_unref(&e->u.peek.entry.data);
    e->note = json_object_iter_next(e->notes, e->note);
    return stats_look(e);
}

static ox_step stats_look(struct admin_each *e)
{
    for (; e->note; e->note = json_object_iter_next(e->notes, e->note)) {
        struct ox_pos pos = stats_first(ox_subscription_find(e->topic, json_object_iter_key(e->note)));
        if (pos.entry < 0)
            continue;
        e->u.peek = (struct ox_peek){.pos = pos};
        each_bind(e, &e->u.peek.op);
        ox_topic_peek(e->topic, &e->u.peek);
        return OX_WAIT(&e->seq, stats_looked);
    }
    return e->verb->only_partitioned ? partitioned_tell(e) : stats_tell(e);
}

// All with a backlog, or the slowest one.
static ox_step stats_run(struct admin_each *e)
{
    bool all = stats_options(e->request).earliest;
    const struct ox_subscription *slowest = NULL;
    json_decref(e->notes);
    e->notes = json_object();
    OX_MAP_EACH(&e->topic->subscriptions, node) {
        const struct ox_subscription *s = CONTAINER_OF(node, struct ox_subscription, by_name);
        if (!s->cursor || !e->topic->ml || ox_pos_cmp(s->cursor->mark_delete, e->topic->ml->last) >= 0)
            continue;
        if (all)
            put(e->notes, s->name, json_integer(0));
        if (s->durable && (!slowest || ox_pos_cmp(s->cursor->mark_delete, slowest->cursor->mark_delete) < 0))
            slowest = s;
    }
    if (slowest && !all)
        put(e->notes, slowest->name, json_integer(0));
    e->note = json_object_iter(e->notes);
    return stats_look(e);
}

static const struct admin_verb stats_verb = {.name = "admin.topic.stats", .partitioned = EACH_NOT_FOUND, .run = stats_run};

// ---- sums over partitions

static json_t *sum_of(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b))
        return json_integer(json_integer_value(a) + json_integer_value(b));
    return json_real(json_number_value(a) + json_number_value(b));
}

// Times are not added up: the earliest that is known, or the last.
static bool sum_time(json_t *sum, const char *name, const json_t *had, const json_t *value)
{
    json_int_t a = json_integer_value(had), b = json_integer_value(value);
    size_t len = strlen(name);
    if (strncmp(name, "earliestMsg", 11) == 0)
        put(sum, name, json_integer(a && b ? OX_MIN(a, b) : OX_MAX(a, b)));
    else if (strcmp(name, "oldestBacklogMessageAgeSeconds") == 0 ||
             (strncmp(name, "last", 4) == 0 && len > 9 && strcmp(name + len - 9, "Timestamp") == 0))
        put(sum, name, json_integer(OX_MAX(a, b)));
    else
        return false;
    return true;
}

static void sum_into(json_t *sum, json_t *part);

// Publishers and consumers of all partitions stand in one list; subscriptions are added up by name.
static void sum_member(json_t *sum, const char *name, json_t *value)
{
    static const char *const levels[] = {"backlogQuotaLimitSize", "backlogQuotaLimitTime", "producerId", "averageMsgSize"};
    json_t *had = json_object_get(sum, name);
    bool level = false;
    for (size_t i = 0; i < OX_COUNT(levels); i++)
        level |= strcmp(levels[i], name) == 0;
    if (!had)
        put(sum, name, json_deep_copy(value));
    else if (json_is_integer(value) && json_is_integer(had) && sum_time(sum, name, had, value))
        return;
    else if (json_is_number(value) && json_is_number(had) && !level)
        put(sum, name, sum_of(had, value));
    else if (json_is_array(value) && json_is_array(had))
        json_array_extend(had, value);
    else if (json_is_object(value) && json_is_object(had))
        sum_into(had, value);
}

static void sum_into(json_t *sum, json_t *part)
{
    const char *name;
    json_t *value;
    json_object_foreach(part, name, value) sum_member(sum, name, value);
}

// e->result: the sum. Each partition goes into the answer at once: all together they are too much for one turn.
static ox_step partitioned_tell(struct admin_each *e)
{
    if (!e->result) {
        e->result = json_object();
        admin_adds(e->request, "{\"partitions\":{");
    }
    const char *wanted = admin_query(e->request, "perPartition");
    struct stats_options options = stats_options(e->request);
    options.times = e->notes;
    json_t *one = stats_topic(e->topic, options);
    if (!wanted || strcmp(wanted, "false") != 0)
        admin_add_member(e->request, e->at == 0, e->topic->name.full, one);
    sum_into(e->result, one);
    json_decref(one);
    return each_ran(e, OX_OK);
}

static void metadata_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    json_t *properties = json_object_get(n->value, "properties");
    if (json_object_size(properties))
        json_object_set(r->json, "properties", properties);
    admin_add_member(r, false, "metadata", r->json);
    admin_adds(r, "}");
    admin_added(r, HTTP_OK, "application/json");
}

// Ends an answer with what the topic's node says: how many partitions, which properties.
static void metadata_answer(struct admin_each *e)
{
    struct admin_request *r = e->request;
    json_decref(r->json); // a GET has no body: what it knows waits there
    r->json = json_pack("{s:i, s:b}", "partitions", (int)e->count, "deleted", 0);
    admin_node_read(r, ox_topic_name_partitions_path(&r->topic), "Topic", NULL, metadata_read);
}

static void partitioned_answer(struct admin_each *e)
{
    const char *name;
    json_t *value;
    json_object_del(e->result, "ownerBroker");
    json_object_del(e->result, "deduplicationStatus");
    json_object_del(e->result, "oldestBacklogMessageSubscriptionName");
    admin_adds(e->request, "}");
    json_object_foreach(e->result, name, value) admin_add_member(e->request, false, name, value);
    metadata_answer(e);
}

static void partitioned_plain(struct admin_each *e)
{
    admin_fail(e->request, HTTP_NOT_FOUND, "Partitioned Topic %s not found", e->request->topic.full);
}

static const struct admin_verb partitioned_verb = {.name = "admin.topic.stats",
                                                   .partitioned = EACH_PARTITION,
                                                   .only_partitioned = true,
                                                   .plain = partitioned_plain,
                                                   .run = stats_run,
                                                   .answer = partitioned_answer};

// ---- the log

// metadata=true: where it is.
static json_t *internal_metadata(const struct ox_mledger *ml, const struct ox_ml_ledger *l)
{
    return json_sprintf("place=%u id=%lld state=%s copies=%zu log=%s", l->where.place, (long long)l->where.id,
                        l->sealed ? "CLOSED" : "OPEN", l->copies.count, ml->name);
}

static json_t *internal_ledgers(const struct ox_mledger *ml, bool metadata)
{
    json_t *ledgers = json_array();
    for (size_t i = 0; i < ml->ledger_count; i++) {
        const struct ox_ml_ledger *l = ml->ledgers[i];
        json_t *o = json_pack("{s:I, s:I, s:I, s:b, s:b}", "ledgerId", (json_int_t)l->where.id, "entries",
                              (json_int_t)l->entries, "size", (json_int_t)l->bytes, "offloaded", 0, "underReplicated", 0);
        if (metadata)
            put(o, "metadata", internal_metadata(ml, l));
        json_array_append_new(ledgers, o);
    }
    return ledgers;
}

static json_t *internal_holes(const struct ox_cursor *c)
{
    struct ox_str text = {0};
    for (size_t i = 0; i < c->hole_count && text.len < 16384; i++) {
        const struct ox_cursor_holes *h = &c->holes[i];
        for (const struct ox_range *range = ox_ranges_at_or_after(&h->acked, 0); range && text.len < 16384;
             range = ox_ranges_at_or_after(&h->acked, range->last + 1))
            ox_str_addf(&text, "%s(%lld:%lld..%lld:%lld]", text.len ? "," : "", (long long)h->ledger,
                        (long long)range->first - 1, (long long)h->ledger, (long long)range->last);
    }
    json_t *value = json_sprintf("[%s]", ox_str_get(&text));
    ox_str_fini(&text);
    return value;
}

static json_t *internal_longs(const struct ox_kv *kv)
{
    json_t *object = json_object();
    for (size_t i = 0; i < kv->count; i++) {
        int64_t value = 0;
        if (ox_parse_i64(kv->pairs[i].value, INT64_MIN, INT64_MAX, &value) == OX_OK)
            put(object, kv->pairs[i].key, json_integer((json_int_t)value));
    }
    return object;
}

// Cursors appear under the names of their nodes. The caller's.
static char *internal_name(const struct ox_cursor *c)
{
    struct ox_str name = {0};
    ox_name_encode(&name, c->name);
    return ox_str_take(&name);
}

// What the subscription of a cursor is doing; the broker's own cursors have none.
static void internal_reading(json_t *o, const struct ox_topic *t, const struct ox_cursor *c)
{
    const struct ox_subscription *s = ox_subscription_find((struct ox_topic *)(uintptr_t)t, c->name);
    struct ox_cursor_figures figures;
    ox_cursor_figures(c, &figures);
    put(o, "waitingReadOp", json_boolean(figures.waits));
    put_count(o, "pendingReadOps", 0);
    put(o, "active", json_boolean(s && s->consumers.count));
    put(o, "subscriptionHavePendingRead", json_boolean(figures.waits));
    put(o, "subscriptionHavePendingReplayRead", json_boolean(s && ox_subscription_rereads(s)));
    put(o, "cursorLedgerLastEntry", json_integer((json_int_t)figures.ledger_last));
    put_time(o, "lastLedgerSwitchTimestamp", figures.switched_ms ? figures.switched_ms : t->loaded_ms);
    put_count(o, "totalNonContiguousDeletedMessagesRange", figures.acked_ranges);
    put_count(o, "numberOfEntriesSinceFirstNotAckedMessage",
              ox_ml_count(t->ml, c->mark_delete, ox_ml_prev(t->ml, c->read)) + 1);
    put(o, "messagesConsumedCounter",
        json_integer((json_int_t)t->in.entries - (json_int_t)ox_ml_count(t->ml, c->mark_delete, t->ml->last)));
}

static json_t *internal_cursor(const struct ox_topic *t, const struct ox_cursor *c)
{
    static const char *const states[] = {
        [OX_CURSOR_NO_LEDGER] = "NoLedger", [OX_CURSOR_SWITCHING] = "SwitchingLedger", [OX_CURSOR_OPEN] = "Open", [OX_CURSOR_CLOSING] = "Closing", [OX_CURSOR_CLOSED] = "Closed"};
    json_t *o = json_object();
    put(o, "markDeletePosition", stats_position(c->mark_delete));
    put(o, "readPosition", stats_position(c->read));
    put(o, "cursorLedger", json_integer((json_int_t)c->cursor_ledger));
    put(o, "individuallyDeletedMessages", internal_holes(c));
    put(o, "state", json_string(states[c->state]));
    internal_reading(o, t, c);
    put(o, "properties", internal_longs(&c->position_properties));
    return o;
}

static json_t *internal_topic(const struct ox_topic *t, bool metadata)
{
    const struct ox_mledger *ml = t->ml;
    json_t *o = json_object(), *cursors = json_object();
    const struct ox_ml_ledger *current = ml->ledger_count ? ml->ledgers[ml->ledger_count - 1] : NULL;
    OX_LIST_EACH(&ml->cursors, link) {
        const struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        OX_CLEANUP(ox_free_ptr)
        char *name = internal_name(c);
        put(cursors, name, internal_cursor(t, c));
    }
    put_count(o, "entriesAddedCounter", t->in.entries);
    put_count(o, "numberOfEntries", ml->total_entries);
    put_count(o, "totalSize", ml->total_bytes);
    put_count(o, "currentLedgerEntries", current ? (uint64_t)current->entries : 0);
    put_count(o, "currentLedgerSize", current ? current->bytes : 0);
    put_count(o, "pendingAddEntriesCount", t->inflight);
    put_count(o, "waitingCursorsCount", ml->waiters.count);
    put(o, "lastConfirmedEntry", stats_position(ml->last));
    put(o, "state",
        json_string(ml->terminated               ? "Terminated"
                    : ml->state == OX_ML_ROLLING ? "ClosedLedger"
                                                 : "LedgerOpened"));
    put(o, "ledgers", internal_ledgers(ml, metadata));
    put(o, "cursors", cursors);
    put(o, "properties", admin_kv_json(&ml->properties));
    put(o, "schemaLedgers", json_array());
    return o;
}

// A topic without a log has the members of one, and nothing in them.
static json_t *internal_nothing(const struct ox_topic *t)
{
    static const char *const zeros[] = {
        "numberOfEntries",        "totalSize", "currentLedgerEntries", "currentLedgerSize", "waitingCursorsCount",
        "pendingAddEntriesCount", NULL};
    json_t *o = json_object(), *cursors = json_object();
    OX_MAP_EACH(&t->subscriptions, node)
        put(cursors, CONTAINER_OF(node, struct ox_subscription, by_name)->name,
            json_pack("{s:b, s:i, s:i, s:i, s:i, s:b, s:i, s:i, s:b, s:b}", "waitingReadOp", 0, "pendingReadOps", 0,
                      "messagesConsumedCounter", 0, "cursorLedger", 0, "cursorLedgerLastEntry", 0, "active", 0,
                      "numberOfEntriesSinceFirstNotAckedMessage", 0, "totalNonContiguousDeletedMessagesRange", 0,
                      "subscriptionHavePendingRead", 0, "subscriptionHavePendingReplayRead", 0));
    put_count(o, "entriesAddedCounter", t->in.entries);
    put_zeros(o, zeros);
    put(o, "cursors", cursors);
    return o;
}

static json_t *internal_of(const struct ox_topic *t, bool metadata)
{
    struct ox_compaction_info info;
    if (!t->ml)
        return internal_nothing(t);
    json_t *o = internal_topic(t, metadata);
    ox_compaction_info(t, &info);
    put_time(o, "lastLedgerCreatedTimestamp", t->loaded_ms);
    put(o, "compactedLedger",
        json_pack("{s:I, s:I, s:I, s:b, s:b}", "ledgerId", (json_int_t)info.ledger, "entries", (json_int_t)info.entries,
                  "size", (json_int_t)info.bytes, "offloaded", 0, "underReplicated", 0));
    return o;
}

static ox_step internal_run(struct admin_each *e)
{
    e->result = internal_of(e->topic, admin_query_true(e->request, "metadata"));
    return each_ran(e, OX_OK);
}

static const struct admin_verb internal_verb = {
    .name = "admin.topic.internal", .partitioned = EACH_NOT_FOUND, .run = internal_run};

static ox_step internal_all_run(struct admin_each *e)
{
    json_t *one = internal_of(e->topic, false);
    if (e->at == 0)
        admin_adds(e->request, "{\"partitions\":{");
    admin_add_member(e->request, e->at == 0, e->topic->name.full, one);
    json_decref(one);
    return each_ran(e, OX_OK);
}

static void internal_all_answer(struct admin_each *e)
{
    admin_adds(e->request, "}");
    metadata_answer(e);
}

static const struct admin_verb internal_all_verb = {.name = "admin.topic.internal",
                                                    .partitioned = EACH_PARTITION,
                                                    .only_partitioned = true,
                                                    .plain = partitioned_plain,
                                                    .run = internal_all_run,
                                                    .answer = internal_all_answer};

// ---- what the metadata say of the log

static json_t *info_ledger(const struct ox_mledger *ml, const struct ox_ml_ledger *l)
{
    uint64_t now = ox_wall_ms(ml->factory->loop);
    json_t *o = json_pack("{s:I, s:I, s:b}", "ledgerId", (json_int_t)l->where.id, "timestamp",
                          (json_int_t)(l->sealed ? l->closed_ms : now), "isOffloaded", 0);
    if (l->sealed) {
        put_count(o, "entries", (uint64_t)l->entries);
        put_count(o, "size", l->bytes);
    }
    return o;
}

static json_t *info_cursor(const struct ox_cursor *c)
{
    json_t *o = json_pack("{s:I, s:{s:I, s:I}}", "cursorsLedgerId", (json_int_t)c->cursor_ledger, "markDelete",
                          "ledgerId", (json_int_t)c->mark_delete.ledger, "entryId", (json_int_t)c->mark_delete.entry);
    if (c->position_properties.count)
        put(o, "properties", internal_longs(&c->position_properties));
    return o;
}

static json_t *info_log(const struct ox_mledger *ml)
{
    json_t *ledgers = json_array(), *cursors = json_object();
    for (size_t i = 0; i < ml->ledger_count; i++)
        json_array_append_new(ledgers, info_ledger(ml, ml->ledgers[i]));
    OX_LIST_EACH(&ml->cursors, link) {
        const struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        OX_CLEANUP(ox_free_ptr)
        char *name = internal_name(c);
        if (c->durable)
            put(cursors, name, info_cursor(c));
    }
    return json_pack("{s:o, s:o}", "ledgers", ledgers, "cursors", cursors);
}

static ox_step info_got(struct ox_seq *s);

// The node of the log, or of a cursor, tells when it was made and written.
static ox_step info_look(struct admin_each *e, const char *cursor)
{
    struct ox_str path = {0};
    ox_str_adds(&path, e->topic->ml->path);
    if (cursor)
        ox_str_addf(&path, "/%s", cursor);
    memset(&e->u.node, 0, sizeof e->u.node);
    each_bind(e, &e->u.node.op);
    ox_meta_get(e->topic->shard->meta, &e->u.node, ox_str_get(&path));
    ox_str_fini(&path);
    return OX_WAIT(&e->seq, info_got);
}

static ox_step info_got(struct ox_seq *s)
{
    struct admin_each *e = CONTAINER_OF(s, struct admin_each, seq);
    json_t *cursors = json_object_get(e->result, "cursors"), *about = e->note ? json_object_iter_value(e->note) : e->result;
    if (s->err && s->err != OX_E_NOT_FOUND) // not found: a cursor that went, or is being made
        return each_ran(e, s->err);
    if (!s->err) {
        put(about, "version", json_integer((json_int_t)e->u.node.stat.version));
        put_time(about, "creationDate", e->u.node.stat.created_ms);
        put_time(about, "modificationDate", e->u.node.stat.modified_ms);
        ox_buf_unref(&e->u.node.value);
    }
    e->note = e->note ? json_object_iter_next(cursors, e->note) : json_object_iter(cursors);
    return e->note ? info_look(e, json_object_iter_key(e->note)) : each_ran(e, OX_OK);
}

static ox_step info_run(struct admin_each *e)
{
    e->result = e->topic->ml ? info_log(e->topic->ml) : json_pack("{s:[], s:{}}", "ledgers", "cursors");
    return e->topic->ml ? info_look(e, NULL) : each_ran(e, OX_OK);
}

static const struct admin_verb info_verb = {.name = "admin.topic.info", .partitioned = EACH_NOT_FOUND, .run = info_run};

static void stats_verbs(struct admin_request *r)
{
    each_start(each_new(r, (const struct admin_verb *)r->route->arg));
}

static const struct admin_route routes[] = {ADMIN_ROUTES_STATS};
const struct admin_route_table admin_stats = {routes, OX_COUNT(routes)};
