// stats.c - the figures of a topic under the names that Pulsar's tools read.
#include "admin/request.h"
#include "broker/producer.h"
#include "broker/subscription.h"

struct stats_call {
    struct admin_request *request;
    struct ox_topic_get get;
    json_t *(*make)(struct ox_topic *t);
};

static void put(json_t *object, const char *name, json_t *take_value)
{
    json_object_set_new(object, name, take_value);
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
    put(object, names->bytes, json_integer((json_int_t)rate->bytes));
    put(object, names->messages, json_integer((json_int_t)rate->messages));
}

static json_t *stats_metadata(const struct ox_kv *kv)
{
    json_t *object = json_object();
    for (size_t i = 0; i < kv->count; i++)
        put(object, kv->pairs[i].key, json_string(kv->pairs[i].value));
    return object;
}

static json_t *stats_publisher(const struct ox_producer *p)
{
    json_t *o = json_object();
    put(o, "accessMode", json_string("Shared"));
    put(o, "producerId", json_integer((json_int_t)p->id));
    put(o, "producerName", json_string(p->name));
    put(o, "address", json_string(p->peer));
    put(o, "connectedSinceMs", json_integer((json_int_t)p->connected_ms));
    put(o, "msgRateIn", json_real(p->in.messages_per_s));
    put(o, "msgThroughputIn", json_real(p->in.bytes_per_s));
    put(o, "averageMsgSize", json_real(p->in.messages ? (double)p->in.bytes / (double)p->in.messages : 0));
    put(o, "metadata", stats_metadata(&p->metadata));
    return o;
}

static json_t *stats_consumer(const struct ox_consumer *c)
{
    json_t *o = json_object();
    put(o, "consumerName", json_string(c->name));
    put(o, "address", json_string(c->peer));
    put(o, "connectedSinceMs", json_integer((json_int_t)c->connected_ms));
    put(o, "availablePermits", json_integer((json_int_t)c->permits));
    put(o, "lastAckedTimestamp", json_integer((json_int_t)c->last_acked_ms));
    put(o, "lastConsumedTimestamp", json_integer((json_int_t)c->last_consumed_ms));
    put(o, "lastConsumedFlowTimestamp", json_integer((json_int_t)c->last_flow_ms));
    put(o, "metadata", stats_metadata(&c->metadata));
    put_rate(o, &c->out, &names_out);
    return o;
}

static json_t *stats_position(struct ox_pos p)
{
    return json_sprintf(OX_POS_FMT, OX_POS_ARG(p));
}

static json_t *stats_subscription(struct ox_subscription *s)
{
    struct ox_subscription_stats figures;
    json_t *o = json_object(), *consumers = json_array();
    ox_subscription_stats(s, &figures);
    OX_LIST_EACH(&s->consumers, link)
        json_array_append_new(consumers, stats_consumer(CONTAINER_OF(link, struct ox_consumer, link)));
    put(o, "type", json_string(ox_sub_type_name(s->type)));
    put(o, "isDurable", json_boolean(s->durable));
    put(o, "msgBacklog", json_integer((json_int_t)figures.backlog_entries));
    put(o, "backlogSize", json_integer((json_int_t)figures.backlog_bytes));
    put(o, "unackedMessages", json_integer((json_int_t)figures.unacked));
    put(o, "markDeletePosition", stats_position(figures.mark_delete));
    put(o, "readPosition", stats_position(figures.read));
    put(o, "lastConsumedTimestamp", json_integer((json_int_t)s->last_consumed_ms));
    put(o, "lastAckedTimestamp", json_integer((json_int_t)s->last_acked_ms));
    put(o, "lastConsumedFlowTimestamp", json_integer((json_int_t)s->last_flow_ms));
    put(o, "consumers", consumers);
    put_rate(o, &s->out, &names_out);
    return o;
}

static json_t *stats_subscriptions(struct ox_topic *t)
{
    json_t *object = json_object();
    OX_MAP_EACH(&t->subscriptions, node) {
        struct ox_subscription *s = CONTAINER_OF(node, struct ox_subscription, by_name);
        put(object, s->name, stats_subscription(s));
    }
    return object;
}

static json_t *stats_topic(struct ox_topic *t)
{
    struct ox_topic_stats figures;
    json_t *o = json_object(), *publishers = json_array();
    ox_topic_stats(t, &figures);
    OX_LIST_EACH(&t->producers, link)
        json_array_append_new(publishers, stats_publisher(CONTAINER_OF(link, struct ox_producer, link)));
    put_rate(o, &t->in, &names_in);
    put_rate(o, &t->out, &names_out);
    put(o, "averageMsgSize", json_real(figures.mean_message_bytes));
    put(o, "storageSize", json_integer((json_int_t)figures.storage_bytes));
    put(o, "backlogSize", json_integer((json_int_t)figures.backlog_bytes));
    put(o, "publishers", publishers);
    put(o, "subscriptions", stats_subscriptions(t));
    put(o, "replication", json_object());
    put(o, "deduplicationStatus", json_string("Disabled"));
    put(o, "ownerBroker", json_string(t->shard->config.web_url));
    return o;
}

static json_t *stats_subscription_names(struct ox_topic *t)
{
    json_t *array = json_array();
    OX_MAP_EACH(&t->subscriptions, node) {
        const struct ox_subscription *s = CONTAINER_OF(node, struct ox_subscription, by_name);
        if (s->durable)
            json_array_append_new(array, json_string(s->name));
    }
    return array;
}

static void stats_ready(struct ox_op *op)
{
    struct stats_call *call = CONTAINER_OF(op, struct stats_call, get.op);
    struct admin_request *r = call->request;
    if (op->err == OX_OK) {
        json_t *answer = call->make(call->get.topic);
        ox_topic_put(call->get.topic);
        admin_json(r, MHD_HTTP_OK, answer);
    } else {
        admin_error(r, op->err, r->topic.full, call->get.why);
    }
    ox_free(call);
}

static void stats_start(struct admin_request *r, json_t *(*make)(struct ox_topic *t))
{
    struct stats_call *call = ox_malloc(sizeof *call);
    call->request = r;
    call->make = make;
    ox_op_init(&call->get.op, r->admin->shard->loop, stats_ready, "admin.topic.get");
    ox_topic_get(r->admin->shard, &call->get, &r->topic);
}

void admin_topic_stats(struct admin_request *r)
{
    stats_start(r, stats_topic);
}

void admin_topic_subscriptions(struct admin_request *r)
{
    stats_start(r, stats_subscription_names);
}
