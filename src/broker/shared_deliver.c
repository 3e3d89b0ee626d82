// shared_deliver.c - who gets what: by turns among the consumers of the best priority that are ready; by key where a selector says so.
#include "broker/limits.h"
#include "broker/shared.h"

// ---- which consumer

static bool consumer_takes(struct shared *d, struct ox_consumer *c)
{
    if (c->events->ready(c))
        return true;
    c->blocked = true;
    shared_refresh(d, c);
    return false;
}

static struct ox_consumer *pick_by_key(struct shared *d, uint32_t hash)
{
    struct ox_consumer *c = shared_owner(d, hash);
    return c && consumer_takes(d, c) ? c : NULL;
}

static struct ox_consumer *pick_by_turn(struct shared *d)
{
    for (struct ox_link *l = ox_list_first(&d->ready); l; l = ox_list_first(&d->ready)) {
        struct ox_consumer *c = CONTAINER_OF(l, struct shared_consumer, ready)->consumer;
        if (consumer_takes(d, c))
            return c;
    }
    return NULL;
}

bool shared_might_go(struct shared *d, uint32_t hash)
{
    if (ox_list_empty(&d->ready) || shared_sub(d)->held_back)
        return false;
    return !shared_by_key(d) || shared_owner(d, hash);
}

struct ox_consumer *shared_pick(struct shared *d, uint32_t hash)
{
    if (!shared_might_go(d, hash) || dispatch_wait_ns(shared_sub(d)))
        return NULL;
    return shared_by_key(d) ? pick_by_key(d, hash) : pick_by_turn(d);
}

// ---- one entry

static void shared_deliver(struct shared *d, struct pending *p, struct ox_consumer *c, struct dispatch_view *view)
{
    struct ox_subscription *s = shared_sub(d);
    view->out.redelivery_count = p->redeliveries;
    view->out.consumer_epoch = c->epoch;
    c->events->deliver(c, &view->out);
    dispatch_count(c, &view->out);
    shared_hold(d, p, c, view->out.messages);
    shared_turn(d, c);
    c->last_consumed_ms = s->last_consumed_ms = ox_wall_ms(s->topic->shard->loop);
}

// Takes it apart; false if nobody is to get it: acknowledged, or a marker.
static bool entry_is_wanted(struct shared *d, const struct ox_entry *entry, struct dispatch_view *view)
{
    struct ox_subscription *s = shared_sub(d);
    if (ox_cursor_is_deleted(s->cursor, entry->pos))
        return false;
    if (dispatch_fill(s, entry, view))
        return true;
    ox_cursor_delete(s->cursor, NULL, &entry->pos, 1);
    return false;
}

static void deliver_new_one(struct shared *d, const struct ox_entry *entry)
{
    struct dispatch_view view;
    if (pending_find(&d->known, entry->pos) || ox_delayed_has(&d->delayed, entry->pos) || !entry_is_wanted(d, entry, &view))
        return;
    uint32_t hash = shared_hash(d, &view);
    if (shared_delay(d, &view, hash))
        return;
    d->mean_messages += (view.out.messages - d->mean_messages) / 16;
    struct pending *p = pending_add(&d->known, entry->pos);
    p->hash = hash;
    bool behind = shared_is_behind(d, hash);
    struct ox_consumer *c = behind ? NULL : shared_pick(d, hash);
    if (c) {
        shared_deliver(d, p, c, &view);
    } else {
        shared_wait(d, p);
        d->look |= shared_might_go(d, hash); // behind one of another hash perhaps, or the rate is used up
    }
}

void shared_deliver_new(struct shared *d, const struct ox_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        deliver_new_one(d, &entries[i]);
}

// ---- what comes again

// The hashes of those that wait before a position: none of their keys' later entries may go first.
struct waiting_keys {
    uint64_t bits[65536 / 64];
};

static void waiting_keys_add(struct waiting_keys *keys, uint32_t hash)
{
    keys->bits[hash / 64] |= UINT64_C(1) << (hash % 64);
}

static bool waiting_keys_has(const struct waiting_keys *keys, uint32_t hash)
{
    return keys->bits[hash / 64] >> (hash % 64) & 1;
}

static void waiting_keys_fill(const struct shared *d, struct waiting_keys *keys, struct ox_pos before)
{
    struct ox_pos p = OX_POS_EARLIEST;
    for (; ox_pos_set_at_or_after(&d->replay, p, &p) && ox_pos_cmp(p, before) < 0; p.entry++)
        waiting_keys_add(keys, pending_find(&d->known, p)->hash);
}

// keys: NULL for Shared.
static void deliver_again_one(struct shared *d, const struct ox_entry *entry, struct waiting_keys *keys)
{
    struct dispatch_view view;
    struct pending *p = pending_find(&d->known, entry->pos);
    if (!p || p->holder || (keys && waiting_keys_has(keys, p->hash)))
        return;
    if (!entry_is_wanted(d, entry, &view) || shared_delay(d, &view, p->hash)) {
        shared_forget(d, p);
        return;
    }
    struct ox_consumer *c = shared_pick(d, p->hash);
    if (c)
        shared_deliver(d, p, c, &view);
    else if (keys)
        waiting_keys_add(keys, p->hash);
}

void shared_deliver_again(struct shared *d, const struct ox_entry *entries, size_t count)
{
    struct waiting_keys keys;
    bool by_key = shared_by_key(d);
    if (by_key)
        keys = (struct waiting_keys){0};
    // Nothing that waits before could go when these were chosen; if that may have changed, its keys come first.
    if (by_key && d->changes != d->again_changes && count)
        waiting_keys_fill(d, &keys, entries[0].pos);
    for (size_t i = 0; i < count; i++)
        deliver_again_one(d, &entries[i], by_key ? &keys : NULL);
}
