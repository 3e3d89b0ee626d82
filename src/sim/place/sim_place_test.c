// sim_place_test.c - the simulated place keeps what places promise: order, fences, owner checks, and outcomes as ordered by the hook.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ledger/conformance.h"
#include "sim/place/sim_place.h"
#include "sim/sim.h"

struct rig {
    struct ox_sim *sim;
    struct ox_loop *loop;
    struct ox_sim_store *store;
    struct ox_place *place;
    struct ox_sim_place_faults faults;
    struct ox_sim_place_fault next; // for appends
    struct ox_kv owner;
};

static void rig_choose(struct ox_sim_place_faults *f, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_APPEND)
        *fault = CONTAINER_OF(f, struct rig, faults)->next;
}

static void rig_init(struct rig *r)
{
    *r = (struct rig){.faults.choose = rig_choose};
    r->sim = ox_sim_new(1, NULL);
    r->loop = ox_sim_loop(ox_sim_node_new(r->sim, "a"));
    r->store = ox_sim_store_new(7);
    r->place = ox_sim_place_new(r->loop, r->store, "p", &r->faults);
    ox_kv_set(&r->owner, "who", "me");
}

static void rig_fini(struct rig *r)
{
    struct ox_op op;
    ox_op_init(&op, r->loop, ox_sim_done, "close");
    ox_place_close(r->place, &op);
    assert_int_equal(ox_sim_wait(r->sim, &op), OX_OK);
    ox_sim_store_free(r->store);
    ox_kv_fini(&r->owner);
    ox_sim_free(r->sim);
}

static struct ox_ledger *rig_create(struct rig *r, int64_t id)
{
    struct ox_ledger_create op;
    ox_op_init(&op.op, r->loop, ox_sim_done, "create");
    ox_ledger_create(r->place, &op, id, &r->owner);
    assert_int_equal(ox_sim_wait(r->sim, &op.op), OX_OK);
    return op.ledger;
}

static enum ox_err rig_append(struct rig *r, struct ox_ledger *l, int64_t entry)
{
    struct ox_append op = {.entry = entry, .part_count = 1, .parts = {ox_buf_static("abc", 3)}};
    ox_op_init(&op.op, r->loop, ox_sim_done, "append");
    ox_ledger_append(l, &op);
    return ox_sim_wait(r->sim, &op.op);
}

static enum ox_err rig_open(struct rig *r, int64_t id, enum ox_open_mode mode, struct ox_ledger **ret)
{
    struct ox_ledger_open op;
    ox_op_init(&op.op, r->loop, ox_sim_done, "open");
    ox_ledger_open(r->place, &op, id, mode, &r->owner);
    enum ox_err err = ox_sim_wait(r->sim, &op.op);
    *ret = op.ledger;
    return err;
}

static enum ox_err rig_delete(struct rig *r, int64_t id)
{
    struct ox_ledger_delete op;
    ox_op_init(&op.op, r->loop, ox_sim_done, "delete");
    ox_ledger_delete(r->place, &op, id, &r->owner);
    return ox_sim_wait(r->sim, &op.op);
}

static void test_sim_place_recovery_fences_the_writer(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_ledger *writer = rig_create(&r, 5), *reader;
    assert_int_equal(rig_append(&r, writer, 0), OX_OK);
    assert_int_equal(rig_delete(&r, 5), OX_E_BUSY);
    assert_int_equal(rig_open(&r, 5, OX_OPEN_RECOVER, &reader), OX_OK);
    assert_int_equal(reader->info.last_entry, 0);
    assert_int_equal(rig_append(&r, writer, 1), OX_E_FENCED);
    ox_ledger_release(writer);
    ox_ledger_release(reader);
    assert_int_equal(rig_delete(&r, 5), OX_OK);
    assert_int_equal(rig_delete(&r, 5), OX_E_NO_LEDGER);
    rig_fini(&r);
}

static void test_sim_place_failed_append_fails_all_later_ones(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_ledger *writer = rig_create(&r, 5);
    r.next = (struct ox_sim_place_fault){.err = OX_E_PLACE_FAILED, .effect = true};
    assert_int_equal(rig_append(&r, writer, 0), OX_E_PLACE_FAILED);
    r.next = (struct ox_sim_place_fault){0};
    assert_int_equal(rig_append(&r, writer, 1), OX_E_PLACE_FAILED);
    assert_int_equal(ox_sim_store_find(r.store, 5)->last_entry, 0); // the first one had taken effect
    ox_ledger_release(writer);
    rig_fini(&r);
}

static void test_sim_place_asks_for_the_owner(void **state)
{
    (void)state;
    struct rig r;
    struct ox_ledger *reader;
    rig_init(&r);
    struct ox_kv stranger = {0};
    ox_kv_set(&stranger, "who", "you");
    ox_sim_store_make(r.store, 9, &stranger, 2);
    assert_int_equal(rig_open(&r, 9, OX_OPEN_READ_ONLY, &reader), OX_E_IDENTITY_MISMATCH);
    assert_int_equal(rig_delete(&r, 9), OX_E_IDENTITY_MISMATCH);
    assert_true(ox_sim_store_has(r.store, 9));
    ox_kv_fini(&stranger);
    rig_fini(&r);
}

// ---- the suite that every place passes ----------------------------------------------------------------------------------

static enum ox_err conformance_wait(struct ox_conformance *c, struct ox_op *op)
{
    return ox_sim_wait(((struct rig *)c->ctx)->sim, op);
}

static void conformance_reopen(struct ox_conformance *c)
{
    struct rig *r = c->ctx;
    struct ox_op op;
    ox_op_init(&op, r->loop, ox_sim_done, "close");
    ox_place_close(r->place, &op);
    assert_int_equal(ox_sim_wait(r->sim, &op), OX_OK);
    c->place = r->place = ox_sim_place_new(r->loop, r->store, "p", &r->faults);
}

static void test_sim_place_conforms(void **state)
{
    (void)state;
    for (const struct ox_conformance_test *t = ox_conformance_tests; t->name; t++) {
        struct rig r;
        rig_init(&r);
        struct ox_conformance c = {r.place, conformance_wait, conformance_reopen, &r};
        if (getenv("OX_VERBOSE"))
            print_message("%s\n", t->name);
        t->run(&c);
        rig_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim_place_recovery_fences_the_writer),
        cmocka_unit_test(test_sim_place_failed_append_fails_all_later_ones),
        cmocka_unit_test(test_sim_place_asks_for_the_owner),
        cmocka_unit_test(test_sim_place_conforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
