// cursor_test.c - positions in memory and in Pulsar's records: acknowledgements, holes, flushes, ledgers, recovery, traps S07 and S08.
#include "mledger/fixture.h"

#include <stdio.h>
#include <string.h>

#include "mledger/cursor_impl.h"

#define NAME "public/default/persistent/t"
#define NODE "/managed-ledgers/" NAME "/s%2F1"
#define SUB "s/1"

struct cursor_world {
    struct world w;
    struct ox_mledger *ml;
    struct ox_cursor *c;
};

static void begin(struct cursor_world *cw, uint64_t seed)
{
    world_init(&cw->w, seed);
    cw->ml = world_open(&cw->w, NAME);
    cw->c = world_cursor(&cw->w, cw->ml, SUB, OX_POS_EARLIEST);
}

static void end(struct cursor_world *cw)
{
    assert_int_equal(world_close(&cw->w, cw->ml), OX_OK);
    world_fini(&cw->w);
}

// The process is killed and a new one opens the log.
static void crash(struct cursor_world *cw)
{
    world_crash(&cw->w, cw->ml);
    cw->ml = world_open(&cw->w, NAME);
    cw->c = ox_cursor_find(cw->ml, SUB);
    assert_non_null(cw->c);
}

static void reopen(struct cursor_world *cw)
{
    assert_int_equal(world_close(&cw->w, cw->ml), OX_OK);
    cw->ml = world_open(&cw->w, NAME);
    cw->c = ox_cursor_find(cw->ml, SUB);
    assert_non_null(cw->c);
}

static struct ox_pos at(const struct cursor_world *cw, size_t ledger, int64_t entry)
{
    return (struct ox_pos){cw->ml->ledgers[ledger]->where.id, entry};
}

// Acknowledges single entries of the first ledger and waits until they are stored.
static enum ox_err ack(struct cursor_world *cw, const int64_t *entries, size_t count)
{
    struct ox_pos positions[16];
    struct ox_cursor_ack wait;
    memset(&wait, 0, sizeof wait);
    for (size_t i = 0; i < count; i++)
        positions[i] = at(cw, 0, entries[i]);
    world_op(&cw->w, &wait.op);
    ox_cursor_delete(cw->c, &wait, positions, count);
    return world_wait(&cw->w, &wait.op);
}

static enum ox_err ack_one(struct cursor_world *cw, int64_t entry)
{
    return ack(cw, &entry, 1);
}

static void assert_mark(const struct cursor_world *cw, size_t ledger, int64_t entry)
{
    assert_int_equal(cw->c->mark_delete.ledger, cw->ml->ledgers[ledger]->where.id);
    assert_int_equal(cw->c->mark_delete.entry, entry);
}

// The cursor's node in hex, its last field (the time of the last activity) masked; "" = no node.
static char *cursor_hex(struct cursor_world *cw)
{
    char *hex = world_node_hex(&cw->w, NODE);
    size_t len = strlen(hex);
    if (len > 14 && strncmp(hex + len - 14, "30", 2) == 0) {
        hex[len - 12] = 'T';
        hex[len - 11] = 0;
    }
    return hex;
}

static void assert_no_node(struct cursor_world *cw, const char *path)
{
    char *hex = world_node_hex(&cw->w, path);
    assert_string_equal(hex, "");
    ox_free(hex);
}

static void assert_node(struct cursor_world *cw, const char *format, unsigned a, unsigned b)
{
    char want[256];
    char *got = cursor_hex(cw);
    snprintf(want, sizeof want, format, a, b);
    assert_string_equal(got, want);
    ox_free(got);
}

static void test_cursor_ack_hole_keeps_mark(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 1);
    world_fill(&cw.w, cw.ml, 0, 8);
    assert_int_equal(ox_cursor_backlog(cw.c), 8);
    assert_int_equal(ack(&cw, (int64_t[]){0, 1, 4, 6}, 4), OX_OK);
    assert_mark(&cw, 0, 1);
    assert_int_equal(ox_cursor_backlog(cw.c), 4);
    assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, 4)));
    assert_false(ox_cursor_is_deleted(cw.c, at(&cw, 0, 5)));
    assert_int_equal(ack(&cw, (int64_t[]){2, 3}, 2), OX_OK); // joins 0..4
    assert_mark(&cw, 0, 4);
    assert_int_equal(ack_one(&cw, 5), OX_OK); // joins 6
    assert_mark(&cw, 0, 6);
    assert_int_equal(cw.c->hole_count, 0);
    assert_int_equal(ox_cursor_backlog(cw.c), 1);
    end(&cw);
}

// fault: G10
static void test_cursor_node_bytes_are_pulsars(void **state) // facts 12: new, in use, after a clean close
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 1);
    unsigned data = (unsigned)cw.ml->ledgers[0]->where.id;
    assert_node(&cw, "08ffffffffffffffffff0110%02x18ffffffffffffffffff0130T", data, 0);
    world_fill(&cw.w, cw.ml, 0, 8);
    assert_int_equal(ack_one(&cw, 0), OX_OK);
    assert_node(&cw, "08%02x10%02x18ffffffffffffffffff0130T", (unsigned)cw.c->cursor_ledger, data);
    assert_int_equal(ack(&cw, (int64_t[]){1, 2, 4, 6}, 4), OX_OK);
    assert_int_equal(world_close(&cw.w, cw.ml), OX_OK);
    char want[256], *got = cursor_hex(&cw);
    snprintf(want, sizeof want,
             "08ffffffffffffffffff0110%02x1802220c0a0408%02x10031204 08%02x1004220c0a0408%02x10051204 08%02x100630T",
             data, data, data, data, data);
    char *to = want;
    for (const char *from = want; *from; from++)
        if (*from != ' ')
            *to++ = *from;
    *to = 0;
    assert_string_equal(got, want);
    ox_free(got);
    world_fini(&cw.w);
}

static void test_cursor_answered_acks_survive_a_crash(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 2);
    world_fill(&cw.w, cw.ml, 0, 10);
    assert_int_equal(ack(&cw, (int64_t[]){0, 1, 5}, 3), OX_OK);
    crash(&cw);
    assert_mark(&cw, 0, 1);
    assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, 5)));
    assert_int_equal(ack_one(&cw, 7), OX_OK); // into a new cursor ledger that replaces the old one
    crash(&cw);
    assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, 5)) && ox_cursor_is_deleted(cw.c, at(&cw, 0, 7)));
    assert_mark(&cw, 0, 1);
    end(&cw);
}

static void test_cursor_repeated_ack_is_answered_when_the_first_is_durable(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_cursor_ack wait;
    begin(&cw, 3);
    world_fill(&cw.w, cw.ml, 0, 4);
    struct ox_pos p = at(&cw, 0, 2);
    memset(&wait, 0, sizeof wait);
    ox_cursor_delete(cw.c, NULL, &p, 1);
    world_op(&cw.w, &wait.op);
    ox_cursor_delete(cw.c, &wait, &p, 1);
    assert_true(cursor_impl(cw.c)->stored_version < cursor_impl(cw.c)->version);
    assert_int_equal(world_wait(&cw.w, &wait.op), OX_OK);
    assert_int_equal(cursor_impl(cw.c)->stored_version, cursor_impl(cw.c)->version);
    crash(&cw);
    assert_true(ox_cursor_is_deleted(cw.c, p));
    end(&cw);
}

static void test_cursor_cumulative_goes_over_holes_and_never_back(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 4);
    world_fill(&cw.w, cw.ml, 0, 10);
    assert_int_equal(ack(&cw, (int64_t[]){3, 6, 7}, 3), OX_OK);
    assert_int_equal(world_ack_upto(&cw.w, cw.c, at(&cw, 0, 5)), OX_OK);
    assert_mark(&cw, 0, 7);
    assert_int_equal(world_ack_upto(&cw.w, cw.c, at(&cw, 0, 2)), OX_OK);
    assert_mark(&cw, 0, 7);
    assert_int_equal(world_ack_upto(&cw.w, cw.c, at(&cw, 0, 12)), OX_OK); // beyond the end: no effect, as in Pulsar
    assert_mark(&cw, 0, 7);
    assert_int_equal(cw.c->read.entry, 8);
    end(&cw);
}

static void test_cursor_ledger_rolls_and_leaves_no_old_one(void **state)
{
    (void)state;
    struct cursor_world cw;
    world_init(&cw.w, 5);
    world_stop(&cw.w);
    cw.w.settings.cursor_entries_max = 4;
    world_start(&cw.w);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = world_cursor(&cw.w, cw.ml, SUB, OX_POS_EARLIEST);
    world_fill(&cw.w, cw.ml, 0, 20);
    int64_t first = -1;
    for (int64_t i = 0; i < 12; i++) {
        assert_int_equal(ack_one(&cw, i), OX_OK);
        first = first < 0 ? cw.c->cursor_ledger : first;
    }
    assert_true(cw.c->cursor_ledger > first);
    crash(&cw);
    assert_mark(&cw, 0, 11);
    end(&cw);
}

static void test_cursor_reset_forgets_holes_and_survives(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_op op;
    begin(&cw, 6);
    world_fill(&cw.w, cw.ml, 0, 10);
    assert_int_equal(world_ack_upto(&cw.w, cw.c, at(&cw, 0, 3)), OX_OK);
    assert_int_equal(ack(&cw, (int64_t[]){5, 8}, 2), OX_OK);
    world_op(&cw.w, &op);
    ox_cursor_reset(cw.c, &op, at(&cw, 0, 1));
    assert_int_equal(world_wait(&cw.w, &op), OX_OK);
    assert_int_equal(cw.c->read.entry, 2);
    crash(&cw);
    assert_mark(&cw, 0, 1);
    assert_int_equal(ox_cursor_backlog(cw.c), 8); // 5 and 8 come again
    end(&cw);
}

static void test_cursor_many_ranges_close_into_the_ledger(void **state)
{
    (void)state;
    struct cursor_world cw;
    world_init(&cw.w, 7);
    world_stop(&cw.w);
    cw.w.settings.ranges_in_node_max = 2;
    world_start(&cw.w);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = world_cursor(&cw.w, cw.ml, SUB, OX_POS_EARLIEST);
    world_fill(&cw.w, cw.ml, 0, 20);
    assert_int_equal(ack(&cw, (int64_t[]){1, 3, 5, 7, 9}, 5), OX_OK);
    struct ox_pos p = at(&cw, 0, 11);
    ox_cursor_delete(cw.c, NULL, &p, 1); // nobody waits: the close has to store it
    reopen(&cw);
    assert_int_equal(ox_cursor_backlog(cw.c), 14);
    assert_true(ox_cursor_is_deleted(cw.c, p));
    end(&cw);
}

static void test_cursor_properties_stay(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_op op;
    struct ox_kv kv = {0};
    begin(&cw, 8);
    world_fill(&cw.w, cw.ml, 0, 3);
    ox_kv_set(&kv, "team", "blue");
    world_op(&cw.w, &op);
    ox_cursor_set_properties(cw.c, &op, &kv);
    assert_int_equal(world_wait(&cw.w, &op), OX_OK);
    assert_int_equal(ack_one(&cw, 1), OX_OK);
    ox_kv_set(&kv, "team", "red");
    world_op(&cw.w, &op);
    ox_cursor_set_properties(cw.c, &op, &kv);
    assert_int_equal(world_wait(&cw.w, &op), OX_OK);
    crash(&cw);
    assert_string_equal(ox_kv_find(&cw.c->properties, "team"), "red");
    assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, 1)));
    reopen(&cw);
    assert_string_equal(ox_kv_find(&cw.c->properties, "team"), "red");
    ox_kv_fini(&kv);
    end(&cw);
}

// Every call to the place that makes or writes a cursor ledger fails.
static void no_cursor_ledgers(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                              struct ox_sim_place_fault *fault)
{
    (void)ledger, (void)entry;
    if (*(bool *)w->ctx && call == OX_SIM_CALL_CREATE)
        fault->err = OX_E_NO_SPACE;
}

static void test_cursor_goes_into_the_node_when_no_ledger_can_be_made(void **state)
{
    (void)state;
    struct cursor_world cw;
    bool broken = false;
    begin(&cw, 9);
    cw.w.ctx = &broken;
    cw.w.on_place = no_cursor_ledgers;
    world_fill(&cw.w, cw.ml, 0, 8);
    broken = true;
    assert_int_equal(ack(&cw, (int64_t[]){0, 1, 4}, 3), OX_OK);
    assert_int_equal(cw.c->cursor_ledger, -1);
    broken = false;
    crash(&cw);
    assert_mark(&cw, 0, 1);
    assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, 4)));
    end(&cw);
}

static void lose_answers(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (write && strcmp(path, NODE) == 0)
        fault->outcome = *(int *)w->ctx % 2 ? OX_META_FAIL_AFTER : OX_META_FAIL_UNKNOWN;
    if (write && strcmp(path, NODE) == 0 && --*(int *)w->ctx <= 0)
        w->on_meta = NULL;
}

static void test_cursor_unknown_outcome_of_the_node_is_reread(void **state)
{
    (void)state;
    for (int first = 1; first <= 2; first++) {
        struct cursor_world cw;
        int left = first + 2;
        begin(&cw, 10);
        world_fill(&cw.w, cw.ml, 0, 4);
        cw.w.ctx = &left;
        cw.w.on_meta = lose_answers;
        assert_int_equal(ack_one(&cw, 0), OX_OK);
        assert_int_equal(world_close(&cw.w, cw.ml), OX_OK);
        cw.w.on_meta = NULL;
        cw.ml = world_open(&cw.w, NAME);
        cw.c = ox_cursor_find(cw.ml, SUB);
        assert_mark(&cw, 0, 0);
        end(&cw);
    }
}

struct lost_answer {
    bool on;
    int reads; // that still fail
};

// The node takes one write whose answer is lost; then it can't be read for a while.
static void lose_answer_and_reads(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct lost_answer *lost = w->ctx;
    if (!lost->on || strcmp(path, NODE) != 0)
        return;
    if (write && lost->reads == 3)
        fault->outcome = OX_META_FAIL_AFTER;
    else if (!write && lost->reads-- > 0)
        fault->outcome = OX_META_FAIL_BEFORE;
}

// The node names the new ledger, but nobody knows: nothing may be stored in the old one any more.
static void test_cursor_stores_nothing_while_its_node_is_unknown(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct lost_answer lost = {.on = false, .reads = 3};
    world_init(&cw.w, 22);
    world_stop(&cw.w);
    cw.w.settings.cursor_entries_max = 4;
    cw.w.settings.ranges_in_node_max = 0;
    cw.w.ctx = &lost;
    cw.w.on_meta = lose_answer_and_reads;
    world_start(&cw.w);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = world_cursor(&cw.w, cw.ml, SUB, OX_POS_EARLIEST);
    world_fill(&cw.w, cw.ml, 0, 20);
    assert_int_equal(ack_one(&cw, 1), OX_OK);
    assert_int_equal(ack_one(&cw, 3), OX_OK);
    assert_int_equal(ack_one(&cw, 5), OX_OK);
    lost.on = true;
    assert_int_equal(ack_one(&cw, 7), OX_OK); // into a new ledger
    assert_true(lost.reads < 0);
    assert_int_equal(ack_one(&cw, 9), OX_OK);
    crash(&cw);
    for (int64_t i = 1; i < 10; i += 2)
        assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, i)));
    end(&cw);
}

// The metadata service never comes back: the close ends all the same, and nothing was stored where it may not be looked for.
static void test_cursor_ends_while_its_node_is_unknown(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct lost_answer lost = {.on = false, .reads = 3};
    struct ox_cursor_ack wait;
    memset(&wait, 0, sizeof wait);
    world_init(&cw.w, 24);
    world_stop(&cw.w);
    cw.w.settings.cursor_entries_max = 4;
    cw.w.settings.ranges_in_node_max = 0;
    cw.w.ctx = &lost;
    cw.w.on_meta = lose_answer_and_reads;
    world_start(&cw.w);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = world_cursor(&cw.w, cw.ml, SUB, OX_POS_EARLIEST);
    world_fill(&cw.w, cw.ml, 0, 20);
    for (int64_t i = 1; i < 6; i += 2)
        assert_int_equal(ack_one(&cw, i), OX_OK);
    lost.on = true;
    struct ox_pos p = at(&cw, 0, 7);
    world_op(&cw.w, &wait.op);
    ox_cursor_delete(cw.c, &wait, &p, 1);
    while (lost.reads == 3)
        world_sleep(&cw.w, OX_MS);
    lost.reads = 1000;
    assert_int_not_equal(world_close(&cw.w, cw.ml), OX_OK);
    assert_int_not_equal(world_wait(&cw.w, &wait.op), OX_OK);
    lost.on = false;
    cw.ml = world_open(&cw.w, NAME);
    cw.c = ox_cursor_find(cw.ml, SUB);
    for (int64_t i = 1; i < 6; i += 2)
        assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, i)));
    end(&cw);
}

static void fail_deletes(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (write && strcmp(path, NODE) == 0 && *(bool *)w->ctx)
        fault->outcome = OX_META_FAIL_BEFORE;
}

static void test_cursor_that_could_not_be_removed_keeps_its_entries(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_op op;
    bool broken = false;
    begin(&cw, 23);
    cw.w.ctx = &broken;
    cw.w.on_meta = fail_deletes;
    cw.w.factory.settings.retention_ms = cw.w.factory.settings.retention_bytes = 0;
    world_fill(&cw.w, cw.ml, 0, 4);
    assert_int_equal(world_roll(&cw.w, cw.ml), OX_OK);
    broken = true;
    world_op(&cw.w, &op);
    ox_cursor_remove(cw.c, &op);
    assert_int_not_equal(world_wait(&cw.w, &op), OX_OK);
    ox_mledger_trim(cw.ml);
    world_settle(&cw.w);
    broken = false;
    reopen(&cw);
    assert_int_equal(ox_cursor_backlog(cw.c), 4);
    end(&cw);
}

// Each flush makes a ledger for which there is no node; none of them may stay behind.
static void test_cursor_leaves_no_ledgers_while_its_node_cannot_be_written(void **state)
{
    (void)state;
    struct cursor_world cw;
    bool broken = false;
    world_init(&cw.w, 27);
    world_stop(&cw.w);
    cw.w.settings.cursor_entries_max = 4;
    cw.w.settings.ranges_in_node_max = 0;
    cw.w.ctx = &broken;
    cw.w.on_meta = fail_deletes;
    world_start(&cw.w);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = world_cursor(&cw.w, cw.ml, SUB, OX_POS_EARLIEST);
    world_fill(&cw.w, cw.ml, 0, 20);
    for (int64_t i = 1; i < 6; i += 2)
        assert_int_equal(ack_one(&cw, i), OX_OK);
    size_t ledgers = ox_sim_store_count(cw.w.store);
    broken = true;
    for (int64_t i = 7; i < 14; i += 2)
        assert_int_equal(ack_one(&cw, i), OX_E_DISCONNECTED);
    world_settle(&cw.w);
    assert_int_equal(ox_sim_store_count(cw.w.store), ledgers);
    broken = false;
    assert_int_equal(ack_one(&cw, 15), OX_OK);
    world_settle(&cw.w);
    assert_int_equal(ox_sim_store_count(cw.w.store), ledgers);
    crash(&cw);
    for (int64_t i = 1; i < 16; i += 2)
        assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, i)));
    end(&cw);
}

static void lose_every_answer(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (strcmp(path, NODE) == 0 && *(bool *)w->ctx)
        fault->outcome = write ? OX_META_FAIL_AFTER : OX_META_FAIL_BEFORE;
}

static void test_cursor_creation_takes_over_the_node_of_a_lost_attempt(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_cursor_open open;
    bool lost = true;
    world_init(&cw.w, 20);
    cw.ml = world_open(&cw.w, NAME);
    cw.w.ctx = &lost;
    cw.w.on_meta = lose_every_answer;
    memset(&open, 0, sizeof open);
    world_op(&cw.w, &open.op);
    ox_cursor_open(cw.ml, &open, SUB, true, OX_POS_EARLIEST, NULL);
    assert_int_equal(world_wait(&cw.w, &open.op), OX_E_DISCONNECTED);
    lost = false;
    world_sleep(&cw.w, OX_SEC);
    cw.c = world_cursor(&cw.w, cw.ml, SUB, OX_POS_EARLIEST);
    world_fill(&cw.w, cw.ml, 0, 2);
    assert_int_equal(ack_one(&cw, 0), OX_OK);
    end(&cw);
}

// fault: E19
static void test_cursor_node_written_by_somebody_else_fences(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 11);
    world_fill(&cw.w, cw.ml, 0, 4);
    static const uint8_t other[] = {0x08, 0x63}; // cursor ledger 99
    world_node_put(&cw.w, NODE, other, sizeof other);
    assert_int_equal(ack_one(&cw, 0), OX_E_FENCED);
    assert_int_equal(ack_one(&cw, 1), OX_E_FENCED);
    char *node = world_node_hex(&cw.w, NODE);
    assert_string_equal(node, "0863");
    ox_free(node);
    (void)world_close(&cw.w, cw.ml);
    world_fini(&cw.w);
}

static void fail_reads(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_READ && *(bool *)w->ctx)
        fault->err = OX_E_IO;
}

static void test_cursor_that_could_not_be_read_is_left_as_it_is(void **state)
{
    (void)state;
    struct cursor_world cw;
    bool broken = false;
    begin(&cw, 19);
    cw.w.ctx = &broken;
    cw.w.on_place = fail_reads;
    world_fill(&cw.w, cw.ml, 0, 6);
    assert_int_equal(ack(&cw, (int64_t[]){0, 1, 2, 4}, 4), OX_OK);
    world_crash(&cw.w, cw.ml);
    broken = true;
    assert_int_equal(world_open_err(&cw.w, NAME, false), OX_E_IO);
    broken = false;
    cw.ml = world_open(&cw.w, NAME);
    cw.c = ox_cursor_find(cw.ml, SUB);
    assert_mark(&cw, 0, 2);
    assert_true(ox_cursor_is_deleted(cw.c, at(&cw, 0, 4)));
    end(&cw);
}

// Varints of a position beyond what any ledger of the test has.
// As in Pulsar: the node goes on naming the empty ledger that a reopening drops, until the close writes the position that was taken for it.
static void test_cursor_taken_position_is_stored_at_close(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 21);
    unsigned dropped = (unsigned)cw.ml->ledgers[0]->where.id;
    reopen(&cw);
    assert_node(&cw, "08ffffffffffffffffff0110%02x18ffffffffffffffffff0130T", dropped, 0);
    world_fill(&cw.w, cw.ml, 0, 1);
    unsigned data = (unsigned)cw.ml->ledgers[0]->where.id;
    assert_int_not_equal(data, dropped);
    reopen(&cw);
    assert_node(&cw, "08ffffffffffffffffff0110%02x18ffffffffffffffffff0130T", data, 0);
    end(&cw);
}

static void put_cursor_node(struct world *w, uint8_t ledger, uint8_t entry)
{
    uint8_t node[32] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x10, ledger, 0x18, entry};
    world_node_put(w, NODE, node, 15);
}

// fault: S07
static void test_trap_s07_cursor_between_two_ledgers(void **state)
{
    (void)state;
    struct cursor_world cw;
    world_init(&cw.w, 12);
    cw.ml = world_open(&cw.w, NAME);
    struct ox_cursor *keep = world_cursor(&cw.w, cw.ml, "keep", OX_POS_EARLIEST);
    (void)keep;
    world_fill(&cw.w, cw.ml, 0, 2);
    assert_int_equal(world_close(&cw.w, cw.ml), OX_OK);
    put_cursor_node(&cw.w, 100, 7); // no such ledger, behind the last one
    cw.ml = world_open(&cw.w, NAME);
    cw.c = ox_cursor_find(cw.ml, SUB);
    assert_non_null(cw.c);
    assert_int_equal(ox_cursor_backlog(cw.c), 0);
    assert_non_null(strstr(cw.w.last_warning, "cursor=s/1"));
    world_fill(&cw.w, cw.ml, 2, 1);
    assert_int_equal(ox_cursor_backlog(cw.c), 1);
    end(&cw);
}

// fault: S07
static void test_trap_s07_cursor_ledger_without_an_entry(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 13);
    world_fill(&cw.w, cw.ml, 0, 5);
    assert_int_equal(world_ack_upto(&cw.w, cw.c, at(&cw, 0, 1)), OX_OK);
    reopen(&cw); // the position is in the node now
    assert_mark(&cw, 0, 1);
    struct ox_router_create create;
    struct ox_kv custom = {0};
    cursor_custom(cw.c, &custom);
    world_op(&cw.w, &create.op);
    ox_router_create(&cw.w.router, &create, -1, &custom);
    assert_int_equal(world_wait(&cw.w, &create.op), OX_OK);
    ox_ledger_release(create.ledger);
    ox_kv_fini(&custom);
    uint8_t data = (uint8_t)cw.ml->ledgers[0]->where.id;
    assert_int_equal(world_close(&cw.w, cw.ml), OX_OK);
    uint8_t node[] = {0x08, (uint8_t)create.location.id, 0x10, data, 0x18, 0x01};
    assert_true(create.location.id < 128);
    world_node_put(&cw.w, NODE, node, sizeof node);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = ox_cursor_find(cw.ml, SUB);
    assert_mark(&cw, 0, 1); // the snapshot in the node
    assert_int_equal(ox_cursor_backlog(cw.c), 3);
    end(&cw);
}

static char *read_some(struct cursor_world *cw, uint32_t max)
{
    struct ox_cursor_read r;
    struct ox_str text = {0};
    memset(&r, 0, sizeof r);
    r.entries_max = max;
    r.bytes_max = UINT64_MAX;
    world_op(&cw->w, &r.op);
    ox_cursor_read(cw->c, &r);
    assert_int_equal(world_wait(&cw->w, &r.op), OX_OK);
    for (size_t i = 0; i < r.count; i++)
        ox_str_addf(&text, "%s%.*s", i ? " " : "", (int)r.entries[i].data.len, (const char *)r.entries[i].data.data);
    ox_cursor_read_fini(&r);
    return ox_str_take(&text);
}

static void assert_read(struct cursor_world *cw, uint32_t max, const char *want)
{
    char *got = read_some(cw, max);
    assert_string_equal(got, want);
    ox_free(got);
}

static void test_cursor_read_skips_what_is_acknowledged_and_rewinds(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 14);
    world_fill(&cw.w, cw.ml, 0, 8);
    assert_int_equal(ack(&cw, (int64_t[]){1, 2, 5}, 3), OX_OK);
    assert_read(&cw, 100, "0 3 4 6 7");
    ox_cursor_rewind(cw.c);
    assert_read(&cw, 3, "0");
    assert_read(&cw, 100, "3 4 6 7");
    end(&cw);
}

static void test_cursor_unread_begins_behind_what_was_skipped_meanwhile(void **state)
{
    (void)state;
    struct cursor_world cw;
    begin(&cw, 16);
    world_fill(&cw.w, cw.ml, 0, 8);
    assert_read(&cw, 100, "0 1 2 3 4 5 6 7");
    ox_cursor_unread(cw.c, at(&cw, 0, 6));
    assert_read(&cw, 100, "6 7");
    ox_cursor_mark_delete(cw.c, NULL, at(&cw, 0, 4));
    ox_cursor_unread(cw.c, at(&cw, 0, 2));
    assert_read(&cw, 100, "5 6 7");
    end(&cw);
}

static void test_cursor_read_waits_for_entries_and_is_canceled(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_cursor_read r;
    begin(&cw, 15);
    memset(&r, 0, sizeof r);
    r.entries_max = 10;
    r.bytes_max = UINT64_MAX;
    world_op(&cw.w, &r.op);
    ox_cursor_read(cw.c, &r);
    world_settle(&cw.w);
    assert_true(ox_op_pending(&r.op));
    world_fill(&cw.w, cw.ml, 0, 1);
    assert_int_equal(world_wait(&cw.w, &r.op), OX_OK);
    assert_int_equal(r.count, 1);
    ox_cursor_read_fini(&r);
    world_op(&cw.w, &r.op);
    ox_cursor_read(cw.c, &r);
    world_settle(&cw.w);
    ox_op_cancel(&r.op);
    assert_int_equal(world_wait(&cw.w, &r.op), OX_E_CANCELED);
    end(&cw);
}

static void test_cursor_removed_is_gone_and_its_ledger_too(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_op op;
    begin(&cw, 16);
    world_fill(&cw.w, cw.ml, 0, 4);
    assert_int_equal(ack_one(&cw, 2), OX_OK);
    struct ox_location where = cursor_impl(cw.c)->where;
    world_op(&cw.w, &op);
    ox_cursor_remove(cw.c, &op);
    assert_int_equal(world_wait(&cw.w, &op), OX_OK);
    assert_no_node(&cw, NODE);
    struct ox_ledger_open open;
    memset(&open, 0, sizeof open);
    world_op(&cw.w, &open.op);
    ox_router_open(&cw.w.router, &open, where, OX_OPEN_READ_ONLY, NULL);
    assert_int_equal(world_wait(&cw.w, &open.op), OX_E_NO_LEDGER);
    end(&cw);
}

static void test_cursor_not_durable_leaves_nothing(void **state)
{
    (void)state;
    struct cursor_world cw;
    struct ox_cursor_open open;
    begin(&cw, 17);
    world_fill(&cw.w, cw.ml, 0, 4);
    memset(&open, 0, sizeof open);
    world_op(&cw.w, &open.op);
    ox_cursor_open(cw.ml, &open, "reader", false, at(&cw, 0, 1), NULL);
    assert_int_equal(world_wait(&cw.w, &open.op), OX_OK);
    cw.c = open.cursor;
    assert_read(&cw, 10, "2 3");
    assert_int_equal(ack_one(&cw, 2), OX_OK);
    assert_no_node(&cw, "/managed-ledgers/" NAME "/reader");
    assert_int_equal(world_close(&cw.w, cw.ml), OX_OK);
    world_fini(&cw.w);
}

// Each arrow of a flush, a close and a removal: the process ends there, and what was answered is still acknowledged.
static void crash_at(const char *point)
{
    struct cursor_world cw;
    struct ox_op op;
    world_init(&cw.w, 18);
    world_stop(&cw.w);
    cw.w.settings.cursor_entries_max = 3;
    world_start(&cw.w);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = world_cursor(&cw.w, cw.ml, SUB, OX_POS_EARLIEST);
    world_fill(&cw.w, cw.ml, 0, 10);
    ox_sim_arm(cw.w.node, point, 2, OX_SIM_CRASH_PROCESS);
    int64_t answered = -1;
    for (int64_t i = 0; i < 9 && ox_sim_node_alive(cw.w.node) && ack_one(&cw, i) == OX_OK; i++)
        answered = i;
    if (ox_sim_node_alive(cw.w.node)) {
        world_op(&cw.w, &op);
        ox_sim_arm(cw.w.node, point, 1, OX_SIM_CRASH_PROCESS);
        ox_cursor_remove(cw.c, &op);
        (void)world_wait(&cw.w, &op);
    }
    assert_false(ox_sim_node_alive(cw.w.node));
    world_crash(&cw.w, cw.ml);
    cw.ml = world_open(&cw.w, NAME);
    cw.c = ox_cursor_find(cw.ml, SUB);
    if (cw.c)
        assert_true(cw.c->mark_delete.entry >= answered);
    else
        assert_string_equal(point, "cursor.after_remove");
    end(&cw);
}

static void test_cursor_crash_at_every_arrow(void **state)
{
    (void)state;
    static const char *const points[] = {"cursor.after_create", "cursor.after_first_entry", "cursor.after_move",
                                         "cursor.after_node",   "cursor.after_append",      "cursor.after_remove"};
    for (size_t i = 0; i < OX_COUNT(points); i++)
        crash_at(points[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cursor_ack_hole_keeps_mark),
        cmocka_unit_test(test_cursor_node_bytes_are_pulsars),
        cmocka_unit_test(test_cursor_answered_acks_survive_a_crash),
        cmocka_unit_test(test_cursor_repeated_ack_is_answered_when_the_first_is_durable),
        cmocka_unit_test(test_cursor_cumulative_goes_over_holes_and_never_back),
        cmocka_unit_test(test_cursor_ledger_rolls_and_leaves_no_old_one),
        cmocka_unit_test(test_cursor_reset_forgets_holes_and_survives),
        cmocka_unit_test(test_cursor_many_ranges_close_into_the_ledger),
        cmocka_unit_test(test_cursor_properties_stay),
        cmocka_unit_test(test_cursor_goes_into_the_node_when_no_ledger_can_be_made),
        cmocka_unit_test(test_cursor_unknown_outcome_of_the_node_is_reread),
        cmocka_unit_test(test_cursor_stores_nothing_while_its_node_is_unknown),
        cmocka_unit_test(test_cursor_ends_while_its_node_is_unknown),
        cmocka_unit_test(test_cursor_that_could_not_be_removed_keeps_its_entries),
        cmocka_unit_test(test_cursor_leaves_no_ledgers_while_its_node_cannot_be_written),
        cmocka_unit_test(test_cursor_creation_takes_over_the_node_of_a_lost_attempt),
        cmocka_unit_test(test_cursor_node_written_by_somebody_else_fences),
        cmocka_unit_test(test_cursor_that_could_not_be_read_is_left_as_it_is),
        cmocka_unit_test(test_cursor_taken_position_is_stored_at_close),
        cmocka_unit_test(test_trap_s07_cursor_between_two_ledgers),
        cmocka_unit_test(test_trap_s07_cursor_ledger_without_an_entry),
        cmocka_unit_test(test_cursor_read_skips_what_is_acknowledged_and_rewinds),
        cmocka_unit_test(test_cursor_unread_begins_behind_what_was_skipped_meanwhile),
        cmocka_unit_test(test_cursor_read_waits_for_entries_and_is_canceled),
        cmocka_unit_test(test_cursor_removed_is_gone_and_its_ledger_too),
        cmocka_unit_test(test_cursor_not_durable_leaves_nothing),
        cmocka_unit_test(test_cursor_crash_at_every_arrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
