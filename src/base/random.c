// random.c - xoshiro256** seeded through splitmix64.
#include "base/random.h"

#include "base/assert.h"

static uint64_t random_split(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t random_rotate(uint64_t v, unsigned bits)
{
    return v << bits | v >> (64 - bits);
}

void ox_random_seed(struct ox_random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = random_split(&seed);
}

uint64_t ox_random_next(struct ox_random *r)
{
    uint64_t *s = r->s;
    uint64_t result = random_rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = random_rotate(s[3], 45);
    return result;
}

uint64_t ox_random_below(struct ox_random *r, uint64_t n)
{
    OX_ASSERT(n > 0);
    uint64_t reject_below = -n % n; // 2^64 mod n: values below it would make small results likelier
    uint64_t v;
    do
        v = ox_random_next(r);
    while (v < reject_below);
    return v % n;
}
