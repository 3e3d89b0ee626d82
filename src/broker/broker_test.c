// broker_test.c - topics, producers and consumers over a simulated world: what is promised to clients.
#include "broker/fixture.h"

#include <stdio.h>
#include <string.h>

static void flow(struct rig_consumer *c, uint32_t permits)
{
    assert_int_equal(ox_consumer_flow(c->consumer, permits), OX_OK);
    rig_settle(c->rig);
}

static void send_all(struct rig_producer *p, int first, int count)
{
    char text[16];
    for (int i = first; i < first + count; i++) {
        snprintf(text, sizeof text, "m%d", i);
        assert_true(rig_send(p, (uint64_t)i, text));
    }
    rig_settle(p->rig);
}

static void expect_got(const struct rig_consumer *c, size_t from, int first, int count)
{
    char text[16];
    assert_int_equal(c->got_count, from + (size_t)count);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "m%d", first + i);
        assert_string_equal(c->got[from + (size_t)i].payload, text);
    }
}

static void test_publish_and_consume_in_order(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_string_equal(p.producer->name, "standalone-0-0");
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    send_all(&p, 0, 10);
    assert_int_equal(p.receipt_count, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(p.receipts[i].err, OX_OK);
        assert_int_equal(p.receipts[i].sequence_id, i);
        assert_int_equal(p.receipts[i].pos.entry, i);
    }
    flow(&c, 4);
    expect_got(&c, 0, 0, 4);
    flow(&c, 100);
    expect_got(&c, 0, 0, 10);
    send_all(&p, 10, 5);
    expect_got(&c, 0, 0, 15);
    ox_topic_put(t);
    rig_fini(&r);
    assert_int_equal(p.closed, 1);
    assert_int_equal(c.closed, 1);
    assert_int_equal(c.why, OX_E_TOPIC_FENCED);
}

static void test_unacknowledged_come_again_to_the_next_consumer(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c, next;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    send_all(&p, 0, 6);
    flow(&c, 100);
    assert_int_equal(rig_ack(&c, false, c.got[0].pos, 0, false), OX_OK);
    assert_int_equal(rig_ack(&c, false, c.got[2].pos, 0, false), OX_OK);
    ox_consumer_close(c.consumer);
    assert_int_equal(rig_subscribe(&r, &next, t, "s", true), OX_OK);
    flow(&next, 100);
    assert_int_equal(next.got_count, 4);
    assert_string_equal(next.got[0].payload, "m1");
    assert_string_equal(next.got[1].payload, "m3");
    ox_consumer_redeliver(next.consumer, true, 3, NULL, 0);
    rig_settle(&r);
    assert_int_equal(next.got_count, 8);
    assert_string_equal(next.got[4].payload, "m1");
    assert_int_equal(next.got[4].epoch, 3);
    assert_int_equal(rig_ack(&next, true, next.got[7].pos, 0, false), OX_OK);
    struct ox_subscription_stats stats;
    ox_subscription_stats(next.consumer->subscription, &stats);
    assert_int_equal(stats.backlog_entries, 0);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_acknowledged_with_answer_survives_a_crash(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    send_all(&p, 0, 5);
    flow(&c, 100);
    assert_int_equal(rig_ack(&c, true, c.got[1].pos, 0, false), OX_OK);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 100);
    expect_got(&c, 0, 2, 3);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_second_exclusive_consumer_is_busy_until_the_holder_is_dead(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c, second;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_subscribe(&r, &c, t, "s", false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &second, t, "s", false), OX_E_CONSUMER_BUSY);
    c.dead = true;
    assert_int_equal(rig_subscribe(&r, &second, t, "s", false), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_producer_names_are_unique(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p, second;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", true), OX_OK);
    assert_int_equal(rig_produce(&r, &second, t, "me", true), OX_E_PRODUCER_BUSY);
    p.dead = true;
    assert_int_equal(rig_produce(&r, &second, t, "me", true), OX_OK);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_string_equal(p.producer->name, "standalone-1-0");
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_partly_acknowledged_batch_comes_again_with_what_is_left(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    struct ox_buf entry = rig_entry("x", 0, "batch", 5);
    struct ox_send send = {.entry = entry, .messages = 5};
    assert_true(ox_producer_publish(p.producer, &send));
    ox_buf_unref(&entry);
    rig_settle(&r);
    flow(&c, 1);
    assert_int_equal(c.got_count, 1);
    assert_int_equal(c.consumer->permits, -4);
    assert_int_equal(rig_ack(&c, true, c.got[0].pos, 0x18, true), OX_OK);
    ox_consumer_close(c.consumer);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 10);
    assert_int_equal(c.got_count, 1);
    assert_int_equal(c.got[0].ack_set, 0x18);
    assert_int_equal(c.consumer->permits, 8);
    assert_int_equal(rig_ack(&c, false, c.got[0].pos, 0x10, true), OX_OK);
    assert_int_equal(rig_ack(&c, false, c.got[0].pos, 0x8, true), OX_OK);
    ox_consumer_redeliver(c.consumer, false, 0, NULL, 0);
    rig_settle(&r);
    assert_int_equal(c.got_count, 1);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_seek_by_id_and_by_time(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    send_all(&p, 0, 10);
    flow(&c, 100);
    struct ox_pos fourth = c.got[3].pos;
    struct ox_subscription *s = c.consumer->subscription;
    struct ox_seek seek = {.pos = fourth};
    rig_op(&r, &seek.op);
    ox_subscription_seek(s, &seek);
    assert_int_equal(c.closed, 1);
    assert_int_equal(c.why, OX_E_CANCELED);
    assert_int_equal(rig_wait(&r, &seek.op), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 100);
    expect_got(&c, 0, 3, 7);
    seek = (struct ox_seek){.by_time = true, .time_ms = 1000 + 61};
    rig_op(&r, &seek.op);
    ox_subscription_seek(s, &seek);
    assert_int_equal(rig_wait(&r, &seek.op), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 100);
    expect_got(&c, 0, 7, 3);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_readers_start_at_an_id_and_leave_no_trace(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    send_all(&p, 0, 6);
    struct rig_consumer c = {.rig = &r};
    struct ox_subscribe o = rig_subscribe_op(&c, "reader-1");
    o.durable = false;
    o.has_start = true;
    o.start = p.receipts[2].pos;
    rig_op(&r, &o.op);
    ox_subscribe(t, &o);
    assert_int_equal(rig_wait(&r, &o.op), OX_OK);
    c.consumer = o.consumer;
    flow(&c, 100);
    expect_got(&c, 0, 2, 4);
    ox_consumer_close(c.consumer);
    rig_settle(&r);
    assert_null(ox_subscription_find(t, "reader-1"));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_unsubscribe_removes_and_begins_anew(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    send_all(&p, 0, 3);
    struct ox_unsubscribe u = {0};
    rig_op(&r, &u.op);
    ox_subscription_unsubscribe(c.consumer->subscription, &u, NULL);
    assert_int_equal(rig_wait(&r, &u.op), OX_E_SUBSCRIPTION_BUSY);
    rig_op(&r, &u.op);
    ox_subscription_unsubscribe(c.consumer->subscription, &u, c.consumer);
    assert_int_equal(rig_wait(&r, &u.op), OX_OK);
    assert_int_equal(c.closed, 1);
    assert_int_equal(c.why, OX_OK);
    assert_null(ox_subscription_find(t, "s"));
    assert_int_equal(rig_subscribe(&r, &c, t, "s", false), OX_OK);
    flow(&c, 100);
    assert_int_equal(c.got_count, 0);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_last_id_of_empty_and_of_batch(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct ox_last_id last = {0};
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    rig_op(&r, &last.op);
    ox_topic_last_id(t, &last);
    assert_int_equal(rig_wait(&r, &last.op), OX_OK);
    assert_true(ox_pos_equal(last.pos, OX_POS_EARLIEST));
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    struct ox_buf entry = rig_entry("x", 0, "batch", 5);
    struct ox_send send = {.entry = entry, .messages = 5};
    assert_true(ox_producer_publish(p.producer, &send));
    ox_buf_unref(&entry);
    rig_settle(&r);
    rig_op(&r, &last.op);
    ox_topic_last_id(t, &last);
    assert_int_equal(rig_wait(&r, &last.op), OX_OK);
    assert_int_equal(last.batch_index, 4);
    assert_true(ox_pos_equal(last.pos, p.receipts[0].pos));
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- what is sent again

static void test_resend_after_a_crash_is_stored_once(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    send_all(&p, 0, 8);
    struct ox_pos sixth = p.receipts[5].pos;
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", true), OX_OK);
    send_all(&p, 5, 5);
    assert_int_equal(p.receipt_count, 5);
    assert_true(ox_pos_equal(p.receipts[0].pos, sixth));
    assert_int_equal(t->resent, 3);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 100);
    expect_got(&c, 0, 0, 10);
    ox_topic_put(t);
    rig_fini(&r);
}

// Publish times are the producers' own: what one of them calls old may have been sent just now by another.
static void test_resend_is_found_behind_a_producer_whose_clock_is_ahead(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer me, other;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &me, t, "me", false), OX_OK);
    send_all(&me, 0, 3);
    struct ox_pos third = me.receipts[2].pos;
    assert_int_equal(rig_produce(&r, &other, t, "other", false), OX_OK);
    for (uint64_t i = 0; i < 900; i++) {
        other.receipt_count = 0;
        assert_true(rig_send(&other, i < 600 ? i : 10 * 1000 * 1000 + i, i < 600 ? "from today" : "from tomorrow"));
        rig_settle(&r);
    }
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &me, t, "me", true), OX_OK);
    send_all(&me, 2, 1);
    assert_int_equal(t->resent, 1);
    assert_true(ox_pos_equal(me.receipts[0].pos, third));
    ox_topic_put(t);
    rig_fini(&r);
}

// Between a broken connection and the next one everything may be consumed: it is kept all the same.
static void test_resend_is_found_though_all_was_consumed_meanwhile(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct ox_op roll;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    send_all(&p, 0, 3);
    struct ox_pos third = p.receipts[2].pos;
    ox_producer_lost(p.producer);
    rig_op(&r, &roll);
    ox_mledger_roll(t->ml, &roll);
    assert_int_equal(rig_wait(&r, &roll), OX_OK);
    rig_settle(&r);
    assert_int_equal(t->ml->total_entries, 3);
    assert_int_equal(rig_produce(&r, &p, t, "me", true), OX_OK);
    send_all(&p, 2, 1);
    assert_int_equal(t->resent, 1);
    assert_true(ox_pos_equal(p.receipts[0].pos, third));
    ox_topic_put(t);
    rig_fini(&r);
}

static void fail_reads(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    (void)r;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_READ)
        fault->err = OX_E_IO;
}

// The log's end could not be read when the topic was loaded, and nobody needs it for anything else: it stays until the producer is back.
static void test_resend_is_found_though_the_first_scan_failed(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    send_all(&p, 0, 3);
    struct ox_pos third = p.receipts[2].pos;
    ox_topic_put(t);
    rig_crash(&r);
    r.on_place = fail_reads;
    t = rig_topic(&r, "t");
    ox_mledger_trim(t->ml);
    rig_settle(&r);
    r.on_place = NULL;
    assert_int_equal(rig_produce(&r, &p, t, "me", true), OX_OK);
    send_all(&p, 2, 1);
    assert_int_equal(t->resent, 1);
    assert_true(ox_pos_equal(p.receipts[0].pos, third));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_other_bytes_of_the_same_sequence_are_new(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    assert_true(rig_send(&p, 0, "one"));
    rig_settle(&r);
    ox_producer_close(p.producer);
    assert_int_equal(rig_produce(&r, &p, t, "me", true), OX_OK);
    assert_true(rig_send(&p, 0, "two"));
    rig_settle(&r);
    assert_int_equal(p.receipt_count, 1);
    assert_int_equal(p.receipts[0].pos.entry, 1);
    assert_int_equal(t->resent, 0);
    ox_topic_put(t);
    rig_fini(&r);
}

static void slow_append(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                        struct ox_sim_place_fault *fault)
{
    (void)r;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_APPEND)
        fault->before_ns = OX_SEC / 2;
}

static void test_resend_while_the_original_is_in_flight_waits_for_it(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    r.on_place = slow_append;
    assert_true(rig_send(&p, 0, "m0"));
    assert_true(rig_send(&p, 1, "m1"));
    ox_producer_close(p.producer);
    assert_int_equal(rig_produce(&r, &p, t, "me", true), OX_OK);
    send_all(&p, 0, 3);
    rig_settle(&r);
    assert_int_equal(p.receipt_count, 3);
    assert_int_equal(p.receipts[1].pos.entry, 1);
    assert_int_equal(p.receipts[2].pos.entry, 2);
    assert_int_equal(t->resent, 2);
    ox_topic_put(t);
    r.on_place = NULL;
    rig_fini(&r);
}

// ---- failures

static void fail_third_append(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                              struct ox_sim_place_fault *fault)
{
    int *appends = r->ctx;
    (void)ledger;
    (void)entry;
    if (call != OX_SIM_CALL_APPEND || entry < 2 || *appends)
        return;
    *appends = 1;
    fault->err = OX_E_PLACE_FAILED;
    fault->effect = true;
}

static void test_failed_append_closes_and_the_resend_keeps_order(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    int appends = 0;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    r.ctx = &appends;
    r.on_place = fail_third_append;
    for (int i = 0; i < 6; i++) {
        char text[16];
        snprintf(text, sizeof text, "m%d", i);
        if (p.producer)
            rig_send(&p, (uint64_t)i, text);
    }
    rig_settle(&r);
    assert_int_equal(p.closed, 1);
    assert_int_equal(p.receipts[0].err, OX_OK);
    assert_int_equal(p.receipts[1].err, OX_OK);
    for (size_t i = 2; i < p.receipt_count; i++)
        assert_int_not_equal(p.receipts[i].err, OX_OK);
    ox_topic_put(t);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", true), OX_OK);
    send_all(&p, 2, 6);
    assert_int_equal(p.receipt_count, 6);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 100);
    expect_got(&c, 0, 0, 8);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_publishing_stops_at_the_limit_and_goes_on(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    r.shard.config.topic_inflight_bytes = 200;
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    r.on_place = slow_append;
    bool more = true;
    uint64_t n = 0;
    while (more)
        more = rig_send(&p, n++, "0123456789");
    assert_true(n > 2 && n < 10);
    assert_true(t->inflight_bytes > 200);
    rig_settle(&r);
    assert_int_equal(p.unblocked, 1);
    assert_int_equal(p.receipt_count, n);
    assert_int_equal(t->inflight_bytes, 0);
    assert_int_equal(r.shard.inflight_bytes, 0);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_full_connection_gets_nothing_until_it_drains(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    c.full = true;
    send_all(&p, 0, 5);
    flow(&c, 100);
    assert_int_equal(c.got_count, 0);
    c.full = false;
    ox_consumer_writable(c.consumer);
    rig_settle(&r);
    expect_got(&c, 0, 0, 5);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- life of topics

static void test_unload_tells_clients_and_the_next_user_loads(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    struct ox_op op;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "me", false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    send_all(&p, 0, 3);
    rig_op(&r, &op);
    ox_topic_unload(&r.shard, &op, "persistent://public/default/t");
    assert_int_equal(rig_topic_err(&r, "t", false), OX_OK);
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    assert_int_equal(p.closed, 1);
    assert_int_equal(c.closed, 1);
    assert_int_equal(t->state, OX_TOPIC_GONE);
    ox_topic_put(t);
    t = rig_topic(&r, "t");
    assert_int_equal(ox_map_count(&t->subscriptions), 1);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 100);
    expect_got(&c, 0, 0, 3);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_delete_refuses_used_topics_and_forgets_the_data(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct ox_topic_name name;
    struct ox_topic_delete d = {0};
    rig_init(&r);
    assert_int_equal(ox_topic_name_parse(&name, "t"), OX_OK);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    send_all(&p, 0, 3);
    ox_topic_put(t);
    rig_op(&r, &d.op);
    ox_topic_delete(&r.shard, &d, &name);
    assert_int_equal(rig_wait(&r, &d.op), OX_E_BUSY);
    d.force = true;
    rig_op(&r, &d.op);
    ox_topic_delete(&r.shard, &d, &name);
    assert_int_equal(rig_wait(&r, &d.op), OX_OK);
    assert_int_equal(p.closed, 1);
    assert_int_equal(rig_topic_err(&r, "t", false), OX_E_TOPIC_NOT_FOUND);
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static void test_topics_are_made_only_where_allowed(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(rig_topic_err(&r, "t", false), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(rig_topic_err(&r, "public/none/t", true), OX_E_NAMESPACE_NOT_FOUND);
    assert_int_equal(rig_topic_err(&r, "non-persistent://public/default/t", false), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(rig_topic_err(&r, "non-persistent://public/default/t", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "bogus://public/default/t", true), OX_E_INVALID_TOPIC_NAME);
    r.shard.config.auto_topic_creation = false;
    assert_int_equal(rig_topic_err(&r, "t", true), OX_E_TOPIC_NOT_FOUND);
    r.shard.config.auto_topic_creation = true;
    assert_int_equal(rig_topic_err(&r, "t", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "t", false), OX_OK);
    rig_fini(&r);
}

static void test_concurrent_users_share_one_load(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic_name name;
    struct ox_topic_get gets[5];
    rig_init(&r);
    assert_int_equal(ox_topic_name_parse(&name, "t"), OX_OK);
    for (size_t i = 0; i < OX_COUNT(gets); i++) {
        gets[i] = (struct ox_topic_get){.create = i > 0};
        rig_op(&r, &gets[i].op);
        ox_topic_get(&r.shard, &gets[i], &name);
    }
    for (size_t i = 0; i < OX_COUNT(gets); i++)
        assert_int_equal(rig_wait(&r, &gets[i].op), OX_OK);
    assert_int_equal(r.shard.topic_loads.value, 1);
    for (size_t i = 0; i < OX_COUNT(gets); i++) {
        assert_ptr_equal(gets[i].topic, gets[0].topic);
        ox_topic_put(gets[i].topic);
    }
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static bool cursor_nodes_fail(const char *path)
{
    return strstr(path, "/persistent/t/");
}

static void test_failed_subscription_can_be_made_later(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    r.fails = cursor_nodes_fail;
    assert_int_not_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_null(ox_subscription_find(t, "s"));
    assert_true(rig_took(&r, "subscription OPENING GONE"));
    r.fails = NULL;
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    ox_topic_put(t);
    rig_fini(&r);
}

static bool topic_nodes_fail(const char *path)
{
    return !strncmp(path, "/managed-ledgers/public/default/persistent/t", 44);
}

static void test_failed_load_can_be_tried_again(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    r.fails = topic_nodes_fail;
    assert_int_not_equal(rig_topic_err(&r, "t", true), OX_OK);
    assert_int_equal(ox_map_count(&r.shard.topics), 0);
    r.fails = NULL;
    assert_int_equal(rig_topic_err(&r, "t", true), OX_OK);
    rig_fini(&r);
}

static void test_every_state_edge_is_taken(void **state)
{
    (void)state;
    static const char *const edges[] = {
        "topic LOADING OPEN",         "topic LOADING GONE",         "topic OPEN CLOSING",
        "topic OPEN DELETING",        "topic CLOSING GONE",         "topic DELETING GONE",
        "subscription OPENING OPEN",  "subscription OPEN SEEKING",  "subscription SEEKING OPEN",
        "subscription OPEN REMOVING", "subscription REMOVING GONE", "subscription OPEN GONE",
        "shard NEW STARTING",         "shard STARTING RUNNING",     "shard RUNNING STOPPING",
        "shard STOPPING STOPPED"};
    struct rig r;
    struct rig_consumer c;
    struct ox_op op;
    struct ox_topic_delete d = {.force = true};
    struct ox_topic_name name;
    rig_init(&r);
    assert_int_equal(rig_topic_err(&r, "t", false), OX_E_TOPIC_NOT_FOUND);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_subscribe(&r, &c, t, "gone", true), OX_OK);
    struct ox_seek seek = {.pos = OX_POS_LATEST};
    rig_op(&r, &seek.op);
    ox_subscription_seek(c.consumer->subscription, &seek);
    assert_int_equal(rig_wait(&r, &seek.op), OX_OK);
    struct ox_unsubscribe u = {0};
    rig_op(&r, &u.op);
    ox_subscription_unsubscribe(ox_subscription_find(t, "gone"), &u, NULL);
    assert_int_equal(rig_wait(&r, &u.op), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "stays", true), OX_OK);
    ox_topic_put(t);
    rig_op(&r, &op);
    ox_topic_unload(&r.shard, &op, "persistent://public/default/t");
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    assert_int_equal(ox_topic_name_parse(&name, "t"), OX_OK);
    rig_op(&r, &d.op);
    ox_topic_delete(&r.shard, &d, &name);
    assert_int_equal(rig_wait(&r, &d.op), OX_OK);
    ox_topic_name_fini(&name);
    rig_stop_shard(&r);
    for (size_t i = 0; i < OX_COUNT(edges); i++)
        if (!rig_took(&r, edges[i]))
            fail_msg("the edge %s was not taken", edges[i]);
    rig_fini(&r);
}

static void test_damaged_entry_is_told_and_not_passed(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    rig_init(&r);
    r.factory.settings = r.settings;
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    send_all(&p, 0, 4);
    struct ox_pos third = p.receipts[2].pos;
    ox_topic_put(t);
    rig_crash(&r);
    ox_sim_store_damage(r.store, third.ledger, third.entry);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    flow(&c, 2);
    expect_got(&c, 0, 0, 2);
    flow(&c, 10);
    rig_settle(&r);
    expect_got(&c, 0, 0, 2);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_rollback_of_a_reader_finds_the_time(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    send_all(&p, 0, 8);
    struct rig_consumer c = {.rig = &r};
    struct ox_subscribe o = rig_subscribe_op(&c, "reader-2");
    o.durable = false;
    o.rollback_ms = ox_wall_ms(r.loop) - 1045;
    rig_op(&r, &o.op);
    ox_subscribe(t, &o);
    assert_int_equal(rig_wait(&r, &o.op), OX_OK);
    c.consumer = o.consumer;
    flow(&c, 100);
    expect_got(&c, 0, 5, 3);
    ox_topic_put(t);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_publish_and_consume_in_order),
        cmocka_unit_test(test_unacknowledged_come_again_to_the_next_consumer),
        cmocka_unit_test(test_acknowledged_with_answer_survives_a_crash),
        cmocka_unit_test(test_second_exclusive_consumer_is_busy_until_the_holder_is_dead),
        cmocka_unit_test(test_producer_names_are_unique),
        cmocka_unit_test(test_partly_acknowledged_batch_comes_again_with_what_is_left),
        cmocka_unit_test(test_seek_by_id_and_by_time),
        cmocka_unit_test(test_readers_start_at_an_id_and_leave_no_trace),
        cmocka_unit_test(test_unsubscribe_removes_and_begins_anew),
        cmocka_unit_test(test_last_id_of_empty_and_of_batch),
        cmocka_unit_test(test_resend_after_a_crash_is_stored_once),
        cmocka_unit_test(test_resend_is_found_though_all_was_consumed_meanwhile),
        cmocka_unit_test(test_resend_is_found_though_the_first_scan_failed),
        cmocka_unit_test(test_resend_is_found_behind_a_producer_whose_clock_is_ahead),
        cmocka_unit_test(test_other_bytes_of_the_same_sequence_are_new),
        cmocka_unit_test(test_resend_while_the_original_is_in_flight_waits_for_it),
        cmocka_unit_test(test_failed_append_closes_and_the_resend_keeps_order),
        cmocka_unit_test(test_publishing_stops_at_the_limit_and_goes_on),
        cmocka_unit_test(test_full_connection_gets_nothing_until_it_drains),
        cmocka_unit_test(test_unload_tells_clients_and_the_next_user_loads),
        cmocka_unit_test(test_delete_refuses_used_topics_and_forgets_the_data),
        cmocka_unit_test(test_topics_are_made_only_where_allowed),
        cmocka_unit_test(test_concurrent_users_share_one_load),
        cmocka_unit_test(test_failed_subscription_can_be_made_later),
        cmocka_unit_test(test_failed_load_can_be_tried_again),
        cmocka_unit_test(test_every_state_edge_is_taken),
        cmocka_unit_test(test_damaged_entry_is_told_and_not_passed),
        cmocka_unit_test(test_rollback_of_a_reader_finds_the_time),
    };
    return cmocka_run_group_tests_name("broker", tests, NULL, NULL);
}
