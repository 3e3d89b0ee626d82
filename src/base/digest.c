// digest.c - XXH3, 128 bits, from libxxhash.
#include "base/digest.h"

#include <stdio.h>

#include <xxhash.h>

#include "base/assert.h"
#include "base/bytes.h"

void ox_digest_init(struct ox_digest *d)
{
    XXH3_state_t *state = XXH3_createState();
    OX_ASSERT(state);
    OX_ASSERT(XXH3_128bits_reset(state) == XXH_OK);
    d->state = state;
}

void ox_digest_fini(struct ox_digest *d)
{
    XXH3_freeState(d->state);
    d->state = NULL;
}

void ox_digest_add(struct ox_digest *d, const void *data, size_t n)
{
    if (n > 0)
        OX_ASSERT(XXH3_128bits_update(d->state, data, n) == XXH_OK);
}

void ox_digest_add_entry(struct ox_digest *d, int64_t entry, const void *data, size_t n)
{
    uint8_t name[16];
    ox_put_be64(name, (uint64_t)entry);
    ox_put_be64(name + 8, n);
    ox_digest_add(d, name, sizeof name);
    ox_digest_add(d, data, n);
}

void ox_digest_text(const struct ox_digest *d, char ret[OX_DIGEST_TEXT_BYTES])
{
    XXH128_hash_t hash = XXH3_128bits_digest(d->state);
    snprintf(ret, OX_DIGEST_TEXT_BYTES, "xxh3:%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}
