// table_test.c - rows, extents and live counts, over memory and over LMDB.
#include "ledger/store/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ledger/store/table_memory.h"
#include "sim/sim.h"

// Every test runs once for each body.
struct rig {
    struct ox_sim *sim;
    struct ox_loop *loop;
    struct ox_memory_table *memory;
    struct ox_table_source source;
    struct ox_table *table;
    char dir[32];
};

static void rig_op(struct rig *rig, struct ox_op *op)
{
    ox_op_init(op, rig->loop, ox_sim_done, "table");
}

static void rig_open(struct rig *rig)
{
    struct ox_op op;
    rig_op(rig, &op);
    ox_table_open(rig->loop, &op, rig->source, rig->dir, &rig->table);
    assert_int_equal(ox_sim_wait(rig->sim, &op), OX_OK);
}

static void rig_close(struct rig *rig)
{
    struct ox_op op;
    rig_op(rig, &op);
    ox_table_close(rig->table, &op);
    assert_int_equal(ox_sim_wait(rig->sim, &op), OX_OK);
}

static void rig_start(struct rig *rig, bool lmdb)
{
    *rig = (struct rig){.sim = ox_sim_new(1, NULL)};
    rig->loop = ox_sim_loop(ox_sim_node_new(rig->sim, "a"));
    rig->memory = ox_memory_table_new();
    rig->source = lmdb ? ox_table_lmdb() : ox_memory_table_source(rig->memory);
    snprintf(rig->dir, sizeof rig->dir, "table-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    rig_open(rig);
}

static void rig_end(struct rig *rig)
{
    char path[64];
    rig_close(rig);
    ox_sim_free(rig->sim);
    ox_memory_table_free(rig->memory);
    snprintf(path, sizeof path, "%s/table.mdb", rig->dir);
    (void)!unlink(path);
    snprintf(path, sizeof path, "%s/table.mdb-lock", rig->dir);
    (void)!unlink(path);
    assert_int_equal(rmdir(rig->dir), 0);
}

static enum ox_err rig_commit(struct rig *rig, struct ox_table_changes *c)
{
    struct ox_op op;
    rig_op(rig, &op);
    strcpy(c->meta.identity, "11111111-2222-4333-8444-555555555555");
    ox_table_commit(rig->table, &op, c);
    return ox_sim_wait(rig->sim, &op);
}

static void rig_create(struct rig *rig, int64_t id)
{
    struct ox_table_row row = {.id = id, .created = true, .last_entry = -1};
    struct ox_table_changes c = {.rows = &row, .row_count = 1};
    ox_kv_set(&row.custom, "owner", "x");
    assert_int_equal(rig_commit(rig, &c), OX_OK);
    ox_table_row_fini(&row);
    ox_free(c.live);
}

// Seals a segment that holds count entries of a ledger from first, of 10 bytes each.
static void rig_seal(struct rig *rig, uint64_t number, int64_t ledger, int64_t first, uint32_t count)
{
    struct ox_item items[100];
    const struct ox_item *all[1] = {items};
    for (uint32_t i = 0; i < count; i++)
        items[i] = (struct ox_item){i * 64, 10};
    struct ox_run run = {.ledger = ledger, .first = first, .count = count, .bytes = count * 10};
    struct ox_table_segment segment = {.number = number, .file_bytes = 4096};
    struct ox_table_changes c = {.segment = &segment, .runs = &run, .items = all, .run_count = 1};
    assert_int_equal(rig_commit(rig, &c), OX_OK);
    ox_free(c.live);
}

static uint64_t rig_live(struct rig *rig, uint64_t segment)
{
    struct ox_op op;
    struct ox_table_image image;
    uint64_t live = UINT64_MAX;
    rig_op(rig, &op);
    ox_table_load(rig->table, &op, &image);
    assert_int_equal(ox_sim_wait(rig->sim, &op), OX_OK);
    for (size_t i = 0; i < image.count; i++) {
        if (image.segments[i].number == segment)
            live = image.segments[i].live_entries;
    }
    ox_free(image.segments);
    return live;
}

static enum ox_err rig_extent(struct rig *rig, int64_t id, int64_t entry, struct ox_table_extent *ret)
{
    struct ox_op op;
    rig_op(rig, &op);
    ox_table_extent(rig->table, &op, id, entry, ret);
    return ox_sim_wait(rig->sim, &op);
}

static void check_moved_entries_cut_older_extents(struct rig *rig)
{
    struct ox_table_extent x;
    rig_create(rig, 7);
    rig_seal(rig, 1, 7, 0, 100);
    assert_int_equal(rig_live(rig, 1), 100);
    rig_seal(rig, 2, 7, 40, 20); // out of the middle
    assert_int_equal(rig_live(rig, 1), 80);
    assert_int_equal(rig_live(rig, 2), 20);
    assert_int_equal(rig_extent(rig, 7, 39, &x), OX_OK);
    assert_true(x.segment == 1 && x.first == 0 && x.last == 39 && x.pos == 0);
    assert_int_equal(rig_extent(rig, 7, 45, &x), OX_OK);
    assert_true(x.segment == 2 && x.first == 40 && x.last == 59 && x.pos == 0);
    assert_int_equal(rig_extent(rig, 7, 60, &x), OX_OK);
    assert_true(x.segment == 1 && x.first == 60 && x.last == 99 && x.pos == 60);
    rig_seal(rig, 3, 7, 0, 100); // all of it
    assert_int_equal(rig_live(rig, 1), 0);
    assert_int_equal(rig_live(rig, 2), 0);
    assert_int_equal(rig_extent(rig, 7, 100, &x), OX_E_NO_ENTRY);
}

static void check_delete_frees_entries_and_dead_runs_stay_dead(struct rig *rig)
{
    struct ox_table_extent x;
    struct ox_table_row gone = {.id = 7, .deleted = true};
    struct ox_table_changes c = {.rows = &gone, .row_count = 1};
    rig_create(rig, 7);
    rig_create(rig, 8);
    rig_seal(rig, 1, 7, 0, 10);
    rig_seal(rig, 2, 8, 0, 10);
    assert_int_equal(rig_commit(rig, &c), OX_OK);
    ox_free(c.live);
    assert_int_equal(rig_live(rig, 1), 0);
    assert_int_equal(rig_live(rig, 2), 10);
    rig_seal(rig, 3, 7, 10, 10); // entries of the deleted ledger that were on their way
    assert_int_equal(rig_live(rig, 3), 0);
    assert_int_equal(rig_extent(rig, 7, 0, &x), OX_E_NO_ENTRY);
    assert_int_equal(rig_extent(rig, 8, 5, &x), OX_OK);
}

static void check_rows_survive_a_reopen(struct rig *rig)
{
    struct ox_op op;
    struct ox_table_row *rows, row = {.id = 5, .state = OX_LEDGER_CLOSED, .last_entry = 41, .length = 420};
    struct ox_table_changes c = {.rows = &row, .row_count = 1};
    size_t count;
    for (int64_t id = 1; id <= 20; id++)
        rig_create(rig, id);
    assert_int_equal(rig_commit(rig, &c), OX_OK);
    ox_free(c.live);
    rig_close(rig);
    rig_open(rig);
    struct ox_table_row got;
    rig_op(rig, &op);
    ox_table_find(rig->table, &op, 5, &got);
    assert_int_equal(ox_sim_wait(rig->sim, &op), OX_OK);
    assert_true(got.state == OX_LEDGER_CLOSED && got.last_entry == 41 && got.length == 420);
    assert_string_equal(ox_kv_find(&got.custom, "owner"), "x"); // a change leaves the metadata
    ox_table_row_fini(&got);
    rig_op(rig, &op);
    ox_table_list(rig->table, &op, 15, 3, &rows, &count);
    assert_int_equal(ox_sim_wait(rig->sim, &op), OX_OK);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].id, 16);
    for (size_t i = 0; i < count; i++)
        ox_table_row_fini(&rows[i]);
    ox_free(rows);
}

static void rig_run_both(void (*check)(struct rig *rig))
{
    for (int lmdb = 0; lmdb < 2; lmdb++) {
        struct rig rig;
        rig_start(&rig, lmdb);
        check(&rig);
        rig_end(&rig);
    }
}

static void test_moved_entries_cut_older_extents(void **state)
{
    (void)state;
    rig_run_both(check_moved_entries_cut_older_extents);
}

static void test_delete_frees_entries_and_dead_runs_stay_dead(void **state)
{
    (void)state;
    rig_run_both(check_delete_frees_entries_and_dead_runs_stay_dead);
}

static void test_rows_survive_a_reopen(void **state)
{
    (void)state;
    rig_run_both(check_rows_survive_a_reopen);
}

static void test_failed_commit_changes_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct ox_op op;
    struct ox_table_row got, row = {.id = 1, .created = true, .last_entry = -1};
    struct ox_table_changes c = {.rows = &row, .row_count = 1};
    rig_start(&rig, false);
    ox_memory_table_fail(rig.memory, 1, OX_E_METADATA_FULL);
    assert_int_equal(rig_commit(&rig, &c), OX_E_METADATA_FULL);
    rig_op(&rig, &op);
    ox_table_find(rig.table, &op, 1, &got);
    assert_int_equal(ox_sim_wait(rig.sim, &op), OX_E_NO_LEDGER);
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved_entries_cut_older_extents),
        cmocka_unit_test(test_delete_frees_entries_and_dead_runs_stay_dead),
        cmocka_unit_test(test_rows_survive_a_reopen),
        cmocka_unit_test(test_failed_commit_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
