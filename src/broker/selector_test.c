// selector_test.c - keys are split evenly, move little, come back, and belong to one consumer; ranges never overlap.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "broker/consumer.h"
#include "broker/draining.h"
#include "broker/key_hash.h"

#define POINTS 100

static const struct ox_key_shared any = {0};

static struct ox_consumer *consumers_new(size_t n)
{
    struct ox_consumer *c = ox_calloc(n, sizeof *c);
    for (size_t i = 0; i < n; i++)
        c[i].name = ox_asprintf("consumer-%zu", i);
    return c;
}

static void consumers_free(struct ox_consumer *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ox_free(c[i].name);
    ox_free(c);
}

static void owners(const struct ox_selector *s, struct ox_consumer **ret)
{
    for (uint32_t h = 0; h < OX_KEY_HASHES; h++)
        ret[h] = ox_selector_find(s, h);
}

static uint32_t share(struct ox_consumer *const *owner, const struct ox_consumer *c)
{
    uint32_t n = 0;
    for (uint32_t h = 0; h < OX_KEY_HASHES; h++)
        n += owner[h] == c;
    return n;
}

static void test_selector_auto_split_is_even(void **state)
{
    (void)state;
    static struct ox_consumer *owner[OX_KEY_HASHES];
    struct ox_consumer *c = consumers_new(10);
    struct ox_selector *s = ox_selector_new(OX_KEY_AUTO_SPLIT, POINTS);
    assert_null(ox_selector_find(s, 77));
    for (size_t i = 0; i < 10; i++)
        ox_selector_add(s, &c[i], &any);
    owners(s, owner);
    for (size_t i = 0; i < 10; i++)
        assert_in_range(share(owner, &c[i]), OX_KEY_HASHES / 20, OX_KEY_HASHES / 5);
    ox_selector_free(s);
    consumers_free(c, 10);
}

static void test_selector_join_and_leave_move_only_what_they_must(void **state)
{
    (void)state;
    static struct ox_consumer *before[OX_KEY_HASHES], *after[OX_KEY_HASHES], *again[OX_KEY_HASHES];
    struct ox_consumer *c = consumers_new(5);
    struct ox_selector *s = ox_selector_new(OX_KEY_AUTO_SPLIT, POINTS);
    for (size_t i = 0; i < 4; i++)
        ox_selector_add(s, &c[i], &any);
    owners(s, before);
    ox_selector_add(s, &c[4], &any);
    owners(s, after);
    for (uint32_t h = 0; h < OX_KEY_HASHES; h++)
        assert_true(after[h] == before[h] || after[h] == &c[4]);
    ox_selector_remove(s, &c[4]);
    owners(s, again);
    assert_memory_equal(before, again, sizeof before);
    ox_selector_remove(s, &c[1]);
    owners(s, after);
    for (uint32_t h = 0; h < OX_KEY_HASHES; h++)
        assert_true(before[h] == &c[1] ? after[h] != &c[1] : after[h] == before[h]);
    ox_selector_free(s);
    consumers_free(c, 5);
}

static void test_selector_does_not_depend_on_who_came_first(void **state)
{
    (void)state;
    static struct ox_consumer *forth[OX_KEY_HASHES], *back[OX_KEY_HASHES];
    struct ox_consumer *c = consumers_new(6);
    struct ox_selector *s = ox_selector_new(OX_KEY_AUTO_SPLIT, POINTS), *t = ox_selector_new(OX_KEY_AUTO_SPLIT, POINTS);
    for (size_t i = 0; i < 6; i++) {
        ox_selector_add(s, &c[i], &any);
        ox_selector_add(t, &c[5 - i], &any);
    }
    owners(s, forth);
    owners(t, back);
    assert_memory_equal(forth, back, sizeof forth);
    ox_selector_free(s);
    ox_selector_free(t);
    consumers_free(c, 6);
}

static void test_selector_namesakes_share(void **state)
{
    (void)state;
    static struct ox_consumer *owner[OX_KEY_HASHES];
    struct ox_consumer c[3] = {{.name = "same"}, {.name = "same"}, {.name = "same"}};
    struct ox_selector *s = ox_selector_new(OX_KEY_AUTO_SPLIT, POINTS);
    for (size_t i = 0; i < 3; i++)
        ox_selector_add(s, &c[i], &any);
    owners(s, owner);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(share(owner, &c[i]), OX_KEY_HASHES / 6, OX_KEY_HASHES * 2 / 3);
    ox_selector_remove(s, &c[0]);
    ox_selector_add(s, &c[0], &any);
    ox_selector_remove(s, &c[2]);
    owners(s, owner);
    for (size_t i = 0; i < 2; i++)
        assert_in_range(share(owner, &c[i]), OX_KEY_HASHES / 4, OX_KEY_HASHES * 3 / 4);
    ox_selector_free(s);
}

// ---- sticky ranges

static enum ox_err check(struct ox_selector *s, const int32_t *ranges, size_t pairs, struct ox_consumer **holder)
{
    struct ox_key_shared want = {.mode = OX_KEY_STICKY, .ranges = ranges, .range_count = pairs};
    *holder = NULL;
    return ox_selector_check(s, &want, holder);
}

static void add(struct ox_selector *s, struct ox_consumer *c, const int32_t *ranges, size_t pairs)
{
    struct ox_key_shared want = {.mode = OX_KEY_STICKY, .ranges = ranges, .range_count = pairs};
    ox_selector_add(s, c, &want);
}

static void test_selector_sticky_ranges_are_inclusive(void **state)
{
    (void)state;
    struct ox_consumer *c = consumers_new(2);
    struct ox_selector *s = ox_selector_new(OX_KEY_STICKY, POINTS);
    add(s, &c[0], (int32_t[]){30, 40, 0, 10}, 2);
    add(s, &c[1], (int32_t[]){50000, 65536}, 1);
    static const uint32_t mine[] = {0, 10, 30, 40}, others[] = {50000, 65535}, nobodys[] = {11, 29, 41, 49999};
    for (size_t i = 0; i < OX_COUNT(mine); i++)
        assert_ptr_equal(ox_selector_find(s, mine[i]), &c[0]);
    for (size_t i = 0; i < OX_COUNT(others); i++)
        assert_ptr_equal(ox_selector_find(s, others[i]), &c[1]);
    for (size_t i = 0; i < OX_COUNT(nobodys); i++)
        assert_null(ox_selector_find(s, nobodys[i]));
    ox_selector_remove(s, &c[0]);
    assert_null(ox_selector_find(s, 35));
    assert_ptr_equal(ox_selector_find(s, 50001), &c[1]);
    ox_selector_free(s);
    consumers_free(c, 2);
}

static void test_selector_sticky_overlap_names_the_holder(void **state)
{
    (void)state;
    struct ox_consumer *c = consumers_new(2), *holder;
    struct ox_selector *s = ox_selector_new(OX_KEY_STICKY, POINTS);
    add(s, &c[0], (int32_t[]){100, 200}, 1);
    add(s, &c[1], (int32_t[]){300, 400}, 1);
    static const int32_t bad[][2] = {{200, 250}, {50, 100}, {120, 130}, {0, 65535}, {150, 150}};
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        assert_int_equal(check(s, bad[i], 1, &holder), OX_E_CONSUMER_ASSIGN);
        assert_ptr_equal(holder, &c[0]);
    }
    assert_int_equal(check(s, (int32_t[]){201, 299, 350, 360}, 2, &holder), OX_E_CONSUMER_ASSIGN);
    assert_ptr_equal(holder, &c[1]);
    assert_int_equal(check(s, (int32_t[]){201, 299, 0, 99, 401, 65535}, 3, &holder), OX_OK);
    ox_selector_free(s);
    consumers_free(c, 2);
}

static void test_selector_sticky_refuses_bad_ranges(void **state)
{
    (void)state;
    struct ox_consumer *holder;
    struct ox_selector *s = ox_selector_new(OX_KEY_STICKY, POINTS);
    static const int32_t bad[][4] = {{5, 4, 10, 20}, {-1, 5, 10, 20}, {0, 65537, 10, 20},
                                     {1, 5, 5, 9},   {1, 9, 3, 4},    {0, INT32_MIN, 1, 2}};
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        assert_int_equal(check(s, bad[i], 2, &holder), OX_E_CONSUMER_ASSIGN);
        assert_null(holder);
    }
    assert_int_equal(check(s, NULL, 0, &holder), OX_E_CONSUMER_ASSIGN);
    ox_selector_free(s);
}

// ---- ranges

struct ranges_seen {
    struct ox_consumer *owner[OX_KEY_HASHES], *of;
    uint32_t next;
};

static void see_range(void *ctx, uint32_t from, uint32_t to)
{
    struct ranges_seen *seen = ctx;
    assert_true(from >= seen->next && from <= to && to < OX_KEY_HASHES);
    seen->next = to + 1;
    for (uint32_t h = from; h <= to; h++) {
        assert_null(seen->owner[h]);
        seen->owner[h] = seen->of;
    }
}

static void test_selector_ranges_are_what_consumers_get(void **state)
{
    (void)state;
    static const int32_t mine[] = {5, 9, 100, 65536};
    struct ranges_seen *seen = ox_calloc(1, sizeof *seen);
    struct ox_consumer *c = consumers_new(4);
    struct ox_selector *s = ox_selector_new(OX_KEY_AUTO_SPLIT, POINTS);
    for (size_t i = 0; i < 4; i++)
        ox_selector_add(s, &c[i], &any);
    for (size_t i = 0; i < 4; i++) {
        seen->of = &c[i];
        seen->next = 0;
        ox_selector_ranges(s, &c[i], see_range, seen);
    }
    for (uint32_t h = 0; h < OX_KEY_HASHES; h++)
        assert_ptr_equal(seen->owner[h], ox_selector_find(s, h));
    ox_selector_free(s);
    *seen = (struct ranges_seen){.of = &c[0]};
    s = ox_selector_new(OX_KEY_STICKY, POINTS);
    ox_selector_add(s, &c[0], &(struct ox_key_shared){.mode = OX_KEY_STICKY, .ranges = mine, .range_count = 2});
    ox_selector_ranges(s, &c[0], see_range, seen);
    for (uint32_t h = 0; h < OX_KEY_HASHES; h++)
        assert_ptr_equal(seen->owner[h], ox_selector_find(s, h));
    ox_selector_free(s);
    consumers_free(c, 4);
    ox_free(seen);
}

// ---- draining

static void test_draining_hash_waits_for_its_former_consumer(void **state)
{
    (void)state;
    struct ox_consumer a, b;
    struct ox_draining *d = ox_draining_new();
    assert_true(ox_draining_allows(d, &a, 5));
    ox_draining_sent(d, &a, 5);
    ox_draining_sent(d, &a, 5);
    assert_true(ox_draining_allows(d, &a, 5));
    assert_false(ox_draining_allows(d, &b, 5));
    assert_true(ox_draining_allows(d, &b, 6));
    assert_false(ox_draining_done(d, &a, 5));
    assert_false(ox_draining_allows(d, &b, 5));
    assert_true(ox_draining_done(d, &a, 5));
    assert_true(ox_draining_allows(d, &b, 5));
    ox_draining_sent(d, &b, 5);
    assert_false(ox_draining_done(d, &b, 5)); // nobody was refused
    ox_draining_sent(d, &b, 9);
    ox_draining_free(d);
    ox_draining_free(NULL);
}

static void see_held(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries, uint32_t refused)
{
    uint32_t *seen = (uint32_t *)ctx;
    seen[0] += 1;
    seen[1] += hash;
    seen[2] += entries;
    seen[3] += refused;
    assert_non_null(holder);
}

static void test_draining_tells_who_holds_what_and_how_often_others_were_refused(void **state)
{
    (void)state;
    struct ox_consumer a, b;
    uint32_t seen[4] = {0};
    struct ox_draining *d = ox_draining_new();
    ox_draining_sent(d, &a, 5);
    ox_draining_sent(d, &a, 5);
    ox_draining_sent(d, &b, 7);
    assert_false(ox_draining_allows(d, &b, 5));
    assert_false(ox_draining_allows(d, &b, 5));
    ox_draining_each(d, see_held, seen);
    assert_int_equal(seen[0], 2);
    assert_int_equal(seen[1], 12);
    assert_int_equal(seen[2], 3);
    assert_int_equal(seen[3], 2);
    ox_draining_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selector_auto_split_is_even),
        cmocka_unit_test(test_selector_join_and_leave_move_only_what_they_must),
        cmocka_unit_test(test_selector_does_not_depend_on_who_came_first),
        cmocka_unit_test(test_selector_namesakes_share),
        cmocka_unit_test(test_selector_sticky_ranges_are_inclusive),
        cmocka_unit_test(test_selector_sticky_overlap_names_the_holder),
        cmocka_unit_test(test_selector_sticky_refuses_bad_ranges),
        cmocka_unit_test(test_selector_ranges_are_what_consumers_get),
        cmocka_unit_test(test_draining_hash_waits_for_its_former_consumer),
        cmocka_unit_test(test_draining_tells_who_holds_what_and_how_often_others_were_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
