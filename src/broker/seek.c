// seek.c - moving a subscription's cursor, and removing a subscription: consumers first, then reads, then the cursor.
#include <string.h>

#include "base/mem.h"
#include "broker/subscription_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

static struct ox_seek *seek_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct ox_seek, seq);
}

// Publish time of an entry, 0 if it cannot be told.
uint64_t entry_publish_time(const struct ox_entry *entry)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    if (ox_message_parse(entry->data, false, &view) || ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta))
        return 0;
    return meta.publish_time_ms;
}

static bool seek_is_before(void *ctx, const struct ox_entry *entry)
{
    const struct ox_seek *o = ctx;
    return entry_publish_time(entry) < o->time_ms;
}

static ox_step seek_reset(struct ox_seq *q)
{
    struct ox_seek *o = seek_of(q);
    struct ox_subscription *s = o->sub;
    if (q->err)
        return OX_FINISH(q, q->err);
    if (s->dispatcher)
        s->dispatcher->body->restart(s->dispatcher);
    return OX_FINISH(q, OX_OK);
}

static ox_step seek_to(struct ox_seek *o, struct ox_pos mark)
{
    bool into_batch = !o->by_time && o->sub->topic->shard->config.batch_index_acks;
    ox_seq_bind(&o->seq, &o->step, "cursor.reset");
    ox_cursor_reset_into(o->sub->cursor, &o->step, mark, o->pos, o->own_set, into_batch ? o->ack_words : 0);
    return OX_WAIT(&o->seq, seek_reset);
}

static ox_step seek_found(struct ox_seq *q)
{
    struct ox_seek *o = seek_of(q);
    return q->err ? OX_FINISH(q, q->err) : seek_to(o, o->find.found);
}

// The mark-delete position right before the wanted entry; a ledger that is gone is the one before it, what is not there yet is the end.
static struct ox_pos seek_mark(const struct ox_mledger *ml, struct ox_pos p)
{
    if (p.ledger < 0)
        return p.entry > 0 ? ml->last : ox_ml_clamp(ml, OX_POS_EARLIEST);
    if (ox_pos_cmp(p, ml->last) > 0)
        return ml->last;
    return ox_ml_clamp(ml, (struct ox_pos){p.ledger, p.entry > 0 ? p.entry - 1 : -1});
}

static ox_step seek_stopped(struct ox_seq *q)
{
    struct ox_seek *o = seek_of(q);
    struct ox_mledger *ml = o->sub->topic->ml;
    if (!o->by_time)
        return seek_to(o, seek_mark(ml, o->pos));
    o->find.before = seek_is_before;
    o->find.ctx = o;
    ox_seq_bind(q, &o->find.op, "mledger.find");
    ox_mledger_find(ml, &o->find);
    return OX_WAIT(q, seek_found);
}

static ox_step seek_start(struct ox_seq *q)
{
    struct ox_seek *o = seek_of(q);
    ox_seq_bind(q, &o->step, "dispatcher.stop");
    subscription_stop(o->sub, &o->step);
    return OX_WAIT(q, seek_stopped);
}

static void seek_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_seek *o = seek_of(q);
    struct ox_topic *t = o->sub->topic;
    ox_free(o->own_set);
    if (ox_err_class(err) == OX_CLASS_FENCED)
        topic_fail(t, err);
    subscription_set_state(o->sub, OX_SUBSCRIPTION_OPEN, "sought");
    subscription_linger(o->sub);
    topic_unpin(t);
    ox_op_finish(&o->op, err);
}

void ox_subscription_seek(struct ox_subscription *s, struct ox_seek *o)
{
    ox_op_begin(&o->op);
    if (!s->cursor && s->state == OX_SUBSCRIPTION_OPEN) { // nothing is kept, so every place is the present one
        ox_op_finish(&o->op, OX_OK);
        return;
    }
    if (s->topic->state != OX_TOPIC_OPEN || s->state != OX_SUBSCRIPTION_OPEN) {
        ox_op_finish(&o->op, s->topic->state != OX_TOPIC_OPEN ? OX_E_TOPIC_FENCED : OX_E_BUSY);
        return;
    }
    topic_pin(s->topic);
    o->sub = s;
    o->ack_words = OX_MIN(o->ack_words, OX_BATCH_WORDS_MAX);
    o->own_set = o->ack_words ? ox_memdup(o->ack_set, o->ack_words * sizeof *o->ack_set) : NULL;
    subscription_set_state(s, OX_SUBSCRIPTION_SEEKING, "asked");
    subscription_close_consumers(s, OX_E_CANCELED, NULL);
    ox_seq_start(&o->seq, s->topic->shard->loop, "subscription.seek", seek_start, seek_done);
}

// ---- unsubscribing

static struct ox_unsubscribe *unsubscribe_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct ox_unsubscribe, seq);
}

static ox_step unsubscribe_removed(struct ox_seq *q)
{
    return OX_FINISH(q, q->err);
}

static ox_step unsubscribe_stopped(struct ox_seq *q)
{
    struct ox_unsubscribe *o = unsubscribe_of(q);
    struct ox_cursor *cursor = o->sub->cursor;
    o->sub->cursor = NULL; // it is freed before the subscription, which can still be found then
    if (!cursor)
        return OX_FINISH(q, OX_OK);
    ox_seq_bind(q, &o->step, "cursor.remove");
    ox_cursor_remove(cursor, &o->step);
    return OX_WAIT(q, unsubscribe_removed);
}

static ox_step unsubscribe_start(struct ox_seq *q)
{
    struct ox_unsubscribe *o = unsubscribe_of(q);
    ox_seq_bind(q, &o->step, "dispatcher.stop");
    subscription_stop(o->sub, &o->step);
    return OX_WAIT(q, unsubscribe_stopped);
}

static void unsubscribe_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_unsubscribe *o = unsubscribe_of(q);
    struct ox_topic *t = o->sub->topic;
    subscription_free(o->sub);
    if (err)
        topic_fail(t, err);
    topic_unpin(t);
    ox_op_finish(&o->op, err);
}

static enum ox_err unsubscribe_refused(const struct ox_subscription *s, bool force, const struct ox_consumer *self)
{
    if (s->topic->state != OX_TOPIC_OPEN)
        return OX_E_TOPIC_FENCED;
    if (s->state != OX_SUBSCRIPTION_OPEN)
        return OX_E_BUSY;
    return !force && s->consumers.count > (self ? 1 : 0) ? OX_E_SUBSCRIPTION_BUSY : OX_OK;
}

void ox_subscription_unsubscribe(struct ox_subscription *s, struct ox_unsubscribe *o, struct ox_consumer *self)
{
    ox_op_begin(&o->op);
    enum ox_err err = unsubscribe_refused(s, o->force, self);
    if (err) {
        ox_op_finish(&o->op, err);
        return;
    }
    topic_pin(s->topic);
    o->sub = s;
    subscription_set_state(s, OX_SUBSCRIPTION_REMOVING, "unsubscribed");
    subscription_close_consumers(s, OX_E_SUBSCRIPTION_NOT_FOUND, self);
    if (self) {
        consumer_detach(self);
        self->events->closed(self, OX_OK);
        consumer_free(self);
    }
    ox_seq_start(&o->seq, s->topic->shard->loop, "subscription.remove", unsubscribe_start, unsubscribe_done);
}
