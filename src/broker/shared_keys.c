// shared_keys.c - Key_Shared: who may join, and whose entry a hash is now.
#include "broker/key_hash.h"
#include "broker/shared.h"

// Everybody who shares keys does so in the way of the first one.
static enum ox_err keys_differ(struct shared *d, struct ox_subscribe *o, struct ox_consumer **ret_holder)
{
    static const char *const modes[] = {
        [OX_KEY_AUTO_SPLIT] = "Subscription is of different type. Active subscription key_shared mode of 'AUTO_SPLIT' "
                              "is different than the "
                              "connecting consumer's key_shared mode 'STICKY'.",
        [OX_KEY_STICKY] =
            "Subscription is of different type. Active subscription key_shared mode of 'STICKY' is different than the "
            "connecting consumer's key_shared mode 'AUTO_SPLIT'."};
    if (d->key_mode != o->keys.mode)
        o->why = modes[d->key_mode];
    else
        o->why = d->draining
                     ? "Subscription is of different type. Active subscription does not allow out of order delivery "
                       "while the "
                       "connecting consumer allows it."
                     : "Subscription is of different type. Active subscription allows out of order delivery while the "
                       "connecting consumer does not allow it.";
    *ret_holder = CONTAINER_OF(ox_list_first(&shared_sub(d)->consumers), struct ox_consumer, link);
    return OX_E_CONSUMER_BUSY;
}

// The first consumer decides.
static void keys_begin(struct shared *d, const struct ox_key_shared *want)
{
    shared_keys_fini(d);
    d->key_mode = want->mode;
    d->selector = ox_selector_new(want->mode, shared_sub(d)->topic->shard->config.key_points);
    d->draining = want->out_of_order ? NULL : ox_draining_new();
}

enum ox_err shared_keys_admit(struct shared *d, struct ox_subscribe *o, struct ox_consumer **ret_holder)
{
    if (!shared_by_key(d))
        return OX_OK;
    if (shared_sub(d)->consumers.count == 0)
        keys_begin(d, &o->keys);
    else if (d->key_mode != o->keys.mode || (d->draining == NULL) != o->keys.out_of_order)
        return keys_differ(d, o, ret_holder);
    enum ox_err err = ox_selector_check(d->selector, &o->keys, ret_holder);
    if (err)
        o->why = *ret_holder ? "Range conflict with another consumer"
                             : "Ranges for KeyShared policy must not be empty or overlap.";
    return err;
}

// Hashes have other owners now.
static void keys_moved(struct shared *d)
{
    d->look = true;
    d->changes++;
}

void shared_keys_joined(struct shared *d, struct ox_consumer *c, const struct ox_key_shared *want)
{
    if (!shared_by_key(d))
        return;
    ox_selector_add(d->selector, c, want);
    keys_moved(d);
}

void shared_keys_left(struct shared *d, const struct ox_consumer *c)
{
    if (!shared_by_key(d))
        return;
    ox_selector_remove(d->selector, c);
    keys_moved(d);
}

void shared_keys_fini(struct shared *d)
{
    ox_selector_free(d->selector);
    ox_draining_free(d->draining);
    d->selector = NULL;
    d->draining = NULL;
}

uint32_t shared_hash(const struct shared *d, const struct dispatch_view *view)
{
    if (!shared_by_key(d))
        return 0;
    return view->metadata.len ? ox_key_hash(&view->meta) : 1;
}

struct ox_consumer *shared_owner(struct shared *d, uint32_t hash)
{
    struct ox_consumer *c = ox_selector_find(d->selector, hash);
    if (!c || !ox_link_linked(&((struct shared_consumer *)c->pending)->ready))
        return NULL;
    return d->draining && !ox_draining_allows(d->draining, c, hash) ? NULL : c;
}

void shared_keys_sent(struct shared *d, const struct pending *p)
{
    if (d->draining)
        ox_draining_sent(d->draining, p->holder, p->hash);
}

void shared_keys_done(struct shared *d, const struct pending *p)
{
    if (!d->draining || !ox_draining_done(d->draining, p->holder, p->hash))
        return;
    p->holder->hashes_cleared++;
    shared_sub(d)->hashes_cleared++;
    keys_moved(d);
}
