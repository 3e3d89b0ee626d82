// dispatcher_single.c - one active consumer gets all entries in order: read a batch, write it, read the next while the former leaves. Failover has others in wait.
#include "broker/compaction.h"
#include "broker/dispatch_int.h"
#include "broker/failover.h"
#include "broker/limits.h"

struct single {
    struct ox_dispatcher base;
    struct ox_consumer *active; // or NULL
    struct ox_cursor_read read; // in flight, or its result while at < read.count
    size_t at;                  // the next entry of the result to deliver
    uint64_t held_bytes;        // of the result, counted in the shard, while nobody takes it
    bool discard;               // the cursor went back while the read was in flight: its result is not wanted
    bool failed;                // the last read failed, or the rate is used up: wait for `retry`
    bool changing;              // Failover: the active one changed, and gets nothing before `change` fires
    struct ox_timer change;
    struct ox_op kick; // deliveries that must not happen inside the owner's call
    struct ox_timer retry;
    uint64_t retry_ns;      // the last waiting time, 0 after a read that worked
    double mean_messages;   // of an entry, lately
    struct ox_op *stopping; // finished when nothing is in flight
};

static void single_go(struct single *d);

static struct single *single_of(struct ox_dispatcher *d)
{
    return CONTAINER_OF(d, struct single, base);
}

static struct ox_subscription *single_sub(const struct single *d)
{
    return d->base.subscription;
}

static struct ox_shard *single_shard(const struct single *d)
{
    return single_sub(d)->topic->shard;
}

// ---- delivering

static void single_deliver_one(struct single *d, const struct ox_entry *entry)
{
    struct ox_subscription *s = single_sub(d);
    struct dispatch_view view;
    if (ox_cursor_is_deleted(s->cursor, entry->pos))
        return;
    if (!dispatch_fill(s, entry, &view)) {
        ox_cursor_delete(s->cursor, NULL, &entry->pos, 1);
        return;
    }
    view.out.redelivery_count = 0;
    view.out.consumer_epoch = d->active->epoch;
    d->active->events->deliver(d->active, &view.out);
    dispatch_count(d->active, &view.out);
    d->mean_messages += (view.out.messages - d->mean_messages) / 16;
}

static bool single_reading(const struct single *d)
{
    return ox_op_pending(&d->read.op);
}

static bool single_throttled(struct single *d)
{
    uint64_t wait_ns = dispatch_wait_ns(single_sub(d));
    if (!wait_ns)
        return false;
    d->failed = true;
    ox_timer_start(&d->retry, wait_ns);
    return true;
}

// Is there a consumer that takes an entry now?
static bool single_wanted(struct single *d)
{
    struct ox_consumer *c = d->active;
    if (!c || d->changing || c->permits <= 0 || c->blocked || d->stopping || single_throttled(d))
        return false;
    c->blocked = !c->events->ready(c);
    return !c->blocked;
}

static void single_hold(struct single *d, uint64_t bytes)
{
    single_shard(d)->held_bytes += bytes - d->held_bytes;
    d->held_bytes = bytes;
}

static void single_drop(struct single *d)
{
    single_hold(d, 0);
    if (!single_reading(d) && d->read.entries)
        ox_cursor_read_fini(&d->read);
    if (!single_reading(d)) {
        d->read.entries = NULL;
        d->read.count = 0;
    }
    d->at = 0;
}

static void single_deliver(struct single *d)
{
    uint64_t now = ox_wall_ms(single_shard(d)->loop);
    while (d->at < d->read.count && single_wanted(d)) {
        single_deliver_one(d, &d->read.entries[d->at++]);
        d->active->last_consumed_ms = single_sub(d)->last_consumed_ms = now;
    }
    if (d->at == d->read.count)
        single_drop(d);
}

// What nobody takes now may wait in memory, up to a bound for all topics; beyond it is read again.
static void single_keep(struct single *d)
{
    struct ox_pos next = d->read.entries[d->at].pos;
    uint64_t bytes = 0;
    for (size_t i = d->at; i < d->read.count; i++)
        bytes += d->read.entries[i].data.len;
    single_hold(d, bytes);
    if (single_shard(d)->held_bytes <= OX_HELD_BYTES_MAX)
        return;
    single_drop(d);
    ox_cursor_unread(single_sub(d)->cursor, next);
}

// ---- reading

static void single_stopped(struct single *d)
{
    if (!d->stopping || single_reading(d) || ox_op_pending(&d->kick))
        return;
    struct ox_op *op = d->stopping;
    d->stopping = NULL;
    single_drop(d);
    ox_op_finish(op, OX_OK);
}

static void single_read_failed(struct single *d, enum ox_err err)
{
    if (!dispatch_retries(single_sub(d), err, &d->retry_ns))
        return;
    d->failed = true;
    ox_timer_start(&d->retry, d->retry_ns);
}

static void single_unread(struct single *d)
{
    single_drop(d);
    ox_cursor_rewind(single_sub(d)->cursor);
}

static void single_read_done(struct ox_op *op)
{
    struct single *d = CONTAINER_OF(op, struct single, read.op);
    d->at = 0;
    if (op->err) {
        d->read.entries = NULL;
        d->read.count = 0;
        single_read_failed(d, op->err);
    } else {
        d->retry_ns = 0;
        if (d->discard || !d->active)
            single_unread(d);
    }
    d->discard = false;
    single_go(d);
    single_stopped(d);
}

static void single_read(struct single *d)
{
    const struct ox_broker_config *c = &single_shard(d)->config;
    double room = dispatch_room(single_sub(d), (double)d->active->permits) / d->mean_messages;
    double most = OX_MIN(room, (double)c->dispatch_entries_max);
    d->read = (struct ox_cursor_read){.entries_max = (uint32_t)OX_MAX(most, 1.0), .bytes_max = c->dispatch_bytes_max};
    d->read.view = d->active->read_compacted ? ox_compaction_view(d->active->topic) : NULL;
    d->at = 0;
    d->discard = false;
    ox_op_init(&d->read.op, single_shard(d)->loop, single_read_done, "dispatch.read");
    ox_cursor_read(single_sub(d)->cursor, &d->read);
}

// Delivers what was read, then reads on if somebody wants it.
static void single_go(struct single *d)
{
    if (single_reading(d) || d->failed)
        return;
    single_deliver(d);
    if (d->read.count)
        single_keep(d);
    else if (single_wanted(d) && single_sub(d)->topic->state == OX_TOPIC_OPEN)
        single_read(d);
}

static void single_kicked(struct ox_op *op)
{
    struct single *d = CONTAINER_OF(op, struct single, kick);
    single_go(d);
    single_stopped(d);
}

static void single_kick(struct single *d)
{
    if (ox_op_pending(&d->kick) || !d->active) // without consumers it may be freed any time
        return;
    ox_op_begin(&d->kick);
    ox_op_finish(&d->kick, OX_OK);
}

static void single_retry(struct ox_timer *timer)
{
    struct single *d = CONTAINER_OF(timer, struct single, retry);
    d->failed = false;
    single_go(d);
}

// What was read and not delivered, or delivered and not acknowledged, is for the next one.
static void single_back(struct single *d)
{
    d->discard = single_reading(d);
    single_unread(d);
}

// ---- who is active

static void single_tell(const struct single *d, struct ox_consumer *c)
{
    c->is_active = c == d->active;
    c->events->active(c, c->is_active);
}

// What the former one acknowledges until now is not delivered again.
static void single_changed(struct ox_timer *timer)
{
    struct single *d = CONTAINER_OF(timer, struct single, change);
    d->changing = false;
    if (!d->active)
        return;
    single_back(d);
    OX_LIST_EACH(&single_sub(d)->consumers, l)
        single_tell(d, CONTAINER_OF(l, struct ox_consumer, link));
    single_go(d);
}

static void single_activate(struct single *d, struct ox_consumer *c)
{
    if (d->active == c)
        return;
    d->active = c;
    single_back(d);
    if (single_reading(d))
        ox_op_cancel(&d->read.op);
    d->failed = false;
    d->retry_ns = 0;
    ox_timer_stop(&d->retry);
    uint64_t delay_ns = single_shard(d)->config.failover_delay_ns;
    if (d->base.body->type != OX_SUB_FAILOVER || d->changing)
        return;
    d->changing = true;
    ox_timer_start(&d->change, delay_ns);
}

// ---- the body

static enum ox_err exclusive_admit(struct ox_dispatcher *base, struct ox_subscribe *o, struct ox_consumer **ret_holder)
{
    struct single *d = single_of(base);
    if (!d->active)
        return OX_OK;
    *ret_holder = d->active;
    o->why = "Exclusive consumer is already connected";
    return OX_E_CONSUMER_BUSY;
}

static enum ox_err failover_admit(struct ox_dispatcher *base, struct ox_subscribe *o, struct ox_consumer **ret_holder)
{
    (void)base;
    (void)o;
    (void)ret_holder;
    return OX_OK;
}

static void single_attached(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_subscribe *o)
{
    (void)o;
    struct single *d = single_of(base);
    if (base->body->type == OX_SUB_EXCLUSIVE) {
        OX_ASSERT(!d->active);
        single_activate(d, c);
        return;
    }
    const struct ox_consumer *before = d->active;
    single_activate(d, failover_choose(single_sub(d), NULL));
    if (d->active == before)
        single_tell(d, c);
}

static void single_detached(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct single *d = single_of(base);
    if (base->body->type == OX_SUB_EXCLUSIVE)
        OX_ASSERT(d->active == c);
    single_activate(d, failover_choose(single_sub(d), c));
}

static void single_more(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct single *d = single_of(base);
    if (c == d->active && !single_reading(d) && !d->failed)
        single_kick(d);
}

// Only the active one has anything.
static void single_redeliver(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_pos *positions, size_t count)
{
    (void)positions;
    (void)count;
    struct single *d = single_of(base);
    if (c != d->active)
        return;
    single_back(d);
    single_kick(d);
}

static void single_restart(struct ox_dispatcher *base)
{
    struct single *d = single_of(base);
    OX_ASSERT(!single_reading(d));
    single_drop(d);
    d->failed = false;
    ox_timer_stop(&d->retry);
}

static void single_body_kick(struct ox_dispatcher *base)
{
    struct single *d = single_of(base);
    dispatch_limits_refresh(base->subscription);
    subscription_look_at_end(base->subscription);
    d->failed = false;
    ox_timer_stop(&d->retry);
    single_kick(d);
}

static void single_stop(struct ox_dispatcher *base, struct ox_op *op)
{
    struct single *d = single_of(base);
    OX_ASSERT(!d->stopping && !d->active);
    ox_op_begin(op);
    d->stopping = op;
    if (single_reading(d))
        ox_op_cancel(&d->read.op);
    single_stopped(d);
}

static void single_free(struct ox_dispatcher *base)
{
    struct single *d = single_of(base);
    OX_ASSERT(!single_reading(d) && !d->active && !ox_op_pending(&d->kick));
    single_drop(d);
    ox_timer_stop(&d->retry);
    ox_timer_stop(&d->change);
    ox_free(d);
}

#define SINGLE_BODY(TYPE, ADMIT)                                                                                     \
    {                                                                                                                \
        .type = TYPE, .admit = ADMIT, .attached = single_attached, .detached = single_detached, .more = single_more, \
        .redeliver = single_redeliver, .restart = single_restart, .kick = single_body_kick, .stop = single_stop,     \
        .free = single_free,                                                                                         \
    }
static const struct ox_dispatcher_body exclusive_body = SINGLE_BODY(OX_SUB_EXCLUSIVE, exclusive_admit);
static const struct ox_dispatcher_body failover_body = SINGLE_BODY(OX_SUB_FAILOVER, failover_admit);

struct ox_dispatcher *ox_dispatcher_single_new(struct ox_subscription *s, enum ox_sub_type type)
{
    struct single *d = ox_malloc(sizeof *d);
    d->base = (struct ox_dispatcher){type == OX_SUB_FAILOVER ? &failover_body : &exclusive_body, s};
    d->mean_messages = 1;
    ox_op_init(&d->kick, s->topic->shard->loop, single_kicked, "dispatch.kick");
    ox_timer_init(&d->retry, s->topic->shard->loop, single_retry);
    ox_timer_init(&d->change, s->topic->shard->loop, single_changed);
    return &d->base;
}
