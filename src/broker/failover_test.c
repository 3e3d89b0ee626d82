// failover_test.c - Failover subscriptions: who is active, what it gets and when.
#include "broker/failover.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/fixture.h"

struct world {
    struct rig r;
    struct ox_topic *t;
    struct rig_producer p;
    struct rig_consumer c[3];
};

static void world_init(struct world *w, const char *topic)
{
    rig_init(&w->r);
    w->t = rig_topic(&w->r, topic);
    assert_int_equal(rig_produce(&w->r, &w->p, w->t, NULL, false), OX_OK);
}

static void world_fini(struct world *w)
{
    ox_topic_put(w->t);
    rig_fini(&w->r);
}

// Attaches; nothing is awaited beyond that.
static void attach(struct world *w, size_t i, const char *name, int32_t priority)
{
    struct rig_consumer *c = &w->c[i];
    *c = (struct rig_consumer){.rig = &w->r};
    struct ox_subscribe o = rig_subscribe_op(c, "s");
    o.from_earliest = true;
    o.type = OX_SUB_FAILOVER;
    o.name = name;
    o.priority = priority;
    rig_op(&w->r, &o.op);
    ox_subscribe(w->t, &o);
    assert_int_equal(rig_wait(&w->r, &o.op), OX_OK);
    c->consumer = o.consumer;
    assert_int_equal(ox_consumer_flow(c->consumer, 100), OX_OK);
}

static void send_all(struct world *w, int first, int count)
{
    char text[16];
    for (int i = first; i < first + count; i++) {
        snprintf(text, sizeof text, "m%d", i);
        assert_true(rig_send(&w->p, (uint64_t)i, text));
    }
    rig_settle(&w->r);
}

static void run_ms(struct world *w, uint64_t ms)
{
    ox_sim_run_for(w->r.sim, ms * OX_MS);
}

static void test_the_active_consumer_of_a_plain_topic_is_found_on_a_ring_of_hashes(void **state)
{
    (void)state;
    // As a Pulsar 4.0.7 broker chose among a, b and c.
    static const struct {
        const char *topic;
        size_t active;
    } cases[] = {{"persistent://public/dispatch/fo-1796110403-0", 1},
                 {"persistent://public/dispatch/fo-1796110403-1", 2},
                 {"persistent://public/dispatch/fo-1796110403-3", 0},
                 {"persistent://public/dispatch/fo-1796110403-4", 1}};
    struct ox_topic t = {.name.partition = -1};
    struct ox_subscription s = {.topic = &t};
    struct ox_consumer c[3] = {{.name = (char[]){"c"}}, {.name = (char[]){"a"}}, {.name = (char[]){"b"}}};
    static const size_t by_name[] = {1, 2, 0};
    ox_list_init(&s.consumers);
    for (size_t i = 0; i < 3; i++)
        ox_list_push_back(&s.consumers, &c[i].link);
    for (size_t i = 0; i < OX_COUNT(cases); i++) {
        t.name.full = (char *)(uintptr_t)cases[i].topic;
        assert_ptr_equal(failover_choose(&s, NULL), &c[by_name[cases[i].active]]);
    }
}

static void test_a_partition_goes_to_the_consumer_of_its_number_among_the_best(void **state)
{
    (void)state;
    struct ox_topic t = {0};
    struct ox_subscription s = {.topic = &t};
    struct ox_consumer c[4] = {
        {.name = (char[]){"z"}}, {.name = (char[]){"y"}}, {.name = (char[]){"a"}, .priority = 1}, {.name = (char[]){"x"}}};
    ox_list_init(&s.consumers);
    assert_null(failover_choose(&s, NULL));
    for (size_t i = 0; i < 4; i++)
        ox_list_push_back(&s.consumers, &c[i].link);
    static const size_t expected[] = {3, 1, 0, 3};
    for (int32_t i = 0; i < 4; i++) {
        t.name.partition = i;
        assert_ptr_equal(failover_choose(&s, NULL), &c[expected[i]]);
    }
    t.name.partition = 1;
    assert_ptr_equal(failover_choose(&s, &c[3]), &c[0]);
}

static void test_a_changed_active_consumer_waits_a_second_and_gets_what_is_left(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "t-partition-0");
    attach(&w, 0, "b", 0);
    run_ms(&w, 900);
    assert_int_equal(w.c[0].active_told, 0);
    send_all(&w, 0, 4);
    assert_int_equal(w.c[0].got_count, 4);
    assert_true(w.c[0].active);
    attach(&w, 1, "a", 0);
    assert_int_equal(rig_ack(&w.c[0], false, w.c[0].got[0].pos, 0, false), OX_OK);
    send_all(&w, 4, 2);
    run_ms(&w, 500);
    assert_int_equal(w.c[0].got_count, 4);
    assert_true(w.c[1].active);
    assert_false(w.c[0].active);
    assert_int_equal(w.c[1].got_count, 5);
    assert_string_equal(w.c[1].got[0].payload, "m1");
    world_fini(&w);
}

static void test_those_in_wait_take_over_when_the_active_one_leaves(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "t-partition-0");
    attach(&w, 0, "a", 0);
    attach(&w, 1, "b", 0);
    attach(&w, 2, "c", 1);
    run_ms(&w, 1100);
    send_all(&w, 0, 3);
    assert_int_equal(w.c[0].got_count, 3);
    assert_int_equal(w.c[1].active_told, 2);
    ox_consumer_redeliver(w.c[1].consumer, false, 0, NULL, 0);
    rig_settle(&w.r);
    assert_int_equal(w.c[0].got_count, 3);
    ox_consumer_redeliver(w.c[0].consumer, false, 0, NULL, 0);
    rig_settle(&w.r);
    assert_int_equal(w.c[0].got_count, 6);
    assert_int_equal(w.c[0].got[5].redeliveries, 0);
    ox_consumer_close(w.c[0].consumer);
    run_ms(&w, 1100);
    assert_int_equal(w.c[1].got_count, 3);
    assert_int_equal(w.c[2].got_count, 0);
    ox_consumer_close(w.c[1].consumer);
    run_ms(&w, 1100);
    assert_true(w.c[2].active);
    assert_int_equal(w.c[2].got_count, 3);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_active_consumer_of_a_plain_topic_is_found_on_a_ring_of_hashes),
        cmocka_unit_test(test_a_partition_goes_to_the_consumer_of_its_number_among_the_best),
        cmocka_unit_test(test_a_changed_active_consumer_waits_a_second_and_gets_what_is_left),
        cmocka_unit_test(test_those_in_wait_take_over_when_the_active_one_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
