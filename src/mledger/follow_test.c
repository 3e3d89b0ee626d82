// follow_test.c - another place becomes active while logs and cursors are in use: everything that is open leaves the old one, nothing acknowledged is lost.
#include <stdio.h>
#include <string.h>

#include "mledger/cursor_impl.h"
#include "mledger/fixture.h"
#include "mledger/places.h"

#define NAME "public/default/persistent/t"
#define NODE "/managed-ledgers/" NAME
#define SUB "s/1"
#define ENTRIES_MAX 4096

enum { OLD, NEW };

// Two places; a log with a cursor that acknowledges and one that keeps everything.
struct rig {
    struct world w;
    struct ox_mledger *ml;
    struct ox_cursor *c, *keep;
    enum ox_sim_place_call call; // what fails, or is slow
    int64_t entry;               // only appends of this entry; -1: all
    int64_t above;               // only of ledgers with ids above it
    int times;
    struct ox_sim_place_fault fault;
    struct ox_meta_fault meta_fault; // of writes to paths that end with meta_path
    const char *meta_path;
    int meta_times;
    uint64_t append_ns;
    int creates;
    struct ox_ml_append *appends[ENTRIES_MAX];
    size_t append_count;
    struct ox_cursor_ack acks[ENTRIES_MAX];
    struct ox_pos ack_pos[ENTRIES_MAX];
    size_t ack_count;
};

static void rig_place(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                      struct ox_sim_place_fault *fault)
{
    struct rig *r = CONTAINER_OF(w, struct rig, w);
    r->creates += call == OX_SIM_CALL_CREATE;
    if (call == OX_SIM_CALL_APPEND)
        fault->before_ns = r->append_ns;
    if (call != r->call || r->times == 0 || ledger <= r->above || (r->entry >= 0 && entry != r->entry))
        return;
    r->times -= r->times > 0;
    *fault = r->fault;
}

static void rig_meta(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct rig *r = CONTAINER_OF(w, struct rig, w);
    size_t n = strlen(path), k = r->meta_path ? strlen(r->meta_path) : 0;
    if (!write || !k || n < k || strcmp(path + n - k, r->meta_path) != 0 || r->meta_times == 0)
        return;
    r->meta_times--;
    *fault = r->meta_fault;
}

static void rig_restart(struct rig *r)
{
    world_stop(&r->w);
    r->w.other_store = r->w.other_store ? r->w.other_store : ox_sim_store_new(2);
    world_start(&r->w);
}

static void rig_open(struct rig *r)
{
    r->ml = world_open(&r->w, NAME);
    r->c = world_cursor(&r->w, r->ml, SUB, OX_POS_EARLIEST);
    r->keep = world_cursor(&r->w, r->ml, "keep", OX_POS_EARLIEST);
}

static void rig_world(struct rig *r, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->entry = r->above = -1;
    world_init(&r->w, seed);
    r->w.settings.stamps = true;
    rig_restart(r);
    r->w.on_place = rig_place;
    r->w.on_meta = rig_meta;
}

static void rig_init(struct rig *r, uint64_t seed)
{
    rig_world(r, seed);
    rig_open(r);
}

static void rig_fini(struct rig *r)
{
    r->times = r->meta_times = 0;
    world_close(&r->w, r->ml);
    for (size_t i = 0; i < r->append_count; i++)
        ox_free(r->appends[i]);
    world_settle(&r->w);
    world_fini(&r->w);
}

static void rig_fail(struct rig *r, enum ox_sim_place_call call, int64_t entry, int times, struct ox_sim_place_fault fault)
{
    r->call = call;
    r->entry = entry;
    r->times = times;
    r->fault = fault;
}

static void rig_switch(struct rig *r, uint32_t place)
{
    ox_router_activate(&r->w.router, place);
    ox_ml_follow(&r->w.factory);
}

static struct ox_ml_left rig_left(struct rig *r)
{
    struct ox_ml_left left;
    ox_ml_follow_left(&r->w.factory, &left);
    return left;
}

static void assert_left(struct rig *r, uint32_t logs, uint32_t cursors, uint32_t failing)
{
    struct ox_ml_left left = rig_left(r);
    assert_int_equal(left.logs, logs);
    assert_int_equal(left.cursors, cursors);
    assert_int_equal(left.failing, failing);
}

static void rig_append(struct rig *r)
{
    char text[16];
    snprintf(text, sizeof text, "%zu", r->append_count);
    r->appends[r->append_count++] = world_append_start(&r->w, r->ml, text);
}

// Acknowledges the last entry with a receipt.
static void rig_ack(struct rig *r)
{
    struct ox_cursor_ack *ack = &r->acks[r->ack_count];
    r->ack_pos[r->ack_count++] = r->ml->last;
    memset(ack, 0, sizeof *ack);
    world_op(&r->w, &ack->op);
    ox_cursor_mark_delete(r->c, ack, r->ml->last);
}

static enum ox_err rig_ack_wait(struct rig *r)
{
    rig_ack(r);
    return world_wait(&r->w, &r->acks[r->ack_count - 1].op);
}

// One millisecond after the other: an entry and an acknowledgement.
static void rig_flow(struct rig *r, int ms)
{
    for (int i = 0; i < ms && ox_sim_node_alive(r->w.node); i++) {
        rig_append(r);
        world_sleep(&r->w, OX_MS);
        if (ox_sim_node_alive(r->w.node) && r->ml->last.entry >= 0)
            rig_ack(r);
    }
}

static void rig_wait_all(struct rig *r)
{
    for (size_t i = 0; i < r->append_count; i++)
        assert_string_equal(ox_err_name(world_wait(&r->w, &r->appends[i]->op)), "OK");
    for (size_t i = 0; i < r->ack_count; i++)
        assert_string_equal(ox_err_name(world_wait(&r->w, &r->acks[i].op)), "OK");
}

// The log holds "0 1 2 ..." up to the number of appends, in this order.
static void assert_all_there(struct rig *r)
{
    struct ox_str want = {0};
    for (size_t i = 0; i < r->append_count; i++)
        ox_str_addf(&want, "%s%zu", i ? " " : "", i);
    char *got = world_read_all(&r->w, r->ml, OX_POS_EARLIEST);
    assert_string_equal(got, ox_str_get(&want));
    ox_free(got);
    ox_str_fini(&want);
}

// What the node says: each ledger's place, by initials.
static void assert_places(struct rig *r, const char *want)
{
    struct ox_record *record = ox_record_new();
    struct ox_buf value = world_node(&r->w, NODE, NULL);
    char got[64] = "";
    assert_int_equal(ox_record_decode(record, value), OX_OK);
    for (size_t i = 0; i < ox_record_count(record); i++) {
        struct ox_record_ledger l = ox_record_get(record, i);
        uint32_t place = 0;
        assert_non_null(l.place);
        assert_int_equal(ox_router_find(&r->w.router, l.place, &place), OX_OK);
        got[i] = l.place[0];
        assert_true(ox_sim_store_has(place == NEW ? r->w.other_store : r->w.store, l.physical));
    }
    assert_string_equal(got, want);
    ox_buf_unref(&value);
    ox_record_free(record);
}

// Kills the process and opens the log in a new one, in which a place is active.
static void rig_crash(struct rig *r, uint32_t active)
{
    world_crash(&r->w, r->ml);
    ox_router_activate(&r->w.router, active);
    rig_open(r);
}

// ---- flowing ---------------------------------------------------------------------------------------------------------

static void test_follow_while_appends_and_acks_flow(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 1);
    r.append_ns = 300000;
    rig_flow(&r, 50);
    int64_t old_cursor_ledger = r.c->cursor_ledger;
    assert_true(ox_sim_store_has(r.w.store, old_cursor_ledger));
    rig_switch(&r, NEW);
    assert_left(&r, 1, 1, 0);
    rig_flow(&r, 100);
    rig_wait_all(&r);
    assert_left(&r, 0, 0, 0);
    assert_places(&r, "do");
    assert_all_there(&r);
    assert_true(r.ml->ledgers[1]->where.id > r.ml->ledgers[0]->where.id);
    assert_true(r.ml->ledgers[0]->sealed && r.ml->ledgers[0]->entries >= 50);
    assert_int_equal(ox_sim_store_find(r.w.store, r.ml->ledgers[0]->where.id)->state, OX_LEDGER_CLOSED);
    world_settle(&r.w);
    assert_false(ox_sim_store_has(r.w.store, old_cursor_ledger));
    assert_int_equal(ox_sim_store_count(r.w.store), 1); // the data that was there
    rig_crash(&r, NEW);
    assert_all_there(&r);
    assert_true(ox_pos_cmp(r.c->mark_delete, r.ack_pos[r.ack_count - 1]) >= 0);
    rig_fini(&r);
}

static uint32_t target_of_name(void *ctx, const char *log)
{
    const struct rig *r = ctx;
    return strcmp(log, NAME) == 0 ? NEW : r->w.router.active;
}

// A log with a target of its own leaves the active place for it, cursors too; another one stays, and both keep to it when the active place changes.
static void test_follow_a_target_of_its_own(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 3);
    struct ox_mledger *other = world_open(&r.w, "public/default/persistent/other");
    rig_flow(&r, 20);
    world_fill(&r.w, other, 0, 2);
    r.w.factory.target = target_of_name;
    r.w.factory.target_ctx = &r;
    ox_ml_follow(&r.w.factory);
    assert_left(&r, 1, 1, 0);
    rig_flow(&r, 50);
    rig_wait_all(&r);
    assert_left(&r, 0, 0, 0);
    assert_places(&r, "do");
    assert_int_equal(world_roll(&r.w, other), OX_OK);
    assert_int_equal(other->ledgers[other->ledger_count - 1]->where.place, OLD);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    assert_places(&r, "doo");
    rig_switch(&r, NEW);
    world_settle(&r.w);
    assert_int_equal(other->ledgers[other->ledger_count - 1]->where.place, NEW);
    rig_switch(&r, OLD);
    world_settle(&r.w);
    assert_int_equal(other->ledgers[other->ledger_count - 1]->where.place, OLD);
    assert_places(&r, "doo");
    assert_all_there(&r);
    world_close(&r.w, other);
    rig_fini(&r);
}

// No append and no acknowledgement waits for the new place, however slow it is.
// fault: C12
static void test_follow_slow_place_delays_nobody(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 2);
    rig_flow(&r, 20);
    rig_wait_all(&r);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.before_ns = 5 * OX_SEC});
    rig_switch(&r, NEW);
    for (int i = 0; i < 100; i++) {
        uint64_t began = ox_now_ns(r.w.loop);
        rig_append(&r);
        assert_int_equal(world_wait(&r.w, &r.appends[r.append_count - 1]->op), OX_OK);
        assert_int_equal(rig_ack_wait(&r), OX_OK);
        assert_true(ox_now_ns(r.w.loop) - began <= r.w.settings.ack_flush_ns + OX_MS);
    }
    assert_left(&r, 1, 1, 0);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_left(&r, 0, 0, 0);
    assert_all_there(&r);
    rig_fini(&r);
}

static void test_follow_empty_log_leaves_nothing_behind(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 3);
    int64_t old = r.ml->ledgers[0]->where.id;
    rig_switch(&r, NEW);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    assert_places(&r, "o");
    assert_false(ox_sim_store_has(r.w.store, old));
    assert_int_equal(ox_sim_store_count(r.w.store), 0);
    rig_crash(&r, NEW);
    assert_string_equal(r.w.last_warning, ""); // its cursors' positions are no surprise
    assert_int_equal(r.c->mark_delete.ledger, r.ml->ledgers[0]->where.id);
    rig_fini(&r);
}

// ---- the moment of the change (E1, E2) ---------------------------------------------------------------------------------

// fault: E1 E2
static void test_follow_ledger_made_in_the_old_place_says_so_and_is_rolled_at_once(void **state)
{
    (void)state;
    static struct rig r;
    struct ox_op roll;
    rig_init(&r, 4);
    rig_append(&r);
    rig_wait_all(&r);
    rig_fail(&r, OX_SIM_CALL_CLOSE, -1, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    world_op(&r.w, &roll);
    ox_mledger_roll(r.ml, &roll);
    world_sleep(&r.w, 10 * OX_MS); // the next ledger is made, in the old place
    rig_append(&r);
    rig_switch(&r, NEW);
    world_sleep(&r.w, 10 * OX_MS);
    assert_left(&r, 1, 0, 0);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    rig_append(&r);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    rig_append(&r);
    rig_wait_all(&r);
    assert_places(&r, "ddo");
    rig_crash(&r, NEW);
    assert_places(&r, "ddoo");
    assert_all_there(&r);
    rig_fini(&r);
}

// fault: E1
static void test_follow_create_that_began_before_the_change(void **state)
{
    (void)state;
    static struct rig r;
    struct ox_op roll;
    rig_init(&r, 5);
    rig_append(&r);
    rig_wait_all(&r);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    world_op(&r.w, &roll);
    ox_mledger_roll(r.ml, &roll);
    world_sleep(&r.w, 10 * OX_MS);
    rig_switch(&r, NEW);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    assert_places(&r, "do"); // the one between was empty
    rig_fini(&r);
}

// fault: E1
static void test_follow_log_opened_during_the_change(void **state)
{
    (void)state;
    static struct rig r;
    struct ox_ml_open open = {0};
    rig_world(&r, 6);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    world_op(&r.w, &open.op);
    ox_mledger_open(&r.w.factory, &open, NAME, true);
    world_sleep(&r.w, 10 * OX_MS);
    rig_switch(&r, NEW);
    assert_int_equal(world_wait(&r.w, &open.op), OX_OK);
    r.ml = open.ml;
    assert_places(&r, "d"); // truthfully
    world_settle(&r.w);
    assert_places(&r, "o");
    assert_int_equal(ox_sim_store_count(r.w.store), 0);
    rig_fini(&r);
}

static void test_follow_cursor_ledger_made_in_the_old_place_is_left_at_once(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 7);
    rig_append(&r);
    rig_wait_all(&r);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    rig_ack(&r); // its first ledger is being made
    world_sleep(&r.w, 10 * OX_MS);
    rig_switch(&r, NEW);
    rig_wait_all(&r);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    assert_true(ox_sim_store_has(r.w.other_store, r.c->cursor_ledger));
    rig_fini(&r);
}

// ---- acknowledgements across the change (E3) ----------------------------------------------------------------------------

static void ack_storm_crash_at(uint64_t seed, uint64_t crash_ns)
{
    static struct rig r;
    rig_init(&r, seed);
    r.append_ns = 400000;
    rig_flow(&r, 30);
    rig_switch(&r, NEW);
    rig_flow(&r, (int)(crash_ns / OX_MS));
    world_sleep(&r.w, crash_ns % OX_MS);
    world_kill(&r.w);
    struct ox_pos answered = {-1, -1};
    for (size_t i = 0; i < r.ack_count; i++)
        if (!ox_op_pending(&r.acks[i].op) && r.acks[i].op.err == OX_OK)
            answered = r.ack_pos[i];
    rig_crash(&r, NEW);
    assert_true(ox_pos_cmp(r.c->mark_delete, answered) >= 0);
    assert_true(answered.entry >= 0);
    rig_fini(&r);
}

// fault: E3
static void test_follow_crash_at_any_moment_keeps_answered_acks(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 60; i++)
        ack_storm_crash_at(100 + i, i * 350000);
}

// ---- a place that does not work -----------------------------------------------------------------------------------------

static void test_follow_full_place_is_tried_again_and_the_old_one_goes_on(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 8);
    rig_flow(&r, 20);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.err = OX_E_NO_SPACE});
    rig_switch(&r, NEW);
    rig_flow(&r, 500);
    rig_wait_all(&r);
    assert_left(&r, 1, 1, 2);
    struct ox_ml_left left = rig_left(&r);
    assert_int_equal(left.err, OX_E_NO_SPACE);
    assert_string_equal(left.log, NAME);
    assert_int_equal(r.ml->state, OX_ML_OPEN);
    r.times = 0; // there is space again
    world_sleep(&r.w, 3 * OX_SEC);
    assert_left(&r, 0, 0, 0);
    assert_places(&r, "do");
    assert_all_there(&r);
    rig_fini(&r);
}

static void test_follow_back_to_the_first_place(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 9);
    rig_flow(&r, 20);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.err = OX_E_PLACE_FAILED});
    rig_switch(&r, NEW);
    world_settle(&r.w);
    assert_left(&r, 1, 1, 2);
    rig_switch(&r, OLD);
    assert_left(&r, 0, 0, 0);
    r.times = 0;
    rig_flow(&r, 20);
    rig_switch(&r, NEW);
    rig_flow(&r, 20);
    rig_switch(&r, OLD);
    rig_flow(&r, 20);
    rig_wait_all(&r);
    assert_left(&r, 0, 0, 0);
    assert_places(&r, "dod");
    assert_all_there(&r);
    world_settle(&r.w);
    assert_true(ox_sim_store_has(r.w.store, r.c->cursor_ledger));
    assert_int_equal(ox_sim_store_count(r.w.other_store), 1);
    rig_crash(&r, OLD);
    assert_all_there(&r);
    rig_fini(&r);
}

// The new cursor ledger takes its first entry, or not even that: acknowledgements go on in the old one.
static void cursor_append_fails(int64_t entry)
{
    static struct rig r;
    rig_init(&r, 10);
    rig_flow(&r, 20);
    rig_wait_all(&r);
    r.above = ml_list_max(r.ml) > r.c->cursor_ledger ? ml_list_max(r.ml) : r.c->cursor_ledger;
    rig_fail(&r, OX_SIM_CALL_APPEND, entry, 1, (struct ox_sim_place_fault){.before_ns = OX_MS, .err = OX_E_PLACE_FAILED});
    int64_t old = r.c->cursor_ledger;
    rig_switch(&r, NEW);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rig_ack_wait(&r), OX_OK);
        world_sleep(&r.w, 2 * OX_MS);
    }
    assert_int_equal(r.times, 0);
    assert_int_equal(r.c->cursor_ledger, old);
    assert_left(&r, 0, 1, 1);
    world_sleep(&r.w, 3 * OX_SEC);
    assert_left(&r, 0, 0, 0);
    assert_int_not_equal(r.c->cursor_ledger, old);
    struct ox_pos mark = r.c->mark_delete;
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.other_store), 2); // the log's and the cursor's: the broken one is deleted
    rig_crash(&r, NEW);
    assert_int_equal(ox_pos_cmp(r.c->mark_delete, mark), 0);
    rig_fini(&r);
}

static void test_follow_cursor_ledger_that_takes_no_entry_is_left_again(void **state)
{
    (void)state;
    cursor_append_fails(0);
    cursor_append_fails(1);
}

static void test_follow_node_that_cannot_be_written_leaves_the_cursor_where_it_is(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 11);
    rig_flow(&r, 20);
    rig_wait_all(&r);
    int64_t old = r.c->cursor_ledger;
    r.meta_path = "/s%2F1";
    r.meta_fault = (struct ox_meta_fault){.outcome = OX_META_FAIL_BEFORE};
    r.meta_times = 1;
    rig_switch(&r, NEW);
    rig_append(&r);
    world_sleep(&r.w, OX_MS);
    assert_int_equal(rig_ack_wait(&r), OX_OK); // the old ledger has it
    assert_int_equal(r.meta_times, 0);
    assert_int_equal(r.c->cursor_ledger, old);
    assert_int_equal(r.c->state, OX_CURSOR_OPEN);
    rig_crash(&r, OLD);
    assert_true(ox_pos_cmp(r.c->mark_delete, r.ack_pos[r.ack_count - 1]) >= 0);
    rig_fini(&r);
}

static void test_follow_unknown_outcome_of_the_node_is_read(void **state)
{
    (void)state;
    for (int effect = 0; effect < 2; effect++) {
        static struct rig r;
        rig_init(&r, 12);
        rig_flow(&r, 20);
        rig_wait_all(&r);
        r.meta_path = "/s%2F1";
        r.meta_fault = (struct ox_meta_fault){.outcome = effect ? OX_META_FAIL_AFTER : OX_META_FAIL_UNKNOWN};
        r.meta_times = 1;
        rig_switch(&r, NEW);
        rig_flow(&r, 20);
        rig_wait_all(&r);
        assert_int_equal(r.meta_times, 0);
        assert_left(&r, 0, 0, 0);
        rig_crash(&r, NEW);
        assert_true(ox_pos_cmp(r.c->mark_delete, r.ack_pos[r.ack_count - 1]) >= 0);
        rig_fini(&r);
    }
}

// ---- cursors of all kinds -------------------------------------------------------------------------------------------------

static void test_follow_cursor_with_nothing_to_store(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 13);
    rig_flow(&r, 10);
    rig_wait_all(&r);
    world_sleep(&r.w, 60 * OX_SEC); // nothing is dirty
    struct ox_pos mark = r.c->mark_delete;
    int64_t old = r.c->cursor_ledger;
    rig_switch(&r, NEW);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    assert_false(ox_sim_store_has(r.w.store, old));
    rig_crash(&r, NEW);
    assert_int_equal(ox_pos_cmp(r.c->mark_delete, mark), 0);
    rig_fini(&r);
}

// Acknowledges every second entry, so that there is a hole for each.
static void rig_ack_odd(struct rig *r)
{
    for (int64_t i = 1; i < r->ml->ledgers[0]->entries; i += 2) {
        struct ox_pos p = {r->ml->ledgers[0]->where.id, i};
        struct ox_cursor_ack ack = {0};
        world_op(&r->w, &ack.op);
        ox_cursor_delete(r->c, &ack, &p, 1);
        assert_int_equal(world_wait(&r->w, &ack.op), OX_OK);
    }
}

// A cursor whose log was opened anew has no writer's handle: its position goes into the node, or, too large for that, into a new ledger.
static void recovered_cursor_follows(uint32_t in_node_max)
{
    static struct rig r;
    rig_init(&r, 14);
    r.w.settings.ranges_in_node_max = r.w.factory.settings.ranges_in_node_max = in_node_max;
    world_fill(&r.w, r.ml, 0, 20);
    rig_ack_odd(&r);
    rig_crash(&r, OLD);
    int64_t old = r.c->cursor_ledger;
    assert_true(ox_sim_store_has(r.w.store, old));
    rig_switch(&r, NEW);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    assert_false(ox_sim_store_has(r.w.store, old));
    assert_int_equal(r.c->cursor_ledger < 0, in_node_max >= 10);
    rig_crash(&r, NEW);
    for (int64_t i = 0; i < 20; i++)
        assert_int_equal(ox_cursor_is_deleted(r.c, (struct ox_pos){r.ml->ledgers[0]->where.id, i}), i % 2);
    rig_fini(&r);
}

static void test_follow_recovered_cursor_goes_into_node_or_ledger(void **state)
{
    (void)state;
    recovered_cursor_follows(1000);
    recovered_cursor_follows(3);
}

// A log that is opened when the other place is active already: by itself, nobody asks.
static void test_follow_cursor_of_a_log_opened_later(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 15);
    rig_flow(&r, 10);
    rig_wait_all(&r);
    rig_crash(&r, NEW);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    assert_int_equal(ox_sim_store_count(r.w.store), 1);
    rig_fini(&r);
}

// fault: E6
static void test_follow_properties_changed_meanwhile_stay(void **state)
{
    (void)state;
    static struct rig r;
    struct ox_kv properties = {0};
    struct ox_op set;
    rig_init(&r, 16);
    r.append_ns = OX_MS;
    rig_flow(&r, 10);
    rig_switch(&r, NEW);
    for (int i = 0; i < 20; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        ox_kv_set(&properties, "user", value);
        world_op(&r.w, &set);
        ox_cursor_set_properties(r.c, &set, &properties);
        rig_flow(&r, 1);
        assert_int_equal(world_wait(&r.w, &set), OX_OK);
    }
    rig_wait_all(&r);
    assert_left(&r, 0, 0, 0);
    rig_crash(&r, NEW);
    assert_string_equal(ox_kv_find(&r.c->properties, "user"), "19");
    assert_int_equal(r.c->properties.count, 1); // stamps are not shown
    ox_kv_fini(&properties);
    rig_fini(&r);
}

// Both keys of the stamp stand in the node, with the place of the ledger.
static void test_follow_cursor_node_is_stamped(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 17);
    rig_flow(&r, 10);
    rig_switch(&r, NEW);
    rig_flow(&r, 10);
    rig_wait_all(&r);
    struct ox_buf value = world_node(&r.w, NODE "/s%2F1", NULL);
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *info = NULL;
    ox_arena_init(&arena, 1 << 20);
    assert_int_equal(ox_cursor_decode(&arena, value, &info, NULL), OX_OK);
    assert_int_equal(info->n_cursor_properties, 2);
    assert_string_equal(info->cursor_properties[0]->name, "_pulsar.bookieClusterName");
    assert_string_equal(info->cursor_properties[1]->name, "#pulsar.internal.bookieClusterName");
    for (int i = 0; i < 2; i++)
        assert_string_equal(info->cursor_properties[i]->value, "other");
    ox_arena_fini(&arena);
    ox_buf_unref(&value);
    rig_fini(&r);
}

// Sought back at any moment while it follows: the position that was asked for stays, over a kill too.
// fault: E5
static void test_follow_cursor_that_is_reset_meanwhile(void **state)
{
    (void)state;
    for (uint64_t ns = 0; ns < 8 * OX_MS; ns += OX_MS / 2) {
        static struct rig r;
        struct ox_op op;
        rig_init(&r, 22);
        rig_flow(&r, 20);
        rig_wait_all(&r);
        rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.before_ns = OX_MS});
        r.append_ns = OX_MS;
        rig_switch(&r, NEW);
        world_sleep(&r.w, ns);
        struct ox_pos back = {r.ml->ledgers[0]->where.id, 3};
        world_op(&r.w, &op);
        ox_cursor_reset(r.c, &op, back);
        assert_int_equal(world_wait(&r.w, &op), OX_OK);
        world_settle(&r.w);
        assert_left(&r, 0, 0, 0);
        rig_crash(&r, NEW);
        assert_int_equal(ox_pos_cmp(r.c->mark_delete, back), 0);
        rig_fini(&r);
    }
}

// A terminated log has nothing that could follow, and a reader no position that is stored: neither is waited for, both are read to the end.
// fault: E18
static void test_follow_terminated_log_and_reader(void **state)
{
    (void)state;
    static struct rig r;
    struct ox_cursor_open open = {0};
    rig_init(&r, 23);
    world_fill(&r.w, r.ml, 0, 3);
    int64_t id = r.ml->ledgers[0]->where.id;
    world_close(&r.w, r.ml);
    uint8_t node[] = {0x0a, 0x04, 0x08, (uint8_t)id, 0x20, 0,
                      0x12, 0x04, 0x08, (uint8_t)id, 0x10, 0x02}; // terminated at entry 2
    world_node_put(&r.w, NODE, node, sizeof node);
    r.ml = world_open(&r.w, NAME);
    world_op(&r.w, &open.op);
    ox_cursor_open(r.ml, &open, "reader", false, OX_POS_EARLIEST, NULL);
    assert_int_equal(world_wait(&r.w, &open.op), OX_OK);
    rig_switch(&r, NEW);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    assert_true(r.ml->terminated);
    assert_int_equal(r.ml->ledger_count, 1);
    for (int i = 0; i < 3; i++) {
        struct ox_cursor_read read = {.entries_max = 1, .bytes_max = 100};
        world_op(&r.w, &read.op);
        ox_cursor_read(open.cursor, &read);
        assert_int_equal(world_wait(&r.w, &read.op), OX_OK);
        assert_int_equal(read.entries[0].pos.entry, i);
        ox_cursor_read_fini(&read);
    }
    rig_fini(&r);
}

// All that is open is in the new place; in both places lies what the node names, and nothing else once the orphans are swept.
static void assert_nothing_left_over(struct rig *r)
{
    struct ox_op sweep;
    size_t data[2] = {0};
    world_sleep(&r->w, 30 * OX_SEC);
    assert_left(r, 0, 0, 0);
    world_op(&r->w, &sweep);
    ox_ml_orphans_sweep(&r->w.factory, &sweep);
    assert_int_equal(world_wait(&r->w, &sweep), OX_OK);
    world_settle(&r->w);
    for (size_t i = 0; i < r->ml->ledger_count; i++)
        data[r->ml->ledgers[i]->where.place]++;
    OX_LIST_EACH(&r->ml->cursors, link)
        data[NEW] += CONTAINER_OF(link, struct ox_cursor, link)->cursor_ledger >= 0;
    assert_int_equal(ox_sim_store_count(r->w.store), data[OLD]);
    assert_int_equal(ox_sim_store_count(r->w.other_store), data[NEW]);
}

// A cursor, and a log, that end while they follow.
// fault: E12
static void test_follow_ends_with_its_log(void **state)
{
    (void)state;
    for (uint64_t ns = 0; ns < 6 * OX_MS; ns += OX_MS / 3) {
        static struct rig r;
        struct ox_op op;
        rig_init(&r, 18);
        rig_flow(&r, 10);
        rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.before_ns = OX_MS});
        r.append_ns = OX_MS;
        rig_switch(&r, NEW);
        world_sleep(&r.w, ns);
        world_op(&r.w, &op);
        ox_cursor_remove(r.keep, &op);
        assert_int_equal(world_wait(&r.w, &op), OX_OK);
        assert_int_equal(world_close(&r.w, r.ml), OX_OK);
        rig_open(&r);
        assert_true(ox_pos_cmp(r.c->mark_delete, r.ack_pos[r.ack_count - 1]) >= 0);
        assert_nothing_left_over(&r);
        rig_fini(&r);
    }
}

// ---- what is not waited for -------------------------------------------------------------------------------------------------

// fault: E18
static void test_follow_does_not_wait_for_logs_that_take_nothing(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 19);
    world_fill(&r.w, r.ml, 0, 3);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.err = OX_E_NO_SPACE});
    rig_switch(&r, NEW);
    assert_left(&r, 1, 0, 0);
    r.ml->terminated = true;
    assert_left(&r, 0, 0, 0);
    r.ml->terminated = false;
    r.ml->full = true;
    assert_left(&r, 0, 0, 0);
    r.ml->full = false;
    ml_fail(r.ml, OX_E_FENCED, "a test");
    assert_left(&r, 0, 0, 0);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    world_close(&r.w, r.ml);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, 0, (struct ox_sim_place_fault){0});
    rig_open(&r);
    rig_fini(&r);
}

static void test_follow_paused_starts_nothing(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 20);
    rig_flow(&r, 10);
    ox_ml_follow_pause(&r.w.factory, true);
    rig_switch(&r, NEW);
    world_sleep(&r.w, 5 * OX_SEC);
    assert_left(&r, 1, 1, 0);
    ox_ml_follow_pause(&r.w.factory, false);
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    rig_fini(&r);
}

// fault: B6
static void test_follow_waits_for_the_metadata_session(void **state)
{
    (void)state;
    static struct rig r;
    rig_init(&r, 21);
    rig_flow(&r, 10);
    r.w.meta->session = OX_META_DISCONNECTED;
    rig_switch(&r, NEW);
    world_sleep(&r.w, 5 * OX_SEC);
    assert_left(&r, 1, 1, 0);
    r.w.meta->session = OX_META_CONNECTED;
    world_settle(&r.w);
    assert_left(&r, 0, 0, 0);
    rig_fini(&r);
}

// ---- many -------------------------------------------------------------------------------------------------------------------

#define MANY 700

static void many_open(struct rig *r, struct ox_mledger **logs)
{
    for (int i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, "public/default/persistent/m-%d", i);
        logs[i] = world_open(&r->w, name);
    }
}

static void many_close(struct rig *r, struct ox_mledger **logs)
{
    for (int i = 0; i < MANY; i++)
        assert_int_equal(world_close(&r->w, logs[i]), OX_OK);
}

static void test_follow_many_logs_a_few_at_once(void **state)
{
    (void)state;
    static struct rig r;
    static struct ox_mledger *logs[MANY];
    rig_init(&r, 22);
    many_open(&r, logs);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.before_ns = OX_MS});
    rig_switch(&r, NEW);
    assert_int_equal(r.w.factory.follow->running, 0); // the call itself does nothing
    uint32_t most = 0;
    while (rig_left(&r).logs > 0) {
        world_sleep(&r.w, OX_MS / 4);
        most = OX_MAX(most, r.w.factory.follow->running);
        assert_true(r.w.factory.follow->running <= r.w.settings.follow_max);
    }
    assert_int_equal(most, r.w.settings.follow_max);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ml_impl(logs[i])->current->where.place, NEW);
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), 0);
    many_close(&r, logs);
    rig_fini(&r);
}

// A place that refuses everybody is asked by one now and then, and by all again when it works.
static void test_follow_place_that_refuses_all_is_not_stormed(void **state)
{
    (void)state;
    static struct rig r;
    static struct ox_mledger *logs[MANY];
    rig_init(&r, 23);
    many_open(&r, logs);
    rig_fail(&r, OX_SIM_CALL_CREATE, -1, -1, (struct ox_sim_place_fault){.err = OX_E_NO_SPACE});
    r.creates = 0;
    rig_switch(&r, NEW);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_true(r.creates >= 50 && r.creates <= 150);
    r.times = 0;
    world_sleep(&r.w, 2 * OX_SEC);
    assert_left(&r, 0, 0, 0);
    many_close(&r, logs);
    rig_fini(&r);
}

// ---- the process ends on the way ----------------------------------------------------------------------------------------------

static void crash_at(const char *point)
{
    static struct rig r;
    struct ox_op sweep;
    rig_init(&r, 24);
    r.append_ns = 100000;
    rig_flow(&r, 20);
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    rig_switch(&r, NEW);
    rig_flow(&r, 50);
    if (ox_sim_armed(r.w.node))
        fail_msg("crash point %s was not passed", point);
    world_settle(&r.w);
    struct ox_pos answered = {-1, -1};
    size_t acked = 0;
    for (size_t i = 0; i < r.ack_count; i++)
        if (r.acks[i].op.err == OX_OK)
            answered = r.ack_pos[i];
    while (acked < r.append_count && r.appends[acked]->op.err == OX_OK)
        acked++;
    rig_crash(&r, NEW);
    world_op(&r.w, &sweep);
    ox_ml_orphans_sweep(&r.w.factory, &sweep);
    assert_int_equal(world_wait(&r.w, &sweep), OX_OK);
    assert_true(ox_pos_cmp(r.c->mark_delete, answered) >= 0);
    for (size_t i = acked; i < r.append_count; i++)
        ox_free(r.appends[i]);
    char *all = world_read_all(&r.w, r.ml, OX_POS_EARLIEST);
    r.append_count = acked;
    struct ox_str want = {0};
    for (size_t i = 0; i < acked; i++)
        ox_str_addf(&want, "%s%zu", i ? " " : "", i);
    assert_memory_equal(all, ox_str_get(&want), want.len);
    ox_str_fini(&want);
    ox_free(all);
    world_sleep(&r.w, 3 * OX_SEC);
    assert_left(&r, 0, 0, 0);
    assert_int_equal(ox_sim_store_count(r.w.store), 1);
    assert_int_equal(ox_sim_store_count(r.w.other_store), r.ml->ledger_count - 1 + (r.c->cursor_ledger >= 0));
    rig_fini(&r);
}

static void test_follow_crash_at_every_arrow(void **state)
{
    (void)state;
    static const char *const points[] = {"follow.after_log", "follow.after_cursor", "follow.after_cursor_create",
                                         "follow.after_cursor_entry", "follow.after_cursor_move"};
    for (size_t i = 0; i < OX_COUNT(points); i++)
        crash_at(points[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follow_while_appends_and_acks_flow),
        cmocka_unit_test(test_follow_a_target_of_its_own),
        cmocka_unit_test(test_follow_slow_place_delays_nobody),
        cmocka_unit_test(test_follow_empty_log_leaves_nothing_behind),
        cmocka_unit_test(test_follow_ledger_made_in_the_old_place_says_so_and_is_rolled_at_once),
        cmocka_unit_test(test_follow_create_that_began_before_the_change),
        cmocka_unit_test(test_follow_log_opened_during_the_change),
        cmocka_unit_test(test_follow_cursor_ledger_made_in_the_old_place_is_left_at_once),
        cmocka_unit_test(test_follow_crash_at_any_moment_keeps_answered_acks),
        cmocka_unit_test(test_follow_full_place_is_tried_again_and_the_old_one_goes_on),
        cmocka_unit_test(test_follow_back_to_the_first_place),
        cmocka_unit_test(test_follow_cursor_ledger_that_takes_no_entry_is_left_again),
        cmocka_unit_test(test_follow_node_that_cannot_be_written_leaves_the_cursor_where_it_is),
        cmocka_unit_test(test_follow_unknown_outcome_of_the_node_is_read),
        cmocka_unit_test(test_follow_cursor_with_nothing_to_store),
        cmocka_unit_test(test_follow_recovered_cursor_goes_into_node_or_ledger),
        cmocka_unit_test(test_follow_cursor_of_a_log_opened_later),
        cmocka_unit_test(test_follow_properties_changed_meanwhile_stay),
        cmocka_unit_test(test_follow_cursor_node_is_stamped),
        cmocka_unit_test(test_follow_ends_with_its_log),
        cmocka_unit_test(test_follow_cursor_that_is_reset_meanwhile),
        cmocka_unit_test(test_follow_terminated_log_and_reader),
        cmocka_unit_test(test_follow_does_not_wait_for_logs_that_take_nothing),
        cmocka_unit_test(test_follow_paused_starts_nothing),
        cmocka_unit_test(test_follow_waits_for_the_metadata_session),
        cmocka_unit_test(test_follow_many_logs_a_few_at_once),
        cmocka_unit_test(test_follow_place_that_refuses_all_is_not_stormed),
        cmocka_unit_test(test_follow_crash_at_every_arrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
