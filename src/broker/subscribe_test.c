// subscribe_test.c - who may subscribe, where a subscription starts, how fast it is served, how it ends.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/fixture.h"

struct world {
    struct rig r;
    struct ox_topic *t;
    struct rig_producer p;
    struct rig_consumer c[4];
    struct ox_subscribe o; // of the next `attach`
    const char *why;
};

static void world_init(struct world *w)
{
    rig_init(&w->r);
    w->t = rig_topic(&w->r, "t");
    assert_int_equal(rig_produce(&w->r, &w->p, w->t, NULL, false), OX_OK);
}

static void world_fini(struct world *w)
{
    ox_topic_put(w->t);
    rig_fini(&w->r);
}

// Prepares w->o for consumer i.
static void prepare(struct world *w, size_t i, const char *subscription, enum ox_sub_type type)
{
    w->c[i] = (struct rig_consumer){.rig = &w->r};
    w->o = rig_subscribe_op(&w->c[i], subscription);
    w->o.from_earliest = true;
    w->o.type = type;
    w->o.id = i;
}

static enum ox_err go(struct world *w, size_t i)
{
    rig_op(&w->r, &w->o.op);
    ox_subscribe(w->t, &w->o);
    enum ox_err err = rig_wait(&w->r, &w->o.op);
    w->c[i].consumer = w->o.consumer;
    return err;
}

static enum ox_err attach(struct world *w, size_t i, const char *subscription, enum ox_sub_type type)
{
    prepare(w, i, subscription, type);
    return go(w, i);
}

static void flow(struct world *w, size_t i, uint32_t permits)
{
    assert_int_equal(ox_consumer_flow(w->c[i].consumer, permits), OX_OK);
    rig_settle(&w->r);
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

static void test_limits_of_consumers_and_subscriptions(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.t->policies.max_consumers_per_subscription = 2;
    w.t->policies.max_consumers = 3;
    w.t->policies.max_subscriptions = 2;
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    assert_int_equal(attach(&w, 1, "a", OX_SUB_SHARED), OX_OK);
    assert_int_equal(attach(&w, 2, "a", OX_SUB_SHARED), OX_E_CONSUMER_BUSY);
    assert_int_equal(attach(&w, 2, "b", OX_SUB_SHARED), OX_OK);
    assert_int_equal(attach(&w, 3, "b", OX_SUB_SHARED), OX_E_CONSUMER_BUSY);
    assert_int_equal(attach(&w, 3, "c", OX_SUB_SHARED), OX_E_NOT_ALLOWED);
    world_fini(&w);
}

static void test_types_and_new_subscriptions_may_be_forbidden(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.t->policies.subscription_types = 1u << OX_SUB_SHARED;
    assert_int_equal(attach(&w, 0, "a", OX_SUB_EXCLUSIVE), OX_E_NOT_ALLOWED);
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    w.t->policies.auto_subscription = false;
    assert_int_equal(attach(&w, 1, "a", OX_SUB_SHARED), OX_OK);
    assert_int_equal(attach(&w, 2, "b", OX_SUB_SHARED), OX_E_SUBSCRIPTION_NOT_FOUND);
    prepare(&w, 2, "reader", OX_SUB_SHARED);
    w.o.durable = false;
    assert_int_equal(go(&w, 2), OX_OK);
    assert_int_equal(attach(&w, 3, "pulsar.dedup", OX_SUB_SHARED), OX_E_NOT_ALLOWED);
    world_fini(&w);
}

static void test_a_reader_that_is_refused_leaves_no_subscription(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.t->policies.max_consumers = 1;
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    prepare(&w, 1, "reader", OX_SUB_EXCLUSIVE);
    w.o.durable = false;
    assert_int_equal(go(&w, 1), OX_E_CONSUMER_BUSY);
    rig_settle(&w.r);
    assert_null(ox_subscription_find(w.t, "reader"));
    world_fini(&w);
}

static void test_a_consumer_may_subscribe_only_so_often(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.t->policies.subscribe = (struct ox_rate_limit){.messages = 2, .period_s = 30};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
        ox_consumer_close(w.c[0].consumer);
    }
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_E_NOT_ALLOWED);
    assert_int_equal(attach(&w, 1, "a", OX_SUB_SHARED), OX_OK);
    ox_sim_run_for(w.r.sim, 31 * OX_SEC);
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    world_fini(&w);
}

static void test_a_readers_start_set_cuts_its_first_batch(void **state)
{
    (void)state;
    struct world w;
    uint64_t set = 0x18;
    world_init(&w);
    send_all(&w, 0, 1);
    struct ox_buf entry = rig_entry("x", 1, "batch", 5);
    struct ox_send send = {.entry = entry, .messages = 5};
    assert_true(ox_producer_publish(w.p.producer, &send));
    ox_buf_unref(&entry);
    rig_settle(&w.r);
    prepare(&w, 0, "reader", OX_SUB_EXCLUSIVE);
    w.o.durable = false;
    w.o.has_start = true;
    w.o.start = w.p.receipts[1].pos;
    w.o.start_set = &set;
    w.o.start_words = 1;
    assert_int_equal(go(&w, 0), OX_OK);
    flow(&w, 0, 10);
    assert_int_equal(w.c[0].got_count, 1);
    assert_int_equal(w.c[0].got[0].ack_set, 0x18);
    assert_int_equal(w.c[0].consumer->permits, 8);
    world_fini(&w);
}

static void test_properties_are_taken_once(void **state)
{
    (void)state;
    struct world w;
    struct ox_kv first = {0}, second = {0};
    ox_kv_set(&first, "k", "1");
    ox_kv_set(&second, "k", "2");
    world_init(&w);
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    prepare(&w, 1, "a", OX_SUB_SHARED);
    w.o.properties = &first;
    assert_int_equal(go(&w, 1), OX_OK);
    prepare(&w, 2, "a", OX_SUB_SHARED);
    w.o.properties = &second;
    assert_int_equal(go(&w, 2), OX_OK);
    assert_string_equal(ox_kv_find(&ox_subscription_find(w.t, "a")->cursor->properties, "k"), "1");
    world_fini(&w);
    ox_kv_fini(&first);
    ox_kv_fini(&second);
}

static void change_dispatch_rate(struct world *w, int64_t messages)
{
    w->t->policies.subscription_dispatch = (struct ox_rate_limit){.messages = messages, .period_s = 1};
    topic_policies_changed(w->t);
}

static void test_a_rate_slows_deliveries_of_every_type(void **state)
{
    (void)state;
    static const enum ox_sub_type types[] = {OX_SUB_EXCLUSIVE, OX_SUB_SHARED};
    for (size_t i = 0; i < OX_COUNT(types); i++) {
        struct world w;
        world_init(&w);
        send_all(&w, 0, 100);
        change_dispatch_rate(&w, 10);
        assert_int_equal(attach(&w, 0, "a", types[i]), OX_OK);
        assert_int_equal(ox_consumer_flow(w.c[0].consumer, 1000), OX_OK);
        ox_sim_run_for(w.r.sim, 100 * OX_MS);
        assert_in_range(w.c[0].got_count, 10, 12);
        ox_sim_run_for(w.r.sim, 3 * OX_SEC);
        assert_in_range(w.c[0].got_count, 38, 43);
        change_dispatch_rate(&w, 0);
        ox_sim_run_for(w.r.sim, 2 * OX_SEC);
        assert_int_equal(w.c[0].got_count, 100);
        for (int n = 0; n < 100; n++)
            assert_int_equal(w.c[0].got[n].pos.entry, n);
        world_fini(&w);
    }
}

static void terminate(struct world *w)
{
    struct ox_topic_terminate op = {0};
    rig_op(&w->r, &op.op);
    ox_topic_terminate(w->t, &op);
    assert_int_equal(rig_wait(&w->r, &op.op), OX_OK);
    rig_settle(&w->r);
}

static void test_the_end_of_a_topic_is_told_once_when_all_is_acknowledged(void **state)
{
    (void)state;
    static const enum ox_sub_type types[] = {OX_SUB_EXCLUSIVE, OX_SUB_SHARED, OX_SUB_KEY_SHARED};
    for (size_t i = 0; i < OX_COUNT(types); i++) {
        struct world w;
        world_init(&w);
        assert_int_equal(attach(&w, 0, "a", types[i]), OX_OK);
        flow(&w, 0, 100);
        send_all(&w, 0, 2);
        terminate(&w);
        assert_int_equal(w.c[0].ends, 0);
        assert_int_equal(rig_ack(&w.c[0], false, w.c[0].got[0].pos, 0, false), OX_OK);
        assert_int_equal(w.c[0].ends, 0);
        assert_int_equal(rig_ack(&w.c[0], false, w.c[0].got[1].pos, 0, false), OX_OK);
        assert_int_equal(w.c[0].ends, 1);
        flow(&w, 0, 100);
        assert_int_equal(w.c[0].ends, 1);
        assert_int_equal(attach(&w, 1, "b", types[i]), OX_OK);
        flow(&w, 1, 100);
        assert_int_equal(w.c[1].got_count, 2);
        assert_int_equal(w.c[1].ends, 0);
        world_fini(&w);
    }
}

static void test_permits_have_an_upper_end(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    for (int i = 0; i < 10; i++)
        flow(&w, 0, UINT32_MAX);
    assert_int_equal(w.c[0].consumer->permits, OX_PERMITS_MAX);
    assert_int_equal(ox_consumer_flow(w.c[0].consumer, 0), OX_E_INVALID);
    send_all(&w, 0, 3);
    assert_int_equal(w.c[0].got_count, 3);
    world_fini(&w);
}

static void test_a_subscription_to_be_replicated_is_marked_for_good(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    assert_false(ox_subscription_is_replicated(w.c[0].consumer->subscription));
    for (size_t i = 1; i < 3; i++) { // one that is there; a new one
        prepare(&w, i, i == 1 ? "a" : "b", OX_SUB_SHARED);
        w.o.replicated = true;
        assert_int_equal(go(&w, i), OX_OK);
        assert_true(ox_subscription_is_replicated(w.c[i].consumer->subscription));
    }
    ox_topic_put(w.t);
    rig_crash(&w.r);
    w.t = rig_topic(&w.r, "t");
    assert_true(ox_subscription_is_replicated(ox_subscription_find(w.t, "a")));
    assert_int_equal(attach(&w, 0, "b", OX_SUB_SHARED), OX_OK);
    assert_true(ox_subscription_is_replicated(w.c[0].consumer->subscription));
    struct ox_pos first = {w.t->ml->ledgers[0]->where.id, 0};
    assert_string_equal(
        ox_kv_find(&w.c[0].consumer->subscription->cursor->position_properties, "pulsar.replicated.subscription"), "1");
    assert_int_equal(rig_ack(&w.c[0], false, first, 0, false), OX_OK); // acknowledgements keep it
    assert_true(ox_subscription_is_replicated(w.c[0].consumer->subscription));
    world_fini(&w);
}

static void test_rates_of_acks_and_redeliveries_over_an_interval(void **state)
{
    (void)state;
    struct world w;
    struct ox_subscription_stats stats;
    world_init(&w);
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    const struct ox_consumer *c = w.c[0].consumer;
    send_all(&w, 0, 6);
    flow(&w, 0, 100);
    ox_consumer_redeliver(w.c[0].consumer, false, 0, NULL, 0);
    rig_settle(&w.r);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(rig_ack(&w.c[0], false, w.c[0].got[i].pos, 0, false), OX_OK);
    assert_int_equal(rig_ack(&w.c[0], false, w.c[0].got[0].pos, 0, false), OX_OK); // again: counts nothing
    assert_int_equal(c->acks.messages, 3);
    assert_int_equal(c->again.messages, 6);
    ox_sim_run_for(w.r.sim, w.r.shard.config.stats_interval_ns);
    ox_subscription_stats(c->subscription, &stats);
    assert_true(stats.acks_per_s > 0 && stats.again_per_s > stats.acks_per_s);
    ox_sim_run_for(w.r.sim, 2 * w.r.shard.config.stats_interval_ns);
    ox_subscription_stats(c->subscription, &stats);
    assert_false(stats.acks_per_s > 0 || stats.again_per_s > 0);
    world_fini(&w);
}

static void test_a_rate_relative_to_publishing_follows_it(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    rig_policies(&w.r, "{\"subscriptionDispatchRate\":{\"standalone\":{\"dispatchThrottlingRateInMsg\":1,"
                       "\"ratePeriodInSecond\":100,\"relativeToPublishRate\":true}}}");
    assert_int_equal(attach(&w, 0, "a", OX_SUB_SHARED), OX_OK);
    send_all(&w, 0, 120);
    flow(&w, 0, 1000);
    assert_in_range(w.c[0].got_count, 1, 5); // one in a hundred seconds: nobody published before
    ox_sim_run_for(w.r.sim, w.r.shard.config.stats_interval_ns);
    flow(&w, 0, 1);
    ox_sim_run_for(w.r.sim, 30 * OX_SEC); // as fast as was published in the last minute
    assert_in_range(w.c[0].got_count, 40, 120);
    world_fini(&w);
}

// Stalled consumers of many topics: what was read for them does not stay in memory beyond a bound, and nothing is skipped.
static void test_entries_that_nobody_takes_are_read_again(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    assert_int_equal(attach(&w, 0, "a", OX_SUB_EXCLUSIVE), OX_OK);
    w.r.shard.held_bytes = OX_HELD_BYTES_MAX;
    w.c[0].full_after = 3;
    send_all(&w, 0, 20);
    flow(&w, 0, 100);
    assert_int_equal(w.c[0].got_count, 3);
    assert_int_equal(w.r.shard.held_bytes, OX_HELD_BYTES_MAX);
    w.c[0].full_after = 0;
    ox_consumer_writable(w.c[0].consumer);
    rig_settle(&w.r);
    assert_int_equal(w.c[0].got_count, 20);
    for (int n = 0; n < 20; n++)
        assert_int_equal(w.c[0].got[n].pos.entry, n);
    w.r.shard.held_bytes = 0;
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_of_consumers_and_subscriptions),
        cmocka_unit_test(test_types_and_new_subscriptions_may_be_forbidden),
        cmocka_unit_test(test_a_reader_that_is_refused_leaves_no_subscription),
        cmocka_unit_test(test_a_consumer_may_subscribe_only_so_often),
        cmocka_unit_test(test_a_readers_start_set_cuts_its_first_batch),
        cmocka_unit_test(test_properties_are_taken_once),
        cmocka_unit_test(test_a_rate_slows_deliveries_of_every_type),
        cmocka_unit_test(test_the_end_of_a_topic_is_told_once_when_all_is_acknowledged),
        cmocka_unit_test(test_permits_have_an_upper_end),
        cmocka_unit_test(test_a_subscription_to_be_replicated_is_marked_for_good),
        cmocka_unit_test(test_rates_of_acks_and_redeliveries_over_an_interval),
        cmocka_unit_test(test_a_rate_relative_to_publishing_follows_it),
        cmocka_unit_test(test_entries_that_nobody_takes_are_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
