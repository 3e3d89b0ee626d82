// dispatcher_nonpersistent.c - subscriptions of non-persistent topics: a message goes to a consumer that has permits and a connection that takes it, or nowhere.
#include "base/assert.h"
#include "base/mem.h"
#include "broker/dispatch_int.h"
#include "broker/failover.h"
#include "broker/key_hash.h"
#include "broker/nonpersistent.h"
#include "wire/pulsar_frame.h"

#define LOSSY_KEY_POINTS 100u // of a consumer on the ring of keys

struct lossy {
    struct ox_dispatcher base;
    struct ox_consumer *active;   // Exclusive, Failover
    struct ox_selector *selector; // Key_Shared
    enum ox_key_shared_mode mode; // of its consumers
    struct ox_rate dropped;
};

static struct lossy *lossy_of(const struct ox_dispatcher *d)
{
    return CONTAINER_OF(d, struct lossy, base);
}

static struct lossy *lossy_find(const struct ox_subscription *s)
{
    return s->dispatcher && !s->topic->ml ? lossy_of(s->dispatcher) : NULL;
}

const struct ox_rate *ox_subscription_dropped(const struct ox_subscription *s)
{
    const struct lossy *d = lossy_find(s);
    return d ? &d->dropped : NULL;
}

void nonpersistent_tick(struct ox_subscription *s, double seconds)
{
    struct lossy *d = lossy_find(s);
    if (d)
        ox_rate_tick(&d->dropped, seconds);
}

// ---- who gets a message

static bool consumer_can(struct ox_consumer *c)
{
    if (c->permits <= 0)
        return false;
    c->blocked = !c->events->ready(c);
    return !c->blocked;
}

// By turns among those of the best priority that can.
static struct ox_consumer *pick_by_turn(struct ox_subscription *s)
{
    struct ox_consumer *best = NULL;
    OX_LIST_EACH(&s->consumers, l) {
        struct ox_consumer *c = CONTAINER_OF(l, struct ox_consumer, link);
        if ((!best || c->priority < best->priority) && consumer_can(c))
            best = c;
    }
    if (best) {
        ox_list_remove(&s->consumers, &best->link);
        ox_list_push_back(&s->consumers, &best->link);
    }
    return best;
}

// A message on its way to all subscriptions; its key is looked for once, if anybody needs it.
struct lossy_message {
    struct ox_dispatch out;
    bool hashed;
    uint32_t hash;
};

static uint32_t message_hash(struct lossy_message *m)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    if (m->hashed)
        return m->hash;
    m->hashed = true;
    if (ox_message_parse(m->out.entry, false, &view) == OX_OK &&
        ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta) == OX_OK)
        m->hash = ox_key_hash(&meta);
    return m->hash;
}

static struct ox_consumer *lossy_pick(struct lossy *d, struct lossy_message *m)
{
    struct ox_consumer *c;
    switch (d->base.body->type) {
    case OX_SUB_SHARED: return pick_by_turn(d->base.subscription);
    case OX_SUB_KEY_SHARED: c = d->selector ? ox_selector_find(d->selector, message_hash(m)) : NULL; break;
    case OX_SUB_EXCLUSIVE:
    case OX_SUB_FAILOVER:
    default: c = d->active; break;
    }
    return c && consumer_can(c) ? c : NULL;
}

static void lossy_give(struct ox_subscription *s, struct lossy_message *m)
{
    struct lossy *d = lossy_find(s);
    if (!d)
        return;
    struct ox_consumer *c = lossy_pick(d, m);
    if (!c) {
        ox_rate_add(&d->dropped, m->out.messages, m->out.entry.len);
        return;
    }
    m->out.consumer_epoch = c->epoch;
    c->events->deliver(c, &m->out);
    dispatch_count(c, &m->out);
    c->last_consumed_ms = s->last_consumed_ms = ox_wall_ms(s->topic->shard->loop);
}

void nonpersistent_publish(struct ox_topic *t, const struct ox_send *send)
{
    struct lossy_message m = {.out = {.pos = NONPERSISTENT_POS, .entry = send->entry, .messages = send->messages}};
    OX_MAP_EACH(&t->subscriptions, n)
        lossy_give(SUBSCRIPTION_OF(n), &m);
}

// ---- the body

static enum ox_err lossy_admit(struct ox_dispatcher *base, struct ox_subscribe *o, struct ox_consumer **ret_holder)
{
    const struct lossy *d = lossy_of(base);
    if (base->body->type == OX_SUB_EXCLUSIVE && d->active) {
        *ret_holder = d->active;
        o->why = "Exclusive consumer is already connected";
        return OX_E_CONSUMER_BUSY;
    }
    if (base->body->type != OX_SUB_KEY_SHARED)
        return OX_OK;
    if (!d->selector) {
        struct ox_selector *empty = ox_selector_new(o->keys.mode, LOSSY_KEY_POINTS);
        enum ox_err err = ox_selector_check(empty, &o->keys, ret_holder);
        ox_selector_free(empty);
        return err;
    }
    if (d->mode != o->keys.mode) {
        o->why = "the subscription's consumers share keys in another mode";
        return OX_E_CONSUMER_ASSIGN;
    }
    return ox_selector_check(d->selector, &o->keys, ret_holder);
}

static void lossy_activate(struct lossy *d, struct ox_consumer *c)
{
    bool changed = d->active != c;
    d->active = c;
    if (!changed || d->base.body->type != OX_SUB_FAILOVER)
        return;
    OX_LIST_EACH(&d->base.subscription->consumers, l) {
        struct ox_consumer *each = CONTAINER_OF(l, struct ox_consumer, link);
        each->is_active = each == c;
        each->events->active(each, each->is_active);
    }
}

static void lossy_attached(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_subscribe *o)
{
    struct lossy *d = lossy_of(base);
    if (base->body->type == OX_SUB_EXCLUSIVE)
        d->active = c;
    if (base->body->type == OX_SUB_FAILOVER) {
        const struct ox_consumer *before = d->active;
        lossy_activate(d, failover_choose(base->subscription, NULL));
        if (d->active == before)
            c->events->active(c, false);
    }
    if (base->body->type != OX_SUB_KEY_SHARED)
        return;
    if (!d->selector) {
        d->mode = o->keys.mode;
        d->selector = ox_selector_new(d->mode, LOSSY_KEY_POINTS);
    }
    ox_selector_add(d->selector, c, &o->keys);
}

static void lossy_detached(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct lossy *d = lossy_of(base);
    if (base->body->type == OX_SUB_FAILOVER)
        lossy_activate(d, failover_choose(base->subscription, c));
    else if (d->active == c)
        d->active = NULL;
    if (!d->selector)
        return;
    ox_selector_remove(d->selector, c);
    if (base->subscription->consumers.count > 1)
        return;
    ox_selector_free(d->selector); // the next first one decides anew
    d->selector = NULL;
}

static void lossy_more(struct ox_dispatcher *base, struct ox_consumer *c)
{
    (void)base;
    (void)c;
}

static void lossy_redeliver(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_pos *positions, size_t count)
{
    (void)base;
    (void)c;
    (void)positions;
    (void)count;
}

static void lossy_nothing(struct ox_dispatcher *base)
{
    (void)base;
}

static void lossy_stop(struct ox_dispatcher *base, struct ox_op *op)
{
    (void)base;
    ox_op_begin(op);
    ox_op_finish(op, OX_OK);
}

static void lossy_free(struct ox_dispatcher *base)
{
    struct lossy *d = lossy_of(base);
    OX_ASSERT(!d->selector && !d->active);
    ox_free(d);
}

#define LOSSY_BODY(sub_type)                    \
    [sub_type] = {.type = (sub_type),           \
                  .admit = lossy_admit,         \
                  .attached = lossy_attached,   \
                  .detached = lossy_detached,   \
                  .more = lossy_more,           \
                  .redeliver = lossy_redeliver, \
                  .restart = lossy_nothing,     \
                  .kick = lossy_nothing,        \
                  .stop = lossy_stop,           \
                  .free = lossy_free}
static const struct ox_dispatcher_body lossy_bodies[4] = {LOSSY_BODY(OX_SUB_EXCLUSIVE), LOSSY_BODY(OX_SUB_SHARED),
                                                          LOSSY_BODY(OX_SUB_FAILOVER), LOSSY_BODY(OX_SUB_KEY_SHARED)};

struct ox_dispatcher *ox_dispatcher_nonpersistent_new(struct ox_subscription *s, enum ox_sub_type type)
{
    struct lossy *d = ox_malloc(sizeof *d);
    d->base = (struct ox_dispatcher){&lossy_bodies[type], s};
    return &d->base;
}
