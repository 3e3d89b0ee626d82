// peek.c - single entries by position, by number and by time.
#include "broker/peek.h"

#include "broker/subscription_int.h"

// Begins an operation that reads the topic's log; false: it has ended.
static bool peek_begin(struct ox_topic *t, struct ox_op *op)
{
    ox_op_begin(op);
    if (t->state == OX_TOPIC_OPEN && t->ml) {
        topic_pin(t);
        return true;
    }
    ox_op_finish(op, t->state == OX_TOPIC_OPEN ? OX_E_NO_ENTRY : OX_E_TOPIC_FENCED);
    return false;
}

static void peek_read(struct ox_op *op)
{
    struct ox_peek *o = CONTAINER_OF(op, struct ox_peek, read.op);
    enum ox_err err = op->err;
    if (err == OX_OK) {
        bool there = o->read.count && ox_pos_equal(o->read.entries[0].pos, o->pos);
        o->entry = (struct ox_entry){.pos = o->pos};
        if (there)
            o->entry.data = ox_buf_ref(o->read.entries[0].data);
        err = there ? OX_OK : OX_E_NO_ENTRY;
        ox_ml_read_fini(&o->read);
    }
    topic_unpin(o->topic);
    ox_op_finish(&o->op, err);
}

void ox_topic_peek(struct ox_topic *t, struct ox_peek *o)
{
    if (!peek_begin(t, &o->op))
        return;
    o->topic = t;
    o->read = (struct ox_ml_read){.from = o->pos, .entries_max = 1, .bytes_max = 1};
    ox_op_init(&o->read.op, t->shard->loop, peek_read, "peek.read");
    ox_mledger_read(t->ml, &o->read);
}

struct ox_pos ox_topic_nth(const struct ox_topic *t, bool from_last, uint64_t n)
{
    if (!t->ml || !t->ml->total_entries)
        return OX_POS_EARLIEST;
    uint64_t total = t->ml->total_entries, skip = OX_MIN(n ? n : 1, total);
    uint64_t before = from_last ? total - skip : skip - 1; // entries in front of it
    for (size_t i = 0; i < t->ml->ledger_count; i++) {
        const struct ox_ml_ledger *l = t->ml->ledgers[i];
        if (before < (uint64_t)l->entries)
            return (struct ox_pos){l->where.id, (int64_t)before};
        before -= (uint64_t)l->entries;
    }
    return OX_POS_EARLIEST;
}

// How many entries of a ledger, from `first` on, a cursor has not acknowledged.
static uint64_t unacked_in(const struct ox_cursor *c, const struct ox_ml_ledger *l, int64_t first)
{
    uint64_t count = first < l->entries ? (uint64_t)(l->entries - first) : 0;
    for (size_t i = 0; count && i < c->hole_count; i++) {
        if (c->holes[i].ledger == l->where.id)
            return count - ox_ranges_count_in(&c->holes[i].acked, first, l->entries - 1);
    }
    return count;
}

// The first entry up to which n entries, from `first` on, are not acknowledged: by bisection. There are that many.
static int64_t unacked_nth(const struct ox_cursor *c, const struct ox_ml_ledger *l, int64_t first, uint64_t n)
{
    uint64_t all = unacked_in(c, l, first);
    int64_t low = first, high = l->entries - 1;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (all - unacked_in(c, l, mid + 1) >= n)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

struct ox_pos ox_subscription_nth(const struct ox_subscription *s, uint64_t n)
{
    const struct ox_cursor *c = s->cursor;
    const struct ox_mledger *ml = s->topic->ml;
    for (size_t i = 0; c && ml && n && i < ml->ledger_count; i++) {
        const struct ox_ml_ledger *l = ml->ledgers[i];
        if (l->where.id < c->mark_delete.ledger)
            continue;
        int64_t first = l->where.id == c->mark_delete.ledger ? c->mark_delete.entry + 1 : 0;
        uint64_t there = unacked_in(c, l, first);
        if (n <= there)
            return (struct ox_pos){l->where.id, unacked_nth(c, l, first, n)};
        n -= there;
    }
    return OX_POS_EARLIEST;
}

static bool entry_is_older(void *ctx, const struct ox_entry *entry)
{
    const struct ox_time_find *o = (const struct ox_time_find *)ctx;
    return entry_publish_time(entry) < o->time_ms;
}

static void time_found(struct ox_op *op)
{
    struct ox_time_find *o = CONTAINER_OF(op, struct ox_time_find, find.op);
    if (op->err == OX_OK)
        o->pos = ox_ml_next(o->topic->ml, o->find.found);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, op->err);
}

void ox_topic_find_time(struct ox_topic *t, struct ox_time_find *o)
{
    if (!peek_begin(t, &o->op))
        return;
    o->topic = t;
    o->find = (struct ox_ml_find){.before = entry_is_older, .ctx = o};
    ox_op_init(&o->find.op, t->shard->loop, time_found, "peek.find");
    ox_mledger_find(t->ml, &o->find);
}
