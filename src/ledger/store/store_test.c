// store_test.c - the engine's answers to damage, failed syncs, full disks, deletes and sparse segments.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ledger/store/store_int.h"
#include "ledger/store/store_rig.h"

static void rig_start(struct store_rig *rig)
{
    store_rig_init(rig, 1);
    assert_int_equal(store_rig_open(rig), OX_OK);
}

// Appends entries from..to-1 of `len` bytes.
static void rig_fill(struct store_rig *rig, struct ox_ledger *l, int64_t from, int64_t to, size_t len)
{
    for (int64_t e = from; e < to; e++)
        assert_int_equal(store_rig_append(rig, l, e, len), OX_OK);
}

static size_t rig_segments(struct store_rig *rig)
{
    return store_of(rig->place)->seg_count;
}

static void rig_flip(struct store_rig *rig, uint64_t segment, uint64_t offset)
{
    char path[64];
    snprintf(path, sizeof path, "store/seg-%016llx", (unsigned long long)segment);
    assert_true(ox_sim_disk_flip(rig->node, path, offset, 1));
}

static void test_memory_per_segment_and_ledger_is_bounded(void **state)
{
    (void)state;
    assert_true(sizeof(struct segment) <= 128);
    assert_true(sizeof(struct sledger) + sizeof(struct handle) <= 1024);
}

static void test_damaged_entry_answers_corrupt_and_the_rest_is_served(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    rig_fill(&rig, l, 0, 10, 100);
    uint32_t more, at = ox_index_find(&tail_current(store_of(rig.place))->index, 1, 3, &more)->offset;
    uint64_t segment = tail_current(store_of(rig.place))->seg->number;
    ox_ledger_release(l);
    store_rig_crash(&rig, OX_SIM_CRASH_MACHINE);
    rig_flip(&rig, segment, at + OX_RECORD_HEADER_BYTES + 50);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_metric(&rig, "oxbow_store_corrupt_entries_total"), 1);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &l), OX_OK);
    assert_int_equal(l->info.last_entry, 9);
    for (int64_t e = 0; e < 10; e++)
        assert_int_equal(store_rig_read(&rig, l, e, 100), e == 3 ? OX_E_CORRUPT : OX_OK);
    struct ox_read r = {.first = 0, .last = 9, .bytes_max = 10000};
    ox_op_init(&r.op, rig.loop, ox_sim_done, "read");
    ox_ledger_read(l, &r);
    assert_int_equal(ox_sim_wait(rig.sim, &r.op), OX_OK); // what stands before the damage
    assert_int_equal(r.count, 3);
    ox_read_fini(&r);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

static void test_bit_rot_in_a_batch_header_cuts_nothing(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    rig_fill(&rig, l, 0, 10, 100);
    uint64_t segment = tail_current(store_of(rig.place))->seg->number;
    ox_ledger_release(l);
    store_rig_crash(&rig, OX_SIM_CRASH_MACHINE);
    rig_flip(&rig, segment, 4 * OX_SEG_BLOCK + 10);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &l), OX_OK);
    assert_int_equal(l->info.last_entry, 9);
    for (int64_t e = 0; e < 10; e++)
        assert_int_equal(store_rig_read(&rig, l, e, 100), OX_OK);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

static void test_damaged_index_block_is_scanned_around(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    rig_fill(&rig, l, 0, 20, 100);
    struct segment *seg = tail_current(store_of(rig.place))->seg;
    uint64_t number = seg->number, used = tail_current(store_of(rig.place))->planned;
    ox_ledger_release(l);
    assert_int_equal(store_rig_close(&rig), OX_OK);
    rig_flip(&rig, number, used + OX_SEG_BLOCK + 20);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &l), OX_OK);
    for (int64_t e = 0; e < 20; e++)
        assert_int_equal(store_rig_read(&rig, l, e, 100), OX_OK);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

static void test_failed_sync_stops_appends_and_reads_go_on(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l, *other;
    struct ox_capacity capacity;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    assert_int_equal(store_rig_create(&rig, 2, &other), OX_OK);
    rig_fill(&rig, l, 0, 5, 100);
    ox_sim_disk_fail(rig.node, OX_SIM_DISK_SYNC, 1);
    assert_int_equal(store_rig_append(&rig, l, 5, 100), OX_E_PLACE_FAILED);
    assert_int_equal(store_rig_append(&rig, other, 0, 100), OX_E_PLACE_FAILED);
    assert_int_equal(store_rig_metric(&rig, "oxbow_store_failed"), 1);
    ox_place_capacity(rig.place, &capacity);
    assert_false(capacity.writable);
    for (int64_t e = 0; e < 5; e++)
        assert_int_equal(store_rig_read(&rig, l, e, 100), OX_OK);
    assert_int_equal(store_rig_read(&rig, l, 5, 100), OX_E_NO_ENTRY);
    ox_ledger_release(l);
    ox_ledger_release(other);
    assert_int_equal(store_rig_close(&rig), OX_OK);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &l), OX_OK);
    assert_true(l->info.last_entry >= 4);
    for (int64_t e = 0; e <= l->info.last_entry; e++)
        assert_int_equal(store_rig_read(&rig, l, e, 100), OX_OK);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

static void test_full_disk_refuses_appends_and_recovers_by_deletes(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    struct ox_capacity capacity;
    store_rig_init(&rig, 1);
    rig.config.reserve_bytes = 512 * 1024;
    ox_sim_disk_set_capacity(rig.node, 2 * 1024 * 1024);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    enum ox_err err = OX_OK;
    int64_t id = 0, entries = 0;
    while (err == OX_OK && id < 100) {
        id++;
        err = store_rig_create(&rig, id, &l);
        for (entries = 0; err == OX_OK && entries < 10; entries++)
            err = store_rig_append(&rig, l, entries, 5000);
        if (l)
            ox_ledger_release(l);
    }
    assert_int_equal(err, OX_E_NO_SPACE);
    assert_int_equal(store_rig_metric(&rig, "oxbow_store_full"), 1);
    ox_place_capacity(rig.place, &capacity);
    assert_false(capacity.writable);
    assert_int_equal(capacity.reserve, rig.config.reserve_bytes);
    assert_true(capacity.available < capacity.reserve + capacity.step);
    assert_true(ox_sim_disk_used(rig.node) <= 2 * 1024 * 1024 - 512 * 1024 + 64 * 1024); // the reserve is free, but for footers
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &l), OX_OK);
    assert_int_equal(store_rig_read(&rig, l, 0, 5000), OX_OK);
    ox_ledger_release(l);
    for (int64_t i = 1; i < id; i++)
        assert_int_equal(store_rig_delete(&rig, i), OX_OK);
    ox_sim_run_for(rig.sim, 5 * OX_SEC);
    assert_int_equal(store_rig_create(&rig, 1000, &l), OX_OK);
    rig_fill(&rig, l, 0, 20, 5000);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

static void test_deleted_ledgers_give_their_files_back(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    for (int64_t id = 1; id <= 60; id++) {
        assert_int_equal(store_rig_create(&rig, id, &l), OX_OK);
        rig_fill(&rig, l, 0, 10, 8000);
        ox_ledger_release(l);
        if (id > 5)
            assert_int_equal(store_rig_delete(&rig, id - 5), OX_OK);
    }
    ox_sim_run_for(rig.sim, 5 * OX_SEC);
    assert_true(rig_segments(&rig) <= 8);
    assert_true(ox_sim_disk_used(rig.node) < 4 * 1024 * 1024);
    assert_true(store_rig_metric(&rig, "oxbow_store_segments_recycled_total") > 10);
    store_rig_fini(&rig);
}

static void test_sparse_segments_are_compacted_and_lose_nothing(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *keep, *l;
    store_rig_init(&rig, 1);
    rig.config.compaction_bytes_per_s = 100 << 20;
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_create(&rig, 1, &keep), OX_OK);
    for (int64_t id = 2; id <= 60; id++) { // entries of ledger 1 are spread thin over many segments
        assert_int_equal(store_rig_append(&rig, keep, id - 2, id % 7 == 0 ? 0 : 300), OX_OK);
        assert_int_equal(store_rig_create(&rig, id, &l), OX_OK);
        rig_fill(&rig, l, 0, 10, 8000);
        ox_ledger_release(l);
    }
    size_t before = rig_segments(&rig);
    for (int64_t id = 2; id <= 60; id++)
        assert_int_equal(store_rig_delete(&rig, id), OX_OK);
    ox_sim_run_for(rig.sim, 10 * OX_SEC);
    assert_true(store_rig_metric(&rig, "oxbow_store_compaction_bytes_total") > 0);
    ox_ledger_release(keep);
    assert_int_equal(store_rig_close(&rig), OX_OK);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    ox_sim_run_for(rig.sim, 10 * OX_SEC);
    assert_true(rig_segments(&rig) < before / 2);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &keep), OX_OK);
    assert_int_equal(keep->info.last_entry, 58);
    for (int64_t e = 0; e <= 58; e++)
        assert_int_equal(store_rig_read(&rig, keep, e, (e + 2) % 7 == 0 ? 0 : 300), OX_OK);
    ox_ledger_release(keep);
    store_rig_fini(&rig);
}

// fault: H4
static void test_directory_in_use_is_refused(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_op op;
    struct ox_place *second = NULL;
    rig_start(&rig);
    ox_op_init(&op, rig.loop, ox_sim_done, "open");
    ox_store_open(rig.loop, ox_sim_fs(rig.node), &op, &rig.config, &second);
    assert_int_equal(ox_sim_wait(rig.sim, &op), OX_E_LOCKED);
    assert_null(second);
    store_rig_fini(&rig);
}

static void test_lost_table_is_refused_with_the_segments_untouched(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    rig_fill(&rig, l, 0, 3, 100);
    ox_ledger_release(l);
    assert_int_equal(store_rig_close(&rig), OX_OK);
    struct ox_memory_table *empty = ox_memory_table_new();
    rig.config.table = ox_memory_table_source(empty);
    assert_int_equal(store_rig_open(&rig), OX_E_CORRUPT);
    rig.config.table = ox_memory_table_source(rig.table);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_READ_ONLY, &l), OX_OK);
    assert_int_equal(store_rig_read(&rig, l, 2, 100), OX_OK);
    ox_ledger_release(l);
    store_rig_fini(&rig);
    ox_memory_table_free(empty);
}

static void test_table_that_cannot_commit_stops_nothing_that_is_durable(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    ox_memory_table_fail(rig.table, 3, OX_E_METADATA_FULL);
    rig_fill(&rig, l, 0, 100, 8000); // several segments; commits are tried again every second
    for (int64_t e = 0; e < 100; e++)
        assert_int_equal(store_rig_read(&rig, l, e, 8000), OX_OK);
    ox_ledger_release(l);
    store_rig_crash(&rig, OX_SIM_CRASH_MACHINE);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &l), OX_OK);
    assert_int_equal(l->info.last_entry, 99);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

static void test_entry_that_fits_no_segment_is_too_big(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    size_t max = (size_t)store_entry_max(store_of(rig.place));
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    assert_int_equal(store_rig_append(&rig, l, 0, max), OX_OK);
    assert_int_equal(store_rig_read(&rig, l, 0, max), OX_OK);
    assert_int_equal(store_rig_append(&rig, l, 1, max + 1), OX_E_TOO_BIG);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

// Appends that are handed over together.
struct rig_appends {
    struct ox_append a[40];
    size_t count;
};

static void rig_append_start(struct store_rig *rig, struct rig_appends *all, struct ox_ledger *l, int64_t entry, size_t len)
{
    struct ox_append *a = &all->a[all->count++];
    *a = (struct ox_append){.entry = entry, .part_count = 1};
    a->parts[0] = store_rig_bytes(l->info.id, entry, len);
    ox_op_init(&a->op, rig->loop, ox_sim_done, "append");
    ox_ledger_append(l, a);
}

// The outcome of the worst.
static enum ox_err rig_appends_wait(struct store_rig *rig, struct rig_appends *all)
{
    enum ox_err err = OX_OK;
    for (size_t i = 0; i < all->count; i++) {
        if (ox_op_pending(&all->a[i].op))
            (void)!ox_sim_wait(rig->sim, &all->a[i].op);
        err = all->a[i].op.err != OX_OK ? all->a[i].op.err : err;
        ox_buf_unref(&all->a[i].parts[0]);
    }
    all->count = 0;
    return err;
}

// More waits than the prepared segments take, and a closing store makes no new ones.
static void test_close_answers_appends_that_wait_for_a_segment(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    struct rig_appends all = {0};
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    for (int64_t e = 0; e < 40; e++)
        rig_append_start(&rig, &all, l, e, 25000);
    ox_ledger_release(l);
    assert_int_equal(store_rig_close(&rig), OX_OK);
    assert_int_equal(rig_appends_wait(&rig, &all), OX_E_SHUTDOWN);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    store_rig_fini(&rig);
}

// Neither half-made files nor emptied ones that were to be taken again may pile up.
static void test_segments_that_cannot_be_made_leave_nothing_behind(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    for (int round = 0; round < 2; round++) {
        struct store *s = store_of(rig.place);
        int64_t from = l->info.last_entry + 1;
        while (!prepare_active(s) && !s->next)
            rig_fill(&rig, l, from, from + 1, 8000), from++;
        ox_sim_faults(rig.sim)->write_fail = 1000000;
        ox_sim_run_for(rig.sim, 5 * OX_SEC); // by then the one that was under way has failed, or is ready
        ox_sim_faults(rig.sim)->write_fail = 0;
        while (s->next)
            rig_fill(&rig, l, from, from + 1, 8000), from++;
        uint64_t used = ox_sim_disk_used(rig.node);
        ox_sim_faults(rig.sim)->write_fail = 1000000;
        ox_sim_run_for(rig.sim, 30 * OX_SEC);
        ox_sim_faults(rig.sim)->write_fail = 0;
        assert_true(ox_sim_disk_used(rig.node) <= used + rig.config.segment_bytes);
        ox_sim_run_for(rig.sim, 3 * OX_SEC);
        rig_fill(&rig, l, from, from + 100, 8000);
        assert_true(ox_sim_disk_used(rig.node) <= used + 6 * rig.config.segment_bytes);
        if (round == 0) { // the second round with emptied files
            ox_ledger_release(l);
            assert_int_equal(store_rig_delete(&rig, 1), OX_OK);
            ox_sim_run_for(rig.sim, 5 * OX_SEC);
            assert_int_equal(store_rig_create(&rig, 2, &l), OX_OK);
        }
    }
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

static void test_store_opens_on_a_full_disk_so_that_deletes_can_free_it(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l = NULL;
    store_rig_init(&rig, 1);
    rig.config.reserve_bytes = 0;
    ox_sim_disk_set_capacity(rig.node, 2 * 1024 * 1024);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    enum ox_err err = OX_OK;
    int64_t id = 0;
    while (err == OX_OK && id < 200) {
        err = store_rig_create(&rig, ++id, &l);
        for (int64_t e = 0; err == OX_OK && e < 5; e++)
            err = store_rig_append(&rig, l, e, 5000);
        if (l)
            ox_ledger_release(l);
    }
    assert_int_equal(err, OX_E_NO_SPACE);
    ox_sim_disk_set_capacity(rig.node, ox_sim_disk_used(rig.node) + 160 * 1024); // others have taken the rest
    store_rig_crash(&rig, OX_SIM_CRASH_MACHINE);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_open_ledger(&rig, 1, OX_OPEN_RECOVER, &l), OX_OK);
    assert_int_equal(store_rig_read(&rig, l, 4, 5000), OX_OK);
    ox_ledger_release(l);
    for (int64_t i = 1; i < id; i++)
        assert_int_equal(store_rig_delete(&rig, i), OX_OK);
    ox_sim_run_for(rig.sim, 5 * OX_SEC);
    assert_int_equal(store_rig_create(&rig, 1000, &l), OX_OK);
    rig_fill(&rig, l, 0, 100, 5000);
    ox_ledger_release(l);
    assert_int_equal(store_rig_close(&rig), OX_OK);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    store_rig_fini(&rig);
}

// The last batch of a segment whose end no mark names: the next segment's marks tell that all of it was durable.
static void test_bit_rot_in_a_segments_last_batch_header_cuts_nothing(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l, *last, *gone;
    struct rig_appends all = {0};
    rig_start(&rig);
    struct tail *t = tail_current(store_of(rig.place));
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    assert_int_equal(store_rig_create(&rig, 2, &last), OX_OK);
    rig_fill(&rig, l, 0, 9, 20000);
    ox_memory_table_fail(rig.table, 1000, OX_E_METADATA_FULL);
    assert_int_equal(store_rig_create(&rig, 3, &gone), OX_OK);
    ox_ledger_release(gone);
    assert_int_equal(store_rig_delete(&rig, 3), OX_OK); // cannot be told to the table, so that nothing is sealed for a second
    while (t->planned + 2 * 5 * OX_SEG_BLOCK <= t->capacity)
        rig_fill(&rig, l, l->info.last_entry + 1, l->info.last_entry + 2, 1000);
    rig_append_start(&rig, &all, last, 0, 20000);                   // the last one of its segment ...
    rig_append_start(&rig, &all, l, l->info.last_entry + 1, 20000); // ... with the next one in flight behind it
    rig_append_start(&rig, &all, l, l->info.last_entry + 2, 20000);
    assert_int_equal(rig_appends_wait(&rig, &all), OX_OK);
    rig_fill(&rig, l, l->info.last_entry + 1, l->info.last_entry + 3, 20000);
    assert_ptr_not_equal(t, tail_current(store_of(rig.place)));
    assert_int_equal(t->seg->state, SEGMENT_SEALING);
    uint32_t more, at = ox_index_find(&t->index, 2, 0, &more)->offset - OX_BATCH_HEADER_BYTES;
    uint64_t segment = t->seg->number;
    assert_int_equal(at + 5 * OX_SEG_BLOCK, t->planned);
    ox_ledger_release(l);
    ox_ledger_release(last);
    store_rig_crash(&rig, OX_SIM_CRASH_MACHINE);
    rig_flip(&rig, segment, at + 10);
    ox_memory_table_fail(rig.table, 0, OX_OK);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    assert_int_equal(store_rig_open_ledger(&rig, 2, OX_OPEN_RECOVER, &last), OX_OK);
    assert_int_equal(last->info.last_entry, 0);
    assert_int_equal(store_rig_read(&rig, last, 0, 20000), OX_OK);
    ox_ledger_release(last);
    store_rig_fini(&rig);
}

// Appends are refused, not kept waiting for ever, and taken again when the table works.
static void test_table_that_never_commits_refuses_appends(void **state)
{
    (void)state;
    struct store_rig rig;
    struct ox_ledger *l;
    struct ox_capacity capacity;
    enum ox_err err = OX_OK;
    rig_start(&rig);
    assert_int_equal(store_rig_create(&rig, 1, &l), OX_OK);
    ox_memory_table_fail(rig.table, 1000000, OX_E_METADATA_FULL);
    int64_t e = 0;
    while (err == OX_OK && e < 1000)
        err = store_rig_append(&rig, l, e++, 8000);
    assert_int_equal(err, OX_E_NO_SPACE);
    ox_place_capacity(rig.place, &capacity);
    assert_false(capacity.writable);
    for (int64_t i = 0; i < e - 1; i++)
        assert_int_equal(store_rig_read(&rig, l, i, 8000), OX_OK);
    ox_ledger_release(l);
    ox_memory_table_fail(rig.table, 0, OX_OK);
    ox_sim_run_for(rig.sim, 5 * OX_SEC);
    ox_place_capacity(rig.place, &capacity);
    assert_true(capacity.writable);
    assert_int_equal(store_rig_create(&rig, 2, &l), OX_OK);
    rig_fill(&rig, l, 0, 100, 8000);
    ox_ledger_release(l);
    store_rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_per_segment_and_ledger_is_bounded),
        cmocka_unit_test(test_damaged_entry_answers_corrupt_and_the_rest_is_served),
        cmocka_unit_test(test_bit_rot_in_a_batch_header_cuts_nothing),
        cmocka_unit_test(test_damaged_index_block_is_scanned_around),
        cmocka_unit_test(test_failed_sync_stops_appends_and_reads_go_on),
        cmocka_unit_test(test_full_disk_refuses_appends_and_recovers_by_deletes),
        cmocka_unit_test(test_deleted_ledgers_give_their_files_back),
        cmocka_unit_test(test_sparse_segments_are_compacted_and_lose_nothing),
        cmocka_unit_test(test_directory_in_use_is_refused),
        cmocka_unit_test(test_lost_table_is_refused_with_the_segments_untouched),
        cmocka_unit_test(test_table_that_cannot_commit_stops_nothing_that_is_durable),
        cmocka_unit_test(test_entry_that_fits_no_segment_is_too_big),
        cmocka_unit_test(test_close_answers_appends_that_wait_for_a_segment),
        cmocka_unit_test(test_segments_that_cannot_be_made_leave_nothing_behind),
        cmocka_unit_test(test_store_opens_on_a_full_disk_so_that_deletes_can_free_it),
        cmocka_unit_test(test_bit_rot_in_a_segments_last_batch_header_cuts_nothing),
        cmocka_unit_test(test_table_that_never_commits_refuses_appends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
