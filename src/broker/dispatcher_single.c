// dispatcher_single.c - one active consumer gets all entries in order: read a batch, write it, read the next while the former leaves.
#include "base/assert.h"
#include "base/mem.h"
#include "broker/subscription_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

// Waiting times after reads that failed one after another.
#define RETRY_NS_MIN OX_SEC
#define RETRY_NS_MAX (60 * OX_SEC)

struct single {
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

static void single_go(struct single *d);

static struct single *single_of(struct ox_dispatcher *d)
{
    return CONTAINER_OF(d, struct single, base);
}

static struct ox_shard *single_shard(const struct single *d)
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
static bool delivery_fill(const struct single *d, const struct ox_entry *entry, struct ox_dispatch *ret)
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
    const struct ox_batch_ack *partly = ox_batch_acks_find(&d->base.subscription->cursor->batches, entry->pos);
    if (partly) {
        ret->ack_set = partly->bits;
        ret->ack_words = partly->words;
        ret->messages = OX_MIN(ret->messages, bits_count(partly->bits, partly->words));
    }
    return !meta.has_marker;
}

static void delivery_count(struct single *d, const struct ox_dispatch *dispatch)
{
    struct ox_consumer *c = d->active;
    struct ox_shard *sh = single_shard(d);
    c->permits -= dispatch->messages;
    ox_rate_add(&c->out, dispatch->messages, dispatch->entry.len);
    ox_rate_add(&d->base.subscription->out, dispatch->messages, dispatch->entry.len);
    ox_rate_add(&c->topic->out, dispatch->messages, dispatch->entry.len);
    sh->out_messages.value += dispatch->messages;
    sh->out_bytes.value += (int64_t)dispatch->entry.len;
}

static void single_deliver_one(struct single *d, const struct ox_entry *entry)
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

static bool single_reading(const struct single *d)
{
    return ox_op_pending(&d->read.op);
}

// Is there a consumer that takes an entry now?
static bool single_wanted(struct single *d)
{
    struct ox_consumer *c = d->active;
    if (!c || c->permits <= 0 || c->blocked || d->stopping)
        return false;
    c->blocked = !c->events->ready(c);
    return !c->blocked;
}

static void single_drop(struct single *d)
{
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
        d->active->last_consumed_ms = d->base.subscription->last_consumed_ms = now;
    }
    if (d->at == d->read.count)
        single_drop(d);
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

static void single_unread(struct single *d)
{
    single_drop(d);
    ox_cursor_rewind(d->base.subscription->cursor);
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
    uint64_t most = OX_MIN((uint64_t)d->active->permits, (uint64_t)c->dispatch_entries_max);
    d->read = (struct ox_cursor_read){.entries_max = (uint32_t)OX_MAX(most, 1u), .bytes_max = c->dispatch_bytes_max};
    d->at = 0;
    d->discard = false;
    ox_op_init(&d->read.op, single_shard(d)->loop, single_read_done, "dispatch.read");
    ox_cursor_read(d->base.subscription->cursor, &d->read);
}

// Delivers what was read, then reads on if somebody wants it.
static void single_go(struct single *d)
{
    if (single_reading(d) || d->failed)
        return;
    single_deliver(d);
    if (d->read.count == 0 && single_wanted(d) && d->base.subscription->topic->state == OX_TOPIC_OPEN)
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
    if (ox_op_pending(&d->kick))
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

// ---- the body

static enum ox_err single_admit(struct ox_dispatcher *base, struct ox_subscribe *o, struct ox_consumer **ret_holder)
{
    struct single *d = single_of(base);
    if (!d->active)
        return OX_OK;
    *ret_holder = d->active;
    o->why = "Exclusive consumer is already connected";
    return OX_E_CONSUMER_BUSY;
}

static void single_attached(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_subscribe *o)
{
    (void)o;
    struct single *d = single_of(base);
    OX_ASSERT(!d->active);
    d->active = c;
    d->failed = false;
    d->retry_ns = 0;
    ox_timer_stop(&d->retry);
}

// What was read and not delivered, or delivered and not acknowledged, is for the next one.
static void single_back(struct single *d)
{
    d->discard = single_reading(d);
    single_unread(d);
}

static void single_detached(struct ox_dispatcher *base, struct ox_consumer *c)
{
    struct single *d = single_of(base);
    OX_ASSERT(d->active == c);
    d->active = NULL;
    single_back(d);
    if (single_reading(d))
        ox_op_cancel(&d->read.op);
}

static void single_more(struct ox_dispatcher *base, struct ox_consumer *c)
{
    (void)c;
    struct single *d = single_of(base);
    if (!single_reading(d) && !d->failed)
        single_kick(d);
}

static void single_redeliver(struct ox_dispatcher *base, struct ox_consumer *c, const struct ox_pos *positions, size_t count)
{
    (void)c;
    (void)positions;
    (void)count;
    struct single *d = single_of(base);
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
    single_kick(single_of(base));
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
    ox_free(d);
}

static const struct ox_dispatcher_body single_body = {
    .type = OX_SUB_EXCLUSIVE,
    .admit = single_admit,
    .attached = single_attached,
    .detached = single_detached,
    .more = single_more,
    .redeliver = single_redeliver,
    .restart = single_restart,
    .kick = single_body_kick,
    .stop = single_stop,
    .free = single_free,
};

struct ox_dispatcher *ox_dispatcher_single_new(struct ox_subscription *s, enum ox_sub_type type)
{
    struct single *d = ox_malloc(sizeof *d);
    (void)type;
    d->base = (struct ox_dispatcher){&single_body, s};
    ox_op_init(&d->kick, s->topic->shard->loop, single_kicked, "dispatch.kick");
    ox_timer_init(&d->retry, s->topic->shard->loop, single_retry);
    return &d->base;
}
