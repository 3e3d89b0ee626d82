// delayed.c - a heap by due time, and the set of what is in it.
#include "broker/delayed.h"

#include "base/mem.h"

#define HEAP_CAP_MIN 32u

// ---- the heap

static bool item_before(const struct ox_delayed_item *a, const struct ox_delayed_item *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : ox_pos_cmp(a->pos, b->pos) < 0;
}

static void heap_swap(struct ox_delayed *d, size_t i, size_t j)
{
    struct ox_delayed_item item = d->heap[i];
    d->heap[i] = d->heap[j];
    d->heap[j] = item;
}

static void heap_up(struct ox_delayed *d, size_t i)
{
    for (; i > 0 && item_before(&d->heap[i], &d->heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_swap(d, i, (i - 1) / 2);
}

static void heap_down(struct ox_delayed *d, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < d->count; i = child) {
        if (child + 1 < d->count && item_before(&d->heap[child + 1], &d->heap[child]))
            child++;
        if (!item_before(&d->heap[child], &d->heap[i]))
            return;
        heap_swap(d, i, child);
    }
}

static struct ox_delayed_item heap_take(struct ox_delayed *d)
{
    struct ox_delayed_item item = d->heap[0];
    d->heap[0] = d->heap[--d->count];
    heap_down(d, 0);
    return item;
}

// ---- both

void ox_delayed_fini(struct ox_delayed *d)
{
    ox_free(d->heap);
    ox_pos_set_fini(&d->set);
    *d = (struct ox_delayed){0};
}

void ox_delayed_clear(struct ox_delayed *d)
{
    ox_delayed_fini(d);
}

bool ox_delayed_has(const struct ox_delayed *d, struct ox_pos pos)
{
    return ox_pos_set_has(&d->set, pos);
}

bool ox_delayed_add(struct ox_delayed *d, struct ox_pos pos, uint64_t due_ms, uint32_t hash)
{
    if (ox_delayed_has(d, pos))
        return true;
    if (d->count == OX_DELAYED_MAX)
        return false;
    if (d->count == d->heap_cap) {
        d->heap_cap = OX_MAX(d->heap_cap * 2, (size_t)HEAP_CAP_MIN);
        d->heap = ox_realloc(d->heap, d->heap_cap, sizeof *d->heap);
    }
    ox_pos_set_add(&d->set, pos);
    d->heap[d->count++] = (struct ox_delayed_item){due_ms, pos, hash};
    heap_up(d, d->count - 1);
    return true;
}

size_t ox_delayed_take(struct ox_delayed *d, uint64_t now_ms, struct ox_delayed_item *ret, size_t max)
{
    size_t n = 0;
    while (n < max && d->count && d->heap[0].due_ms <= now_ms) {
        ret[n] = heap_take(d);
        ox_pos_set_remove(&d->set, ret[n++].pos);
    }
    if (!d->count)
        ox_delayed_fini(d);
    return n;
}

uint64_t ox_delayed_first(const struct ox_delayed *d)
{
    return d->count ? d->heap[0].due_ms : UINT64_MAX;
}

void ox_delayed_forget(struct ox_delayed *d, struct ox_pos upto)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++)
        if (ox_pos_cmp(d->heap[i].pos, upto) > 0)
            d->heap[kept++] = d->heap[i];
        else
            ox_pos_set_remove(&d->set, d->heap[i].pos);
    if (kept == d->count)
        return;
    d->count = kept;
    for (size_t i = kept / 2; i-- > 0;)
        heap_down(d, i);
    if (!kept)
        ox_delayed_fini(d);
}
