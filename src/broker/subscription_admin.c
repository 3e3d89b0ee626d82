// subscription_admin.c - making, skipping and describing subscriptions for an administrator.
#include "broker/subscription_admin.h"

#include "base/mem.h"
#include "broker/subscription_int.h"

// ---- making

static void create_opened(struct ox_op *op)
{
    struct ox_subscription_create *o = CONTAINER_OF(op, struct ox_subscription_create, open.op);
    struct ox_subscription *s = o->sub;
    struct ox_topic *t = s->topic;
    if (op->err) {
        subscription_free(s);
    } else {
        s->cursor = o->open.cursor;
        subscription_set_state(s, OX_SUBSCRIPTION_OPEN, "made");
    }
    topic_unpin(t);
    ox_op_finish(&o->op, op->err);
}

// The mark-delete position right before the first entry that is wanted.
static struct ox_pos create_mark(const struct ox_mledger *ml, struct ox_pos from)
{
    if (ox_pos_cmp(from, ml->last) > 0)
        return ml->last;
    if (from.ledger < 0)
        return ox_ml_clamp(ml, OX_POS_EARLIEST);
    return ox_ml_clamp(ml, (struct ox_pos){from.ledger, from.entry > 0 ? from.entry - 1 : -1});
}

static size_t durable_subscriptions(struct ox_topic *t)
{
    size_t count = 0;
    OX_MAP_EACH(&t->subscriptions, n)
        count += SUBSCRIPTION_OF(n)->durable;
    return count;
}

static enum ox_err create_refused(struct ox_topic *t, const char *name)
{
    uint32_t max = t->policies.max_subscriptions;
    if (t->state != OX_TOPIC_OPEN)
        return OX_E_TOPIC_FENCED;
    if (!name[0])
        return OX_E_INVALID;
    if (cursor_is_internal(name))
        return OX_E_NOT_ALLOWED;
    if (ox_subscription_find(t, name))
        return OX_E_EXISTS;
    return !t->ml || (max && durable_subscriptions(t) >= max) ? OX_E_NOT_ALLOWED : OX_OK;
}

void ox_subscription_create(struct ox_topic *t, struct ox_subscription_create *o)
{
    ox_op_begin(&o->op);
    enum ox_err err = create_refused(t, o->name);
    if (err) {
        ox_op_finish(&o->op, err);
        return;
    }
    topic_pin(t);
    o->sub = subscription_new(t, o->name, true);
    ox_op_init(&o->open.op, t->shard->loop, create_opened, "cursor.open");
    ox_cursor_open(t->ml, &o->open, o->name, true, create_mark(t->ml, o->from), o->properties);
}

// ---- changing

static enum ox_err change_refused(const struct ox_subscription *s)
{
    if (s->topic->state != OX_TOPIC_OPEN)
        return OX_E_TOPIC_FENCED;
    if (s->state != OX_SUBSCRIPTION_OPEN)
        return OX_E_BUSY;
    return s->cursor ? OX_OK : OX_E_NOT_ALLOWED;
}

static void skip_done(struct ox_op *op)
{
    struct ox_subscription_skip *o = CONTAINER_OF(op, struct ox_subscription_skip, ack.op);
    struct ox_topic *t = o->sub->topic;
    if (ox_err_class(op->err) == OX_CLASS_FENCED)
        topic_fail(t, op->err);
    topic_unpin(t);
    ox_op_finish(&o->op, op->err);
}

void ox_subscription_skip(struct ox_subscription *s, struct ox_subscription_skip *o)
{
    ox_op_begin(&o->op);
    enum ox_err err = change_refused(s);
    if (err) {
        ox_op_finish(&o->op, err);
        return;
    }
    topic_pin(s->topic);
    o->sub = s;
    ox_op_init(&o->ack.op, s->topic->shard->loop, skip_done, "cursor.skip");
    if (o->to_position)
        ox_cursor_mark_delete(s->cursor, &o->ack, ox_ml_clamp(s->topic->ml, o->upto));
    else if (o->count == UINT64_MAX)
        ox_cursor_mark_delete(s->cursor, &o->ack, s->topic->ml->last);
    else
        ox_cursor_skip(s->cursor, &o->ack, o->count);
    if (s->dispatcher && s->dispatcher->body->skipped)
        s->dispatcher->body->skipped(s->dispatcher);
}

static void properties_done(struct ox_op *op)
{
    struct ox_subscription_properties *o = CONTAINER_OF(op, struct ox_subscription_properties, step);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, op->err);
}

void ox_subscription_set_properties(struct ox_subscription *s, struct ox_subscription_properties *o)
{
    ox_op_begin(&o->op);
    enum ox_err err = change_refused(s);
    if (err) {
        ox_op_finish(&o->op, err);
        return;
    }
    o->topic = s->topic;
    topic_pin(o->topic);
    ox_op_init(&o->step, o->topic->shard->loop, properties_done, "cursor.properties");
    ox_cursor_set_properties(s->cursor, &o->step, o->properties);
}

// ---- replication

static void replicate_done(struct ox_op *op)
{
    struct ox_subscription_replicate *o = CONTAINER_OF(op, struct ox_subscription_replicate, step.op);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, op->err);
}

void ox_subscription_replicate(struct ox_subscription *s, struct ox_subscription_replicate *o)
{
    ox_op_begin(&o->op);
    enum ox_err err = change_refused(s);
    if (err || ox_subscription_is_replicated(s) == o->replicated) {
        ox_op_finish(&o->op, err);
        return;
    }
    struct ox_kv properties = {0};
    o->topic = s->topic;
    topic_pin(o->topic);
    ox_kv_copy(&properties, &s->cursor->position_properties);
    if (o->replicated)
        ox_kv_set(&properties, OX_REPLICATED_PROPERTY, "1");
    else
        (void)ox_kv_remove(&properties, OX_REPLICATED_PROPERTY);
    ox_op_init(&o->step.op, o->topic->shard->loop, replicate_done, "cursor.replicated");
    ox_cursor_mark_delete_with(s->cursor, &o->step, s->cursor->mark_delete, &properties);
    ox_kv_fini(&properties);
}

// ---- emptying a topic

static ox_step truncate_next(struct ox_seq *q);

static struct ox_topic_truncate *truncate_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct ox_topic_truncate, seq);
}

// The ledger in use is full of what nobody needs: the next one takes over, so that it can go. One that rolls just now does the same.
static ox_step truncate_rolled(struct ox_seq *q)
{
    struct ox_topic_truncate *o = truncate_of(q);
    if (o->topic->ml && o->topic->state == OX_TOPIC_OPEN)
        ox_mledger_trim(o->topic->ml);
    return OX_FINISH(q, q->err == OX_E_BUSY ? OX_OK : q->err);
}

static ox_step truncate_skipped(struct ox_seq *q)
{
    return q->err ? OX_FINISH(q, q->err) : OX_GOTO(q, truncate_next);
}

static ox_step truncate_next(struct ox_seq *q)
{
    struct ox_topic_truncate *o = truncate_of(q);
    while (o->at < o->count) {
        struct ox_subscription *s = ox_subscription_find(o->topic, o->names[o->at++]);
        if (!s || !s->durable)
            continue;
        o->skip.count = UINT64_MAX;
        ox_seq_bind(q, &o->skip.op, "subscription.skip");
        ox_subscription_skip(s, &o->skip);
        return OX_WAIT(q, truncate_skipped);
    }
    if (o->topic->ml->last.entry < 0)
        return OX_FINISH(q, OX_OK);
    ox_seq_bind(q, &o->step, "mledger.roll");
    ox_mledger_roll(o->topic->ml, &o->step);
    return OX_WAIT(q, truncate_rolled);
}

static void truncate_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_topic_truncate *o = truncate_of(q);
    for (size_t i = 0; i < o->count; i++)
        ox_free(o->names[i]);
    ox_free(o->names);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, err);
}

void ox_topic_truncate(struct ox_topic *t, struct ox_topic_truncate *o)
{
    ox_op_begin(&o->op);
    if (t->state != OX_TOPIC_OPEN || !t->ml) {
        ox_op_finish(&o->op, t->ml ? OX_E_TOPIC_FENCED : OX_E_NOT_ALLOWED);
        return;
    }
    topic_pin(t);
    o->topic = t;
    o->at = o->count = 0;
    o->names = ox_calloc(ox_map_count(&t->subscriptions) + 1, sizeof *o->names);
    OX_MAP_EACH(&t->subscriptions, n)
        o->names[o->count++] = ox_strdup(SUBSCRIPTION_OF(n)->name);
    ox_seq_start(&o->seq, t->shard->loop, "topic.truncate", truncate_next, truncate_done);
}
