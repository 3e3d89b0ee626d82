// shared_test.c - Shared subscriptions: who gets what, what comes again, what is held back.
#include "broker/fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct world {
    struct rig r;
    struct ox_topic *t;
    struct rig_producer p;
    struct rig_consumer c[3];
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

static enum ox_err subscribe_as(struct world *w, size_t i, enum ox_sub_type type, int32_t priority)
{
    struct rig_consumer *c = &w->c[i];
    *c = (struct rig_consumer){.rig = &w->r};
    struct ox_subscribe o = rig_subscribe_op(c, "s");
    o.from_earliest = true;
    o.type = type;
    o.priority = priority;
    rig_op(&w->r, &o.op);
    ox_subscribe(w->t, &o);
    enum ox_err err = rig_wait(&w->r, &o.op);
    c->consumer = o.consumer;
    return err;
}

static void attach(struct world *w, size_t i, int32_t priority)
{
    assert_int_equal(subscribe_as(w, i, OX_SUB_SHARED, priority), OX_OK);
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

static void send_batch(struct world *w, int32_t messages)
{
    struct ox_buf entry = rig_entry("x", 0, "batch", messages);
    struct ox_send send = {.entry = entry, .messages = (uint32_t)messages};
    assert_true(ox_producer_publish(w->p.producer, &send));
    ox_buf_unref(&entry);
    rig_settle(&w->r);
}

static void ack(struct world *w, size_t i, struct ox_pos pos)
{
    assert_int_equal(rig_ack(&w->c[i], false, pos, 0, false), OX_OK);
    rig_settle(&w->r);
}

static void ack_set(struct world *w, size_t i, uint64_t set)
{
    struct rig_consumer *c = &w->c[i];
    assert_int_equal(rig_ack(c, false, c->got[c->got_count - 1].pos, set, true), OX_OK);
}

static void redeliver(struct world *w, size_t i, const struct ox_pos *positions, size_t count)
{
    ox_consumer_redeliver(w->c[i].consumer, false, 0, positions, count);
    rig_settle(&w->r);
}

static uint64_t backlog(struct world *w)
{
    struct ox_subscription_stats stats;
    ox_subscription_stats(ox_subscription_find(w->t, "s"), &stats);
    return stats.backlog_entries;
}

static void test_entries_go_round_by_turn_and_permits(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    attach(&w, 1, 0);
    flow(&w, 0, 100);
    flow(&w, 1, 3);
    send_all(&w, 0, 10);
    assert_int_equal(w.c[0].got_count, 7);
    assert_int_equal(w.c[1].got_count, 3);
    assert_string_equal(w.c[0].got[0].payload, "m0");
    assert_string_equal(w.c[1].got[0].payload, "m1");
    assert_int_equal(w.c[1].consumer->permits, 0);
    world_fini(&w);
}

static void test_the_next_priority_gets_entries_only_when_the_first_has_no_permits(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 1);
    attach(&w, 1, 0);
    flow(&w, 0, 100);
    flow(&w, 1, 4);
    send_all(&w, 0, 6);
    assert_int_equal(w.c[1].got_count, 4);
    assert_int_equal(w.c[0].got_count, 2);
    flow(&w, 1, 100);
    send_all(&w, 6, 5);
    assert_int_equal(w.c[1].got_count, 9);
    assert_int_equal(w.c[0].got_count, 2);
    world_fini(&w);
}

static void test_what_a_leaving_consumer_had_goes_to_the_others_without_counting(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    attach(&w, 1, 0);
    flow(&w, 0, 100);
    flow(&w, 1, 100);
    send_all(&w, 0, 10);
    assert_int_equal(w.c[0].got_count, 5);
    ack(&w, 0, w.c[0].got[1].pos);
    ox_consumer_close(w.c[0].consumer);
    rig_settle(&w.r);
    assert_int_equal(w.c[1].got_count, 9);
    assert_string_equal(w.c[1].got[5].payload, "m0");
    assert_string_equal(w.c[1].got[6].payload, "m4");
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(w.c[1].got[i].redeliveries, 0);
    assert_int_equal(w.c[1].consumer->unacked, 9);
    assert_int_equal(ox_subscription_find(w.t, "s")->unacked, 9);
    world_fini(&w);
}

static void test_redelivery_is_counted_and_only_for_what_the_consumer_holds(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    attach(&w, 1, 0);
    flow(&w, 0, 100);
    flow(&w, 1, 4);
    send_all(&w, 0, 8);
    redeliver(&w, 0, (struct ox_pos[]){w.c[0].got[1].pos, w.c[1].got[0].pos, {99, 99}}, 3);
    assert_int_equal(w.c[0].got_count, 5);
    assert_int_equal(w.c[0].got[4].redeliveries, 1);
    assert_true(ox_pos_equal(w.c[0].got[4].pos, w.c[0].got[1].pos));
    redeliver(&w, 0, NULL, 0);
    assert_int_equal(w.c[0].got_count, 9);
    assert_int_equal(w.c[0].got[5].redeliveries, 1);
    assert_int_equal(w.c[0].got[6].redeliveries, 2);
    world_fini(&w);
}

// fault: P01
static void test_parts_of_a_batch_come_again_with_what_is_left(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    flow(&w, 0, 100);
    send_batch(&w, 4);
    assert_int_equal(w.c[0].consumer->unacked, 4);
    ack_set(&w, 0, 0xe);
    assert_int_equal(w.c[0].consumer->unacked, 3);
    redeliver(&w, 0, &w.c[0].got[0].pos, 1);
    assert_int_equal(w.c[0].got[1].ack_set, 0xe);
    assert_int_equal(w.c[0].got[1].redeliveries, 1);
    ack_set(&w, 0, 0xd);
    redeliver(&w, 0, &w.c[0].got[0].pos, 1);
    assert_int_equal(w.c[0].got[2].ack_set, 0xc);
    assert_int_equal(w.c[0].got[2].redeliveries, 2);
    assert_int_equal(w.c[0].consumer->permits, 100 - 4 - 3 - 2);
    ack_set(&w, 0, 0xb);
    ack_set(&w, 0, 0x7);
    assert_int_equal(w.c[0].consumer->unacked, 0);
    assert_int_equal(backlog(&w), 0);
    redeliver(&w, 0, NULL, 0);
    assert_int_equal(w.c[0].got_count, 3);
    world_fini(&w);
}

// fault: P01
static void test_without_batch_index_acks_the_whole_batch_comes_again(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.r.shard.config.batch_index_acks = false;
    attach(&w, 0, 0);
    flow(&w, 0, 100);
    send_batch(&w, 4);
    ack_set(&w, 0, 0xe);
    assert_int_equal(w.c[0].consumer->unacked, 4);
    redeliver(&w, 0, &w.c[0].got[0].pos, 1);
    assert_int_equal(w.c[0].got_count, 2);
    assert_false(w.c[0].got[1].has_set);
    world_fini(&w);
}

static void test_another_consumers_ack_frees_the_holder(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    flow(&w, 0, 100);
    send_all(&w, 0, 3);
    attach(&w, 1, 0);
    ack(&w, 1, w.c[0].got[1].pos);
    assert_int_equal(w.c[0].consumer->unacked, 2);
    ox_consumer_close(w.c[0].consumer);
    flow(&w, 1, 100);
    assert_int_equal(w.c[1].got_count, 2);
    world_fini(&w);
}

static void test_cumulative_ack_acknowledges_nothing_and_is_answered(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    flow(&w, 0, 100);
    send_all(&w, 0, 3);
    assert_int_equal(rig_ack(&w.c[0], true, w.c[0].got[2].pos, 0, false), OX_OK);
    assert_int_equal(backlog(&w), 3);
    world_fini(&w);
}

static void test_too_many_unacknowledged_hold_a_consumer_back_until_half_is_free(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.t->policies.max_unacked_per_consumer = 10;
    attach(&w, 0, 0);
    attach(&w, 1, 1);
    flow(&w, 0, 1000);
    send_all(&w, 0, 12);
    assert_int_equal(w.c[0].got_count, 10);
    assert_true(w.c[0].consumer->held_back);
    for (size_t i = 0; i < 4; i++)
        ack(&w, 0, w.c[0].got[i].pos);
    assert_int_equal(w.c[0].got_count, 10);
    ack(&w, 0, w.c[0].got[4].pos);
    assert_false(w.c[0].consumer->held_back);
    assert_int_equal(w.c[0].got_count, 12);
    world_fini(&w);
}

static void test_too_many_unacknowledged_hold_a_subscription_back_until_half_is_free(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.t->policies.max_unacked_per_subscription = 10;
    attach(&w, 0, 0);
    attach(&w, 1, 0);
    flow(&w, 0, 1000);
    flow(&w, 1, 1000);
    send_all(&w, 0, 12);
    assert_int_equal(w.c[0].got_count + w.c[1].got_count, 10);
    for (size_t i = 0; i < 4; i++)
        ack(&w, 0, w.c[0].got[i].pos);
    assert_int_equal(w.c[0].got_count + w.c[1].got_count, 10);
    ack(&w, 1, w.c[1].got[0].pos);
    assert_int_equal(w.c[0].got_count + w.c[1].got_count, 12);
    world_fini(&w);
}

static void test_a_full_connection_takes_nothing_and_the_others_go_on(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    attach(&w, 1, 0);
    flow(&w, 0, 100);
    flow(&w, 1, 5);
    w.c[0].full = true;
    send_all(&w, 0, 10);
    assert_int_equal(w.c[0].got_count, 0);
    assert_int_equal(w.c[1].got_count, 5);
    w.c[0].full = false;
    ox_consumer_writable(w.c[0].consumer);
    rig_settle(&w.r);
    assert_int_equal(w.c[0].got_count, 5);
    world_fini(&w);
}

static void test_the_last_one_to_leave_puts_all_back_in_order(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    flow(&w, 0, 4);
    send_all(&w, 0, 8);
    redeliver(&w, 0, &w.c[0].got[0].pos, 1);
    ack(&w, 0, w.c[0].got[2].pos);
    ox_consumer_close(w.c[0].consumer);
    attach(&w, 1, 0);
    flow(&w, 1, 100);
    assert_int_equal(w.c[1].got_count, 7);
    assert_string_equal(w.c[1].got[0].payload, "m0");
    assert_string_equal(w.c[1].got[2].payload, "m3");
    assert_int_equal(w.c[1].got[0].redeliveries, 0);
    world_fini(&w);
}

// fault: S08
// Entries that wait to be delivered again.
static void test_what_is_lost_while_it_waits_is_passed(void **state)
{
    (void)state;
    struct world w;
    rig_init(&w.r);
    w.r.settings.skip_unrecoverable = true;
    rig_restart(&w.r);
    w.t = rig_topic(&w.r, "t");
    assert_int_equal(rig_produce(&w.r, &w.p, w.t, NULL, false), OX_OK);
    send_all(&w, 0, 5);
    ox_topic_put(w.t);
    rig_restart(&w.r); // the tail cache is empty now
    w.t = rig_topic(&w.r, "t");
    attach(&w, 0, 0);
    w.c[0].full = true;
    flow(&w, 0, 100);
    assert_int_equal(w.c[0].got_count, 0);
    struct ox_pos lost = w.p.receipts[0].pos;
    ox_sim_store_damage(w.r.store, ox_ml_ledger(w.t->ml, lost.ledger)->where.physical, lost.entry);
    w.c[0].full = false;
    ox_consumer_writable(w.c[0].consumer);
    rig_settle(&w.r);
    assert_int_equal(w.c[0].got_count, 4);
    for (size_t i = 0; i < 4; i++)
        ack(&w, 0, w.c[0].got[i].pos);
    assert_int_equal(backlog(&w), 0);
    world_fini(&w);
}

static void test_the_type_changes_only_when_nobody_is_there(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    flow(&w, 0, 2);
    send_all(&w, 0, 4);
    assert_int_equal(subscribe_as(&w, 1, OX_SUB_EXCLUSIVE, 0), OX_E_CONSUMER_BUSY);
    w.c[0].dead = true;
    assert_int_equal(subscribe_as(&w, 1, OX_SUB_EXCLUSIVE, 0), OX_OK);
    flow(&w, 1, 100);
    assert_int_equal(w.c[1].got_count, 4);
    world_fini(&w);
}

static void test_an_ack_set_with_bits_of_messages_that_are_not_there_ends_with_the_batch(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    attach(&w, 1, 0);
    flow(&w, 0, 100);
    send_batch(&w, 3);
    ack_set(&w, 0, 0xfd); // message 1 is acknowledged
    flow(&w, 1, 100);
    ox_consumer_close(w.c[0].consumer);
    rig_settle(&w.r);
    assert_int_equal(w.c[1].got[0].ack_set, 5);
    ack_set(&w, 1, 0xf8); // and the others
    assert_int_equal(backlog(&w), 0);
    world_fini(&w);
}

// A rate in bytes cannot be known before entries are read.
static void test_what_a_rate_in_bytes_left_over_comes_before_what_is_new(void **state)
{
    (void)state;
    struct world w;
    char text[16];
    world_init(&w);
    send_all(&w, 0, 20);
    w.t->policies.subscription_dispatch = (struct ox_rate_limit){.bytes = 300, .period_s = 1};
    attach(&w, 0, 0);
    flow(&w, 0, 1000);
    assert_true(w.c[0].got_count < 20);
    send_all(&w, 20, 2);
    for (int i = 0; i < 20; i++)
        rig_settle(&w.r);
    assert_int_equal(w.c[0].got_count, 22);
    for (size_t i = 0; i < 22; i++) {
        snprintf(text, sizeof text, "m%zu", i);
        assert_string_equal(w.c[0].got[i].payload, text);
    }
    world_fini(&w);
}

// A dispatcher that is stopped is freed a moment later.
static void test_policies_that_change_start_nothing_without_a_consumer(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    attach(&w, 0, 0);
    struct ox_subscription *s = ox_subscription_find(w.t, "s");
    ox_consumer_close(w.c[0].consumer);
    for (enum ox_sub_type type = OX_SUB_EXCLUSIVE; type <= OX_SUB_KEY_SHARED; type++) {
        struct ox_dispatcher *d = ox_dispatcher_new(s, type);
        d->body->kick(d);
        d->body->free(d); // nothing of it may be on its way
    }
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_go_round_by_turn_and_permits),
        cmocka_unit_test(test_the_next_priority_gets_entries_only_when_the_first_has_no_permits),
        cmocka_unit_test(test_what_a_leaving_consumer_had_goes_to_the_others_without_counting),
        cmocka_unit_test(test_redelivery_is_counted_and_only_for_what_the_consumer_holds),
        cmocka_unit_test(test_parts_of_a_batch_come_again_with_what_is_left),
        cmocka_unit_test(test_without_batch_index_acks_the_whole_batch_comes_again),
        cmocka_unit_test(test_another_consumers_ack_frees_the_holder),
        cmocka_unit_test(test_cumulative_ack_acknowledges_nothing_and_is_answered),
        cmocka_unit_test(test_too_many_unacknowledged_hold_a_consumer_back_until_half_is_free),
        cmocka_unit_test(test_too_many_unacknowledged_hold_a_subscription_back_until_half_is_free),
        cmocka_unit_test(test_a_full_connection_takes_nothing_and_the_others_go_on),
        cmocka_unit_test(test_the_last_one_to_leave_puts_all_back_in_order),
        cmocka_unit_test(test_what_is_lost_while_it_waits_is_passed),
        cmocka_unit_test(test_the_type_changes_only_when_nobody_is_there),
        cmocka_unit_test(test_an_ack_set_with_bits_of_messages_that_are_not_there_ends_with_the_batch),
        cmocka_unit_test(test_what_a_rate_in_bytes_left_over_comes_before_what_is_new),
        cmocka_unit_test(test_policies_that_change_start_nothing_without_a_consumer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
