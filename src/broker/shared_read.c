// shared_read.c - reads: what must come again first, by position; then new entries, while somebody has permits.
#include "broker/limits.h"
#include "broker/shared.h"

struct shared_again {
    struct shared *dispatcher;
    struct ox_ml_read read;
};

#define AGAIN_GAP_MAX 16 // entries between two wanted ones that are read along

static struct ox_loop *shared_loop(const struct shared *d)
{
    return shared_sub(d)->topic->shard->loop;
}

void shared_stopped(struct shared *d)
{
    if (!d->stopping || shared_reading(d) || shared_rereading(d) || ox_op_pending(&d->kick))
        return;
    struct ox_op *op = d->stopping;
    d->stopping = NULL;
    ox_op_finish(op, OX_OK);
}

static void shared_read_failed(struct shared *d, enum ox_err err)
{
    if (!dispatch_retries(shared_sub(d), err, &d->retry_ns))
        return;
    d->failed = true;
    ox_timer_start(&d->retry, d->retry_ns);
}

// How many entries those that are ready will take.
static uint32_t shared_room(const struct shared *d)
{
    uint32_t most = shared_sub(d)->topic->shard->config.dispatch_entries_max;
    double messages = 0;
    OX_LIST_EACH((struct ox_list *)(uintptr_t)&d->ready, l) {
        messages += (double)CONTAINER_OF(l, struct shared_consumer, ready)->consumer->permits;
        if (messages >= most * d->mean_messages)
            break;
    }
    double entries = OX_MIN(dispatch_room(shared_sub(d), messages) / d->mean_messages, (double)most);
    return entries < 1 ? 1 : (uint32_t)entries;
}

// ---- what must come again

// The log has passed over damaged entries (skip_unrecoverable): they count as acknowledged here too.
static void again_lost(struct shared *d, const struct ox_ml_read *r)
{
    struct ox_pos p = r->from, upto = r->count ? r->entries[0].pos : r->next;
    for (; ox_pos_set_at_or_after(&d->replay, p, &p) && ox_pos_cmp(p, upto) < 0; p.entry++) {
        shared_forget(d, pending_find(&d->known, p));
        ox_cursor_delete(shared_sub(d)->cursor, NULL, &p, 1);
    }
}

static void again_done(struct ox_op *op)
{
    struct shared_again *again = CONTAINER_OF(op, struct shared_again, read.op);
    struct shared *d = again->dispatcher;
    d->again = NULL;
    if (op->err) {
        shared_read_failed(d, op->err);
    } else {
        d->retry_ns = 0;
        shared_deliver_again(d, again->read.entries, again->read.count);
        again_lost(d, &again->read);
    }
    ox_ml_read_fini(&again->read);
    ox_free(again);
    shared_go(d);
    shared_stopped(d);
}

// Chooses a run of neighbours that can go now; 0: there is none. Those that were acknowledged meanwhile are forgotten.
static uint32_t again_choose(struct shared *d, struct ox_pos *ret_from)
{
    struct ox_pos p = d->changes == d->again_changes ? d->again_from : OX_POS_EARLIEST, last = OX_POS_EARLIEST;
    uint32_t count = 0, most = shared_room(d);
    for (; count < most && ox_pos_set_at_or_after(&d->replay, p, &p); p.entry++) {
        struct pending *entry = pending_find(&d->known, p);
        if (ox_cursor_is_deleted(shared_sub(d)->cursor, p)) {
            shared_forget(d, entry);
        } else if (shared_might_go(d, entry->hash)) {
            if (count && (p.ledger != last.ledger || p.entry - last.entry > AGAIN_GAP_MAX))
                break;
            if (!count)
                *ret_from = p;
            last = p;
            count = (uint32_t)(last.entry - ret_from->entry + 1);
        }
    }
    return count;
}

static bool shared_read_again(struct shared *d)
{
    struct ox_pos from;
    uint32_t count = d->look ? again_choose(d, &from) : 0;
    if (!count) {
        d->look = false;
        return false;
    }
    d->again = ox_malloc(sizeof *d->again);
    d->again->dispatcher = d;
    d->again->read = (struct ox_ml_read){
        .from = from, .entries_max = count, .bytes_max = shared_sub(d)->topic->shard->config.dispatch_bytes_max};
    d->again_changes = d->changes;
    d->again_from = from;
    ox_op_init(&d->again->read.op, shared_loop(d), again_done, "dispatch.again");
    ox_mledger_read(shared_sub(d)->topic->ml, &d->again->read);
    return true;
}

// ---- what comes new

static void shared_unread(struct shared *d)
{
    if (d->discard)
        ox_cursor_rewind(shared_sub(d)->cursor);
    d->discard = false;
}

static void read_done(struct ox_op *op)
{
    struct shared *d = CONTAINER_OF(op, struct shared, read.op);
    if (op->err) {
        shared_read_failed(d, op->err);
    } else {
        d->retry_ns = 0;
        if (!d->discard)
            shared_deliver_new(d, d->read.entries, d->read.count);
        ox_cursor_read_fini(&d->read);
    }
    shared_unread(d);
    shared_go(d);
    shared_stopped(d);
}

static void shared_read_new(struct shared *d)
{
    d->read = (struct ox_cursor_read){.entries_max = shared_room(d),
                                      .bytes_max = shared_sub(d)->topic->shard->config.dispatch_bytes_max};
    d->discard = false;
    ox_op_init(&d->read.op, shared_loop(d), read_done, "dispatch.read");
    ox_cursor_read(shared_sub(d)->cursor, &d->read);
}

bool shared_may_look_ahead(const struct shared *d)
{
    size_t most =
        OX_MIN(OX_LOOK_AHEAD_PER_CONSUMER * shared_sub(d)->consumers.count, (size_t)OX_LOOK_AHEAD_PER_SUBSCRIPTION);
    return d->replay.count < most && d->known.count < OX_PENDING_ENTRIES_MAX;
}

// ---- going on

// The rate is used up.
static bool shared_throttled(struct shared *d)
{
    uint64_t wait_ns = dispatch_wait_ns(shared_sub(d));
    if (!wait_ns)
        return false;
    d->failed = true;
    ox_timer_start(&d->retry, wait_ns);
    return true;
}

void shared_go(struct shared *d)
{
    const struct ox_subscription *s = shared_sub(d);
    if (d->failed || d->stopping || s->held_back || ox_list_empty(&d->ready) || s->topic->state != OX_TOPIC_OPEN ||
        shared_throttled(d))
        return;
    shared_take_due(d);
    if (shared_rereading(d) || shared_read_again(d))
        return;
    if (!shared_reading(d) && shared_may_look_ahead(d) && shared_delay_has_room(d))
        shared_read_new(d);
}

static void shared_kicked(struct ox_op *op)
{
    struct shared *d = CONTAINER_OF(op, struct shared, kick);
    shared_go(d);
    shared_stopped(d);
}

void shared_kick(struct shared *d)
{
    if (ox_op_pending(&d->kick) || ox_list_empty(&shared_sub(d)->consumers)) // without consumers it may be freed any time
        return;
    ox_op_begin(&d->kick);
    ox_op_finish(&d->kick, OX_OK);
}

static void shared_retry(struct ox_timer *timer)
{
    struct shared *d = CONTAINER_OF(timer, struct shared, retry);
    d->failed = false;
    shared_go(d);
}

void shared_read_init(struct shared *d)
{
    ox_op_init(&d->kick, shared_loop(d), shared_kicked, "dispatch.kick");
    ox_timer_init(&d->retry, shared_loop(d), shared_retry);
    shared_delay_init(d);
}

void shared_read_discard(struct shared *d)
{
    d->discard = shared_reading(d);
    ox_cursor_rewind(shared_sub(d)->cursor);
    if (shared_reading(d))
        ox_op_cancel(&d->read.op);
}
