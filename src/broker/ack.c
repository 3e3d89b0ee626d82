// ack.c - acknowledgements: what an id covers, who is told, what the cursor is told.
#include "broker/subscription_int.h"

static void ack_finish(struct ox_cursor_ack *ack, enum ox_err err)
{
    if (!ack)
        return;
    ox_op_begin(&ack->op);
    ox_op_finish(&ack->op, err);
}

static bool pos_exists(const struct ox_topic *t, struct ox_pos pos)
{
    return pos.ledger >= 0 && pos.entry >= 0 && ox_pos_cmp(pos, t->ml->last) <= 0;
}

static void ack_told(struct ox_consumer *c, struct ox_pos pos, bool whole, uint32_t left)
{
    struct ox_dispatcher *d = c->subscription->dispatcher;
    if (d->body->acked)
        d->body->acked(d, c, pos, whole, left);
}

// ---- everything up to an id

// A part of a batch: what of it is acknowledged is kept, and everything before it goes.
static struct ox_pos cumulative_part(struct ox_subscription *s, const struct ox_ack_id *id)
{
    bool whole = false;
    if (s->topic->shard->config.batch_index_acks)
        ox_cursor_delete_part(s->cursor, NULL, id->pos, id->set, id->words, &whole, NULL);
    return whole ? id->pos : ox_ml_prev(s->topic->ml, id->pos);
}

static void ack_cumulative(struct ox_consumer *c, struct ox_cursor_ack *ack, const struct ox_ack_id *id)
{
    struct ox_subscription *s = c->subscription;
    struct ox_pos pos = id->pos;
    bool before_a_ledger = pos.ledger >= 0 && pos.entry == -1; // what clients send for a part of a ledger's first batch
    if (!before_a_ledger && !pos_exists(s->topic, pos)) {
        ack_finish(ack, OX_OK);
        return;
    }
    if (id->words && !before_a_ledger && ox_pos_cmp(pos, s->cursor->mark_delete) > 0)
        pos = cumulative_part(s, id);
    ox_cursor_mark_delete(s->cursor, ack, pos);
}

// ---- single ids

static void ack_part(struct ox_consumer *c, const struct ox_ack_id *id)
{
    struct ox_subscription *s = c->subscription;
    bool whole = false;
    uint32_t left = 0;
    if (!s->topic->shard->config.batch_index_acks)
        return;
    ox_cursor_delete_part(s->cursor, NULL, id->pos, id->set, id->words, &whole, &left);
    ack_told(c, id->pos, whole, left);
}

#define ACK_BATCH 64u

// Whole entries go to the cursor in portions.
static void ack_individual(struct ox_consumer *c, const struct ox_ack_id *ids, size_t count)
{
    struct ox_subscription *s = c->subscription;
    struct ox_pos whole[ACK_BATCH];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!pos_exists(s->topic, ids[i].pos))
            continue;
        if (ids[i].words) {
            ack_part(c, &ids[i]);
            continue;
        }
        ack_told(c, ids[i].pos, true, 0);
        whole[n++] = ids[i].pos;
        if (n == ACK_BATCH) {
            ox_cursor_delete(s->cursor, NULL, whole, n);
            n = 0;
        }
    }
    if (n)
        ox_cursor_delete(s->cursor, NULL, whole, n);
}

static bool ack_is_refused(struct ox_consumer *c, struct ox_cursor_ack *ack, bool cumulative, size_t count)
{
    struct ox_subscription *s = c->subscription;
    bool open = s->state == OX_SUBSCRIPTION_OPEN && s->topic->state == OX_TOPIC_OPEN;
    bool shared = s->type == OX_SUB_SHARED || s->type == OX_SUB_KEY_SHARED;
    if (open && count && s->cursor && !(cumulative && shared))
        return false;
    ack_finish(ack, open || !count ? OX_OK : OX_E_TOPIC_FENCED);
    return true;
}

void ox_consumer_ack(struct ox_consumer *c, struct ox_cursor_ack *ack, bool cumulative, const struct ox_ack_id *ids,
                     size_t count)
{
    struct ox_subscription *s = c->subscription;
    if (ack_is_refused(c, ack, cumulative, count))
        return;
    c->last_acked_ms = s->last_acked_ms = ox_wall_ms(c->topic->shard->loop);
    uint32_t unacked = s->unacked;
    if (cumulative) {
        ack_cumulative(c, ack, &ids[0]);
    } else {
        ack_individual(c, ids, count);
        if (ack)
            ox_cursor_delete(s->cursor, ack, NULL, 0); // is over when all before is stored, also what was acknowledged earlier
    }
    ox_rate_add(&c->acks, c->pending ? unacked - s->unacked : count, 0);
    subscription_look_at_end(s);
}
