// mixed_random_test.c - a subscription whose kind changes, under random clients that acknowledge parts of batches, give back, seek, while the topic is unloaded and the broker dies: what is
// acknowledged with a receipt never comes again, everything else does, nothing is with two, and keys keep their order.
#include <stdio.h>

#include "base/mem.h"
#include "base/random.h"
#include "broker/fixture.h"

#define ENTRIES 60u
#define BATCH 5u
#define CROWD 3u
#define STEPS 400u
#define KEYS 4u
#define NOBODY 0u // else the consumer's number + 1

struct one {
    struct world *world;
    size_t number;
    struct ox_consumer *consumer;
};

struct entry {
    struct ox_pos pos;
    uint64_t all;    // bits of its messages
    uint64_t stored; // those whose acknowledgement was answered
    uint64_t asked;  // those acknowledged without an answer
    uint64_t maybe;  // likewise, before a crash: they may come again
    uint64_t had;    // what the holder got
    size_t holder;
};

struct world {
    struct rig r;
    struct ox_topic *t;
    struct ox_random random;
    struct entry e[ENTRIES];
    struct one c[CROWD];
    enum ox_sub_type type;
    size_t deliveries;
};

static size_t pick(struct world *w, size_t n)
{
    return (size_t)ox_random_below(&w->random, n);
}

static bool many(const struct world *w)
{
    return w->type == OX_SUB_SHARED || w->type == OX_SUB_KEY_SHARED;
}

static struct entry *entry_at(struct world *w, struct ox_pos pos)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (ox_pos_equal(w->e[i].pos, pos))
            return &w->e[i];
    fail();
    return NULL;
}

// Entries of one message have keys by turns, batches have none.
static bool same_key(const struct world *w, size_t a, size_t b)
{
    return w->e[a].all == 1 && w->e[b].all == 1 && a % KEYS == b % KEYS;
}

// Something of it must still come, or is with its holder.
static bool is_open(const struct entry *e)
{
    return e->all & ~(e->stored | e->asked | e->maybe);
}

static void check_key(struct world *w, const struct entry *e, size_t number)
{
    size_t i = (size_t)(e - w->e);
    for (size_t j = 0; j < i; j++) {
        if (is_open(&w->e[j]) && same_key(w, i, j))
            assert_int_equal(w->e[j].holder, number + 1); // neither with somebody else, nor waiting
    }
}

static void one_deliver(struct ox_consumer *c, const struct ox_dispatch *d)
{
    struct one *one = c->owner;
    struct world *w = one->world;
    struct entry *e = entry_at(w, d->pos);
    uint64_t bits = d->ack_set ? d->ack_set[0] & e->all : e->all;
    assert_int_equal(bits & (e->stored | e->asked), 0);
    assert_int_equal(e->all & ~bits & ~(e->stored | e->asked | e->maybe), 0);
    assert_true(!many(w) || e->holder == NOBODY);
    e->asked |= e->all & ~bits;
    e->maybe = 0;
    if (w->type == OX_SUB_KEY_SHARED)
        check_key(w, e, one->number);
    e->holder = one->number + 1;
    e->had = bits;
    w->deliveries++;
}

static bool one_ready(struct ox_consumer *c)
{
    (void)c;
    return true;
}

static void drop_held(struct world *w, size_t number)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (w->e[i].holder == number + 1)
            w->e[i].holder = NOBODY;
}

static void one_closed(struct ox_consumer *c, enum ox_err err)
{
    struct one *one = c->owner;
    (void)err;
    one->consumer = NULL;
    drop_held(one->world, one->number);
}

static void one_probe(struct ox_consumer *c, struct ox_op *op)
{
    (void)c;
    ox_op_begin(op);
    ox_op_finish(op, OX_OK);
}

static void one_active(struct ox_consumer *c, bool active)
{
    struct one *one = c->owner;
    if (active)
        for (size_t i = 0; i < CROWD; i++)
            drop_held(one->world, i);
}

static const struct ox_consumer_events one_events = {
    .deliver = one_deliver, .ready = one_ready, .closed = one_closed, .probe = one_probe, .active = one_active};

static size_t attached(const struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < CROWD; i++)
        n += w->c[i].consumer != NULL;
    return n;
}

static void attach(struct world *w, struct one *one)
{
    char name[8];
    if (!attached(w))
        w->type = (enum ox_sub_type)pick(w, 4);
    else if (w->type == OX_SUB_EXCLUSIVE)
        return;
    snprintf(name, sizeof name, "c%zu", one->number);
    struct ox_subscribe o = {.subscription = "s",
                             .name = name,
                             .durable = true,
                             .type = w->type,
                             .from_earliest = true,
                             .connection = one,
                             .events = &one_events,
                             .owner = one};
    rig_op(&w->r, &o.op);
    ox_subscribe(w->t, &o);
    assert_int_equal(rig_wait(&w->r, &o.op), OX_OK);
    one->consumer = o.consumer;
}

static void leave(struct one *one)
{
    ox_consumer_close(one->consumer);
    one->consumer = NULL;
    drop_held(one->world, one->number);
}

static void ack(struct world *w, struct one *one, bool cumulative, struct entry *e, uint64_t left, bool receipt)
{
    struct ox_cursor_ack wait = {0};
    struct ox_ack_id id = {.pos = e->pos, .set = left ? &left : NULL, .words = left != 0};
    rig_op(&w->r, &wait.op);
    for (struct entry *i = cumulative ? w->e : e; i <= e; i++)
        i->asked |= i == e ? e->all & ~left : i->all;
    if (left == 0 || (e->all & ~e->asked & ~e->stored) == 0)
        e->holder = NOBODY;
    ox_consumer_ack(one->consumer, receipt ? &wait : NULL, cumulative, &id, 1);
    if (!receipt)
        return;
    assert_int_equal(rig_wait(&w->r, &wait.op), OX_OK);
    for (size_t i = 0; i < ENTRIES; i++)
        w->e[i].stored |= w->e[i].asked; // a receipt covers all that was acknowledged before
}

static void ack_some(struct world *w, struct one *one)
{
    size_t i = pick(w, ENTRIES);
    for (size_t n = 0; n < ENTRIES && w->e[i].holder != one->number + 1; n++)
        i = (i + 1) % ENTRIES;
    struct entry *e = &w->e[i];
    if (e->holder != one->number + 1)
        return;
    uint64_t left = pick(w, 2) ? 0 : e->had & ~e->asked & ~e->stored & ox_random_next(&w->random);
    ack(w, one, !many(w) && pick(w, 4) == 0, e, left, pick(w, 2));
}

static void give_back(struct world *w, struct one *one)
{
    struct ox_pos positions[ENTRIES];
    size_t n = 0;
    bool all = !many(w) || pick(w, 4) == 0;
    if (!many(w) && one->consumer && !one->consumer->is_active && w->type == OX_SUB_FAILOVER)
        return;
    for (size_t i = 0; i < ENTRIES; i++)
        if (w->e[i].holder == one->number + 1 && (all || pick(w, 2))) {
            positions[n++] = w->e[i].pos;
            w->e[i].holder = NOBODY;
        }
    if (n)
        ox_consumer_redeliver(one->consumer, false, 0, positions, all ? 0 : n);
}

static void seek(struct world *w)
{
    size_t to = pick(w, ENTRIES);
    struct ox_seek o = {.pos = w->e[to].pos};
    for (size_t i = 0; i < ENTRIES; i++) {
        w->e[i].asked = i < to ? w->e[i].all : 0;
        w->e[i].stored = w->e[i].asked;
        w->e[i].maybe = 0;
    }
    rig_op(&w->r, &o.op);
    ox_subscription_seek(ox_subscription_find(w->t, "s"), &o);
    assert_int_equal(rig_wait(&w->r, &o.op), OX_OK);
    assert_int_equal(attached(w), 0);
}

static void reload(struct world *w, bool crash)
{
    ox_topic_put(w->t);
    for (size_t i = 0; i < CROWD && crash; i++) {
        w->c[i].consumer = NULL;
        drop_held(w, i);
    }
    for (size_t i = 0; i < ENTRIES && crash; i++) {
        w->e[i].maybe |= w->e[i].asked & ~w->e[i].stored;
        w->e[i].asked = 0;
    }
    if (crash)
        rig_crash(&w->r);
    else
        rig_restart(&w->r);
    w->t = rig_topic(&w->r, "t");
}

static void limit(struct world *w)
{
    struct ox_dispatcher *d = ox_subscription_find(w->t, "s")->dispatcher;
    w->t->policies.subscription_dispatch = (struct ox_rate_limit){.bytes = pick(w, 2) ? 400 : 0, .period_s = 1};
    w->t->policies.max_unacked_per_consumer = pick(w, 2) ? 20 : 0;
    if (d)
        d->body->kick(d);
}

static void step(struct world *w)
{
    struct one *one = &w->c[pick(w, CROWD)];
    size_t what = pick(w, 60);
    if (what == 0 && ox_subscription_find(w->t, "s"))
        seek(w);
    else if (what == 1)
        reload(w, pick(w, 2));
    else if (what == 2 && ox_subscription_find(w->t, "s"))
        limit(w);
    else if (!one->consumer)
        attach(w, one);
    else if (what < 8)
        leave(one);
    else if (what < 16)
        give_back(w, one);
    else if (what < 38)
        ack_some(w, one);
    else
        assert_int_equal(ox_consumer_flow(one->consumer, 1 + (uint32_t)pick(w, 12)), OX_OK);
}

static void slow_reads(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    struct world *w = CONTAINER_OF(r, struct world, r);
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_READ)
        fault->before_ns = pick(w, 100) * OX_MS;
}

static void publish(struct world *w)
{
    struct rig_producer *p = ox_malloc(sizeof *p);
    assert_int_equal(rig_produce(&w->r, p, w->t, NULL, false), OX_OK);
    for (size_t i = 0; i < ENTRIES; i++) {
        char key[8];
        uint32_t messages = pick(w, 2) ? 1 : 2 + (uint32_t)pick(w, BATCH - 1);
        w->e[i] = (struct entry){.all = (UINT64_C(1) << messages) - 1};
        snprintf(key, sizeof key, "k%zu", i % KEYS);
        if (messages == 1) {
            assert_true(rig_send_keyed(p, i, "m", key, 0));
            continue;
        }
        struct ox_buf entry = rig_entry("x", i, "batch", (int32_t)messages);
        struct ox_send send = {.entry = entry, .messages = messages, .sequence_id = i};
        assert_true(ox_producer_publish(p->producer, &send));
        ox_buf_unref(&entry);
    }
    rig_settle(&w->r);
    assert_int_equal(p->receipt_count, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++)
        w->e[i].pos = p->receipts[i].pos;
    ox_producer_close(p->producer);
    ox_free(p);
}

// Something of its key is with a former owner, perhaps what is behind it.
static bool waits_for_its_key(const struct world *w, size_t i)
{
    for (size_t j = 0; j < ENTRIES; j++)
        if (w->type == OX_SUB_KEY_SHARED && same_key(w, i, j) && w->e[j].holder != NOBODY)
            return true;
    return false;
}

// With permits enough nothing stays with the broker, whatever the rate.
static void check_nothing_is_stuck(struct world *w)
{
    if (!attached(w))
        return;
    w->t->policies.max_unacked_per_consumer = 0;
    ox_subscription_find(w->t, "s")->dispatcher->body->kick(ox_subscription_find(w->t, "s")->dispatcher);
    for (size_t i = 0; i < CROWD; i++)
        if (w->c[i].consumer)
            assert_int_equal(ox_consumer_flow(w->c[i].consumer, 100000), OX_OK);
    for (int i = 0; i < 60; i++)
        rig_settle(&w->r);
    for (size_t i = 0; i < ENTRIES; i++)
        assert_true(w->e[i].holder != NOBODY || !is_open(&w->e[i]) || waits_for_its_key(w, i));
}

static void finish(struct world *w)
{
    for (size_t i = 0; i < CROWD; i++)
        if (w->c[i].consumer)
            leave(&w->c[i]);
    attach(w, &w->c[0]);
    w->t->policies.max_unacked_per_consumer = 0;
    w->t->policies.subscription_dispatch.bytes = 0;
    ox_subscription_find(w->t, "s")->dispatcher->body->kick(ox_subscription_find(w->t, "s")->dispatcher);
    assert_int_equal(ox_consumer_flow(w->c[0].consumer, 100000), OX_OK);
    for (int i = 0; i < 60; i++)
        rig_settle(&w->r);
    for (size_t i = 0; i < ENTRIES; i++) {
        struct entry *e = &w->e[i];
        if (e->holder == 1)
            ack(w, &w->c[0], false, e, 0, true);
        assert_false(is_open(e));
    }
    assert_int_equal(ox_cursor_backlog(ox_subscription_find(w->t, "s")->cursor), 0);
}

// Returns how many entries were delivered.
static size_t run(uint64_t seed)
{
    struct world *w = ox_malloc(sizeof *w);
    rig_init(&w->r);
    ox_random_seed(&w->random, seed);
    w->t = rig_topic(&w->r, "t");
    for (size_t i = 0; i < CROWD; i++)
        w->c[i] = (struct one){.world = w, .number = i};
    publish(w);
    w->r.on_place = slow_reads;
    for (size_t i = 0; i < STEPS; i++) {
        step(w);
        if (pick(w, 3) == 0)
            ox_sim_run_for(w->r.sim, pick(w, 1500) * OX_MS);
    }
    check_nothing_is_stuck(w);
    finish(w);
    ox_topic_put(w->t);
    rig_fini(&w->r);
    size_t deliveries = w->deliveries;
    ox_free(w);
    return deliveries;
}

static void test_a_receipt_holds_and_the_rest_comes_whatever_happens(void **state)
{
    (void)state;
    size_t deliveries = 0;
    for (uint64_t seed = 1; seed <= 40; seed++)
        deliveries += run(seed);
    assert_true(deliveries > 40 * ENTRIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_receipt_holds_and_the_rest_comes_whatever_happens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
