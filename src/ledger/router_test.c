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
    ox_place_init(&rig->fake.place);
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

// fault: C9
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

// fault: C10
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

// A second place, which is registered before it is open.
static uint32_t rig_second(struct rig *rig, struct fake *second)
{
    *second = (struct fake){.place = {.body = &fake_body, .loop = rig->loop}, .name = "two", .next = 100};
    second->place.name = second->name;
    ox_place_init(&second->place);
    return ox_router_reserve(&rig->router, "two", OX_E_PLACE_CLOSED);
}

static enum ox_err rig_open(struct rig *rig, uint32_t place)
{
    struct ox_ledger_delete del = {0};
    struct ox_kv owner = {0};
    ox_op_init(&del.op, rig->loop, ox_sim_done, "delete");
    ox_router_delete(&rig->router, &del, (struct ox_location){place, 1, 1}, &owner);
    return ox_sim_wait(rig->sim, &del.op);
}

static void fake_del(struct ox_place *p, struct ox_ledger_delete *op, int64_t id, const struct ox_kv *expected)
{
    (void)p;
    (void)id;
    (void)expected;
    ox_op_finish(&op->op, OX_E_NO_LEDGER);
}

static const struct ox_place_body second_body = {
    .create = fake_create, .next_id = fake_next_id, .push_id = fake_push_id, .close = fake_close, .del = fake_del};

static void test_router_says_why_a_place_cannot_be_used(void **state)
{
    (void)state;
    struct rig rig;
    struct fake second;
    rig_start(&rig);
    uint32_t two = rig_second(&rig, &second);
    second.place.body = &second_body;
    assert_int_equal(two, 1);
    assert_null(ox_router_place(&rig.router, two));
    assert_string_equal(ox_router_name(&rig.router, two), "two");
    assert_int_equal(rig_open(&rig, two), OX_E_PLACE_CLOSED);
    assert_int_equal(ox_router_reserve(&rig.router, "two", OX_E_PLACE_CHANGED), two);
    assert_int_equal(rig_open(&rig, two), OX_E_PLACE_CHANGED);
    assert_int_equal(ox_router_opening(&rig.router, two), 0);
    ox_router_attach(&rig.router, two, &second.place);
    assert_int_equal(ox_router_opening(&rig.router, two), 1);
    assert_int_equal(rig_open(&rig, two), OX_E_NO_LEDGER);
    rig_end(&rig);
}

static void test_router_makes_ledgers_in_the_active_place(void **state)
{
    (void)state;
    struct rig rig;
    struct fake second;
    rig_start(&rig);
    uint32_t two = rig_second(&rig, &second);
    ox_router_attach(&rig.router, two, &second.place);
    ox_router_activate(&rig.router, two);
    struct ox_router_create op = {0};
    struct ox_kv custom = {0};
    ox_op_init(&op.op, rig.loop, ox_sim_done, "create");
    ox_router_create(&rig.router, &op, 200, &custom);
    assert_int_equal(ox_sim_wait(rig.sim, &op.op), OX_OK);
    assert_int_equal(op.location.place, two);
    assert_int_equal(op.location.id, 201);
    assert_ptr_equal(op.ledger, &second.ledger);
    rig_end(&rig);
}

// The place is read once: a create that has begun ends where it began, and says so.
static void test_router_creates_end_where_they_began(void **state)
{
    (void)state;
    struct rig rig;
    struct fake second;
    rig_start(&rig);
    uint32_t two = rig_second(&rig, &second);
    ox_router_attach(&rig.router, two, &second.place);
    struct ox_router_create op = {0};
    struct ox_kv custom = {0};
    ox_op_init(&op.op, rig.loop, ox_sim_done, "create");
    ox_router_create(&rig.router, &op, -1, &custom);
    ox_router_activate(&rig.router, two); // while the first place is being asked for an id
    assert_int_equal(ox_sim_wait(rig.sim, &op.op), OX_OK);
    assert_int_equal(op.location.place, 0);
    assert_ptr_equal(op.ledger, &rig.fake.ledger);
    assert_int_equal(second.created, 0);
    rig_end(&rig);
}

static void test_router_copies_keep_their_logical_id(void **state)
{
    (void)state;
    struct rig rig;
    struct ox_router_create op = {0};
    struct ox_kv custom = {0};
    rig_start(&rig);
    rig.fake.taken = 7;
    rig.fake.next = 50;
    ox_op_init(&op.op, rig.loop, ox_sim_done, "copy");
    ox_router_create_copy(&rig.router, &op, 0, 6, &custom);
    assert_int_equal(ox_sim_wait(rig.sim, &op.op), OX_OK);
    assert_int_equal(op.location.physical, 6);
    ox_op_init(&op.op, rig.loop, ox_sim_done, "copy");
    ox_router_create_copy(&rig.router, &op, 0, 7, &custom);
    assert_int_equal(ox_sim_wait(rig.sim, &op.op), OX_OK);
    assert_int_equal(op.location.id, 7);
    assert_int_equal(op.location.physical, 50);
    rig_end(&rig);
}

static void holder_count(void *ctx, const struct ox_ledger *l)
{
    *(int64_t *)ctx += l->info.id;
}

static void test_router_closes_a_place_without_holders_only(void **state)
{
    (void)state;
    struct rig rig;
    struct fake second;
    struct ox_op op;
    int64_t sum = 0;
    rig_start(&rig);
    uint32_t two = rig_second(&rig, &second);
    second.place.body = &second_body;
    ox_router_attach(&rig.router, two, &second.place);
    second.ledger.info.id = 9;
    ox_ledger_attach(&second.ledger, &second.place, false);
    ox_op_init(&op, rig.loop, ox_sim_done, "detach");
    ox_router_detach(&rig.router, &op, two, OX_E_PLACE_CLOSED);
    assert_int_equal(ox_sim_wait(rig.sim, &op), OX_E_BUSY);
    assert_int_equal(ox_router_holders(&rig.router, two, holder_count, &sum), 1);
    assert_int_equal(sum, 9);
    ox_ledger_detach(&second.ledger);
    second.place.busy = 1; // a ledger is being made
    ox_op_init(&op, rig.loop, ox_sim_done, "detach");
    ox_router_detach(&rig.router, &op, two, OX_E_PLACE_CLOSED);
    assert_int_equal(ox_sim_wait(rig.sim, &op), OX_E_BUSY);
    assert_ptr_equal(ox_router_place(&rig.router, two), &second.place);
    second.place.busy = 0;
    ox_op_init(&op, rig.loop, ox_sim_done, "detach");
    ox_router_detach(&rig.router, &op, 0, OX_E_PLACE_CLOSED); // the active one
    assert_int_equal(ox_sim_wait(rig.sim, &op), OX_E_CONFLICT);
    ox_op_init(&op, rig.loop, ox_sim_done, "detach");
    ox_router_detach(&rig.router, &op, two, OX_E_PLACE_CLOSED);
    assert_int_equal(ox_sim_wait(rig.sim, &op), OX_OK);
    assert_int_equal(rig_open(&rig, two), OX_E_PLACE_CLOSED);
    ox_router_forget(&rig.router, two);
    uint32_t index;
    assert_int_equal(ox_router_find(&rig.router, "two", &index), OX_E_NO_PLACE);
    assert_int_equal(ox_router_reserve(&rig.router, "two", OX_E_PLACE_CLOSED), 2);
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_router_pushes_a_generator_that_lags),
        cmocka_unit_test(test_router_passes_over_taken_ids),
        cmocka_unit_test(test_router_knows_places_by_name_and_refuses_others),
        cmocka_unit_test(test_router_says_why_a_place_cannot_be_used),
        cmocka_unit_test(test_router_makes_ledgers_in_the_active_place),
        cmocka_unit_test(test_router_creates_end_where_they_began),
        cmocka_unit_test(test_router_copies_keep_their_logical_id),
        cmocka_unit_test(test_router_closes_a_place_without_holders_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
