// pos_set.c - ordered sets of positions.
#include "base/pos_set.h"

#include <string.h>

#include "base/mem.h"

#define CHUNK_WORDS 4
#define CHUNK_BITS (CHUNK_WORDS * 64)

struct ox_pos_chunk {
    int64_t ledger;
    int64_t number;             // entries number * CHUNK_BITS and following
    uint64_t bits[CHUNK_WORDS]; // never all 0
};

void ox_pos_set_fini(struct ox_pos_set *s)
{
    ox_free(s->chunks);
    *s = (struct ox_pos_set){0};
}

// Index of the first chunk that is not before (ledger, number).
static size_t set_index(const struct ox_pos_set *s, int64_t ledger, int64_t number)
{
    size_t low = 0, high = s->chunk_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const struct ox_pos_chunk *c = &s->chunks[mid];
        if (c->ledger < ledger || (c->ledger == ledger && c->number < number))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct ox_pos_chunk *set_find(const struct ox_pos_set *s, struct ox_pos p, size_t *ret_index)
{
    int64_t number = p.entry / CHUNK_BITS;
    *ret_index = set_index(s, p.ledger, number);
    struct ox_pos_chunk *c = s->chunks + *ret_index;
    return *ret_index < s->chunk_count && c->ledger == p.ledger && c->number == number ? c : NULL;
}

static struct ox_pos_chunk *set_make(struct ox_pos_set *s, size_t at, struct ox_pos p)
{
    if (s->chunk_count == s->chunk_cap) {
        s->chunk_cap = s->chunk_cap ? 2 * s->chunk_cap : 4;
        s->chunks = ox_realloc(s->chunks, s->chunk_cap, sizeof *s->chunks);
    }
    memmove(s->chunks + at + 1, s->chunks + at, (s->chunk_count - at) * sizeof *s->chunks);
    s->chunks[at] = (struct ox_pos_chunk){.ledger = p.ledger, .number = p.entry / CHUNK_BITS};
    s->chunk_count++;
    return &s->chunks[at];
}

static uint64_t *chunk_word(struct ox_pos_chunk *c, struct ox_pos p, uint64_t *ret_bit)
{
    *ret_bit = UINT64_C(1) << (p.entry % 64);
    return &c->bits[p.entry % CHUNK_BITS / 64];
}

bool ox_pos_set_add(struct ox_pos_set *s, struct ox_pos p)
{
    size_t at;
    uint64_t bit;
    struct ox_pos_chunk *c = set_find(s, p, &at);
    uint64_t *word = chunk_word(c ? c : set_make(s, at, p), p, &bit);
    if (*word & bit)
        return false;
    *word |= bit;
    s->count++;
    return true;
}

static bool chunk_is_empty(const struct ox_pos_chunk *c)
{
    uint64_t any = 0;
    for (size_t i = 0; i < CHUNK_WORDS; i++)
        any |= c->bits[i];
    return any == 0;
}

bool ox_pos_set_remove(struct ox_pos_set *s, struct ox_pos p)
{
    size_t at;
    uint64_t bit;
    struct ox_pos_chunk *c = set_find(s, p, &at);
    uint64_t *word = c ? chunk_word(c, p, &bit) : NULL;
    if (!word || !(*word & bit))
        return false;
    *word &= ~bit;
    s->count--;
    if (!chunk_is_empty(c))
        return true;
    s->chunk_count--;
    memmove(c, c + 1, (s->chunk_count - at) * sizeof *c);
    return true;
}

bool ox_pos_set_has(const struct ox_pos_set *s, struct ox_pos p)
{
    size_t at;
    uint64_t bit;
    struct ox_pos_chunk *c = p.entry < 0 ? NULL : set_find(s, p, &at);
    return c && *chunk_word(c, p, &bit) & bit;
}

// The first bit at or behind `from` of a chunk, CHUNK_BITS if there is none.
static int64_t chunk_first(const struct ox_pos_chunk *c, int64_t from)
{
    for (int64_t i = from / 64; i < CHUNK_WORDS; i++) {
        uint64_t word = c->bits[i];
        if (i == from / 64)
            word &= ~UINT64_C(0) << (from % 64);
        if (word)
            return i * 64 + __builtin_ctzll(word);
    }
    return CHUNK_BITS;
}

bool ox_pos_set_at_or_after(const struct ox_pos_set *s, struct ox_pos p, struct ox_pos *ret)
{
    int64_t entry = p.entry < 0 ? 0 : p.entry;
    for (size_t i = set_index(s, p.ledger, entry / CHUNK_BITS); i < s->chunk_count; i++) {
        const struct ox_pos_chunk *c = &s->chunks[i];
        bool same = c->ledger == p.ledger && c->number == entry / CHUNK_BITS;
        int64_t bit = chunk_first(c, same ? entry % CHUNK_BITS : 0);
        if (bit < CHUNK_BITS) {
            *ret = (struct ox_pos){c->ledger, c->number * CHUNK_BITS + bit};
            return true;
        }
    }
    return false;
}
