// dispatcher_shared.c - many consumers on one subscription: Shared and Key_Shared. Entries that were read are with one of them, or wait as positions.
#include "broker/limits.h"
#include "broker/shared.h"

static enum ox_err shared_admit(struct ox_dispatcher *base, struct ox_subscribe *o, struct ox_consumer **ret_holder)
{
    return shared_keys_admit(shared_of(base), o, ret_holder);
}

static void shared_attached(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_subscribe *o)
{
    struct shared_consumer *sc = ox_malloc(sizeof *sc);
    sc->consumer = c;
    ox_list_init(&sc->held);
    c->pending = sc;
    shared_keys_joined(shared_of(base), c, &o->keys);
}

// With the last consumer everything goes back to the cursor: nothing is remembered for nobody.
static void shared_empty(struct shared *d)
{
    shared_clear(d);
    shared_read_discard(d);
    d->failed = false;
    d->retry_ns = 0;
    ox_timer_stop(&d->retry);
}

static void shared_detached(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct shared *d = shared_of(base);
    struct shared_consumer *sc = c->pending;
    shared_keys_left(d, c);
    shared_give_back_all(d, c, false);
    if (ox_link_linked(&sc->ready))
        ox_list_remove(&d->ready, &sc->ready);
    c->pending = NULL;
    ox_free(sc);
    if (shared_sub(d)->consumers.count == 1)
        shared_empty(d);
    else
        shared_kick(d);
}

static void shared_more(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct shared *d = shared_of(base);
    shared_refresh(d, c);
    shared_kick(d);
}

static void shared_redeliver(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_pos *positions, size_t count)
{
    struct shared *d = shared_of(base);
    if (count == 0)
        shared_give_back_all(d, c, true);
    for (size_t i = 0; i < count; i++) {
        struct pending *p = pending_find(&d->known, positions[i]);
        if (!p || p->holder != c)
            continue;
        p->redeliveries++;
        ox_rate_add(&c->again, p->messages, 0);
        shared_give_back(d, p);
    }
    shared_kick(d);
}

static void shared_acked(struct ox_dispatcher *base, struct ox_consumer *c, struct ox_pos pos, bool whole, uint32_t left)
{
    (void)c;
    struct shared *d = shared_of(base);
    struct pending *p = pending_find(&d->known, pos);
    if (!p)
        return;
    if (whole)
        shared_forget(d, p);
    else
        shared_left(d, p, left);
    if (d->look || !shared_reading(d))
        shared_kick(d);
}

static void shared_skipped(struct ox_dispatcher *base)
{
    struct shared *d = shared_of(base);
    shared_forget_upto(d, shared_sub(d)->cursor->mark_delete);
    shared_kick(d);
}

static void shared_restart(struct ox_dispatcher *base)
{
    struct shared *d = shared_of(base);
    OX_ASSERT(!shared_reading(d) && !shared_rereading(d));
    shared_clear(d);
    d->failed = false;
    ox_timer_stop(&d->retry);
}

static void shared_body_kick(struct ox_dispatcher *base)
{
    struct shared *d = shared_of(base);
    OX_LIST_EACH(&shared_sub(d)->consumers, l)
        shared_release(d, CONTAINER_OF(l, struct ox_consumer, link));
    dispatch_limits_refresh(base->subscription);
    subscription_look_at_end(base->subscription);
    d->failed = false;
    ox_timer_stop(&d->retry);
    shared_kick(d);
}

static void shared_stop(struct ox_dispatcher *base, struct ox_op *op)
{
    struct shared *d = shared_of(base);
    OX_ASSERT(!d->stopping && ox_list_empty(&d->ready));
    ox_op_begin(op);
    d->stopping = op;
    if (shared_reading(d))
        ox_op_cancel(&d->read.op);
    shared_stopped(d);
}

static void shared_free(struct ox_dispatcher *base)
{
    struct shared *d = shared_of(base);
    OX_ASSERT(!shared_reading(d) && !shared_rereading(d) && ox_list_empty(&d->ready) && !ox_op_pending(&d->kick));
    shared_clear(d);
    ox_timer_stop(&d->retry);
    shared_keys_fini(d);
    ox_free(d);
}

#define SHARED_BODY(TYPE)                                                                                     \
    {                                                                                                         \
        .type = TYPE, .admit = shared_admit, .attached = shared_attached, .detached = shared_detached,        \
        .more = shared_more, .redeliver = shared_redeliver, .acked = shared_acked, .skipped = shared_skipped, \
        .restart = shared_restart, .kick = shared_body_kick, .stop = shared_stop, .free = shared_free,        \
    }
static const struct ox_dispatcher_body shared_body = SHARED_BODY(OX_SUB_SHARED);
static const struct ox_dispatcher_body key_shared_body = SHARED_BODY(OX_SUB_KEY_SHARED);

struct ox_dispatcher *ox_dispatcher_shared_new(struct ox_subscription *s, enum ox_sub_type type)
{
    struct shared *d = ox_malloc(sizeof *d);
    d->base = (struct ox_dispatcher){type == OX_SUB_KEY_SHARED ? &key_shared_body : &shared_body, s};
    d->mean_messages = 1;
    ox_list_init(&d->ready);
    shared_read_init(d);
    return &d->base;
}
