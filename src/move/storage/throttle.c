// throttle.c - two rates kept by booking: who takes n bytes moves the moment up to which the rate is used up by n / rate.
#include "move/storage/throttle.h"

#define THROTTLE_BYTES_MIN 4096u

static void throttle_fire(struct ox_timer *timer);

void throttle_init(struct throttle *t, struct ox_loop *loop)
{
    *t = (struct throttle){.loop = loop};
    ox_list_init(&t->waiters);
    ox_timer_init(&t->timer, loop, throttle_fire);
}

void throttle_fini(struct throttle *t)
{
    OX_ASSERT(ox_list_empty(&t->waiters));
    ox_timer_stop(&t->timer);
}

// n units as time at a rate.
static uint64_t throttle_ns(uint64_t n, uint64_t per_s)
{
    return n / per_s * OX_SEC + n % per_s * OX_SEC / per_s;
}

// How long until somebody may take.
static uint64_t throttle_wait_ns(const struct throttle_limit *l, uint64_t now)
{
    return l->per_s > 0 && l->used_ns > now + THROTTLE_SLICE_NS ? l->used_ns - now - THROTTLE_SLICE_NS : 0;
}

static void throttle_book(struct throttle_limit *l, uint64_t now, uint64_t n)
{
    if (l->per_s > 0)
        l->used_ns = OX_MAX(l->used_ns, now) + throttle_ns(n, l->per_s);
}

static void throttle_unbook(struct throttle_limit *l, uint64_t n)
{
    uint64_t ns = l->per_s > 0 ? throttle_ns(n, l->per_s) : 0;
    l->used_ns -= OX_MIN(ns, l->used_ns);
}

// What is booked beyond now was so many units at the old rate and is as many at the new one.
static void throttle_set_limit(struct throttle_limit *l, uint64_t now, uint64_t per_s)
{
    uint64_t ahead_ns = l->per_s > 0 && l->used_ns > now ? l->used_ns - now : 0;
    double units = (double)ahead_ns / (double)OX_SEC * (double)l->per_s;
    l->per_s = per_s;
    l->used_ns = per_s > 0 && ahead_ns > 0 ? now + (uint64_t)(units / (double)per_s * (double)OX_SEC) : 0;
}

static uint64_t throttle_next_ns(const struct throttle *t)
{
    uint64_t now = ox_now_ns(t->loop);
    return OX_MAX(throttle_wait_ns(&t->bytes, now), throttle_wait_ns(&t->ops, now));
}

// The first who waits may ask; the next one when that has taken, or in the next round.
static void throttle_look(struct throttle *t)
{
    uint64_t ns = throttle_next_ns(t);
    if (ox_list_empty(&t->waiters)) {
        ox_timer_stop(&t->timer);
    } else if (ns > 0) {
        ox_timer_start(&t->timer, ns);
    } else {
        struct ox_op *op = CONTAINER_OF(ox_list_pop_front(&t->waiters), struct ox_op, link);
        ox_timer_start(&t->timer, 0);
        ox_op_finish(op, OX_OK);
    }
}

static void throttle_fire(struct ox_timer *timer)
{
    throttle_look(CONTAINER_OF(timer, struct throttle, timer));
}

void throttle_set(struct throttle *t, uint64_t bytes_per_s, uint64_t ops_per_s)
{
    uint64_t now = ox_now_ns(t->loop);
    if (t->bytes.per_s != bytes_per_s)
        throttle_set_limit(&t->bytes, now, bytes_per_s);
    if (t->ops.per_s != ops_per_s)
        throttle_set_limit(&t->ops, now, ops_per_s);
    throttle_look(t);
}

uint64_t throttle_bytes_slice(const struct throttle *t, uint64_t max)
{
    uint64_t slice = t->bytes.per_s / (OX_SEC / THROTTLE_PIECE_NS);
    return t->bytes.per_s > 0 ? OX_MIN(OX_MAX(slice, (uint64_t)THROTTLE_BYTES_MIN), max) : max;
}

uint64_t throttle_ops_slice(const struct throttle *t, uint64_t max)
{
    uint64_t slice = t->ops.per_s / (OX_SEC / THROTTLE_PIECE_NS);
    return t->ops.per_s > 0 ? OX_MIN(OX_MAX(slice, UINT64_C(1)), max) : max;
}

bool throttle_take(struct throttle *t, uint64_t bytes, uint64_t ops)
{
    if (throttle_next_ns(t) > 0)
        return false;
    uint64_t now = ox_now_ns(t->loop);
    throttle_book(&t->bytes, now, bytes);
    throttle_book(&t->ops, now, ops);
    t->taken += bytes;
    return true;
}

void throttle_settle(struct throttle *t, uint64_t asked_bytes, uint64_t asked_ops, uint64_t used_bytes, uint64_t used_ops)
{
    uint64_t now = ox_now_ns(t->loop);
    if (used_bytes > asked_bytes)
        throttle_book(&t->bytes, now, used_bytes - asked_bytes);
    else
        throttle_unbook(&t->bytes, asked_bytes - used_bytes);
    if (used_ops > asked_ops)
        throttle_book(&t->ops, now, used_ops - asked_ops);
    else
        throttle_unbook(&t->ops, asked_ops - used_ops);
    t->taken += used_bytes;
    t->taken -= asked_bytes;
}

static struct throttle_wait *throttle_waiter(struct ox_link *link)
{
    return CONTAINER_OF(link, struct throttle_wait, op.link);
}

void throttle_wait(struct throttle *t, struct throttle_wait *w)
{
    struct ox_link *before = t->waiters.head.prev;
    while (before != &t->waiters.head && throttle_waiter(before)->rank > w->rank)
        before = before->prev;
    ox_op_begin(&w->op);
    ox_list_insert_before(&t->waiters, before->next, &w->op.link);
    if (!ox_timer_started(&t->timer))
        ox_timer_start(&t->timer, throttle_next_ns(t));
}

void throttle_wake(struct throttle *t)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&t->waiters));)
        ox_op_finish(CONTAINER_OF(link, struct ox_op, link), OX_OK);
    ox_timer_stop(&t->timer);
}
