// dedup_test.c - deduplication: what is a duplicate, and that nothing counts as stored that is not.
#include <stdio.h>
#include <string.h>

#include "broker/dedup.h"
#include "broker/fixture.h"
#include "broker/topic_int.h"
#include "mledger/cursor.h"
#include "wire/message_meta.h"

static void dedup_rig(struct rig *r)
{
    rig_init(r);
    r->config.policies.dedup = true;
    rig_restart(r);
}

// What one send gets: the outcome, and whether it was stored.
static struct ox_receipt send_range(struct rig_producer *p, uint64_t first, uint64_t last)
{
    char text[32];
    snprintf(text, sizeof text, "m%llu", (unsigned long long)first);
    struct ox_buf entry = rig_entry(p->producer->name, first, text, (int32_t)(last - first));
    struct ox_send send = {.entry = entry,
                           .plain_len = entry.len,
                           .messages = (uint32_t)(last - first) + 1,
                           .sequence_id = first,
                           .highest_sequence_id = last > first ? last : 0};
    size_t at = p->receipt_count;
    ox_producer_publish(p->producer, &send);
    ox_buf_unref(&entry);
    rig_settle(p->rig);
    assert_int_equal(p->receipt_count, at + 1);
    return p->receipts[at];
}

static bool stored(struct ox_receipt r)
{
    assert_int_equal(r.err, OX_OK);
    return r.pos.ledger >= 0;
}

static bool dropped(struct ox_receipt r)
{
    return r.err == OX_OK && r.pos.ledger == -1 && r.pos.entry == -1;
}

static uint64_t entries(struct ox_topic *t)
{
    return t->ml->total_entries;
}

static void test_duplicates_are_dropped_by_sequence_id(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p, q;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    assert_int_equal(ox_producer_last_sequence(p.producer), -1);
    assert_true(stored(send_range(&p, 0, 0)));
    assert_true(stored(send_range(&p, 5, 5)));
    assert_true(dropped(send_range(&p, 5, 5)));
    assert_true(dropped(send_range(&p, 3, 3)));
    assert_true(stored(send_range(&p, 6, 8)));
    assert_true(dropped(send_range(&p, 6, 8)));
    assert_int_equal(send_range(&p, 8, 10).err, OX_E_NOT_ALLOWED);
    assert_true(stored(send_range(&p, 9, 10)));
    assert_int_equal(entries(t), 4);
    assert_int_equal(ox_producer_last_sequence(p.producer), 10);
    assert_int_equal(rig_produce(&r, &q, t, "q", true), OX_OK);
    assert_true(stored(send_range(&q, 0, 0)));
    ox_topic_put(t);
    rig_fini(&r);
}

// Ids are signed in the protocol's eyes: the least one is an id like others, not "none".
static void test_least_sequence_id_is_stored_too(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    assert_true(stored(send_range(&p, UINT64_C(1) << 63, UINT64_C(1) << 63)));
    assert_true(stored(send_range(&p, 0, 0)));
    assert_int_equal(entries(t), 2);
    ox_topic_put(t);
    rig_fini(&r);
}

static void slow_append(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                        struct ox_sim_place_fault *fault)
{
    (void)r, (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_APPEND)
        fault->before_ns = OX_SEC / 2;
}

// fault: P08
static void test_duplicate_of_a_pending_send_waits_for_it(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    r.on_place = slow_append;
    rig_send(&p, 7, "m7");
    rig_send(&p, 7, "m7");
    ox_sim_run_for(r.sim, OX_SEC / 4);
    assert_int_equal(p.receipt_count, 0);
    rig_settle(&r);
    assert_int_equal(p.receipt_count, 2);
    assert_true(stored(p.receipts[0]));
    assert_true(dropped(p.receipts[1]));
    r.on_place = NULL;
    ox_topic_put(t);
    rig_fini(&r);
}

static void fail_sixth_append(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                              struct ox_sim_place_fault *fault)
{
    int *appends = r->ctx;
    (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_APPEND && ++*appends == 6)
        fault->err = OX_E_PLACE_FAILED;
}

// fault: P08
// The store refuses one of ten sends: all from it on are sent again and stored then, whatever was handed to the log before.
static void test_failed_send_is_not_a_duplicate_later(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    int appends = 0;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    r.ctx = &appends;
    r.on_place = fail_sixth_append;
    for (uint64_t i = 0; i < 10; i++)
        rig_send(&p, i, "m");
    rig_send(&p, 5, "m");
    rig_settle(&r);
    assert_int_equal(p.closed, 1);
    for (size_t i = 5; i < p.receipt_count; i++)
        assert_int_not_equal(p.receipts[i].err, OX_OK);
    r.on_place = NULL;
    ox_topic_put(t);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    assert_int_equal(ox_producer_last_sequence(p.producer), 4);
    for (uint64_t i = 5; i < 10; i++)
        assert_true(stored(send_range(&p, i, i)));
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 100), OX_OK);
    rig_settle(&r);
    assert_int_equal(c.got_count, 10);
    ox_topic_put(t);
    rig_fini(&r);
}

static void send_until(struct rig_producer *p, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        rig_send(p, i, "m");
        p->receipt_count = 0;
        if (i % 50 == 0)
            rig_settle(p->rig);
    }
    rig_settle(p->rig);
    p->receipt_count = 0;
}

// fault: P08
static void test_ids_are_learned_from_the_log_after_a_crash(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    r.shard.config.resend_ns = r.config.resend_ns = 0; // not by the bytes
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    send_until(&p, 0, 30);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    assert_int_equal(ox_producer_last_sequence(p.producer), 29);
    assert_true(dropped(send_range(&p, 29, 29)));
    assert_true(stored(send_range(&p, 30, 30)));
    assert_int_equal(entries(t), 31);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_snapshots_advance_by_count_and_by_time(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    r.shard.config.dedup_entries = r.config.dedup_entries = 100;
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    struct ox_cursor *c = ox_cursor_find(t->ml, OX_DEDUP_CURSOR);
    assert_non_null(c);
    send_until(&p, 0, 120);
    assert_in_range(c->mark_delete.entry, 99, 118);
    ox_sim_run_for(r.sim, 130 * OX_SEC);
    assert_int_equal(c->mark_delete.entry, 119);
    assert_string_equal(ox_kv_find(&c->position_properties, "p"), "119");
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    assert_int_equal(ox_producer_last_sequence(p.producer), 119);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_snapshots_let_consumed_ledgers_go(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct ox_op op;
    rig_init(&r);
    r.config.policies.dedup = true;
    r.config.resend_ns = 0;
    r.settings.trim_delay_ns = 0;
    rig_restart(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    for (uint64_t i = 0; i < 5; i++) {
        send_until(&p, i * 10, i * 10 + 10);
        rig_op(&r, &op);
        ox_mledger_roll(t->ml, &op);
        assert_int_equal(rig_wait(&r, &op), OX_OK);
    }
    assert_true(t->ml->ledger_count >= 5);
    ox_sim_run_for(r.sim, 130 * OX_SEC);
    assert_true(t->ml->ledger_count <= 2);
    assert_true(dropped(send_range(&p, 49, 49)));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_clean_close_leaves_nothing_to_read(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct ox_op op;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    send_until(&p, 0, 10);
    rig_op(&r, &op);
    ox_topic_unload(&r.shard, &op, t->name.full);
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    ox_topic_put(t);
    t = rig_topic(&r, "t");
    struct ox_cursor *c = ox_cursor_find(t->ml, OX_DEDUP_CURSOR);
    assert_string_equal(ox_kv_find(&c->position_properties, "p"), "9");
    assert_int_equal(ox_ml_count(t->ml, c->mark_delete, t->ml->last), 0);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_cursor_is_no_subscription_and_goes_with_the_policy(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    send_until(&p, 0, 10);
    assert_int_equal(ox_map_count(&t->subscriptions), 0);
    assert_non_null(ox_cursor_find(t->ml, OX_DEDUP_CURSOR));
    t->policies.dedup = false;
    producers_policies(t);
    rig_settle(&r);
    assert_null(ox_cursor_find(t->ml, OX_DEDUP_CURSOR));
    assert_true(stored(send_range(&p, 3, 3)));
    assert_int_equal(ox_producer_last_sequence(p.producer), -1);
    t->policies.dedup = true;
    producers_policies(t);
    rig_settle(&r);
    assert_true(ox_dedup_is_on(t));
    assert_true(stored(send_range(&p, 4, 4)));
    assert_true(dropped(send_range(&p, 4, 4)));
    ox_topic_put(t);
    r.config.policies.dedup = false;
    rig_restart(&r);
    t = rig_topic(&r, "t");
    rig_settle(&r);
    assert_null(ox_cursor_find(t->ml, OX_DEDUP_CURSOR));
    ox_topic_put(t);
    rig_fini(&r);
}

static void send_chunk(struct rig_producer *p, uint64_t sequence, int32_t chunk)
{
    char text[16];
    snprintf(text, sizeof text, "c%d", (int)chunk);
    struct ox_buf entry = rig_entry(p->producer->name, sequence, text, 0);
    struct ox_message_meta meta = {.is_chunk = true, .num_chunks = 3, .chunk_id = chunk, .num_messages = 1};
    struct ox_send send = {.entry = entry, .plain_len = entry.len, .messages = 1, .sequence_id = sequence, .meta = &meta};
    ox_producer_publish(p->producer, &send);
    ox_buf_unref(&entry);
    rig_settle(p->rig);
}

static bool fails_at_dedup_cursor(const char *path)
{
    return strstr(path, OX_DEDUP_CURSOR) != NULL;
}

// Its node is still there: nothing would be trimmed, and deduplication could not begin again, until the topic is loaded anew.
static void test_cursor_that_could_not_be_removed_goes_with_the_next_load(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    send_until(&p, 0, 10);
    r.config.policies.dedup = false;
    r.shard.config.policies.dedup = false;
    r.fails = fails_at_dedup_cursor;
    rig_policies(&r, "{\"deduplicationEnabled\":false}");
    assert_int_equal(p.closed, 1);
    r.fails = NULL;
    ox_topic_put(t);
    t = rig_topic(&r, "t");
    rig_settle(&r);
    assert_null(ox_cursor_find(t->ml, OX_DEDUP_CURSOR));
    rig_policies(&r, "{\"deduplicationEnabled\":true}");
    assert_true(ox_dedup_is_on(t));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_chunks_of_a_message_share_their_sequence_id(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    for (int32_t i = 0; i < 3; i++)
        send_chunk(&p, 4, i);
    assert_int_equal(entries(t), 3);
    for (int32_t i = 0; i < 3; i++)
        send_chunk(&p, 4, i);
    assert_int_equal(entries(t), 3);
    for (size_t i = 3; i < 6; i++)
        assert_true(dropped(p.receipts[i]));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_replicated_messages_count_by_their_own_producer(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "pulsar.repl.east", true), OX_OK);
    const char *names[] = {"a", "b", "a", "a"};
    const uint64_t ids[] = {7, 3, 7, 8};
    for (size_t i = 0; i < 4; i++) {
        struct ox_buf entry = rig_entry(names[i], ids[i], "m", 0);
        struct ox_message_meta meta = {
            .producer_name = {(const uint8_t *)names[i], 1}, .sequence_id = ids[i], .num_messages = 1};
        struct ox_send send = {.entry = entry, .plain_len = entry.len, .messages = 1, .sequence_id = i, .meta = &meta};
        ox_producer_publish(p.producer, &send);
        ox_buf_unref(&entry);
        rig_settle(&r);
    }
    assert_true(stored(p.receipts[0]) && stored(p.receipts[1]) && dropped(p.receipts[2]) && stored(p.receipts[3]));
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_names_beyond_the_limit_are_the_longest_idle(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    r.shard.config.dedup_names_max = r.config.dedup_names_max = 3;
    struct ox_topic *t = rig_topic(&r, "t");
    char name[2] = "a";
    for (int i = 0; i < 5; i++, name[0]++) {
        assert_int_equal(rig_produce(&r, &p, t, name, true), OX_OK);
        assert_true(stored(send_range(&p, 9, 9)));
        ox_producer_close(p.producer);
    }
    assert_int_equal(rig_produce(&r, &p, t, "e", true), OX_OK);
    assert_int_equal(ox_producer_last_sequence(p.producer), 9);
    ox_producer_close(p.producer);
    assert_int_equal(rig_produce(&r, &p, t, "a", true), OX_OK);
    assert_int_equal(ox_producer_last_sequence(p.producer), -1);
    ox_topic_put(t);
    rig_fini(&r);
}

static bool dedup_cursor_fails(const char *path)
{
    return strstr(path, OX_DEDUP_CURSOR) != NULL;
}

static void test_producers_are_put_off_until_it_has_begun(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    dedup_rig(&r);
    r.fails = dedup_cursor_fails;
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_E_TOPIC_FENCED);
    r.fails = NULL;
    ox_sim_run_for(r.sim, 3 * OX_SEC);
    assert_int_equal(rig_produce(&r, &p, t, "p", true), OX_OK);
    assert_true(stored(send_range(&p, 0, 0)));
    assert_true(dropped(send_range(&p, 0, 0)));
    ox_topic_put(t);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duplicates_are_dropped_by_sequence_id),
        cmocka_unit_test(test_least_sequence_id_is_stored_too),
        cmocka_unit_test(test_duplicate_of_a_pending_send_waits_for_it),
        cmocka_unit_test(test_failed_send_is_not_a_duplicate_later),
        cmocka_unit_test(test_ids_are_learned_from_the_log_after_a_crash),
        cmocka_unit_test(test_snapshots_advance_by_count_and_by_time),
        cmocka_unit_test(test_snapshots_let_consumed_ledgers_go),
        cmocka_unit_test(test_clean_close_leaves_nothing_to_read),
        cmocka_unit_test(test_cursor_is_no_subscription_and_goes_with_the_policy),
        cmocka_unit_test(test_cursor_that_could_not_be_removed_goes_with_the_next_load),
        cmocka_unit_test(test_chunks_of_a_message_share_their_sequence_id),
        cmocka_unit_test(test_replicated_messages_count_by_their_own_producer),
        cmocka_unit_test(test_names_beyond_the_limit_are_the_longest_idle),
        cmocka_unit_test(test_producers_are_put_off_until_it_has_begun),
    };
    return cmocka_run_group_tests_name("dedup", tests, NULL, NULL);
}
