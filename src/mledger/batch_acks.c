// batch_acks.c - partly acknowledged batches by position.
#include "mledger/batch_acks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ACK_OF(n) CONTAINER_OF(n, struct ox_batch_ack, node)

static void batch_drop(struct ox_batch_acks *b, struct ox_batch_ack *a)
{
    ox_map_remove(&b->map, &a->node);
    b->words -= a->words;
    ox_free(a);
}

void ox_batch_acks_fini(struct ox_batch_acks *b)
{
    OX_MAP_EACH(&b->map, n)
        batch_drop(b, ACK_OF(n));
}

static struct ox_batch_ack *batch_find(const struct ox_batch_acks *b, struct ox_pos pos)
{
    struct ox_map_node *n = ox_map_find(&b->map, &pos, sizeof pos);
    return n ? ACK_OF(n) : NULL;
}

const struct ox_batch_ack *ox_batch_acks_find(const struct ox_batch_acks *b, struct ox_pos pos)
{
    return batch_find(b, pos);
}

static bool bits_empty(const uint64_t *bits, size_t words)
{
    for (size_t i = 0; i < words; i++)
        if (bits[i])
            return false;
    return true;
}

void ox_batch_acks_set(struct ox_batch_acks *b, struct ox_pos pos, const uint64_t *bits, size_t words)
{
    ox_batch_acks_forget(b, pos);
    if (words > OX_BATCH_WORDS_MAX || ox_map_count(&b->map) >= OX_BATCH_ACKS_MAX || b->words + words > OX_BATCH_ACKS_WORDS_MAX)
        return;
    struct ox_batch_ack *a = ox_malloc(sizeof *a + words * sizeof a->bits[0]);
    a->pos = pos;
    a->words = words;
    memcpy(a->bits, bits, words * sizeof a->bits[0]);
    b->words += words;
    ox_map_put(&b->map, &a->node, &a->pos, sizeof a->pos);
}

bool ox_batch_acks_and(struct ox_batch_acks *b, struct ox_pos pos, const uint64_t *bits, size_t words)
{
    if (words > OX_BATCH_WORDS_MAX)
        return false;
    struct ox_batch_ack *a = batch_find(b, pos);
    if (!a) {
        if (bits_empty(bits, words))
            return true;
        ox_batch_acks_set(b, pos, bits, words);
        return false;
    }
    b->words -= a->words - OX_MIN(a->words, words);
    a->words = OX_MIN(a->words, words);
    for (size_t i = 0; i < a->words; i++)
        a->bits[i] &= bits[i];
    if (!bits_empty(a->bits, a->words))
        return false;
    batch_drop(b, a);
    return true;
}

size_t ox_batch_acks_count(const struct ox_batch_acks *b)
{
    return ox_map_count(&b->map);
}

static int batch_compare(const void *a, const void *b)
{
    const struct ox_batch_ack *const *x = a, *const *y = b;
    return ox_pos_cmp((*x)->pos, (*y)->pos);
}

const struct ox_batch_ack **ox_batch_acks_sorted(const struct ox_batch_acks *b, size_t max, size_t *ret_count)
{
    size_t n = 0, count = ox_map_count(&b->map);
    const struct ox_batch_ack **list = ox_calloc(count + 1, sizeof(const struct ox_batch_ack *));
    OX_MAP_EACH(&b->map, node)
        list[n++] = ACK_OF(node);
    qsort(list, count, sizeof(const struct ox_batch_ack *), batch_compare);
    *ret_count = OX_MIN(count, max);
    return list;
}

uint32_t ox_batch_bits_count(const uint64_t *bits, size_t words)
{
    uint32_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (uint32_t)__builtin_popcountll(bits[i]);
    return n;
}

void ox_batch_acks_forget(struct ox_batch_acks *b, struct ox_pos pos)
{
    struct ox_batch_ack *a = batch_find(b, pos);
    if (a)
        batch_drop(b, a);
}

void ox_batch_acks_forget_upto(struct ox_batch_acks *b, struct ox_pos pos)
{
    OX_MAP_EACH(&b->map, n)
        if (ox_pos_cmp(ACK_OF(n)->pos, pos) <= 0)
            batch_drop(b, ACK_OF(n));
}
