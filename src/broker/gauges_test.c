// gauges_test.c - the metrics page: whose figures it has, sums by namespace, topics that go while it is made.
#include <string.h>

#include "base/mem.h"
#include "broker/fixture.h"
#include "broker/gauges.h"

static struct rig rig;

static int setup(void **state)
{
    (void)state;
    rig_init(&rig);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_fini(&rig);
    return 0;
}

static void page_print(const struct ox_gauges *g, struct ox_str *out)
{
    static char piece[OX_METRIC_PIECE_MIN];
    struct ox_gauges_place place = {0};
    for (size_t n = ox_gauges_print(g, &place, piece, sizeof piece); n; n = ox_gauges_print(g, &place, piece, sizeof piece))
        ox_str_add(out, piece, n);
}

// The page as of now.
static struct ox_str page(void)
{
    struct ox_str out = {0};
    struct ox_gauges *g = ox_gauges_new(&rig.shard);
    while (ox_gauges_collect(g, OX_SEC))
        ;
    page_print(g, &out);
    ox_gauges_free(g);
    return out;
}

static void expect(const struct ox_str *out, const char *line, bool there)
{
    OX_CLEANUP(ox_free_ptr)
    char *whole = ox_asprintf("\n%s\n", line);
    bool found = strstr(ox_str_get(out), whole) != NULL;
    if (found != there)
        print_error("%s%s in\n%s", line, there ? " is not" : " is", ox_str_get(out));
    assert_int_equal(found, there);
}

static void end_interval(void)
{
    ox_sim_run_for(rig.sim, rig.config.stats_interval_ns + OX_SEC);
}

#define T(name) "{cluster=\"standalone\",namespace=\"public/default\",topic=\"persistent://public/default/" name "\"}"
#define S(name, sub)                                                                                 \
    "{cluster=\"standalone\",namespace=\"public/default\",topic=\"persistent://public/default/" name \
    "\",subscription=\"" sub "\"}"

static void test_topic_and_subscription_have_their_lines(void **state)
{
    (void)state;
    struct ox_topic *t = rig_topic(&rig, "t");
    struct rig_producer p = {0};
    struct rig_consumer c = {0};
    assert_int_equal(rig_produce(&rig, &p, t, "p", false), OX_OK);
    assert_int_equal(rig_subscribe(&rig, &c, t, "su\"b", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 10), OX_OK);
    for (uint64_t i = 0; i < 5; i++)
        rig_send(&p, i, "hello");
    rig_settle(&rig);
    end_interval();
    struct ox_str out = page();
    expect(&out, "pulsar_producers_count" T("t") " 1", true);
    expect(&out, "pulsar_consumers_count" T("t") " 1", true);
    expect(&out, "pulsar_in_messages_total" T("t") " 5", true);
    expect(&out, "pulsar_msg_backlog" T("t") " 5", true);
    expect(&out, "pulsar_storage_write_latency_count" T("t") " 5", true);
    expect(&out, "pulsar_entry_size_count" T("t") " 5", true);
    expect(&out, "pulsar_entry_size_le_128" T("t") " 5", true);
    expect(&out, "pulsar_subscription_back_log" S("t", "su\\\"b") " 5", true);
    expect(&out, "pulsar_out_messages_total" S("t", "su\\\"b") " 5", true);
    expect(&out, "pulsar_broker_msg_backlog{cluster=\"standalone\"} 5", true);
    expect(&out, "pulsar_topics_count{cluster=\"standalone\",namespace=\"public/default\"} 1", true);
    expect(&out, "pulsar_ml_AddEntrySucceed{cluster=\"standalone\",namespace=\"public/default/persistent\"} 5", true);
    assert_null(strstr(out.data, "pulsar_consumer_"));
    assert_null(strstr(out.data, "pulsar_producer_"));
    ox_str_fini(&out);
    ox_consumer_close(c.consumer);
    ox_producer_close(p.producer);
    ox_topic_put(t);
}

static void test_idle_topic_keeps_no_histogram(void **state)
{
    (void)state;
    struct ox_topic *t = rig_topic(&rig, "t");
    struct rig_producer p = {0};
    assert_null(t->hist);
    assert_int_equal(rig_produce(&rig, &p, t, "p", false), OX_OK);
    rig_send(&p, 0, "hello");
    rig_settle(&rig);
    assert_non_null(t->hist);
    end_interval();
    assert_non_null(t->hist);
    end_interval();
    assert_null(t->hist);
    struct ox_str out = page();
    assert_null(strstr(out.data, "pulsar_storage_write_latency"));
    ox_str_fini(&out);
    ox_producer_close(p.producer);
    ox_topic_put(t);
}

static void test_without_topics_there_are_sums_by_namespace(void **state)
{
    (void)state;
    struct ox_topic *a = rig_topic(&rig, "a"), *b = rig_topic(&rig, "b");
    struct rig_producer p = {0}, q = {0};
    struct rig_consumer c = {0};
    rig.shard.config.metrics_topics = false;
    assert_int_equal(rig_produce(&rig, &p, a, "p", false), OX_OK);
    assert_int_equal(rig_produce(&rig, &q, b, "q", false), OX_OK);
    assert_int_equal(rig_subscribe(&rig, &c, a, "s", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 10), OX_OK);
    rig_send(&p, 0, "hello");
    rig_send(&q, 0, "hello");
    rig_settle(&rig);
    struct ox_str out = page();
    expect(&out, "pulsar_producers_count{cluster=\"standalone\",namespace=\"public/default\"} 2", true);
    expect(&out, "pulsar_in_messages_total{cluster=\"standalone\",namespace=\"public/default\"} 2", true);
    expect(&out, "pulsar_out_messages_total{cluster=\"standalone\",namespace=\"public/default\"} 1", true);
    expect(&out, "pulsar_msg_backlog{cluster=\"standalone\",namespace=\"public/default\",remote_cluster=\"local\"} 1", true);
    expect(&out, "pulsar_consumer_msg_ack_rate{cluster=\"standalone\",namespace=\"public/default\"} 0", true);
    assert_null(strstr(out.data, ",topic="));
    assert_null(strstr(out.data, "pulsar_average_msg_size"));
    ox_str_fini(&out);
    ox_consumer_close(c.consumer);
    ox_producer_close(p.producer);
    ox_producer_close(q.producer);
    ox_topic_put(a);
    ox_topic_put(b);
}

static void test_partitions_are_split_into_two_labels(void **state)
{
    (void)state;
    struct ox_topic *t = rig_topic(&rig, "t"), *part = rig_topic(&rig, "u-partition-3");
    rig.shard.config.metrics_split = true;
    struct ox_str out = page();
    expect(&out, "pulsar_rate_in{cluster=\"standalone\",namespace=\"public/default\",topic=\"persistent://public/default/t\",partition=\"-1\"} 0",
           true);
    expect(&out, "pulsar_rate_in{cluster=\"standalone\",namespace=\"public/default\",topic=\"persistent://public/default/u\",partition=\"3\"} 0",
           true);
    ox_str_fini(&out);
    ox_topic_put(t);
    ox_topic_put(part);
}

static void test_consumers_and_producers_by_switch(void **state)
{
    (void)state;
    struct ox_topic *t = rig_topic(&rig, "t");
    struct rig_producer p = {0};
    struct rig_consumer c = {0};
    rig.shard.config.metrics_consumers = rig.shard.config.metrics_producers = true;
    assert_int_equal(rig_produce(&rig, &p, t, "p", false), OX_OK);
    assert_int_equal(rig_subscribe(&rig, &c, t, "s", true), OX_OK);
    struct ox_str out = page();
    assert_non_null(strstr(out.data,
                           "pulsar_consumer_available_permits{cluster=\"standalone\",namespace=\"public/"
                           "default\",topic=\"persistent://public/default/t\",subscription=\"s\",consumer_name="));
    assert_non_null(strstr(
        out.data, "pulsar_producer_msg_rate_in{cluster=\"standalone\",namespace=\"public/default\",topic=\"persistent:/"
                  "/public/default/t\",producer_name=\"p\",producer_id=\"0\"} 0\n"));
    ox_str_fini(&out);
    ox_consumer_close(c.consumer);
    ox_producer_close(p.producer);
    ox_topic_put(t);
}

// The walk is stopped after a step; the topic that is at work, or is next, goes.
static void test_topic_that_goes_in_between_is_left_out(void **state)
{
    (void)state;
    for (int steps = 1; steps < 12; steps++) {
        static const char *const names[] = {"a", "b", "c"};
        for (size_t i = 0; i < OX_COUNT(names); i++) {
            struct ox_topic *t = rig_topic(&rig, names[i]);
            struct rig_consumer c = {0};
            assert_int_equal(rig_subscribe(&rig, &c, t, "s", true), OX_OK);
            ox_consumer_close(c.consumer);
            ox_topic_put(t);
        }
        struct ox_gauges *g = ox_gauges_new(&rig.shard);
        bool more = true;
        for (int i = 0; i < steps && more; i++)
            more = ox_gauges_collect(g, 0);
        struct ox_op op;
        rig_op(&rig, &op);
        ox_topic_unload(&rig.shard, &op, "persistent://public/default/b");
        assert_int_equal(rig_wait(&rig, &op), OX_OK);
        while (more)
            more = ox_gauges_collect(g, OX_SEC);
        struct ox_str out = {0};
        page_print(g, &out);
        expect(&out, "pulsar_subscriptions_count" T("a") " 1", true);
        expect(&out, "pulsar_subscriptions_count" T("c") " 1", true);
        ox_str_fini(&out);
        ox_gauges_free(g);
    }
}

static void unload(const char *name)
{
    struct ox_op op;
    rig_op(&rig, &op);
    ox_topic_unload(&rig.shard, &op, name);
    assert_int_equal(rig_wait(&rig, &op), OX_OK);
}

static void test_topic_that_is_loaded_again_in_between_has_its_lines_once(void **state)
{
    (void)state;
    ox_topic_put(rig_topic(&rig, "a"));
    ox_topic_put(rig_topic(&rig, "b"));
    end_interval();
    struct ox_gauges *g = ox_gauges_new(&rig.shard);
    assert_true(ox_gauges_collect(g, 0));
    assert_true(ox_gauges_collect(g, 0)); // both steps of the first
    end_interval();
    unload("persistent://public/default/a");
    ox_topic_put(rig_topic(&rig, "a"));
    while (ox_gauges_collect(g, OX_SEC))
        ;
    assert_int_equal(g->topics.row_count, 2);
    ox_gauges_free(g);
}

static void test_walk_that_is_given_up_lets_its_topic_go(void **state)
{
    (void)state;
    struct ox_topic *t = rig_topic(&rig, "t");
    struct ox_gauges *g = ox_gauges_new(&rig.shard);
    uint32_t holds = t->holds;
    assert_true(ox_gauges_collect(g, 0));
    assert_int_equal(t->holds, holds + 1);
    ox_gauges_free(g);
    assert_int_equal(t->holds, holds);
    ox_topic_put(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_topic_and_subscription_have_their_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_topic_keeps_no_histogram, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_topics_there_are_sums_by_namespace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_partitions_are_split_into_two_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_consumers_and_producers_by_switch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_topic_that_goes_in_between_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_topic_that_is_loaded_again_in_between_has_its_lines_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_walk_that_is_given_up_lets_its_topic_go, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
