// random.h - a small seeded generator (xoshiro256**) for what needs reproducible randomness.
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

struct ox_random {
    uint64_t s[4]; // private
};

// Starts from a seed; equal seeds give equal sequences.
void ox_random_seed(struct ox_random *r, uint64_t seed);
// The next 64 bits.
uint64_t ox_random_next(struct ox_random *r);
// A number in 0..n-1, unbiased; n > 0.
uint64_t ox_random_below(struct ox_random *r, uint64_t n);

#endif
