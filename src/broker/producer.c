// producer.c - attaching producers: the name, who holds it, what the name still has in flight, what may be sent again.
#include "broker/producer.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/producer_int.h"
#include "broker/resend.h"
#include "broker/topic_int.h"

static ox_step opening_name(struct ox_seq *s);
static ox_step opening_drained(struct ox_seq *s);
static ox_step opening_scanned(struct ox_seq *s);
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

// ---- steps

static ox_step opening_start(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    struct ox_shard *sh = o->topic->shard;
    if (o->mode != OX_ACCESS_SHARED)
        return opening_fail(o, OX_E_UNSUPPORTED, "only the access mode Shared is supported");
    if (o->topic->ml && o->topic->ml->terminated)
        return OX_FINISH(s, OX_E_TOPIC_TERMINATED);
    if (o->topic->ml && o->topic->ml->full)
        return opening_without_space(o);
    if (!o->own_name)
        o->own_name = ox_asprintf("%s-%llu-%llu", sh->config.cluster, (unsigned long long)sh->producer_epoch,
                                  (unsigned long long)sh->producer_seq++);
    return OX_GOTO(s, opening_name);
}

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
    if (!o->reconnect)
        return OX_GOTO(s, opening_attach);
    o->wait_for = t->appends;
    if (t->appends_done >= o->wait_for)
        return OX_GOTO(s, opening_drained);
    ox_list_push_back(&t->drain_waiters, &o->link);
    return OX_WAIT(s, opening_drained);
}

static ox_step opening_name(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(s, OX_E_TOPIC_FENCED);
    struct ox_producer *holder = producer_named(o->topic, o->own_name);
    if (holder && producer_is_succeeded(holder, o)) {
        ox_producer_close(holder);
        holder = NULL;
    }
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
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(s, OX_E_TOPIC_FENCED);
    struct ox_resend_scan *scan = o->scan;
    ox_seq_bind(s, &scan->op, "resend.scan");
    ox_resend_scan(o->topic, scan);
    return OX_WAIT(s, opening_scanned);
}

static ox_step opening_scanned(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, opening_attach);
}

static struct ox_producer *producer_new(struct ox_producer_open *o)
{
    struct ox_topic *t = o->topic;
    struct ox_producer *p = ox_malloc(sizeof *p);
    p->magic = PRODUCER_MAGIC;
    p->topic = t;
    p->name = o->own_name;
    o->own_name = NULL;
    p->user_named = o->user_named;
    p->epoch = o->epoch;
    p->id = o->id;
    p->connection = o->connection;
    p->connected_ms = ox_wall_ms(t->shard->loop);
    p->events = o->events;
    p->owner = o->owner;
    p->resending = o->reconnect && t->resend && ox_resend_count(t->resend);
    snprintf(p->peer, sizeof p->peer, "%s", o->peer ? o->peer : "");
    if (o->metadata)
        ox_kv_copy(&p->metadata, o->metadata);
    ox_list_init(&p->publishes);
    ox_topic_hold(t);
    ox_list_push_back(&t->producers, &p->link);
    t->shard->producers_count.value++;
    return p;
}

static ox_step opening_attach(struct ox_seq *s)
{
    struct ox_producer_open *o = opening_of(s);
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(s, OX_E_TOPIC_FENCED);
    if (producer_named(o->topic, o->own_name))
        return opening_fail(o, OX_E_PRODUCER_BUSY, NULL);
    o->producer = producer_new(o);
    return OX_FINISH(s, OX_OK);
}

static void opening_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_producer_open *o = opening_of(s);
    ox_free(o->own_name);
    ox_free(o->scan);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, err);
}

void ox_producer_open(struct ox_topic *t, struct ox_producer_open *o)
{
    ox_op_begin(&o->op);
    topic_pin(t);
    o->topic = t;
    o->producer = NULL;
    o->why = NULL;
    o->probed = false;
    o->link = (struct ox_link){0};
    o->own_name = o->name && *o->name ? ox_strdup(o->name) : NULL;
    o->scan = o->reconnect ? ox_malloc(sizeof *o->scan) : NULL;
    ox_seq_start(&o->seq, t->shard->loop, "producer.open", opening_start, opening_done);
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
}

// ---- leaving

static void producer_detach(struct ox_producer *p)
{
    struct ox_topic *t = p->topic;
    publishes_orphan(p);
    producer_drained(p, OX_E_CANCELED);
    if (p->blocked)
        ox_list_remove(&t->shard->blocked, &p->blocked_link);
    p->blocked = false;
    ox_list_remove(&t->producers, &p->link);
    t->shard->producers_count.value--;
}

void producer_free(struct ox_producer *p)
{
    struct ox_topic *t = p->topic;
    ox_kv_fini(&p->metadata);
    ox_free(p->name);
    p->magic = 0;
    ox_free(p);
    ox_topic_put(t);
}

void ox_producer_close(struct ox_producer *p)
{
    OX_ASSERT(p->magic == PRODUCER_MAGIC);
    producer_detach(p);
    producer_free(p);
}

void ox_producer_lost(struct ox_producer *p)
{
    ox_resend_expect(p->topic);
    ox_producer_close(p);
}

void producers_close(struct ox_topic *t, enum ox_err why)
{
    while (!ox_list_empty(&t->producers)) {
        struct ox_producer *p = CONTAINER_OF(ox_list_first(&t->producers), struct ox_producer, link);
        producer_detach(p);
        p->events->closed(p, why);
        producer_free(p);
    }
}
