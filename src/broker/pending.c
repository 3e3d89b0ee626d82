// pending.c - entries by position: a chained hash table over blocks of nodes.
#include "broker/pending.h"

#include "base/assert.h"
#include "base/mem.h"

#define BLOCK_NODES 64u
#define SLOTS_MIN 64u

struct pending_block {
    struct pending_block *next;
    struct pending nodes[BLOCK_NODES];
};

static size_t slot_of(const struct pending_table *t, struct ox_pos pos)
{
    uint64_t h = ((uint64_t)pos.entry + (uint64_t)pos.ledger * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(h >> 32) & (t->slot_count - 1);
}

struct pending *pending_find(const struct pending_table *t, struct ox_pos pos)
{
    struct pending *p = t->slot_count ? t->slots[slot_of(t, pos)] : NULL;
    while (p && !ox_pos_equal(p->pos, pos))
        p = p->next;
    return p;
}

static void table_link(struct pending_table *t, struct pending *p)
{
    struct pending **slot = &t->slots[slot_of(t, p->pos)];
    p->next = *slot;
    *slot = p;
}

static void table_grow(struct pending_table *t)
{
    struct pending **old = t->slots;
    size_t count = t->slot_count;
    t->slot_count = count ? 2 * count : SLOTS_MIN;
    t->slots = ox_calloc(t->slot_count, sizeof(struct pending *));
    for (size_t i = 0; i < count; i++)
        for (struct pending *p = old[i], *next; p; p = next) {
            next = p->next;
            table_link(t, p);
        }
    ox_free(old);
}

static void table_fill(struct pending_table *t)
{
    struct pending_block *b = ox_malloc_raw(sizeof *b);
    b->next = t->blocks;
    t->blocks = b;
    for (size_t i = BLOCK_NODES; i > 0; i--) {
        b->nodes[i - 1].next = t->free;
        t->free = &b->nodes[i - 1];
    }
}

struct pending *pending_add(struct pending_table *t, struct ox_pos pos)
{
    OX_ASSERT(!pending_find(t, pos));
    if (!t->free)
        table_fill(t);
    if (t->count >= t->slot_count)
        table_grow(t);
    struct pending *p = t->free;
    t->free = p->next;
    *p = (struct pending){.pos = pos};
    table_link(t, p);
    t->count++;
    return p;
}

void pending_remove(struct pending_table *t, struct pending *p)
{
    struct pending **at = &t->slots[slot_of(t, p->pos)];
    OX_ASSERT(!ox_link_linked(&p->link));
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    p->next = t->free;
    t->free = p;
    t->count--;
}

void pending_clear(struct pending_table *t)
{
    for (struct pending_block *b = t->blocks, *next; b; b = next) {
        next = b->next;
        ox_free(b);
    }
    ox_free(t->slots);
    *t = (struct pending_table){0};
}
