// router_test.c - ids of one topic only rise, whatever the place's generator gives.
#include "ledger/router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/sim.h"

// A place with a generator that can be set by hand and a set of taken ids.
struct fake {
    struct ox_place place;
    struct ox_ledger ledger;
    int64_t next, taken, created, pushed;
    char name[8];
};

static struct fake *fake_of(struct ox_place *p)
{
    return CONTAINER_OF(p, struct fake, place);
}

static void fake_create(struct ox_place *p, struct ox_ledger_create *op, int64_t id, const struct ox_kv *custom)
{
    (void)custom;
    if (id == fake_of(p)->taken) {
        ox_op_finish(&op->op, OX_E_LEDGER_EXISTS);
        return;
    }
    fake_of(p)->created = id;
    op->ledger = &fake_of(p)->ledger;
    ox_op_finish(&op->op, OX_OK);
}

static void fake_next_id(struct ox_place *p, struct ox_next_id *op)
{
    op->id = fake_of(p)->next++;
    ox_op_finish(&op->op, OX_OK);
}

static void fake_push_id(struct ox_place *p, struct ox_op *op, int64_t above)
{
    fake_of(p)->pushed = above;
    fake_of(p)->next = OX_MAX(fake_of(p)->next, above + 1);
    ox_op_finish(op, OX_OK);
}

static void fake_close(struct ox_place *p, struct ox_op *op)
{
    (void)p;
    ox_op_finish(op, OX_OK);
}

static const struct ox_place_body fake_body = {
    .create = fake_create, .next_id = fake_next_id, .push_id = fake_push_id, .close = fake_close};

struct rig {
    struct ox_sim *sim;
    struct ox_loop *loop;
    struct ox_router router;
    struct fake fake;
};

static void rig_start(struct rig *rig)
{
    *rig = (struct rig){.sim = ox_sim_new(1, NULL)};
    rig->loop = ox_sim_loop(ox_sim_node_new(rig->sim, "a"));
    rig->fake = (struct fake){.place =
                                  {
                                      .body = &fake_body,
                                      .loop = rig->loop,
                                  },
                              .name = "default",
                              .next = 1};
    rig->fake.place.name = rig->fake.name;
    ox_router_init(&rig->router, rig->loop);
    assert_int_equal(ox_router_add(&rig->router, &rig->fake.place), 0);
}

static void rig_end(struct rig *rig)
{
    struct ox_op op;
    ox_op_init(&op, rig->loop, ox_sim_done, "close");
    ox_router_close(&rig->router, &op);
    assert_int_equal(ox_sim_wait(rig->sim, &op), OX_OK);
    ox_sim_free(rig->sim);
}

static struct ox_location rig_create(struct rig *rig, int64_t above)
{
    struct ox_router_create op = {0};
    struct ox_kv custom = {0};
    ox_op_init(&op.op, rig->loop, ox_sim_done, "create");
    ox_router_create(&rig->router, &op, above, &custom);
    assert_int_equal(ox_sim_wait(rig->sim, &op.op), OX_OK);
    assert_ptr_equal(op.ledger, &rig->fake.ledger);
    assert_int_equal(op.location.id, rig->fake.created);
    assert_int_equal(op.location.physical, op.location.id);
    return op.location;
}

static void test_router_pushes_a_generator_that_lags(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    assert_int_equal(rig_create(&rig, -1).id, 1);
    assert_int_equal(rig_create(&rig, 1000).id, 1001);
    assert_int_equal(rig.fake.pushed, 1000);
    rig.fake.next = 5; // a generator that went back
    assert_true(rig_create(&rig, 10).id > 1001);
    rig_end(&rig);
}

static void test_router_passes_over_taken_ids(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig.fake.taken = 1;
    assert_int_equal(rig_create(&rig, -1).id, 2);
    rig_end(&rig);
}

static void test_router_knows_places_by_name_and_refuses_others(void **state)
{
    (void)state;
    struct rig rig;
    uint32_t index;
    rig_start(&rig);
    assert_int_equal(ox_router_find(&rig.router, "default", &index), OX_OK);
    assert_int_equal(index, 0);
    assert_int_equal(ox_router_find(&rig.router, "other", &index), OX_E_NO_PLACE);
    struct ox_ledger_open open = {0};
    ox_op_init(&open.op, rig.loop, ox_sim_done, "open");
    ox_router_open(&rig.router, &open, (struct ox_location){.place = 3, .id = 1, .physical = 1}, OX_OPEN_READ_ONLY, NULL);
    assert_int_equal(ox_sim_wait(rig.sim, &open.op), OX_E_NO_PLACE);
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_router_pushes_a_generator_that_lags),
        cmocka_unit_test(test_router_passes_over_taken_ids),
        cmocka_unit_test(test_router_knows_places_by_name_and_refuses_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
