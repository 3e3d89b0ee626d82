// subscription_admin_test.c - what an administrator does to subscriptions, and looks at, without a consumer.
#include "broker/fixture.h"
#include "broker/peek.h"
#include "broker/subscription_admin.h"

#include <string.h>

static enum ox_err create(struct rig *r, struct ox_topic *t, const char *name, struct ox_pos from)
{
    struct ox_subscription_create o = {.name = name, .from = from};
    rig_op(r, &o.op);
    ox_subscription_create(t, &o);
    return rig_wait(r, &o.op);
}

static enum ox_err skip_some(struct rig *r, struct ox_subscription *s, uint64_t count)
{
    struct ox_subscription_skip o = {.count = count};
    rig_op(r, &o.op);
    ox_subscription_skip(s, &o);
    return rig_wait(r, &o.op);
}

// A topic with ten entries, and where the first one is.
static struct ox_topic *ten(struct rig *r, struct ox_pos *ret_first)
{
    struct rig_producer p;
    rig_init(r);
    struct ox_topic *t = rig_topic(r, "t");
    assert_int_equal(rig_produce(r, &p, t, NULL, false), OX_OK);
    for (uint64_t i = 0; i < 10; i++)
        assert_true(rig_send(&p, i, "x"));
    rig_settle(r);
    *ret_first = ox_ml_first(t->ml);
    ox_producer_close(p.producer);
    return t;
}

static struct ox_pos entry_of(struct ox_pos first, int64_t entry)
{
    return (struct ox_pos){first.ledger, entry};
}

static uint64_t backlog(struct ox_topic *t, const char *name)
{
    struct ox_subscription_stats stats;
    ox_subscription_stats(ox_subscription_find(t, name), &stats);
    return stats.backlog_entries;
}

static void test_a_subscription_begins_with_the_entry_that_was_asked_for(void **state)
{
    (void)state;
    struct rig r;
    struct ox_pos first;
    struct ox_topic *t = ten(&r, &first);
    assert_int_equal(create(&r, t, "early", OX_POS_EARLIEST), OX_OK);
    assert_int_equal(create(&r, t, "late", OX_POS_LATEST), OX_OK);
    assert_int_equal(create(&r, t, "third", entry_of(first, 3)), OX_OK);
    assert_int_equal(create(&r, t, "beyond", (struct ox_pos){first.ledger + 99, 0}), OX_OK);
    assert_int_equal(create(&r, t, "early", OX_POS_LATEST), OX_E_EXISTS);
    assert_int_equal(create(&r, t, "", OX_POS_LATEST), OX_E_INVALID);
    assert_int_equal(create(&r, t, "__compaction", OX_POS_LATEST),
                     OX_E_NOT_ALLOWED); // who deletes it would delete what compaction has left
    assert_int_equal(create(&r, t, "pulsar.dedup", OX_POS_LATEST), OX_E_NOT_ALLOWED);
    assert_int_equal(backlog(t, "early"), 10);
    assert_int_equal(backlog(t, "late"), 0);
    assert_int_equal(backlog(t, "third"), 7);
    assert_int_equal(backlog(t, "beyond"), 0);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(backlog(t, "third"), 7);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_skipped_messages_count_as_acknowledged_after_a_crash(void **state)
{
    (void)state;
    struct rig r;
    struct ox_pos first;
    struct ox_topic *t = ten(&r, &first);
    assert_int_equal(create(&r, t, "some", OX_POS_EARLIEST), OX_OK);
    assert_int_equal(create(&r, t, "all", OX_POS_EARLIEST), OX_OK);
    assert_int_equal(skip_some(&r, ox_subscription_find(t, "some"), 4), OX_OK);
    assert_int_equal(skip_some(&r, ox_subscription_find(t, "all"), UINT64_MAX), OX_OK);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(backlog(t, "some"), 6);
    assert_int_equal(backlog(t, "all"), 0);
    ox_topic_put(t);
    rig_fini(&r);
}

// The nth message that is left is counted without those that are acknowledged in between.
static void test_the_nth_message_passes_over_holes(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c;
    struct ox_pos first;
    struct ox_topic *t = ten(&r, &first);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 100), OX_OK);
    rig_settle(&r);
    for (int64_t i = 1; i < 10; i += 2)
        assert_int_equal(rig_ack(&c, false, entry_of(first, i), 0, false), OX_OK);
    struct ox_subscription *s = ox_subscription_find(t, "s");
    for (uint64_t n = 1; n <= 5; n++)
        assert_int_equal(ox_subscription_nth(s, n).entry, (int64_t)(n - 1) * 2);
    assert_int_equal(ox_subscription_nth(s, 6).entry, -1);
    assert_int_equal(ox_subscription_nth(s, 0).entry, -1);
    assert_int_equal(ox_topic_nth(t, false, 3).entry, 2);
    assert_int_equal(ox_topic_nth(t, true, 1).entry, 9);
    assert_int_equal(ox_topic_nth(t, true, 99).entry, 0);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_peeking_reads_what_is_there_and_only_that(void **state)
{
    (void)state;
    struct rig r;
    struct ox_pos first;
    struct ox_topic *t = ten(&r, &first);
    struct ox_peek peek = {.pos = entry_of(first, 7)};
    rig_op(&r, &peek.op);
    ox_topic_peek(t, &peek);
    assert_int_equal(rig_wait(&r, &peek.op), OX_OK);
    assert_true(ox_pos_equal(peek.entry.pos, entry_of(first, 7)) && peek.entry.data.len > 0);
    ox_buf_unref(&peek.entry.data);
    struct ox_peek beyond = {.pos = entry_of(first, 10)};
    rig_op(&r, &beyond.op);
    ox_topic_peek(t, &beyond);
    assert_int_equal(rig_wait(&r, &beyond.op), OX_E_NO_ENTRY);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- looking through a backlog

static enum ox_err analyze(struct rig *r, struct ox_topic *t, struct ox_backlog_analysis *o)
{
    o->name = "s";
    o->entries_max = o->entries_max ? o->entries_max : 1000;
    o->time_max_ms = 1000;
    rig_op(r, &o->op);
    ox_backlog_analyze(t, o);
    return rig_wait(r, &o->op);
}

// Ten entries; the subscription s has acknowledged 0, 1 and, behind a gap, 4.
static struct ox_topic *ten_with_holes(struct rig *r, struct rig_consumer *c, struct ox_pos *ret_first)
{
    struct ox_topic *t = ten(r, ret_first);
    assert_int_equal(rig_subscribe(r, c, t, "s", true), OX_OK);
    assert_int_equal(ox_consumer_flow(c->consumer, 100), OX_OK);
    rig_settle(r);
    for (int64_t i = 0; i < 5; i += i == 1 ? 3 : 1)
        assert_int_equal(rig_ack(c, false, entry_of(*ret_first, i), 0, false), OX_OK);
    return t;
}

static void test_an_analysis_counts_what_is_not_acknowledged(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c;
    struct ox_pos first;
    struct ox_topic *t = ten_with_holes(&r, &c, &first);
    struct ox_backlog_analysis o = {0};
    assert_int_equal(analyze(&r, t, &o), OX_OK);
    assert_int_equal(o.entries, 7);
    assert_int_equal(o.messages, 7);
    assert_int_equal(o.first.entry, 2);
    assert_int_equal(o.last.entry, 9);
    assert_false(o.aborted);
    assert_int_equal(backlog(t, "s"), 7); // nothing was consumed
    ox_topic_put(t);
    rig_fini(&r);
}

// From a position on entries in front of the mark-delete position count as well.
static void test_an_analysis_begins_where_it_is_told(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c;
    struct ox_pos first;
    struct ox_topic *t = ten_with_holes(&r, &c, &first);
    struct ox_backlog_analysis all = {.has_from = true, .from = OX_POS_EARLIEST},
                               hole = {.has_from = true, .from = entry_of(first, 4)},
                               beyond = {.has_from = true, .from = OX_POS_LATEST};
    assert_int_equal(analyze(&r, t, &all), OX_OK);
    assert_int_equal(all.entries, 9);
    assert_int_equal(all.first.entry, 0);
    assert_int_equal(analyze(&r, t, &hole), OX_OK);
    assert_int_equal(hole.entries, 5);
    assert_int_equal(hole.first.entry, 5);
    assert_int_equal(analyze(&r, t, &beyond), OX_OK);
    assert_int_equal(beyond.entries, 0);
    assert_int_equal(beyond.first.entry, -1);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_an_analysis_stops_at_its_bound_and_says_so(void **state)
{
    (void)state;
    struct rig r;
    struct rig_consumer c;
    struct ox_pos first;
    struct ox_topic *t = ten_with_holes(&r, &c, &first);
    struct ox_backlog_analysis some = {.entries_max = 3}, just = {.entries_max = 7};
    assert_int_equal(analyze(&r, t, &some), OX_OK);
    assert_int_equal(some.entries, 3);
    assert_int_equal(some.last.entry, 5);
    assert_true(some.aborted);
    assert_int_equal(analyze(&r, t, &just), OX_OK);
    assert_int_equal(just.entries, 7);
    assert_false(just.aborted);
    ox_topic_put(t);
    rig_fini(&r);
}

// More than a portion: the subscription goes while it rests.
static void test_an_analysis_ends_with_its_subscription(void **state)
{
    (void)state;
    struct rig r;
    struct ox_pos first;
    struct rig_producer p;
    struct ox_topic *t = ten(&r, &first);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    for (uint64_t i = 0; i < 250; i++)
        assert_true(rig_send(&p, i, "x"));
    rig_settle(&r);
    assert_int_equal(create(&r, t, "s", OX_POS_EARLIEST), OX_OK);
    struct ox_backlog_analysis all = {0}, o = {.name = "s", .entries_max = 1000, .time_max_ms = 1000};
    assert_int_equal(analyze(&r, t, &all), OX_OK);
    assert_int_equal(all.entries, 260);
    struct ox_unsubscribe gone = {.force = true};
    rig_op(&r, &o.op);
    rig_op(&r, &gone.op);
    ox_backlog_analyze(t, &o);
    ox_subscription_unsubscribe(ox_subscription_find(t, "s"), &gone, NULL);
    assert_int_equal(rig_wait(&r, &gone.op), OX_OK);
    assert_int_equal(rig_wait(&r, &o.op), OX_E_SUBSCRIPTION_NOT_FOUND);
    assert_int_equal(analyze(&r, t, &all), OX_E_SUBSCRIPTION_NOT_FOUND);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- marks

static enum ox_err replicate(struct rig *r, struct ox_topic *t, bool replicated)
{
    struct ox_subscription_replicate o = {.replicated = replicated};
    rig_op(r, &o.op);
    ox_subscription_replicate(ox_subscription_find(t, "s"), &o);
    return rig_wait(r, &o.op);
}

static void test_a_mark_of_replication_comes_and_goes_and_outlives_a_crash(void **state)
{
    (void)state;
    struct rig r;
    struct ox_pos first;
    struct ox_topic *t = ten(&r, &first);
    assert_int_equal(create(&r, t, "s", entry_of(first, 4)), OX_OK);
    assert_int_equal(replicate(&r, t, true), OX_OK);
    assert_int_equal(replicate(&r, t, true), OX_OK);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_true(ox_subscription_is_replicated(ox_subscription_find(t, "s")));
    assert_int_equal(replicate(&r, t, false), OX_OK);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_false(ox_subscription_is_replicated(ox_subscription_find(t, "s")));
    assert_int_equal(backlog(t, "s"), 6);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_truncating_leaves_nothing_to_anybody(void **state)
{
    (void)state;
    struct rig r;
    struct ox_pos first;
    struct ox_topic *t = ten(&r, &first);
    assert_int_equal(create(&r, t, "a", OX_POS_EARLIEST), OX_OK);
    assert_int_equal(create(&r, t, "b", entry_of(first, 5)), OX_OK);
    struct ox_topic_truncate o = {0};
    rig_op(&r, &o.op);
    ox_topic_truncate(t, &o);
    assert_int_equal(rig_wait(&r, &o.op), OX_OK);
    rig_settle(&r);
    assert_int_equal(backlog(t, "a") + backlog(t, "b"), 0);
    assert_int_equal(t->ml->total_entries, 0);
    ox_topic_put(t);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_subscription_begins_with_the_entry_that_was_asked_for),
        cmocka_unit_test(test_skipped_messages_count_as_acknowledged_after_a_crash),
        cmocka_unit_test(test_the_nth_message_passes_over_holes),
        cmocka_unit_test(test_peeking_reads_what_is_there_and_only_that),
        cmocka_unit_test(test_an_analysis_counts_what_is_not_acknowledged),
        cmocka_unit_test(test_an_analysis_begins_where_it_is_told),
        cmocka_unit_test(test_an_analysis_stops_at_its_bound_and_says_so),
        cmocka_unit_test(test_an_analysis_ends_with_its_subscription),
        cmocka_unit_test(test_a_mark_of_replication_comes_and_goes_and_outlives_a_crash),
        cmocka_unit_test(test_truncating_leaves_nothing_to_anybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
