// shared_delayed.c - messages that are not due: remembered by time, and waiting like those that come again once they are.
#include "broker/shared.h"

#define DELAY_STEP_MS 10u // those that become due within it go together
#define DELAY_PORTION 64u

static uint64_t delay_now(const struct shared *d)
{
    return ox_wall_ms(shared_sub(d)->topic->shard->loop);
}

// Sets the timer for the first; the wall clock may be set, so it is looked at every tick.
static void delay_arm(struct shared *d, uint64_t now)
{
    uint64_t first = ox_delayed_first(&d->delayed);
    if (first >= d->due_ms)
        return;
    uint64_t tick = shared_sub(d)->topic->policies.delayed_tick_ms;
    d->due_ms = first;
    ox_timer_start(&d->due, OX_MAX(OX_MIN(first > now ? first - now : 0, tick), (uint64_t)DELAY_STEP_MS) * OX_MS);
}

bool shared_delay(struct shared *d, const struct dispatch_view *view, uint32_t hash)
{
    struct ox_subscription *s = shared_sub(d);
    if (!view->metadata.len || !view->meta.has_deliver_at || view->meta.deliver_at_ms <= 0 || !s->topic->policies.delayed)
        return false;
    uint64_t now = delay_now(d), due = (uint64_t)view->meta.deliver_at_ms;
    if (!s->topic->shard->config.delays_strict)
        due -= OX_MIN(due, (uint64_t)s->topic->policies.delayed_tick_ms);
    if (due <= now)
        return false;
    if (!ox_delayed_add(&d->delayed, view->out.pos, due, hash))
        return false; // new entries have room (shared_delay_has_room): it was due before the clock was set back, and goes
    s->delayed = d->delayed.count;
    delay_arm(d, now);
    return true;
}

bool shared_delay_has_room(const struct shared *d)
{
    return d->delayed.count + 2 * (size_t)shared_sub(d)->topic->shard->config.dispatch_entries_max <= OX_DELAYED_MAX;
}

static void delay_ended(struct shared *d, const struct ox_delayed_item *item)
{
    if (pending_find(&d->known, item->pos))
        return;
    struct pending *p = pending_add(&d->known, item->pos);
    p->hash = item->hash;
    shared_wait(d, p);
}

void shared_take_due(struct shared *d)
{
    struct ox_delayed_item items[DELAY_PORTION];
    uint64_t now = d->delayed.count ? delay_now(d) : 0;
    size_t n = 1;
    while (n && ox_delayed_first(&d->delayed) <= now && shared_may_look_ahead(d)) {
        n = ox_delayed_take(&d->delayed, now, items, DELAY_PORTION);
        for (size_t i = 0; i < n; i++)
            delay_ended(d, &items[i]);
        d->look = true;
        d->changes++;
    }
    shared_sub(d)->delayed = d->delayed.count;
    if (ox_delayed_first(&d->delayed) > now)
        delay_arm(d, now);
}

static void delay_due(struct ox_timer *timer)
{
    struct shared *d = CONTAINER_OF(timer, struct shared, due);
    d->due_ms = UINT64_MAX;
    shared_go(d);
}

void shared_delay_init(struct shared *d)
{
    d->due_ms = UINT64_MAX;
    ox_timer_init(&d->due, shared_sub(d)->topic->shard->loop, delay_due);
}

void shared_delay_forget(struct shared *d, struct ox_pos upto)
{
    ox_delayed_forget(&d->delayed, upto);
    shared_sub(d)->delayed = d->delayed.count;
}

void shared_delay_clear(struct shared *d)
{
    ox_delayed_clear(&d->delayed);
    shared_sub(d)->delayed = 0;
    d->due_ms = UINT64_MAX;
    ox_timer_stop(&d->due);
}
