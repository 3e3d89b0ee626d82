// shared_random_test.c - a Shared subscription under random clients that come, go, stall, give back and acknowledge for others: nothing is lost, nothing is with two.
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "broker/fixture.h"

#define MESSAGES 300u
#define CROWD 4
#define STEPS 1500

enum owner { NOBODY = 0 }; // else the consumer's number + 1

struct one {
    struct world *world;
    size_t number;
    struct ox_consumer *consumer;
    bool full;
    int64_t permits; // as the client counts
};

struct world {
    struct rig r;
    struct ox_topic *t;
    struct ox_random random;
    struct ox_pos pos[MESSAGES];
    size_t holder[MESSAGES]; // NOBODY, or who has it
    uint32_t redelivered[MESSAGES];
    bool acked[MESSAGES];
    struct one c[CROWD];
    bool slow; // reads of the place take their time
    size_t deliveries;
};

static size_t pick(struct world *w, size_t n)
{
    return (size_t)ox_random_below(&w->random, n);
}

static size_t message_at(const struct world *w, struct ox_pos pos)
{
    for (size_t i = 0; i < MESSAGES; i++)
        if (ox_pos_equal(w->pos[i], pos))
            return i;
    fail();
    return 0;
}

static void one_deliver(struct ox_consumer *c, const struct ox_dispatch *d)
{
    struct one *one = c->owner;
    struct world *w = one->world;
    size_t i = message_at(w, d->pos);
    assert_false(w->acked[i]);
    assert_int_equal(w->holder[i], NOBODY);
    assert_false(one->full);
    assert_true(one->permits > 0);
    assert_int_equal(d->redelivery_count, w->redelivered[i]);
    one->permits--;
    w->deliveries++;
    w->holder[i] = one->number + 1;
}

static bool one_ready(struct ox_consumer *c)
{
    return !((struct one *)c->owner)->full;
}

static void one_closed(struct ox_consumer *c, enum ox_err err)
{
    (void)err;
    ((struct one *)c->owner)->consumer = NULL;
}

static void one_probe(struct ox_consumer *c, struct ox_op *op)
{
    (void)c;
    ox_op_begin(op);
    ox_op_finish(op, OX_OK);
}

static const struct ox_consumer_events one_events = {
    .deliver = one_deliver, .ready = one_ready, .closed = one_closed, .probe = one_probe};

static void slow_reads(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    struct world *w = CONTAINER_OF(r, struct world, r);
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_READ && w->slow)
        fault->before_ns = pick(w, 20) * OX_MS;
}

static void attach(struct world *w, struct one *one)
{
    struct ox_subscribe o = {.subscription = "s",
                             .name = "c",
                             .durable = true,
                             .type = OX_SUB_SHARED,
                             .from_earliest = true,
                             .priority = (int32_t)pick(w, 2),
                             .connection = one,
                             .events = &one_events,
                             .owner = one};
    rig_op(&w->r, &o.op);
    ox_subscribe(w->t, &o);
    assert_int_equal(rig_wait(&w->r, &o.op), OX_OK);
    one->consumer = o.consumer;
    one->permits = 0;
    one->full = false;
}

static size_t attached(const struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < CROWD; i++)
        n += w->c[i].consumer != NULL;
    return n;
}

static void leave(struct world *w, struct one *one)
{
    ox_consumer_close(one->consumer);
    one->consumer = NULL;
    for (size_t i = 0; i < MESSAGES; i++) {
        if (w->holder[i] == one->number + 1)
            w->holder[i] = NOBODY;
        if (attached(w) == 0)
            w->redelivered[i] = 0;
    }
}

static void give_back(struct world *w, struct one *one, bool all)
{
    struct ox_pos positions[8];
    size_t n = 0;
    for (size_t i = 0; i < MESSAGES && n < OX_COUNT(positions); i++) {
        if (w->holder[i] != one->number + 1 || (!all && pick(w, 3)))
            continue;
        if (!all)
            positions[n++] = w->pos[i];
        w->holder[i] = NOBODY;
        w->redelivered[i]++;
    }
    if (all || n)
        ox_consumer_redeliver(one->consumer, false, 0, positions, n);
}

static void ack_some(struct world *w, struct one *one, size_t one_in)
{
    for (size_t i = 0; i < MESSAGES; i++) {
        bool mine = w->holder[i] == one->number + 1;
        if (w->acked[i] || !w->holder[i] || pick(w, mine ? one_in : 10 * one_in))
            continue;
        struct ox_ack_id id = {.pos = w->pos[i]};
        ox_consumer_ack(one->consumer, NULL, false, &id, 1);
        w->acked[i] = true;
        w->holder[i] = NOBODY;
    }
}

static void flow(struct one *one, uint32_t permits)
{
    one->permits += permits;
    assert_int_equal(ox_consumer_flow(one->consumer, permits), OX_OK);
}

static void step(struct world *w)
{
    struct one *one = &w->c[pick(w, CROWD)];
    if (!one->consumer) {
        attach(w, one);
        return;
    }
    switch (pick(w, 12)) {
    case 0: leave(w, one); break;
    case 1: give_back(w, one, true); break;
    case 2:
    case 3: give_back(w, one, false); break;
    case 4: one->full = true; break;
    case 5:
    case 6:
        one->full = false;
        ox_consumer_writable(one->consumer);
        break;
    case 7: ack_some(w, one, 60); break;
    default: flow(one, 1 + (uint32_t)pick(w, 10)); break;
    }
}

// What the broker counts is what its clients have.
static void check(struct world *w)
{
    size_t held[CROWD + 1] = {0}, all = 0;
    for (size_t i = 0; i < MESSAGES; i++)
        held[w->holder[i]]++;
    for (size_t i = 0; i < CROWD; i++) {
        all += held[i + 1];
        if (w->c[i].consumer)
            assert_int_equal(w->c[i].consumer->unacked, held[i + 1]);
        if (w->c[i].consumer)
            assert_int_equal(w->c[i].consumer->permits, w->c[i].permits);
    }
    assert_int_equal(ox_subscription_find(w->t, "s")->unacked, all);
}

static void publish(struct world *w)
{
    struct rig_producer *p = ox_malloc(sizeof *p);
    for (size_t i = 0; i < MESSAGES; i += 100) {
        assert_int_equal(rig_produce(&w->r, p, w->t, NULL, false), OX_OK);
        for (size_t n = i; n < i + 100; n++)
            assert_true(rig_send(p, n, "m"));
        rig_settle(&w->r);
        for (size_t n = 0; n < 100; n++)
            w->pos[i + n] = p->receipts[n].pos;
        ox_producer_close(p->producer);
    }
    ox_free(p);
}

static void run(uint64_t seed, bool slow)
{
    struct world *w = ox_malloc(sizeof *w);
    rig_init(&w->r);
    w->r.on_place = slow_reads;
    ox_random_seed(&w->random, seed);
    w->t = rig_topic(&w->r, "t");
    publish(w);
    ox_topic_put(w->t);
    rig_restart(&w->r); // the tail cache is empty now
    w->t = rig_topic(&w->r, "t");
    w->t->policies.max_unacked_per_consumer = 60;
    w->t->policies.max_unacked_per_subscription = 120;
    w->slow = slow;
    for (size_t i = 0; i < CROWD; i++)
        w->c[i] = (struct one){.world = w, .number = i};
    for (int i = 0; i < STEPS; i++) {
        step(w);
        if (pick(w, 3) == 0)
            ox_sim_run_for(w->r.sim, pick(w, 30) * OX_MS);
        if (attached(w))
            check(w);
    }
    if (!w->c[0].consumer)
        attach(w, &w->c[0]);
    for (size_t i = 1; i < CROWD; i++)
        if (w->c[i].consumer)
            leave(w, &w->c[i]);
    w->c[0].full = false;
    ox_consumer_writable(w->c[0].consumer);
    flow(&w->c[0], 100000);
    for (int i = 0; i < 100; i++) {
        rig_settle(&w->r);
        ack_some(w, &w->c[0], 4);
    }
    for (size_t i = 0; i < MESSAGES; i++)
        assert_true(w->acked[i]);
    assert_true(w->deliveries > 3 * MESSAGES);
    ox_topic_put(w->t);
    rig_fini(&w->r);
    ox_free(w);
}

static void test_nothing_is_lost_and_nothing_is_with_two(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        run(seed, seed % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_lost_and_nothing_is_with_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
