// producer_test.c - who may publish: exclusive producers and their epochs, names, limits and policies.
#include <string.h>

#include "broker/fixture.h"
#include "broker/policing.h"
#include "broker/topic_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

// A producer on its way in, which may have to wait.
struct door {
    struct rig_producer owner;
    struct ox_producer_open open;
    bool done;
    enum ox_err err;
    unsigned queued;
};

static void door_receipt(struct ox_producer *p, const struct ox_receipt *r)
{
    struct door *d = p->owner;
    d->owner.receipts[d->owner.receipt_count++ % OX_COUNT(d->owner.receipts)] = *r;
}

static void door_unblocked(struct ox_producer *p)
{
    ((struct door *)p->owner)->owner.unblocked++;
}

static void door_closed(struct ox_producer *p, enum ox_err err)
{
    struct door *d = p->owner;
    d->owner.closed++;
    d->owner.producer = NULL;
    d->err = err;
}

static void door_probe(struct ox_producer *p, struct ox_op *op)
{
    struct door *d = p->owner;
    ox_op_begin(op);
    if (d->owner.dead) {
        ox_producer_close(p);
        d->owner.producer = NULL;
    }
    ox_op_finish(op, d->owner.dead ? OX_E_DISCONNECTED : OX_OK);
}

static const struct ox_producer_events door_events = {
    .receipt = door_receipt, .unblocked = door_unblocked, .closed = door_closed, .probe = door_probe};

static void door_done(struct ox_op *op)
{
    struct door *d = CONTAINER_OF(op, struct door, open.op);
    d->done = true;
    d->err = op->err;
    d->owner.producer = op->err ? NULL : d->open.producer;
}

static void door_queued(struct ox_producer_open *o)
{
    CONTAINER_OF(o, struct door, open)->queued++;
}

static void door_knock(struct door *d, struct rig *r, struct ox_topic *t, enum ox_access_mode mode, int64_t epoch)
{
    const char *name = d->open.name, *subscription = d->open.initial_subscription;
    bool encrypted = d->open.encrypted;
    *d = (struct door){.owner.rig = r,
                       .open = {.name = name,
                                .user_named = name,
                                .reconnect = name,
                                .encrypted = encrypted,
                                .initial_subscription = subscription,
                                .connection = d,
                                .mode = mode,
                                .topic_epoch = epoch,
                                .events = &door_events,
                                .owner = d,
                                .queued = door_queued}};
    ox_op_init(&d->open.op, r->loop, door_done, "test.open");
    ox_producer_open(t, &d->open);
    rig_settle(r);
}

static enum ox_err door_enter(struct door *d, struct rig *r, struct ox_topic *t, enum ox_access_mode mode, int64_t epoch)
{
    door_knock(d, r, t, mode, epoch);
    assert_true(d->done);
    return d->err;
}

static void door_leave(struct door *d)
{
    ox_producer_close(d->owner.producer);
    d->owner.producer = NULL;
    rig_settle(d->owner.rig);
}

static void test_exclusive_producer_keeps_others_out(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    assert_int_equal(t->epoch, 0);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_E_PRODUCER_FENCED);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_E_PRODUCER_BUSY);
    door_leave(&a);
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_E_PRODUCER_FENCED);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_MODES, -1), OX_E_UNSUPPORTED);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_dead_exclusive_producer_gives_way(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    a.owner.dead = true;
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    assert_int_equal(t->epoch, 1);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_waiting_producers_have_their_turns_in_order(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0}, c = {0}, e = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    door_knock(&b, &r, t, OX_ACCESS_WAIT_FOR_EXCLUSIVE, -1);
    door_knock(&c, &r, t, OX_ACCESS_WAIT_FOR_EXCLUSIVE, -1);
    door_knock(&e, &r, t, OX_ACCESS_WAIT_FOR_EXCLUSIVE, -1);
    assert_true(!b.done && !c.done && !e.done && b.queued == 1 && c.queued == 1 && e.queued == 1);
    door_leave(&a);
    assert_true(b.done && !b.err && !c.done && t->epoch == 1);
    ox_producer_open_cancel(&c.open);
    rig_settle(&r);
    assert_true(c.done && c.err == OX_E_CANCELED && !e.done);
    door_leave(&b);
    assert_true(e.done && !e.err && t->epoch == 2);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_waiting_for_shared_producers_ends_with_the_last(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0}, c = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    door_knock(&b, &r, t, OX_ACCESS_WAIT_FOR_EXCLUSIVE, -1);
    assert_false(b.done);
    assert_int_equal(door_enter(&c, &r, t, OX_ACCESS_SHARED, -1), OX_E_PRODUCER_BUSY);
    door_leave(&a);
    assert_true(b.done && !b.err);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_unload_wakes_those_who_wait(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    struct ox_op op;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    door_knock(&b, &r, t, OX_ACCESS_WAIT_FOR_EXCLUSIVE, -1);
    rig_op(&r, &op);
    ox_topic_unload(&r.shard, &op, t->name.full);
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    assert_true(b.done && b.err == OX_E_TOPIC_FENCED && a.owner.closed == 1);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_fencing_throws_everybody_out(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0}, c = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    door_knock(&b, &r, t, OX_ACCESS_WAIT_FOR_EXCLUSIVE, -1);
    assert_int_equal(door_enter(&c, &r, t, OX_ACCESS_EXCLUSIVE_WITH_FENCING, -1), OX_OK);
    assert_int_equal(a.owner.closed, 1);
    assert_int_equal(a.err, OX_E_PRODUCER_FENCED);
    assert_true(b.done && b.err == OX_E_PRODUCER_FENCED);
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE_WITH_FENCING, 0), OX_E_PRODUCER_FENCED);
    assert_int_equal(c.owner.closed, 0);
    ox_topic_put(t);
    rig_fini(&r);
}

static void slow_append(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                        struct ox_sim_place_fault *fault)
{
    (void)r, (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_APPEND)
        fault->before_ns = 5 * OX_SEC;
}

static void test_fencing_reaches_those_who_are_on_their_way(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {.open.name = "a"}, b = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    r.on_place = slow_append;
    rig_send(&a.owner, 0, "m0");
    ox_producer_lost(a.owner.producer);
    door_knock(&a, &r, t, OX_ACCESS_SHARED, -1); // waits for the end of what it sent
    assert_false(a.done);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE_WITH_FENCING, -1), OX_OK);
    ox_sim_run_for(r.sim, 10 * OX_SEC);
    assert_true(a.done && a.err == OX_E_PRODUCER_FENCED && t->producers.count == 1);
    r.on_place = NULL;
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_topic_epoch_survives_a_crash(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
        door_leave(&a);
    }
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(t->epoch, 3);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE, 2), OX_E_PRODUCER_FENCED);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE, 3), OX_OK);
    assert_int_equal(t->epoch, 3);
    door_leave(&b);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    assert_int_equal(t->epoch, 4);
    ox_topic_put(t);
    rig_fini(&r);
}

static bool topic_node_fails(const char *path)
{
    return !strcmp(path, "/managed-ledgers/public/default/persistent/t");
}

static void test_topic_epoch_that_a_client_makes_up_does_not_overflow(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, INT64_MAX), OX_OK);
    door_leave(&a);
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    assert_int_equal(t->epoch, INT64_MAX);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_epoch_that_is_not_stored_is_not_told(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    r.fails = topic_node_fails;
    assert_int_not_equal(door_enter(&a, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_OK);
    assert_true(t->epoch == -1 && t->joining.count == 0);
    r.fails = NULL;
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_policies_limit_who_may_come(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    t->policies.max_producers = 1;
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_E_PRODUCER_BUSY);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_WAIT_FOR_EXCLUSIVE, -1), OX_E_PRODUCER_BUSY);
    t->policies.max_producers = 0;
    t->policies.encryption_required = true;
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_E_ENCRYPTION_REQUIRED);
    b.open.encrypted = true;
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_quota_closes_producers_and_keeps_them_out(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    rig_send(&a.owner, 0, "m0");
    rig_settle(&r);
    t->policies.quota_bytes = 1;
    t->policies.quota_bytes_policy = OX_QUOTA_HOLD;
    quota_refresh(t);
    producers_quota(t);
    assert_int_equal(a.owner.closed, 1);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_E_QUOTA_HOLD);
    t->policies.quota_bytes_policy = OX_QUOTA_EXCEPTION;
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_E_QUOTA_EXCEPTION);
    t->policies.quota_bytes = -1;
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_initial_subscription_is_made_before_the_first_message(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {.open.initial_subscription = "dlq"};
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    t->policies.auto_subscription = false;
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_E_NOT_ALLOWED);
    assert_null(ox_subscription_find(t, "dlq"));
    t->policies.auto_subscription = true;
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    assert_non_null(ox_subscription_find(t, "dlq"));
    assert_true(rig_send(&a.owner, 0, "m0"));
    rig_settle(&r);
    assert_int_equal(rig_subscribe(&r, &c, t, "dlq", false), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 10), OX_OK);
    rig_settle(&r);
    assert_int_equal(c.got_count, 1);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_initial_subscription_is_one_that_a_consumer_could_make(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {.open.initial_subscription = "pulsar.dedup"}, b = {.open.initial_subscription = "one too many"};
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_E_NOT_ALLOWED);
    assert_int_equal(ox_map_count(&t->subscriptions), 0);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    t->policies.max_subscriptions = 1;
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_E_NOT_ALLOWED);
    assert_int_equal(ox_map_count(&t->subscriptions), 1);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- sends that a policy forbids

static enum ox_err send_meta(struct door *d, uint64_t sequence, const struct ox_message_meta *meta)
{
    struct ox_buf entry = rig_entry(d->owner.producer->name, sequence, "0123456789", 0);
    struct ox_send send = {.entry = entry, .plain_len = entry.len, .messages = 1, .sequence_id = sequence, .meta = meta};
    size_t at = d->owner.receipt_count;
    ox_producer_publish(d->owner.producer, &send);
    ox_buf_unref(&entry);
    rig_settle(d->owner.rig);
    assert_int_equal(d->owner.receipt_count, at + 1);
    return d->owner.receipts[at].err;
}

static void test_sends_that_a_policy_forbids_are_refused_in_their_turn(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    t->policies.message_bytes_max = 20;
    producers_policies(t);
    struct ox_message_meta plain = {.num_messages = 1}, chunk = {.is_chunk = true, .num_chunks = 2};
    assert_int_equal(send_meta(&a, 0, &plain), OX_E_TOO_BIG);
    assert_int_equal(send_meta(&a, 1, &chunk), OX_OK);
    t->policies.message_bytes_max = 0;
    t->policies.delayed_max_ms = 5000;
    producers_policies(t);
    int64_t now = (int64_t)ox_wall_ms(r.loop);
    struct ox_message_meta soon = {.publish_time_ms = (uint64_t)now, .has_deliver_at = true, .deliver_at_ms = now + 4000},
                           late = {.publish_time_ms = (uint64_t)now, .has_deliver_at = true, .deliver_at_ms = now + 6000};
    assert_int_equal(send_meta(&a, 2, &soon), OX_OK);
    assert_int_equal(send_meta(&a, 3, &late), OX_E_NOT_ALLOWED);
    struct ox_message_meta least = {.publish_time_ms = (uint64_t)now, .has_deliver_at = true, .deliver_at_ms = INT64_MIN},
                           most = {.publish_time_ms = UINT64_MAX, .has_deliver_at = true, .deliver_at_ms = INT64_MAX};
    assert_int_equal(send_meta(&a, 3, &least), OX_OK);
    assert_int_equal(send_meta(&a, 3, &most), OX_OK);
    t->policies.delayed_max_ms = 0;
    t->policies.encryption_required = true;
    producers_policies(t);
    struct ox_message_meta secret = {.is_encrypted = true};
    assert_int_equal(send_meta(&a, 4, &plain), OX_E_ENCRYPTION_REQUIRED);
    assert_int_equal(send_meta(&a, 5, &secret), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_terminated_topic_refuses_sends_and_producers(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    struct ox_op op;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    assert_true(rig_send(&a.owner, 0, "m0"));
    rig_op(&r, &op);
    ox_mledger_terminate(t->ml, &op);
    assert_true(rig_send(&a.owner, 1, "m1"));
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    rig_settle(&r);
    assert_int_equal(a.owner.receipt_count, 2);
    assert_int_equal(a.owner.receipts[0].err, OX_OK);
    assert_int_equal(a.owner.receipts[1].err, OX_E_TOPIC_TERMINATED);
    assert_true(t->state == OX_TOPIC_OPEN && a.owner.closed == 0);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_SHARED, -1), OX_E_TOPIC_TERMINATED);
    assert_int_equal(door_enter(&b, &r, t, OX_ACCESS_EXCLUSIVE, -1), OX_E_TOPIC_TERMINATED);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_producers_of_a_topic_that_ends_are_told_to_go_before_a_send_is_refused(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0};
    struct ox_topic_terminate end = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    assert_true(rig_send(&a.owner, 0, "m0"));
    rig_op(&r, &end.op);
    ox_topic_terminate(t, &end);
    assert_true(rig_send(&a.owner, 1, "m1"));
    assert_int_equal(rig_wait(&r, &end.op), OX_OK);
    assert_int_equal(a.owner.closed, 1);
    assert_int_equal(a.owner.receipt_count, 1);
    assert_int_equal(a.owner.receipts[0].err, OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- rates

static void test_publish_rate_holds_producers_and_loses_nothing(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0}, b = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t"), *other = rig_topic(&r, "other");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    assert_int_equal(door_enter(&b, &r, other, OX_ACCESS_SHARED, -1), OX_OK);
    t->policies.publish = (struct ox_rate_limit){.messages = 10, .period_s = 1};
    producers_policies(t);
    uint64_t begin = ox_now_ns(r.loop), sent = 0;
    while (sent < 50) {
        if (!a.owner.producer->blocked)
            rig_send(&a.owner, sent++, "m");
        else
            ox_sim_run_for(r.sim, OX_MS);
    }
    uint64_t seconds = (ox_now_ns(r.loop) - begin) / OX_SEC;
    assert_in_range(seconds, 3, 4);
    for (uint64_t i = 0; i < 50; i++)
        assert_true(rig_send(&b.owner, i, "m"));
    rig_settle(&r);
    assert_int_equal(a.owner.receipt_count, 50);
    assert_int_equal(b.owner.receipt_count, 50);
    t->policies.publish.messages = 0;
    producers_policies(t);
    for (uint64_t i = 50; i < 90; i++)
        assert_true(rig_send(&a.owner, i, "m"));
    rig_settle(&r);
    ox_topic_put(t);
    ox_topic_put(other);
    rig_fini(&r);
}

static void test_broker_publish_rate_holds_all_topics(void **state)
{
    (void)state;
    struct rig r;
    struct door a = {0};
    rig_init(&r);
    r.config.publish_messages_per_s = 10;
    rig_restart(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(door_enter(&a, &r, t, OX_ACCESS_SHARED, -1), OX_OK);
    uint64_t sent = 0;
    while (sent < 100 && rig_send(&a.owner, sent++, "m"))
        ;
    assert_int_equal(sent, 10);
    rig_settle(&r);
    assert_int_equal(a.owner.unblocked, 1);
    ox_topic_put(t);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive_producer_keeps_others_out),
        cmocka_unit_test(test_dead_exclusive_producer_gives_way),
        cmocka_unit_test(test_waiting_producers_have_their_turns_in_order),
        cmocka_unit_test(test_waiting_for_shared_producers_ends_with_the_last),
        cmocka_unit_test(test_unload_wakes_those_who_wait),
        cmocka_unit_test(test_fencing_throws_everybody_out),
        cmocka_unit_test(test_fencing_reaches_those_who_are_on_their_way),
        cmocka_unit_test(test_topic_epoch_survives_a_crash),
        cmocka_unit_test(test_topic_epoch_that_a_client_makes_up_does_not_overflow),
        cmocka_unit_test(test_epoch_that_is_not_stored_is_not_told),
        cmocka_unit_test(test_policies_limit_who_may_come),
        cmocka_unit_test(test_quota_closes_producers_and_keeps_them_out),
        cmocka_unit_test(test_initial_subscription_is_made_before_the_first_message),
        cmocka_unit_test(test_initial_subscription_is_one_that_a_consumer_could_make),
        cmocka_unit_test(test_sends_that_a_policy_forbids_are_refused_in_their_turn),
        cmocka_unit_test(test_terminated_topic_refuses_sends_and_producers),
        cmocka_unit_test(test_producers_of_a_topic_that_ends_are_told_to_go_before_a_send_is_refused),
        cmocka_unit_test(test_publish_rate_holds_producers_and_loses_nothing),
        cmocka_unit_test(test_broker_publish_rate_holds_all_topics),
    };
    return cmocka_run_group_tests_name("producer", tests, NULL, NULL);
}
