// shared_pending.c - who has what: consumers that are ready, entries that are with one, entries that wait.
#include "broker/shared.h"

static struct shared_consumer *consumer_state(const struct ox_consumer *c)
{
    return c->pending;
}

static void ready_insert(struct shared *d, struct shared_consumer *sc)
{
    struct ox_link *at = &d->ready.head;
    while (at->prev != &d->ready.head &&
           CONTAINER_OF(at->prev, struct shared_consumer, ready)->consumer->priority > sc->consumer->priority)
        at = at->prev;
    ox_list_insert_before(&d->ready, at, &sc->ready);
}

void shared_refresh(struct shared *d, struct ox_consumer *c)
{
    struct shared_consumer *sc = consumer_state(c);
    bool can = c->permits > 0 && !c->blocked && !c->held_back;
    if (can == ox_link_linked(&sc->ready))
        return;
    if (!can) {
        ox_list_remove(&d->ready, &sc->ready);
        return;
    }
    ready_insert(d, sc);
    d->look = true;
    d->changes++;
}

void shared_turn(struct shared *d, struct ox_consumer *c)
{
    struct shared_consumer *sc = consumer_state(c);
    if (!ox_link_linked(&sc->ready))
        return;
    ox_list_remove(&d->ready, &sc->ready);
    if (c->permits > 0 && !c->blocked && !c->held_back)
        ready_insert(d, sc);
}

// ---- unacknowledged messages

static void unacked_add(struct shared *d, struct ox_consumer *c, uint32_t messages)
{
    struct ox_subscription *s = shared_sub(d);
    const struct ox_policies *p = &s->topic->policies;
    c->unacked += messages;
    s->unacked += messages;
    if (p->max_unacked_per_consumer && c->unacked >= p->max_unacked_per_consumer)
        c->held_back = true;
    if (p->max_unacked_per_subscription && s->unacked >= p->max_unacked_per_subscription)
        s->held_back = true;
}

static void unacked_sub(struct shared *d, struct ox_consumer *c, uint32_t messages)
{
    struct ox_subscription *s = shared_sub(d);
    c->unacked -= messages;
    s->unacked -= messages;
    shared_release(d, c);
}

void shared_release(struct shared *d, struct ox_consumer *c)
{
    struct ox_subscription *s = shared_sub(d);
    const struct ox_policies *p = &s->topic->policies;
    bool was = s->held_back;
    if (c->held_back && (!p->max_unacked_per_consumer || c->unacked <= p->max_unacked_per_consumer / 2))
        c->held_back = false;
    if (was && (!p->max_unacked_per_subscription || s->unacked <= p->max_unacked_per_subscription / 2))
        s->held_back = false;
    d->look |= was != s->held_back;
    shared_refresh(d, c);
}

// ---- the replay set

// Key_Shared: a new entry must not pass an older one of its key that waits; that is told, with false alarms, by counts of hashes.
static void waiting_count(struct shared *d, const struct pending *p, int by)
{
    if (!shared_by_key(d))
        return;
    if (!d->waiting)
        d->waiting = ox_calloc(SHARED_WAITING_SLOTS, sizeof *d->waiting);
    d->waiting[p->hash % SHARED_WAITING_SLOTS] += (uint32_t)by;
}

void shared_wait(struct shared *d, struct pending *p)
{
    OX_ASSERT(!p->holder && !ox_link_linked(&p->link));
    if (ox_pos_set_add(&d->replay, p->pos))
        waiting_count(d, p, 1);
}

static void shared_unwait(struct shared *d, const struct pending *p)
{
    if (ox_pos_set_remove(&d->replay, p->pos))
        waiting_count(d, p, -1);
}

// ---- who has it

void shared_hold(struct shared *d, struct pending *p, struct ox_consumer *c, uint32_t messages)
{
    OX_ASSERT(!p->holder);
    shared_unwait(d, p);
    p->holder = c;
    p->messages = messages;
    shared_keys_sent(d, p);
    ox_list_push_back(&consumer_state(c)->held, &p->link);
    unacked_add(d, c, messages);
}

// Takes it from its holder.
static void shared_take(struct shared *d, struct pending *p)
{
    struct ox_consumer *c = p->holder;
    ox_list_remove(&consumer_state(c)->held, &p->link);
    shared_keys_done(d, p);
    p->holder = NULL;
    unacked_sub(d, c, p->messages);
}

void shared_give_back(struct shared *d, struct pending *p)
{
    shared_take(d, p);
    shared_wait(d, p);
    d->look = true;
    d->changes++;
}

void shared_give_back_all(struct shared *d, struct ox_consumer *c, bool count)
{
    OX_LIST_EACH(&consumer_state(c)->held, l) {
        struct pending *p = CONTAINER_OF(l, struct pending, link);
        if (count) {
            p->redeliveries++;
            ox_rate_add(&c->again, p->messages, 0);
        }
        shared_give_back(d, p);
    }
}

void shared_forget(struct shared *d, struct pending *p)
{
    if (p->holder)
        shared_take(d, p);
    else
        shared_unwait(d, p);
    pending_remove(&d->known, p);
}

void shared_left(struct shared *d, struct pending *p, uint32_t left)
{
    if (left >= p->messages)
        return;
    uint32_t gone = p->messages - left;
    p->messages = left;
    if (p->holder)
        unacked_sub(d, p->holder, gone);
}

void shared_forget_upto(struct shared *d, struct ox_pos upto)
{
    shared_delay_forget(d, upto);
    struct ox_pos p = OX_POS_EARLIEST;
    while (ox_pos_set_at_or_after(&d->replay, p, &p) && ox_pos_cmp(p, upto) <= 0)
        shared_forget(d, pending_find(&d->known, p));
    OX_LIST_EACH(&shared_sub(d)->consumers, l) {
        struct shared_consumer *sc = consumer_state(CONTAINER_OF(l, struct ox_consumer, link));
        OX_LIST_EACH(&sc->held, h) {
            struct pending *held = CONTAINER_OF(h, struct pending, link);
            if (ox_pos_cmp(held->pos, upto) <= 0)
                shared_forget(d, held);
        }
    }
}

void shared_clear(struct shared *d)
{
    ox_pos_set_fini(&d->replay);
    pending_clear(&d->known);
    shared_delay_clear(d);
    ox_free(d->waiting);
    d->waiting = NULL;
}
