// policing.c - rounds over the loaded topics, and what follows at once from changed policies.
#include "broker/policing.h"

#include "base/assert.h"
#include "base/mem.h"
#include "broker/limits.h"
#include "broker/subscription_int.h"

#define TURN_TOPICS 128u         // looked at before other work has its turn
#define TURN_PAUSE_NS OX_MS      // until the next portion
#define ROUND_OPERATIONS_MAX 16u // of one round, under way at once

// ---- changed policies

// A dispatcher that is stopped, or on its way there, is not woken any more.
static void subscription_follow(struct ox_subscription *s)
{
    const struct ox_dispatcher *d = s->dispatcher;
    if (!d || !d->body->kick)
        return;
    if (s->state == OX_SUBSCRIPTION_OPEN && s->topic->state == OX_TOPIC_OPEN)
        d->body->kick(s->dispatcher);
    else
        dispatch_limits_refresh(s);
}

void topic_policies_changed(struct ox_topic *t)
{
    bool system = ox_topic_name_is_system(&t->name); // no subscription says how long its data are needed: the broker reads them
    if (t->ml)
        ox_mledger_set_retention(t->ml, system ? -1 : t->policies.retention_ms, system ? -1 : t->policies.retention_bytes);
    quota_refresh(t);
    producers_policies(t);
    OX_MAP_EACH(&t->subscriptions, n)
        subscription_follow(SUBSCRIPTION_OF(n));
}

// ---- messages that are too old

struct ttl {
    struct ox_topic_expire expire;
    struct policing_round *round;
};

static void ttl_done(struct ox_op *op)
{
    struct ttl *ttl = CONTAINER_OF(op, struct ttl, expire.op);
    struct ox_topic *t = ttl->expire.topic;
    if (op->err && ox_err_class(op->err) != OX_CLASS_CLIENT)
        ox_warn(t->shard->log, "topic.expire.failed", "topic=%s error=%s", t->name.full, ox_err_name(op->err));
    t->expiring = false;
    policing_idle(ttl->round);
    ox_topic_put(t);
    ox_free(ttl);
}

void policing_expire(struct policing_round *r, struct ox_topic *t, uint64_t seconds)
{
    uint64_t now = ox_wall_ms(t->shard->loop);
    if (t->expiring || seconds >= now / 1000)
        return;
    struct ttl *ttl = ox_malloc(sizeof *ttl);
    ttl->round = r;
    ttl->expire.before_ms = now - seconds * 1000;
    t->expiring = true;
    ox_topic_hold(t);
    policing_busy(r);
    ox_op_init(&ttl->expire.op, t->shard->loop, ttl_done, "topic.expire");
    ox_topic_expire(t, &ttl->expire);
}

static void ttl_look(struct policing_round *r, struct ox_topic *t)
{
    if (t->policies.ttl_s > 0 && t->ml && !ox_topic_name_is_system(&t->name))
        policing_expire(r, t, (uint64_t)t->policies.ttl_s);
}

// ---- rounds

static void round_fire(struct ox_timer *timer)
{
    struct policing_round *r = CONTAINER_OF(timer, struct policing_round, timer);
    struct ox_list *topics = &r->policing->topics;
    if (!r->next)
        r->next = ox_list_first(topics);
    for (unsigned n = 0; r->next && n < TURN_TOPICS && r->running < ROUND_OPERATIONS_MAX; n++) {
        struct ox_topic *t = CONTAINER_OF(r->next, struct ox_topic, in_policing);
        r->next = ox_list_next(topics, r->next);
        r->look(r, t);
    }
    ox_timer_start(timer, r->next ? TURN_PAUSE_NS : r->interval_ns);
}

void policing_busy(struct policing_round *r)
{
    r->running++;
}

void policing_idle(struct policing_round *r)
{
    OX_ASSERT(r->running > 0);
    r->running--;
    shard_quieter(r->policing->shard);
}

bool policing_is_busy(const struct ox_policing *p)
{
    unsigned running = 0;
    for (size_t i = 0; i < POLICING_COUNT; i++)
        running += p->rounds[i].running;
    return running > 0;
}

void ox_policing_check_quotas(struct ox_shard *sh)
{
    struct policing_round *r = &sh->policing->rounds[POLICING_QUOTA];
    if (r->interval_ns)
        ox_timer_start(&r->timer, 0);
}

void policing_opened(struct ox_topic *t)
{
    t->active_ns = ox_now_ns(t->shard->loop);
    ox_list_push_back(&t->shard->policing->topics, &t->in_policing);
}

void policing_closing(struct ox_topic *t)
{
    struct ox_policing *p = t->shard->policing;
    for (size_t i = 0; i < POLICING_COUNT; i++)
        if (p->rounds[i].next == &t->in_policing)
            p->rounds[i].next = ox_list_next(&p->topics, &t->in_policing);
    ox_list_remove(&p->topics, &t->in_policing);
}

struct ox_policing *policing_new(struct ox_shard *sh)
{
    static void (*const looks[])(struct policing_round *, struct ox_topic *) = {
        [POLICING_TTL] = ttl_look,
        [POLICING_QUOTA] = quota_look,
        [POLICING_INACTIVE] = inactive_look,
        [POLICING_SUBSCRIPTIONS] = subscriptions_look,
    };
    struct ox_policing *p = ox_malloc(sizeof *p);
    p->shard = sh;
    ox_list_init(&p->topics);
    for (size_t i = 0; i < POLICING_COUNT; i++) {
        p->rounds[i].policing = p;
        p->rounds[i].look = looks[i];
        ox_timer_init(&p->rounds[i].timer, sh->loop, round_fire);
    }
    return p;
}

void policing_free(struct ox_policing *p)
{
    policing_stop(p);
    OX_ASSERT(ox_list_empty(&p->topics) && !policing_is_busy(p));
    ox_free(p);
}

void policing_follow(struct ox_policing *p)
{
    const struct ox_broker_config *c = &p->shard->config;
    const uint64_t wanted[] = {
        [POLICING_TTL] = c->ttl_check_ns,
        [POLICING_QUOTA] = c->quota_check_ns,
        [POLICING_INACTIVE] = c->inactive_check_ns,
        [POLICING_SUBSCRIPTIONS] = c->expiry_check_ns,
    };
    for (size_t i = 0; i < POLICING_COUNT; i++) {
        struct policing_round *r = &p->rounds[i];
        if (r->interval_ns == wanted[i])
            continue;
        r->interval_ns = wanted[i];
        if (r->interval_ns)
            ox_timer_start(&r->timer, r->interval_ns);
        else
            ox_timer_stop(&r->timer);
    }
}

void policing_start(struct ox_policing *p)
{
    policing_follow(p);
}

void policing_stop(struct ox_policing *p)
{
    for (size_t i = 0; i < POLICING_COUNT; i++)
        ox_timer_stop(&p->rounds[i].timer);
}
