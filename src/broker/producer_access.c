// producer_access.c - who may be alone on a topic: exclusive producers, those who wait for it, topic epochs.
#include <stdio.h>

#include "base/assert.h"
#include "broker/producer_int.h"
#include "broker/topic_int.h"

static const char *const stale_text = "another exclusive producer has been there since: its topic epoch is past";

static struct ox_producer_open *joining_of(struct ox_link *l)
{
    return CONTAINER_OF(l, struct ox_producer_open, join);
}

// Is there an exclusive producer, or one on its way?
static bool access_is_taken(struct ox_topic *t)
{
    if (t->exclusive)
        return true;
    OX_LIST_EACH(&t->joining, l)
        if (joining_of(l)->mode != OX_ACCESS_SHARED)
            return true;
    return false;
}

static bool access_is_stale(const struct ox_topic *t, const struct ox_producer_open *o)
{
    return o->topic_epoch >= 0 && o->topic_epoch < t->epoch;
}

static enum access_answer access_grant(struct ox_topic *t, struct ox_producer_open *o)
{
    ox_list_push_back(&t->joining, &o->join);
    return ACCESS_GRANTED;
}

// Everybody out: who is connected, who is on the way, who waits.
static void access_throw_out(struct ox_topic *t)
{
    for (struct ox_link *l = ox_list_pop_front(&t->queued); l; l = ox_list_pop_front(&t->queued)) {
        joining_of(l)->fenced = true;
        opening_woken(joining_of(l), OX_OK);
    }
    OX_LIST_EACH(&t->joining, m)
        joining_of(m)->fenced = true;
    while (!ox_list_empty(&t->producers))
        producer_throw_out(CONTAINER_OF(ox_list_first(&t->producers), struct ox_producer, link), OX_E_PRODUCER_FENCED);
}

static enum access_answer access_ask_shared(struct ox_topic *t, struct ox_producer_open *o, const char **ret_why)
{
    if (!access_is_taken(t) && ox_list_empty(&t->queued))
        return access_grant(t, o);
    *ret_why = "the topic has an exclusive producer";
    return ACCESS_BUSY;
}

static enum access_answer access_ask_exclusive(struct ox_topic *t, struct ox_producer_open *o, const char **ret_why)
{
    bool alone = ox_list_empty(&t->producers) && ox_list_empty(&t->joining) && ox_list_empty(&t->queued);
    if (alone)
        return access_grant(t, o);
    *ret_why = access_is_taken(t) ? "the topic has an exclusive producer" : "other producers are connected to the topic";
    return ACCESS_FENCED;
}

static enum access_answer access_ask_waiting(struct ox_topic *t, struct ox_producer_open *o)
{
    if (ox_list_empty(&t->producers) && ox_list_empty(&t->joining) && ox_list_empty(&t->queued))
        return access_grant(t, o);
    ox_list_push_back(&t->queued, &o->join);
    return ACCESS_WAIT;
}

enum access_answer access_ask(struct ox_topic *t, struct ox_producer_open *o, const char **ret_why)
{
    if (o->mode == OX_ACCESS_SHARED)
        return access_ask_shared(t, o, ret_why);
    if (access_is_stale(t, o)) {
        *ret_why = stale_text;
        return ACCESS_FENCED;
    }
    if (o->mode == OX_ACCESS_EXCLUSIVE)
        return access_ask_exclusive(t, o, ret_why);
    if (o->mode == OX_ACCESS_WAIT_FOR_EXCLUSIVE)
        return access_ask_waiting(t, o);
    access_throw_out(t);
    return access_grant(t, o);
}

void access_leave(struct ox_topic *t, struct ox_producer_open *o)
{
    if (!ox_link_linked(&o->join))
        return;
    OX_LIST_EACH(&t->joining, l)
        if (l == &o->join) {
            ox_list_remove(&t->joining, l);
            return;
        }
    ox_list_remove(&t->queued, &o->join);
}

void access_next(struct ox_topic *t)
{
    bool closes = t->state != OX_TOPIC_OPEN;
    if (!closes && !(ox_list_empty(&t->producers) && ox_list_empty(&t->joining)))
        return;
    struct ox_link *l;
    while ((l = ox_list_pop_front(&t->queued))) {
        struct ox_producer_open *o = joining_of(l);
        if (!closes)
            ox_list_push_back(&t->joining, l);
        o->fenced |= !closes && access_is_stale(t, o);
        opening_woken(o, closes ? OX_E_TOPIC_FENCED : OX_OK);
        if (!closes)
            return;
    }
}

int64_t access_epoch(const struct ox_topic *t, const struct ox_producer_open *o)
{
    return o->topic_epoch >= 0 ? o->topic_epoch : OX_MIN(t->epoch, INT64_MAX - 1) + 1;
}
