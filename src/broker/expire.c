// expire.c - finds the last entry that is too old, once for all subscriptions of a topic, and moves them behind it.
#include "broker/expire.h"

#include <string.h>

#include "base/mem.h"
#include "broker/policing.h"
#include "broker/subscription_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

static struct ox_topic_expire *expire_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_topic_expire, seq);
}

static bool expire_concerns(const struct ox_topic_expire *e, const struct ox_subscription *s)
{
    return s->state == OX_SUBSCRIPTION_OPEN && (!e->own_subscription || strcmp(e->own_subscription, s->name) == 0);
}

bool entry_time_ms(const struct ox_entry *entry, uint64_t *ret_ms)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    if (ox_message_parse(entry->data, false, &view) != OX_OK)
        return false;
    if (view.has_broker_entry && view.broker_entry.has_timestamp) {
        *ret_ms = view.broker_entry.timestamp_ms;
        return true;
    }
    if (ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta) != OX_OK)
        return false;
    *ret_ms = meta.publish_time_ms;
    return true;
}

// What cannot be told is not too old.
static bool entry_is_old(void *ctx, const struct ox_entry *entry)
{
    const struct ox_topic_expire *e = ctx;
    uint64_t ms;
    return entry_time_ms(entry, &ms) && ms < e->before_ms;
}

// Expiry is no sign of life of the subscription.
static uint64_t subscription_skip_to(struct ox_subscription *s, struct ox_pos to)
{
    struct ox_cursor *c = s->cursor;
    uint64_t before = ox_cursor_backlog(c), active = c->last_active_ms;
    if (ox_pos_cmp(to, c->mark_delete) <= 0)
        return 0;
    ox_cursor_mark_delete(c, NULL, to);
    c->last_active_ms = active;
    if (s->dispatcher && s->dispatcher->body->skipped)
        s->dispatcher->body->skipped(s->dispatcher);
    uint64_t after = ox_cursor_backlog(c);
    return before > after ? before - after : 0;
}

static void expire_upto(struct ox_topic_expire *e, struct ox_pos upto)
{
    struct ox_topic *t = e->topic;
    OX_MAP_EACH(&t->subscriptions, n) {
        struct ox_subscription *s = SUBSCRIPTION_OF(n);
        if (!expire_concerns(e, s))
            continue;
        uint64_t expired = subscription_skip_to(s, upto);
        s->expired += expired;
        s->last_expired_ms = ox_wall_ms(t->shard->loop);
        e->expired += expired;
    }
    if (e->expired)
        ox_debug(t->shard->log, "topic.expired", "topic=%s entries=%llu", t->name.full, (unsigned long long)e->expired);
}

// What cannot be read goes by the age of its ledger.
static ox_step expire_unread(struct ox_seq *q)
{
    struct ox_topic_expire *e = expire_of(q);
    if (e->topic->state == OX_TOPIC_OPEN)
        expire_upto(e, ox_ml_closed_before(e->topic->ml, e->before_ms));
    return OX_FINISH(q, q->err);
}

static ox_step expire_found(struct ox_seq *q)
{
    struct ox_topic_expire *e = expire_of(q);
    if (q->err)
        return OX_GOTO(q, expire_unread);
    if (e->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(q, OX_E_TOPIC_FENCED);
    expire_upto(e, e->find.found);
    return OX_FINISH(q, OX_OK);
}

static ox_step expire_looked(struct ox_seq *q)
{
    struct ox_topic_expire *e = expire_of(q);
    if (q->err == OX_E_NO_ENTRY)
        return OX_FINISH(q, OX_OK);
    if (q->err)
        return OX_GOTO(q, expire_unread);
    bool old = e->read.count == 0 || entry_is_old(e, &e->read.entries[0]); // none: it was lost
    ox_ml_read_fini(&e->read);
    if (!old)
        return OX_FINISH(q, OX_OK);
    e->find = (struct ox_ml_find){.before = entry_is_old, .ctx = e};
    ox_seq_bind(q, &e->find.op, "expire.find");
    ox_mledger_find(e->topic->ml, &e->find);
    return OX_WAIT(q, expire_found);
}

struct ox_pos topic_oldest(const struct ox_topic *t, const struct ox_topic_expire *e, bool durable_only)
{
    struct ox_pos oldest = OX_POS_LATEST;
    OX_MAP_EACH(&t->subscriptions, n) {
        const struct ox_subscription *s = SUBSCRIPTION_OF(n);
        bool concerned = e ? expire_concerns(e, s) : s->state == OX_SUBSCRIPTION_OPEN;
        if (concerned && (s->durable || !durable_only) && ox_cursor_backlog(s->cursor) > 0 &&
            ox_pos_cmp(s->cursor->mark_delete, oldest) < 0)
            oldest = s->cursor->mark_delete;
    }
    return oldest;
}

static ox_step expire_start(struct ox_seq *q)
{
    struct ox_topic_expire *e = expire_of(q);
    struct ox_topic *t = e->topic;
    if (!t->ml)
        return OX_FINISH(q, OX_E_UNSUPPORTED);
    if (t->state != OX_TOPIC_OPEN)
        return OX_FINISH(q, OX_E_TOPIC_FENCED);
    if (e->own_subscription && !ox_subscription_find(t, e->own_subscription))
        return OX_FINISH(q, OX_E_SUBSCRIPTION_NOT_FOUND);
    struct ox_pos oldest = topic_oldest(t, e, false);
    if (ox_pos_equal(oldest, OX_POS_LATEST))
        return OX_FINISH(q, OX_OK);
    e->read = (struct ox_ml_read){.from = ox_ml_next(t->ml, oldest), .entries_max = 1, .bytes_max = 1};
    ox_seq_bind(q, &e->read.op, "expire.oldest");
    ox_mledger_read(t->ml, &e->read);
    return OX_WAIT(q, expire_looked);
}

static void expire_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_topic_expire *e = expire_of(q);
    ox_free(e->own_subscription);
    topic_unpin(e->topic);
    ox_op_finish(&e->op, err);
}

void ox_topic_expire(struct ox_topic *t, struct ox_topic_expire *e)
{
    ox_op_begin(&e->op);
    topic_pin(t);
    e->topic = t;
    e->expired = 0;
    e->own_subscription = e->subscription ? ox_strdup(e->subscription) : NULL;
    ox_seq_start(&e->seq, t->shard->loop, "topic.expire", expire_start, expire_done);
}
