// compacted_test.c - compacted ledgers in a move of storage: they hold their place back, and whoever owns them is asked to make new ones.
#include <string.h>

#include "mledger/compacted.h"
#include "move/storage/data_rig.h"

#define LOG "public/default/persistent/compacted"

struct owner {
    struct rig r;
    int busy; // so many times: again later
    int asked;
    bool fails; // or cannot
};

// Notes where the log's compacted ledger is.
static void note(struct world *w, const char *place)
{
    struct ox_mledger *ml = world_open(w, LOG);
    struct ox_copies all = {0};
    struct ox_ml_property p;
    memset(&p, 0, sizeof p);
    ox_copies_add(&all, place, 4711, 1);
    world_op(w, &p.op);
    ox_ml_compacted_note(ml, &p, &all);
    assert_int_equal(world_wait(w, &p.op), OX_OK);
    ox_copies_fini(&all);
    assert_int_equal(world_close(w, ml), OX_OK);
}

// The owner of the log, as far as this test goes: what it moved is noted by the test.
static void move(void *ctx, struct ox_op *op, const char *log)
{
    struct owner *o = ctx;
    o->asked++;
    ox_op_begin(op);
    if (strcmp(log, LOG) != 0 || o->fails)
        ox_op_finish(op, OX_E_PLACE_FAILED);
    else
        ox_op_finish(op, o->busy-- > 0 ? OX_E_BUSY : OX_E_NOT_FOUND);
}

static bool holds_back(struct owner *o, const char *place)
{
    struct ox_storage_call c;
    ox_storage_safe_to_release(&o->r.st, rig_call(&o->r, &c), place);
    assert_int_equal(rig_wait(&o->r, &c), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *answer = json_dumps(c.answer, JSON_COMPACT);
    bool named = strstr(answer, "1 compacted ledgers are in it") != NULL;
    assert_true(!named || json_is_false(json_object_get(c.answer, "safe")));
    ox_storage_call_fini(&c);
    return named;
}

static void begin(struct owner *o)
{
    memset(o, 0, sizeof *o);
    rig_init(&o->r);
    rig_log(&o->r, LOG, 1, 5, NULL);
    note(&o->r.w, "default");
    o->r.w.factory.compacted = move;
    o->r.w.factory.compacted_ctx = o;
}

static void test_compacted_ledger_holds_its_place_back(void **state)
{
    (void)state;
    struct owner o;
    begin(&o);
    assert_true(holds_back(&o, "default"));
    assert_false(holds_back(&o, "other"));
    note(&o.r.w, "other");
    assert_false(holds_back(&o, "default"));
    rig_fini(&o.r);
}

static void test_compacted_ledger_is_asked_for_until_its_owner_has_moved_it(void **state)
{
    (void)state;
    struct owner o;
    begin(&o);
    o.busy = 2;
    assert_int_equal(rig_run(&o.r, 1), OX_OK);
    assert_int_equal(o.asked, 3);
    rig_fini(&o.r);
}

static void test_compacted_ledger_that_cannot_be_moved_is_a_failure(void **state)
{
    (void)state;
    struct owner o;
    begin(&o);
    o.fails = true;
    (void)rig_run(&o.r, 1);
    const struct storage_failure *f = rig_failure(&o.r, LOG, 4711);
    assert_non_null(f);
    assert_non_null(strstr(f->reason, "compacted ledger"));
    assert_true(holds_back(&o, "default"));
    rig_fini(&o.r);
}

static void test_compacted_ledger_without_an_owner_stays(void **state)
{
    (void)state;
    struct owner o;
    begin(&o);
    o.r.w.factory.compacted = NULL;
    assert_int_equal(rig_run(&o.r, 1), OX_OK);
    assert_true(holds_back(&o, "default"));
    rig_fini(&o.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compacted_ledger_holds_its_place_back),
        cmocka_unit_test(test_compacted_ledger_is_asked_for_until_its_owner_has_moved_it),
        cmocka_unit_test(test_compacted_ledger_that_cannot_be_moved_is_a_failure),
        cmocka_unit_test(test_compacted_ledger_without_an_owner_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
