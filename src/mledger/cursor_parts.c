// cursor_parts.c - batches that are acknowledged in part: their sets beside the position, in memory and in Pulsar's records.
#include <string.h>

#include "base/limits.h"
#include "mledger/cursor_impl.h"

#define PART_WORD_BYTES_MAX 11 // of one word in a record: tag and varint

void ox_cursor_delete_part(struct ox_cursor *c, struct ox_cursor_ack *ack, struct ox_pos p, const uint64_t *bits,
                           size_t words, bool *ret_whole, uint32_t *ret_left)
{
    uint32_t left = ox_batch_bits_count(bits, words), before = UINT32_MAX;
    const struct ox_batch_ack *known = ox_batch_acks_find(&c->batches, p);
    if (known)
        before = ox_batch_bits_count(known->bits, known->words);
    bool refused = cursor_refuses(c) != OX_OK, exists = !refused && cursor_has_entry(c, p);
    *ret_whole = exists ? ox_batch_acks_and(&c->batches, p, bits, words) : !refused && ox_cursor_is_deleted(c, p);
    known = ox_batch_acks_find(&c->batches, p);
    if (known)
        left = ox_batch_bits_count(known->bits, known->words);
    if (ret_left)
        *ret_left = *ret_whole ? 0 : left;
    if (refused || *ret_whole)
        ox_cursor_delete(c, ack, &p, 1);
    else if (known && left != before)
        cursor_changed(c, ack);
    else
        cursor_unchanged(c, ack);
}

void ox_cursor_set_part(struct ox_cursor *c, struct ox_pos p, const uint64_t *bits, size_t words)
{
    if (cursor_refuses(c) != OX_OK || !cursor_has_entry(c, p))
        return;
    ox_batch_acks_set(&c->batches, p, bits, words);
    cursor_changed(c, NULL);
}

const struct ox_batch_ack *ox_cursor_part(const struct ox_cursor *c, struct ox_pos p)
{
    return ox_batch_acks_find(&c->batches, p);
}

void cursor_forget_parts(struct ox_cursor *c)
{
    size_t count = 0;
    const struct ox_batch_ack **list = ox_batch_acks_sorted(&c->batches, SIZE_MAX, &count);
    for (size_t i = 0; i < count; i++) {
        struct ox_pos p = list[i]->pos;
        if (!cursor_has_entry(c, p))
            ox_batch_acks_forget(&c->batches, p);
    }
    ox_free(list);
}

size_t cursor_parts_bytes_max(const struct ox_cursor *c)
{
    return c->batches.words * PART_WORD_BYTES_MAX;
}

// ---- records ---------------------------------------------------------------------------------------------------------

// Trailing words without a bit are left out, as Pulsar does.
static size_t part_words(const struct ox_batch_ack *a)
{
    size_t words = a->words;
    while (words > 0 && a->bits[words - 1] == 0)
        words--;
    return words;
}

static Mldata__BatchedEntryDeletionIndexInfo *part_pack(struct ox_arena *arena, const struct ox_batch_ack *a)
{
    Mldata__BatchedEntryDeletionIndexInfo *info = ox_arena_alloc(arena, sizeof *info);
    mldata__batched_entry_deletion_index_info__init(info);
    info->position = cursor_nested(arena, a->pos.ledger, a->pos.entry);
    info->n_delete_set = part_words(a);
    info->delete_set = ox_arena_alloc(arena, (info->n_delete_set + 1) * sizeof *info->delete_set);
    memcpy(info->delete_set, a->bits, info->n_delete_set * sizeof *info->delete_set);
    return info;
}

Mldata__BatchedEntryDeletionIndexInfo **cursor_pack_parts(const struct ox_cursor *c, struct ox_arena *arena, size_t max,
                                                          size_t *ret_count)
{
    const struct ox_batch_ack **list = ox_batch_acks_sorted(&c->batches, max, ret_count);
    Mldata__BatchedEntryDeletionIndexInfo **parts = ox_arena_alloc(arena, (*ret_count + 1) * sizeof *parts);
    for (size_t i = 0; i < *ret_count; i++)
        parts[i] = part_pack(arena, list[i]);
    ox_free(list);
    return parts;
}

void cursor_take_parts(struct ox_cursor *c, Mldata__BatchedEntryDeletionIndexInfo **parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Mldata__BatchedEntryDeletionIndexInfo *p = parts[i];
        uint64_t bits[OX_BATCH_WORDS_MAX];
        if (p->n_delete_set == 0 || p->n_delete_set > OX_BATCH_WORDS_MAX)
            continue; // says nothing that could be relied on: the whole batch comes again
        memcpy(bits, p->delete_set, p->n_delete_set * sizeof bits[0]);
        if (ox_batch_bits_count(bits, p->n_delete_set) > 0)
            ox_batch_acks_set(&c->batches, (struct ox_pos){p->position->ledger_id, p->position->entry_id}, bits,
                              p->n_delete_set);
    }
}
