// producer.c - attached producers: making, leaving, what happens to all of a topic.
#include "broker/producer.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/producer_int.h"
#include "broker/resend.h"
#include "broker/topic_int.h"

#define PRODUCER_OF(l) CONTAINER_OF(l, struct ox_producer, link)

struct ox_producer *producer_new(struct ox_producer_open *o)
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
    p->mode = o->mode;
    p->replicator = !strncmp(p->name, OX_REPLICATOR_PREFIX, strlen(OX_REPLICATOR_PREFIX));
    p->resending = o->reconnect && t->resend && ox_resend_count(t->resend);
    snprintf(p->peer, sizeof p->peer, "%s", o->peer ? o->peer : "");
    snprintf(p->client_version, sizeof p->client_version, "%s", o->client_version ? o->client_version : "");
    if (o->metadata)
        ox_kv_copy(&p->metadata, o->metadata);
    ox_list_init(&p->publishes);
    ox_topic_hold(t);
    ox_list_push_back(&t->producers, &p->link);
    if (p->mode != OX_ACCESS_SHARED)
        t->exclusive = p;
    producer_join_dedup(p);
    t->shard->producers_count.value++;
    return p;
}

int64_t ox_producer_last_sequence(const struct ox_producer *p)
{
    return ox_dedup_is_on(p->topic) && p->dedup ? OX_MAX(p->dedup->stored, (int64_t)-1) : -1;
}

// ---- leaving

void producer_detach(struct ox_producer *p)
{
    struct ox_topic *t = p->topic;
    publishes_orphan(p);
    producer_drained(p, OX_E_CANCELED);
    if (p->blocked)
        ox_list_remove(&t->shard->blocked, &p->blocked_link);
    p->blocked = false;
    ox_list_remove(&t->producers, &p->link);
    if (t->exclusive == p)
        t->exclusive = NULL;
    if (p->dedup)
        ox_dedup_unref(t, p->dedup);
    p->dedup = NULL;
    t->shard->producers_count.value--;
    if (!ox_list_empty(&t->queued))
        access_next(t);
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

void producer_throw_out(struct ox_producer *p, enum ox_err why)
{
    producer_detach(p);
    p->events->closed(p, why);
    producer_free(p);
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
    while (!ox_list_empty(&t->producers))
        producer_throw_out(PRODUCER_OF(ox_list_first(&t->producers)), why);
}

// ---- what happens to all of a topic

void producers_disconnect(struct ox_topic *t, enum ox_err why)
{
    if (!ox_list_empty(&t->producers) && t->ml)
        ox_resend_expect(t);
    producers_close(t, why);
}

enum ox_err producers_quota_error(const struct ox_topic *t)
{
    switch (t->quota_exceeded) {
    case OX_QUOTA_HELD: return OX_E_QUOTA_HOLD;
    case OX_QUOTA_REFUSED: return OX_E_QUOTA_EXCEPTION;
    case OX_QUOTA_OK: break;
    }
    return OX_OK;
}

void producers_quota(struct ox_topic *t)
{
    enum ox_err err = producers_quota_error(t);
    if (err && t->state == OX_TOPIC_OPEN)
        producers_disconnect(t, err);
}

bool producers_want_dedup(const struct ox_topic *t)
{
    return t->policies.dedup && t->ml && !ox_topic_name_is_system(&t->name);
}

void producer_join_dedup(struct ox_producer *p)
{
    struct ox_topic *t = p->topic;
    bool wanted = t->dedup && producers_want_dedup(t) && !p->replicator;
    if (wanted && !p->dedup) {
        p->dedup = ox_dedup_name(t, p->name, strlen(p->name));
    } else if (!wanted && p->dedup) {
        ox_dedup_unref(t, p->dedup);
        p->dedup = NULL;
    }
}

static void producers_follow_dedup(struct ox_topic *t, struct ox_op *op)
{
    if (producers_want_dedup(t))
        ox_dedup_start(t, op);
    else
        ox_dedup_stop(t);
    OX_LIST_EACH(&t->producers, l)
        producer_join_dedup(PRODUCER_OF(l));
}

void producers_policies(struct ox_topic *t)
{
    const struct ox_policies *p = &t->policies;
    t->looks = p->encryption_required || p->delayed_max_ms || p->message_bytes_max;
    limits_follow(t);
    if (t->ml && t->state == OX_TOPIC_OPEN)
        producers_follow_dedup(t, NULL);
}

// Where deduplication cannot begin the topic serves its consumers; producers are put off until it has begun.
void producers_load(struct ox_topic *t, struct ox_op *op)
{
    const char *text = ox_kv_find(&t->ml->properties, OX_EPOCH_PROPERTY);
    if (text && ox_parse_i64(text, 0, INT64_MAX, &t->epoch) != OX_OK)
        ox_warn(t->shard->log, "topic.epoch.unreadable", "topic=%s value=" OX_LOG_Q, t->name.full, text);
    producers_policies(t);
    producers_follow_dedup(t, op);
    if (producers_want_dedup(t))
        return;
    ox_op_begin(op);
    ox_op_finish(op, OX_OK);
}

void producers_save(struct ox_topic *t)
{
    ox_dedup_save(t);
}

void producers_gone(struct ox_topic *t)
{
    ox_dedup_free(t);
    ox_free(t->limits);
    t->limits = NULL;
}
