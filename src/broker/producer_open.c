// producer_open.c - attaching producers: may it, is it alone, the name and who holds it, what the name still has in flight, what may be sent again.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/policing.h"
#include "broker/producer_int.h"
#include "broker/resend.h"
#include "broker/subscription_int.h"
#include "broker/topic_int.h"
#include "mledger/cursor.h"

static ox_step opening_access(struct ox_seq *s);
static ox_step opening_name(struct ox_seq *s);
static ox_step opening_drained(struct ox_seq *s);
static ox_step opening_scanned(struct ox_seq *s);
static ox_step opening_epoch(struct ox_seq *s);
static ox_step opening_attach(struct ox_seq *s);

static struct ox_producer_open *opening_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_producer_open, seq);
}

static ox_step opening_fail(struct ox_producer_open *o, enum ox_err err, const char *why)
{
    o->why = why;
    return OX_FINISH(&o->seq, err);
}

// Has something happened meanwhile after which it cannot attach?
static enum ox_err opening_spoilt(const struct ox_producer_open *o)
{
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_E_TOPIC_FENCED;
    return o->fenced ? OX_E_PRODUCER_FENCED : OX_OK;
}

static struct ox_producer *producer_named(struct ox_topic *t, const char *name)
{
    OX_LIST_EACH(&t->producers, l) {
        struct ox_producer *p = CONTAINER_OF(l, struct ox_producer, link);
        if (!strcmp(p->name, name))
            return p;
    }
    return NULL;
}

// The same client's producer, before its own connection noticed that it has begun anew.
static bool producer_is_succeeded(const struct ox_producer *old, const struct ox_producer_open *o)
{
    return old->connection == o->connection && old->id == o->id && !old->user_named && !o->user_named &&
           old->epoch < o->epoch;
}

// ---- may it at all

// The topic was loaded on a full disk and is there for its consumers. When there is space again it is loaded anew, and this client comes back.
static ox_step opening_without_space(struct ox_producer_open *o)
{
    struct ox_shard *sh = o->topic->shard;
    struct ox_place *place = ox_router_place(sh->router, ox_ml_target(sh->mledgers, o->topic->ml->name));
    struct ox_capacity capacity = {0};
    if (place)
        ox_place_capacity(place, &capacity);
    if (!capacity.writable)
        return opening_fail(o, OX_E_NO_SPACE, "the disk is full: no messages are taken until there is space");
    topic_fail(o->topic, OX_E_NO_SPACE);
    return OX_FINISH(&o->seq, OX_E_TOPIC_FENCED);
}

static bool topic_is_crowded(const struct ox_topic *t, const struct ox_producer_open *o)
{
    uint32_t max = t->policies.max_producers;
    bool exempt = o->name && !strncmp(o->name, OX_REPLICATOR_PREFIX, strlen(OX_REPLICATOR_PREFIX));
    return max && !exempt && !ox_topic_name_is_system(&t->name) && t->producers.count + t->joining.count >= max;
}

static enum ox_err opening_refusal(struct ox_producer_open *o)
{
    struct ox_topic *t = o->topic;
    if (t->ml && t->ml->terminated)
        return OX_E_TOPIC_TERMINATED;
    if (t->policies.encryption_required && !o->encrypted)
        return OX_E_ENCRYPTION_REQUIRED;
    if (topic_is_crowded(t, o)) {
        o->why = "the topic has as many producers as it may have";
        return OX_E_PRODUCER_BUSY;
    }
    if (producers_want_dedup(t) && !ox_dedup_is_on(t)) {
        ox_dedup_start(t, NULL);
        o->why = "deduplication of the topic is being started";
        return OX_E_TOPIC_FENCED;
    }
    quota_refresh(t);
    return producers_quota_error(t);
}

// ---- a subscription that is to be there first

static ox_step opening_subscribed(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    if (s->err) {
        subscription_free(o->sub);
        return OX_FINISH(s, s->err);
    }
    o->sub->cursor = o->cursor->cursor;
    subscription_set_state(o->sub, OX_SUBSCRIPTION_OPEN, "made for a producer");
    return OX_GOTO(s, opening_access);
}

// Why a subscription that is not there may not be made; NULL: it may.
static const char *initial_refused(const struct ox_topic *t, const char *name)
{
    if (!t->policies.auto_subscription)
        return "the initial subscription does not exist and automatic creation is off";
    if (cursor_is_internal(name))
        return "the initial subscription's name is one of the broker's own";
    uint32_t most = ox_topic_name_is_system(&t->name) ? 0 : t->policies.max_subscriptions;
    return most && ox_map_count(&t->subscriptions) >= most ? "Exceed the maximum number of subscriptions of the topic" : NULL;
}

static ox_step opening_subscription(struct ox_producer_open *o)
{
    struct ox_topic *t = o->topic;
    const char *name = o->initial_subscription;
    if (!name || !*name || !t->ml || ox_subscription_find(t, name))
        return OX_GOTO(&o->seq, opening_access);
    const char *why = initial_refused(t, name);
    if (why)
        return opening_fail(o, OX_E_NOT_ALLOWED, why);
    o->sub = subscription_new(t, name, true);
    o->cursor = ox_malloc(sizeof *o->cursor);
    ox_seq_bind(&o->seq, &o->cursor->op, "cursor.open");
    ox_cursor_open(t->ml, o->cursor, name, true, ox_ml_clamp(t->ml, OX_POS_EARLIEST), NULL);
    return OX_WAIT(&o->seq, opening_subscribed);
}

static ox_step opening_start(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    struct ox_shard *sh = o->topic->shard;
    if ((unsigned)o->mode >= OX_ACCESS_MODES)
        return opening_fail(o, OX_E_UNSUPPORTED, "the access mode is not known");
    enum ox_err err = o->topic->state == OX_TOPIC_OPEN ? opening_refusal(o) : OX_E_TOPIC_FENCED;
    if (err)
        return OX_FINISH(s, err);
    if (o->topic->ml && o->topic->ml->full)
        return opening_without_space(o);
    if (!o->own_name)
        o->own_name = ox_asprintf("%s-%llu-%llu", sh->config.cluster, (unsigned long long)sh->producer_epoch,
                                  (unsigned long long)sh->producer_seq++);
    return opening_subscription(o);
}

// ---- alone or with others

static ox_step opening_turn(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    return o->fenced ? opening_fail(o, OX_E_PRODUCER_FENCED, "fenced while it waited") : OX_GOTO(s, opening_name);
}

static ox_step opening_holder_asked(struct ox_seq *s)
{
    opening_of(s)->probed = true;
    return OX_GOTO(s, opening_access);
}

static ox_step opening_denied(struct ox_producer_open *o, enum ox_err err, const char *why)
{
    struct ox_producer *holder = o->topic->exclusive;
    if (!holder || o->probed || holder->connection == o->connection)
        return opening_fail(o, err, why);
    ox_seq_bind(&o->seq, &o->probe, "producer.probe");
    holder->events->probe(holder, &o->probe);
    return OX_WAIT(&o->seq, opening_holder_asked);
}

static ox_step opening_access(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    const char *why = NULL;
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(s, OX_E_TOPIC_FENCED);
    struct ox_producer *twin = producer_named(o->topic, o->own_name);
    if (twin && producer_is_succeeded(twin, o))
        ox_producer_close(twin);
    switch (access_ask(o->topic, o, &why)) {
    case ACCESS_GRANTED: return OX_GOTO(s, opening_name);
    case ACCESS_BUSY: return opening_denied(o, OX_E_PRODUCER_BUSY, why);
    case ACCESS_FENCED: return opening_denied(o, OX_E_PRODUCER_FENCED, why);
    case ACCESS_WAIT: break;
    }
    if (o->queued)
        o->queued(o);
    return OX_WAIT(s, opening_turn);
}

void opening_woken(struct ox_producer_open *o, enum ox_err err)
{
    ox_seq_resume(&o->seq, err);
}

// ---- the name

static ox_step opening_probed(struct ox_seq *s)
{
    opening_of(s)->probed = true;
    return OX_GOTO(s, opening_name);
}

// Waits until the topic has ended every append that was in flight when this producer came: some may be its own of before.
static ox_step opening_drain(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    struct ox_topic *t = o->topic;
    if (!o->reconnect || !t->ml)
        return OX_GOTO(s, opening_epoch);
    o->wait_for = t->appends;
    if (t->appends_done >= o->wait_for)
        return OX_GOTO(s, opening_drained);
    ox_list_push_back(&t->drain_waiters, &o->link);
    return OX_WAIT(s, opening_drained);
}

static ox_step opening_name(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    enum ox_err err = opening_spoilt(o);
    if (err)
        return OX_FINISH(s, err);
    struct ox_producer *holder = producer_named(o->topic, o->own_name);
    if (!holder)
        return OX_GOTO(s, opening_drain);
    if (o->probed || holder->connection == o->connection)
        return opening_fail(o, OX_E_PRODUCER_BUSY, NULL);
    ox_seq_bind(s, &o->probe, "producer.probe");
    holder->events->probe(holder, &o->probe);
    return OX_WAIT(s, opening_probed);
}

static ox_step opening_drained(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    enum ox_err err = opening_spoilt(o);
    if (err)
        return OX_FINISH(s, err);
    struct ox_resend_scan *scan = o->scan;
    ox_seq_bind(s, &scan->op, "resend.scan");
    ox_resend_scan(o->topic, scan);
    return OX_WAIT(s, opening_scanned);
}

static ox_step opening_scanned(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, opening_epoch);
}

// ---- the topic epoch of an exclusive one is on record before it is told

static ox_step opening_epoch_stored(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    o->topic->epoch = o->drawn_epoch;
    return OX_GOTO(s, opening_attach);
}

static ox_step opening_epoch(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    struct ox_topic *t = o->topic;
    enum ox_err err = opening_spoilt(o);
    if (err)
        return OX_FINISH(s, err);
    if (o->mode == OX_ACCESS_SHARED)
        return OX_GOTO(s, opening_attach);
    o->drawn_epoch = access_epoch(t, o);
    if (!t->ml)
        t->epoch = o->drawn_epoch;
    if (o->drawn_epoch == t->epoch)
        return OX_GOTO(s, opening_attach);
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)o->drawn_epoch);
    ox_seq_bind(s, &o->property.op, "topic.epoch");
    ox_mledger_set_property(t->ml, &o->property, OX_EPOCH_PROPERTY, text);
    return OX_WAIT(s, opening_epoch_stored);
}

static ox_step opening_attach(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    enum ox_err err = opening_spoilt(o);
    if (err)
        return OX_FINISH(s, err);
    if (producer_named(o->topic, o->own_name))
        return opening_fail(o, OX_E_PRODUCER_BUSY, NULL);
    access_leave(o->topic, o);
    o->producer = producer_new(o);
    return OX_FINISH(s, OX_OK);
}

static void opening_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_producer_open *o = opening_of(s);
    struct ox_topic *t = o->topic;
    access_leave(t, o);
    access_next(t);
    ox_free(o->own_name);
    ox_free(o->scan);
    ox_free(o->cursor);
    topic_unpin(t);
    ox_op_finish(&o->op, err);
}

void ox_producer_open(struct ox_topic *t, struct ox_producer_open *o)
{
    ox_op_begin(&o->op);
    topic_pin(t);
    o->topic = t;
    o->producer = NULL;
    o->why = NULL;
    o->probed = o->fenced = false;
    o->link = o->join = (struct ox_link){0};
    o->own_name = o->name && *o->name ? ox_strdup(o->name) : NULL;
    o->scan = o->reconnect ? ox_malloc(sizeof *o->scan) : NULL;
    o->cursor = NULL;
    ox_seq_start(&o->seq, t->shard->loop, "producer.open", opening_start, opening_done);
}

void ox_producer_open_cancel(struct ox_producer_open *o)
{
    struct ox_topic *t = o->topic;
    OX_LIST_EACH(&t->queued, l)
        if (l == &o->join) {
            ox_list_remove(&t->queued, l);
            opening_woken(o, OX_E_CANCELED);
            return;
        }
}

void producers_drained(struct ox_topic *t)
{
    OX_LIST_EACH(&t->drain_waiters, l) {
        struct ox_producer_open *o = CONTAINER_OF(l, struct ox_producer_open, link);
        if (t->appends_done >= o->wait_for || t->state != OX_TOPIC_OPEN) {
            ox_list_remove(&t->drain_waiters, l);
            ox_seq_resume(&o->seq, OX_OK);
        }
    }
    if (t->state != OX_TOPIC_OPEN)
        access_next(t);
}
