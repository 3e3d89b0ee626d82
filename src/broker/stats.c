// stats.c - figures of topics and subscriptions, and the end of a statistics interval.
#include "broker/limits.h"
#include "broker/nonpersistent.h"
#include "broker/publish_hist.h"
#include "broker/resend.h"
#include "broker/shared.h"
#include "broker/subscription_int.h"
#include "broker/topic_int.h"

void ox_subscription_stats(const struct ox_subscription *s, struct ox_subscription_stats *ret)
{
    *ret = (struct ox_subscription_stats){.consumers = s->consumers.count};
    const struct ox_cursor *c = s->cursor;
    if (!c || !s->topic->ml)
        return;
    ret->backlog_entries = ox_cursor_backlog(c);
    ret->backlog_bytes = ox_ml_bytes_between(s->topic->ml, c->mark_delete, s->topic->ml->last);
    ret->mark_delete = c->mark_delete;
    ret->read = c->read;
    uint64_t behind = ox_ml_count(s->topic->ml, c->mark_delete, ox_ml_prev(s->topic->ml, c->read));
    OX_LIST_EACH(&s->consumers, l) {
        const struct ox_consumer *consumer = CONTAINER_OF(l, struct ox_consumer, link);
        ret->acks_per_s += consumer->acks.messages_per_s;
        ret->again_per_s += consumer->again.messages_per_s;
    }
    if (s->type == OX_SUB_SHARED || s->type == OX_SUB_KEY_SHARED) {
        ret->unacked = s->unacked;
        ret->waiting = s->dispatcher ? shared_of(s->dispatcher)->replay.count : 0;
    } else {
        ret->unacked = s->consumers.count && behind > c->acked_behind ? behind - c->acked_behind : 0;
    }
}

const struct ox_selector *ox_subscription_selector(const struct ox_subscription *s, bool *ret_out_of_order)
{
    if (!s->cursor || !s->dispatcher || s->dispatcher->body->type != OX_SUB_KEY_SHARED)
        return NULL;
    const struct shared *d = shared_of(s->dispatcher);
    *ret_out_of_order = !d->draining;
    return d->selector;
}

struct draining_walk {
    const struct shared *shared;
    void (*fn)(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries, uint32_t refused);
    void *ctx;
};

static void draining_one(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries, uint32_t refused)
{
    const struct draining_walk *w = (const struct draining_walk *)ctx;
    if (ox_selector_find(w->shared->selector, hash) != holder)
        w->fn(w->ctx, holder, hash, entries, refused);
}

void ox_subscription_draining(const struct ox_subscription *s,
                              void (*fn)(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries,
                                         uint32_t refused),
                              void *ctx)
{
    bool out_of_order = true;
    if (!ox_subscription_selector(s, &out_of_order) || out_of_order)
        return;
    struct draining_walk w = {.shared = shared_of(s->dispatcher), .fn = fn, .ctx = ctx};
    ox_draining_each(w.shared->draining, draining_one, &w);
}

bool ox_subscription_rereads(const struct ox_subscription *s)
{
    return s->cursor && s->dispatcher && (s->type == OX_SUB_SHARED || s->type == OX_SUB_KEY_SHARED) &&
           shared_rereading(shared_of(s->dispatcher));
}

void ox_topic_stats(const struct ox_topic *t, struct ox_topic_stats *ret)
{
    *ret = (struct ox_topic_stats){.producers = t->producers.count,
                                   .subscriptions = ox_map_count(&t->subscriptions),
                                   .inflight_bytes = t->inflight_bytes,
                                   .mean_message_bytes = ox_rate_mean_bytes(&t->in)};
    ret->storage_bytes = t->ml ? t->ml->total_bytes : 0;
    ret->entries = t->ml ? t->ml->total_entries : 0;
    OX_MAP_EACH(&t->subscriptions, n) {
        struct ox_subscription_stats one;
        ox_subscription_stats(SUBSCRIPTION_OF(n), &one);
        ret->consumers += one.consumers;
        ret->backlog_entries = OX_MAX(ret->backlog_entries, one.backlog_entries);
        ret->backlog_bytes = OX_MAX(ret->backlog_bytes, one.backlog_bytes);
    }
}

static void subscription_tick(struct ox_subscription *s, double seconds)
{
    ox_rate_tick(&s->out, seconds);
    nonpersistent_tick(s, seconds);
    OX_LIST_EACH(&s->consumers, l) {
        struct ox_consumer *c = CONTAINER_OF(l, struct ox_consumer, link);
        ox_rate_tick(&c->out, seconds);
        ox_rate_tick(&c->acks, seconds);
        ox_rate_tick(&c->again, seconds);
    }
    s->expired_per_s = (double)(s->expired - s->expired_mark) / seconds;
    s->expired_mark = s->expired;
    dispatch_limits_follow(s);
}

static void topic_tick_reads(struct ox_topic *t, double seconds)
{
    if (!t->ml)
        return;
    t->read.entries = t->ml->read_entries;
    t->read.bytes = t->ml->read_bytes;
    t->read_store.entries = t->ml->store_read_entries;
    ox_rate_tick(&t->read, seconds);
    ox_rate_tick(&t->read_store, seconds);
}

void topic_tick(struct ox_topic *t, double seconds)
{
    ox_rate_tick(&t->in, seconds);
    ox_rate_tick(&t->out, seconds);
    publish_hist_tick(&t->hist);
    topic_tick_reads(t, seconds);
    ox_resend_expire(t);
    OX_LIST_EACH(&t->producers, l)
        ox_rate_tick(&CONTAINER_OF(l, struct ox_producer, link)->in, seconds);
    OX_MAP_EACH(&t->subscriptions, n)
        subscription_tick(SUBSCRIPTION_OF(n), seconds);
}
