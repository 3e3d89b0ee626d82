// resend.c - the table of stored entries: open addressing, the newest of equal keys wins.
#include "broker/resend_int.h"

#include "base/mem.h"

static uint64_t resend_mix(uint64_t h)
{
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

static uint64_t name_hash(const uint8_t *name, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        h = (h ^ name[i]) * UINT64_C(0x100000001b3);
    return resend_mix(h);
}

static struct resend_slot slot_of(const struct ox_resend_key *key)
{
    return (struct resend_slot){.name = name_hash(key->name, key->name_len),
                                .sequence_id = key->sequence_id,
                                .crc = key->crc,
                                .len = (uint32_t)key->len,
                                .used = true};
}

static bool slot_same(const struct resend_slot *a, const struct resend_slot *b)
{
    return a->name == b->name && a->sequence_id == b->sequence_id && a->crc == b->crc && a->len == b->len;
}

// The slot of an equal key, or the free one where it belongs.
static struct resend_slot *resend_slot_for(const struct ox_resend *r, const struct resend_slot *want)
{
    size_t mask = r->cap - 1;
    size_t i = (size_t)resend_mix(want->name ^ want->sequence_id ^ (uint64_t)want->crc << 32) & mask;
    while (r->slots[i].used && !slot_same(&r->slots[i], want))
        i = (i + 1) & mask;
    return &r->slots[i];
}

struct ox_resend *ox_resend_new(void)
{
    struct ox_resend *r = ox_malloc(sizeof *r);
    r->cap = 64;
    r->slots = ox_calloc(r->cap, sizeof *r->slots);
    r->upto = OX_POS_EARLIEST;
    return r;
}

void ox_resend_free(struct ox_resend *r)
{
    if (!r)
        return;
    ox_free(r->slots);
    ox_free(r);
}

static void resend_grow(struct ox_resend *r)
{
    struct resend_slot *old = r->slots;
    size_t old_cap = r->cap;
    r->cap *= 2;
    r->slots = ox_calloc(r->cap, sizeof *r->slots);
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].used)
            *resend_slot_for(r, &old[i]) = old[i];
    ox_free(old);
}

void ox_resend_add(struct ox_resend *r, const struct ox_resend_key *key, struct ox_pos pos)
{
    if ((r->count + 1) * 2 > r->cap)
        resend_grow(r);
    struct resend_slot want = slot_of(key);
    want.pos = pos;
    struct resend_slot *slot = resend_slot_for(r, &want);
    r->count += !slot->used;
    *slot = want;
}

bool ox_resend_find(const struct ox_resend *r, const struct ox_resend_key *key, struct ox_pos *ret_pos)
{
    struct resend_slot want = slot_of(key);
    const struct resend_slot *slot = resend_slot_for(r, &want);
    if (slot->used)
        *ret_pos = slot->pos;
    return slot->used;
}

size_t ox_resend_count(const struct ox_resend *r)
{
    return r->count;
}

uint64_t ox_resend_bytes(const struct ox_resend *r)
{
    return r->cap * sizeof *r->slots;
}
