// list_test.c - positions in a log of several ledgers: next, previous, clamp, counts; also around empty and lost ledgers.
#include "mledger/fixture.h"

#define NAME "public/default/persistent/l"

// Ledgers of 3, 0 (by hand), 2 entries and a current one with 1.
struct list_rig {
    struct world w;
    struct ox_mledger *ml;
    int64_t id[4];
};

static void rig_init(struct list_rig *r)
{
    world_init(&r->w, 1);
    r->ml = world_open(&r->w, NAME);
    world_cursor(&r->w, r->ml, "keep", OX_POS_EARLIEST);
    world_fill(&r->w, r->ml, 0, 3);
    assert_int_equal(world_roll(&r->w, r->ml), OX_OK);
    world_fill(&r->w, r->ml, 3, 1);
    assert_int_equal(world_roll(&r->w, r->ml), OX_OK);
    world_fill(&r->w, r->ml, 4, 2);
    assert_int_equal(world_roll(&r->w, r->ml), OX_OK);
    world_fill(&r->w, r->ml, 6, 1);
    for (size_t i = 0; i < 4; i++)
        r->id[i] = r->ml->ledgers[i]->where.id;
    r->ml->ledgers[1]->entries = 0;
    r->ml->ledgers[1]->bytes = 0;
    ml_list_count(r->ml);
}

static void rig_fini(struct list_rig *r)
{
    assert_int_equal(world_close(&r->w, r->ml), OX_OK);
    world_fini(&r->w);
}

#define P(ledger, entry) ((struct ox_pos){(ledger), (entry)})
static void assert_pos(struct ox_pos got, int64_t ledger, int64_t entry)
{
    assert_int_equal(got.ledger, ledger);
    assert_int_equal(got.entry, entry);
}

static void test_list_next_passes_empty_ledgers(void **state)
{
    (void)state;
    struct list_rig r;
    rig_init(&r);
    const int64_t *id = r.id;
    assert_pos(ox_ml_first(r.ml), id[0], 0);
    assert_pos(ox_ml_next(r.ml, OX_POS_EARLIEST), id[0], 0);
    assert_pos(ox_ml_next(r.ml, P(id[0], -1)), id[0], 0);
    assert_pos(ox_ml_next(r.ml, P(id[0], 1)), id[0], 2);
    assert_pos(ox_ml_next(r.ml, P(id[0], 2)), id[2], 0);
    assert_pos(ox_ml_next(r.ml, P(id[0], 99)), id[2], 0);
    assert_pos(ox_ml_next(r.ml, P(id[1], -1)), id[2], 0);
    assert_pos(ox_ml_next(r.ml, P(id[2], 1)), id[3], 0);
    assert_pos(ox_ml_next(r.ml, P(id[3], 0)), id[3], 1); // the end
    assert_pos(ox_ml_next(r.ml, P(id[3], 50)), id[3], 1);
    rig_fini(&r);
}

static void test_list_prev_and_clamp_stay_in_the_log(void **state)
{
    (void)state;
    struct list_rig r;
    rig_init(&r);
    const int64_t *id = r.id;
    assert_pos(ox_ml_prev(r.ml, P(id[3], 1)), id[3], 0);
    assert_pos(ox_ml_prev(r.ml, P(id[3], 0)), id[2], 1);
    assert_pos(ox_ml_prev(r.ml, P(id[2], 0)), id[0], 2);
    assert_pos(ox_ml_prev(r.ml, P(id[1], 0)), id[0], 2);
    assert_pos(ox_ml_prev(r.ml, P(id[0], 0)), id[0], -1);
    assert_pos(ox_ml_prev(r.ml, OX_POS_EARLIEST), id[0], -1);
    assert_pos(ox_ml_clamp(r.ml, OX_POS_LATEST), id[3], 0);
    assert_pos(ox_ml_clamp(r.ml, OX_POS_EARLIEST), id[0], -1);
    assert_pos(ox_ml_clamp(r.ml, P(0, 5)), id[0], -1);
    assert_pos(ox_ml_clamp(r.ml, P(id[0], 77)), id[0], 2);
    assert_pos(ox_ml_clamp(r.ml, P(id[2], 0)), id[2], 0);
    rig_fini(&r);
}

static void test_list_counts_between_positions(void **state)
{
    (void)state;
    struct list_rig r;
    rig_init(&r);
    const int64_t *id = r.id;
    assert_int_equal(ox_ml_count(r.ml, OX_POS_EARLIEST, r.ml->last), 6);
    assert_int_equal(ox_ml_count(r.ml, P(id[0], 0), P(id[2], 0)), 3);
    assert_int_equal(ox_ml_count(r.ml, P(id[2], 1), P(id[3], 0)), 1);
    assert_int_equal(ox_ml_count(r.ml, r.ml->last, r.ml->last), 0);
    assert_int_equal(ox_ml_count(r.ml, r.ml->last, OX_POS_EARLIEST), 0);
    assert_int_equal(ox_ml_bytes_between(r.ml, OX_POS_EARLIEST, r.ml->last), 6);
    assert_int_equal(ox_ml_bytes_between(r.ml, P(id[0], 1), P(id[2], 1)), 3);
    for (int64_t n = 0; n < 6; n++)
        assert_int_equal(ml_number_of(r.ml, ml_position_of(r.ml, n)), n);
    rig_fini(&r);
}

static void test_list_lost_ledgers_are_passed_only_where_skipping_is_on(void **state)
{
    (void)state;
    struct list_rig r;
    rig_init(&r);
    const int64_t *id = r.id;
    r.ml->ledgers[2]->lost = true;
    assert_pos(ox_ml_next(r.ml, P(id[0], 2)), id[2], 0);
    r.w.factory.settings.skip_unrecoverable = true;
    assert_pos(ox_ml_next(r.ml, P(id[0], 2)), id[3], 0);
    assert_pos(ox_ml_prev(r.ml, P(id[3], 0)), id[0], 2);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_next_passes_empty_ledgers),
        cmocka_unit_test(test_list_prev_and_clamp_stay_in_the_log),
        cmocka_unit_test(test_list_counts_between_positions),
        cmocka_unit_test(test_list_lost_ledgers_are_passed_only_where_skipping_is_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
