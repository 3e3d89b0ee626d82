// publish_limits.c - how fast may be published: a topic's rate and the broker's; who is too fast is not read for a while.
#include "base/mem.h"
#include "broker/producer_int.h"
#include "broker/topic_int.h"

#define LOOK_NS_MAX (20 * OX_MS) // waiting producers are looked at so often at least

static double limit_per_s(int64_t amount, uint32_t period_s)
{
    return amount > 0 ? (double)amount / OX_MAX(period_s, 1u) : 0;
}

static bool buckets_ready(struct ox_token_bucket *messages, struct ox_token_bucket *bytes, uint64_t now)
{
    return ox_token_bucket_ready(messages, now) && ox_token_bucket_ready(bytes, now);
}

bool limits_ready(struct ox_topic *t)
{
    struct ox_shard *sh = t->shard;
    if (!t->limits && !sh->publish_limited)
        return true;
    uint64_t now = ox_now_ns(sh->loop);
    return (!t->limits || buckets_ready(&t->limits->messages, &t->limits->bytes, now)) &&
           (!sh->publish_limited || buckets_ready(&sh->publish_messages, &sh->publish_bytes, now));
}

bool limits_take(struct ox_topic *t, uint32_t messages, uint64_t bytes)
{
    struct ox_shard *sh = t->shard;
    uint64_t now = ox_now_ns(sh->loop);
    if (t->limits) {
        ox_token_bucket_take(&t->limits->messages, messages, now);
        ox_token_bucket_take(&t->limits->bytes, (double)bytes, now);
    }
    if (sh->publish_limited) {
        ox_token_bucket_take(&sh->publish_messages, messages, now);
        ox_token_bucket_take(&sh->publish_bytes, (double)bytes, now);
    }
    return limits_ready(t);
}

static uint64_t limits_wait_ns(struct ox_topic *t)
{
    struct ox_shard *sh = t->shard;
    uint64_t now = ox_now_ns(sh->loop), wait = 0;
    if (t->limits) {
        wait = OX_MAX(wait, ox_token_bucket_wait_ns(&t->limits->messages, now));
        wait = OX_MAX(wait, ox_token_bucket_wait_ns(&t->limits->bytes, now));
    }
    if (sh->publish_limited) {
        wait = OX_MAX(wait, ox_token_bucket_wait_ns(&sh->publish_messages, now));
        wait = OX_MAX(wait, ox_token_bucket_wait_ns(&sh->publish_bytes, now));
    }
    return wait;
}

void limits_wait(struct ox_topic *t)
{
    struct ox_timer *timer = &t->shard->unblock;
    if (!limits_ready(t) && !ox_timer_started(timer))
        ox_timer_start(timer, OX_MIN(limits_wait_ns(t), LOOK_NS_MAX));
}

static void limits_look(struct ox_timer *timer)
{
    struct ox_shard *sh = CONTAINER_OF(timer, struct ox_shard, unblock);
    blocked_wake(sh);
    OX_LIST_EACH(&sh->blocked, l)
        limits_wait(CONTAINER_OF(l, struct ox_producer, blocked_link)->topic);
}

void publish_limits_init(struct ox_shard *sh)
{
    uint64_t now = ox_now_ns(sh->loop);
    ox_timer_init(&sh->unblock, sh->loop, limits_look);
    sh->publish_limited = sh->config.publish_messages_per_s > 0 || sh->config.publish_bytes_per_s > 0;
    ox_token_bucket_set(&sh->publish_messages, sh->config.publish_messages_per_s, 0, now);
    ox_token_bucket_set(&sh->publish_bytes, sh->config.publish_bytes_per_s, 0, now);
}

// True if it is another rate than before.
static bool bucket_follow(struct ox_token_bucket *b, double per_s, uint64_t now)
{
    bool differs = b->per_s < per_s || b->per_s > per_s;
    if (differs)
        ox_token_bucket_set(b, per_s, 0, now);
    return differs;
}

void publish_limits_follow(struct ox_shard *sh)
{
    uint64_t now = ox_now_ns(sh->loop);
    sh->publish_limited = sh->config.publish_messages_per_s > 0 || sh->config.publish_bytes_per_s > 0;
    (void)bucket_follow(&sh->publish_messages, sh->config.publish_messages_per_s, now);
    (void)bucket_follow(&sh->publish_bytes, sh->config.publish_bytes_per_s, now);
}

void limits_follow(struct ox_topic *t)
{
    const struct ox_rate_limit *want = &t->policies.publish;
    bool any = want->messages > 0 || want->bytes > 0, changed = any != (t->limits != NULL);
    uint64_t now = ox_now_ns(t->shard->loop);
    if (any && !t->limits)
        t->limits = ox_malloc(sizeof *t->limits);
    if (any) {
        changed |= bucket_follow(&t->limits->messages, limit_per_s(want->messages, want->period_s), now);
        changed |= bucket_follow(&t->limits->bytes, limit_per_s(want->bytes, want->period_s), now);
    } else if (t->limits) {
        ox_free(t->limits);
        t->limits = NULL;
    }
    if (changed)
        blocked_wake(t->shard);
}
