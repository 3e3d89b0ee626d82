// handle_subscribe.c - SUBSCRIBE: finds the topic, attaches a consumer.
#include "pulsar/handlers.h"

struct subscribing {
    struct request request;
    struct session_consumer *sc;
    struct ox_topic_get get;
    struct ox_subscribe open;
    struct ox_kv metadata, properties;
    char *subscription, *name;
    int32_t *ranges;
    uint64_t *start_set;
};

static void subscribing_free(struct subscribing *b)
{
    ox_kv_fini(&b->metadata);
    ox_kv_fini(&b->properties);
    ox_free(b->subscription);
    ox_free(b->name);
    ox_free(b->ranges);
    ox_free(b->start_set);
    request_free(&b->request);
}

static void subscribing_failed(struct subscribing *b, enum ox_err err, const char *why)
{
    if (!b->sc->canceled)
        request_error(&b->request, err, why);
    session_drop_consumer(b->sc);
    subscribing_free(b);
}

static void subscribing_attached(struct ox_op *op)
{
    struct subscribing *b = CONTAINER_OF(op, struct subscribing, open.op);
    struct session_consumer *sc = b->sc;
    if (op->err) {
        subscribing_failed(b, op->err, b->open.why);
        return;
    }
    if (sc->canceled) {
        ox_consumer_close(b->open.consumer);
        session_drop_consumer(sc);
    } else {
        sc->consumer = b->open.consumer;
        session_success(sc->session, b->request.id);
    }
    subscribing_free(b);
}

static void subscribing_got(struct ox_op *op)
{
    struct subscribing *b = CONTAINER_OF(op, struct subscribing, get.op);
    if (op->err) {
        subscribing_failed(b, op->err, b->get.why);
        return;
    }
    struct ox_topic *t = b->get.topic;
    ox_op_init(&b->open.op, t->shard->loop, subscribing_attached, "subscribe");
    ox_subscribe(t, &b->open);
    ox_topic_put(t);
}

static enum ox_sub_type subscribing_type(Oxpb__CommandSubscribe__SubType type)
{
    switch (type) {
    case OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Shared: return OX_SUB_SHARED;
    case OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Failover: return OX_SUB_FAILOVER;
    case OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Key_Shared: return OX_SUB_KEY_SHARED;
    case OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive:
    case _OXPB__COMMAND_SUBSCRIBE__SUB_TYPE_IS_INT_SIZE: return OX_SUB_EXCLUSIVE;
    }
    return OX_SUB_EXCLUSIVE;
}

static void subscribing_copy(struct subscribing *b, const Oxpb__CommandSubscribe *c)
{
    for (size_t i = 0; i < c->n_metadata; i++)
        ox_kv_set(&b->metadata, c->metadata[i]->key, c->metadata[i]->value);
    for (size_t i = 0; i < c->n_subscription_properties; i++)
        ox_kv_set(&b->properties, c->subscription_properties[i]->key, c->subscription_properties[i]->value);
    b->subscription = ox_strdup(c->subscription);
    b->name = ox_strdup(c->consumer_name ? c->consumer_name : "");
}

static void subscribing_fill_keys(struct subscribing *b, const Oxpb__KeySharedMeta *keys)
{
    struct ox_key_shared *to = &b->open.keys;
    if (!keys)
        return;
    to->mode = keys->key_shared_mode == OXPB__KEY_SHARED_MODE__STICKY ? OX_KEY_STICKY : OX_KEY_AUTO_SPLIT;
    to->out_of_order = keys->allow_out_of_order_delivery;
    to->range_count = keys->n_hash_ranges;
    b->ranges = ox_calloc(2 * keys->n_hash_ranges + 1, sizeof *b->ranges);
    for (size_t i = 0; i < keys->n_hash_ranges; i++) {
        b->ranges[2 * i] = keys->hash_ranges[i]->start;
        b->ranges[2 * i + 1] = keys->hash_ranges[i]->end;
    }
    to->ranges = b->ranges;
}

static void subscribing_fill_start(struct subscribing *b, const Oxpb__MessageIdData *start)
{
    struct ox_subscribe *o = &b->open;
    if (!start)
        return;
    o->has_start = true;
    o->start = (struct ox_pos){(int64_t)start->ledger_id, (int64_t)start->entry_id};
    o->start_words = start->n_ack_set;
    b->start_set = start->n_ack_set ? ox_memdup(start->ack_set, start->n_ack_set * sizeof *b->start_set) : NULL;
    o->start_set = b->start_set;
}

static void subscribing_fill(struct subscribing *b, const Oxpb__CommandSubscribe *c)
{
    struct session *s = b->request.session;
    struct ox_subscribe *o = &b->open;
    subscribing_copy(b, c);
    *o = (struct ox_subscribe){.subscription = b->subscription,
                               .name = b->name,
                               .type = subscribing_type(c->sub_type),
                               .durable = c->durable,
                               .from_earliest = c->initial_position == OXPB__COMMAND_SUBSCRIBE__INITIAL_POSITION__Earliest,
                               .rollback_ms = OX_MIN(c->start_message_rollback_duration_sec, UINT64_MAX / 1000) * 1000,
                               .priority = c->priority_level,
                               .read_compacted = c->read_compacted,
                               .replicated = c->replicate_subscription_state,
                               .epoch = c->consumer_epoch,
                               .id = c->consumer_id,
                               .connection = s,
                               .peer = s->peer,
                               .client_version = s->client_version,
                               .metadata = &b->metadata,
                               .properties = &b->properties,
                               .events = &session_consumer_events,
                               .owner = b->sc};
    subscribing_fill_keys(b, c->key_shared_meta);
    subscribing_fill_start(b, c->start_message_id);
}

static bool subscribing_is_twice(struct session *s, const Oxpb__CommandSubscribe *c)
{
    struct session_consumer *there = session_find_consumer(s, c->consumer_id);
    if (there && there->consumer)
        session_success(s, c->request_id);
    else if (there)
        session_error(s, c->request_id, OX_E_BUSY, c->topic, "the consumer is being opened on this connection already");
    return there;
}

enum ox_err handle_subscribe(struct session *s, const void *command)
{
    const Oxpb__CommandSubscribe *c = command;
    if (subscribing_is_twice(s, c))
        return OX_OK;
    struct subscribing *b = request_new(s, sizeof *b, c->request_id);
    if (!request_topic(&b->request, c->topic))
        return OX_OK;
    b->sc = session_add_consumer(s, c->consumer_id);
    b->sc->partition = b->request.name.partition;
    subscribing_fill(b, c);
    b->get.create = c->force_topic_creation;
    ox_op_init(&b->get.op, s->stream->loop, subscribing_got, "topic.get");
    ox_topic_get(s->server->shard, &b->get, &b->request.name);
    return OX_OK;
}
