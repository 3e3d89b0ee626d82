// delayed_delivery_test.c - messages with a delivery time: never before it, soon after it, once; others are not held up.
#include "broker/fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "broker/shared.h"
#include "wire/pulsar_frame.h"

#define MANY 3000

struct world {
    struct rig r;
    struct ox_topic *t;
    struct rig_producer p;
    struct ox_consumer *consumer;
    enum ox_sub_type type;
    uint64_t sent;
    uint64_t due[MANY];  // wall clock, ms; 0: at once
    uint64_t came[MANY]; // when it came last; 0: it did not
    uint32_t times[MANY];
    struct ox_pos at[MANY];
    bool acks;       // what came is acknowledged soon
    bool done[MANY]; // acknowledged: never again
    uint64_t acked;
    uint64_t order[2 * MANY]; // numbers, as they came
    uint64_t order_count;
};

static uint64_t now_ms(struct world *w)
{
    return ox_wall_ms(w->r.loop);
}

static void delayed_deliver(struct ox_consumer *c, const struct ox_dispatch *d)
{
    struct world *w = c->owner;
    struct ox_message_view view;
    assert_int_equal(ox_message_parse(d->entry, true, &view), OX_OK);
    uint64_t number = rig_number(view.payload);
    assert_false(w->done[number]);
    w->came[number] = now_ms(w);
    w->times[number]++;
    w->at[number] = d->pos;
    assert_true(w->order_count < OX_COUNT(w->order));
    w->order[w->order_count++] = number;
}

static bool delayed_ready(struct ox_consumer *c)
{
    (void)c;
    return true;
}

static void delayed_closed(struct ox_consumer *c, enum ox_err err)
{
    (void)err;
    ((struct world *)c->owner)->consumer = NULL;
}

static void delayed_active(struct ox_consumer *c, bool is_active)
{
    (void)c;
    (void)is_active;
}

static const struct ox_consumer_events delayed_events = {
    .active = delayed_active, .deliver = delayed_deliver, .ready = delayed_ready, .closed = delayed_closed};

static void join(struct world *w)
{
    struct ox_subscribe o = {.subscription = "s",
                             .name = "c",
                             .type = w->type,
                             .durable = true,
                             .from_earliest = true,
                             .connection = w,
                             .events = &delayed_events,
                             .owner = w};
    rig_op(&w->r, &o.op);
    ox_subscribe(w->t, &o);
    assert_int_equal(rig_wait(&w->r, &o.op), OX_OK);
    w->consumer = o.consumer;
    assert_int_equal(ox_consumer_flow(w->consumer, 100000), OX_OK);
}

static void rejoin(struct world *w)
{
    ox_consumer_close(w->consumer);
    join(w);
}

static void open_topic(struct world *w)
{
    w->t = rig_topic(&w->r, "t");
    assert_int_equal(rig_produce(&w->r, &w->p, w->t, NULL, false), OX_OK);
}

static void world_init(struct world *w, enum ox_sub_type type)
{
    *w = (struct world){.type = type};
    rig_init(&w->r);
    open_topic(w);
    join(w);
}

static void world_fini(struct world *w)
{
    ox_topic_put(w->t);
    rig_fini(&w->r);
}

// Message n, due so long from now (0: it has no time).
static void send(struct world *w, uint64_t delay_ms)
{
    char payload[16];
    uint64_t n = w->sent++;
    snprintf(payload, sizeof payload, "m%llu", (unsigned long long)n);
    w->due[n] = delay_ms ? now_ms(w) + delay_ms : 0;
    assert_true(rig_send_keyed(&w->p, n, payload, "key", w->due[n]));
}

static void ack_all(struct world *w)
{
    for (; w->consumer && w->acked < w->order_count; w->acked++) {
        struct ox_ack_id id = {.pos = w->at[w->order[w->acked]]};
        w->done[w->order[w->acked]] = true;
        ox_consumer_ack(w->consumer, NULL, false, &id, 1);
    }
}

static void run(struct world *w, uint64_t ms)
{
    for (; ms > 0; ms -= OX_MIN(ms, 100u)) {
        ox_sim_run_for(w->r.sim, OX_MIN(ms, 100u) * OX_MS);
        if (w->acks)
            ack_all(w);
    }
    ox_sim_run_for(w->r.sim, OX_MS);
}

static void expect_in_time(const struct world *w, uint64_t n)
{
    assert_int_equal(w->times[n], 1);
    assert_in_range(w->came[n], w->due[n], w->due[n] + 1100);
}

static void test_delayed_comes_at_its_time_and_holds_up_nobody(void **state)
{
    (void)state;
    static const enum ox_sub_type types[] = {OX_SUB_SHARED, OX_SUB_KEY_SHARED};
    for (size_t i = 0; i < OX_COUNT(types); i++) {
        struct world w;
        world_init(&w, types[i]);
        send(&w, 5000);
        send(&w, 0);
        send(&w, 2000);
        run(&w, 1500);
        assert_int_equal(w.times[0] + w.times[2], 0);
        assert_int_equal(w.times[1], 1);
        assert_int_equal(ox_subscription_find(w.t, "s")->delayed, 2);
        run(&w, 5000);
        expect_in_time(&w, 0);
        expect_in_time(&w, 2);
        assert_int_equal(ox_subscription_find(w.t, "s")->delayed, 0);
        world_fini(&w);
    }
}

// fault: P11
static void test_delayed_consumer_that_comes_back_gets_it_once(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    send(&w, 5000);
    run(&w, 1000);
    rejoin(&w);
    run(&w, 2000);
    rejoin(&w);
    run(&w, 1500);
    assert_int_equal(w.times[0], 0);
    run(&w, 3000);
    expect_in_time(&w, 0);
    world_fini(&w);
}

static void crash(struct world *w)
{
    ox_topic_put(w->t);
    rig_crash(&w->r);
    open_topic(w);
    join(w);
}

// fault: P11
static void test_delayed_over_a_crash_neither_early_nor_twice(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    w.acks = true;
    send(&w, 1000);
    send(&w, 8000);
    run(&w, 3000);
    expect_in_time(&w, 0);
    crash(&w);
    run(&w, 500);
    assert_int_equal(w.times[1], 0);
    run(&w, 8000);
    expect_in_time(&w, 1);
    expect_in_time(&w, 0); // acknowledged: not again
    crash(&w);
    run(&w, 10000);
    expect_in_time(&w, 1);
    world_fini(&w);
}

// fault: P11
static void test_delayed_is_nothing_to_one_consumer_in_order(void **state)
{
    (void)state;
    static const enum ox_sub_type types[] = {OX_SUB_EXCLUSIVE, OX_SUB_FAILOVER};
    for (size_t i = 0; i < OX_COUNT(types); i++) {
        struct world w;
        world_init(&w, types[i]);
        send(&w, 60000);
        run(&w, 2000);
        assert_int_equal(w.times[0], 1);
        world_fini(&w);
    }
}

static void test_delayed_delivery_can_be_switched_off(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    w.t->policies.delayed = false;
    send(&w, 60000);
    run(&w, 1000);
    assert_int_equal(w.times[0], 1);
    world_fini(&w);
}

static void test_delayed_may_be_a_tick_early_where_that_is_asked_for(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    w.r.shard.config.delays_strict = false;
    send(&w, 5000);
    run(&w, 3900);
    assert_int_equal(w.times[0], 0);
    run(&w, 200);
    assert_int_equal(w.times[0], 1);
    world_fini(&w);
}

static void test_delayed_survives_a_wall_clock_that_is_set(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    send(&w, 3600 * 1000);
    send(&w, 4000);
    run(&w, 100);
    ox_sim_step_clock(w.r.sim, 3600 * 1000);
    run(&w, 2000);
    assert_int_equal(w.times[0], 1);
    assert_int_equal(w.times[1], 1);
    send(&w, 3000);
    run(&w, 100);
    ox_sim_step_clock(w.r.sim, -2000);
    run(&w, 4000);
    assert_int_equal(w.times[2], 0);
    run(&w, 2000);
    expect_in_time(&w, 2);
    world_fini(&w);
}

static void test_delayed_without_a_tick_waits_all_the_same(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    w.t->policies.delayed_tick_ms = 0;
    send(&w, 1000);
    run(&w, 900);
    assert_int_equal(w.times[0], 0);
    run(&w, 2000);
    expect_in_time(&w, 0);
    world_fini(&w);
}

// The time of a message that was out is ahead again.
static void test_delayed_without_room_goes_when_its_time_had_come_before(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    send(&w, 1000);
    run(&w, 3000);
    assert_int_equal(w.times[0], 1);
    struct shared *d = shared_of(ox_subscription_find(w.t, "s")->dispatcher);
    for (int64_t i = 0; ox_delayed_add(&d->delayed, (struct ox_pos){INT64_MAX, i}, UINT64_MAX - 1, 0);)
        i++;
    ox_sim_step_clock(w.r.sim, -5000);
    ox_consumer_redeliver(w.consumer, false, 0, NULL, 0);
    run(&w, 100);
    assert_int_equal(w.times[0], 2);
    world_fini(&w);
}

static void test_delayed_what_is_skipped_does_not_come(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, OX_SUB_SHARED);
    send(&w, 2000);
    send(&w, 2000);
    run(&w, 500);
    struct ox_subscription *s = ox_subscription_find(w.t, "s");
    ox_cursor_mark_delete(s->cursor, NULL, (struct ox_pos){w.t->ml->last.ledger, 0});
    s->dispatcher->body->skipped(s->dispatcher);
    assert_int_equal(s->delayed, 1);
    run(&w, 4000);
    assert_int_equal(w.times[0], 0);
    expect_in_time(&w, 1);
    world_fini(&w);
}

static void unload(struct world *w)
{
    struct ox_op op;
    run(w, 100);
    ox_topic_put(w->t);
    rig_op(&w->r, &op);
    ox_topic_unload(&w->r.shard, &op, "persistent://public/default/t");
    assert_int_equal(rig_wait(&w->r, &op), OX_OK);
    open_topic(w);
    join(w);
}

// fault: P11
static void test_delayed_thousands_at_random_with_unloads(void **state)
{
    (void)state;
    struct world *w = ox_malloc(sizeof *w);
    struct ox_random r;
    ox_random_seed(&r, 11);
    world_init(w, OX_SUB_SHARED);
    w->acks = true;
    while (w->sent < MANY) {
        for (int i = 0; i < 100; i++)
            send(w, ox_random_below(&r, 30000));
        run(w, 500);
        w->p.receipt_count = 0;
        if (w->sent % 600 == 0)
            unload(w);
    }
    for (int i = 0; i < 11; i++) {
        run(w, 3000);
        unload(w);
    }
    for (uint64_t n = 0; n < MANY; n++) {
        assert_true(w->done[n]);
        assert_true(w->came[n] >= w->due[n]);
    }
    world_fini(w);
    ox_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delayed_comes_at_its_time_and_holds_up_nobody),
        cmocka_unit_test(test_delayed_consumer_that_comes_back_gets_it_once),
        cmocka_unit_test(test_delayed_over_a_crash_neither_early_nor_twice),
        cmocka_unit_test(test_delayed_is_nothing_to_one_consumer_in_order),
        cmocka_unit_test(test_delayed_delivery_can_be_switched_off),
        cmocka_unit_test(test_delayed_may_be_a_tick_early_where_that_is_asked_for),
        cmocka_unit_test(test_delayed_survives_a_wall_clock_that_is_set),
        cmocka_unit_test(test_delayed_without_a_tick_waits_all_the_same),
        cmocka_unit_test(test_delayed_without_room_goes_when_its_time_had_come_before),
        cmocka_unit_test(test_delayed_what_is_skipped_does_not_come),
        cmocka_unit_test(test_delayed_thousands_at_random_with_unloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
