// mledger_test.c - open, append, read, close, crash, states; the bytes of nodes are those of real Pulsar 4.0.7 for the same histories.
#include "mledger/fixture.h"

#include <stdio.h>
#include <string.h>

#define NAME "public/default/persistent/t"
#define NODE "/managed-ledgers/" NAME

static void assert_text(char *take_got, const char *want)
{
    assert_string_equal(take_got, want);
    ox_free(take_got);
}

static int64_t current_id(const struct ox_mledger *ml)
{
    return ml_impl(ml)->current->where.id;
}

// The node equals a format of ledger ids in hex ("%02x" each).
static void assert_node(struct world *w, int64_t version, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void assert_node(struct world *w, int64_t version, const char *format, ...)
{
    char want[512];
    int64_t got_version = -1;
    va_list args;
    va_start(args, format);
    vsnprintf(want, sizeof want, format, args);
    va_end(args);
    struct ox_buf value = world_node(w, NODE, &got_version);
    ox_buf_unref(&value);
    assert_text(world_node_hex(w, NODE), want);
    assert_int_equal(got_version, version);
}

static void fill29(struct world *w, struct ox_mledger *ml, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(world_append(w, ml, "abcdefghijklmnopqrstuvwxyz012", NULL), OX_OK);
}

static void test_mledger_appends_are_read_back_after_close_and_crash(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_fill(&w, ml, 0, 20);
    assert_text(world_read_all(&w, ml, OX_POS_EARLIEST), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
    assert_int_equal(world_close(&w, ml), OX_OK);
    ml = world_open(&w, NAME);
    world_settle(&w);
    world_cursor(&w, ml, "keep", OX_POS_EARLIEST);
    world_crash(&w, ml);
    ml = world_open(&w, NAME);
    assert_true(ml->total_entries == 0); // nobody held them before the cursor came
    world_fill(&w, ml, 20, 3);
    world_crash(&w, ml);
    ml = world_open(&w, NAME);
    assert_text(world_read_all(&w, ml, OX_POS_EARLIEST), "20 21 22");
    assert_int_equal(ml->total_entries, 3);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

// fault: G10
static void test_mledger_node_bytes_empty_ledgers(void **state) // history "empties"
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    struct ox_cursor *c = world_cursor(&w, ml, "s s", OX_POS_EARLIEST);
    (void)c;
    unsigned d0 = (unsigned)current_id(ml);
    assert_node(&w, 1, "0a0408%02x2000", d0);
    assert_int_equal(world_close(&w, ml), OX_OK);
    assert_node(&w, 1, "0a0408%02x2000", d0);
    ml = world_open(&w, NAME);
    unsigned d1 = (unsigned)current_id(ml);
    assert_node(&w, 2, "0a0408%02x2000", d1);
    world_settle(&w);
    assert_false(ox_sim_store_has(w.store, d0));
    fill29(&w, ml, 3);
    assert_int_equal(world_close(&w, ml), OX_OK);
    assert_node(&w, 2, "0a0408%02x2000", d1);
    ml = world_open(&w, NAME);
    unsigned d2 = (unsigned)current_id(ml);
    assert_node(&w, 3, "0a0d08%02x1003185720T0a0408%02x2000", d1, d2);
    assert_int_equal(world_close(&w, ml), OX_OK);
    ml = world_open(&w, NAME);
    unsigned d3 = (unsigned)current_id(ml);
    assert_node(&w, 4, "0a0d08%02x1003185720T0a0408%02x2000", d1, d3);
    assert_int_equal(world_ack_upto(&w, ox_cursor_find(ml, "s s"), ml->last), OX_OK);
    world_settle(&w);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_settle(&w);
    ml = world_open(&w, NAME);
    world_settle(&w);
    unsigned d4 = (unsigned)current_id(ml);
    int64_t version;
    struct ox_buf value = world_node(&w, NODE, &version);
    ox_buf_unref(&value);
    assert_node(&w, version, "0a0408%02x2000", d4);
    assert_false(ox_sim_store_has(w.store, d1));
    assert_false(ox_sim_store_has(w.store, d3));
    fill29(&w, ml, 1);
    world_crash(&w, ml);
    ml = world_open(&w, NAME);
    assert_node(&w, version + 1, "0a0d08%02x1001181d20T0a0408%02x2000", d4, (unsigned)current_id(ml));
    assert_int_equal(ox_sim_store_find(w.store, d4)->state, OX_LEDGER_CLOSED);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

// fault: G10
static void test_mledger_node_bytes_rollover(void **state) // history "rollover"
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    w.factory.settings.ledger_entries_max = 10;
    struct ox_mledger *ml = world_open(&w, NAME);
    struct ox_cursor *c = world_cursor(&w, ml, "one", OX_POS_EARLIEST);
    unsigned d0 = (unsigned)current_id(ml);
    fill29(&w, ml, 9);
    assert_node(&w, 1, "0a0408%02x2000", d0);
    fill29(&w, ml, 1);
    world_settle(&w);
    unsigned d1 = (unsigned)current_id(ml);
    assert_node(&w, 2, "0a0e08%02x100a18a20220T0a0408%02x2000", d0, d1);
    fill29(&w, ml, 15);
    world_settle(&w);
    unsigned d2 = (unsigned)current_id(ml);
    assert_node(&w, 3, "0a0e08%02x100a18a20220T0a0e08%02x100a18a20220T0a0408%02x2000", d0, d1, d2);
    assert_int_equal(world_ack_upto(&w, c, (struct ox_pos){d1, 2}), OX_OK);
    world_settle(&w);
    assert_node(&w, 4, "0a0e08%02x100a18a20220T0a0408%02x2000", d1, d2);
    assert_false(ox_sim_store_has(w.store, d0));
    assert_int_equal(world_ack_upto(&w, c, ml->last), OX_OK);
    world_settle(&w);
    assert_node(&w, 5, "0a0408%02x2000", d2);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_mledger_node_bytes_indexed(void **state) // history "indexed"
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    w.factory.settings.broker_entry_metadata = true;
    struct ox_mledger *ml = world_open(&w, NAME);
    world_cursor(&w, ml, "s", OX_POS_EARLIEST);
    unsigned d0 = (unsigned)current_id(ml);
    assert_node(&w, 1, "0a0408%02x20001a0b0a05696e64657812022d31", d0);
    struct ox_ml_append *a = world_append_start(&w, ml, "x");
    assert_int_equal(world_wait(&w, &a->op), OX_OK);
    assert_int_equal(a->index, 0);
    a->messages = 7; // a batch: the index is that of its last message
    a->body = ox_buf_static("y", 1);
    world_op(&w, &a->op);
    ox_mledger_append(ml, a);
    assert_int_equal(world_wait(&w, &a->op), OX_OK);
    assert_int_equal(a->index, 7);
    ox_free(a);
    assert_int_equal(world_close(&w, ml), OX_OK);
    ml = world_open(&w, NAME);
    assert_int_equal(ml->next_index, 8);
    char *hex = world_node_hex(&w, NODE);
    assert_non_null(strstr(hex, "1a0a0a05696e646578120137"));
    ox_free(hex);
    world_crash(&w, ml);
    ml = world_open(&w, NAME);
    assert_int_equal(ml->next_index, 8); // kept by the property alone: the newest ledger is empty
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_mledger_entry_header_is_pulsars(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    w.factory.settings.broker_entry_metadata = true;
    struct ox_mledger *ml = world_open(&w, NAME);
    assert_int_equal(world_append(&w, ml, "body", NULL), OX_OK);
    struct ox_ml_read r = {.from = OX_POS_EARLIEST, .entries_max = 1, .bytes_max = 1};
    world_op(&w, &r.op);
    ox_mledger_read(ml, &r);
    assert_int_equal(world_wait(&w, &r.op), OX_OK);
    struct ox_buf e = r.entries[0].data;
    assert_int_equal(e.len, 6 + 9 + 4);
    assert_memory_equal(e.data, "\x0e\x02\0\0\0\x09\x08", 7);
    assert_memory_equal(e.data + 13, "\x10\0body", 6);
    ox_ml_read_fini(&r);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_mledger_one_handle_a_name_and_no_creation_unasked(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    assert_int_equal(world_open_err(&w, NAME, false), OX_E_NOT_FOUND);
    struct ox_mledger *ml = world_open(&w, NAME);
    assert_int_equal(world_open_err(&w, NAME, true), OX_E_BUSY);
    assert_int_equal(world_close(&w, ml), OX_OK);
    assert_int_equal(world_open_err(&w, NAME, false), OX_OK);
    assert_int_equal(world_close(&w, w.ctx), OX_OK);
    world_fini(&w);
}

static void test_mledger_lost_compare_and_set_fences_for_good(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_fill(&w, ml, 0, 2);
    world_node_put(&w, NODE, "\x0a\x04\x08\x63\x20\x00", 6);
    assert_int_equal(world_roll(&w, ml), OX_E_FENCED);
    assert_int_equal(ml->state, OX_ML_FENCED);
    assert_int_equal(world_append(&w, ml, "no", NULL), OX_E_FENCED);
    assert_text(world_read_all(&w, ml, OX_POS_EARLIEST), "<FENCED>");
    assert_int_equal(world_close(&w, ml), OX_E_FENCED);
    world_fini(&w);
}

// fault: B4 E19 S05
static void test_mledger_other_owner_fences_the_ledger(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_fill(&w, ml, 0, 2);
    struct ox_ledger_open open;
    world_op(&w, &open.op);
    ox_router_open(&w.router, &open, ml_impl(ml)->current->where, OX_OPEN_RECOVER, NULL);
    assert_int_equal(world_wait(&w, &open.op), OX_OK);
    ox_ledger_release(open.ledger);
    assert_int_equal(world_append(&w, ml, "no", NULL), OX_E_FENCED);
    assert_int_equal(ml->state, OX_ML_FENCED);
    assert_int_equal(world_close(&w, ml), OX_E_FENCED);
    world_fini(&w);
}

// ---- faults ----------------------------------------------------------------------------------------------------------

static void fail_append_three(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                              struct ox_sim_place_fault *fault)
{
    (void)w;
    (void)ledger;
    if (call == OX_SIM_CALL_APPEND && entry == 3)
        fault->err = OX_E_PLACE_FAILED;
}

static void test_mledger_failed_place_fails_waiting_appends_in_order_and_reads_go_on(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    struct ox_ml_append *a[6];
    w.on_place = fail_append_three;
    for (int i = 0; i < 6; i++)
        a[i] = world_append_start(&w, ml, "e");
    for (int i = 0; i < 6; i++) {
        assert_int_equal(world_wait(&w, &a[i]->op), i < 3 ? OX_OK : OX_E_PLACE_FAILED);
        ox_free(a[i]);
    }
    assert_int_equal(ml->state, OX_ML_FAILED);
    assert_text(world_read_all(&w, ml, OX_POS_EARLIEST), "e e e");
    w.on_place = NULL;
    assert_int_equal(world_append(&w, ml, "no", NULL), OX_E_PLACE_FAILED);
    world_node_put(&w, NODE, "", 0); // and now somebody else takes it
    struct ml_edit edit = {.apply = ml_impl(ml)->trim.edit.apply};
    ml_impl(ml)->trim.upto = -1;
    world_op(&w, &edit.op);
    ml_edit_start(ml, &edit);
    assert_int_equal(world_wait(&w, &edit.op), OX_E_FENCED);
    assert_true(world_took(&w, OX_ML_FAILED, OX_ML_FENCED));
    assert_int_equal(world_close(&w, ml), OX_E_FENCED);
    world_fini(&w);
}

static bool unknown_once(struct world *w, bool write)
{
    int *left = w->ctx;
    return write && *left > 0 && (*left)-- > 0;
}

static void unknown_done(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (strcmp(path, NODE) == 0 && unknown_once(w, write))
        fault->outcome = OX_META_FAIL_AFTER;
}

static void unknown_not_done(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (strcmp(path, NODE) == 0 && unknown_once(w, write))
        fault->outcome = OX_META_FAIL_UNKNOWN;
}

static void test_mledger_unknown_outcome_of_writes_is_reread(void **state)
{
    (void)state;
    for (int done = 0; done < 2; done++) {
        struct world w;
        int left = 2; // creation of the node, first record
        world_init(&w, 1);
        w.ctx = &left;
        w.on_meta = done ? unknown_done : unknown_not_done;
        struct ox_mledger *ml = world_open(&w, NAME);
        assert_int_equal(left, 0);
        world_fill(&w, ml, 0, 2);
        left = 1;
        assert_int_equal(world_roll(&w, ml), OX_OK);
        assert_int_equal(left, 0);
        world_fill(&w, ml, 2, 2);
        assert_int_equal(world_close(&w, ml), OX_OK);
        world_fini(&w);
    }
}

static void test_mledger_last_ledger_gone_is_refused_unless_losses_are_skipped(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_fill(&w, ml, 0, 2);
    int64_t id = current_id(ml);
    assert_int_equal(world_close(&w, ml), OX_OK);
    assert_true(ox_sim_store_lose(w.store, id));
    assert_int_equal(world_open_err(&w, NAME, true), OX_E_NO_LEDGER);
    world_stop(&w);
    w.settings.skip_unrecoverable = true;
    world_start(&w);
    ml = world_open(&w, NAME);
    assert_true(current_id(ml) > id);
    assert_int_equal(w.factory.lost_ledgers.value, 1);
    assert_int_equal(w.lost_lines, 2); // both openings named it
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

// The last ledger was sealed with five entries (its log was opened on a full disk, say), and its place has only `left` of them by now: it stays on record, in its
// place and in the log; what is missing is an error to whoever reads it.
static void check_last_short(int64_t left)
{
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_cursor(&w, ml, "keep", OX_POS_EARLIEST);
    world_fill(&w, ml, 0, 5);
    int64_t id = current_id(ml);
    assert_int_equal(world_close(&w, ml), OX_OK);
    struct ox_buf node = world_node(&w, NODE, NULL);
    struct ox_record *record = ox_record_new();
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    ox_buf_unref(&node);
    ox_record_seal(record, id, 5, 5, 1000);
    node = ox_record_encode(record, true, "default");
    world_node_put(&w, NODE, node.data, node.len);
    ox_buf_unref(&node);
    struct ox_kv custom = {0};
    ox_kv_copy(&custom, &ox_sim_store_find(w.store, id)->custom);
    assert_true(ox_sim_store_lose(w.store, id));
    ox_sim_store_make(w.store, id, &custom, left);
    ox_kv_fini(&custom);
    world_crash(&w, NULL);
    ml = world_open(&w, NAME);
    assert_int_equal(ml->ledgers[0]->where.id, id);
    assert_int_equal(ml->ledgers[0]->entries, 5);
    assert_int_equal(w.factory.lost_ledgers.value, 1);
    struct ox_ml_read read = {.from = {id, left}, .entries_max = 10, .bytes_max = 100};
    world_op(&w, &read.op);
    ox_mledger_read(ml, &read);
    assert_int_equal(world_wait(&w, &read.op), OX_E_CORRUPT);
    world_settle(&w);
    assert_true(ox_sim_store_has(w.store, id));
    node = world_node(&w, NODE, NULL);
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    ox_buf_unref(&node);
    assert_int_equal(ox_record_get(record, 0).entries, 5);
    ox_record_free(record);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_mledger_last_ledger_that_is_short_is_kept(void **state)
{
    (void)state;
    check_last_short(3);
    check_last_short(0);
}

// fault: B12
static void test_mledger_storage_of_another_identity_is_never_used(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_fill(&w, ml, 0, 2);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_stop(&w);
    struct ox_sim_store *right = w.store;
    w.store = ox_sim_store_new(2); // somebody points the broker at another directory
    world_start(&w);
    assert_int_equal(world_open_err(&w, NAME, true), OX_E_IDENTITY_MISMATCH);
    world_stop(&w);
    ox_sim_store_free(w.store);
    w.store = right;
    world_start(&w);
    world_cursor(&w, ml = world_open(&w, NAME), "c", OX_POS_EARLIEST);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_mledger_logs_are_opened_side_by_side(void **state)
{
    (void)state;
    struct world w;
    struct ox_ml_open op[5] = {0};
    char name[64];
    world_init(&w, 1);
    world_stop(&w);
    w.other_store = ox_sim_store_new(2); // two places whose identities are noted
    world_start(&w);
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "public/default/persistent/n%d", i);
        world_op(&w, &op[i].op);
        ox_mledger_open(&w.factory, &op[i], name, true);
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(world_wait(&w, &op[i].op), OX_OK);
    assert_int_equal(w.factory.places_known, 2);
    for (int i = 0; i < 5; i++) {
        world_fill(&w, op[i].ml, 10 * i, 2);
        assert_int_equal(world_close(&w, op[i].ml), OX_OK);
    }
    world_fini(&w);
}

static void test_mledger_corrupt_record_is_refused_and_left_alone(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    world_node_put(&w, NODE, "\x0a\x04\x08\x63\x20", 5);
    assert_int_equal(world_open_err(&w, NAME, true), OX_E_CORRUPT);
    assert_text(world_node_hex(&w, NODE), "0a04086320");
    world_fini(&w);
}

struct wake_rig {
    struct ox_ml_waiter waiter;
    int woken;
};

static void wake_rig_wake(struct ox_ml_waiter *waiter)
{
    CONTAINER_OF(waiter, struct wake_rig, waiter)->woken++;
}

static void test_mledger_waiters_wake_once_for_what_is_behind_their_position(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    struct wake_rig a = {.waiter.wake = wake_rig_wake}, b = a;
    ox_mledger_wait(ml, &a.waiter, ml->last);
    ox_mledger_wait(ml, &b.waiter, (struct ox_pos){current_id(ml), 0});
    world_settle(&w);
    assert_int_equal(a.woken, 0);
    world_fill(&w, ml, 0, 1);
    world_settle(&w);
    assert_int_equal(a.woken, 1);
    assert_int_equal(b.woken, 0); // it waits for what comes behind entry 0
    world_fill(&w, ml, 1, 2);
    world_settle(&w);
    assert_int_equal(a.woken, 1);
    assert_int_equal(b.woken, 1);
    ox_mledger_wait(ml, &a.waiter, OX_POS_EARLIEST); // something is there already
    world_settle(&w);
    assert_int_equal(a.woken, 2);
    ox_mledger_wait(ml, &a.waiter, ml->last);
    assert_int_equal(world_close(&w, ml), OX_OK); // closing ends waiting
    assert_int_equal(a.woken, 3);
    world_fini(&w);
}

static bool find_before(void *ctx, const struct ox_entry *entry)
{
    char text[8] = {0};
    memcpy(text, entry->data.data, OX_MIN(entry->data.len, sizeof text - 1));
    return atoi(text) < *(int *)ctx;
}

static struct ox_pos find(struct world *w, struct ox_mledger *ml, int limit)
{
    struct ox_ml_find f = {.before = find_before, .ctx = &limit};
    world_op(w, &f.op);
    ox_mledger_find(ml, &f);
    assert_int_equal(world_wait(w, &f.op), OX_OK);
    return f.found;
}

static void test_mledger_find_bisects_across_ledgers(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_cursor(&w, ml, "hold", OX_POS_EARLIEST);
    assert_int_equal(find(&w, ml, 5).entry, -1);
    for (int i = 0; i < 5; i++) {
        world_fill(&w, ml, 10 + 3 * i, 3);
        assert_int_equal(world_roll(&w, ml), OX_OK);
    }
    assert_int_equal(find(&w, ml, 10).entry, -1);
    assert_int_equal(find(&w, ml, 10).ledger, ml->ledgers[0]->where.id);
    for (int v = 10; v < 25; v++) {
        struct ox_pos p = find(&w, ml, v + 1);
        assert_int_equal(p.ledger, ml->ledgers[(v - 10) / 3]->where.id);
        assert_int_equal(p.entry, (v - 10) % 3);
    }
    assert_int_equal(ox_pos_cmp(find(&w, ml, 1000), ml->last), 0);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_mledger_close_lets_appends_and_rollover_finish(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    struct ox_ml_append *a[4];
    for (int i = 0; i < 2; i++)
        a[i] = world_append_start(&w, ml, "e");
    struct ox_op roll;
    world_op(&w, &roll);
    ox_mledger_roll(ml, &roll);
    for (int i = 2; i < 4; i++)
        a[i] = world_append_start(&w, ml, "e");
    assert_int_equal(world_close(&w, ml), OX_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(a[i]->op.err, OX_OK);
        ox_free(a[i]);
    }
    assert_true(world_took(&w, OX_ML_ROLLING, OX_ML_CLOSING));
    world_fini(&w);
}

static void test_mledger_delete_removes_everything(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    struct ox_cursor *c = world_cursor(&w, ml, "c", OX_POS_EARLIEST);
    world_fill(&w, ml, 0, 3);
    assert_int_equal(world_roll(&w, ml), OX_OK);
    world_fill(&w, ml, 3, 3);
    assert_int_equal(world_ack_upto(&w, c, (struct ox_pos){ml->ledgers[0]->where.id, 1}), OX_OK);
    struct ox_op op;
    world_op(&w, &op);
    ox_mledger_delete(ml, &op);
    assert_int_equal(world_wait(&w, &op), OX_OK);
    assert_int_equal(ox_sim_store_count(w.store), 0);
    assert_null(world_node(&w, NODE, NULL).data);
    assert_int_equal(world_open_err(&w, NAME, false), OX_E_NOT_FOUND);
    world_fini(&w);
}

static void test_mledger_terminated_log_is_read_and_takes_nothing_more(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_cursor(&w, ml, "c", OX_POS_EARLIEST);
    world_fill(&w, ml, 0, 2);
    int64_t id = current_id(ml);
    assert_int_equal(world_close(&w, ml), OX_OK);
    uint8_t node[] = {0x0a, 0x04, 0x08, (uint8_t)id, 0x20, 0, 0x12, 0x04, 0x08, (uint8_t)id, 0x10, 0x01};
    world_node_put(&w, NODE, node, sizeof node);
    for (int i = 0; i < 2; i++) { // the first opening seals the ledger, the second finds it sealed
        ml = world_open(&w, NAME);
        assert_true(ml->terminated);
        assert_int_equal(ml->ledger_count, 1);
        assert_int_equal(ml->total_entries, 2);
        assert_int_equal(world_append(&w, ml, "no", NULL), OX_E_TOPIC_TERMINATED);
        assert_int_equal(world_roll(&w, ml), OX_E_TOPIC_TERMINATED);
        assert_text(world_read_all(&w, ml, OX_POS_EARLIEST), "0 1");
        assert_int_equal(world_close(&w, ml), OX_OK);
    }
    int64_t version;
    struct ox_buf value = world_node(&w, NODE, &version);
    ox_buf_unref(&value);
    assert_node(&w, version, "0a0d08%02x1002180220T120408%02x1001", (unsigned)id, (unsigned)id);
    world_fini(&w);
}

// ---- every edge of the table of states ---------------------------------------------------------------------------------

// A log with two entries.
static struct ox_mledger *edge_log(struct world *w, const char *name)
{
    struct ox_mledger *ml = world_open(w, name);
    world_fill(w, ml, 0, 2);
    return ml;
}

static void edge_fence(struct world *w, struct ox_mledger *ml)
{
    world_node_put(w, ml->path, "", 0);
}

static void edges_of_rolling(struct world *w)
{
    struct ox_op roll;
    struct ox_mledger *ml = edge_log(w, "public/default/persistent/e1");
    assert_int_equal(world_roll(w, ml), OX_OK); // OPEN -> ROLLING -> OPEN
    world_op(w, &roll);
    ox_mledger_roll(ml, &roll);
    world_close(w, ml); // ROLLING -> CLOSING -> CLOSED
    ml = edge_log(w, "public/default/persistent/e2");
    edge_fence(w, ml);
    assert_int_equal(world_roll(w, ml), OX_E_FENCED); // ROLLING -> FENCED
    world_close(w, ml);                               // FENCED -> CLOSING
}

static void close_fails(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                        struct ox_sim_place_fault *fault)
{
    (void)w;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_CLOSE)
        fault->err = OX_E_PLACE_FAILED;
}

static void edges_of_failing(struct world *w)
{
    struct ml_edit edit = {0};
    struct ox_mledger *ml = edge_log(w, "public/default/persistent/e3");
    w->on_place = close_fails;
    assert_int_equal(world_roll(w, ml), OX_E_PLACE_FAILED); // ROLLING -> FAILED
    world_close(w, ml);                                     // FAILED -> CLOSING
    w->on_place = NULL;
    ml = edge_log(w, "public/default/persistent/e4");
    ml_fail(ml, OX_E_PLACE_FAILED, "test"); // OPEN -> FAILED
    edge_fence(w, ml);
    edit.apply = ml_impl(ml)->trim.edit.apply;
    ml_impl(ml)->trim.upto = -1;
    world_op(w, &edit.op);
    ml_edit_start(ml, &edit);
    assert_int_equal(world_wait(w, &edit.op), OX_E_FENCED); // FAILED -> FENCED
    world_close(w, ml);
}

static void test_mledger_every_edge_of_its_states_is_taken(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    world_node_put(&w, NODE, "\x0a\x04", 2);
    assert_int_equal(world_open_err(&w, NAME, true), OX_E_CORRUPT); // OPENING -> CLOSED
    edges_of_rolling(&w);
    edges_of_failing(&w);
    struct ox_mledger *ml = edge_log(&w, "public/default/persistent/e5"); // OPENING -> OPEN
    ml_fail(ml, OX_E_FENCED, "test");                                     // OPEN -> FENCED
    world_close(&w, ml);
    world_close(&w, world_open(&w, "public/default/persistent/e6")); // OPEN -> CLOSING
    for (int from = OX_ML_OPENING; from <= OX_ML_CLOSED; from++)
        for (int to = OX_ML_OPENING; to <= OX_ML_CLOSED; to++)
            if (ml_state_allows((enum ox_ml_state)from, (enum ox_ml_state)to) !=
                world_took(&w, (enum ox_ml_state)from, (enum ox_ml_state)to))
                fail_msg("%s -> %s was not taken", ml_state_name((enum ox_ml_state)from),
                         ml_state_name((enum ox_ml_state)to));
    world_fini(&w);
}

static void disk_is_full(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    (void)ledger, (void)entry;
    if (*(bool *)w->ctx && (call == OX_SIM_CALL_CREATE || call == OX_SIM_CALL_APPEND))
        fault->err = OX_E_NO_SPACE;
}

static void test_mledger_opened_on_a_full_disk_is_read_and_trimmed(void **state)
{
    (void)state;
    struct world w;
    bool full = false;
    world_init(&w, 1);
    w.ctx = &full;
    w.on_place = disk_is_full;
    struct ox_mledger *ml = world_open(&w, NAME);
    world_cursor(&w, ml, "s", OX_POS_EARLIEST);
    world_fill(&w, ml, 0, 3);
    assert_int_equal(world_roll(&w, ml), OX_OK);
    world_fill(&w, ml, 3, 3);
    world_crash(&w, ml);
    full = true;
    ml = world_open(&w, NAME);
    assert_true(ml->full && ml->ledger_count == 2);
    assert_int_equal(world_append(&w, ml, "no", NULL), OX_E_NO_SPACE);
    assert_int_equal(world_roll(&w, ml), OX_E_NO_SPACE);
    assert_text(world_read_all(&w, ml, OX_POS_EARLIEST), "0 1 2 3 4 5");
    assert_int_equal(world_ack_upto(&w, world_cursor(&w, ml, "s", OX_POS_EARLIEST), ml->last), OX_OK);
    world_settle(&w);
    assert_int_equal(ml->ledger_count, 1);
    assert_int_equal(world_close(&w, ml), OX_OK);
    full = false;
    ml = world_open(&w, NAME);
    assert_false(ml->full);
    world_fill(&w, ml, 6, 1);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mledger_appends_are_read_back_after_close_and_crash),
        cmocka_unit_test(test_mledger_node_bytes_empty_ledgers),
        cmocka_unit_test(test_mledger_node_bytes_rollover),
        cmocka_unit_test(test_mledger_node_bytes_indexed),
        cmocka_unit_test(test_mledger_entry_header_is_pulsars),
        cmocka_unit_test(test_mledger_one_handle_a_name_and_no_creation_unasked),
        cmocka_unit_test(test_mledger_lost_compare_and_set_fences_for_good),
        cmocka_unit_test(test_mledger_other_owner_fences_the_ledger),
        cmocka_unit_test(test_mledger_failed_place_fails_waiting_appends_in_order_and_reads_go_on),
        cmocka_unit_test(test_mledger_unknown_outcome_of_writes_is_reread),
        cmocka_unit_test(test_mledger_last_ledger_gone_is_refused_unless_losses_are_skipped),
        cmocka_unit_test(test_mledger_last_ledger_that_is_short_is_kept),
        cmocka_unit_test(test_mledger_storage_of_another_identity_is_never_used),
        cmocka_unit_test(test_mledger_logs_are_opened_side_by_side),
        cmocka_unit_test(test_mledger_corrupt_record_is_refused_and_left_alone),
        cmocka_unit_test(test_mledger_waiters_wake_once_for_what_is_behind_their_position),
        cmocka_unit_test(test_mledger_find_bisects_across_ledgers),
        cmocka_unit_test(test_mledger_close_lets_appends_and_rollover_finish),
        cmocka_unit_test(test_mledger_delete_removes_everything),
        cmocka_unit_test(test_mledger_terminated_log_is_read_and_takes_nothing_more),
        cmocka_unit_test(test_mledger_opened_on_a_full_disk_is_read_and_trimmed),
        cmocka_unit_test(test_mledger_every_edge_of_its_states_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
