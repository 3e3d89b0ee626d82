// dedup.c - deduplication: what is known of each name, recognising, snapshots.
#include "broker/dedup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/dedup_int.h"
#include "broker/topic_int.h"

#define NAME_OF(n) CONTAINER_OF(n, struct dedup_name, by_name)

void dedup_set_state(struct ox_dedup *d, enum dedup_state to, const char *why)
{
    static const char *const names[] = {
#define OX_X(name) [DEDUP_##name] = #name,
        DEDUP_STATES(OX_X)
#undef OX_X
    };
    static const unsigned allowed[] = {
        [DEDUP_OFF] = 1u << DEDUP_OPENING | 1u << DEDUP_ENDING,
        [DEDUP_OPENING] = 1u << DEDUP_READING | 1u << DEDUP_OFF,
        [DEDUP_READING] = 1u << DEDUP_ON | 1u << DEDUP_OFF,
        [DEDUP_ON] = 1u << DEDUP_ENDING,
        [DEDUP_ENDING] = 1u << DEDUP_OFF,
    };
    OX_ASSERT(allowed[d->state] & 1u << to);
    ox_debug(d->topic->shard->log, "dedup.state", "topic=%s from=%s to=%s why=%s", d->topic->name.full, names[d->state],
             names[to], why);
    d->state = to;
}

bool ox_dedup_is_on(const struct ox_topic *t)
{
    return t->dedup && t->dedup->state == DEDUP_ON;
}

// ---- names

static void name_free(struct ox_dedup *d, struct dedup_name *n)
{
    ox_map_remove(&d->names, &n->by_name);
    ox_list_remove(&d->order, &n->link);
    ox_free(n);
}

// Beyond the limit the longest idle ones go, as they would with the next load.
static void names_shrink(struct ox_dedup *d)
{
    size_t max = d->topic->shard->config.dedup_names_max;
    OX_LIST_EACH(&d->order, l) {
        struct dedup_name *n = CONTAINER_OF(l, struct dedup_name, link);
        if (d->order.count <= max)
            return;
        if (n->refs == 0)
            name_free(d, n);
    }
}

struct dedup_name *ox_dedup_name(struct ox_topic *t, const void *name, size_t len)
{
    struct ox_dedup *d = t->dedup;
    struct ox_map_node *node = ox_map_find(&d->names, name, len);
    if (node) {
        struct dedup_name *there = NAME_OF(node);
        there->refs++;
        return there;
    }
    struct dedup_name *n = ox_malloc(sizeof *n + len + 1);
    memcpy(n->name, name, len);
    n->name[len] = 0;
    n->pushed = n->stored = DEDUP_NONE;
    n->refs = 1;
    ox_map_put(&d->names, &n->by_name, n->name, len);
    ox_list_push_back(&d->order, &n->link);
    if (d->order.count > t->shard->config.dedup_names_max)
        names_shrink(d);
    return n;
}

void ox_dedup_unref(struct ox_topic *t, struct dedup_name *n)
{
    struct ox_dedup *d = t->dedup;
    OX_ASSERT(n->refs > 0);
    if (--n->refs)
        return;
    n->left_ns = ox_now_ns(t->shard->loop);
    ox_list_remove(&d->order, &n->link);
    ox_list_push_back(&d->order, &n->link);
    if (n->stored == DEDUP_NONE)
        name_free(d, n);
}

void dedup_forget(struct ox_dedup *d)
{
    OX_LIST_EACH(&d->order, l) {
        struct dedup_name *n = CONTAINER_OF(l, struct dedup_name, link);
        n->pushed = n->stored = DEDUP_NONE;
        if (n->refs == 0)
            name_free(d, n);
    }
    d->noted = 0;
}

// Those who have not been here for long.
static void names_expire(struct ox_dedup *d)
{
    uint64_t now = ox_now_ns(d->topic->shard->loop), idle = d->topic->shard->config.dedup_idle_ns;
    OX_LIST_EACH(&d->order, l) {
        struct dedup_name *n = CONTAINER_OF(l, struct dedup_name, link);
        if (n->refs)
            continue;
        if (now - n->left_ns < idle)
            return;
        name_free(d, n);
    }
}

// ---- sends

enum dedup_answer ox_dedup_check(const struct ox_topic *t, struct dedup_name *n, const struct dedup_send *send)
{
    int64_t first = (int64_t)send->first, last = (int64_t)send->last;
    if (n->pushed != DEDUP_NONE && first <= n->pushed && t->dedup->state == DEDUP_ON) {
        if (last > n->pushed)
            return DEDUP_PARTLY;
        if (first <= n->stored)
            return DEDUP_STORED;
        return send->open_chunk ? DEDUP_NEW : DEDUP_PENDING;
    }
    if (!send->open_chunk && last > n->pushed)
        n->pushed = last;
    return DEDUP_NEW;
}

void dedup_note(struct dedup_name *n, int64_t last)
{
    n->stored = OX_MAX(n->stored, last);
    n->pushed = OX_MAX(n->pushed, n->stored);
}

// So many entries that the work of a snapshot is small against theirs.
static bool snapshot_is_due(const struct ox_dedup *d)
{
    return d->noted >= OX_MAX((uint64_t)d->topic->shard->config.dedup_entries, (uint64_t)d->order.count);
}

void ox_dedup_stored(struct ox_topic *t, struct dedup_name *n, const struct dedup_send *send, struct ox_pos pos)
{
    struct ox_dedup *d = t->dedup;
    if (d->state == DEDUP_OFF || d->state == DEDUP_ENDING)
        return;
    if (!send->open_chunk)
        dedup_note(n, (int64_t)send->last);
    d->stored = pos;
    d->noted++;
    if (d->state != DEDUP_ON)
        return;
    if (snapshot_is_due(d))
        dedup_snapshot(d);
    else if (!ox_timer_started(&d->snapshot_timer))
        ox_timer_start(&d->snapshot_timer, (uint64_t)OX_MAX(t->policies.dedup_snapshot_s, 1u) * OX_SEC);
}

// ---- snapshots

// The newest names, at most as many as are kept; with INT64_MIN nothing was stored yet.
static void snapshot_fill(const struct ox_dedup *d, struct ox_kv *kv)
{
    size_t skip = d->order.count, max = d->topic->shard->config.dedup_names_max;
    skip = skip > max ? skip - max : 0;
    OX_LIST_EACH((struct ox_list *)(uintptr_t)&d->order, l) {
        const struct dedup_name *n = CONTAINER_OF(l, struct dedup_name, link);
        char number[24];
        if (skip) {
            skip--;
            continue;
        }
        snprintf(number, sizeof number, "%" PRId64, n->stored);
        if (n->stored != DEDUP_NONE)
            ox_kv_add(kv, n->name, number);
    }
}

static void snapshot_write(struct ox_dedup *d, struct ox_cursor_ack *ack)
{
    struct ox_kv kv = {0};
    snapshot_fill(d, &kv);
    d->noted = 0;
    ox_cursor_mark_delete_with(d->cursor, ack, d->stored, &kv);
    ox_kv_fini(&kv);
}

static void snapshot_done(struct ox_op *op)
{
    struct ox_dedup *d = CONTAINER_OF(op, struct ox_dedup, snapshot.op);
    struct ox_topic *t = d->topic;
    if (op->err)
        ox_warn(t->shard->log, "dedup.snapshot.failed", "topic=%s error=%s", t->name.full, ox_err_name(op->err));
    if (op->err == OX_OK)
        ox_mledger_trim(t->ml);
    topic_unpin(t);
}

void dedup_snapshot(struct ox_dedup *d)
{
    struct ox_topic *t = d->topic;
    if (ox_op_pending(&d->snapshot.op) || d->noted == 0 || t->state != OX_TOPIC_OPEN)
        return;
    ox_timer_stop(&d->snapshot_timer);
    names_expire(d);
    topic_pin(t);
    ox_op_init(&d->snapshot.op, t->shard->loop, snapshot_done, "dedup.snapshot");
    snapshot_write(d, &d->snapshot);
}

void ox_dedup_save(struct ox_topic *t)
{
    struct ox_dedup *d = t->dedup;
    if (!d)
        return;
    ox_timer_stop(&d->snapshot_timer);
    if (d->state == DEDUP_ON && d->noted && t->state == OX_TOPIC_CLOSING)
        snapshot_write(d, NULL);
    d->cursor = NULL;
}

static void snapshot_fire(struct ox_timer *timer)
{
    struct ox_dedup *d = CONTAINER_OF(timer, struct ox_dedup, snapshot_timer);
    if (d->state == DEDUP_ON)
        dedup_snapshot(d);
    else
        dedup_follow(d);
}

// ---- life

struct ox_dedup *dedup_new(struct ox_topic *t)
{
    struct ox_dedup *d = ox_malloc(sizeof *d);
    d->topic = t;
    ox_list_init(&d->order);
    ox_list_init(&d->waiters);
    ox_timer_init(&d->snapshot_timer, t->shard->loop, snapshot_fire);
    t->dedup = d;
    return d;
}

void ox_dedup_free(struct ox_topic *t)
{
    struct ox_dedup *d = t->dedup;
    if (!d)
        return;
    ox_timer_stop(&d->snapshot_timer);
    t->dedup = NULL;
    OX_LIST_EACH(&d->order, l)
        name_free(d, CONTAINER_OF(l, struct dedup_name, link));
    ox_free(d);
}
