// cursor_move_test.c - positions leave a place while nobody has their log open: from node and ledger to node or ledger, or not at all.
#include <stdio.h>
#include <string.h>

#include "mledger/cursor_impl.h"
#include "mledger/fixture.h"
#include "mledger/places.h"

#define NAME "public/default/persistent/t"
#define NODE "/managed-ledgers/" NAME "/s%2F1"
#define SUB "s/1"
#define ENTRIES 40
#define MANY_LOGS 50
#define MANY_CURSORS 100

enum { OLD, NEW };

// Two places. A log with a cursor that has acknowledged every second entry, its ledger in the old place, which isn't active any more; nobody has it open.
struct rig {
    struct world w;
    struct ox_mledger *ml;
    struct ox_cursor *c;
    struct ox_location from;
    enum ox_sim_place_call call;
    int skip, times;
    struct ox_sim_place_fault fault;
    enum ox_meta_outcome outcome; // of writes to the cursor's node
    int meta_times;
    uint32_t most; // moves at once
};

static void rig_place(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                      struct ox_sim_place_fault *fault)
{
    struct rig *r = CONTAINER_OF(w, struct rig, w);
    (void)ledger;
    (void)entry;
    r->most = OX_MAX(r->most, w->factory.follow->moves_active);
    if (call != r->call || r->times == 0 || r->skip-- > 0)
        return;
    r->times--;
    *fault = r->fault;
}

static void rig_meta(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct rig *r = CONTAINER_OF(w, struct rig, w);
    if (!write || r->meta_times == 0 || strcmp(path, NODE) != 0)
        return;
    r->meta_times--;
    fault->outcome = r->outcome;
}

static void rig_fail(struct rig *r, enum ox_sim_place_call call, int skip, int times, struct ox_sim_place_fault fault)
{
    r->call = call;
    r->skip = skip;
    r->times = times;
    r->fault = fault;
}

static void rig_restart(struct rig *r, uint32_t active)
{
    world_stop(&r->w);
    world_start(&r->w);
    ox_router_activate(&r->w.router, active);
}

static void rig_world(struct rig *r)
{
    memset(r, 0, sizeof *r);
    world_init(&r->w, 1);
    r->w.other_store = ox_sim_store_new(2);
    r->w.settings.stamps = true;
    rig_restart(r, OLD);
    r->w.on_place = rig_place;
    r->w.on_meta = rig_meta;
}

static enum ox_err rig_ack(struct rig *r, int64_t entry)
{
    struct ox_pos p = {r->ml->ledgers[0]->where.id, entry};
    struct ox_cursor_ack ack = {0};
    world_op(&r->w, &ack.op);
    ox_cursor_delete(r->c, &ack, &p, 1);
    return world_wait(&r->w, &ack.op);
}

// The process is killed; another one starts in which a place is active.
static void rig_crash(struct rig *r, uint32_t active)
{
    world_crash(&r->w, r->ml);
    r->ml = NULL;
    ox_router_activate(&r->w.router, active);
}

static void rig_init(struct rig *r, uint32_t in_node_max)
{
    struct ox_kv properties = {0};
    struct ox_op op;
    rig_world(r);
    r->w.settings.ranges_in_node_max = in_node_max;
    rig_restart(r, OLD);
    r->ml = world_open(&r->w, NAME);
    r->c = world_cursor(&r->w, r->ml, SUB, OX_POS_EARLIEST);
    world_fill(&r->w, r->ml, 0, ENTRIES);
    for (int64_t i = 1; i < ENTRIES; i += 2)
        assert_int_equal(rig_ack(r, i), OX_OK);
    ox_kv_set(&properties, "user", "mine");
    world_op(&r->w, &op);
    ox_cursor_set_properties(r->c, &op, &properties);
    assert_int_equal(world_wait(&r->w, &op), OX_OK);
    ox_kv_fini(&properties);
    r->from = cursor_impl(r->c)->where;
    assert_true(r->from.id >= 0);
    rig_crash(r, NEW);
}

static void rig_fini(struct rig *r)
{
    r->times = r->meta_times = 0;
    if (r->ml)
        world_close(&r->w, r->ml);
    world_settle(&r->w);
    world_fini(&r->w);
}

static void rig_start_move(struct rig *r, struct ox_ml_cursor_move *m, int64_t expected)
{
    *m = (struct ox_ml_cursor_move){.log = NAME, .cursor = SUB, .expected = expected};
    world_op(&r->w, &m->op);
    ox_ml_cursor_move(&r->w.factory, m);
}

static enum ox_err rig_move(struct rig *r, bool *ret_already)
{
    struct ox_ml_cursor_move m;
    rig_start_move(r, &m, -1);
    enum ox_err err = world_wait(&r->w, &m.op);
    if (ret_already)
        *ret_already = m.already;
    return err;
}

static void assert_moves_with(struct rig *r, enum ox_err want)
{
    assert_string_equal(ox_err_name(rig_move(r, NULL)), ox_err_name(want));
}

// The log, opened anew, says that every second entry is acknowledged.
static void assert_position(struct rig *r)
{
    r->ml = world_open(&r->w, NAME);
    r->c = ox_cursor_find(r->ml, SUB);
    assert_non_null(r->c);
    for (int64_t i = 0; i < ENTRIES; i++)
        assert_int_equal(ox_cursor_is_deleted(r->c, (struct ox_pos){r->ml->ledgers[0]->where.id, i}), i % 2);
    assert_string_equal(ox_kv_find(&r->c->properties, "user"), "mine");
}

// Where the node says that the position is.
static struct ox_location rig_where(struct rig *r)
{
    struct ox_location where = {0};
    struct ox_buf value = world_node(&r->w, NODE, NULL);
    assert_int_equal(cursor_node_find(&r->w.factory, value, &where), OX_OK);
    ox_buf_unref(&value);
    return where;
}

// The node and the ledger are as they were, and nothing was left anywhere else.
static void assert_untouched(struct rig *r, struct ox_buf before)
{
    struct ox_buf now = world_node(&r->w, NODE, NULL);
    assert_true(ox_buf_equal(before, now));
    ox_buf_unref(&now);
    ox_buf_unref(&before);
    world_settle(&r->w);
    assert_int_equal(ox_sim_store_count(r->w.other_store), 0);
}

// ---- to the node, to a ledger ------------------------------------------------------------------------------------------

static void test_cursor_move_into_the_node(void **state)
{
    (void)state;
    struct rig r;
    bool already;
    rig_init(&r, 1000);
    assert_int_equal(rig_move(&r, &already), OX_OK);
    assert_false(already);
    assert_int_equal(ox_map_count(&r.w.factory.open), 0); // the log was not loaded
    assert_int_equal(rig_where(&r).id, -1);
    world_settle(&r.w);
    assert_false(ox_sim_store_has(r.w.store, r.from.id));
    assert_int_equal(ox_sim_store_count(r.w.other_store), 0);
    assert_int_equal(rig_move(&r, &already), OX_OK);
    assert_true(already);
    assert_position(&r);
    rig_fini(&r);
}

static void test_cursor_move_into_a_ledger(void **state)
{
    (void)state;
    struct rig r;
    bool already;
    rig_init(&r, 3);
    assert_int_equal(rig_move(&r, &already), OX_OK);
    struct ox_location to = rig_where(&r);
    assert_int_equal(to.place, NEW);
    assert_true(ox_sim_store_has(r.w.other_store, to.physical));
    world_settle(&r.w);
    assert_false(ox_sim_store_has(r.w.store, r.from.id));
    assert_int_equal(rig_move(&r, &already), OX_OK);
    assert_true(already);
    assert_position(&r);
    rig_fini(&r);
}

// A node with fields, properties and an order that we know nothing of.
static struct ox_buf strange_node(struct rig *r)
{
    static const uint8_t unknown[] = {0xa0, 0x06, 0x07}; // field 100
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *info = NULL;
    struct ox_buf value = world_node(&r->w, NODE, NULL);
    ox_arena_init(&arena, 1 << 20);
    assert_int_equal(ox_cursor_decode(&arena, value, &info, NULL), OX_OK);
    ox_buf_unref(&value);
    Mldata__StringProperty *all[] = {cursor_node_property(&arena, "#pulsar.internal.delayed.bucket_1", "77"),
                                     cursor_node_property(&arena, "_pulsar.bookieClusterName", "default"),
                                     cursor_node_property(&arena, "user", "mine"),
                                     cursor_node_property(&arena, "#pulsar.internal.bookieClusterName", "default"),
                                     cursor_node_property(&arena, "_pulsar.other", "x")};
    info->cursor_properties = all;
    info->n_cursor_properties = OX_COUNT(all);
    value = ox_cursor_encode(info, OX_RECORD_PLAIN);
    ox_arena_fini(&arena);
    struct ox_str bytes = {0};
    ox_str_add(&bytes, (const char *)value.data, value.len);
    ox_str_add(&bytes, (const char *)unknown, sizeof unknown);
    ox_buf_unref(&value);
    value = ox_buf_copy(ox_str_get(&bytes), bytes.len);
    world_node_put(&r->w, NODE, value.data, value.len);
    ox_str_fini(&bytes);
    return value;
}

static void moved_node_keeps_the_rest(uint32_t in_node_max, size_t stamps)
{
    static const char *const kept[] = {"#pulsar.internal.delayed.bucket_1", "user", "_pulsar.other"};
    struct rig r;
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *was = NULL, *is = NULL;
    rig_init(&r, in_node_max);
    struct ox_buf before = strange_node(&r);
    assert_moves_with(&r, OX_OK);
    struct ox_buf after = world_node(&r.w, NODE, NULL);
    ox_arena_init(&arena, 1 << 20);
    assert_int_equal(ox_cursor_decode(&arena, before, &was, NULL), OX_OK);
    assert_int_equal(ox_cursor_decode(&arena, after, &is, NULL), OX_OK);
    assert_int_equal(is->base.n_unknown_fields, 1);
    assert_int_equal(is->base.unknown_fields[0].tag, 100);
    assert_int_equal(is->last_active, was->last_active);
    assert_int_equal(is->n_cursor_properties, OX_COUNT(kept) + stamps);
    for (size_t i = 0; i < OX_COUNT(kept); i++)
        assert_string_equal(is->cursor_properties[i]->name, kept[i]);
    for (size_t i = OX_COUNT(kept); i < is->n_cursor_properties; i++)
        assert_string_equal(is->cursor_properties[i]->value, "other");
    ox_arena_fini(&arena);
    ox_buf_unref(&before);
    ox_buf_unref(&after);
    assert_position(&r);
    rig_fini(&r);
}

// fault: G5
static void test_cursor_move_keeps_the_rest_of_the_node(void **state)
{
    (void)state;
    moved_node_keeps_the_rest(1000, 0);
    moved_node_keeps_the_rest(3, 2);
}

// Without stamps (no second place was ever registered) none is written.
static void test_cursor_move_stamps_only_where_stamps_are_on(void **state)
{
    (void)state;
    struct rig r;
    struct ox_buf out;
    struct ox_location where = {NEW, 9, 12};
    rig_init(&r, 3);
    struct ox_buf before = world_node(&r.w, NODE, NULL);
    struct ox_buf entry = ox_buf_copy("\x08\x01\x10\x02", 4);
    r.w.factory.settings.stamps = false;
    assert_int_equal(cursor_node_move(&r.w.factory, before, entry, where, &out), OX_OK);
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *info = NULL;
    ox_arena_init(&arena, 1 << 20);
    assert_int_equal(ox_cursor_decode(&arena, out, &info, NULL), OX_OK);
    assert_int_equal(info->n_cursor_properties, 2);
    assert_string_equal(info->cursor_properties[1]->name, "_pulsar.physicalLedgerId");
    assert_string_equal(info->cursor_properties[1]->value, "12");
    assert_int_equal(info->mark_delete_entry_id, 2);
    ox_arena_fini(&arena);
    ox_buf_unref(&out);
    ox_buf_unref(&entry);
    ox_buf_unref(&before);
    rig_fini(&r);
}

// Acknowledged entries as words become the node's ranges; a position with fields that a node does not have stays in a ledger.
static void test_cursor_move_words_become_ranges(void **state)
{
    (void)state;
    struct rig r;
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *info = NULL;
    rig_init(&r, 4);
    int64_t words[] = {(int64_t)(UINT64_C(1) << 63 | 6), 1, 0, (int64_t)(UINT64_C(1) << 63)}; // 1..2, 63..64, 255
    Mldata__LongListMap map = MLDATA__LONG_LIST_MAP__INIT, *maps[] = {&map};
    Mldata__PositionInfo p = MLDATA__POSITION_INFO__INIT;
    map.key = 5;
    map.values = words;
    map.n_values = OX_COUNT(words);
    p.ledger_id = 5;
    p.individual_deleted_message_ranges = maps;
    p.n_individual_deleted_message_ranges = 1;
    struct ox_buf entry = ox_position_encode(&p), node = world_node(&r.w, NODE, NULL), out;
    assert_true(cursor_node_holds(&r.w.factory, node, entry));
    assert_int_equal(cursor_node_move(&r.w.factory, node, entry, (struct ox_location){0, -1, -1}, &out), OX_OK);
    ox_arena_init(&arena, 1 << 20);
    assert_int_equal(ox_cursor_decode(&arena, out, &info, NULL), OX_OK);
    static const int64_t want[][2] = {{0, 2}, {62, 64}, {254, 255}};
    assert_int_equal(info->n_individual_deleted_messages, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(info->individual_deleted_messages[i]->lower_endpoint->ledger_id, 5);
        assert_int_equal(info->individual_deleted_messages[i]->lower_endpoint->entry_id, want[i][0]);
        assert_int_equal(info->individual_deleted_messages[i]->upper_endpoint->entry_id, want[i][1]);
    }
    ox_arena_fini(&arena);
    r.w.factory.settings.ranges_in_node_max = 2;
    assert_false(cursor_node_holds(&r.w.factory, node, entry));
    struct ox_buf newer = ox_buf_copy("\x08\x01\x10\x02\xa0\x06\x07", 7);
    assert_false(cursor_node_holds(&r.w.factory, node, newer));
    ox_buf_unref(&newer);
    ox_buf_unref(&entry);
    ox_buf_unref(&node);
    ox_buf_unref(&out);
    rig_fini(&r);
}

// fault: A5
static void test_cursor_move_has_nothing_to_do_for_a_position_in_the_node(void **state)
{
    (void)state;
    struct rig r;
    bool already = false;
    rig_init(&r, 1000);
    assert_moves_with(&r, OX_OK);
    struct ox_buf before = world_node(&r.w, NODE, NULL);
    rig_restart(&r, NEW);
    assert_int_equal(rig_move(&r, &already), OX_OK);
    assert_true(already);
    assert_untouched(&r, before);
    rig_fini(&r);
}

// ---- what can't be read ------------------------------------------------------------------------------------------------

// fault: D1
static void test_cursor_move_missing_ledger_is_not_an_empty_one(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 1000);
    struct ox_buf before = world_node(&r.w, NODE, NULL);
    assert_true(ox_sim_store_lose(r.w.store, r.from.id));
    assert_moves_with(&r, OX_E_NO_LEDGER);
    assert_untouched(&r, before);
    rig_fini(&r);
}

// fault: D1
static void test_cursor_move_closed_place_changes_nothing(void **state)
{
    (void)state;
    struct rig r;
    struct ox_op op;
    rig_init(&r, 1000);
    struct ox_buf before = world_node(&r.w, NODE, NULL);
    world_op(&r.w, &op);
    ox_router_detach(&r.w.router, &op, OLD, OX_E_PLACE_CLOSED);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    assert_moves_with(&r, OX_E_PLACE_CLOSED);
    assert_untouched(&r, before);
    rig_fini(&r);
}

static void test_cursor_move_damaged_entries(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 1000);
    int64_t last = ox_sim_store_find(r.w.store, r.from.id)->last_entry;
    ox_sim_store_damage(r.w.store, r.from.id, last);
    assert_moves_with(&r, OX_OK); // from the entry before: one acknowledgement less, as an opening would find
    r.ml = world_open(&r.w, NAME);
    r.c = ox_cursor_find(r.ml, SUB);
    assert_true(ox_cursor_is_deleted(r.c, (struct ox_pos){r.ml->ledgers[0]->where.id, ENTRIES - 3}));
    rig_fini(&r);

    rig_init(&r, 1000);
    struct ox_buf before = world_node(&r.w, NODE, NULL);
    for (int64_t i = 0; i <= ox_sim_store_find(r.w.store, r.from.id)->last_entry; i++)
        ox_sim_store_damage(r.w.store, r.from.id, i);
    assert_moves_with(&r, OX_E_CORRUPT);
    assert_true(ox_sim_store_has(r.w.store, r.from.id));
    assert_untouched(&r, before);
    rig_fini(&r);

    rig_init(&r, 1000);
    before = world_node(&r.w, NODE, NULL);
    ox_sim_store_damage(r.w.store, r.from.id, -1);
    assert_moves_with(&r, OX_E_CORRUPT);
    assert_untouched(&r, before);
    rig_fini(&r);
}

static void test_cursor_move_read_error_changes_nothing(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 1000);
    struct ox_buf before = world_node(&r.w, NODE, NULL);
    rig_fail(&r, OX_SIM_CALL_READ, 0, 1, (struct ox_sim_place_fault){.err = OX_E_IO});
    assert_moves_with(&r, OX_E_IO);
    assert_untouched(&r, before);
    assert_moves_with(&r, OX_OK);
    assert_position(&r);
    rig_fini(&r);
}

static void test_cursor_move_target_that_fails_changes_nothing(void **state)
{
    (void)state;
    static const enum ox_sim_place_call calls[] = {OX_SIM_CALL_CREATE, OX_SIM_CALL_APPEND};
    for (size_t i = 0; i < OX_COUNT(calls); i++) {
        struct rig r;
        rig_init(&r, 3);
        struct ox_buf before = world_node(&r.w, NODE, NULL);
        rig_fail(&r, calls[i], 0, 1, (struct ox_sim_place_fault){.err = OX_E_NO_SPACE});
        assert_moves_with(&r, OX_E_NO_SPACE);
        assert_untouched(&r, before);
        assert_moves_with(&r, OX_OK);
        assert_position(&r);
        rig_fini(&r);
    }
}

// A cursor ledger without an entry: the node's own position is the truth.
static void test_cursor_move_of_a_ledger_without_entries(void **state)
{
    (void)state;
    struct rig r;
    struct ox_kv owner = {0};
    struct ox_buf out;
    rig_init(&r, 1000);
    struct ox_buf node = world_node(&r.w, NODE, NULL);
    ml_cursor_owner(&r.w.factory, NAME, SUB, &owner);
    ox_sim_store_make(r.w.store, 500, &owner, 0);
    assert_int_equal(cursor_node_move(&r.w.factory, node, ox_buf_empty(), (struct ox_location){OLD, 500, 500}, &out), OX_OK);
    world_node_put(&r.w, NODE, out.data, out.len);
    assert_moves_with(&r, OX_OK);
    assert_int_equal(rig_where(&r).id, -1);
    world_settle(&r.w);
    assert_false(ox_sim_store_has(r.w.store, 500));
    ox_kv_fini(&owner);
    ox_buf_unref(&node);
    ox_buf_unref(&out);
    rig_fini(&r);
}

// ---- who asks, and who else is there -------------------------------------------------------------------------------------

// fault: A5 E4 E5
static void test_cursor_move_refuses_what_is_not_there_or_not_as_expected(void **state)
{
    (void)state;
    struct rig r;
    struct ox_ml_cursor_move m;
    rig_init(&r, 1000);
    rig_start_move(&r, &m, r.from.id + 1);
    assert_int_equal(world_wait(&r.w, &m.op), OX_E_CONFLICT);
    m = (struct ox_ml_cursor_move){.log = NAME, .cursor = "nobody", .expected = -1};
    world_op(&r.w, &m.op);
    ox_ml_cursor_move(&r.w.factory, &m);
    assert_int_equal(world_wait(&r.w, &m.op), OX_E_NOT_FOUND);
    m.log = "public/default/persistent/nothing";
    world_op(&r.w, &m.op);
    ox_ml_cursor_move(&r.w.factory, &m);
    assert_int_equal(world_wait(&r.w, &m.op), OX_E_NOT_FOUND);
    rig_start_move(&r, &m, r.from.id);
    assert_int_equal(world_wait(&r.w, &m.op), OX_OK);
    assert_false(m.already);
    rig_start_move(&r, &m, r.from.id); // asked again because the answer was lost
    assert_int_equal(world_wait(&r.w, &m.op), OX_OK);
    assert_true(m.already);
    assert_position(&r);
    rig_fini(&r);
}

// Somebody changes the node between reading and writing: properties stay; another ledger is looked at anew.
static void node_changed_meanwhile(uint32_t in_node_max)
{
    struct rig r;
    struct ox_ml_cursor_move m;
    rig_init(&r, in_node_max);
    rig_fail(&r, OX_SIM_CALL_READ, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    rig_start_move(&r, &m, -1);
    world_sleep(&r.w, 10 * OX_MS);
    struct ox_buf value = strange_node(&r);
    assert_int_equal(world_wait(&r.w, &m.op), OX_OK);
    ox_buf_unref(&value);
    value = world_node(&r.w, NODE, NULL);
    assert_non_null(memmem(value.data, value.len, "_pulsar.other", 13));
    ox_buf_unref(&value);
    assert_position(&r);
    rig_fini(&r);
}

static void test_cursor_move_node_written_meanwhile(void **state)
{
    (void)state;
    node_changed_meanwhile(1000);
    node_changed_meanwhile(3);
}

// fault: E4
static void test_cursor_move_node_that_names_another_ledger_meanwhile(void **state)
{
    (void)state;
    struct rig r;
    struct ox_ml_cursor_move m;
    struct ox_kv owner = {0};
    struct ox_buf out;
    rig_init(&r, 3);
    struct ox_buf node = world_node(&r.w, NODE, NULL);
    ml_cursor_owner(&r.w.factory, NAME, SUB, &owner);
    ox_sim_store_make(r.w.store, 500, &owner, 0);
    assert_int_equal(cursor_node_move(&r.w.factory, node, ox_buf_empty(), (struct ox_location){OLD, 500, 500}, &out), OX_OK);
    rig_fail(&r, OX_SIM_CALL_APPEND, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    rig_start_move(&r, &m, -1);
    world_sleep(&r.w, 10 * OX_MS);
    world_node_put(&r.w, NODE, out.data, out.len);
    assert_int_equal(world_wait(&r.w, &m.op), OX_OK);
    assert_int_equal(rig_where(&r).id, -1); // from the new one, which held nothing
    world_settle(&r.w);
    assert_true(ox_sim_store_has(r.w.store, r.from.id)); // was not ours to delete any more
    assert_int_equal(ox_sim_store_count(r.w.other_store), 0);
    ox_kv_fini(&owner);
    ox_buf_unref(&node);
    ox_buf_unref(&out);
    rig_fini(&r);
}

static void test_cursor_move_unknown_outcome_is_read(void **state)
{
    (void)state;
    static const enum ox_meta_outcome outcomes[] = {OX_META_FAIL_AFTER, OX_META_FAIL_UNKNOWN};
    for (size_t i = 0; i < 2 * OX_COUNT(outcomes); i++) {
        struct rig r;
        rig_init(&r, i < 2 ? 1000 : 3);
        r.outcome = outcomes[i % 2];
        r.meta_times = 1;
        assert_moves_with(&r, OX_OK);
        assert_int_equal(r.meta_times, 0);
        world_settle(&r.w);
        assert_false(ox_sim_store_has(r.w.store, r.from.id));
        assert_int_equal(ox_sim_store_count(r.w.other_store), i < 2 ? 0 : 1);
        assert_position(&r);
        rig_fini(&r);
    }
}

static void test_cursor_move_node_that_cannot_be_written(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 3);
    struct ox_buf before = world_node(&r.w, NODE, NULL);
    r.outcome = OX_META_FAIL_BEFORE;
    r.meta_times = 1000;
    assert_moves_with(&r, OX_E_DISCONNECTED);
    assert_untouched(&r, before);
    rig_fini(&r);
}

// fault: E9
static void test_cursor_move_lets_an_opening_wait(void **state)
{
    (void)state;
    struct rig r;
    struct ox_ml_cursor_move m;
    struct ox_ml_open open = {0};
    rig_init(&r, 1000);
    rig_fail(&r, OX_SIM_CALL_READ, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    rig_start_move(&r, &m, -1);
    world_sleep(&r.w, 10 * OX_MS);
    world_op(&r.w, &open.op);
    ox_mledger_open(&r.w.factory, &open, NAME, false);
    world_sleep(&r.w, 10 * OX_MS);
    assert_true(ox_op_pending(&open.op));
    assert_int_equal(world_wait(&r.w, &m.op), OX_OK);
    assert_int_equal(world_wait(&r.w, &open.op), OX_OK);
    r.ml = open.ml;
    assert_int_equal(world_close(&r.w, r.ml), OX_OK);
    assert_position(&r);
    rig_fini(&r);
}

static void test_cursor_move_is_busy_while_the_log_opens_or_closes(void **state)
{
    (void)state;
    struct rig r;
    struct ox_ml_open open = {0};
    struct ox_op op;
    rig_init(&r, 1000);
    rig_fail(&r, OX_SIM_CALL_CREATE, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    world_op(&r.w, &open.op);
    ox_mledger_open(&r.w.factory, &open, NAME, false);
    world_sleep(&r.w, 10 * OX_MS);
    assert_moves_with(&r, OX_E_BUSY);
    assert_int_equal(world_wait(&r.w, &open.op), OX_OK);
    rig_fail(&r, OX_SIM_CALL_CLOSE, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    world_op(&r.w, &op);
    ox_mledger_close(open.ml, &op);
    world_sleep(&r.w, 10 * OX_MS);
    assert_moves_with(&r, OX_E_BUSY);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    assert_position(&r);
    rig_fini(&r);
}

// ---- by its owner ----------------------------------------------------------------------------------------------------------

// fault: A5 E4
static void test_cursor_move_by_its_owner(void **state)
{
    (void)state;
    struct rig r;
    struct ox_ml_cursor_move m;
    rig_init(&r, 1000);
    rig_restart(&r, OLD);
    assert_position(&r);
    assert_int_equal(rig_ack(&r, 2), OX_OK); // a writer's handle again
    int64_t ledger = r.c->cursor_ledger;
    ox_ml_follow_pause(&r.w.factory, true); // asked for by name it is done all the same
    ox_router_activate(&r.w.router, NEW);
    rig_start_move(&r, &m, ledger + 1);
    assert_int_equal(world_wait(&r.w, &m.op), OX_E_CONFLICT);
    m = (struct ox_ml_cursor_move){.log = NAME, .cursor = "nobody", .expected = -1};
    world_op(&r.w, &m.op);
    ox_ml_cursor_move(&r.w.factory, &m);
    assert_int_equal(world_wait(&r.w, &m.op), OX_E_NOT_FOUND);
    rig_fail(&r, OX_SIM_CALL_CREATE, 0, 1, (struct ox_sim_place_fault){.err = OX_E_NO_SPACE});
    assert_moves_with(&r, OX_E_NO_SPACE);
    assert_int_equal(r.c->cursor_ledger, ledger);
    rig_start_move(&r, &m, ledger);
    assert_int_equal(world_wait(&r.w, &m.op), OX_OK);
    assert_false(m.already);
    assert_int_equal(cursor_impl(r.c)->where.place, NEW);
    rig_start_move(&r, &m, ledger);
    assert_int_equal(world_wait(&r.w, &m.op), OX_OK);
    assert_true(m.already);
    assert_int_equal(rig_ack(&r, 4), OX_OK);
    rig_fini(&r);
}

// Several ask; the cursor is removed before its next ledger is made.
// fault: E5
static void test_cursor_move_of_a_cursor_that_is_removed(void **state)
{
    (void)state;
    struct rig r;
    struct ox_ml_cursor_move m[3];
    struct ox_op op;
    rig_init(&r, 3);
    rig_restart(&r, OLD);
    assert_position(&r);
    rig_fail(&r, OX_SIM_CALL_CREATE, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    ox_router_activate(&r.w.router, NEW);
    for (int i = 0; i < 3; i++)
        rig_start_move(&r, &m[i], -1);
    world_sleep(&r.w, 10 * OX_MS);
    world_op(&r.w, &op);
    ox_cursor_remove(r.c, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(world_wait(&r.w, &m[i].op), OX_E_BUSY); // asked again they are told that it is not there
    assert_moves_with(&r, OX_E_NOT_FOUND);
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.other_store), 0);
    rig_fini(&r);
}

// ---- many -------------------------------------------------------------------------------------------------------------------

static void many_make(struct rig *r)
{
    for (int i = 0; i < MANY_LOGS; i++) {
        char name[64];
        snprintf(name, sizeof name, "public/default/persistent/m-%d", i);
        struct ox_mledger *ml = world_open(&r->w, name);
        world_fill(&r->w, ml, 0, 2);
        for (int k = 0; k < MANY_CURSORS; k++) {
            char cursor[16];
            snprintf(cursor, sizeof cursor, "c%d", k);
            assert_int_equal(world_ack_upto(&r->w, world_cursor(&r->w, ml, cursor, OX_POS_EARLIEST), ml->last), OX_OK);
        }
        r->ml = ml;
        rig_crash(r, OLD);
    }
    ox_router_activate(&r->w.router, NEW);
}

// fault: E20
static void test_cursor_move_five_thousand_at_once(void **state)
{
    (void)state;
    static struct ox_ml_cursor_move moves[MANY_LOGS * MANY_CURSORS];
    static char names[MANY_LOGS][64], cursors[MANY_CURSORS][16];
    struct rig r;
    rig_world(&r);
    many_make(&r);
    assert_int_equal(ox_sim_store_count(r.w.store), MANY_LOGS + MANY_LOGS * MANY_CURSORS);
    for (int k = 0; k < MANY_CURSORS; k++)
        snprintf(cursors[k], sizeof cursors[k], "c%d", k);
    for (int i = 0; i < MANY_LOGS; i++)
        snprintf(names[i], sizeof names[i], "public/default/persistent/m-%d", i);
    for (int n = 0; n < MANY_LOGS * MANY_CURSORS; n++) {
        struct ox_ml_cursor_move *m = &moves[n];
        *m = (struct ox_ml_cursor_move){.log = names[n % MANY_LOGS], .cursor = cursors[n / MANY_LOGS], .expected = -1};
        world_op(&r.w, &m->op);
        ox_ml_cursor_move(&r.w.factory, m);
        assert_true(n < (int)r.w.settings.follow_max || !m->private_); // costs nothing while it waits
    }
    for (int n = 0; n < MANY_LOGS * MANY_CURSORS; n++)
        assert_int_equal(world_wait(&r.w, &moves[n].op), OX_OK);
    assert_true(r.most > 1 && r.most <= r.w.settings.follow_max);
    assert_int_equal(ox_map_count(&r.w.factory.open), 0);
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), MANY_LOGS); // data only
    rig_fini(&r);
}

// ---- the process ends on the way ----------------------------------------------------------------------------------------------

static void crash_at(const char *point, uint32_t in_node_max)
{
    struct rig r;
    struct ox_op sweep;
    rig_init(&r, in_node_max);
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    (void)rig_move(&r, NULL); // nobody hears what a dead process says
    if (ox_sim_armed(r.w.node))
        fail_msg("crash point %s was not passed", point);
    rig_crash(&r, NEW);
    world_op(&r.w, &sweep);
    ox_ml_orphans_sweep(&r.w.factory, &sweep);
    assert_int_equal(world_wait(&r.w, &sweep), OX_OK);
    assert_moves_with(&r, OX_OK); // goes on, or has nothing left to do
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), 1); // data only
    assert_int_equal(ox_sim_store_count(r.w.other_store), in_node_max == 3);
    assert_position(&r);
    rig_fini(&r);
}

static void test_cursor_move_crash_at_every_arrow(void **state)
{
    (void)state;
    crash_at("cursor_move.after_read", 1000);
    crash_at("cursor_move.after_read", 3);
    crash_at("cursor_move.after_ledger", 3);
    crash_at("cursor_move.after_node", 1000);
    crash_at("cursor_move.after_node", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cursor_move_into_the_node),
        cmocka_unit_test(test_cursor_move_into_a_ledger),
        cmocka_unit_test(test_cursor_move_keeps_the_rest_of_the_node),
        cmocka_unit_test(test_cursor_move_stamps_only_where_stamps_are_on),
        cmocka_unit_test(test_cursor_move_words_become_ranges),
        cmocka_unit_test(test_cursor_move_has_nothing_to_do_for_a_position_in_the_node),
        cmocka_unit_test(test_cursor_move_missing_ledger_is_not_an_empty_one),
        cmocka_unit_test(test_cursor_move_closed_place_changes_nothing),
        cmocka_unit_test(test_cursor_move_damaged_entries),
        cmocka_unit_test(test_cursor_move_read_error_changes_nothing),
        cmocka_unit_test(test_cursor_move_target_that_fails_changes_nothing),
        cmocka_unit_test(test_cursor_move_of_a_ledger_without_entries),
        cmocka_unit_test(test_cursor_move_refuses_what_is_not_there_or_not_as_expected),
        cmocka_unit_test(test_cursor_move_node_written_meanwhile),
        cmocka_unit_test(test_cursor_move_node_that_names_another_ledger_meanwhile),
        cmocka_unit_test(test_cursor_move_unknown_outcome_is_read),
        cmocka_unit_test(test_cursor_move_node_that_cannot_be_written),
        cmocka_unit_test(test_cursor_move_lets_an_opening_wait),
        cmocka_unit_test(test_cursor_move_is_busy_while_the_log_opens_or_closes),
        cmocka_unit_test(test_cursor_move_by_its_owner),
        cmocka_unit_test(test_cursor_move_of_a_cursor_that_is_removed),
        cmocka_unit_test(test_cursor_move_five_thousand_at_once),
        cmocka_unit_test(test_cursor_move_crash_at_every_arrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
