// quota.c - backlog quotas: how large and how old the backlog of a topic's slowest durable subscription may be, and what happens beyond it.
#include "base/mem.h"
#include "broker/policing.h"
#include "broker/subscription_int.h"

#define EVICT_TO_PERCENT 90 // of the quota: so much of the backlog stays

static uint64_t subscription_bytes(const struct ox_subscription *s)
{
    return ox_ml_bytes_between(s->topic->ml, s->cursor->mark_delete, s->topic->ml->last);
}

static uint64_t quota_bytes(const struct ox_topic *t)
{
    struct ox_pos oldest = topic_oldest(t, NULL, true);
    return ox_pos_equal(oldest, OX_POS_LATEST) ? 0 : ox_ml_bytes_between(t->ml, oldest, t->ml->last);
}

static bool quota_is_large(const struct ox_topic *t)
{
    return t->policies.quota_bytes >= 0 && t->ml && quota_bytes(t) > (uint64_t)t->policies.quota_bytes;
}

static enum ox_quota_state quota_state(enum ox_quota_policy policy)
{
    switch (policy) {
    case OX_QUOTA_HOLD: return OX_QUOTA_HELD;
    case OX_QUOTA_EXCEPTION: return OX_QUOTA_REFUSED;
    case OX_QUOTA_EVICT: break;
    }
    return OX_QUOTA_OK;
}

// The size goes before the age, as in Pulsar.
void quota_refresh(struct ox_topic *t)
{
    bool watched = t->shard->config.quota_check_ns && t->ml && !ox_topic_name_is_system(&t->name);
    t->is_backlog_old &= watched && t->policies.quota_s > 0 && topic_oldest(t, NULL, true).ledger != OX_POS_LATEST.ledger;
    t->quota_exceeded = OX_QUOTA_OK;
    if (watched && quota_is_large(t))
        t->quota_exceeded = quota_state(t->policies.quota_bytes_policy);
    else if (watched && t->is_backlog_old)
        t->quota_exceeded = quota_state(t->policies.quota_s_policy);
}

static void quota_apply(struct ox_topic *t)
{
    quota_refresh(t);
    if (t->quota_exceeded == OX_QUOTA_OK)
        return;
    ox_info(t->shard->log, "topic.quota.exceeded", "topic=%s backlog_bytes=%llu producers=%zu", t->name.full,
            (unsigned long long)quota_bytes(t), t->producers.count);
    producers_quota(t);
}

// ---- eviction

// Entries are taken to be of equal size, so once may not be enough; each time at least one goes.
static void subscription_evict(struct ox_subscription *s, uint64_t target)
{
    uint64_t bytes = subscription_bytes(s), before = ox_cursor_backlog(s->cursor), active = s->cursor->last_active_ms;
    while (bytes > target && ox_cursor_backlog(s->cursor) > 0) {
        double part = (double)(bytes - target) / (double)bytes;
        struct ox_pos mark = s->cursor->mark_delete;
        ox_cursor_skip(s->cursor, NULL, OX_MAX((uint64_t)((double)ox_cursor_backlog(s->cursor) * part), 1u));
        if (ox_pos_equal(mark, s->cursor->mark_delete))
            break;
        bytes = subscription_bytes(s);
    }
    uint64_t evicted = before - ox_cursor_backlog(s->cursor);
    s->cursor->last_active_ms = active;
    if (!evicted)
        return;
    ox_info(s->topic->shard->log, "subscription.evicted", "topic=%s entries=%llu backlog_bytes=%llu",
            s->topic->name.full, (unsigned long long)evicted, (unsigned long long)bytes);
    if (s->dispatcher && s->dispatcher->body->skipped)
        s->dispatcher->body->skipped(s->dispatcher);
}

static void quota_evict(struct ox_topic *t)
{
    uint64_t target = (uint64_t)t->policies.quota_bytes / 100 * EVICT_TO_PERCENT;
    t->evictions[0]++;
    t->shard->evictions[0].value++;
    OX_MAP_EACH(&t->subscriptions, n) {
        struct ox_subscription *s = SUBSCRIPTION_OF(n);
        if (s->durable && s->state == OX_SUBSCRIPTION_OPEN && subscription_bytes(s) > (uint64_t)t->policies.quota_bytes)
            subscription_evict(s, target);
    }
}

// ---- age

struct quota_age {
    struct ox_ml_read read;
    struct ox_topic *topic;
    struct policing_round *round;
};

static bool quota_is_old(const struct ox_topic *t, const struct ox_ml_read *read)
{
    uint64_t ms, now = ox_wall_ms(t->shard->loop);
    return t->policies.quota_s > 0 && read->count && entry_time_ms(&read->entries[0], &ms) && now > ms &&
           (now - ms) / 1000 > (uint64_t)t->policies.quota_s;
}

static void quota_aged(struct ox_op *op)
{
    struct quota_age *q = CONTAINER_OF(op, struct quota_age, read.op);
    struct ox_topic *t = q->topic;
    t->is_backlog_old = !op->err && quota_is_old(t, &q->read);
    if (!op->err)
        ox_ml_read_fini(&q->read);
    if (t->state == OX_TOPIC_OPEN && t->is_backlog_old && t->policies.quota_s_policy == OX_QUOTA_EVICT) {
        t->evictions[1]++;
        t->shard->evictions[1].value++;
        policing_expire(q->round, t, (uint64_t)t->policies.quota_s);
    }
    if (t->state == OX_TOPIC_OPEN)
        quota_apply(t);
    policing_idle(q->round);
    topic_unpin(t);
    ox_free(q);
}

static void quota_look_at_age(struct policing_round *r, struct ox_topic *t)
{
    struct ox_pos oldest = topic_oldest(t, NULL, true);
    struct quota_age *q = ox_malloc(sizeof *q);
    *q = (struct quota_age){
        .topic = t, .round = r, .read = {.from = ox_ml_next(t->ml, oldest), .entries_max = 1, .bytes_max = 1}};
    topic_pin(t);
    policing_busy(r);
    ox_op_init(&q->read.op, t->shard->loop, quota_aged, "quota.oldest");
    ox_mledger_read(t->ml, &q->read);
}

void quota_look(struct policing_round *r, struct ox_topic *t)
{
    if (!t->ml || ox_topic_name_is_system(&t->name))
        return;
    if (quota_is_large(t) && t->policies.quota_bytes_policy == OX_QUOTA_EVICT)
        quota_evict(t);
    t->is_backlog_old = false;
    if (t->policies.quota_s > 0 && !ox_pos_equal(topic_oldest(t, NULL, true), OX_POS_LATEST))
        quota_look_at_age(r, t);
    else
        quota_apply(t);
}
