// index.c - the in-memory index of an unsealed segment, and the footer made of it.
#include "ledger/store/index.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

void ox_index_fini(struct ox_index *x)
{
    OX_MAP_EACH(&x->ledgers, node) {
        struct ox_index_ledger *l = CONTAINER_OF(node, struct ox_index_ledger, node);
        ox_map_remove(&x->ledgers, node);
        for (uint32_t i = 0; i < l->count; i++)
            ox_free(l->runs[i].items);
        ox_free(l->runs);
        ox_free(l);
    }
    *x = (struct ox_index){0};
}

static struct ox_index_ledger *index_ledger(const struct ox_index *x, int64_t ledger)
{
    struct ox_map_node *node = ox_map_find_u64(&x->ledgers, (uint64_t)ledger);
    return node ? CONTAINER_OF(node, struct ox_index_ledger, node) : NULL;
}

static struct ox_index_ledger *index_ledger_get(struct ox_index *x, int64_t ledger)
{
    struct ox_index_ledger *l = index_ledger(x, ledger);
    if (l && !l->dropped)
        return l;
    if (l) {
        // The id lives again after a delete: the old runs stay in memory, out of the map's sight, only as long as the index does.
        for (uint32_t i = 0; i < l->count; i++)
            ox_free(l->runs[i].items);
        l->count = 0;
        l->dropped = false;
        return l;
    }
    l = ox_malloc(sizeof *l);
    l->ledger = ledger;
    ox_map_put_u64(&x->ledgers, &l->node, (uint64_t)ledger);
    return l;
}

// The number of runs that begin at or before entry.
static uint32_t index_runs_to(const struct ox_index_ledger *l, int64_t entry)
{
    uint32_t low = 0, high = l->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (l->runs[mid].first <= entry)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct ox_index_run *index_insert_run(struct ox_index *x, struct ox_index_ledger *l, uint32_t at, int64_t first)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 1;
        l->runs = ox_realloc(l->runs, l->cap, sizeof *l->runs);
    }
    for (uint32_t i = l->count; i > at; i--)
        l->runs[i] = l->runs[i - 1];
    l->count++;
    x->runs++;
    l->runs[at] = (struct ox_index_run){.first = first};
    return &l->runs[at];
}

void ox_index_add(struct ox_index *x, int64_t ledger, int64_t entry, struct ox_item item)
{
    struct ox_index_ledger *l = index_ledger_get(x, ledger);
    uint32_t n = index_runs_to(l, entry);
    struct ox_index_run *run = n ? &l->runs[n - 1] : NULL;
    if (run && entry < run->first + run->count) {
        run->items[entry - run->first] = item;
        return;
    }
    if (!run || entry != run->first + run->count)
        run = index_insert_run(x, l, n, entry);
    if (run->count == run->cap) {
        run->cap = run->cap ? run->cap * 2 : 4;
        run->items = ox_realloc(run->items, run->cap, sizeof *run->items);
    }
    run->items[run->count++] = item;
    x->items++;
}

const struct ox_item *ox_index_find(const struct ox_index *x, int64_t ledger, int64_t entry, uint32_t *ret_more)
{
    const struct ox_index_ledger *l = index_ledger(x, ledger);
    uint32_t n = l && !l->dropped ? index_runs_to(l, entry) : 0;
    if (n == 0)
        return NULL;
    const struct ox_index_run *run = &l->runs[n - 1];
    int64_t at = entry - run->first;
    if (at >= run->count)
        return NULL;
    *ret_more = run->count - (uint32_t)at - 1;
    return &run->items[at];
}

void ox_index_drop(struct ox_index *x, int64_t ledger)
{
    struct ox_index_ledger *l = index_ledger(x, ledger);
    if (l)
        l->dropped = true;
}

static int index_ledger_cmp(const void *a, const void *b)
{
    const struct ox_index_ledger *const *x = a, *const *y = b;
    return (*x)->ledger < (*y)->ledger ? -1 : (*x)->ledger > (*y)->ledger;
}

static struct ox_index_ledger **index_sorted(const struct ox_index *x, size_t *ret_count)
{
    struct ox_index_ledger **all = ox_calloc(ox_map_count(&x->ledgers) + 1, sizeof(struct ox_index_ledger *));
    size_t n = 0;
    OX_MAP_EACH(&x->ledgers, node) {
        struct ox_index_ledger *l = CONTAINER_OF(node, struct ox_index_ledger, node);
        if (!l->dropped)
            all[n++] = l;
    }
    qsort(all, n, sizeof *all, index_ledger_cmp);
    *ret_count = n;
    return all;
}

static struct ox_run index_run(const struct ox_index_ledger *l, const struct ox_index_run *from, uint32_t first_item)
{
    struct ox_run run = {.ledger = l->ledger, .first = from->first, .count = from->count, .first_item = first_item};
    for (uint32_t i = 0; i < from->count; i++)
        run.bytes += from->items[i].length;
    return run;
}

struct ox_run *ox_index_runs(const struct ox_index *x, size_t *ret_count, const struct ox_item ***ret_items)
{
    size_t ledgers, n = 0;
    uint32_t item = 0;
    struct ox_index_ledger **all = index_sorted(x, &ledgers);
    struct ox_run *runs = ox_calloc(x->runs + 1, sizeof *runs);
    const struct ox_item **items = ox_calloc(x->runs + 1, sizeof *items);
    for (size_t i = 0; i < ledgers; i++) {
        for (uint32_t k = 0; k < all[i]->count; k++) {
            items[n] = all[i]->runs[k].items;
            runs[n] = index_run(all[i], &all[i]->runs[k], item);
            item += runs[n++].count;
        }
    }
    ox_free(all);
    *ret_count = n;
    *ret_items = items;
    return runs;
}

// Fills item blocks; returns the number of blocks.
static uint32_t index_put_items(uint8_t *blocks, const struct ox_run *runs, const struct ox_item *const *items, size_t count)
{
    uint32_t n = 0;
    for (size_t r = 0; r < count; r++) {
        for (uint32_t i = 0; i < runs[r].count; i++, n++)
            ox_item_put(blocks + (size_t)(n / OX_ITEMS_PER_BLOCK) * OX_SEG_BLOCK, n % OX_ITEMS_PER_BLOCK, items[r][i]);
    }
    return (n + OX_ITEMS_PER_BLOCK - 1) / OX_ITEMS_PER_BLOCK;
}

uint8_t *ox_index_footer(const struct ox_run *runs, const struct ox_item *const *items, size_t count, uint32_t salt,
                         uint64_t number, uint32_t offset, struct ox_footer_header *ret)
{
    uint32_t total = 0;
    for (size_t r = 0; r < count; r++)
        total += runs[r].count;
    uint64_t bytes = ox_footer_bytes(total, count);
    *ret = (struct ox_footer_header){
        .number = number, .offset = offset, .bytes = (uint32_t)bytes, .items = total, .runs = (uint32_t)count};
    uint8_t *footer = ox_malloc(bytes);
    ox_footer_header_encode(footer, salt, ret);
    uint8_t *blocks = footer + OX_SEG_BLOCK;
    uint32_t item_blocks = index_put_items(blocks, runs, items, count);
    for (size_t r = 0; r < count; r++)
        ox_run_put(blocks + (item_blocks + r / OX_RUNS_PER_BLOCK) * (size_t)OX_SEG_BLOCK,
                   (uint32_t)(r % OX_RUNS_PER_BLOCK), &runs[r]);
    for (uint32_t b = 0; b < bytes / OX_SEG_BLOCK - 1; b++)
        ox_index_block_seal(blocks + (size_t)b * OX_SEG_BLOCK, salt, number, b);
    return footer;
}
