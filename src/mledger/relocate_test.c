// relocate_test.c - another primary for a sealed ledger, in logs that are open and in those that are not: reads, faults, crashes, and what goes with the ledger.
#include "mledger/fixture.h"
#include "mledger/offline.h"
#include "mledger/places.h"

#include <stdio.h>
#include <string.h>

#define NAME "public/default/persistent/m"
#define NODE "/managed-ledgers/" NAME
#define ALL "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14"

struct move_rig {
    struct world w;
    struct ox_mledger *ml; // NULL: not open
    struct ox_location at[3];
};

// Nothing is read from memory.
static void rig_forget(struct move_rig *r)
{
    for (size_t i = 0; i < OX_COUNT(r->at); i++)
        ox_tail_cache_drop_ledger(&r->w.factory.cache, r->at[i].id);
}

// Three sealed ledgers of five entries in the bootstrap place and an empty current one; a cursor keeps them.
static void rig_init(struct move_rig *r)
{
    *r = (struct move_rig){0};
    world_init_two(&r->w, 1);
    r->ml = world_open(&r->w, NAME);
    world_cursor(&r->w, r->ml, "keep", OX_POS_EARLIEST);
    for (int i = 0; i < 3; i++) {
        world_fill(&r->w, r->ml, 5 * i, 5);
        r->at[i] = r->ml->last.ledger == r->ml->ledgers[i]->where.id ? r->ml->ledgers[i]->where : r->at[i];
        assert_int_equal(world_roll(&r->w, r->ml), OX_OK);
        r->at[i] = r->ml->ledgers[i]->where;
    }
    rig_forget(r);
}

static void rig_close(struct move_rig *r)
{
    assert_int_equal(world_close(&r->w, r->ml), OX_OK);
    r->ml = NULL;
}

static void rig_fini(struct move_rig *r)
{
    if (r->ml)
        world_close(&r->w, r->ml);
    world_fini(&r->w);
}

static void rig_expect(struct move_rig *r, const char *entries)
{
    bool open = r->ml != NULL;
    if (!open)
        r->ml = world_open(&r->w, NAME);
    rig_forget(r);
    char *all = world_read_all(&r->w, r->ml, OX_POS_EARLIEST);
    assert_string_equal(all, entries);
    ox_free(all);
    for (size_t i = 0; i < OX_COUNT(r->at); i++)
        assert_int_equal(r->ml->ledgers[i]->where.id, r->at[i].id);
    if (!open)
        rig_close(r);
}

static void relocate_start(struct move_rig *r, struct ox_ml_relocate *op, size_t i, struct ox_location to)
{
    *op = (struct ox_ml_relocate){.log = NAME, .ledger = r->at[i].id, .from = r->at[i], .to = to, .digest = "d1"};
    world_op(&r->w, &op->op);
    ox_ml_relocate(&r->w.factory, op);
}

static enum ox_err relocate(struct move_rig *r, size_t i, struct ox_location to)
{
    struct ox_ml_relocate op;
    relocate_start(r, &op, i, to);
    enum ox_err err = world_wait(&r->w, &op.op);
    if (err == OX_OK)
        r->at[i] = to;
    return err;
}

static enum ox_err drop_copy(struct move_rig *r, size_t i, const char *place, int64_t physical)
{
    struct ox_ml_drop_copy op = {.log = NAME, .ledger = r->at[i].id, .place = place, .physical = physical};
    world_op(&r->w, &op.op);
    ox_ml_drop_copy(&r->w.factory, &op);
    return world_wait(&r->w, &op.op);
}

// What the node says about a ledger: "place physical copies digest", "guarded" in front if it is.
static char *rig_record(struct move_rig *r, size_t i)
{
    struct ox_buf node = world_node(&r->w, NODE, NULL);
    struct ox_record *record = ox_record_new();
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    size_t at = ox_record_at(record, r->at[i].id);
    assert_true(at < ox_record_count(record));
    struct ox_record_ledger l = ox_record_get(record, at);
    assert_int_equal(l.entries, 5);
    struct ox_copies copies = {0};
    assert_int_equal(ox_copies_parse(&copies, l.copies), OX_OK);
    struct ox_str text = {0};
    ox_str_addf(&text, "%s%s %s", node.data[0] == 0x47 ? "guarded " : "", l.place ? l.place : "-",
                l.physical == l.id ? "same" : "other");
    for (size_t k = 0; k < copies.count; k++)
        ox_str_addf(&text, " %s:%s", copies.items[k].place, copies.items[k].physical == l.id ? "same" : "other");
    ox_str_addf(&text, " %s", l.digest ? l.digest : "-");
    ox_copies_fini(&copies);
    ox_record_free(record);
    ox_buf_unref(&node);
    return ox_str_take(&text);
}

static void assert_rig_record(struct move_rig *r, size_t i, const char *want)
{
    char *text = rig_record(r, i);
    assert_string_equal(text, want);
    ox_free(text);
}

// ---- the plain way -----------------------------------------------------------------------------------------------------

static void moves_there_and_back(bool loaded)
{
    struct move_rig r;
    rig_init(&r);
    struct ox_location home = r.at[0];
    if (!loaded)
        rig_close(&r);
    assert_rig_record(&r, 0, "default same -");
    struct ox_location away = world_copy(&r.w, NAME, home, 1);
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    assert_rig_record(&r, 0, "guarded other same default:same d1");
    assert_rig_record(&r, 1, "guarded default same -");
    assert_true(ox_sim_store_has(r.w.store, home.id));
    rig_expect(&r, ALL);
    assert_int_equal(relocate(&r, 0, home), OX_OK); // the copy that was left behind
    assert_rig_record(&r, 0, "default same other:same d1");
    rig_expect(&r, ALL);
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    assert_true(ox_sim_store_lose(r.w.store, home.id)); // nobody reads it there any more
    rig_expect(&r, ALL);
    if (loaded)
        rig_close(&r);
    rig_expect(&r, ALL);
    rig_fini(&r);
}

static void test_relocate_there_and_back_while_the_log_is_open(void **state)
{
    (void)state;
    moves_there_and_back(true);
}

static void test_relocate_there_and_back_without_opening_the_log(void **state)
{
    (void)state;
    moves_there_and_back(false);
}

// The id is taken by a stranger in the other place: the physical one differs, and reads, deletes and the way back mind that.
static void test_relocate_to_another_physical_id(void **state)
{
    (void)state;
    struct move_rig r;
    struct ox_kv stranger = {0};
    rig_init(&r);
    struct ox_location home = r.at[0];
    ox_kv_set(&stranger, "application", "somebody");
    ox_sim_store_make(r.w.other_store, home.id, &stranger, 5);
    struct ox_location away = world_copy(&r.w, NAME, home, 1);
    assert_true(away.physical != away.id);
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    assert_rig_record(&r, 0, "guarded other other default:same d1");
    rig_expect(&r, ALL);
    assert_int_equal(relocate(&r, 0, home), OX_OK);
    assert_rig_record(&r, 0, "default same other:other d1");
    assert_int_equal(drop_copy(&r, 0, "other", away.id), OX_E_NOT_FOUND); // that is the stranger's
    assert_int_equal(drop_copy(&r, 0, "other", away.physical), OX_OK);
    assert_rig_record(&r, 0, "default same d1");
    assert_true(ox_sim_store_has(r.w.other_store, home.id));
    ox_kv_fini(&stranger);
    rig_fini(&r);
}

static void refusals(bool loaded)
{
    struct move_rig r;
    rig_init(&r);
    struct ox_location current = r.ml->ledgers[3]->where, none = {1, r.at[0].id, r.at[0].id};
    assert_int_equal(relocate(&r, 0, none), OX_E_NO_LEDGER); // nothing is there
    struct ox_location to = world_copy(&r.w, NAME, r.at[0], 1);
    if (!loaded)
        rig_close(&r);
    struct ox_ml_relocate op = {.log = NAME, .ledger = current.id, .from = current, .to = {1, current.id, to.physical}};
    world_op(&r.w, &op.op);
    ox_ml_relocate(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op.op), OX_E_CONFLICT); // not sealed
    op = (struct ox_ml_relocate){.log = NAME, .ledger = to.id, .from = to, .to = r.at[0]};
    world_op(&r.w, &op.op);
    ox_ml_relocate(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op.op), OX_E_CONFLICT); // it is not there
    op = (struct ox_ml_relocate){.log = NAME, .ledger = 4711, .from = {0, 4711, 4711}, .to = {1, 4711, to.physical}};
    world_op(&r.w, &op.op);
    ox_ml_relocate(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op.op), OX_E_NOT_FOUND);
    op = (struct ox_ml_relocate){.log = NAME "x", .ledger = to.id, .from = r.at[0], .to = to};
    world_op(&r.w, &op.op);
    ox_ml_relocate(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op.op), OX_E_IDENTITY_MISMATCH); // that is not this log's
    op = (struct ox_ml_relocate){.log = NAME, .ledger = to.id, .from = {1, to.id, 4711}, .to = to};
    world_op(&r.w, &op.op);
    ox_ml_relocate(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op.op), OX_E_CONFLICT);
    r.w.factory.settings.stamps = false;
    assert_int_equal(relocate(&r, 0, to), OX_E_CONFLICT);
    assert_int_equal(drop_copy(&r, 0, "default", to.id), OX_E_CONFLICT);
    r.w.factory.settings.stamps = true;
    assert_int_equal(drop_copy(&r, 0, "default", to.id), OX_E_CONFLICT); // the primary
    assert_int_equal(drop_copy(&r, 0, "other", to.id), OX_E_NOT_FOUND);
    assert_rig_record(&r, 0, "default same -");
    rig_expect(&r, ALL);
    rig_fini(&r);
}

static void test_relocate_refuses_what_the_record_does_not_say(void **state)
{
    (void)state;
    refusals(true);
    refusals(false);
}

// A copy that is short, or not closed, never becomes the primary.
static void test_relocate_refuses_a_copy_that_is_not_whole(void **state)
{
    (void)state;
    struct move_rig r;
    struct ox_kv owner = {0};
    struct ox_router_create create = {0};
    rig_init(&r);
    ox_ml_owner(&r.w.factory, NAME, NULL, &owner);
    ox_sim_store_make(r.w.other_store, r.at[0].id, &owner, 4);
    assert_int_equal(relocate(&r, 0, (struct ox_location){1, r.at[0].id, r.at[0].id}), OX_E_CONFLICT);
    world_op(&r.w, &create.op);
    ox_router_create_copy(&r.w.router, &create, 1, r.at[1].id, &owner);
    assert_int_equal(world_wait(&r.w, &create.op), OX_OK);
    assert_int_equal(relocate(&r, 1, create.location), OX_E_CONFLICT);
    ox_ledger_release(create.ledger);
    ox_kv_fini(&owner);
    rig_expect(&r, ALL);
    rig_fini(&r);
}

// ---- with others at work -------------------------------------------------------------------------------------------------

static void slow_reads(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    (void)w;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_READ || call == OX_SIM_CALL_OPEN)
        fault->before_ns = OX_SEC;
}

static void count_holder(void *ctx, const struct ox_ledger *l)
{
    (void)l;
    ++*(size_t *)ctx;
}

// A read that is under way ends with the handle that it has; then that handle goes, and the next read uses the new place.
static void test_relocate_lets_reads_in_flight_end_where_they_began(void **state)
{
    (void)state;
    struct move_rig r;
    struct ox_ml_read reads[3];
    size_t before = 0, held = 0;
    rig_init(&r);
    rig_close(&r);
    r.ml = world_open(&r.w, NAME);
    ox_router_holders(&r.w.router, 0, count_holder, &before);
    struct ox_location away = world_copy(&r.w, NAME, r.at[0], 1);
    r.w.on_place = slow_reads;
    for (size_t i = 0; i < 3; i++) { // one opens, one waits for an entry, one comes when it has moved
        reads[i] = (struct ox_ml_read){.from = OX_POS_EARLIEST, .entries_max = 5, .bytes_max = 100};
        world_op(&r.w, &reads[i].op);
        if (i == 2)
            assert_int_equal(relocate(&r, 0, away), OX_OK);
        ox_mledger_read(r.ml, &reads[i]);
        world_sleep(&r.w, 700 * OX_MS);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(world_wait(&r.w, &reads[i].op), OX_OK);
        assert_int_equal(reads[i].count, 5);
        ox_ml_read_fini(&reads[i]);
    }
    assert_int_equal(ox_router_holders(&r.w.router, 0, count_holder, &held), before);
    assert_int_equal(held, before);
    assert_int_equal(ox_router_holders(&r.w.router, 1, NULL, NULL), 1);
    r.w.on_place = NULL;
    rig_expect(&r, ALL);
    rig_fini(&r);
}

// The old place loses the ledger under a read that has begun there: what the read wants is in the new one.
static void test_relocate_saves_a_read_from_a_place_that_fails(void **state)
{
    (void)state;
    struct move_rig r;
    rig_init(&r);
    struct ox_location home = r.at[0], away = world_copy(&r.w, NAME, home, 1);
    struct ox_ml_read read = {.from = OX_POS_EARLIEST, .entries_max = 5, .bytes_max = 100};
    r.w.on_place = slow_reads;
    world_op(&r.w, &read.op);
    ox_mledger_read(r.ml, &read);
    world_sleep(&r.w, 10 * OX_MS);
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    for (int64_t i = 0; i < 5; i++)
        ox_sim_store_damage(r.w.store, home.id, i);
    assert_int_equal(world_wait(&r.w, &read.op), OX_OK);
    assert_int_equal(read.count, 5);
    ox_ml_read_fini(&read);
    assert_int_equal(r.w.lost_lines, 0);
    rig_fini(&r);
}

static void slow_node(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)w;
    if (write && strcmp(path, NODE) == 0)
        fault->before_ns = OX_SEC;
}

struct node_fault {
    enum ox_meta_outcome outcome;
    int left; // writes of the node that meet it
};

static void slow_answers(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct node_fault *n = w->ctx;
    if (write || strcmp(path, NODE) != 0)
        return;
    fault->after_ns = n->left-- > 0 ? OX_SEC : 0; // time to write it meanwhile
}

// An opening that comes while the log's node is being edited waits for it, and is not fenced by it.
// fault: E9
static void test_relocate_of_a_closed_log_makes_its_opening_wait(void **state)
{
    (void)state;
    struct move_rig r;
    struct ox_ml_relocate first, late;
    struct ox_ml_open open = {0};
    struct node_fault reading = {.left = 1};
    rig_init(&r);
    rig_close(&r);
    struct ox_location to[2] = {world_copy(&r.w, NAME, r.at[0], 1), world_copy(&r.w, NAME, r.at[1], 1)};
    r.w.ctx = &reading;
    r.w.on_meta = slow_answers;
    relocate_start(&r, &first, 0, to[0]);
    world_sleep(&r.w, 10 * OX_MS);
    world_op(&r.w, &open.op);
    ox_mledger_open(&r.w.factory, &open, NAME, false);
    relocate_start(&r, &late, 1, to[1]); // finds the log being opened
    assert_int_equal(world_wait(&r.w, &late.op), OX_E_BUSY);
    assert_false(ox_op_pending(&first.op));
    assert_int_equal(first.op.err, OX_OK);
    assert_int_equal(world_wait(&r.w, &open.op), OX_OK);
    r.ml = open.ml;
    assert_int_equal(r.ml->ledgers[0]->where.place, 1);
    assert_int_equal(r.ml->ledgers[0]->copies.count, 1);
    r.w.on_meta = NULL;
    assert_int_equal(relocate(&r, 1, to[1]), OX_OK);
    world_fill(&r.w, r.ml, 15, 1);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK); // not fenced
    rig_expect(&r, ALL " 15");
    rig_fini(&r);
}

// A close that comes while the log's record is being changed waits too.
static void test_relocate_of_an_open_log_is_over_before_it_closes(void **state)
{
    (void)state;
    struct move_rig r;
    struct ox_ml_relocate move, late;
    struct ox_op close;
    rig_init(&r);
    struct ox_location to = world_copy(&r.w, NAME, r.at[0], 1);
    r.w.on_meta = slow_node;
    relocate_start(&r, &move, 0, to);
    world_sleep(&r.w, 10 * OX_MS);
    world_op(&r.w, &close);
    ox_mledger_close(r.ml, &close);
    relocate_start(&r, &late, 1, (struct ox_location){1, r.at[1].id, r.at[1].id});
    assert_int_equal(world_wait(&r.w, &late.op), OX_E_BUSY);
    assert_int_equal(world_wait(&r.w, &close), OX_OK);
    r.ml = NULL;
    assert_int_equal(move.op.err, OX_OK);
    r.at[0] = to;
    r.w.on_meta = NULL;
    rig_expect(&r, ALL);
    rig_fini(&r);
}

// ---- faults of the metadata store ------------------------------------------------------------------------------------------

static void node_faults(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct node_fault *n = w->ctx;
    if (write && strcmp(path, NODE) == 0 && n->left > 0) {
        n->left--;
        fault->outcome = n->outcome;
    }
}

static void with_unknown_outcome(bool loaded, enum ox_meta_outcome outcome)
{
    struct move_rig r;
    struct node_fault fault = {outcome, 1};
    rig_init(&r);
    if (!loaded)
        rig_close(&r);
    struct ox_location home = r.at[0], away = world_copy(&r.w, NAME, home, 1);
    r.w.ctx = &fault;
    r.w.on_meta = node_faults;
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    assert_rig_record(&r, 0, "guarded other same default:same d1");
    fault.left = 1;
    assert_int_equal(drop_copy(&r, 0, "default", home.physical), OX_OK);
    assert_int_equal(fault.left, 0);
    assert_rig_record(&r, 0, "guarded other same d1");
    rig_expect(&r, ALL);
    rig_fini(&r);
}

static void test_relocate_outcome_that_is_unknown_is_learned(void **state)
{
    (void)state;
    with_unknown_outcome(true, OX_META_FAIL_AFTER);
    with_unknown_outcome(true, OX_META_FAIL_UNKNOWN);
    with_unknown_outcome(false, OX_META_FAIL_AFTER);
    with_unknown_outcome(false, OX_META_FAIL_UNKNOWN);
}

// Another writer changes the node behind each read: after the last of them it works.
// fault: B5
static void test_relocate_outlives_other_writers(void **state)
{
    (void)state;
    struct move_rig r;
    struct ox_ml_relocate move;
    struct node_fault busy = {.left = 3};
    rig_init(&r);
    rig_close(&r);
    struct ox_location away = world_copy(&r.w, NAME, r.at[0], 1);
    struct ox_buf node = world_node(&r.w, NODE, NULL);
    r.w.ctx = &busy;
    r.w.on_meta = slow_answers;
    relocate_start(&r, &move, 0, away);
    while (ox_op_pending(&move.op)) {
        world_sleep(&r.w, 100 * OX_MS);
        if (busy.left > 0)
            world_node_put(&r.w, NODE, node.data, node.len);
    }
    assert_int_equal(move.op.err, OX_OK);
    r.at[0] = away;
    ox_buf_unref(&node);
    r.w.on_meta = NULL;
    rig_expect(&r, ALL);
    rig_fini(&r);
}

// fault: B5
static void test_relocate_gives_up_and_says_what_is_not_known(void **state)
{
    (void)state;
    struct move_rig r;
    struct node_fault fault = {OX_META_FAIL_UNKNOWN, 1000};
    rig_init(&r);
    rig_close(&r);
    struct ox_location away = world_copy(&r.w, NAME, r.at[0], 1);
    r.w.ctx = &fault;
    r.w.on_meta = node_faults;
    assert_int_equal(relocate(&r, 0, away), OX_E_UNKNOWN_OUTCOME);
    fault = (struct node_fault){OX_META_FAIL_BEFORE, 1000};
    assert_int_equal(relocate(&r, 0, away), OX_E_DISCONNECTED);
    r.w.on_meta = NULL;
    assert_rig_record(&r, 0, "default same -");
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    rig_expect(&r, ALL);
    rig_fini(&r);
}

// ---- a copy that goes ------------------------------------------------------------------------------------------------------

static void slow_deletes(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    (void)w, (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_DELETE)
        fault->before_ns = OX_SEC;
}

// Somebody cleans a copy up while somebody else makes it primary again: one of them gets it, and what is primary is there.
static void drop_against_flip(bool loaded, bool drop_first)
{
    struct move_rig r;
    rig_init(&r);
    struct ox_location home = r.at[0], away = world_copy(&r.w, NAME, home, 1);
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    if (!loaded)
        rig_close(&r);
    world_settle(&r.w);
    r.w.on_place = slow_deletes;
    struct ox_ml_relocate back;
    struct ox_ml_drop_copy drop = {.log = NAME, .ledger = home.id, .place = "default", .physical = home.physical};
    world_op(&r.w, &drop.op);
    if (!drop_first)
        relocate_start(&r, &back, 0, home);
    ox_ml_drop_copy(&r.w.factory, &drop);
    if (drop_first)
        relocate_start(&r, &back, 0, home);
    assert_int_equal(world_wait(&r.w, &drop.op), drop_first ? OX_OK : OX_E_CONFLICT);
    assert_int_equal(world_wait(&r.w, &back.op), drop_first ? OX_E_NO_LEDGER : OX_OK);
    r.w.on_place = NULL;
    assert_int_equal(ox_sim_store_has(r.w.store, home.physical), !drop_first);
    assert_true(ox_sim_store_has(r.w.other_store, away.physical));
    assert_rig_record(&r, 0, drop_first ? "guarded other same d1" : "default same other:same d1");
    rig_expect(&r, ALL);
    rig_fini(&r);
}

static void test_relocate_and_drop_of_the_same_copy(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        drop_against_flip(i & 1, i & 2);
}

// ---- crashes ---------------------------------------------------------------------------------------------------------------

static void crash_at(const char *point, bool loaded, bool drop)
{
    struct move_rig r;
    rig_init(&r);
    if (!loaded)
        rig_close(&r);
    struct ox_location home = r.at[0], away = world_copy(&r.w, NAME, home, 1);
    if (drop)
        assert_int_equal(relocate(&r, 0, away), OX_OK);
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    if (drop)
        drop_copy(&r, 0, "default", home.physical);
    else
        relocate(&r, 0, away);
    assert_false(ox_sim_armed(r.w.node));
    world_crash(&r.w, r.ml);
    r.ml = NULL;
    assert_rig_record(&r, 0, drop ? "guarded other same d1" : "guarded other same default:same d1");
    if (drop)
        ox_sim_store_lose(r.w.store, home.id);
    rig_expect(&r, ALL);
    rig_fini(&r);
}

// fault: A4
static void test_relocate_crash_leaves_every_entry_readable(void **state)
{
    (void)state;
    for (int drop = 0; drop < 2; drop++) {
        crash_at("relocate.after_record", true, drop);
        crash_at("relocate.after_node", false, drop);
    }
}

// ---- what goes with the ledger ---------------------------------------------------------------------------------------------

// Stamps and copies live through rollovers, closes and openings.
static void test_relocate_stamp_survives_the_life_of_the_log(void **state)
{
    (void)state;
    struct move_rig r;
    rig_init(&r);
    struct ox_location away = world_copy(&r.w, NAME, r.at[1], 1);
    assert_int_equal(relocate(&r, 1, away), OX_OK);
    world_fill(&r.w, r.ml, 15, 1);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    assert_rig_record(&r, 1, "guarded other same default:same d1");
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME);
    assert_rig_record(&r, 1, "guarded other same default:same d1");
    assert_int_equal(r.ml->ledgers[1]->copies.count, 1);
    rig_expect(&r, ALL " 15");
    struct ox_cursor *c = ox_cursor_find(r.ml, "keep");
    assert_int_equal(world_ack_upto(&r.w, c, (struct ox_pos){r.at[1].id, 0}), OX_OK); // the first one is trimmed
    world_settle(&r.w);
    assert_rig_record(&r, 1, "guarded other same default:same d1");
    rig_fini(&r);
}

// fault: E13
static void test_relocate_trim_takes_the_copies_along(void **state)
{
    (void)state;
    struct move_rig r;
    rig_init(&r);
    struct ox_location home = r.at[0], away = world_copy(&r.w, NAME, home, 1);
    assert_int_equal(relocate(&r, 0, away), OX_OK);
    assert_true(ox_sim_store_has(r.w.store, home.id) && ox_sim_store_has(r.w.other_store, away.physical));
    struct ox_cursor *c = ox_cursor_find(r.ml, "keep");
    assert_int_equal(world_ack_upto(&r.w, c, (struct ox_pos){r.at[1].id, 0}), OX_OK);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledgers[0]->where.id, r.at[1].id);
    assert_false(ox_sim_store_has(r.w.store, home.id));
    assert_false(ox_sim_store_has(r.w.other_store, away.physical));
    rig_fini(&r);
}

static void test_relocate_deleted_log_takes_the_copies_along(void **state)
{
    (void)state;
    struct move_rig r;
    struct ox_op op;
    rig_init(&r);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(relocate(&r, i, world_copy(&r.w, NAME, r.at[i], 1)), OX_OK);
    world_op(&r.w, &op);
    ox_mledger_delete(r.ml, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    world_settle(&r.w);
    r.ml = NULL;
    assert_int_equal(ox_sim_store_count(r.w.store), 0);
    assert_int_equal(ox_sim_store_count(r.w.other_store), 0);
    assert_null(world_node(&r.w, NODE, NULL).data);
    rig_fini(&r);
}

// Copies that can't be understood are neither used nor deleted; nothing is written over them.
static void test_relocate_leaves_copies_alone_that_it_does_not_understand(void **state)
{
    (void)state;
    struct move_rig r;
    rig_init(&r);
    struct ox_location away = world_copy(&r.w, NAME, r.at[0], 1);
    rig_close(&r);
    struct ox_record *record = ox_record_new();
    struct ox_buf node = world_node(&r.w, NODE, NULL);
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    ox_buf_unref(&node);
    ox_record_set_ledger_property(record, r.at[0].id, OX_STAMP_COPIES, "what");
    node = ox_record_encode(record, true, "default");
    world_node_put(&r.w, NODE, node.data, node.len);
    ox_buf_unref(&node);
    ox_record_free(record);
    assert_int_equal(relocate(&r, 0, away), OX_E_CORRUPT);
    r.ml = world_open(&r.w, NAME);
    assert_int_equal(relocate(&r, 0, away), OX_E_CORRUPT);
    rig_expect(&r, ALL);
    rig_fini(&r);
}

// ---- everything at once ------------------------------------------------------------------------------------------------------

#define CHAOS_ENTRIES 400
#define CHAOS_IDS 4000

struct chaos {
    struct world w;
    struct ox_mledger *ml; // NULL: not open
    int next, acked;       // numbers: entries below `acked` are consumed, below `next` acknowledged
    struct ox_pos at[CHAOS_ENTRIES];
    bool faults;
    bool adopted[2][CHAOS_IDS]; // by place and physical id: it was the primary once
    size_t moved, dropped, crashes, trouble;
};

static uint32_t draw(struct chaos *c, uint32_t below)
{
    return (uint32_t)(ox_random_next(ox_sim_random(c->w.sim)) % below);
}

static void chaos_meta(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct chaos *c = CONTAINER_OF(w, struct chaos, w);
    if (!c->faults || strcmp(path, NODE) != 0 || draw(c, 3) != 0)
        return;
    fault->before_ns = draw(c, 2) * OX_SEC;
    fault->outcome = write ? (enum ox_meta_outcome)draw(c, 4) : OX_META_DO;
}

// Reads on from what is consumed: every number up to the last one, in order.
static void chaos_check(struct chaos *c)
{
    struct ox_str want = {0};
    for (int n = c->acked; n < c->next; n++)
        ox_str_addf(&want, "%s%d", n > c->acked ? " " : "", n);
    ox_tail_cache_fini(&c->w.factory.cache); // nothing comes from memory
    ox_tail_cache_init(&c->w.factory.cache, 1 << 20);
    char *got = c->acked < c->next ? world_read_all(&c->w, c->ml, c->at[c->acked]) : ox_strdup("");
    assert_string_equal(got, ox_str_get(&want));
    ox_free(got);
    ox_str_fini(&want);
}

static void chaos_open(struct chaos *c)
{
    if (c->ml)
        return;
    c->ml = world_open(&c->w, NAME);
    if (!ox_cursor_find(c->ml, "keep"))
        world_cursor(&c->w, c->ml, "keep", OX_POS_EARLIEST);
}

static void chaos_close(struct chaos *c)
{
    if (c->ml)
        world_close(&c->w, c->ml);
    c->ml = NULL;
}

static void chaos_append(struct chaos *c)
{
    chaos_open(c);
    if (c->ml->state != OX_ML_OPEN || c->next + 5 > CHAOS_ENTRIES)
        return;
    for (uint32_t i = 1 + draw(c, 4); i > 0; i--, c->next++) {
        char text[16];
        snprintf(text, sizeof text, "%d", c->next);
        assert_int_equal(world_append(&c->w, c->ml, text, &c->at[c->next]), OX_OK);
    }
    assert_int_equal(world_roll(&c->w, c->ml), OX_OK);
}

// A sealed ledger of the record: where it is, and its copies (the caller's). False if there is none.
static bool chaos_pick(struct chaos *c, struct ox_location *ret, struct ox_copies *ret_copies)
{
    struct ox_buf node = world_node(&c->w, NODE, NULL);
    struct ox_record *record = ox_record_new();
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    ox_buf_unref(&node);
    size_t count = ox_record_count(record);
    struct ox_record_ledger l = {0};
    if (count > 0)
        l = ox_record_get(record, draw(c, (uint32_t)count));
    *ret = (struct ox_location){.id = l.id, .physical = l.physical};
    if (l.place)
        assert_int_equal(ox_router_find(&c->w.router, l.place, &ret->place), OX_OK);
    assert_int_equal(ox_copies_parse(ret_copies, l.copies), OX_OK);
    ox_record_free(record);
    return l.entries > 0;
}

static void chaos_move(struct chaos *c, struct ox_location from, const struct ox_copies *copies)
{
    struct ox_ml_relocate op = {.log = NAME, .ledger = from.id, .from = from};
    uint32_t place = 1 - from.place;
    bool there = copies->count > 0 && ox_router_find(&c->w.router, copies->items[0].place, &op.to.place) == OX_OK;
    if (there)
        op.to = (struct ox_location){op.to.place, from.id, copies->items[0].physical};
    else
        op.to = world_copy(&c->w, NAME, from, place);
    c->faults = draw(c, 2);
    if (draw(c, 4) == 0)
        ox_sim_arm(c->w.node, draw(c, 2) ? "relocate.after_record" : "relocate.after_node", 1, OX_SIM_CRASH_PROCESS);
    world_op(&c->w, &op.op);
    ox_ml_relocate(&c->w.factory, &op);
    enum ox_err err = world_wait(&c->w, &op.op);
    c->moved += err == OX_OK;
    c->adopted[op.to.place][op.to.physical] |= err == OX_OK;
    c->trouble += err != OX_OK;
}

static void chaos_drop(struct chaos *c, struct ox_location of, const struct ox_copies *copies)
{
    const struct ox_copy *copy = &copies->items[draw(c, (uint32_t)copies->count)];
    struct ox_ml_drop_copy op = {.log = NAME, .ledger = of.id, .place = copy->place, .physical = copy->physical};
    c->faults = draw(c, 2);
    c->adopted[strcmp(copy->place, "other") == 0][copy->physical] = false; // from now on it is the mover's to delete
    world_op(&c->w, &op.op);
    ox_ml_drop_copy(&c->w.factory, &op);
    if (world_wait(&c->w, &op.op) != OX_OK)
        return;
    c->faults = false;
    struct ox_kv owner = {0};
    ox_ml_owner(&c->w.factory, NAME, NULL, &owner);
    ml_discard_copy(&c->w.factory, copy, of.id, &owner); // as whoever moves storage does
    ox_kv_fini(&owner);
    c->dropped++;
    world_settle(&c->w);
}

static void chaos_ack(struct chaos *c)
{
    chaos_open(c);
    if (c->ml->state != OX_ML_OPEN || c->acked == c->next)
        return;
    c->acked += 1 + (int)draw(c, OX_MIN(6u, (uint32_t)(c->next - c->acked)));
    struct ox_cursor *cursor = ox_cursor_find(c->ml, "keep");
    assert_int_equal(world_ack_upto(&c->w, cursor, c->at[c->acked - 1]), OX_OK);
    ox_mledger_trim(c->ml);
    world_settle(&c->w);
}

static void chaos_restart(struct chaos *c)
{
    c->crashes++;
    c->faults = false;
    world_crash(&c->w, c->ml);
    c->ml = NULL;
}

static void chaos_sweep(struct chaos *c)
{
    struct ox_op op;
    chaos_close(c);
    world_settle(&c->w);
    world_op(&c->w, &op);
    ox_ml_orphans_sweep(&c->w.factory, &op);
    assert_int_equal(world_wait(&c->w, &op), OX_OK);
}

// The other place goes away for a while, or comes back.
static void chaos_other(struct chaos *c)
{
    struct ox_op op;
    if (!c->w.other_away) {
        chaos_close(c);
        world_settle(&c->w);
        world_other_close(&c->w);
        return;
    }
    world_other_open(&c->w);
    world_op(&c->w, &op);
    ox_ml_deletes_retry(&c->w.factory, &op, 1);
    assert_int_equal(world_wait(&c->w, &op), OX_OK);
}

static void chaos_step(struct chaos *c)
{
    struct ox_location where;
    struct ox_copies copies = {0};
    uint32_t what = draw(c, 12);
    if (what < 3)
        chaos_append(c);
    else if (what < 4)
        chaos_ack(c);
    else if (what < 5)
        draw(c, 2) ? chaos_close(c) : chaos_open(c);
    else if (what < 6)
        draw(c, 2) ? chaos_sweep(c) : chaos_other(c);
    else if (!c->w.other_away && chaos_pick(c, &where, &copies) && what < 10)
        chaos_move(c, where, &copies);
    else if (!c->w.other_away && copies.count > 0)
        chaos_drop(c, where, &copies);
    ox_copies_fini(&copies);
    c->faults = false;
    if (c->w.loop->dead || (c->ml && c->ml->state == OX_ML_FENCED))
        chaos_restart(c);
    ox_sim_arm(c->w.node, NULL, 0, OX_SIM_CRASH_PROCESS);
    if (!c->w.other_away) {
        chaos_open(c);
        chaos_check(c);
    }
}

// At the end the log is deleted: nothing of it is left anywhere but copies that nobody adopted.
static void chaos_end(struct chaos *c)
{
    struct ox_op op;
    if (c->w.other_away)
        chaos_other(c);
    chaos_open(c);
    chaos_check(c);
    world_op(&c->w, &op);
    ox_mledger_delete(c->ml, &op);
    assert_int_equal(world_wait(&c->w, &op), OX_OK);
    c->ml = NULL;
    world_settle(&c->w);
    for (int64_t id = 0; id < CHAOS_IDS; id++)
        for (size_t place = 0; place < 2; place++) {
            const struct ox_ledger_info *l = ox_sim_store_find(place ? c->w.other_store : c->w.store, id);
            assert_true(!l || (ox_kv_find(&l->custom, OX_COPY_OF) && !c->adopted[place][id]));
        }
    world_fini(&c->w);
}

static void test_relocate_random_moves_lose_nothing(void **state)
{
    (void)state;
    size_t moved = 0, dropped = 0, crashes = 0, trouble = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct chaos *c = ox_malloc(sizeof *c);
        if (getenv("OX_LOG"))
            fprintf(stderr, "seed %d\n", (int)seed);
        world_init_two(&c->w, seed);
        c->w.on_meta = chaos_meta;
        chaos_open(c);
        for (int i = 0; i < 80; i++)
            chaos_step(c);
        moved += c->moved;
        dropped += c->dropped;
        crashes += c->crashes;
        trouble += c->trouble;
        c->w.on_meta = NULL;
        chaos_end(c);
        ox_free(c);
    }
    if (getenv("OX_LOG"))
        fprintf(stderr, "moved %zu dropped %zu crashes %zu trouble %zu\n", moved, dropped, crashes, trouble);
    assert_true(moved > 300 && dropped > 40 && crashes > 40 && trouble > 10); // it was not for nothing
}

// ---- out of an embedded store that was torn ------------------------------------------------------------------------------

#define TORN_WHOLE 10 // entries that are acknowledged before the last ones are sent
#define TORN_LATE 20  // and those in flight when the power goes

static void torn_start(struct world *w, uint64_t seed)
{
    world_init_embedded(w, seed);
    world_stop(w);
    w->other_store = ox_sim_store_new(2);
    w->settings.stamps = true;
    w->settings.retention_ms = w->settings.retention_bytes = -1;
    world_start(w);
}

// Entries in flight, a power cut in the middle of their writes, and a new process. Returns how many of them were acknowledged before.
static size_t torn_cut(struct world *w, uint64_t after_ns)
{
    struct ox_ml_append *late[TORN_LATE];
    size_t acknowledged = 0;
    struct ox_mledger *ml = world_open(w, NAME);
    world_fill(w, ml, 0, TORN_WHOLE);
    for (int i = 0; i < TORN_LATE; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", TORN_WHOLE + i);
        late[i] = world_append_start(w, ml, text);
        world_sleep(w, OX_MS / 50);
    }
    world_sleep(w, after_ns);
    for (int i = 0; i < TORN_LATE; i++)
        acknowledged += !ox_op_pending(&late[i]->op) && late[i]->op.err == OX_OK;
    world_power_cut(w);
    world_close(w, ml);
    world_settle(w);
    world_stop(w);
    ox_sim_node_restart(w->node);
    world_start(w);
    for (int i = 0; i < TORN_LATE; i++) {
        world_wait(w, &late[i]->op);
        ox_free(late[i]);
    }
    return acknowledged;
}

static void torn_move(struct world *w, struct ox_mledger *ml)
{
    struct ox_ml_relocate op = {.log = NAME, .ledger = ml->ledgers[0]->where.id, .from = ml->ledgers[0]->where, .digest = "d"};
    op.to = world_copy(w, NAME, op.from, 1);
    world_op(w, &op.op);
    ox_ml_relocate(&w->factory, &op);
    assert_int_equal(world_wait(w, &op.op), OX_OK);
    assert_int_equal(ox_sim_store_find(w->other_store, op.to.physical)->last_entry + 1, ml->ledgers[0]->entries);
    ox_tail_cache_drop_ledger(&w->factory.cache, op.to.id);
}

// Returns how many of the entries in flight are gone: those were never acknowledged.
static size_t torn_store_moves(uint64_t seed, uint64_t after_ns)
{
    struct world w;
    struct ox_str want = {0};
    torn_start(&w, seed);
    size_t acknowledged = torn_cut(&w, after_ns);
    struct ox_mledger *ml = world_open(&w, NAME);
    size_t there = (size_t)ml->ledgers[0]->entries;
    assert_in_range(there, TORN_WHOLE + acknowledged, TORN_WHOLE + TORN_LATE);
    for (size_t i = 0; i < there; i++)
        ox_str_addf(&want, "%s%zu", i ? " " : "", i);
    torn_move(&w, ml);
    char *all = world_read_all(&w, ml, OX_POS_EARLIEST);
    assert_string_equal(all, ox_str_get(&want));
    assert_int_equal(ml->ledgers[0]->where.place, 1);
    ox_free(all);
    ox_str_fini(&want);
    world_close(&w, ml);
    world_fini(&w);
    return TORN_WHOLE + TORN_LATE - there;
}

// fault: H5
static void test_relocate_out_of_a_store_that_was_torn(void **state)
{
    (void)state;
    size_t torn = 0, kept = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        size_t gone = torn_store_moves(seed, seed * OX_MS / 50);
        torn += gone > 0;
        kept += gone < TORN_LATE;
    }
    assert_true(torn > 0 && kept > 0); // both ends of a torn write were seen
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relocate_there_and_back_while_the_log_is_open),
        cmocka_unit_test(test_relocate_there_and_back_without_opening_the_log),
        cmocka_unit_test(test_relocate_to_another_physical_id),
        cmocka_unit_test(test_relocate_refuses_what_the_record_does_not_say),
        cmocka_unit_test(test_relocate_refuses_a_copy_that_is_not_whole),
        cmocka_unit_test(test_relocate_lets_reads_in_flight_end_where_they_began),
        cmocka_unit_test(test_relocate_saves_a_read_from_a_place_that_fails),
        cmocka_unit_test(test_relocate_of_a_closed_log_makes_its_opening_wait),
        cmocka_unit_test(test_relocate_of_an_open_log_is_over_before_it_closes),
        cmocka_unit_test(test_relocate_outcome_that_is_unknown_is_learned),
        cmocka_unit_test(test_relocate_outlives_other_writers),
        cmocka_unit_test(test_relocate_gives_up_and_says_what_is_not_known),
        cmocka_unit_test(test_relocate_and_drop_of_the_same_copy),
        cmocka_unit_test(test_relocate_crash_leaves_every_entry_readable),
        cmocka_unit_test(test_relocate_stamp_survives_the_life_of_the_log),
        cmocka_unit_test(test_relocate_trim_takes_the_copies_along),
        cmocka_unit_test(test_relocate_deleted_log_takes_the_copies_along),
        cmocka_unit_test(test_relocate_leaves_copies_alone_that_it_does_not_understand),
        cmocka_unit_test(test_relocate_random_moves_lose_nothing),
        cmocka_unit_test(test_relocate_out_of_a_store_that_was_torn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
