// conformance_test.c - the suite for places over the embedded engine on a simulated disk.
#include "ledger/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ledger/store/store_rig.h"

static enum ox_err conformance_wait(struct ox_conformance *c, struct ox_op *op)
{
    struct store_rig *rig = c->ctx;
    return ox_sim_wait(rig->sim, op);
}

static void conformance_reopen(struct ox_conformance *c)
{
    struct store_rig *rig = c->ctx;
    assert_int_equal(store_rig_close(rig), OX_OK);
    assert_int_equal(store_rig_open(rig), OX_OK);
    c->place = rig->place;
}

static void conformance_run(void **state)
{
    const struct ox_conformance_test *test = *state;
    struct store_rig rig;
    store_rig_init(&rig, 1);
    assert_int_equal(store_rig_open(&rig), OX_OK);
    struct ox_conformance c = {.place = rig.place, .wait = conformance_wait, .reopen = conformance_reopen, .ctx = &rig};
    test->run(&c);
    store_rig_fini(&rig);
}

int main(void)
{
    struct CMUnitTest tests[32] = {{0}};
    size_t n = 0;
    for (const struct ox_conformance_test *t = ox_conformance_tests; t->name; t++)
        tests[n++] =
            (struct CMUnitTest){.name = t->name, .test_func = conformance_run, .initial_state = (void *)(uintptr_t)t};
    return _cmocka_run_group_tests("conformance", tests, n, NULL, NULL);
}
