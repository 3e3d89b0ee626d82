// data_test.c - the data stage on two simulated places: copies, failures, crashes, races, and the verbs around it.
#include "move/storage/data_rig.h"

#include <stdio.h>
#include <string.h>

#define LOG_A "public/default/persistent/a"
#define LOG_B "public/default/persistent/b"

// ---- copying

static void test_data_moves_sealed_ledgers_whatever_their_entries(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[3];
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    struct ox_mledger *ml = world_open(&r.w, LOG_B);
    int64_t big = ml->ledgers[ml->ledger_count - 1]->where.id;
    rig_append(&r, ml, 0, 0);
    rig_append(&r, ml, 5 << 20, 3);
    rig_append(&r, ml, 1, 9);
    rig_append(&r, ml, 0, 0);
    for (int i = 0; i < 40; i++)
        rig_append(&r, ml, 100000, (uint8_t)i);
    assert_int_equal(world_roll(&r.w, ml), OX_OK);
    world_close(&r.w, ml);
    OX_CLEANUP(ox_free_ptr)
    char *a = rig_content(&r, LOG_A);
    OX_CLEANUP(ox_free_ptr)
    char *b = rig_content(&r, LOG_B);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_true(ox_list_empty(&r.st.failures));
    for (int i = 0; i < 3; i++) {
        size_t copies = 0;
        assert_string_equal(rig_where(&r, LOG_A, ids[i], &copies, NULL), "other");
        assert_int_equal(copies, 1);
    }
    assert_string_equal(rig_where(&r, LOG_B, big, NULL, NULL), "other");
    assert_int_equal(r.st.data.done, 4);
    assert_int_equal(r.st.data.total, 4);
    assert_int_equal(r.st.data.bytes, r.st.data.bytes_total);
    assert_true(r.st.data.over);
    assert_int_equal(r.st.conflicts.value, 0);
    assert_int_equal(r.st.moving->m_entries.value, 30 + 44);
    assert_int_equal(r.st.moving->flying.used, 0);
    OX_CLEANUP(ox_free_ptr)
    char *a_after = rig_content(&r, LOG_A);
    OX_CLEANUP(ox_free_ptr)
    char *b_after = rig_content(&r, LOG_B);
    assert_string_equal(a, a_after);
    assert_string_equal(b, b_after);
    rig_fini(&r);
}

// The last ledger of a log that nobody has loaded since is sealed by opening it.
static void test_data_seals_what_an_unloaded_log_left_open(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    int64_t id = ml->ledgers[0]->where.id;
    world_fill(&r.w, ml, 0, 5);
    world_close(&r.w, ml);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_string_equal(rig_where(&r, LOG_A, id, NULL, NULL), "other");
    rig_fini(&r);
}

// A loaded log leaves its open ledger by itself; the stage waits for that.
static void test_data_waits_for_the_owner_of_an_open_ledger(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    int64_t id = ml->ledgers[0]->where.id;
    world_fill(&r.w, ml, 0, 5);
    rig_run_start(&r, 1);
    world_sleep(&r.w, 20 * OX_SEC);
    assert_true(ox_op_pending(&r.run));
    assert_string_equal(rig_where(&r, LOG_A, id, NULL, NULL), "default");
    assert_int_equal(world_roll(&r.w, ml), OX_OK);
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    assert_string_equal(rig_where(&r, LOG_A, id, NULL, NULL), "other");
    OX_CLEANUP(ox_free_ptr)
    char *all = world_read_all(&r.w, ml, ox_ml_first(ml));
    assert_string_equal(all, "0 1 2 3 4");
    world_close(&r.w, ml);
    rig_fini(&r);
}

static void test_data_switch_back_flips_without_copying(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[2];
    rig_init(&r);
    rig_log(&r, LOG_A, 2, 10, ids);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    int64_t copied = r.st.moving->m_entries.value;
    assert_int_equal(rig_run(&r, 0), OX_OK);
    assert_int_equal(r.st.moving->m_entries.value, copied);
    assert_int_equal(r.st.data.bytes, r.st.data.bytes_total);
    for (int i = 0; i < 2; i++) {
        size_t copies = 0;
        assert_string_equal(rig_where(&r, LOG_A, ids[i], &copies, NULL), "default");
        assert_int_equal(copies, 1);
    }
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// The ledger is not any more what its digest on record was computed of: it stays where it is, and no copy of the wrong bytes becomes the truth.
static void test_data_source_that_is_not_as_recorded_is_refused(void **state)
{
    (void)state;
    struct rig r;
    int64_t id;
    struct ox_storage_call c;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &id);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "default", false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    ox_storage_call_fini(&c);
    struct ox_kv custom = {0};
    ox_kv_copy(&custom, &ox_sim_store_find(r.w.other_store, id)->custom);
    assert_true(ox_sim_store_lose(r.w.other_store, id));
    ox_sim_store_make(r.w.other_store, id, &custom, 10);
    ox_kv_fini(&custom);
    assert_int_equal(rig_run(&r, 0), OX_OK);
    assert_string_equal(rig_where(&r, LOG_A, id, NULL, NULL), "other");
    assert_non_null(strstr(rig_failure(&r, LOG_A, id)->reason, "digest on record"));
    assert_false(ox_sim_store_has(r.w.store, id));
    rig_fini(&r);
}

// A copy on record that turns out to be unfit isn't flipped to.
static void test_data_unfit_copy_on_record_is_made_anew(void **state)
{
    (void)state;
    struct rig r;
    int64_t id, physical = 0;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &id);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    struct ox_kv owner = {0};
    ox_ml_owner(&r.w.factory, LOG_A, NULL, &owner);
    assert_true(ox_sim_store_lose(r.w.store, id));
    ox_sim_store_make(r.w.store, id, &owner, 4); // shorter than it should be
    ox_kv_fini(&owner);
    assert_int_equal(rig_run(&r, 0), OX_OK);
    assert_string_equal(rig_where(&r, LOG_A, id, NULL, &physical), "default");
    assert_int_not_equal(physical, id);
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// A target that stores other bytes than it was given and says nothing: only reading them back shows it. The ledger stays where it is.
static void test_data_copy_of_other_bytes_is_refused(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[2];
    rig_init(&r);
    rig_log(&r, LOG_A, 2, 10, ids);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    r.garble = true;
    assert_int_equal(rig_run(&r, 1), OX_OK);
    for (int i = 0; i < 2; i++) {
        const struct storage_failure *f = rig_failure(&r, LOG_A, ids[i]);
        assert_non_null(f);
        assert_non_null(strstr(f->reason, "the copy isn't what was written in place other"));
        assert_string_equal(rig_where(&r, LOG_A, ids[i], NULL, NULL), "default");
        assert_false(ox_sim_store_has(r.w.other_store, ids[i]));
    }
    struct ox_storage_call c;
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "default", false, true, 0); // there is nothing yet that could be cleared
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 0);
    ox_storage_call_fini(&c);
    r.garble = false;
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_true(ox_list_empty(&r.st.failures));
    assert_string_equal(rig_where(&r, LOG_A, ids[0], NULL, NULL), "other");
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// C8: equal id, count and length, of somebody else.
// fault: C8
static void test_data_foreign_ledger_under_the_id_is_left_alone(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[2], physical = 0;
    struct ox_kv foreign = {0};
    rig_init(&r);
    rig_log(&r, LOG_A, 2, 10, ids);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    ox_kv_set(&foreign, "application", "somebody");
    ox_sim_store_make(r.w.other_store, ids[1], &foreign, 10);
    ox_kv_fini(&foreign);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_true(ox_list_empty(&r.st.failures));
    assert_string_equal(rig_where(&r, LOG_A, ids[0], NULL, &physical), "other");
    assert_int_equal(physical, ids[0]);
    assert_string_equal(rig_where(&r, LOG_A, ids[1], NULL, &physical), "other");
    assert_int_not_equal(physical, ids[1]);
    assert_int_equal(r.st.conflicts.value, 1);
    assert_string_equal(ox_kv_find(&ox_sim_store_find(r.w.other_store, ids[1])->custom, "application"), "somebody");
    assert_int_equal(ox_sim_store_find(r.w.other_store, ids[1])->last_entry, 9);
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// ---- failures

// D4: the ledger stays, everything else goes on.
// fault: D4
static void test_data_corrupt_entry_is_named_and_the_rest_goes_on(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[3];
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    ox_sim_store_damage(r.w.store, ids[1], 7);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    const struct storage_failure *f = rig_failure(&r, LOG_A, ids[1]);
    assert_non_null(f);
    assert_int_equal(f->entry, 7);
    assert_string_equal(f->place, "default");
    assert_int_equal(r.st.failures.count, 1);
    assert_int_equal(r.st.data.failures, 1);
    assert_int_equal(r.st.data.done, 2);
    assert_string_equal(rig_where(&r, LOG_A, ids[1], NULL, NULL), "default");
    assert_string_equal(rig_where(&r, LOG_A, ids[0], NULL, NULL), "other");
    assert_string_equal(rig_where(&r, LOG_A, ids[2], NULL, NULL), "other");
    assert_false(ox_sim_store_has(r.w.other_store, ids[1])); // nothing half-made stays
    rig_fini(&r);
}

// A ledger in the store as a crash of bookies would leave it.
static void make_source(struct rig *r, int64_t id, int64_t entries)
{
    struct ox_kv owner = {0};
    ox_ml_owner(&r->w.factory, LOG_A, NULL, &owner);
    assert_true(ox_sim_store_lose(r->w.store, id));
    if (entries >= 0)
        ox_sim_store_make(r->w.store, id, &owner, entries);
    ox_kv_fini(&owner);
}

static void test_data_missing_entries_and_ledgers_are_failures(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[3];
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    make_source(&r, ids[0], 6);
    make_source(&r, ids[1], -1);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_int_equal(r.st.failures.count, 2);
    assert_int_equal(rig_failure(&r, LOG_A, ids[0])->entry, 6);
    assert_non_null(rig_failure(&r, LOG_A, ids[1]));
    assert_string_equal(rig_where(&r, LOG_A, ids[0], NULL, NULL), "default");
    assert_string_equal(rig_where(&r, LOG_A, ids[1], NULL, NULL), "default");
    assert_string_equal(rig_where(&r, LOG_A, ids[2], NULL, NULL), "other");
    rig_fini(&r);
}

// D5: all that the place has is copied; the counts on record stay, and readers with them.
// fault: D5
static void test_data_entries_beyond_the_count_are_copied(void **state)
{
    (void)state;
    struct rig r;
    int64_t id;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &id);
    make_source(&r, id, 13);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_int_equal(ox_sim_store_find(r.w.other_store, id)->last_entry, 12);
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// C7: the stage stops with the failure named, and goes on when there is room.
// fault: C7
static void test_data_full_target_is_waited_for(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[40];
    rig_init(&r);
    rig_log(&r, LOG_A, 40, 3, ids);
    r.slow_ns = 20 * OX_MS;
    rig_run_start(&r, 1);
    world_sleep(&r.w, 30 * OX_MS);
    r.full = true;
    world_sleep(&r.w, 60 * OX_SEC);
    assert_true(ox_op_pending(&r.run));
    assert_true(r.st.failures.count > 0);
    const struct storage_failure *f = CONTAINER_OF(ox_list_first(&r.st.failures), struct storage_failure, link);
    assert_string_equal(f->place, "other");
    assert_non_null(strstr(f->reason, "full"));
    rig_count(&r);
    world_sleep(&r.w, 60 * OX_SEC);
    assert_in_range(r.creates, 1, 200); // it looks now and then
    r.full = false;
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    assert_true(ox_list_empty(&r.st.failures));
    assert_int_equal(r.st.data.done, 40);
    assert_int_equal(r.st.data.failures, 0);
    for (int i = 0; i < 40; i++)
        assert_string_equal(rig_where(&r, LOG_A, ids[i], NULL, NULL), "other");
    rig_fini(&r);
}

// A place that says how much room it has.
struct small_place {
    struct ox_place_body body;
    uint64_t available;
};

static void small_capacity(struct ox_place *p, struct ox_capacity *ret)
{
    const struct small_place *s = CONTAINER_OF(p->body, struct small_place, body);
    *ret = (struct ox_capacity){.total = 1000000, .available = s->available, .writable = true};
}

// A quarter of the target is left free for clients: copying stops before it is full.
// fault: C7
static void test_data_leaves_room_for_clients(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[3];
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    struct ox_place *place = ox_router_place(&r.w.router, 1);
    struct small_place small = {.body = *place->body, .available = 250000 + 20};
    small.body.capacity = small_capacity;
    place->body = &small.body;
    r.st.p.config.concurrency = 1;
    rig_run_start(&r, 1);
    world_sleep(&r.w, 30 * OX_SEC); // the first one, of ten bytes, fits
    assert_true(ox_op_pending(&r.run));
    const struct storage_failure *f = CONTAINER_OF(ox_list_first(&r.st.failures), struct storage_failure, link);
    assert_string_equal(f->place, "other");
    assert_non_null(strstr(f->reason, "kept free for clients"));
    small.available = 1000000;
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    assert_true(ox_list_empty(&r.st.failures));
    assert_int_equal(r.st.data.done, 3);
    rig_fini(&r);
}

static void put_record(struct rig *r, const char *path, int64_t id, const char *place)
{
    struct ox_record *record = ox_record_new();
    ox_record_append_open(record, id);
    if (place)
        ox_record_stamp(record, (struct ox_location){0, id, id}, place);
    ox_record_seal(record, id, 3, 3, 1000);
    struct ox_buf value = ox_record_encode(record, false, "default");
    world_node_put(&r->w, path, value.data, value.len);
    ox_buf_unref(&value);
    ox_record_free(record);
}

// What can't be moved for good does not keep the rest.
static void test_data_unknown_place_and_unreadable_record_are_failures(void **state)
{
    (void)state;
    struct rig r;
    int64_t id;
    rig_init(&r);
    rig_log(&r, LOG_B, 1, 10, &id);
    put_record(&r, "/managed-ledgers/" LOG_A, 900, "gone");
    world_node_put(&r.w, "/managed-ledgers/public/default/persistent/z", "\xff\xff\xff", 3);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_int_equal(r.st.failures.count, 2);
    assert_non_null(strstr(rig_failure(&r, LOG_A, 900)->reason, "gone"));
    assert_non_null(rig_failure(&r, "public/default/persistent/z", -1));
    assert_string_equal(rig_where(&r, LOG_B, id, NULL, NULL), "other");
    rig_fini(&r);
}

// Sealed on record, but the close never reached the place: nobody writes it any more, so it is recovered.
// fault: D6
static void test_data_source_that_was_never_closed_is_recovered(void **state)
{
    (void)state;
    struct rig r;
    struct ox_kv owner = {0};
    struct ox_router_create create = {0};
    rig_init(&r);
    ox_ml_owner(&r.w.factory, LOG_A, NULL, &owner);
    world_op(&r.w, &create.op);
    ox_router_create_copy(&r.w.router, &create, 0, 900, &owner);
    assert_int_equal(world_wait(&r.w, &create.op), OX_OK);
    ox_kv_fini(&owner);
    for (int i = 0; i < 3; i++) {
        struct ox_append a = {.entry = i, .parts = {ox_buf_static("x", 1)}, .part_count = 1};
        world_op(&r.w, &a.op);
        ox_ledger_append(create.ledger, &a);
        assert_int_equal(world_wait(&r.w, &a.op), OX_OK);
    }
    ox_ledger_release(create.ledger);
    put_record(&r, "/managed-ledgers/" LOG_A, 900, NULL);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_string_equal(rig_where(&r, LOG_A, 900, NULL, NULL), "other");
    assert_int_equal(ox_sim_store_find(r.w.other_store, 900)->last_entry, 2);
    rig_fini(&r);
}

static void meta_away(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)w;
    (void)write;
    (void)path;
    fault->outcome = OX_META_FAIL_BEFORE;
}

// B6: metadata away for five minutes: the stage waits, no failure is counted.
// fault: B6
static void test_data_waits_for_the_metadata_store(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[10];
    rig_init(&r);
    rig_log(&r, LOG_A, 10, 10, ids);
    r.slow_ns = 20 * OX_MS;
    r.st.p.config.concurrency = 4;
    rig_run_start(&r, 1);
    world_sleep(&r.w, 30 * OX_MS);
    r.w.on_meta = meta_away;
    world_sleep(&r.w, 300 * OX_SEC);
    assert_true(ox_op_pending(&r.run));
    assert_true(ox_list_empty(&r.st.failures));
    r.w.on_meta = NULL;
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    assert_int_equal(r.st.data.done, 10);
    assert_int_equal(r.st.data.failures, 0);
    rig_fini(&r);
}

// D2: the source is away: failures, nothing changes; the next run goes on.
// fault: D2
static void test_data_source_away_is_a_failure_until_the_next_run(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[3];
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    struct ox_storage_call c;
    ox_storage_cleanup(&r.st, rig_call(&r, &c), NULL, false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    ox_storage_call_fini(&c);
    ox_router_activate(&r.w.router, 0);
    world_settle(&r.w);
    world_other_close(&r.w);
    assert_int_equal(rig_run(&r, 0), OX_OK);
    assert_true(r.st.data.failures >= 3);
    assert_string_equal(rig_failure(&r, LOG_A, ids[0])->place, "other");
    assert_string_equal(rig_where(&r, LOG_A, ids[0], NULL, NULL), "other");
    world_other_open(&r.w);
    assert_int_equal(rig_run(&r, 0), OX_OK);
    assert_true(ox_list_empty(&r.st.failures));
    for (int i = 0; i < 3; i++)
        assert_string_equal(rig_where(&r, LOG_A, ids[i], NULL, NULL), "default");
    rig_fini(&r);
}

// ---- crashes

// Crashes at a point, starts anew and runs again: everything is there once, nothing is left over.
static void check_crash(const char *point, bool foreign, bool copied_again)
{
    struct rig r;
    int64_t ids[2];
    struct ox_kv kv = {0};
    rig_init(&r);
    rig_log(&r, LOG_A, 2, 10, ids);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    ox_kv_set(&kv, "application", "somebody");
    if (foreign)
        ox_sim_store_make(r.w.other_store, ids[0], &kv, 10);
    ox_kv_fini(&kv);
    r.st.p.config.concurrency = 1;
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    assert_int_equal(rig_run(&r, 1), OX_E_CANCELED);
    assert_false(ox_sim_armed(r.w.node));
    rig_crash(&r);
    rig_count(&r);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    // The fresh ledger of the log that was opened to be sealed is one append less than nothing: it has none.
    assert_int_equal(r.appends, copied_again ? 20 : 10);
    if (!copied_again && strcmp(point, "data.after_relocate") != 0)
        assert_int_equal(r.st.conflicts.value, 1 + foreign); // what was taken over, and the stranger's before it
    for (int i = 0; i < 2; i++)
        assert_string_equal(rig_where(&r, LOG_A, ids[i], NULL, NULL), "other");
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    struct ox_storage_call c;
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "other", true, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(json_array_size(json_object_get(c.answer, "items")), 0);
    ox_storage_call_fini(&c);
    rig_fini(&r);
}

// fault: A2
static void test_data_crash_with_an_empty_copy(void **state)
{
    (void)state;
    check_crash("copy.after_create", false, true);
    check_crash("copy.after_create", true, true);
}

static void test_data_crash_in_the_middle_of_a_copy(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    int64_t id = ml->ledgers[0]->where.id;
    for (int i = 0; i < 40; i++)
        rig_append(&r, ml, 100000, (uint8_t)i);
    assert_int_equal(world_roll(&r.w, ml), OX_OK);
    world_close(&r.w, ml);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    r.each_ns = OX_MS;
    ox_sim_arm(r.w.node, "copy.after_range", 2, OX_SIM_CRASH_PROCESS);
    assert_int_equal(rig_run(&r, 1), OX_E_CANCELED);
    const struct ox_ledger_info *half = ox_sim_store_find(r.w.other_store, id);
    assert_non_null(half);
    assert_in_range(half->last_entry, 10, 38);
    rig_crash(&r);
    r.each_ns = 0;
    assert_int_equal(rig_run(&r, 1), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    assert_int_equal(ox_sim_store_find(r.w.other_store, id)->last_entry, 39);
    rig_fini(&r);
}

// fault: A3
static void test_data_crash_with_a_finished_copy_adopts_it(void **state)
{
    (void)state;
    check_crash("copy.after_entries", false, false); // the close was on its way behind them
    check_crash("copy.after_close", false, false);
    check_crash("copy.after_verify", false, false);
    check_crash("copy.after_verify", true, false); // under another id
}

// fault: A4
static void test_data_crash_after_the_record_copies_nothing_twice(void **state)
{
    (void)state;
    check_crash("data.after_relocate", false, false);
}

// A finished copy whose bytes are not the source's is not adopted.
static void test_data_finished_copy_of_other_bytes_is_made_anew(void **state)
{
    (void)state;
    struct rig r;
    int64_t id;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &id);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    struct ox_kv custom = {0};
    data_marker(&r.st, &custom, LOG_A, (struct ox_location){0, id, id}, 10);
    ox_sim_store_make(r.w.other_store, id, &custom, 10); // as many entries, as many bytes
    ox_kv_fini(&custom);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_int_equal(r.st.conflicts.value, 0);
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// ---- races

// E13: the log is deleted while its ledgers are being copied.
// fault: E13
static void test_data_log_deleted_during_the_copy_leaves_no_copy(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_log(&r, LOG_A, 4, 10, NULL);
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    r.slow_ns = 50 * OX_MS;
    ox_router_activate(&r.w.router, 1);
    rig_run_start(&r, 1);
    world_sleep(&r.w, 120 * OX_MS);
    assert_true(rig_ledgers(&r, 1) > 0);
    struct ox_op op;
    world_op(&r.w, &op);
    ox_mledger_delete(ml, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    world_settle(&r.w);
    assert_true(ox_list_empty(&r.st.failures));
    assert_int_equal(rig_ledgers(&r, 1), 0);
    assert_int_equal(rig_ledgers(&r, 0), 0);
    rig_fini(&r);
}

// fault: F13
static void test_data_pause_and_resume(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[20];
    rig_init(&r);
    rig_log(&r, LOG_A, 20, 10, ids);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    r.slow_ns = 100 * OX_MS;
    r.st.p.config.concurrency = 4;
    rig_run_start(&r, 1);
    world_sleep(&r.w, 150 * OX_MS);
    r.st.state = STORAGE_PAUSED;
    assert_int_equal(world_wait(&r.w, &r.run), OX_E_CANCELED);
    assert_true(r.st.data.done < 20);
    r.st.state = STORAGE_RUNNING;
    r.slow_ns = 0;
    assert_int_equal(rig_run(&r, 1), OX_OK);
    for (int i = 0; i < 20; i++)
        assert_string_equal(rig_where(&r, LOG_A, ids[i], NULL, NULL), "other");
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// ---- pace

// F14, in virtual time.
// fault: F14
static void test_data_throttle_is_exact_and_live(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    for (int n = 0; n < 4; n++) {
        for (int i = 0; i < 300; i++)
            rig_append(&r, ml, 10000, (uint8_t)i);
        assert_int_equal(world_roll(&r.w, ml), OX_OK);
    }
    world_close(&r.w, ml);
    struct ox_storage_call c;
    rig_switch(&r, false);
    ox_storage_throttle(&r.st, rig_call(&r, &c), 1000000, -1);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "bytesPerSecond"), 1000000);
    assert_int_equal(rig_number(&c, "opsPerSecond"), 0);
    ox_storage_call_fini(&c);
    assert_true(r.control.saver.wanted);
    rig_switch(&r, true);
    rig_run_start(&r, 1);
    world_sleep(&r.w, 5 * OX_SEC);
    assert_in_range(r.st.moving->copy.taken, 4500000, 5500000);
    assert_in_range(r.st.moving->rate, 900000, 1100000);
    assert_in_range(r.st.moving->m_eta.value, 6, 8);
    assert_int_equal(r.st.moving->m_throttle.value, 1000000);
    rig_switch(&r, false);
    ox_storage_throttle(&r.st, rig_call(&r, &c), 0, -1);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    rig_switch(&r, true);
    ox_storage_call_fini(&c);
    uint64_t before = ox_sim_now(r.w.sim);
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    assert_true(ox_sim_now(r.w.sim) - before < OX_SEC);
    rig_fini(&r);
}

static void test_data_operations_are_limited(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_log(&r, LOG_A, 10, 50, NULL);
    r.st.ops_per_s = 100;
    uint64_t before = ox_sim_now(r.w.sim);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    assert_in_range(ox_sim_now(r.w.sim) - before, 4800 * OX_MS, 6000 * OX_MS);
    rig_fini(&r);
}

// While clients wait long for their appends, copying takes less and less; then more again.
// fault: C12
static void test_data_yields_to_clients(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    r.st.p.config.latency_ns = 20 * OX_MS;
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    for (int i = 0; i < 2000; i++)
        rig_append(&r, ml, 50000, (uint8_t)i);
    assert_int_equal(world_roll(&r.w, ml), OX_OK);
    world_close(&r.w, ml);
    ml = world_open(&r.w, LOG_B);
    r.st.bytes_per_s = 20000000;
    rig_run_start(&r, 1);
    world_sleep(&r.w, OX_SEC);
    struct storage_data *d = r.st.moving;
    assert_int_equal(d->yield, 0);
    uint64_t taken = d->copy.taken;
    assert_in_range(taken, 18000000, 22000000);
    r.slow_ns = 40 * OX_MS; // everybody's appends
    for (int i = 0; i < 25; i++)
        rig_append(&r, ml, 10, 1);
    assert_true(r.w.factory.append_ns > 20 * OX_MS);
    assert_in_range(d->yield, DATA_YIELD_MIN, 3000000);
    assert_true(d->copy.taken - taken < 8000000);
    r.slow_ns = 0;
    for (int i = 0; i < 100; i++) {
        rig_append(&r, ml, 10, 1);
        world_sleep(&r.w, 50 * OX_MS);
    }
    assert_true(r.w.factory.append_ns < 20 * OX_MS);
    assert_int_equal(d->yield, 0);
    r.st.bytes_per_s = 0;
    data_throttle_apply(d);
    world_roll(&r.w, ml);
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    world_close(&r.w, ml);
    rig_fini(&r);
}

// ---- cleanup

static json_t *items_of(const struct ox_storage_call *c)
{
    return json_object_get(c->answer, "items");
}

// F8, F9: nothing in the window; forced, exactly what the dry run said.
// fault: F8 F9
static void test_cleanup_deletes_what_its_dry_run_lists(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[3];
    struct ox_storage_call dry, real, targets;
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    ox_storage_cleanup(&r.st, rig_call(&r, &real), NULL, false, false, 0);
    assert_int_equal(rig_wait(&r, &real), OX_E_CONFLICT);
    assert_non_null(strstr(ox_str_get(&real.why), "3 copies"));
    ox_storage_call_fini(&real);
    ox_storage_cleanup_targets(&r.st, rig_call(&r, &targets), NULL);
    assert_int_equal(rig_wait(&r, &targets), OX_OK);
    assert_int_equal(json_array_size(targets.answer), 3);
    ox_storage_cleanup(&r.st, rig_call(&r, &dry), "default", true, true, 0);
    assert_int_equal(rig_wait(&r, &dry), OX_OK);
    assert_int_equal(rig_number(&dry, "deleted"), 0);
    assert_true(json_equal(items_of(&dry), targets.answer));
    for (int i = 0; i < 3; i++)
        assert_true(ox_sim_store_has(r.w.store, ids[i]));
    ox_storage_cleanup(&r.st, rig_call(&r, &real), "default", false, true, 0);
    assert_int_equal(rig_wait(&r, &real), OX_OK);
    assert_true(json_equal(items_of(&dry), items_of(&real)));
    assert_int_equal(rig_number(&real, "deleted"), 3);
    assert_int_equal(rig_number(&real, "left"), 0);
    for (int i = 0; i < 3; i++) {
        size_t copies = 9;
        assert_false(ox_sim_store_has(r.w.store, ids[i]));
        assert_string_equal(rig_where(&r, LOG_A, ids[i], &copies, NULL), "other");
        assert_int_equal(copies, 0);
    }
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    ox_storage_call_fini(&dry);
    ox_storage_call_fini(&real);
    ox_storage_call_fini(&targets);
    rig_fini(&r);
}

static void test_cleanup_window_ends_and_max_is_kept(void **state)
{
    (void)state;
    struct rig r;
    struct ox_storage_call c;
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, NULL);
    r.st.p.config.window_ms = 60000;
    assert_int_equal(rig_run(&r, 1), OX_OK);
    world_sleep(&r.w, 61 * OX_SEC);
    ox_storage_cleanup(&r.st, rig_call(&r, &c), NULL, false, false, 2);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 2);
    assert_int_equal(rig_number(&c, "left"), 1);
    ox_storage_call_fini(&c);
    ox_storage_cleanup(&r.st, rig_call(&r, &c), NULL, false, false, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 1);
    assert_int_equal(rig_number(&c, "left"), 0);
    ox_storage_call_fini(&c);
    rig_fini(&r);
}

// A copy that became primary after the list was made is not deleted.
// fault: F8
static void test_cleanup_never_deletes_what_is_primary_again(void **state)
{
    (void)state;
    struct rig r;
    int64_t a, b;
    struct ox_storage_call c;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &a);
    rig_log(&r, LOG_B, 1, 10, &b);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_B);
    r.delete_ns = OX_SEC;
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "default", false, true, 0);
    world_sleep(&r.w, 500 * OX_MS); // the first one's delete is on its way, the list is made
    struct ox_ml_relocate back = {.log = LOG_B, .ledger = b, .from = {1, b, b}, .to = {0, b, b}};
    world_op(&r.w, &back.op);
    ox_ml_relocate(&r.w.factory, &back);
    assert_int_equal(world_wait(&r.w, &back.op), OX_OK);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 1);
    assert_int_equal(rig_number(&c, "left"), 1);
    ox_storage_call_fini(&c);
    assert_false(ox_sim_store_has(r.w.store, a));
    assert_true(ox_sim_store_has(r.w.store, b));
    assert_string_equal(rig_where(&r, LOG_B, b, NULL, NULL), "default");
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_B);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// Switch back while a cleanup deletes the very copies that become primary: whoever comes first, nothing that is primary is deleted, and both end.
static void test_cleanup_against_switch_back(void **state)
{
    (void)state;
    for (uint64_t lead = 0; lead < 12; lead++) {
        struct rig r;
        int64_t ids[12];
        struct ox_storage_call c;
        rig_init(&r);
        rig_log(&r, LOG_A, 6, 10, ids);
        rig_log(&r, LOG_B, 6, 10, ids + 6);
        OX_CLEANUP(ox_free_ptr)
        char *a = rig_content(&r, LOG_A), *b = rig_content(&r, LOG_B);
        assert_int_equal(rig_run(&r, 1), OX_OK);
        r.delete_ns = 20 * OX_MS;
        ox_router_activate(&r.w.router, 0);
        ox_storage_cleanup(&r.st, rig_call(&r, &c), "default", false, true, 0);
        world_sleep(&r.w, lead * 7 * OX_MS);
        rig_run_start(&r, 0);
        assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
        assert_int_equal(rig_wait(&r, &c), OX_OK);
        ox_storage_call_fini(&c);
        for (int i = 0; i < 12; i++) {
            int64_t physical = -1;
            assert_string_equal(rig_where(&r, i < 6 ? LOG_A : LOG_B, ids[i], NULL, &physical), "default");
            assert_true(ox_sim_store_has(r.w.store, physical));
        }
        assert_true(ox_list_empty(&r.st.failures));
        OX_CLEANUP(ox_free_ptr)
        char *after_a = rig_content(&r, LOG_A), *after_b = rig_content(&r, LOG_B);
        assert_string_equal(after_a, a);
        assert_string_equal(after_b, b);
        rig_fini(&r);
    }
}

// G4: the record of a moved ledger has lost its stamps. It is looked for in the wrong place now, but what is in the right one is not taken for a leftover.
// fault: G4
static void test_cleanup_keeps_what_has_lost_its_stamp(void **state)
{
    (void)state;
    struct rig r;
    int64_t id;
    struct ox_storage_call c;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &id);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    struct ox_buf node = world_node(&r.w, "/managed-ledgers/" LOG_A, NULL);
    struct ox_record *record = ox_record_new();
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    ox_buf_unref(&node);
    ox_record_unset_ledger_property(record, id, OX_STAMP_PLACE);
    ox_record_unset_ledger_property(record, id, OX_STAMP_COPIES);
    node = ox_record_encode(record, true, "default");
    ox_record_free(record);
    world_node_put(&r.w, "/managed-ledgers/" LOG_A, node.data, node.len);
    ox_buf_unref(&node);
    rig_switch(&r, false);
    r.w.factory.settings.unstamped_max = id - 1;
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "other", false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 0);
    ox_storage_call_fini(&c);
    assert_true(ox_sim_store_has(r.w.other_store, id));
    ox_storage_safe_to_release(&r.st, rig_call(&r, &c), "other");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *answer = json_dumps(c.answer, JSON_COMPACT);
    assert_non_null(strstr(answer, "1 ledgers made after the bootstrap"));
    ox_storage_call_fini(&c);
    r.w.factory.settings.unstamped_max = id; // it may well be unstamped: the other one is a leftover
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "other", false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 1);
    ox_storage_call_fini(&c);
    rig_fini(&r);
}

// A6: a crash anywhere; the next cleanup, or the sweep at the start, ends it.
static void check_cleanup_crash(const char *point)
{
    struct rig r;
    int64_t ids[3];
    struct ox_storage_call c;
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    ox_sim_arm(r.w.node, point, 2, OX_SIM_CRASH_PROCESS);
    ox_storage_cleanup(&r.st, rig_call(&r, &c), NULL, false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_E_SHUTDOWN);
    ox_storage_call_fini(&c);
    rig_crash(&r);
    struct ox_op op;
    world_op(&r.w, &op);
    ox_ml_orphans_sweep(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    ox_storage_cleanup(&r.st, rig_call(&r, &c), NULL, false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "left"), 0);
    ox_storage_call_fini(&c);
    for (int i = 0; i < 3; i++) {
        assert_false(ox_sim_store_has(r.w.store, ids[i]));
        assert_true(ox_sim_store_has(r.w.other_store, ids[i]));
    }
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

// fault: A6
static void test_cleanup_crash_between_record_and_delete(void **state)
{
    (void)state;
    check_cleanup_crash("cleanup.after_drop");
    check_cleanup_crash("cleanup.after_delete");
}

// Copies that no record names are deleted; what looks like one and isn't stays.
static void test_cleanup_deletes_leftovers(void **state)
{
    (void)state;
    struct rig r;
    int64_t id;
    struct ox_storage_call c;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &id);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    struct ox_kv kv = {0};
    data_marker(&r.st, &kv, LOG_A, (struct ox_location){0, 900, 900}, 10);
    ox_kv_set(&kv, OX_COPY_SWITCH, "an-older-one");
    ox_sim_store_make(r.w.other_store, 900, &kv, 4);  // unfinished
    ox_sim_store_make(r.w.other_store, 901, &kv, 10); // finished, on no record
    ox_kv_set(&kv, "pulsar/managed-ledger", "public/default/persistent/no-node");
    ox_sim_store_make(r.w.other_store, 902, &kv, 10); // finished, and its log has no record at all: kept
    ox_sim_store_make(r.w.other_store, 903, &kv, 4);
    ox_kv_set(&kv, OX_COPY_SWITCH, "sw-1");
    ox_sim_store_make(r.w.other_store, 904, &kv, 4); // of the switch that runs
    ox_kv_set(&kv, "oxbow/instance", "i-2");
    ox_kv_set(&kv, OX_COPY_SWITCH, "an-older-one");
    ox_sim_store_make(r.w.other_store, 905, &kv, 4); // a stranger's
    ox_kv_fini(&kv);
    ox_sim_arm(r.w.node, "cleanup.after_leftover", 2, OX_SIM_CRASH_PROCESS);
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "other", false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_E_SHUTDOWN);
    ox_storage_call_fini(&c);
    rig_crash(&r);
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "other", false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 1);
    ox_storage_call_fini(&c);
    static const bool stays[] = {false, false, true, false, true, true};
    for (int i = 0; i < 6; i++)
        assert_int_equal(ox_sim_store_has(r.w.other_store, 900 + i), stays[i]);
    assert_true(ox_sim_store_has(r.w.other_store, id));
    rig_fini(&r);
}

// ---- questions

// fault: F15
static void test_questions_about_data(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[3];
    struct ox_storage_call c;
    struct ox_kv foreign = {0};
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, ids);
    ox_kv_set(&foreign, "application", "somebody");
    ox_sim_store_make(r.w.other_store, ids[2], &foreign, 1);
    ox_kv_fini(&foreign);
    ox_storage_plan(&r.st, rig_call(&r, &c), "other", 10);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "ledgers"), 4); // and the one that is open
    assert_int_equal(rig_number(&c, "bytes"), 10 + 30 + 30);
    assert_int_equal(rig_number(&c, "seconds"), 7);
    assert_int_equal(rig_number(&c, "topics"), 1);
    assert_int_equal(rig_number(&c, "conflictCount"), 1);
    assert_true(json_is_true(json_object_get(c.answer, "fits")));
    ox_storage_call_fini(&c);
    ox_storage_plan(&r.st, rig_call(&r, &c), "nowhere", 0);
    assert_int_equal(rig_wait(&r, &c), OX_E_NOT_FOUND);
    ox_storage_call_fini(&c);

    ox_storage_move_data(&r.st, rig_call(&r, &c), "other");
    assert_int_equal(rig_wait(&r, &c), OX_E_CONFLICT);
    ox_storage_call_fini(&c);
    ox_router_activate(&r.w.router, 1);
    r.st.state = STORAGE_DONE;
    r.st.move_data = false;
    rig_switch(&r, false);
    ox_storage_move_data(&r.st, rig_call(&r, &c), "other"); // nothing that it could follow
    assert_int_equal(rig_wait(&r, &c), OX_E_CONFLICT);
    assert_non_null(strstr(ox_str_get(&c.why), "4 ledgers lie elsewhere, but no switch was made yet"));
    assert_true(!r.st.move_data && r.st.state == STORAGE_DONE);
    ox_storage_call_fini(&c);
    ox_router_activate(&r.w.router, 0);
    ox_storage_move_data(&r.st, rig_call(&r, &c), ox_router_name(&r.w.router, 0)); // nothing lies elsewhere
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "ledgers"), 0);
    assert_true(!r.st.move_data && r.st.state == STORAGE_DONE); // nothing that would never end
    ox_storage_call_fini(&c);
    ox_router_activate(&r.w.router, 1);
    rig_switch(&r, true);
    r.control.stages.seq.active = r.control.saver.seq.active = true; // as if both were at work: they are to look again
    ox_storage_move_data(&r.st, rig_call(&r, &c), "other");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_true(r.control.stages.again && r.control.saver.wanted);
    r.control.stages.seq.active = r.control.saver.seq.active = false;
    assert_int_equal(rig_number(&c, "bytes"), 70);
    assert_true(r.st.move_data && r.st.state == STORAGE_RUNNING);
    ox_storage_call_fini(&c);
    assert_int_equal(rig_run(&r, 1), OX_OK);

    ox_storage_safe_to_release(&r.st, rig_call(&r, &c), "default");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_true(json_is_false(json_object_get(c.answer, "safe")));
    assert_int_equal(json_array_size(json_object_get(c.answer, "reasons")), 1);
    ox_storage_call_fini(&c);
    ox_storage_inventory(&r.st, rig_call(&r, &c));
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    json_t *places = json_object_get(c.answer, "places");
    assert_int_equal(json_array_size(places), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 0), "copies")), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 0), "copyBytes")), 70);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 0), "dataLedgers")), 0);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 1), "dataLedgers")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(places, 1), "topics")), 1);
    ox_storage_call_fini(&c);

    ox_storage_verify(&r.st, rig_call(&r, &c), "other");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "ledgers"), 3);
    assert_int_equal(rig_number(&c, "entries"), 30);
    assert_int_equal(json_array_size(json_object_get(c.answer, "bad")), 0);
    ox_storage_call_fini(&c);
    ox_sim_store_damage(r.w.other_store, ids[0], 4);
    ox_storage_verify(&r.st, rig_call(&r, &c), "other");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    json_t *bad = json_array_get(json_object_get(c.answer, "bad"), 0);
    assert_int_equal(json_integer_value(json_object_get(bad, "ledger")), ids[0]);
    assert_int_equal(json_integer_value(json_object_get(bad, "entry")), 4);
    ox_storage_call_fini(&c);

    ox_storage_cleanup(&r.st, rig_call(&r, &c), "default", false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    ox_storage_call_fini(&c);
    ox_storage_safe_to_release(&r.st, rig_call(&r, &c), "default");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_true(json_is_true(json_object_get(c.answer, "safe")));
    ox_storage_call_fini(&c);
    rig_fini(&r);
}

// What is cleaned up while it is to be read is gone, as its record says by then. What its record names must be there.
static void test_verify_tells_gone_from_lost(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[2];
    struct ox_storage_call verify, c;
    rig_init(&r);
    rig_log(&r, LOG_A, 2, 10, ids);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    r.open_ns = 60 * OX_SEC;
    ox_storage_verify(&r.st, rig_call(&r, &verify), "default");
    world_sleep(&r.w, OX_SEC);
    r.open_ns = 0;
    ox_storage_cleanup(&r.st, rig_call(&r, &c), "default", false, true, 0);
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "deleted"), 2);
    ox_storage_call_fini(&c);
    assert_true(ox_op_pending(&verify.op));
    assert_int_equal(rig_wait(&r, &verify), OX_OK);
    assert_int_equal(rig_number(&verify, "gone"), 2);
    assert_int_equal(rig_number(&verify, "badCount"), 0);
    ox_storage_call_fini(&verify);

    assert_true(ox_sim_store_lose(r.w.other_store, ids[1]));
    ox_storage_verify(&r.st, rig_call(&r, &c), "other");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    assert_int_equal(rig_number(&c, "gone"), 0);
    assert_int_equal(rig_number(&c, "badCount"), 1);
    json_t *bad = json_array_get(json_object_get(c.answer, "bad"), 0);
    assert_int_equal(json_integer_value(json_object_get(bad, "ledger")), ids[1]);
    ox_storage_call_fini(&c);
    rig_fini(&r);
}

// D10
// fault: D10
static void test_close_client_names_its_holders(void **state)
{
    (void)state;
    struct rig r;
    int64_t id;
    struct ox_storage_call c;
    rig_init(&r);
    rig_log(&r, LOG_A, 1, 10, &id);
    ox_storage_close_client(&r.st, rig_call(&r, &c), "default");
    assert_int_equal(rig_wait(&r, &c), OX_E_CONFLICT); // active
    ox_storage_call_fini(&c);
    ox_router_activate(&r.w.router, 1);
    struct ox_ledger_open open;
    world_op(&r.w, &open.op);
    ox_router_open(&r.w.router, &open, (struct ox_location){0, id, id}, OX_OPEN_READ_ONLY, NULL);
    assert_int_equal(world_wait(&r.w, &open.op), OX_OK);
    ox_storage_close_client(&r.st, rig_call(&r, &c), "default");
    assert_int_equal(rig_wait(&r, &c), OX_E_CONFLICT);
    assert_non_null(strstr(ox_str_get(&c.why), LOG_A));
    ox_storage_call_fini(&c);
    ox_ledger_release(open.ledger);
    ox_storage_close_client(&r.st, rig_call(&r, &c), "default");
    assert_int_equal(rig_wait(&r, &c), OX_OK);
    ox_storage_call_fini(&c);
    assert_null(ox_router_place(&r.w.router, 0));
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_moves_sealed_ledgers_whatever_their_entries),
        cmocka_unit_test(test_data_seals_what_an_unloaded_log_left_open),
        cmocka_unit_test(test_data_waits_for_the_owner_of_an_open_ledger),
        cmocka_unit_test(test_data_switch_back_flips_without_copying),
        cmocka_unit_test(test_data_source_that_is_not_as_recorded_is_refused),
        cmocka_unit_test(test_cleanup_against_switch_back),
        cmocka_unit_test(test_cleanup_keeps_what_has_lost_its_stamp),
        cmocka_unit_test(test_data_unfit_copy_on_record_is_made_anew),
        cmocka_unit_test(test_data_copy_of_other_bytes_is_refused),
        cmocka_unit_test(test_data_foreign_ledger_under_the_id_is_left_alone),
        cmocka_unit_test(test_data_corrupt_entry_is_named_and_the_rest_goes_on),
        cmocka_unit_test(test_data_missing_entries_and_ledgers_are_failures),
        cmocka_unit_test(test_data_entries_beyond_the_count_are_copied),
        cmocka_unit_test(test_data_full_target_is_waited_for),
        cmocka_unit_test(test_data_leaves_room_for_clients),
        cmocka_unit_test(test_data_unknown_place_and_unreadable_record_are_failures),
        cmocka_unit_test(test_data_source_that_was_never_closed_is_recovered),
        cmocka_unit_test(test_data_waits_for_the_metadata_store),
        cmocka_unit_test(test_data_source_away_is_a_failure_until_the_next_run),
        cmocka_unit_test(test_data_crash_with_an_empty_copy),
        cmocka_unit_test(test_data_crash_in_the_middle_of_a_copy),
        cmocka_unit_test(test_data_crash_with_a_finished_copy_adopts_it),
        cmocka_unit_test(test_data_crash_after_the_record_copies_nothing_twice),
        cmocka_unit_test(test_data_finished_copy_of_other_bytes_is_made_anew),
        cmocka_unit_test(test_data_log_deleted_during_the_copy_leaves_no_copy),
        cmocka_unit_test(test_data_pause_and_resume),
        cmocka_unit_test(test_data_throttle_is_exact_and_live),
        cmocka_unit_test(test_data_operations_are_limited),
        cmocka_unit_test(test_data_yields_to_clients),
        cmocka_unit_test(test_cleanup_deletes_what_its_dry_run_lists),
        cmocka_unit_test(test_cleanup_window_ends_and_max_is_kept),
        cmocka_unit_test(test_cleanup_never_deletes_what_is_primary_again),
        cmocka_unit_test(test_cleanup_crash_between_record_and_delete),
        cmocka_unit_test(test_cleanup_deletes_leftovers),
        cmocka_unit_test(test_questions_about_data),
        cmocka_unit_test(test_verify_tells_gone_from_lost),
        cmocka_unit_test(test_close_client_names_its_holders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
