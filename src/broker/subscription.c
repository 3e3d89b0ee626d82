// subscription.c - subscriptions: states, consumers, going away.
#include "broker/subscription_int.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/limits.h"

const char *ox_sub_state_name(enum ox_sub_state state)
{
    static const char *const names[] = {
#define OX_X(name) [OX_SUBSCRIPTION_##name] = #name,
        OX_SUB_STATES(OX_X)
#undef OX_X
    };
    return names[state];
}

bool ox_subscription_is_replicated(const struct ox_subscription *s)
{
    const char *mark = s->cursor ? ox_kv_find(&s->cursor->position_properties, OX_REPLICATED_PROPERTY) : NULL;
    return mark && strcmp(mark, "1") == 0;
}

const char *ox_sub_type_name(enum ox_sub_type type)
{
    static const char *const names[] = {
        [OX_SUB_EXCLUSIVE] = "Exclusive", [OX_SUB_SHARED] = "Shared", [OX_SUB_FAILOVER] = "Failover", [OX_SUB_KEY_SHARED] = "Key_Shared"};
    return names[type];
}

void subscription_set_state(struct ox_subscription *s, enum ox_sub_state to, const char *why)
{
    static const unsigned allowed[] = {
        [OX_SUBSCRIPTION_OPENING] = 1u << OX_SUBSCRIPTION_OPEN | 1u << OX_SUBSCRIPTION_GONE,
        [OX_SUBSCRIPTION_OPEN] = 1u << OX_SUBSCRIPTION_SEEKING | 1u << OX_SUBSCRIPTION_REMOVING | 1u << OX_SUBSCRIPTION_GONE,
        [OX_SUBSCRIPTION_SEEKING] = 1u << OX_SUBSCRIPTION_OPEN,
        [OX_SUBSCRIPTION_REMOVING] = 1u << OX_SUBSCRIPTION_GONE,
        [OX_SUBSCRIPTION_GONE] = 0,
    };
    OX_ASSERT(allowed[s->state] & 1u << to);
    ox_debug(s->topic->shard->log, "subscription.state", "topic=%s from=%s to=%s why=%s", s->topic->name.full,
             ox_sub_state_name(s->state), ox_sub_state_name(to), why);
    s->state = to;
    for (struct ox_link *l = ox_list_pop_front(&s->waiters); l; l = ox_list_pop_front(&s->waiters))
        ox_seq_resume(&CONTAINER_OF(l, struct ox_subscribe, link)->seq, OX_OK);
}

struct ox_subscription *ox_subscription_find(struct ox_topic *t, const char *name)
{
    struct ox_map_node *n = ox_map_find_str(&t->subscriptions, name);
    return n ? SUBSCRIPTION_OF(n) : NULL;
}

static void subscription_lingered(struct ox_timer *t)
{
    subscription_abandon(CONTAINER_OF(t, struct ox_subscription, linger));
}

void subscription_linger(struct ox_subscription *s)
{
    if (!s->durable)
        ox_timer_start(&s->linger, SUBSCRIPTION_LINGER_NS);
}

struct ox_subscription *subscription_new(struct ox_topic *t, const char *name, bool durable)
{
    struct ox_subscription *s = ox_malloc(sizeof *s);
    s->magic = SUBSCRIPTION_MAGIC;
    s->topic = t;
    s->name = ox_strdup(name);
    s->durable = durable;
    s->is_system = t->is_system || strncmp(name, "__", 2) == 0;
    s->type = OX_SUB_EXCLUSIVE;
    ox_list_init(&s->consumers);
    ox_list_init(&s->waiters);
    ox_timer_init(&s->linger, t->shard->loop, subscription_lingered);
    ox_map_put_str(&t->subscriptions, &s->by_name, s->name);
    t->shard->subscriptions_count.value++;
    return s;
}

void subscription_adopt(struct ox_topic *t, struct ox_cursor *c)
{
    struct ox_subscription *s = subscription_new(t, c->name, true);
    s->cursor = c;
    s->seen_ms = ox_wall_ms(t->shard->loop); // who used it before, and until when, is not known
    subscription_set_state(s, OX_SUBSCRIPTION_OPEN, "loaded");
}

void subscription_free(struct ox_subscription *s)
{
    OX_ASSERT(s->magic == SUBSCRIPTION_MAGIC && ox_list_empty(&s->consumers));
    ox_map_remove(&s->topic->subscriptions, &s->by_name);
    s->topic->shard->subscriptions_count.value--;
    subscription_set_state(s, OX_SUBSCRIPTION_GONE, "freed");
    ox_timer_stop(&s->linger);
    if (s->dispatcher)
        s->dispatcher->body->free(s->dispatcher);
    subscription_limits_free(s);
    ox_free(s->name);
    s->magic = 0;
    ox_free(s);
}

void subscription_stop(struct ox_subscription *s, struct ox_op *op)
{
    if (s->dispatcher) {
        s->dispatcher->body->stop(s->dispatcher, op);
        return;
    }
    ox_op_begin(op);
    ox_op_finish(op, OX_OK);
}

void subscription_close_consumers(struct ox_subscription *s, enum ox_err why, const struct ox_consumer *except)
{
    OX_LIST_EACH(&s->consumers, l) {
        struct ox_consumer *c = CONTAINER_OF(l, struct ox_consumer, link);
        if (c == except)
            continue;
        consumer_detach(c);
        c->events->closed(c, why);
        consumer_free(c);
    }
}

void subscription_tell_end(struct ox_subscription *s)
{
    if (!s->cursor || s->state != OX_SUBSCRIPTION_OPEN || ox_cursor_backlog(s->cursor))
        return;
    OX_LIST_EACH(&s->consumers, l) {
        struct ox_consumer *c = CONTAINER_OF(l, struct ox_consumer, link);
        if (!c->told_end)
            c->events->end_of_topic(c);
        c->told_end = true;
    }
}

// ---- a reader's subscription goes with its consumer

static ox_step abandon_closed(struct ox_seq *q)
{
    return OX_FINISH(q, q->err);
}

static ox_step abandon_stopped(struct ox_seq *q)
{
    struct ox_subscription *s = CONTAINER_OF(q, struct ox_subscription, seq);
    struct ox_cursor *cursor = s->cursor;
    s->cursor = NULL; // it is freed before the subscription, which can still be found then
    if (!cursor)
        return OX_FINISH(q, OX_OK);
    ox_seq_bind(q, &s->step, "cursor.close");
    ox_cursor_close(cursor, &s->step);
    return OX_WAIT(q, abandon_closed);
}

static ox_step abandon_start(struct ox_seq *q)
{
    struct ox_subscription *s = CONTAINER_OF(q, struct ox_subscription, seq);
    ox_seq_bind(q, &s->step, "dispatcher.stop");
    subscription_stop(s, &s->step);
    return OX_WAIT(q, abandon_stopped);
}

static void abandon_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_subscription *s = CONTAINER_OF(q, struct ox_subscription, seq);
    struct ox_topic *t = s->topic;
    if (err)
        ox_warn(t->shard->log, "subscription.close.failed", "topic=%s error=%s", t->name.full, ox_err_name(err));
    subscription_free(s);
    topic_unpin(t);
}

void subscription_abandon(struct ox_subscription *s)
{
    if (s->durable || s->state != OX_SUBSCRIPTION_OPEN || !ox_list_empty(&s->consumers) || s->topic->state != OX_TOPIC_OPEN)
        return;
    topic_pin(s->topic);
    subscription_set_state(s, OX_SUBSCRIPTION_REMOVING, "reader gone");
    ox_seq_start(&s->seq, s->topic->shard->loop, "subscription.abandon", abandon_start, abandon_done);
}
