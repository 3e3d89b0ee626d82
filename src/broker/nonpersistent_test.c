// nonpersistent_test.c - non-persistent topics: receipts at once, delivery to who can take it, drops counted, nothing kept.
#include "broker/fixture.h"

#include <string.h>

#define TOPIC "non-persistent://public/default/n"

static enum ox_err subscribe(struct rig *r, struct rig_consumer *c, struct ox_topic *t, enum ox_sub_type type,
                             const char *name)
{
    *c = (struct rig_consumer){.rig = r};
    struct ox_subscribe o = rig_subscribe_op(c, "s");
    o.type = type;
    o.name = name;
    rig_op(r, &o.op);
    ox_subscribe(t, &o);
    enum ox_err err = rig_wait(r, &o.op);
    c->consumer = o.consumer;
    return err;
}

static void flow(struct rig_consumer *c, uint32_t permits)
{
    assert_int_equal(ox_consumer_flow(c->consumer, permits), OX_OK);
}

static void send(struct rig_producer *p, uint64_t id, const char *payload)
{
    assert_true(rig_send(p, id, payload));
    rig_settle(p->rig);
}

static void test_nonpersistent_receipts_come_at_once_and_say_nothing_of_a_place(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, TOPIC);
    assert_null(t->ml);
    assert_int_equal(rig_produce(&r, &p, t, "named", true), OX_OK);
    send(&p, 7, "m");
    assert_int_equal(p.receipt_count, 1);
    assert_int_equal(p.receipts[0].err, OX_OK);
    assert_int_equal(p.receipts[0].sequence_id, 7);
    assert_int_equal(p.receipts[0].pos.ledger, 0);
    assert_int_equal(p.receipts[0].pos.entry, 0);
    assert_int_equal(t->inflight_bytes, 0);
    ox_producer_lost(p.producer);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_nonpersistent_without_permits_or_room_is_dropped_and_counted(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, TOPIC);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(subscribe(&r, &c, t, OX_SUB_EXCLUSIVE, "c"), OX_OK);
    send(&p, 0, "no permit");
    flow(&c, 2);
    send(&p, 1, "a");
    c.full = true;
    send(&p, 2, "no room");
    c.full = false;
    send(&p, 3, "b");
    send(&p, 4, "no permit");
    assert_int_equal(c.got_count, 2);
    assert_string_equal(c.got[0].payload, "a");
    assert_string_equal(c.got[1].payload, "b");
    assert_int_equal(p.receipt_count, 5);
    const struct ox_subscription *s = ox_subscription_find(t, "s");
    assert_int_equal(ox_subscription_dropped(s)->messages, 3);
    assert_int_equal(s->out.messages, 2);
    assert_int_equal(rig_ack(&c, false, c.got[0].pos, 0, false), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_nonpersistent_shared_takes_turns_among_those_that_can(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer a, b, c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, TOPIC);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(subscribe(&r, &a, t, OX_SUB_SHARED, "a"), OX_OK);
    assert_int_equal(subscribe(&r, &b, t, OX_SUB_SHARED, "b"), OX_OK);
    assert_int_equal(subscribe(&r, &c, t, OX_SUB_SHARED, "c"), OX_OK);
    flow(&a, 100);
    flow(&b, 2);
    for (uint64_t i = 0; i < 10; i++)
        send(&p, i, "m");
    assert_int_equal(a.got_count, 8);
    assert_int_equal(b.got_count, 2);
    assert_int_equal(c.got_count, 0);
    assert_int_equal(ox_subscription_dropped(a.consumer->subscription)->messages, 0);
    struct rig_consumer other;
    assert_int_equal(subscribe(&r, &other, t, OX_SUB_EXCLUSIVE, "x"), OX_E_CONSUMER_BUSY);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_nonpersistent_key_shared_gives_a_key_to_one_consumer(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer a, b;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, TOPIC);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(subscribe(&r, &a, t, OX_SUB_KEY_SHARED, "a"), OX_OK);
    assert_int_equal(subscribe(&r, &b, t, OX_SUB_KEY_SHARED, "b"), OX_OK);
    flow(&a, 200);
    flow(&b, 200);
    for (uint64_t i = 0; i < 50; i++) // without a key the producer's name and the sequence id are it
        send(&p, i, "m");
    assert_int_equal(a.got_count + b.got_count, 50);
    assert_true(a.got_count > 5 && b.got_count > 5);
    size_t before = a.got_count;
    for (uint64_t i = 0; i < 50; i++)
        send(&p, i, "m");
    assert_int_equal(a.got_count, 2 * before);
    ox_consumer_close(a.consumer);
    send(&p, 0, "m");
    ox_consumer_close(b.consumer);
    send(&p, 1, "nobody");
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_nonpersistent_failover_goes_to_the_active_one(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer a, b;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, TOPIC);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(subscribe(&r, &a, t, OX_SUB_FAILOVER, "a"), OX_OK);
    assert_int_equal(subscribe(&r, &b, t, OX_SUB_FAILOVER, "b"), OX_OK);
    flow(&a, 10);
    flow(&b, 10);
    assert_int_equal(a.active + b.active, 1);
    struct rig_consumer *active = a.active ? &a : &b, *waiting = a.active ? &b : &a;
    send(&p, 0, "m");
    assert_int_equal(active->got_count, 1);
    ox_consumer_close(active->consumer);
    assert_true(waiting->active);
    send(&p, 1, "m");
    assert_int_equal(waiting->got_count, 1);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_nonpersistent_seek_unsubscribe_unload_and_delete(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    struct ox_seek seek = {.by_time = true, .time_ms = 5};
    struct ox_unsubscribe un = {0};
    struct ox_last_id last = {0};
    struct ox_op unload;
    struct ox_topic_delete del = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, TOPIC);
    assert_int_equal(subscribe(&r, &c, t, OX_SUB_SHARED, "c"), OX_OK);
    rig_op(&r, &seek.op);
    ox_subscription_seek(c.consumer->subscription, &seek);
    assert_int_equal(rig_wait(&r, &seek.op), OX_OK);
    assert_int_equal(c.closed, 0);
    rig_op(&r, &last.op);
    ox_topic_last_id(t, &last);
    assert_int_equal(rig_wait(&r, &last.op), OX_E_UNSUPPORTED);
    rig_op(&r, &un.op);
    ox_subscription_unsubscribe(c.consumer->subscription, &un, c.consumer);
    assert_int_equal(rig_wait(&r, &un.op), OX_OK);
    assert_null(ox_subscription_find(t, "s"));
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    ox_topic_put(t);
    rig_op(&r, &unload);
    ox_topic_unload(&r.shard, &unload, TOPIC);
    assert_int_equal(rig_wait(&r, &unload), OX_OK);
    assert_int_equal(p.closed, 1);
    assert_int_equal(rig_topic_err(&r, TOPIC, false), OX_E_TOPIC_NOT_FOUND);
    t = rig_topic(&r, TOPIC);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    ox_topic_put(t);
    struct ox_topic_name name;
    assert_int_equal(ox_topic_name_parse(&name, TOPIC), OX_OK);
    rig_op(&r, &del.op);
    ox_topic_delete(&r.shard, &del, &name);
    assert_int_equal(rig_wait(&r, &del.op), OX_E_BUSY);
    del.force = true;
    rig_op(&r, &del.op);
    ox_topic_delete(&r.shard, &del, &name);
    assert_int_equal(rig_wait(&r, &del.op), OX_OK);
    assert_null(ox_topic_find(&r.shard, TOPIC));
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static void test_nonpersistent_readers_subscription_goes_with_its_consumer(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c = {.rig = &r};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, TOPIC);
    struct ox_subscribe o = rig_subscribe_op(&c, "reader");
    o.durable = false;
    rig_op(&r, &o.op);
    ox_subscribe(t, &o);
    assert_int_equal(rig_wait(&r, &o.op), OX_OK);
    ox_consumer_close(o.consumer);
    rig_settle(&r);
    assert_null(ox_subscription_find(t, "reader"));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_domains_can_be_switched_off(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    r.shard.config.non_persistent_topics = false;
    assert_int_equal(rig_topic_err(&r, TOPIC, true), OX_E_NOT_ALLOWED);
    r.shard.config.non_persistent_topics = true;
    r.shard.config.persistent_topics = false;
    assert_int_equal(rig_topic_err(&r, "t", true), OX_E_NOT_ALLOWED);
    assert_int_equal(rig_topic_err(&r, TOPIC, true), OX_OK);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nonpersistent_receipts_come_at_once_and_say_nothing_of_a_place),
        cmocka_unit_test(test_nonpersistent_without_permits_or_room_is_dropped_and_counted),
        cmocka_unit_test(test_nonpersistent_shared_takes_turns_among_those_that_can),
        cmocka_unit_test(test_nonpersistent_key_shared_gives_a_key_to_one_consumer),
        cmocka_unit_test(test_nonpersistent_failover_goes_to_the_active_one),
        cmocka_unit_test(test_nonpersistent_seek_unsubscribe_unload_and_delete),
        cmocka_unit_test(test_nonpersistent_readers_subscription_goes_with_its_consumer),
        cmocka_unit_test(test_domains_can_be_switched_off),
    };
    return cmocka_run_group_tests_name("broker.nonpersistent", tests, NULL, NULL);
}
