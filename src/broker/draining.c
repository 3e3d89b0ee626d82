// draining.c - a holder and a count for each sticky hash that is out.
#include "broker/draining.h"

#include "base/assert.h"
#include "base/map.h"
#include "base/mem.h"

struct held {
    struct ox_map_node by_hash;
    const struct ox_consumer *consumer;
    uint32_t entries;
    uint32_t refused; // how often somebody else was
};

struct ox_draining {
    struct ox_map held; // of struct held
};

static struct held *held_find(const struct ox_draining *d, uint32_t hash)
{
    struct ox_map_node *node = ox_map_find_u64(&d->held, hash);
    return node ? CONTAINER_OF(node, struct held, by_hash) : NULL;
}

struct ox_draining *ox_draining_new(void)
{
    return ox_malloc(sizeof(struct ox_draining));
}

void ox_draining_free(struct ox_draining *d)
{
    if (!d)
        return;
    OX_MAP_EACH(&d->held, node) {
        ox_map_remove(&d->held, node);
        ox_free(CONTAINER_OF(node, struct held, by_hash));
    }
    ox_free(d);
}

void ox_draining_sent(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash)
{
    struct held *h = held_find(d, hash);
    if (!h) {
        h = ox_malloc(sizeof *h);
        h->consumer = c;
        ox_map_put_u64(&d->held, &h->by_hash, hash);
    }
    OX_ASSERT(h->consumer == c);
    h->entries++;
}

bool ox_draining_done(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash)
{
    struct held *h = held_find(d, hash);
    OX_ASSERT(h && h->consumer == c);
    if (--h->entries)
        return false;
    bool waited_for = h->refused > 0;
    ox_map_remove(&d->held, &h->by_hash);
    ox_free(h);
    return waited_for;
}

bool ox_draining_allows(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash)
{
    struct held *h = held_find(d, hash);
    if (!h || h->consumer == c)
        return true;
    h->refused += h->refused < UINT32_MAX;
    return false;
}

void ox_draining_each(const struct ox_draining *d,
                      void (*fn)(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries, uint32_t refused),
                      void *ctx)
{
    OX_MAP_EACH(&d->held, node) {
        const struct held *h = CONTAINER_OF(node, struct held, by_hash);
        fn(ctx, h->consumer, (uint32_t)node->number, h->entries, h->refused);
    }
}
