// subscribe.c - attaching consumers: finding or making the subscription, the start position, who holds it.
#include <stdio.h>

#include "base/mem.h"
#include "broker/subscription_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

static ox_step subscribe_find(struct ox_seq *q);
static ox_step subscribe_make(struct ox_subscribe *o);
static ox_step subscribe_admit(struct ox_seq *q);
static ox_step subscribe_make_at(struct ox_subscribe *o, struct ox_pos start);

static struct ox_subscribe *subscribe_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct ox_subscribe, seq);
}

static ox_step subscribe_fail(struct ox_subscribe *o, enum ox_err err, const char *why)
{
    o->why = why;
    return OX_FINISH(&o->seq, err);
}

static ox_step subscribe_start(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    const struct ox_subscription *s = ox_subscription_find(o->topic, o->own_subscription);
    if (s && s->consumers.count && s->type != o->type)
        return subscribe_fail(o, OX_E_CONSUMER_BUSY, "the subscription has a consumer of another type");
    if (o->type != OX_SUB_EXCLUSIVE)
        return subscribe_fail(o, OX_E_UNSUPPORTED, "only subscriptions of the type Exclusive are supported");
    if (!o->own_subscription[0])
        return subscribe_fail(o, OX_E_INVALID, "the subscription's name is empty");
    return OX_GOTO(q, subscribe_find);
}

static ox_step subscribe_find(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(q, OX_E_TOPIC_FENCED);
    struct ox_subscription *s = ox_subscription_find(o->topic, o->own_subscription);
    if (!s)
        return subscribe_make(o);
    if (s->state != OX_SUBSCRIPTION_OPEN) {
        ox_list_push_back(&s->waiters, &o->link);
        return OX_WAIT(q, subscribe_find);
    }
    o->sub = s;
    return OX_GOTO(q, subscribe_admit);
}

// ---- making the subscription

static ox_step subscribe_made(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    struct ox_subscription *s = o->sub;
    if (q->err) {
        subscription_free(s);
        return OX_FINISH(q, q->err);
    }
    s->cursor = o->open.cursor;
    subscription_set_state(s, OX_SUBSCRIPTION_OPEN, "made");
    return OX_GOTO(q, subscribe_admit);
}

// The mark-delete position behind which a new subscription begins.
static struct ox_pos subscribe_position(const struct ox_subscribe *o)
{
    const struct ox_mledger *ml = o->topic->ml;
    struct ox_pos latest = ml->last;
    if (!o->has_start || o->durable)
        return o->from_earliest ? ox_ml_clamp(ml, OX_POS_EARLIEST) : latest;
    if (o->start.ledger < 0)
        return o->start.entry > 0 ? latest : ox_ml_clamp(ml, OX_POS_EARLIEST);
    if (ox_pos_cmp(o->start, latest) > 0)
        return latest;
    return ox_ml_clamp(ml, (struct ox_pos){o->start.ledger, o->start.entry > 0 ? o->start.entry - 1 : -1});
}

static bool entry_is_before(void *ctx, const struct ox_entry *entry)
{
    const struct ox_subscribe *o = ctx;
    return entry_publish_time(entry) < o->before_ms;
}

static ox_step subscribe_found(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    if (q->err) {
        subscription_free(o->sub);
        return OX_FINISH(q, q->err);
    }
    return subscribe_make_at(o, o->find.found);
}

static ox_step subscribe_make(struct ox_subscribe *o)
{
    struct ox_topic *t = o->topic;
    if (o->durable && !t->shard->config.auto_subscription_creation)
        return subscribe_fail(o, OX_E_SUBSCRIPTION_NOT_FOUND, "the subscription does not exist and automatic creation is off");
    o->sub = subscription_new(t, o->own_subscription, o->durable);
    if (!o->rollback_ms)
        return subscribe_make_at(o, subscribe_position(o));
    uint64_t now = ox_wall_ms(t->shard->loop);
    o->before_ms = now > o->rollback_ms ? now - o->rollback_ms : 0;
    o->find.before = entry_is_before;
    o->find.ctx = o;
    ox_seq_bind(&o->seq, &o->find.op, "mledger.find");
    ox_mledger_find(t->ml, &o->find);
    return OX_WAIT(&o->seq, subscribe_found);
}

static ox_step subscribe_make_at(struct ox_subscribe *o, struct ox_pos start)
{
    ox_seq_bind(&o->seq, &o->open.op, "cursor.open");
    ox_cursor_open(o->topic->ml, &o->open, o->own_subscription, o->durable, start,
                   o->own_properties.count ? &o->own_properties : NULL);
    return OX_WAIT(&o->seq, subscribe_made);
}

// ---- attaching

static ox_step subscribe_probed(struct ox_seq *q)
{
    subscribe_of(q)->probed = true;
    return OX_GOTO(q, subscribe_find);
}

static ox_step subscribe_probe(struct ox_subscribe *o, struct ox_consumer *holder, enum ox_err err)
{
    if (o->probed || !holder)
        return OX_FINISH(&o->seq, err);
    ox_seq_bind(&o->seq, &o->wait, "consumer.probe");
    holder->events->probe(holder, &o->wait);
    return OX_WAIT(&o->seq, subscribe_probed);
}

// A dispatcher of another type is replaced when nobody uses it.
static enum ox_err subscribe_dispatcher(struct ox_subscription *s, enum ox_sub_type type)
{
    if (s->dispatcher && s->dispatcher->body->type == type)
        return OX_OK;
    if (s->dispatcher)
        return OX_E_CONSUMER_BUSY;
    s->dispatcher = ox_dispatcher_new(s, type);
    s->type = type;
    return OX_OK;
}

static ox_step subscribe_admit(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    struct ox_subscription *s = o->sub;
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(q, OX_E_TOPIC_FENCED);
    if (s->durable != o->durable)
        return subscribe_fail(o, OX_E_UNSUPPORTED,
                              s->durable ? "Durable subscription with the same name already exists"
                                         : "Non-durable subscription with the same name already exists");
    enum ox_err err = subscribe_dispatcher(s, o->type);
    if (err)
        return subscribe_fail(o, err, NULL);
    struct ox_consumer *holder = NULL;
    err = s->dispatcher->body->admit(s->dispatcher, o, &holder);
    if (err)
        return subscribe_probe(o, holder, err);
    o->why = NULL;
    o->consumer = consumer_new(s, o);
    return OX_FINISH(q, OX_OK);
}

static void subscribe_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_subscribe *o = subscribe_of(q);
    ox_free(o->own_subscription);
    ox_kv_fini(&o->own_properties);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, err);
}

void ox_subscribe(struct ox_topic *t, struct ox_subscribe *o)
{
    ox_op_begin(&o->op);
    topic_pin(t);
    o->topic = t;
    o->consumer = NULL;
    o->sub = NULL;
    o->why = NULL;
    o->probed = false;
    o->link = (struct ox_link){0};
    o->own_subscription = ox_strdup(o->subscription);
    o->own_properties = (struct ox_kv){0};
    if (o->properties)
        ox_kv_copy(&o->own_properties, o->properties);
    ox_seq_start(&o->seq, t->shard->loop, "subscribe", subscribe_start, subscribe_done);
}
