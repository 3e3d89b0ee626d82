// read_test.c - reads across ledgers, lost and damaged storage (trap S08), cursors that point nowhere (trap S07), handles.
#include "mledger/fixture.h"

#include <stdio.h>
#include <string.h>

#define NAME "public/default/persistent/x"
#define NODE "/managed-ledgers/" NAME

struct read_rig {
    struct world w;
    struct ox_mledger *ml;
    struct ox_cursor *cursor;
};

// Three ledgers of five entries, 0 to 14, then an empty current one. Nothing is in the cache.
static void rig_init(struct read_rig *r, bool skip)
{
    world_init(&r->w, 1);
    r->w.settings.skip_unrecoverable = skip;
    world_stop(&r->w);
    world_start(&r->w);
    r->ml = world_open(&r->w, NAME);
    r->cursor = world_cursor(&r->w, r->ml, "keep", OX_POS_EARLIEST);
    for (int i = 0; i < 3; i++) {
        world_fill(&r->w, r->ml, 5 * i, 5);
        assert_int_equal(world_roll(&r->w, r->ml), OX_OK);
    }
}

// Restarts the process, so that handles and cache are gone.
static void rig_restart(struct read_rig *r)
{
    assert_int_equal(world_close(&r->w, r->ml), OX_OK);
    world_settle(&r->w);
    world_stop(&r->w);
    world_start(&r->w);
    r->ml = world_open(&r->w, NAME);
    r->cursor = ox_cursor_find(r->ml, "keep");
}

static int64_t rig_id(struct read_rig *r, size_t i)
{
    return r->ml->ledgers[i]->where.id;
}

static void rig_expect(struct read_rig *r, const char *want)
{
    char *got = world_read_all(&r->w, r->ml, OX_POS_EARLIEST);
    assert_string_equal(got, want);
    ox_free(got);
}

static void rig_fini(struct read_rig *r)
{
    world_close(&r->w, r->ml);
    world_fini(&r->w);
}

// ---- another place than the active one -----------------------------------------------------------------------------------

static void other_is_slow(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                          struct ox_sim_place_fault *fault)
{
    (void)ledger, (void)entry;
    bool slow = call == OX_SIM_CALL_OPEN ? w->ctx == w : call == OX_SIM_CALL_READ;
    fault->before_ns = slow ? 20 * OX_SEC : 0;
}

static enum ox_err read_one(struct read_rig *r, uint64_t *ret_ns)
{
    struct ox_ml_read read = {.from = OX_POS_EARLIEST, .entries_max = 1, .bytes_max = 1};
    uint64_t begun = ox_now_ns(r->w.loop);
    world_op(&r->w, &read.op);
    ox_mledger_read(r->ml, &read);
    enum ox_err err = world_wait(&r->w, &read.op);
    *ret_ns = ox_now_ns(r->w.loop) - begun;
    ox_ml_read_fini(&read);
    return err;
}

// A place on its way out that does not answer ends the read in time; late answers do no harm, however many there are, and whatever becomes of ledger and log.
static void check_slow_place(bool opens, bool trimmed)
{
    struct read_rig r = {0};
    uint64_t took;
    world_init_two(&r.w, 1);
    r.ml = world_open(&r.w, NAME);
    r.cursor = world_cursor(&r.w, r.ml, "keep", OX_POS_EARLIEST);
    world_fill(&r.w, r.ml, 0, 5);
    ox_router_activate(&r.w.router, 1);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    world_settle(&r.w);
    struct ox_ml_ledger *old = r.ml->ledgers[0];
    assert_int_equal(old->where.place, 0);
    ox_tail_cache_drop_ledger(&r.w.factory.cache, old->where.id);
    if (opens)
        ml_handle_release(old);
    else if (!old->handle)
        assert_int_equal(read_one(&r, &took), OX_OK);
    r.w.ctx = opens ? &r.w : NULL;
    r.w.on_place = other_is_slow;
    for (uint32_t i = 1; i <= 2 * ML_LATE_MAX; i++) {
        r.w.factory.settings.away_read_ns = OX_SEC;
        assert_int_equal(read_one(&r, &took), OX_E_TIMEOUT);
        assert_in_range(took, OX_SEC, OX_SEC + 10 * OX_MS);
        assert_int_equal(old->late, OX_MIN(i, (uint32_t)ML_LATE_MAX));
    }
    r.w.on_place = NULL;
    if (trimmed) {
        assert_int_equal(world_ack_upto(&r.w, r.cursor, (struct ox_pos){old->where.id, 4}), OX_OK);
        ox_mledger_trim(r.ml);
        world_settle(&r.w);
        assert_int_equal(r.ml->ledger_count, 1);
    } else {
        world_sleep(&r.w, 30 * OX_SEC);
        assert_int_equal(old->late, 0);
        assert_int_equal(old->pins, 0);
        rig_expect(&r, "0 1 2 3 4");
    }
    rig_fini(&r);
}

static void test_read_of_a_place_that_does_not_answer_ends_in_time(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        check_slow_place(i & 1, i & 2);
}

static void test_read_from_cache_and_from_ledgers_is_the_same(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, false);
    rig_expect(&r, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14");
    assert_true(r.w.factory.cache.hits >= 15);
    rig_restart(&r);
    rig_expect(&r, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14");
    assert_int_equal(r.w.factory.cache.hits, 0);
    rig_fini(&r);
}

static void test_read_stops_at_its_limits(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, false);
    for (int restarted = 0; restarted < 2; restarted++) {
        struct ox_ml_read read = {.from = {rig_id(&r, 0), 1}, .entries_max = 3, .bytes_max = 100};
        world_op(&r.w, &read.op);
        ox_mledger_read(r.ml, &read);
        assert_int_equal(world_wait(&r.w, &read.op), OX_OK);
        assert_int_equal(read.count, 3);
        assert_int_equal(read.next.entry, 4);
        ox_ml_read_fini(&read);
        read.bytes_max = 0; // one comes all the same
        ox_mledger_read(r.ml, &read);
        assert_int_equal(world_wait(&r.w, &read.op), OX_OK);
        assert_int_equal(read.count, 1);
        ox_ml_read_fini(&read);
        if (!restarted)
            rig_restart(&r);
    }
    rig_fini(&r);
}

static void test_read_at_the_end_has_no_entry(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, false);
    struct ox_ml_read read = {.from = ox_ml_next(r.ml, r.ml->last), .entries_max = 3, .bytes_max = 100};
    world_op(&r.w, &read.op);
    ox_mledger_read(r.ml, &read);
    assert_int_equal(world_wait(&r.w, &read.op), OX_E_NO_ENTRY);
    rig_fini(&r);
}

static void test_read_lost_ledger_is_an_error_unless_skipping_is_on(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, false);
    rig_restart(&r);
    assert_true(ox_sim_store_lose(r.w.store, rig_id(&r, 1)));
    rig_expect(&r, "0 1 2 3 4<NO_LEDGER>");
    assert_int_equal(r.w.factory.lost_entries.value, 0);
    rig_fini(&r);
}

// The next entries that a cursor gives, as text.
static char *cursor_texts(struct read_rig *r, size_t count)
{
    struct ox_str out = {0};
    while (count > 0) {
        struct ox_cursor_read read = {.entries_max = (uint32_t)count, .bytes_max = 1000};
        world_op(&r->w, &read.op);
        ox_cursor_read(r->cursor, &read);
        enum ox_err err = world_wait(&r->w, &read.op);
        if (err != OX_OK) {
            ox_str_addf(&out, "<%s>", ox_err_name(err));
            break;
        }
        for (size_t i = 0; i < read.count; i++)
            ox_str_addf(&out, "%s%.*s", out.len ? " " : "", (int)read.entries[i].data.len,
                        (const char *)read.entries[i].data.data);
        count -= OX_MIN(read.count, count);
        ox_cursor_read_fini(&read);
    }
    return ox_str_take(&out);
}

static void rig_ack(struct read_rig *r, struct ox_pos p)
{
    struct ox_cursor_ack ack = {0};
    world_op(&r->w, &ack.op);
    ox_cursor_delete(r->cursor, &ack, &p, 1);
    assert_int_equal(world_wait(&r->w, &ack.op), OX_OK);
}

// fault: S08
static void test_read_hole_left_by_a_lost_ledger(void **state)
{
    (void)state;
    for (int skip = 0; skip < 2; skip++) {
        struct read_rig r;
        rig_init(&r, skip);
        rig_ack(&r, (struct ox_pos){rig_id(&r, 0), 1});
        rig_ack(&r, (struct ox_pos){rig_id(&r, 1), 4});
        rig_restart(&r);
        int64_t first = rig_id(&r, 0), third = rig_id(&r, 2);
        assert_true(ox_sim_store_lose(r.w.store, rig_id(&r, 1)));
        char *got = cursor_texts(&r, 9);
        assert_string_equal(got, skip ? "0 2 3 4 10 11 12 13 14" : "0 2 3 4<NO_LEDGER>");
        ox_free(got);
        if (skip) {
            assert_int_equal(r.w.lost_lines, 1);
            assert_int_equal(r.w.factory.lost_entries.value, 5);
            for (int64_t e = 0; e < 5; e++) {
                rig_ack(&r, (struct ox_pos){first, e});
                rig_ack(&r, (struct ox_pos){third, e});
            }
            assert_int_equal(ox_pos_cmp(ox_ml_next(r.ml, r.cursor->mark_delete), ox_ml_next(r.ml, r.ml->last)), 0);
            assert_int_equal(ox_cursor_backlog(r.cursor), 0);
            rig_restart(&r);
            assert_int_equal(r.cursor->hole_count, 0);
            assert_int_equal(ox_cursor_backlog(r.cursor), 0);
        }
        rig_fini(&r);
    }
}

static void test_read_damaged_entry_is_named_or_passed(void **state)
{
    (void)state;
    for (int skip = 0; skip < 2; skip++) {
        struct read_rig r;
        rig_init(&r, skip);
        rig_restart(&r);
        ox_sim_store_damage(r.w.store, rig_id(&r, 1), 2);
        rig_expect(&r, skip ? "0 1 2 3 4 5 6 8 9 10 11 12 13 14" : "0 1 2 3 4 5 6<CORRUPT>");
        assert_int_equal(r.w.factory.lost_entries.value, skip);
        rig_fini(&r);
    }
}

static void test_read_wholly_damaged_ledger_is_like_a_lost_one(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, true);
    rig_restart(&r);
    ox_sim_store_damage(r.w.store, rig_id(&r, 0), -1);
    rig_expect(&r, "5 6 7 8 9 10 11 12 13 14");
    assert_int_equal(r.w.factory.lost_entries.value, 5);
    rig_fini(&r);
}

static void test_read_ledger_of_a_stranger_is_never_used(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, true);
    rig_restart(&r);
    int64_t id = rig_id(&r, 1);
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "oxbow/instance", "i-2");
    assert_true(ox_sim_store_lose(r.w.store, id));
    ox_sim_store_make(r.w.store, id, &custom, 5);
    rig_expect(&r, "0 1 2 3 4<IDENTITY_MISMATCH>");
    ox_kv_fini(&custom);
    rig_fini(&r);
}

static void test_read_handles_are_closed_when_unused(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, false);
    rig_restart(&r);
    rig_expect(&r, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14");
    assert_int_equal(r.w.factory.handles.count, 3);
    world_sleep(&r.w, 2 * ML_HANDLE_IDLE_NS);
    assert_int_equal(r.w.factory.handles.count, 0);
    rig_expect(&r, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14");
    rig_fini(&r);
}

static void test_read_handles_have_a_limit(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, false);
    for (int i = 0; i < ML_HANDLES_MAX + 20; i++) {
        world_fill(&r.w, r.ml, 15 + i, 1);
        assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    }
    assert_in_range(r.w.factory.handles.count, 1, ML_HANDLES_MAX);
    char *got = world_read_all(&r.w, r.ml, (struct ox_pos){rig_id(&r, 0), 0});
    assert_non_null(strstr(got, "134"));
    ox_free(got);
    rig_fini(&r);
}

// ---- trap S07 --------------------------------------------------------------------------------------------------------

// fault: S07
static void test_read_cursor_between_two_ledgers_is_clamped(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_kv owner = {0};
    ox_kv_set(&owner, "application", "pulsar");
    ox_kv_set(&owner, "component", "managed-ledger");
    ox_kv_set(&owner, "pulsar/managed-ledger", NAME);
    ox_kv_set(&owner, "oxbow/instance", "i-1");
    ox_sim_store_make(w.store, 65425, &owner, 2);
    ox_sim_store_make(w.store, 1952728, &owner, 0);
    struct ox_record *record = ox_record_new();
    ox_record_append_open(record, 65425);
    ox_record_seal(record, 65425, 2, 2, 1700000000000);
    ox_record_append_open(record, 1952728);
    struct ox_buf value = ox_record_encode(record, false, "default");
    world_node_put(&w, NODE, value.data, value.len);
    // cursor ledger -1, mark-delete 1952575:-1
    static const uint8_t cursor[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x10, 0xbf,
                                     0x96, 0x77, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    world_node_put(&w, NODE "/s", cursor, sizeof cursor);
    struct ox_mledger *ml = world_open(&w, NAME);
    struct ox_cursor *c = ox_cursor_find(ml, "s");
    assert_int_equal(ox_cursor_backlog(c), 0);
    assert_non_null(strstr(w.last_warning, "cursor=s "));
    assert_true(ox_pos_cmp(c->mark_delete, ml->last) <= 0);
    struct ox_pos p;
    assert_int_equal(world_append(&w, ml, "new", &p), OX_OK);
    assert_int_equal(ox_cursor_backlog(c), 1);
    assert_int_equal(world_ack_upto(&w, c, p), OX_OK);
    assert_int_equal(world_close(&w, ml), OX_OK);
    ox_buf_unref(&value);
    ox_record_free(record);
    ox_kv_fini(&owner);
    world_fini(&w);
}

// fault: S07
static void test_read_cursor_ledger_without_entries_falls_back_to_the_node(void **state)
{
    (void)state;
    struct read_rig r;
    rig_init(&r, false);
    assert_int_equal(world_ack_upto(&r.w, r.cursor, (struct ox_pos){rig_id(&r, 0), 2}), OX_OK);
    int64_t ledger = r.cursor->cursor_ledger;
    assert_true(ledger >= 0);
    struct ox_kv owner = {0};
    ox_kv_copy(&owner, &ox_sim_store_find(r.w.store, ledger)->custom);
    world_crash(&r.w, r.ml);
    assert_true(ox_sim_store_lose(r.w.store, ledger));
    ox_sim_store_make(r.w.store, ledger, &owner, 0);
    r.ml = world_open(&r.w, NAME);
    r.cursor = ox_cursor_find(r.ml, "keep");
    assert_int_equal(ox_cursor_backlog(r.cursor), 15); // the snapshot in the node: from the start
    assert_non_null(strstr(r.w.last_warning, "cursor=keep"));
    ox_kv_fini(&owner);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_of_a_place_that_does_not_answer_ends_in_time),
        cmocka_unit_test(test_read_from_cache_and_from_ledgers_is_the_same),
        cmocka_unit_test(test_read_stops_at_its_limits),
        cmocka_unit_test(test_read_at_the_end_has_no_entry),
        cmocka_unit_test(test_read_lost_ledger_is_an_error_unless_skipping_is_on),
        cmocka_unit_test(test_read_hole_left_by_a_lost_ledger),
        cmocka_unit_test(test_read_damaged_entry_is_named_or_passed),
        cmocka_unit_test(test_read_wholly_damaged_ledger_is_like_a_lost_one),
        cmocka_unit_test(test_read_ledger_of_a_stranger_is_never_used),
        cmocka_unit_test(test_read_handles_are_closed_when_unused),
        cmocka_unit_test(test_read_handles_have_a_limit),
        cmocka_unit_test(test_read_cursor_between_two_ledgers_is_clamped),
        cmocka_unit_test(test_read_cursor_ledger_without_entries_falls_back_to_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
