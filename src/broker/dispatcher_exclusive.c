// dispatcher_exclusive.c - one active consumer gets all entries in order: read a batch, write it, read the next while the former leaves.
#include "base/assert.h"
#include "base/mem.h"
#include "broker/subscription_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

// Waiting times after reads that failed one after another.
#define RETRY_NS_MIN OX_SEC
#define RETRY_NS_MAX (60 * OX_SEC)

struct exclusive {
    struct ox_dispatcher base;
    struct ox_consumer *active; // or NULL
    struct ox_cursor_read read; // in flight, or its result while at < read.count
    size_t at;                  // the next entry of the result to deliver
    bool discard;               // the cursor went back while the read was in flight: its result is not wanted
    bool failed;                // the last read failed: wait for `retry`
    struct ox_op kick;          // deliveries that must not happen inside the owner's call
    struct ox_timer retry;
    uint64_t retry_ns;      // the last waiting time, 0 after a read that worked
    struct ox_op *stopping; // finished when nothing is in flight
};

static void exclusive_go(struct exclusive *d);

static struct exclusive *exclusive_of(struct ox_dispatcher *d)
{
    return CONTAINER_OF(d, struct exclusive, base);
}

static struct ox_shard *exclusive_shard(const struct exclusive *d)
{
    return d->base.subscription->topic->shard;
}

// ---- delivering

static uint32_t bits_count(const uint64_t *bits, size_t words)
{
    uint32_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (uint32_t)__builtin_popcountll(bits[i]);
    return n;
}

// Takes an entry apart for a delivery; false if it is a broker's marker, which no client sees.
static bool delivery_fill(const struct exclusive *d, const struct ox_entry *entry, struct ox_dispatch *ret)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    *ret = (struct ox_dispatch){.pos = entry->pos, .entry = entry->data, .messages = 1, .consumer_epoch = d->active->epoch};
    if (ox_message_parse(entry->data, false, &view))
        return true;
    ret->entry = view.entry;
    if (view.has_broker_entry) {
        ret->broker_metadata = entry->data;
        ret->broker_metadata.len = (size_t)(view.entry.data - entry->data.data);
    }
    if (ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta))
        return true;
    ret->messages = (uint32_t)meta.num_messages;
    const struct ox_batch_ack *partly = ox_batch_acks_find(&d->base.subscription->batch_acks, entry->pos);
    if (partly) {
        ret->ack_set = partly->bits;
        ret->ack_words = partly->words;
        ret->messages = OX_MIN(ret->messages, bits_count(partly->bits, partly->words));
    }
    return !meta.has_marker;
}

static void delivery_count(struct exclusive *d, const struct ox_dispatch *dispatch)
{
    struct ox_consumer *c = d->active;
    struct ox_shard *sh = exclusive_shard(d);
    c->permits -= dispatch->messages;
    ox_rate_add(&c->out, dispatch->messages, dispatch->entry.len);
    ox_rate_add(&d->base.subscription->out, dispatch->messages, dispatch->entry.len);
    ox_rate_add(&c->topic->out, dispatch->messages, dispatch->entry.len);
    sh->out_messages.value += dispatch->messages;
    sh->out_bytes.value += (int64_t)dispatch->entry.len;
}

static void exclusive_deliver_one(struct exclusive *d, const struct ox_entry *entry)
{
    struct ox_subscription *s = d->base.subscription;
    struct ox_dispatch dispatch;
    if (ox_cursor_is_deleted(s->cursor, entry->pos))
        return;
    if (!delivery_fill(d, entry, &dispatch)) {
        ox_cursor_delete(s->cursor, NULL, &entry->pos, 1);
        return;
    }
    d->active->events->deliver(d->active, &dispatch);
    delivery_count(d, &dispatch);
}

static bool exclusive_reading(const struct exclusive *d)
{
    return ox_op_pending(&d->read.op);
}

// Is there a consumer that takes an entry now?
static bool exclusive_wanted(struct exclusive *d)
{
    struct ox_consumer *c = d->active;
    if (!c || c->permits <= 0 || c->blocked || d->stopping)
        return false;
    c->blocked = !c->events->ready(c);
    return !c->blocked;
}

static void exclusive_drop(struct exclusive *d)
{
    if (!exclusive_reading(d) && d->read.entries)
        ox_cursor_read_fini(&d->read);
    if (!exclusive_reading(d)) {
        d->read.entries = NULL;
        d->read.count = 0;
    }
    d->at = 0;
}

static void exclusive_deliver(struct exclusive *d)
{
    uint64_t now = ox_wall_ms(exclusive_shard(d)->loop);
    while (d->at < d->read.count && exclusive_wanted(d)) {
        exclusive_deliver_one(d, &d->read.entries[d->at++]);
        d->active->last_consumed_ms = d->base.subscription->last_consumed_ms = now;
    }
    if (d->at == d->read.count)
        exclusive_drop(d);
}

// ---- reading

static void exclusive_stopped(struct exclusive *d)
{
    if (!d->stopping || exclusive_reading(d) || ox_op_pending(&d->kick))
        return;
    struct ox_op *op = d->stopping;
    d->stopping = NULL;
    exclusive_drop(d);
    ox_op_finish(op, OX_OK);
}

static void exclusive_read_failed(struct exclusive *d, enum ox_err err)
{
    struct ox_topic *t = d->base.subscription->topic;
    if (err == OX_E_CANCELED)
        return;
    ox_warn(t->shard->log, "dispatch.read.failed", "topic=%s error=%s", t->name.full, ox_err_name(err));
    if (ox_err_class(err) == OX_CLASS_FENCED || err == OX_E_SHUTDOWN) {
        topic_fail(t, err);
        return;
    }
    d->failed = true;
    d->retry_ns = d->retry_ns ? OX_MIN(d->retry_ns * 2, RETRY_NS_MAX) : RETRY_NS_MIN;
    ox_timer_start(&d->retry, d->retry_ns);
}

static void exclusive_unread(struct exclusive *d)
{
    exclusive_drop(d);
    ox_cursor_rewind(d->base.subscription->cursor);
}

static void exclusive_read_done(struct ox_op *op)
{
    struct exclusive *d = CONTAINER_OF(op, struct exclusive, read.op);
    d->at = 0;
    if (op->err) {
        d->read.entries = NULL;
        d->read.count = 0;
        exclusive_read_failed(d, op->err);
    } else {
        d->retry_ns = 0;
        if (d->discard || !d->active)
            exclusive_unread(d);
    }
    d->discard = false;
    exclusive_go(d);
    exclusive_stopped(d);
}

static void exclusive_read(struct exclusive *d)
{
    const struct ox_broker_config *c = &exclusive_shard(d)->config;
    uint64_t most = OX_MIN((uint64_t)d->active->permits, (uint64_t)c->dispatch_entries_max);
    d->read = (struct ox_cursor_read){.entries_max = (uint32_t)OX_MAX(most, 1u), .bytes_max = c->dispatch_bytes_max};
    d->at = 0;
    d->discard = false;
    ox_op_init(&d->read.op, exclusive_shard(d)->loop, exclusive_read_done, "dispatch.read");
    ox_cursor_read(d->base.subscription->cursor, &d->read);
}

// Delivers what was read, then reads on if somebody wants it.
static void exclusive_go(struct exclusive *d)
{
    if (exclusive_reading(d) || d->failed)
        return;
    exclusive_deliver(d);
    if (d->read.count == 0 && exclusive_wanted(d) && d->base.subscription->topic->state == OX_TOPIC_OPEN)
        exclusive_read(d);
}

static void exclusive_kicked(struct ox_op *op)
{
    struct exclusive *d = CONTAINER_OF(op, struct exclusive, kick);
    exclusive_go(d);
    exclusive_stopped(d);
}

static void exclusive_kick(struct exclusive *d)
{
    if (ox_op_pending(&d->kick))
        return;
    ox_op_begin(&d->kick);
    ox_op_finish(&d->kick, OX_OK);
}

static void exclusive_retry(struct ox_timer *timer)
{
    struct exclusive *d = CONTAINER_OF(timer, struct exclusive, retry);
    d->failed = false;
    exclusive_go(d);
}

// ---- the body

static enum ox_err exclusive_admit(struct ox_dispatcher *base, struct ox_consumer **ret_holder)
{
    struct exclusive *d = exclusive_of(base);
    if (!d->active)
        return OX_OK;
    *ret_holder = d->active;
    return OX_E_CONSUMER_BUSY;
}

static void exclusive_attached(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct exclusive *d = exclusive_of(base);
    OX_ASSERT(!d->active);
    d->active = c;
    d->failed = false;
    d->retry_ns = 0;
    ox_timer_stop(&d->retry);
}

// What was read and not delivered, or delivered and not acknowledged, is for the next one.
static void exclusive_back(struct exclusive *d)
{
    d->discard = exclusive_reading(d);
    exclusive_unread(d);
}

static void exclusive_detached(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct exclusive *d = exclusive_of(base);
    OX_ASSERT(d->active == c);
    d->active = NULL;
    exclusive_back(d);
    if (exclusive_reading(d))
        ox_op_cancel(&d->read.op);
}

static void exclusive_more(struct ox_dispatcher *base, struct ox_consumer *c)
{
    (void)c;
    struct exclusive *d = exclusive_of(base);
    if (!exclusive_reading(d) && !d->failed)
        exclusive_kick(d);
}

static void exclusive_redeliver(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_pos *positions, size_t count)
{
    (void)c;
    (void)positions;
    (void)count;
    struct exclusive *d = exclusive_of(base);
    exclusive_back(d);
    exclusive_kick(d);
}

static void exclusive_restart(struct ox_dispatcher *base)
{
    struct exclusive *d = exclusive_of(base);
    OX_ASSERT(!exclusive_reading(d));
    exclusive_drop(d);
    d->failed = false;
    ox_timer_stop(&d->retry);
}

static void exclusive_stop(struct ox_dispatcher *base, struct ox_op *op)
{
    struct exclusive *d = exclusive_of(base);
    OX_ASSERT(!d->stopping && !d->active);
    ox_op_begin(op);
    d->stopping = op;
    if (exclusive_reading(d))
        ox_op_cancel(&d->read.op);
    exclusive_stopped(d);
}

static void exclusive_free(struct ox_dispatcher *base)
{
    struct exclusive *d = exclusive_of(base);
    OX_ASSERT(!exclusive_reading(d) && !d->active && !ox_op_pending(&d->kick));
    exclusive_drop(d);
    ox_timer_stop(&d->retry);
    ox_free(d);
}

static const struct ox_dispatcher_body exclusive_body = {
    .type = OX_SUB_EXCLUSIVE,
    .admit = exclusive_admit,
    .attached = exclusive_attached,
    .detached = exclusive_detached,
    .more = exclusive_more,
    .redeliver = exclusive_redeliver,
    .restart = exclusive_restart,
    .stop = exclusive_stop,
    .free = exclusive_free,
};

struct ox_dispatcher *ox_dispatcher_exclusive_new(struct ox_subscription *s)
{
    struct exclusive *d = ox_malloc(sizeof *d);
    d->base = (struct ox_dispatcher){&exclusive_body, s};
    ox_op_init(&d->kick, s->topic->shard->loop, exclusive_kicked, "dispatch.kick");
    ox_timer_init(&d->retry, s->topic->shard->loop, exclusive_retry);
    return &d->base;
}

enum ox_err ox_dispatcher_new(struct ox_subscription *s, enum ox_sub_type type, struct ox_dispatcher **ret)
{
    if (type != OX_SUB_EXCLUSIVE)
        return OX_E_UNSUPPORTED;
    *ret = ox_dispatcher_exclusive_new(s);
    return OX_OK;
}
