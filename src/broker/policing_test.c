// policing_test.c - what policies do on their own time: expiry, quotas, deletion of what nobody uses.
#include "broker/policing.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/fixture.h"
#include "broker/partitions.h"
#include "wire/message_build.h"
#include "wire/pulsar_frame.h"

#define MINUTES(n) ((n)*60 * OX_SEC)

// Sends messages that were published so long ago, with 100 bytes each.
static void send_old(struct rig_producer *p, uint64_t first, unsigned count, uint64_t age_ms)
{
    char text[100] = "x";
    for (uint64_t i = first; i < first + count; i++) {
        Oxpb__MessageMetadata meta = OXPB__MESSAGE_METADATA__INIT;
        meta.producer_name = p->producer->name;
        meta.sequence_id = i;
        meta.publish_time = ox_wall_ms(p->rig->loop) - age_ms;
        struct ox_buf entry = ox_entry_build(&meta, text, sizeof text);
        struct ox_message_view view;
        assert_int_equal(ox_message_parse(entry, true, &view), OX_OK);
        struct ox_send send = {
            .entry = view.entry, .plain_len = view.plain.len, .crc = view.checksum, .messages = 1, .sequence_id = i};
        ox_producer_publish(p->producer, &send);
        ox_buf_unref(&entry);
        rig_settle(p->rig);
    }
}

static uint64_t backlog(struct ox_topic *t, const char *subscription)
{
    return ox_cursor_backlog(ox_subscription_find(t, subscription)->cursor);
}

// A topic with a subscription without consumers, and a producer.
static struct ox_topic *subscribed(struct rig *r, struct rig_producer *p, const char *subscription)
{
    struct rig_consumer c;
    struct ox_topic *t = rig_topic(r, "t");
    assert_int_equal(rig_subscribe(r, &c, t, subscription, true), OX_OK);
    ox_consumer_close(c.consumer);
    assert_int_equal(rig_produce(r, p, t, "me", false), OX_OK);
    return t;
}

// ---- TTL

// fault: P09
static void test_ttl_keeps_what_is_not_old_however_often_it_looks(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    rig_policies(&r, "{\"message_ttl_in_seconds\":604800}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 2, 0);
    struct ox_pos mark = ox_subscription_find(t, "s")->cursor->mark_delete;
    ox_sim_run_for(r.sim, MINUTES(16));
    assert_int_equal(backlog(t, "s"), 2);
    assert_true(ox_pos_equal(ox_subscription_find(t, "s")->cursor->mark_delete, mark));
    ox_topic_put(t);
    rig_fini(&r);
}

// fault: P09
static void test_ttl_takes_all_that_is_old_at_once_past_an_empty_ledger(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    struct ox_op op;
    rig_init(&r);
    rig_policies(&r, "{\"message_ttl_in_seconds\":5}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 10, 0);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 100), OX_OK);
    rig_settle(&r);
    for (unsigned i = 0; i < 9; i += 4)
        assert_int_equal(rig_ack(&c, false, c.got[i].pos, 0, false), OX_OK);
    ox_topic_put(t);
    rig_op(&r, &op);
    ox_topic_unload(&r.shard, &op, "persistent://public/default/t");
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    t = rig_topic(&r, "t");
    assert_int_equal(backlog(t, "s"), 7);
    ox_sim_run_for(r.sim, 6 * OX_SEC);
    struct ox_topic_expire e = {.subscription = "s", .before_ms = ox_wall_ms(r.loop) - 5000};
    rig_op(&r, &e.op);
    ox_topic_expire(t, &e);
    assert_int_equal(rig_wait(&r, &e.op), OX_OK);
    assert_int_equal(e.expired, 7);
    assert_int_equal(backlog(t, "s"), 0);
    assert_int_equal(ox_subscription_find(t, "s")->expired, 7);
    ox_topic_put(t);
    rig_fini(&r);
}

// fault: P09
static void test_ttl_lets_ledgers_go(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    r.settings.ledger_entries_max = 5;
    r.settings.rollover_ns_min = 0;
    rig_restart(&r);
    rig_policies(&r, "{\"message_ttl_in_seconds\":60}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 100, 0);
    assert_true(t->ml->ledger_count > 10);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 1), OX_OK);
    rig_settle(&r);
    assert_int_equal(rig_ack(&c, false, c.got[0].pos, 0, false), OX_OK);
    ox_sim_run_for(r.sim, MINUTES(11));
    assert_int_equal(backlog(t, "s"), 0);
    assert_int_equal(ox_ml_count(t->ml, ox_subscription_find(t, "s")->cursor->mark_delete, t->ml->last), 0);
    assert_int_equal(t->ml->ledger_count, 1);
    ox_topic_put(t);
    rig_fini(&r);
}

// fault: P09
static void test_ttl_wakes_a_shared_consumer_that_holds_too_much(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c = {.rig = &r};
    rig_init(&r);
    rig_policies(&r, "{\"message_ttl_in_seconds\":60,\"max_unacked_messages_per_consumer\":10}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 20, 0);
    struct ox_subscribe o = rig_subscribe_op(&c, "s");
    o.type = OX_SUB_SHARED;
    rig_op(&r, &o.op);
    ox_subscribe(t, &o);
    assert_int_equal(rig_wait(&r, &o.op), OX_OK);
    assert_int_equal(ox_consumer_flow(o.consumer, 200), OX_OK);
    rig_settle(&r);
    size_t got = c.got_count;
    assert_true(got >= 10 && got < 20);
    ox_sim_run_for(r.sim, MINUTES(11));
    assert_int_equal(backlog(t, "s"), 0);
    send_old(&p, 20, 1, 0);
    assert_int_equal(c.got_count, got + 1);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_ttl_reaches_many_topics(void **state)
{
    (void)state;
    enum { N = 300 };
    struct rig r;
    static struct ox_topic *t[N];
    rig_init(&r);
    rig_policies(&r, "{\"message_ttl_in_seconds\":5}");
    for (unsigned i = 0; i < N; i++) {
        struct rig_consumer c;
        struct rig_producer p;
        char name[32];
        snprintf(name, sizeof name, "t%u", i);
        t[i] = rig_topic(&r, name);
        assert_int_equal(rig_subscribe(&r, &c, t[i], "s", true), OX_OK);
        ox_consumer_close(c.consumer);
        assert_int_equal(rig_produce(&r, &p, t[i], "me", false), OX_OK);
        send_old(&p, 0, 1, 60000);
        ox_producer_close(p.producer);
    }
    ox_sim_run_for(r.sim, MINUTES(6));
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(backlog(t[i], "s"), 0);
        ox_topic_put(t[i]);
    }
    rig_fini(&r);
}

// ---- quotas

static void test_quota_holds_producers_until_there_is_room(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p, q;
    struct rig_consumer c;
    rig_init(&r);
    rig_policies(&r, "{\"backlog_quota_map\":{\"destination_storage\":{\"limit\":1000,\"limitSize\":1000,\"policy\":"
                     "\"producer_request_hold\"}}}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 20, 0);
    ox_sim_run_for(r.sim, MINUTES(2));
    assert_int_equal(p.closed, 1);
    assert_int_equal(rig_produce(&r, &q, t, "you", false), OX_E_QUOTA_HOLD);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 100), OX_OK);
    rig_settle(&r);
    assert_int_equal(rig_ack(&c, true, t->ml->last, 0, false), OX_OK);
    assert_int_equal(rig_produce(&r, &q, t, "you", false), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_quota_of_age_refuses_producers(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p, q;
    rig_init(&r);
    rig_policies(&r, "{\"backlog_quota_map\":{\"message_age\":{\"limitTime\":100,\"policy\":\"producer_exception\"}}}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 1, 0);
    ox_sim_run_for(r.sim, 62 * OX_SEC);
    assert_int_equal(p.closed, 0);
    ox_sim_run_for(r.sim, MINUTES(2));
    assert_int_equal(p.closed, 1);
    assert_int_equal(rig_produce(&r, &q, t, "you", false), OX_E_QUOTA_EXCEPTION);
    rig_policies(&r, "{\"backlog_quota_map\":{}}");
    assert_int_equal(rig_produce(&r, &q, t, "you", false), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_quota_evicts_the_oldest(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    rig_policies(&r, "{\"backlog_quota_map\":{\"destination_storage\":{\"limitSize\":1000,\"policy\":\"consumer_"
                     "backlog_eviction\"}}}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 20, 0);
    ox_sim_run_for(r.sim, MINUTES(2));
    assert_int_equal(p.closed, 0);
    uint64_t left = backlog(t, "s");
    assert_true(left > 0 && left * 100 < 1000);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_quota_of_age_evicts_what_is_old(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    rig_policies(
        &r, "{\"backlog_quota_map\":{\"message_age\":{\"limitTime\":3600,\"policy\":\"consumer_backlog_eviction\"}}}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 5, 7200000);
    send_old(&p, 5, 3, 0);
    ox_sim_run_for(r.sim, MINUTES(2));
    assert_int_equal(backlog(t, "s"), 3);
    ox_topic_put(t);
    rig_fini(&r);
}

// Pulsar's 0 is no limit, not an age at which everything goes.
static void test_quota_of_age_zero_evicts_nothing(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    rig_policies(
        &r, "{\"backlog_quota_map\":{\"message_age\":{\"limitTime\":0,\"policy\":\"consumer_backlog_eviction\"}}}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 5, 7200000);
    ox_sim_run_for(r.sim, MINUTES(2));
    assert_int_equal(backlog(t, "s"), 5);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- what nobody uses

#define DELETE_UNUSED                                                                            \
    "\"inactive_topic_policies\":{\"inactiveTopicDeleteMode\":\"delete_when_no_subscriptions\"," \
    "\"maxInactiveDurationSeconds\":60,\"deleteWhileInactive\":true}"

static bool loaded(struct rig *r)
{
    return ox_topic_find(&r->shard, "persistent://public/default/t");
}

static void test_inactive_topic_is_deleted(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    rig_policies(&r, "{" DELETE_UNUSED "}");
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    send_old(&p, 0, 1, 0);
    ox_sim_run_for(r.sim, MINUTES(3));
    assert_true(loaded(&r));
    ox_producer_close(p.producer);
    ox_topic_put(t);
    ox_sim_run_for(r.sim, MINUTES(3));
    assert_false(loaded(&r));
    assert_int_equal(rig_topic_err(&r, "t", false), OX_E_TOPIC_NOT_FOUND);
    rig_fini(&r);
}

static void test_inactive_topic_stays_with_a_subscription_or_retention(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    rig_policies(&r, "{" DELETE_UNUSED "}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    ox_producer_close(p.producer);
    ox_topic_put(t);
    ox_sim_run_for(r.sim, MINUTES(5));
    assert_true(loaded(&r));
    rig_fini(&r);
    rig_init(&r);
    rig_policies(&r,
                 "{" DELETE_UNUSED ",\"retention_policies\":{\"retentionTimeInMinutes\":-1,\"retentionSizeInMB\":-1}}");
    ox_topic_put(rig_topic(&r, "t"));
    ox_sim_run_for(r.sim, MINUTES(5));
    assert_true(loaded(&r));
    rig_policies(&r, "{\"retention_policies\":{\"retentionTimeInMinutes\":10,\"retentionSizeInMB\":-1}}");
    ox_sim_run_for(r.sim, MINUTES(4));
    assert_true(loaded(&r));
    ox_sim_run_for(r.sim, MINUTES(3));
    assert_false(loaded(&r));
    rig_fini(&r);
}

static void test_inactive_topic_is_deleted_once_it_is_consumed(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    rig_policies(&r, "{\"inactive_topic_policies\":{\"inactiveTopicDeleteMode\":\"delete_when_subscriptions_caught_"
                     "up\",\"maxInactiveDurationSeconds\":60,\"deleteWhileInactive\":true}}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 1, 0);
    ox_producer_close(p.producer);
    ox_sim_run_for(r.sim, MINUTES(5));
    assert_true(loaded(&r));
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_int_equal(rig_ack(&c, true, t->ml->last, 0, false), OX_OK);
    ox_sim_run_for(r.sim, MINUTES(5));
    assert_true(loaded(&r));
    ox_consumer_close(c.consumer);
    ox_topic_put(t);
    ox_sim_run_for(r.sim, MINUTES(3));
    assert_false(loaded(&r));
    rig_fini(&r);
}

static void test_inactive_partitions_take_their_count_with_them(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic_name name;
    struct ox_partitions_create make = {.partitions = 2};
    struct ox_partitions_get count = {0};
    rig_init(&r);
    r.config.inactive_partitions = r.config.policies.inactive_delete = true;
    rig_restart(&r);
    assert_int_equal(ox_topic_name_parse(&name, "t"), OX_OK);
    rig_op(&r, &make.op);
    ox_partitions_create(&r.shard, &make, &name);
    assert_int_equal(rig_wait(&r, &make.op), OX_OK);
    ox_topic_put(rig_topic(&r, "t-partition-0"));
    ox_sim_run_for(r.sim, MINUTES(3));
    rig_op(&r, &count.op);
    ox_partitions_get(&r.shard, &count, &name);
    assert_int_equal(rig_wait(&r, &count.op), OX_OK);
    assert_int_equal(count.partitions, 2);
    ox_topic_put(rig_topic(&r, "t-partition-1"));
    ox_sim_run_for(r.sim, MINUTES(3));
    rig_op(&r, &count.op);
    ox_partitions_get(&r.shard, &count, &name);
    assert_int_equal(rig_wait(&r, &count.op), OX_E_TOPIC_NOT_FOUND);
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static void test_inactive_subscription_is_deleted(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    rig_policies(&r, "{\"subscription_expiration_time_minutes\":12,\"message_ttl_in_seconds\":1}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    assert_int_equal(rig_subscribe(&r, &c, t, "used", true), OX_OK);
    send_old(&p, 0, 1, 0);
    ox_sim_run_for(r.sim, MINUTES(9));
    assert_non_null(ox_subscription_find(t, "s"));
    ox_sim_run_for(r.sim, MINUTES(10));
    assert_null(ox_subscription_find(t, "s"));
    assert_non_null(ox_subscription_find(t, "used"));
    ox_topic_put(t);
    rig_fini(&r);
}

// What its consumer did is known as of its last acknowledgement only: after a crash it has the whole time to come back.
static void test_inactive_subscription_is_one_that_was_seen_to_be_unused(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c;
    rig_init(&r);
    rig_policies(&r, "{\"subscription_expiration_time_minutes\":12}");
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    ox_sim_run_for(r.sim, MINUTES(30));
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    ox_sim_run_for(r.sim, MINUTES(9));
    assert_non_null(ox_subscription_find(t, "s"));
    ox_sim_run_for(r.sim, MINUTES(10));
    assert_null(ox_subscription_find(t, "s"));
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- changes at a bad time

// Calls topic_policies_changed some turns of the ready queue from now.
struct hops {
    struct ox_op op;
    struct ox_topic *topic;
    unsigned left;
};

static void hops_done(struct ox_op *op)
{
    struct hops *h = CONTAINER_OF(op, struct hops, op);
    if (h->left--) {
        ox_op_begin(op);
        ox_op_finish(op, OX_OK);
    } else if (h->topic->state != OX_TOPIC_GONE) {
        topic_policies_changed(h->topic);
    }
}

static void change_after(struct rig *r, unsigned hops, bool unload)
{
    struct rig_consumer c;
    struct ox_topic *t = rig_topic(r, "t");
    struct hops h = {.topic = t, .left = hops};
    struct ox_op op;
    struct ox_unsubscribe un = {0};
    assert_int_equal(rig_subscribe(r, &c, t, "s", true), OX_OK);
    ox_consumer_close(c.consumer);
    rig_op(r, &op);
    rig_op(r, &un.op);
    if (unload)
        ox_topic_unload(&r->shard, &op, t->name.full);
    else
        ox_subscription_unsubscribe(ox_subscription_find(t, "s"), &un, NULL);
    ox_op_init(&h.op, r->loop, hops_done, "test.hops");
    ox_op_begin(&h.op);
    ox_op_finish(&h.op, OX_OK);
    assert_int_equal(rig_wait(r, unload ? &op : &un.op), OX_OK);
    rig_settle(r);
    ox_topic_put(t);
}

static void test_policies_that_change_while_a_dispatcher_ends_disturb_nobody(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    for (unsigned hops = 0; hops < 40; hops++) {
        change_after(&r, hops, true);
        change_after(&r, hops, false);
    }
    rig_fini(&r);
}

// ---- how many topics

static void test_namespace_takes_no_more_topics_than_it_may_have(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic_name name;
    struct ox_partitions_create make = {.partitions = 2};
    rig_init(&r);
    rig_policies(&r, "{\"max_topics_per_namespace\":3}");
    ox_topic_put(rig_topic(&r, "a"));
    ox_topic_put(rig_topic(&r, "b"));
    ox_topic_put(rig_topic(&r, "__system"));
    assert_int_equal(ox_topic_name_parse(&name, "c"), OX_OK);
    rig_op(&r, &make.op);
    ox_partitions_create(&r.shard, &make, &name);
    assert_int_equal(rig_wait(&r, &make.op), OX_E_NOT_ALLOWED);
    ox_topic_name_fini(&name);
    ox_topic_put(rig_topic(&r, "c"));
    assert_int_equal(rig_topic_err(&r, "d", true), OX_E_NOT_ALLOWED);
    rig_restart(&r);
    ox_topic_put(rig_topic(&r, "c"));
    assert_int_equal(rig_topic_err(&r, "d", false), OX_E_TOPIC_NOT_FOUND);
    rig_fini(&r);
}
// ---- settings that change

static void settings_changed(struct rig *r, const struct ox_broker_config *before)
{
    ox_shard_settings_changed(&r->shard, before);
    rig_settle(r);
}

static void test_settings_of_policies_reach_loaded_topics(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = subscribed(&r, &p, "s");
    struct ox_broker_config before = r.shard.config;
    r.shard.config.policies.ttl_s = 77;
    r.shard.config.policies.publish.messages = 10;
    r.factory.settings.retention_bytes = 4711;
    settings_changed(&r, &before);
    assert_int_equal(t->policies.ttl_s, 77);
    assert_int_equal(t->policies.retention_bytes, 4711);
    assert_non_null(t->limits);
    rig_policies(&r, "{\"message_ttl_in_seconds\":5}"); // a policy is stronger, before and after
    rig_settle(&r);
    r.shard.config.policies.ttl_s = 99;
    r.shard.config.policies.publish.messages = 0;
    settings_changed(&r, &before);
    assert_int_equal(t->policies.ttl_s, 5);
    assert_null(t->limits);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_settings_of_rounds_count_from_now_on(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    rig_policies(&r, "{\"message_ttl_in_seconds\":5}");
    struct ox_topic *t = subscribed(&r, &p, "s");
    send_old(&p, 0, 2, 60000);
    ox_sim_run_for(r.sim, 10 * OX_SEC);
    assert_int_equal(backlog(t, "s"), 2); // the next round is minutes away
    struct ox_broker_config before = r.shard.config;
    r.shard.config.ttl_check_ns = OX_SEC;
    r.shard.config.quota_check_ns = 0;
    settings_changed(&r, &before);
    ox_sim_run_for(r.sim, 2 * OX_SEC);
    assert_int_equal(backlog(t, "s"), 0);
    assert_false(ox_timer_started(&r.shard.policing->rounds[POLICING_QUOTA].timer));
    before = r.shard.config;
    r.shard.config.quota_check_ns = OX_SEC;
    settings_changed(&r, &before);
    assert_true(ox_timer_started(&r.shard.policing->rounds[POLICING_QUOTA].timer));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_settings_of_rates_wake_who_waits(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = subscribed(&r, &p, "s");
    struct ox_broker_config before = r.shard.config;
    r.shard.config.publish_messages_per_s = 0.001;
    settings_changed(&r, &before);
    assert_true(r.shard.publish_limited);
    send_old(&p, 0, 3, 0);
    assert_true(p.producer->blocked);
    r.shard.config.publish_messages_per_s = 0;
    settings_changed(&r, &before);
    assert_false(p.producer->blocked);
    ox_topic_put(t);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ttl_keeps_what_is_not_old_however_often_it_looks),
        cmocka_unit_test(test_ttl_takes_all_that_is_old_at_once_past_an_empty_ledger),
        cmocka_unit_test(test_ttl_lets_ledgers_go),
        cmocka_unit_test(test_ttl_wakes_a_shared_consumer_that_holds_too_much),
        cmocka_unit_test(test_ttl_reaches_many_topics),
        cmocka_unit_test(test_quota_holds_producers_until_there_is_room),
        cmocka_unit_test(test_quota_of_age_refuses_producers),
        cmocka_unit_test(test_quota_evicts_the_oldest),
        cmocka_unit_test(test_quota_of_age_evicts_what_is_old),
        cmocka_unit_test(test_quota_of_age_zero_evicts_nothing),
        cmocka_unit_test(test_inactive_topic_is_deleted),
        cmocka_unit_test(test_inactive_topic_stays_with_a_subscription_or_retention),
        cmocka_unit_test(test_inactive_topic_is_deleted_once_it_is_consumed),
        cmocka_unit_test(test_inactive_partitions_take_their_count_with_them),
        cmocka_unit_test(test_inactive_subscription_is_deleted),
        cmocka_unit_test(test_inactive_subscription_is_one_that_was_seen_to_be_unused),
        cmocka_unit_test(test_policies_that_change_while_a_dispatcher_ends_disturb_nobody),
        cmocka_unit_test(test_namespace_takes_no_more_topics_than_it_may_have),
        cmocka_unit_test(test_settings_of_policies_reach_loaded_topics),
        cmocka_unit_test(test_settings_of_rounds_count_from_now_on),
        cmocka_unit_test(test_settings_of_rates_wake_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
