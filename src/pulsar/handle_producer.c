// handle_producer.c - PRODUCER: finds the topic, attaches, answers with the name.
#include "pulsar/handlers.h"

struct producing {
    struct request request;
    struct session_producer *sp;
    struct ox_topic_get get;
    struct ox_producer_open open;
    struct ox_kv metadata;
    char *name, *initial_subscription;
};

static Oxpb__CommandProducerSuccess producing_success(uint64_t request_id, char *name)
{
    Oxpb__CommandProducerSuccess answer = OXPB__COMMAND_PRODUCER_SUCCESS__INIT;
    answer.request_id = request_id;
    answer.producer_name = name;
    answer.has_last_sequence_id = 1;
    answer.last_sequence_id = -1;
    answer.has_producer_ready = 1;
    answer.producer_ready = 0; // where it is absent it means true
    answer.has_schema_version = 1;
    return answer;
}

static void producing_answer(struct session *s, uint64_t request_id, struct ox_producer *p)
{
    Oxpb__CommandProducerSuccess answer = producing_success(request_id, p->name);
    answer.last_sequence_id = ox_producer_last_sequence(p);
    answer.producer_ready = 1;
    answer.has_topic_epoch = p->topic->epoch >= 0;
    answer.topic_epoch = answer.has_topic_epoch ? (uint64_t)p->topic->epoch : 0;
    session_command(s, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS, &answer.base);
}

// It is told that it waits for its turn; the same request is answered again when it has come.
static void producing_queued(struct ox_producer_open *o)
{
    struct producing *p = CONTAINER_OF(o, struct producing, open);
    if (p->sp->canceled) {
        ox_producer_open_cancel(o);
        return;
    }
    Oxpb__CommandProducerSuccess answer = producing_success(p->request.id, o->own_name);
    session_command(p->request.session, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS, &answer.base);
    request_set_idle(&p->request);
}

static void producing_free(struct producing *p)
{
    ox_kv_fini(&p->metadata);
    ox_free(p->name);
    ox_free(p->initial_subscription);
    request_free(&p->request);
}

static void producing_failed(struct producing *p, enum ox_err err, const char *why)
{
    if (!p->sp->canceled)
        request_error(&p->request, err, why);
    session_drop_producer(p->sp);
    producing_free(p);
}

static void producing_opened(struct ox_op *op)
{
    struct producing *p = CONTAINER_OF(op, struct producing, open.op);
    struct session_producer *sp = p->sp;
    sp->opening = NULL;
    if (op->err) {
        producing_failed(p, op->err, p->open.why);
        return;
    }
    if (sp->canceled) {
        ox_producer_close(p->open.producer);
        session_drop_producer(sp);
    } else {
        sp->producer = p->open.producer;
        producing_answer(sp->session, p->request.id, sp->producer);
    }
    producing_free(p);
}

static void producing_got(struct ox_op *op)
{
    struct producing *p = CONTAINER_OF(op, struct producing, get.op);
    if (op->err) {
        producing_failed(p, op->err, p->get.why);
        return;
    }
    struct ox_topic *t = p->get.topic;
    p->sp->opening = &p->open;
    ox_op_init(&p->open.op, t->shard->loop, producing_opened, "producer.open");
    ox_producer_open(t, &p->open);
    ox_topic_put(t);
}

static void producing_fill(struct producing *p, const Oxpb__CommandProducer *c)
{
    struct session *s = p->request.session;
    for (size_t i = 0; i < c->n_metadata; i++)
        ox_kv_set(&p->metadata, c->metadata[i]->key, c->metadata[i]->value);
    p->name = c->producer_name && *c->producer_name ? ox_strdup(c->producer_name) : NULL;
    p->open.name = p->name;
    p->open.user_named = p->name && c->user_provided_producer_name;
    p->open.reconnect = p->name || c->epoch > 0;
    p->open.epoch = c->epoch;
    p->open.id = c->producer_id;
    p->open.connection = s;
    p->open.mode = (enum ox_access_mode)c->producer_access_mode;
    p->open.encrypted = c->encrypted;
    p->open.topic_epoch = c->has_topic_epoch && c->topic_epoch <= INT64_MAX ? (int64_t)c->topic_epoch : -1;
    p->initial_subscription = c->initial_subscription_name ? ox_strdup(c->initial_subscription_name) : NULL;
    p->open.initial_subscription = p->initial_subscription;
    p->open.queued = producing_queued;
    p->open.metadata = &p->metadata;
    p->open.peer = s->peer;
    p->open.client_version = s->client_version;
    p->open.events = &session_producer_events;
    p->open.owner = p->sp;
}

enum ox_err handle_producer(struct session *s, const void *command)
{
    const Oxpb__CommandProducer *c = command;
    struct session_producer *there = session_find_producer(s, c->producer_id);
    if (there && there->producer) {
        producing_answer(s, c->request_id, there->producer);
        return OX_OK;
    }
    if (there) {
        session_error(s, c->request_id, OX_E_BUSY, c->topic, "the producer is being opened on this connection already");
        return OX_OK;
    }
    struct producing *p = request_new(s, sizeof *p, c->request_id);
    if (!request_topic(&p->request, c->topic))
        return OX_OK;
    p->sp = session_add_producer(s, c->producer_id);
    producing_fill(p, c);
    p->get.create = true;
    ox_op_init(&p->get.op, s->stream->loop, producing_got, "topic.get");
    ox_topic_get(s->server->shard, &p->get, &p->request.name);
    return OX_OK;
}
