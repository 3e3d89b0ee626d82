// token_bucket.c - a rate limit that may be overdrawn by one entry.
#include "base/token_bucket.h"

#include "base/mem.h"

#define SECOND_NS 1e9
#define WAIT_NS_MIN 1000u
#define WAIT_NS_MAX (3600 * SECOND_NS) // a longer wait is asked for again

void ox_token_bucket_set(struct ox_token_bucket *b, double per_s, double burst, uint64_t now_ns)
{
    per_s = OX_MAX(per_s, 0);
    burst = OX_MAX(burst, per_s);
    *b = (struct ox_token_bucket){.per_s = per_s, .burst = burst, .tokens = burst, .last_ns = now_ns};
}

static void bucket_fill(struct ox_token_bucket *b, uint64_t now_ns)
{
    if (now_ns <= b->last_ns)
        return;
    double came = (double)(now_ns - b->last_ns) / SECOND_NS * b->per_s;
    b->tokens = OX_MIN(b->tokens + came, b->burst);
    b->last_ns = now_ns;
}

bool ox_token_bucket_ready(struct ox_token_bucket *b, uint64_t now_ns)
{
    if (b->per_s <= 0)
        return true;
    bucket_fill(b, now_ns);
    return b->tokens > 0;
}

void ox_token_bucket_take(struct ox_token_bucket *b, double n, uint64_t now_ns)
{
    if (b->per_s <= 0)
        return;
    bucket_fill(b, now_ns);
    b->tokens -= n;
}

uint64_t ox_token_bucket_wait_ns(struct ox_token_bucket *b, uint64_t now_ns)
{
    if (ox_token_bucket_ready(b, now_ns))
        return 0;
    double wait = OX_MIN(-b->tokens / b->per_s * SECOND_NS, WAIT_NS_MAX);
    return (uint64_t)wait + WAIT_NS_MIN;
}
