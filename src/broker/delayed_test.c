// delayed_test.c - what is not due stays, what is comes once and in order, against a plain model.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "broker/delayed.h"

static struct ox_pos at(int64_t entry)
{
    return (struct ox_pos){7, entry};
}

static void test_delayed_nothing_before_its_time(void **state)
{
    (void)state;
    struct ox_delayed d = {0};
    struct ox_delayed_item got[4];
    assert_true(ox_delayed_first(&d) == UINT64_MAX);
    assert_int_equal(ox_delayed_take(&d, UINT64_MAX, got, 4), 0);
    assert_true(ox_delayed_add(&d, at(1), 5000, 9));
    assert_true(ox_delayed_add(&d, at(2), 3000, 9));
    assert_int_equal(ox_delayed_first(&d), 3000);
    assert_int_equal(ox_delayed_take(&d, 2999, got, 4), 0);
    assert_int_equal(ox_delayed_take(&d, 3000, got, 4), 1);
    assert_int_equal(got[0].pos.entry, 2);
    assert_int_equal(got[0].hash, 9);
    assert_int_equal(ox_delayed_take(&d, 4999, got, 4), 0);
    assert_int_equal(ox_delayed_take(&d, 9000, got, 4), 1);
    assert_int_equal(d.count, 0);
    ox_delayed_fini(&d);
}

static void test_delayed_position_is_remembered_once(void **state)
{
    (void)state;
    struct ox_delayed d = {0};
    struct ox_delayed_item got[4];
    assert_true(ox_delayed_add(&d, at(1), 100, 9));
    assert_true(ox_delayed_add(&d, at(1), 50, 9));
    assert_int_equal(d.count, 1);
    assert_int_equal(ox_delayed_first(&d), 100);
    assert_true(ox_delayed_has(&d, at(1)));
    assert_int_equal(ox_delayed_take(&d, 100, got, 4), 1);
    assert_false(ox_delayed_has(&d, at(1)));
    ox_delayed_fini(&d);
}

static void test_delayed_one_time_comes_in_order_of_the_log(void **state)
{
    (void)state;
    struct ox_delayed d = {0};
    struct ox_delayed_item got[100];
    for (int64_t i = 0; i < 100; i++)
        assert_true(ox_delayed_add(&d, at(i * 37 % 100), 1, 9));
    assert_int_equal(ox_delayed_take(&d, 1, got, 60), 60);
    assert_int_equal(ox_delayed_take(&d, 1, got + 60, 60), 40);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(got[i].pos.entry, i);
    ox_delayed_fini(&d);
}

static void test_delayed_forgets_what_the_mark_passed(void **state)
{
    (void)state;
    struct ox_delayed d = {0};
    struct ox_delayed_item got[100];
    for (int64_t i = 0; i < 100; i++)
        assert_true(ox_delayed_add(&d, at(i), (uint64_t)(200 - i), 9));
    ox_delayed_forget(&d, at(59));
    assert_int_equal(d.count, 40);
    assert_false(ox_delayed_has(&d, at(59)));
    assert_true(ox_delayed_has(&d, at(60)));
    assert_int_equal(ox_delayed_take(&d, 1000, got, 100), 40);
    for (int64_t i = 0; i < 40; i++)
        assert_int_equal(got[i].pos.entry, 99 - i);
    assert_true(ox_delayed_add(&d, at(3), 1, 9));
    ox_delayed_forget(&d, at(3));
    assert_int_equal(d.count, 0);
    ox_delayed_clear(&d);
}

static void test_delayed_is_bounded(void **state)
{
    (void)state;
    struct ox_delayed d = {0};
    struct ox_delayed_item got;
    for (int64_t i = 0; i < OX_DELAYED_MAX; i++)
        assert_true(ox_delayed_add(&d, at(i), (uint64_t)i, 9));
    assert_false(ox_delayed_add(&d, at(OX_DELAYED_MAX), 1, 9));
    assert_true(ox_delayed_add(&d, at(5), 1, 9));
    assert_int_equal(ox_delayed_take(&d, 0, &got, 1), 1);
    assert_true(ox_delayed_add(&d, at(OX_DELAYED_MAX), 1, 9));
    ox_delayed_fini(&d);
}

// Due times of 500 positions, 0: not there.
#define MODEL 500

static void model_take(struct ox_delayed *d, uint64_t *due, uint64_t now)
{
    struct ox_delayed_item got[8];
    uint64_t last = 0;
    size_t n;
    while ((n = ox_delayed_take(d, now, got, OX_COUNT(got))) > 0)
        for (size_t i = 0; i < n; i++) {
            assert_in_range(due[got[i].pos.entry], last, now);
            last = due[got[i].pos.entry];
            due[got[i].pos.entry] = 0;
        }
    for (size_t i = 0; i < MODEL; i++)
        assert_true(due[i] == 0 || due[i] > now);
}

static void test_delayed_random_against_a_model(void **state)
{
    (void)state;
    struct ox_random r;
    struct ox_delayed d = {0};
    uint64_t due[MODEL] = {0};
    ox_random_seed(&r, 11);
    for (uint64_t now = 1; now < 20000; now++) {
        size_t i = ox_random_below(&r, MODEL);
        uint64_t when = now + 1 + ox_random_below(&r, 300);
        assert_true(ox_delayed_add(&d, at((int64_t)i), when, 9));
        due[i] = due[i] ? due[i] : when;
        if (ox_random_below(&r, 10) == 0)
            model_take(&d, due, now);
        size_t left = 0;
        for (size_t k = 0; k < MODEL; k++) {
            left += due[k] != 0;
            assert_true(ox_delayed_has(&d, at((int64_t)k)) == (due[k] != 0));
        }
        assert_int_equal(left, d.count);
    }
    ox_delayed_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delayed_nothing_before_its_time),
        cmocka_unit_test(test_delayed_position_is_remembered_once),
        cmocka_unit_test(test_delayed_one_time_comes_in_order_of_the_log),
        cmocka_unit_test(test_delayed_forgets_what_the_mark_passed),
        cmocka_unit_test(test_delayed_is_bounded),
        cmocka_unit_test(test_delayed_random_against_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
