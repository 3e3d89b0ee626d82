// consumer.c - consumers: attaching to a dispatcher, permits, acknowledgements, leaving.
#include "broker/consumer.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/subscription_int.h"

struct ox_consumer *consumer_new(struct ox_subscription *s, const struct ox_subscribe *from)
{
    struct ox_consumer *c = ox_malloc(sizeof *c);
    c->magic = CONSUMER_MAGIC;
    c->subscription = s;
    c->topic = s->topic;
    c->name = ox_strdup(from->name ? from->name : "");
    c->id = from->id;
    c->connection = from->connection;
    c->priority = from->priority;
    c->epoch = from->epoch;
    c->connected_ms = ox_wall_ms(s->topic->shard->loop);
    c->events = from->events;
    c->owner = from->owner;
    snprintf(c->peer, sizeof c->peer, "%s", from->peer ? from->peer : "");
    if (from->metadata)
        ox_kv_copy(&c->metadata, from->metadata);
    ox_topic_hold(c->topic);
    ox_list_push_back(&s->consumers, &c->link);
    s->topic->shard->consumers_count.value++;
    s->dispatcher->body->attached(s->dispatcher, c, from);
    return c;
}

void consumer_detach(struct ox_consumer *c)
{
    struct ox_subscription *s = c->subscription;
    OX_ASSERT(c->magic == CONSUMER_MAGIC);
    s->dispatcher->body->detached(s->dispatcher, c);
    ox_list_remove(&s->consumers, &c->link);
    s->topic->shard->consumers_count.value--;
}

void consumer_free(struct ox_consumer *c)
{
    struct ox_topic *t = c->topic;
    ox_kv_fini(&c->metadata);
    ox_free(c->name);
    c->magic = 0;
    ox_free(c);
    ox_topic_put(t);
}

void ox_consumer_close(struct ox_consumer *c)
{
    struct ox_subscription *s = c->subscription;
    consumer_detach(c);
    subscription_abandon(s);
    consumer_free(c);
}

enum ox_err ox_consumer_flow(struct ox_consumer *c, uint32_t permits)
{
    if (permits == 0)
        return OX_E_INVALID;
    struct ox_subscription *s = c->subscription;
    c->permits += permits;
    c->last_flow_ms = s->last_flow_ms = ox_wall_ms(c->topic->shard->loop);
    s->dispatcher->body->more(s->dispatcher, c);
    return OX_OK;
}

void ox_consumer_writable(struct ox_consumer *c)
{
    struct ox_dispatcher *d = c->subscription->dispatcher;
    c->blocked = false;
    d->body->more(d, c);
}

void ox_consumer_redeliver(struct ox_consumer *c, bool has_epoch, uint64_t epoch, const struct ox_pos *positions, size_t count)
{
    struct ox_dispatcher *d = c->subscription->dispatcher;
    if (has_epoch && epoch < c->epoch)
        return;
    if (has_epoch)
        c->epoch = epoch;
    c->redelivered++;
    d->body->redeliver(d, c, positions, count);
}

// ---- acknowledgements

static void ack_finish(struct ox_cursor_ack *ack, enum ox_err err)
{
    if (!ack)
        return;
    ox_op_begin(&ack->op);
    ox_op_finish(&ack->op, err);
}

// True if the whole entry is acknowledged by this id.
static bool ack_is_whole(struct ox_subscription *s, const struct ox_ack_id *id)
{
    if (!id->words) {
        ox_batch_acks_forget(&s->cursor->batches, id->pos);
        return true;
    }
    return s->topic->shard->config.batch_index_acks && ox_batch_acks_and(&s->cursor->batches, id->pos, id->set, id->words);
}

static bool pos_exists(const struct ox_topic *t, struct ox_pos pos)
{
    return pos.ledger >= 0 && pos.entry >= 0 && ox_pos_cmp(pos, t->ml->last) <= 0;
}

static void ack_cumulative(struct ox_subscription *s, struct ox_cursor_ack *ack, const struct ox_ack_id *id)
{
    struct ox_pos pos = id->pos;
    bool before_a_ledger = pos.ledger >= 0 && pos.entry == -1; // what clients send for a part of a ledger's first batch
    if (!before_a_ledger && !pos_exists(s->topic, pos)) {
        ack_finish(ack, OX_OK);
        return;
    }
    if (ox_pos_cmp(pos, s->cursor->mark_delete) > 0 && !ack_is_whole(s, id))
        pos = ox_ml_prev(s->topic->ml, pos);
    ox_batch_acks_forget_upto(&s->cursor->batches, pos);
    ox_cursor_mark_delete(s->cursor, ack, pos);
}

#define ACK_BATCH 64u

// Whole entries go to the cursor in portions; the last portion carries the caller's operation. Entries that are acknowledged already go there too:
// their answer may come no sooner than the first acknowledgement is durable.
static void ack_individual(struct ox_subscription *s, struct ox_cursor_ack *ack, const struct ox_ack_id *ids, size_t count)
{
    struct ox_pos whole[ACK_BATCH];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!pos_exists(s->topic, ids[i].pos) || (!ox_cursor_is_deleted(s->cursor, ids[i].pos) && !ack_is_whole(s, &ids[i])))
            continue;
        if (n == ACK_BATCH) {
            ox_cursor_delete(s->cursor, NULL, whole, n);
            n = 0;
        }
        whole[n++] = ids[i].pos;
    }
    if (n)
        ox_cursor_delete(s->cursor, ack, whole, n);
    else
        ack_finish(ack, OX_OK);
}

void ox_consumer_ack(struct ox_consumer *c, struct ox_cursor_ack *ack, bool cumulative, const struct ox_ack_id *ids,
                     size_t count)
{
    struct ox_subscription *s = c->subscription;
    if (s->state != OX_SUBSCRIPTION_OPEN || s->topic->state != OX_TOPIC_OPEN || count == 0) {
        ack_finish(ack, count ? OX_E_TOPIC_FENCED : OX_OK);
        return;
    }
    c->last_acked_ms = s->last_acked_ms = ox_wall_ms(c->topic->shard->loop);
    c->acked_messages += count;
    if (cumulative)
        ack_cumulative(s, ack, &ids[0]);
    else
        ack_individual(s, ack, ids, count);
}
