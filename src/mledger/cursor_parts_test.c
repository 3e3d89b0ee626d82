// cursor_parts_test.c - parts of batches, properties kept with the position, skipping and expiry: in memory, in Pulsar's records, over crashes.
#include "mledger/fixture.h"

#include <stdio.h>
#include <string.h>

#include "mledger/cursor_impl.h"
#include "mledger/places.h"

#define NAME "public/default/persistent/t"
#define NODE "/managed-ledgers/" NAME "/s"

struct parts_world {
    struct world w;
    struct ox_mledger *ml;
    struct ox_cursor *c;
};

static void begin(struct parts_world *pw, uint64_t seed)
{
    world_init(&pw->w, seed);
    pw->ml = world_open(&pw->w, NAME);
    pw->c = world_cursor(&pw->w, pw->ml, "s", OX_POS_EARLIEST);
    world_fill(&pw->w, pw->ml, 0, 10);
}

static void end(struct parts_world *pw)
{
    assert_int_equal(world_close(&pw->w, pw->ml), OX_OK);
    world_fini(&pw->w);
}

static void open_again(struct parts_world *pw)
{
    pw->ml = world_open(&pw->w, NAME);
    pw->c = ox_cursor_find(pw->ml, "s");
    assert_non_null(pw->c);
}

static void crash(struct parts_world *pw)
{
    world_crash(&pw->w, pw->ml);
    open_again(pw);
}

static void reopen(struct parts_world *pw)
{
    assert_int_equal(world_close(&pw->w, pw->ml), OX_OK);
    open_again(pw);
}

static struct ox_pos at(const struct parts_world *pw, int64_t entry)
{
    return (struct ox_pos){pw->ml->ledgers[0]->where.id, entry};
}

// Acknowledges a part and waits until it is stored; returns how many messages are left.
static uint32_t ack_part(struct parts_world *pw, int64_t entry, uint64_t bits)
{
    struct ox_cursor_ack wait;
    bool whole = false;
    uint32_t left = 0;
    memset(&wait, 0, sizeof wait);
    world_op(&pw->w, &wait.op);
    ox_cursor_delete_part(pw->c, &wait, at(pw, entry), &bits, 1, &whole, &left);
    assert_int_equal(whole, left == 0);
    assert_int_equal(world_wait(&pw->w, &wait.op), OX_OK);
    return left;
}

static void assert_part(const struct parts_world *pw, int64_t entry, uint64_t bits)
{
    const struct ox_batch_ack *a = ox_cursor_part(pw->c, at(pw, entry));
    assert_non_null(a);
    assert_true(a->words >= 1 && a->bits[0] == bits);
}

static void test_part_answered_survives_a_crash(void **state) // as long as nothing else is acknowledged, too
{
    (void)state;
    struct parts_world pw;
    begin(&pw, 1);
    assert_int_equal(ack_part(&pw, 3, 0xe), 3);
    assert_int_equal(ack_part(&pw, 5, 0x3), 2);
    assert_int_equal(ack_part(&pw, 3, 0x5), 1);
    crash(&pw);
    assert_part(&pw, 3, 0x4);
    assert_part(&pw, 5, 0x3);
    assert_false(ox_cursor_is_deleted(pw.c, at(&pw, 3)));
    assert_int_equal(ox_cursor_backlog(pw.c), 10);
    assert_int_equal(ack_part(&pw, 3, 0x3), 0);
    crash(&pw);
    assert_true(ox_cursor_is_deleted(pw.c, at(&pw, 3)));
    assert_null(ox_cursor_part(pw.c, at(&pw, 3)));
    assert_int_equal(ox_cursor_backlog(pw.c), 9);
    end(&pw);
}

static void test_part_survives_a_clean_close_in_the_node(void **state)
{
    (void)state;
    struct parts_world pw;
    begin(&pw, 2);
    uint64_t two[3] = {0, 1, 0}; // message 64 is left
    bool whole = true;
    ox_cursor_delete_part(pw.c, NULL, at(&pw, 2), two, 3, &whole, NULL);
    assert_false(whole);
    assert_int_equal(ack_part(&pw, 6, 0x1), 1);
    reopen(&pw);
    assert_int_equal(pw.c->cursor_ledger, -1);
    const struct ox_batch_ack *a = ox_cursor_part(pw.c, at(&pw, 2));
    assert_non_null(a);
    assert_true(a->words == 2 && a->bits[0] == 0 && a->bits[1] == 1); // trailing words without a bit are not written
    assert_part(&pw, 6, 0x1);
    end(&pw);
}

static void test_part_record_bytes_are_pulsars(void **state) // facts 4.1 and 6: field 7 of the node, position then words
{
    (void)state;
    struct parts_world pw;
    char want[256];
    begin(&pw, 3);
    unsigned id = (unsigned)pw.ml->ledgers[0]->where.id;
    assert_int_equal(ack_part(&pw, 0, 0x18), 2);
    assert_int_equal(world_close(&pw.w, pw.ml), OX_OK);
    char *got = world_node_hex(&pw.w, NODE);
    snprintf(want, sizeof want, "08ffffffffffffffffff0110%02x18ffffffffffffffffff0130", id);
    assert_memory_equal(got, want, strlen(want));
    snprintf(want, sizeof want, "3a080a0408%02x10001018", id);
    assert_string_equal(got + strlen(got) - strlen(want), want);
    ox_free(got);
    world_fini(&pw.w);
}

// The last entry of the cursor's ledger in hex.
static char *last_record(struct parts_world *pw)
{
    struct ox_ledger_open open = {0};
    struct ox_read read = {.bytes_max = UINT64_MAX};
    struct ox_str hex = {0};
    world_op(&pw->w, &open.op);
    ox_router_open(&pw->w.router, &open, cursor_impl(pw->c)->where, OX_OPEN_READ_ONLY, NULL);
    assert_int_equal(world_wait(&pw->w, &open.op), OX_OK);
    read.first = read.last = cursor_impl(pw->c)->next_entry - 1;
    world_op(&pw->w, &read.op);
    ox_ledger_read(open.ledger, &read);
    assert_int_equal(world_wait(&pw->w, &read.op), OX_OK);
    for (size_t i = 0; i < read.entries[0].len; i++)
        ox_str_addf(&hex, "%02x", read.entries[0].data[i]);
    ox_read_fini(&read);
    ox_ledger_release(open.ledger);
    return ox_str_take(&hex);
}

static void test_part_ledger_bytes_are_pulsars(void **state) // as a 4.0.7 wrote them for these acknowledgements
{
    (void)state;
    struct parts_world pw;
    uint64_t far[2] = {0, 0x3e};
    char want[256];
    bool whole;
    begin(&pw, 13);
    unsigned id = (unsigned)pw.ml->ledgers[0]->where.id;
    struct ox_pos one = at(&pw, 1);
    ox_cursor_delete_part(pw.c, NULL, at(&pw, 2), far, 2, &whole, NULL);
    ox_cursor_delete(pw.c, NULL, &one, 1);
    assert_int_equal(ack_part(&pw, 0, 0x15), 3);
    char *got = last_record(&pw);
    snprintf(want, sizeof want,
             "08%02x10ffffffffffffffffff01"
             "1a0c0a0408%02x1000120408%02x1001"
             "2a080a0408%02x10001015"
             "2a0a0a0408%02x10021000103e",
             id, id, id, id, id);
    assert_string_equal(got, want);
    ox_free(got);
    end(&pw);
}

static void test_part_too_many_for_the_node_close_into_the_ledger(void **state)
{
    (void)state;
    struct parts_world pw;
    begin(&pw, 4);
    pw.w.factory.settings.ranges_in_node_max = 2;
    for (int64_t i = 1; i < 6; i++)
        assert_int_equal(ack_part(&pw, i, 0x2), 1);
    reopen(&pw);
    for (int64_t i = 1; i < 6; i++)
        assert_part(&pw, i, 0x2);
    end(&pw);
}

// Two places; a cursor with parts and a position in its ledger in the first one.
static void begin_two(struct parts_world *pw, uint64_t seed)
{
    world_init_two(&pw->w, seed);
    pw->ml = world_open(&pw->w, NAME);
    pw->c = world_cursor(&pw->w, pw->ml, "s", OX_POS_EARLIEST);
    world_fill(&pw->w, pw->ml, 0, 10);
    assert_int_equal(ack_part(pw, 3, 0xe), 3);
    assert_int_equal(ack_part(pw, 4, 0x6), 2);
}

static void moves_unloaded(uint32_t in_node_max, bool in_node)
{
    struct parts_world pw;
    struct ox_ml_cursor_move m = {.log = NAME, .cursor = "s", .expected = -1};
    begin_two(&pw, 14);
    world_crash(&pw.w, pw.ml);
    pw.w.factory.settings.ranges_in_node_max = in_node_max;
    ox_router_activate(&pw.w.router, 1);
    world_op(&pw.w, &m.op);
    ox_ml_cursor_move(&pw.w.factory, &m);
    assert_int_equal(world_wait(&pw.w, &m.op), OX_OK);
    open_again(&pw);
    assert_int_equal(pw.c->cursor_ledger < 0, in_node);
    assert_part(&pw, 3, 0xe);
    assert_part(&pw, 4, 0x6);
    end(&pw);
}

static void test_part_moves_with_a_cursor_that_is_not_loaded(void **state)
{
    (void)state;
    moves_unloaded(1000, true);
    moves_unloaded(1, false);
}

static void test_part_moves_with_a_cursor_that_is_loaded(void **state)
{
    (void)state;
    struct parts_world pw;
    begin_two(&pw, 15);
    ox_router_activate(&pw.w.router, 1);
    ox_ml_follow(&pw.w.factory);
    world_settle(&pw.w);
    assert_int_equal(cursor_impl(pw.c)->where.place, 1);
    crash(&pw);
    assert_part(&pw, 3, 0xe);
    assert_part(&pw, 4, 0x6);
    end(&pw);
}

static void test_part_is_forgotten_with_its_entry(void **state)
{
    (void)state;
    struct parts_world pw;
    struct ox_cursor_ack wait;
    struct ox_op op;
    begin(&pw, 5);
    for (int64_t i = 1; i < 8; i++)
        (void)ack_part(&pw, i, 0x2);
    struct ox_pos p = at(&pw, 7);
    memset(&wait, 0, sizeof wait);
    world_op(&pw.w, &wait.op);
    ox_cursor_delete(pw.c, &wait, &p, 1);
    assert_int_equal(world_wait(&pw.w, &wait.op), OX_OK);
    assert_null(ox_cursor_part(pw.c, p));
    assert_int_equal(world_ack_upto(&pw.w, pw.c, at(&pw, 4)), OX_OK);
    assert_null(ox_cursor_part(pw.c, at(&pw, 4)));
    assert_part(&pw, 5, 0x2);
    world_op(&pw.w, &op);
    ox_cursor_reset(pw.c, &op, at(&pw, 2));
    assert_int_equal(world_wait(&pw.w, &op), OX_OK);
    assert_int_equal(ox_batch_acks_count(&pw.c->batches), 0);
    uint64_t rest = 0x18;
    ox_cursor_set_part(pw.c, at(&pw, 3), &rest, 1);
    world_sleep(&pw.w, 2 * OX_SEC); // nobody waits: it is stored all the same
    crash(&pw);
    assert_part(&pw, 3, 0x18);
    assert_int_equal(ox_batch_acks_count(&pw.c->batches), 1);
    end(&pw);
}

static void test_reset_into_a_batch_is_stored_before_the_answer(void **state)
{
    (void)state;
    struct parts_world pw;
    struct ox_op op;
    uint64_t rest = 0x18;
    begin(&pw, 7);
    assert_int_equal(world_ack_upto(&pw.w, pw.c, at(&pw, 6)), OX_OK);
    world_op(&pw.w, &op);
    ox_cursor_reset_into(pw.c, &op, at(&pw, 2), at(&pw, 3), &rest, 1);
    assert_int_equal(world_wait(&pw.w, &op), OX_OK);
    crash(&pw);
    assert_part(&pw, 3, 0x18);
    assert_true(ox_pos_equal(pw.c->mark_delete, at(&pw, 2)));
    world_op(&pw.w, &op);
    ox_cursor_reset_into(pw.c, &op, at(&pw, 4), at(&pw, 99), &rest, 1); // no such entry
    assert_int_equal(world_wait(&pw.w, &op), OX_OK);
    assert_int_equal(ox_batch_acks_count(&pw.c->batches), 0);
    end(&pw);
}

static void test_part_of_what_is_not_there_has_no_effect(void **state)
{
    (void)state;
    struct parts_world pw;
    bool whole = true;
    uint64_t bits = 1;
    begin(&pw, 6);
    ox_cursor_delete_part(pw.c, NULL, at(&pw, 10), &bits, 1, &whole, NULL);
    assert_false(whole);
    ox_cursor_delete_part(pw.c, NULL, (struct ox_pos){99999, 0}, &bits, 1, &whole, NULL);
    assert_false(whole);
    assert_int_equal(ox_batch_acks_count(&pw.c->batches), 0);
    assert_int_equal(world_ack_upto(&pw.w, pw.c, at(&pw, 4)), OX_OK);
    ox_cursor_delete_part(pw.c, NULL, at(&pw, 4), &bits, 1, &whole, NULL);
    assert_true(whole); // it is acknowledged already
    assert_int_equal(ox_batch_acks_count(&pw.c->batches), 0);
    end(&pw);
}

static void test_position_properties_are_stored_with_the_position(void **state)
{
    (void)state;
    struct parts_world pw;
    struct ox_cursor_ack wait;
    struct ox_kv kv = {0};
    begin(&pw, 7);
    ox_kv_set(&kv, "p1", "41");
    memset(&wait, 0, sizeof wait);
    world_op(&pw.w, &wait.op);
    ox_cursor_mark_delete_with(pw.c, &wait, at(&pw, 2), &kv);
    assert_int_equal(world_wait(&pw.w, &wait.op), OX_OK);
    assert_int_equal(world_ack_upto(&pw.w, pw.c, at(&pw, 4)), OX_OK); // they stay
    crash(&pw);
    assert_string_equal(ox_kv_find(&pw.c->position_properties, "p1"), "41");
    assert_int_equal(pw.c->mark_delete.entry, 4);
    ox_kv_set(&kv, "p1", "42");
    ox_cursor_mark_delete_with(pw.c, NULL, at(&pw, 3), &kv); // back: neither is taken
    assert_string_equal(ox_kv_find(&pw.c->position_properties, "p1"), "41");
    ox_cursor_mark_delete_with(pw.c, NULL, at(&pw, 4), &kv); // where it is: only they change
    reopen(&pw);
    assert_string_equal(ox_kv_find(&pw.c->position_properties, "p1"), "42");
    reopen(&pw);
    assert_string_equal(ox_kv_find(&pw.c->position_properties, "p1"), "42");
    ox_kv_fini(&kv);
    end(&pw);
}

static void test_skip_counts_what_is_not_acknowledged(void **state)
{
    (void)state;
    struct parts_world pw;
    struct ox_cursor_ack wait;
    begin(&pw, 8);
    struct ox_pos acked[] = {at(&pw, 1), at(&pw, 2), at(&pw, 5)};
    ox_cursor_delete(pw.c, NULL, acked, 3);
    memset(&wait, 0, sizeof wait);
    world_op(&pw.w, &wait.op);
    ox_cursor_skip(pw.c, &wait, 3); // 0, 3, 4; then 5 is passed too
    assert_int_equal(world_wait(&pw.w, &wait.op), OX_OK);
    assert_int_equal(pw.c->mark_delete.entry, 5);
    assert_int_equal(world_roll(&pw.w, pw.ml), OX_OK);
    world_fill(&pw.w, pw.ml, 10, 5);
    ox_cursor_skip(pw.c, NULL, 5); // over the end of a ledger
    assert_int_equal(ox_cursor_backlog(pw.c), 4);
    ox_cursor_skip(pw.c, NULL, 100);
    assert_int_equal(ox_cursor_backlog(pw.c), 0);
    end(&pw);
}

// ---- expiry ----------------------------------------------------------------------------------------------------------

// Entries are numbers; those below the limit are old.
static bool is_old(void *ctx, const struct ox_entry *entry)
{
    char text[16] = {0};
    memcpy(text, entry->data.data, OX_MIN(entry->data.len, sizeof text - 1));
    return atoi(text) < *(const int *)ctx;
}

// What a check of the expiry does: up to the last old entry.
static void expire(struct parts_world *pw, int limit)
{
    struct ox_ml_find f = {.before = is_old, .ctx = &limit};
    world_op(&pw->w, &f.op);
    ox_mledger_find(pw->ml, &f);
    assert_int_equal(world_wait(&pw->w, &f.op), OX_OK);
    ox_cursor_mark_delete(pw->c, NULL, f.found);
}

// fault: P09
static void test_trap_p09_what_is_young_stays(void **state)
{
    (void)state;
    struct parts_world pw;
    begin(&pw, 9);
    for (int i = 0; i < 3; i++)
        expire(&pw, 0);
    assert_int_equal(ox_cursor_backlog(pw.c), 10);
    expire(&pw, 4);
    assert_int_equal(pw.c->mark_delete.entry, 3);
    end(&pw);
}

// fault: P09
static void test_trap_p09_an_empty_last_ledger_is_no_obstacle(void **state)
{
    (void)state;
    struct parts_world pw;
    begin(&pw, 10);
    assert_int_equal(world_ack_upto(&pw.w, pw.c, at(&pw, 2)), OX_OK);
    reopen(&pw);
    assert_int_equal(pw.ml->ledgers[pw.ml->ledger_count - 1]->entries, 0);
    expire(&pw, 100);
    assert_int_equal(ox_cursor_backlog(pw.c), 0);
    end(&pw);
}

// fault: P09
static void test_trap_p09_all_ledgers_go_in_one_check(void **state)
{
    (void)state;
    struct parts_world pw;
    begin(&pw, 11);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(world_roll(&pw.w, pw.ml), OX_OK);
        world_fill(&pw.w, pw.ml, 10, 5);
    }
    struct ox_pos one = {pw.ml->ledgers[2]->where.id, 1};
    ox_cursor_delete(pw.c, NULL, &one, 1);
    expire(&pw, 100);
    world_settle(&pw.w);
    assert_int_equal(pw.ml->ledger_count, 1);
    assert_int_equal(ox_cursor_backlog(pw.c), 0);
    end(&pw);
}

static void test_age_of_ledgers_says_what_is_older(void **state) // whether they can be read or not
{
    (void)state;
    struct parts_world pw;
    begin(&pw, 12);
    assert_int_equal(world_roll(&pw.w, pw.ml), OX_OK);
    world_fill(&pw.w, pw.ml, 10, 5);
    world_sleep(&pw.w, 10 * OX_SEC);
    uint64_t now = ox_wall_ms(pw.w.loop);
    assert_true(ox_pos_equal(ox_ml_closed_before(pw.ml, now - 60000), OX_POS_EARLIEST));
    assert_true(ox_pos_equal(ox_ml_closed_before(pw.ml, now - 1000), at(&pw, 9)));
    ox_cursor_mark_delete(pw.c, NULL, ox_ml_closed_before(pw.ml, now - 1000));
    assert_int_equal(ox_cursor_backlog(pw.c), 5);
    end(&pw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_part_answered_survives_a_crash),
        cmocka_unit_test(test_part_survives_a_clean_close_in_the_node),
        cmocka_unit_test(test_part_record_bytes_are_pulsars),
        cmocka_unit_test(test_part_ledger_bytes_are_pulsars),
        cmocka_unit_test(test_part_too_many_for_the_node_close_into_the_ledger),
        cmocka_unit_test(test_part_moves_with_a_cursor_that_is_not_loaded),
        cmocka_unit_test(test_part_moves_with_a_cursor_that_is_loaded),
        cmocka_unit_test(test_part_is_forgotten_with_its_entry),
        cmocka_unit_test(test_reset_into_a_batch_is_stored_before_the_answer),
        cmocka_unit_test(test_part_of_what_is_not_there_has_no_effect),
        cmocka_unit_test(test_position_properties_are_stored_with_the_position),
        cmocka_unit_test(test_skip_counts_what_is_not_acknowledged),
        cmocka_unit_test(test_trap_p09_what_is_young_stays),
        cmocka_unit_test(test_trap_p09_an_empty_last_ledger_is_no_obstacle),
        cmocka_unit_test(test_trap_p09_all_ledgers_go_in_one_check),
        cmocka_unit_test(test_age_of_ledgers_says_what_is_older),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
