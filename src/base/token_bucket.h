// token_bucket.h - a rate limit that lets whole entries through and makes later ones wait for what was taken too much.
#ifndef BASE_TOKEN_BUCKET_H
#define BASE_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

// Zeroed: without limit. Tokens may go below 0: an entry larger than what is left goes, and the time it cost is waited for afterwards.
struct ox_token_bucket {
    double per_s;     // read-only: tokens that come per second; 0: without limit
    double burst;     // read-only: the most that gathers
    double tokens;    // private
    uint64_t last_ns; // private
};

// Sets the rate (0 or less: without limit) and lets it begin full: `burst` tokens, at least one second's.
void ox_token_bucket_set(struct ox_token_bucket *b, double per_s, double burst, uint64_t now_ns);
// May something go now? (Tokens are above 0, or there is no limit.)
bool ox_token_bucket_ready(struct ox_token_bucket *b, uint64_t now_ns);
// Takes n tokens, whatever is there.
void ox_token_bucket_take(struct ox_token_bucket *b, double n, uint64_t now_ns);
// Nanoseconds from now until ready, a microsecond at least; 0: now.
uint64_t ox_token_bucket_wait_ns(struct ox_token_bucket *b, uint64_t now_ns);

#endif
