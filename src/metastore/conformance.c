// conformance.c - what every store must do; each implementation's test runs this list against itself.
#include "metastore/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"

// What a test gets: the store and how to prepare it.
struct conformance_state {
    struct conformance *c;
    void (*setup)(struct conformance *c);
    void (*teardown)(struct conformance *c);
};

static struct conformance *of(void **state)
{
    return ((struct conformance_state *)*state)->c;
}

static enum ox_err put(struct conformance *c, const char *path, const char *value, int64_t expected)
{
    return fixture_put(&c->f, c->meta, path, value, expected, 0);
}

static void test_put_compares_versions(void **state)
{
    struct conformance *c = of(state);
    assert_int_equal(put(c, "/a", "0", 0), OX_E_BAD_VERSION);
    assert_int_equal(put(c, "/a", "0", OX_META_ABSENT), OX_OK);
    assert_int_equal(put(c, "/a", "x", OX_META_ABSENT), OX_E_BAD_VERSION);
    assert_int_equal(put(c, "/a", "x", 1), OX_E_BAD_VERSION);
    expect_node(&c->f, c->meta, "/a", "0", 0);
    assert_int_equal(put(c, "/a", "1", 0), OX_OK);
    assert_int_equal(put(c, "/a", "2", OX_META_ANY), OX_OK);
    expect_node(&c->f, c->meta, "/a", "2", 2);
    assert_int_equal(put(c, "/b", "", OX_META_ANY), OX_OK);
    expect_node(&c->f, c->meta, "/b", "", 0);
}

static void test_delete_compares_versions(void **state)
{
    struct conformance *c = of(state);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a", OX_META_ANY), OX_E_NOT_FOUND);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a", 3), OX_E_NOT_FOUND);
    assert_int_equal(put(c, "/a", "0", OX_META_ABSENT), OX_OK);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a", 1), OX_E_BAD_VERSION);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a", 0), OX_OK);
    expect_none(&c->f, c->meta, "/a");
    assert_int_equal(put(c, "/a", "again", OX_META_ABSENT), OX_OK);
    expect_node(&c->f, c->meta, "/a", "again", 0);
}

static void test_stat_tells_times(void **state)
{
    struct conformance *c = of(state);
    struct ox_meta_stat first, second;
    char *value;
    assert_int_equal(put(c, "/a", "0", OX_META_ABSENT), OX_OK);
    assert_int_equal(fixture_get(&c->f, c->meta, "/a", &value, &first), OX_OK);
    ox_free(value);
    c->f.now_ns += 5 * OX_SEC;
    assert_int_equal(put(c, "/a", "1", 0), OX_OK);
    assert_int_equal(fixture_get(&c->f, c->meta, "/a", &value, &second), OX_OK);
    ox_free(value);
    assert_int_equal(first.created_ms, first.modified_ms);
    assert_int_equal(second.created_ms, first.created_ms);
    assert_true(second.modified_ms >= first.modified_ms + 5000);
    assert_int_equal(second.ephemeral_session, 0);
}

static void test_parents_are_made_empty(void **state)
{
    struct conformance *c = of(state);
    assert_int_equal(put(c, "/a/b/c", "deep", OX_META_ABSENT), OX_OK);
    expect_node(&c->f, c->meta, "/a", "", 0);
    expect_node(&c->f, c->meta, "/a/b", "", 0);
    expect_node(&c->f, c->meta, "/a/b/c", "deep", 0);
    expect_children(&c->f, c->meta, "/", "a");
    expect_children(&c->f, c->meta, "/a", "b");
    expect_children(&c->f, c->meta, "/a/b/c", "");
}

static void test_children_are_sorted_bytewise(void **state)
{
    struct conformance *c = of(state);
    char *names;
    assert_int_equal(fixture_children(&c->f, c->meta, "/p", &names), OX_E_NOT_FOUND);
    const char *paths[] = {"/p/b", "/p/a", "/p/B", "/p/ab", "/p/\xc3\xa9", "/p/a/x", "/pp", "/p/z"};
    for (size_t i = 0; i < OX_COUNT(paths); i++)
        assert_int_equal(put(c, paths[i], "", OX_META_ANY), OX_OK);
    expect_children(&c->f, c->meta, "/p", "B,a,ab,b,z,\xc3\xa9");
    assert_int_equal(fixture_del(&c->f, c->meta, "/p/ab", OX_META_ANY), OX_OK);
    expect_children(&c->f, c->meta, "/p", "B,a,b,z,\xc3\xa9");
}

static void test_delete_keeps_nodes_with_children(void **state)
{
    struct conformance *c = of(state);
    assert_int_equal(put(c, "/a/b", "", OX_META_ABSENT), OX_OK);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a", OX_META_ANY), OX_E_NOT_EMPTY);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a/b", OX_META_ANY), OX_OK);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a", OX_META_ANY), OX_OK);
    expect_children(&c->f, c->meta, "/", "");
}

static void test_paths_are_checked(void **state)
{
    struct conformance *c = of(state);
    const char *bad[] = {"", "a", "//", "/a/", "/a//b", "/.", "/a/..", "/a/./b", "/\xff", "/a/\xc3"};
    char *value;
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        assert_int_equal(put(c, bad[i], "", OX_META_ANY), OX_E_INVALID);
        assert_int_equal(fixture_get(&c->f, c->meta, bad[i], &value, NULL), OX_E_INVALID);
    }
    assert_int_equal(put(c, "/", "", OX_META_ANY), OX_E_INVALID);
    assert_int_equal(fixture_del(&c->f, c->meta, "/", OX_META_ANY), OX_E_INVALID);
    assert_int_equal(fixture_del(&c->f, c->meta, "/a", OX_META_ABSENT), OX_E_INVALID);
    assert_int_equal(put(c, "/a", "", -3), OX_E_INVALID);
    assert_int_equal(put(c, "/.../..a", "", OX_META_ANY), OX_OK);
    expect_node(&c->f, c->meta, "/", "", 0);
}

static char *long_path(size_t len, char last)
{
    char *path = ox_malloc(len + 2);
    memset(path, 'n', len + 1);
    path[0] = '/';
    path[len] = last;
    return path;
}

static void test_odd_and_long_names(void **state)
{
    struct conformance *c = of(state);
    const char *odd[] = {"/a b", "/100%", "/a+b", "/%2F", "/\xe6\xbc\xa2\xe5\xad\x97", "/a,b;c=\"d\"", "/\x01\x7f"};
    for (size_t i = 0; i < OX_COUNT(odd); i++)
        assert_int_equal(put(c, odd[i], odd[i], OX_META_ABSENT), OX_OK);
    for (size_t i = 0; i < OX_COUNT(odd); i++)
        expect_node(&c->f, c->meta, odd[i], odd[i], 0);
    size_t lengths[] = {479, 480, 481, 500, 4095, OX_NODE_NAME_BYTES_MAX};
    for (size_t i = 0; i < OX_COUNT(lengths); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *x = long_path(lengths[i], 'x');
        OX_CLEANUP(ox_free_ptr)
        char *y = long_path(lengths[i], 'y');
        OX_CLEANUP(ox_free_ptr)
        char *child = ox_asprintf("%s%s", x, y);
        assert_int_equal(put(c, x, "x", OX_META_ABSENT), OX_OK);
        assert_int_equal(put(c, y, "y", OX_META_ABSENT), OX_OK);
        assert_int_equal(put(c, x, "xx", 0), OX_OK);
        assert_int_equal(put(c, child, "child", OX_META_ABSENT), OX_OK);
        expect_node(&c->f, c->meta, x, "xx", 1);
        expect_node(&c->f, c->meta, child, "child", 0);
        expect_children(&c->f, c->meta, x, y + 1);
        assert_int_equal(fixture_del(&c->f, c->meta, y, 0), OX_OK);
        expect_none(&c->f, c->meta, y);
    }
    OX_CLEANUP(ox_free_ptr)
    char *too_long = long_path(OX_NODE_NAME_BYTES_MAX + 1, 'x');
    assert_int_equal(put(c, too_long, "", OX_META_ANY), OX_E_INVALID);
}

static void test_long_and_short_names_sort_together(void **state)
{
    struct conformance *c = of(state);
    OX_CLEANUP(ox_free_ptr)
    char *name = long_path(600, 'n');
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/p%s", name);
    assert_int_equal(put(c, path, "", OX_META_ABSENT), OX_OK);
    assert_int_equal(put(c, "/p/z", "", OX_META_ABSENT), OX_OK);
    assert_int_equal(put(c, "/p/a", "", OX_META_ABSENT), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *wanted = ox_asprintf("a,%s,z", name + 1);
    expect_children(&c->f, c->meta, "/p", wanted);
}

static void test_big_values(void **state)
{
    struct conformance *c = of(state);
    char *big = ox_malloc(OX_NODE_VALUE_BYTES_MAX + 2);
    for (size_t i = 0; i <= OX_NODE_VALUE_BYTES_MAX; i++)
        big[i] = (char)('a' + i % 23);
    assert_int_equal(put(c, "/big", big, OX_META_ABSENT), OX_E_TOO_BIG);
    big[OX_NODE_VALUE_BYTES_MAX] = '\0';
    assert_int_equal(put(c, "/big", big, OX_META_ABSENT), OX_OK);
    assert_int_equal(put(c, "/big", big, 0), OX_OK);
    expect_node(&c->f, c->meta, "/big", big, 1);
    ox_free(big);
}

static void test_sequential_numbers_rise(void **state)
{
    struct conformance *c = of(state);
    const char *wanted[] = {"/q/n-0000000000", "/q/n-0000000001", "/q/n-0000000002"};
    for (size_t i = 0; i < OX_COUNT(wanted); i++) {
        char *path;
        assert_int_equal(fixture_put_path(&c->f, c->meta, "/q/n-", OX_META_SEQUENTIAL, &path), OX_OK);
        assert_string_equal(path, wanted[i]);
        ox_free(path);
        assert_int_equal(fixture_del(&c->f, c->meta, wanted[i], OX_META_ANY), OX_OK);
    }
    assert_int_equal(put(c, "/q/m-0000000003", "taken", OX_META_ABSENT), OX_OK);
    char *path;
    assert_int_equal(fixture_put_path(&c->f, c->meta, "/q/m-", OX_META_SEQUENTIAL, &path), OX_OK);
    assert_string_equal(path, "/q/m-0000000004");
    ox_free(path);
    assert_int_equal(fixture_put(&c->f, c->meta, "/q/m-", "", 1, OX_META_SEQUENTIAL), OX_E_INVALID);
}

static void test_ephemerals_end_with_their_session(void **state)
{
    struct conformance *c = of(state);
    struct ox_meta_stat stat;
    char *value;
    assert_int_equal(fixture_put(&c->f, c->meta, "/live/me", "x", OX_META_ABSENT, OX_META_EPHEMERAL), OX_OK);
    assert_int_equal(put(c, "/live/stay", "y", OX_META_ABSENT), OX_OK);
    assert_int_equal(fixture_get(&c->f, c->meta, "/live/me", &value, &stat), OX_OK);
    ox_free(value);
    assert_int_equal(stat.ephemeral_session, c->meta->session_id);
    assert_int_not_equal(stat.ephemeral_session, 0);
    assert_int_equal(put(c, "/live/me/child", "", OX_META_ANY), OX_E_INVALID);
    assert_int_equal(put(c, "/live/me", "changed", 0), OX_OK);
    uint64_t old = c->meta->session_id;
    assert_int_equal(fixture_close(&c->f, c->meta), OX_OK);
    c->meta = c->open(c);
    assert_int_not_equal(c->meta->session_id, old);
    expect_none(&c->f, c->meta, "/live/me");
    expect_node(&c->f, c->meta, "/live/stay", "y", 0);
}

static void test_ephemeral_and_sequential(void **state)
{
    struct conformance *c = of(state);
    char *path;
    assert_int_equal(fixture_put_path(&c->f, c->meta, "/e/n", OX_META_SEQUENTIAL | OX_META_EPHEMERAL, &path), OX_OK);
    assert_string_equal(path, "/e/n0000000000");
    assert_int_equal(fixture_del(&c->f, c->meta, path, 0), OX_OK);
    ox_free(path);
    assert_int_equal(fixture_close(&c->f, c->meta), OX_OK);
    c->meta = c->open(c);
    assert_int_equal(fixture_put_path(&c->f, c->meta, "/e/n", OX_META_SEQUENTIAL, &path), OX_OK);
    assert_string_equal(path, "/e/n0000000001");
    ox_free(path);
}

static void test_multi_does_all(void **state)
{
    struct conformance *c = of(state);
    size_t failed;
    assert_int_equal(put(c, "/old", "o", OX_META_ABSENT), OX_OK);
    struct ox_meta_step steps[] = {
        {.kind = OX_META_CHECK, .path = "/old", .expected = 0},
        {.kind = OX_META_CHECK, .path = "/none", .expected = OX_META_ABSENT},
        {.kind = OX_META_CHECK, .path = "/none", .expected = OX_META_ANY},
        {.kind = OX_META_PUT, .path = "/new/a", .value = ox_buf_static("1", 1), .expected = OX_META_ABSENT},
        {.kind = OX_META_PUT, .path = "/new/a", .value = ox_buf_static("2", 1), .expected = 0},
        {.kind = OX_META_PUT, .path = "/new/b", .value = ox_buf_static("3", 1), .expected = OX_META_ANY},
        {.kind = OX_META_DELETE, .path = "/old", .expected = 0},
    };
    assert_int_equal(fixture_multi(&c->f, c->meta, steps, OX_COUNT(steps), &failed), OX_OK);
    assert_int_equal(steps[4].ret_version, 1);
    expect_node(&c->f, c->meta, "/new/a", "2", 1);
    expect_node(&c->f, c->meta, "/new/b", "3", 0);
    expect_none(&c->f, c->meta, "/old");
    assert_int_equal(fixture_multi(&c->f, c->meta, NULL, 0, &failed), OX_OK);
}

static void test_multi_does_none(void **state)
{
    struct conformance *c = of(state);
    size_t failed;
    assert_int_equal(put(c, "/a", "before", OX_META_ABSENT), OX_OK);
    assert_int_equal(put(c, "/gone", "still", OX_META_ABSENT), OX_OK);
    struct ox_meta_step steps[] = {
        {.kind = OX_META_PUT, .path = "/a", .value = ox_buf_static("after", 5), .expected = 0},
        {.kind = OX_META_DELETE, .path = "/gone", .expected = OX_META_ANY},
        {.kind = OX_META_PUT, .path = "/x/y", .value = ox_buf_static("x", 1), .expected = OX_META_ABSENT},
        {.kind = OX_META_CHECK, .path = "/a", .expected = 7},
    };
    assert_int_equal(fixture_multi(&c->f, c->meta, steps, OX_COUNT(steps), &failed), OX_E_BAD_VERSION);
    assert_int_equal(failed, 3);
    steps[3] = (struct ox_meta_step){.kind = OX_META_DELETE, .path = "/none", .expected = OX_META_ANY};
    assert_int_equal(fixture_multi(&c->f, c->meta, steps, OX_COUNT(steps), &failed), OX_E_NOT_FOUND);
    assert_int_equal(failed, 3);
    steps[1] = (struct ox_meta_step){.kind = OX_META_PUT, .path = "bad", .expected = OX_META_ANY};
    assert_int_equal(fixture_multi(&c->f, c->meta, steps, OX_COUNT(steps), &failed), OX_E_INVALID);
    assert_int_equal(failed, 1);
    expect_node(&c->f, c->meta, "/a", "before", 0);
    expect_node(&c->f, c->meta, "/gone", "still", 0);
    expect_none(&c->f, c->meta, "/x");
    expect_children(&c->f, c->meta, "/", "a,gone");
}

// A watch that counts its events.
struct watcher {
    struct ox_meta_watch watch;
    int changed, deleted, children, lost;
    bool stop; // end the watch in the callback
};

static void watcher_fired(struct ox_meta_watch *w, enum ox_meta_event event)
{
    struct watcher *watcher = CONTAINER_OF(w, struct watcher, watch);
    watcher->changed += event == OX_META_CHANGED;
    watcher->deleted += event == OX_META_DELETED;
    watcher->children += event == OX_META_CHILDREN_CHANGED;
    watcher->lost += event == OX_META_LOST;
    if (watcher->stop)
        ox_meta_unwatch(w);
}

static void watcher_start(struct conformance *c, struct watcher *w, const char *path)
{
    *w = (struct watcher){.watch.fired = watcher_fired};
    ox_meta_watch(c->meta, &w->watch, path);
}

static void test_watches_fire(void **state)
{
    struct conformance *c = of(state);
    struct watcher parent, child, other;
    watcher_start(c, &parent, "/w");
    watcher_start(c, &child, "/w/c");
    watcher_start(c, &other, "/w2");
    assert_int_equal(put(c, "/w/c", "", OX_META_ABSENT), OX_OK);
    assert_true(parent.changed >= 1 && parent.children >= 1);
    assert_int_equal(child.changed, 1);
    assert_int_equal(put(c, "/w/c", "", 7), OX_E_BAD_VERSION);
    assert_int_equal(child.changed, 1);
    assert_int_equal(put(c, "/w/c", "", 0), OX_OK);
    assert_int_equal(child.changed, 2);
    int children = parent.children;
    assert_int_equal(fixture_del(&c->f, c->meta, "/w/c", OX_META_ANY), OX_OK);
    assert_int_equal(child.deleted, 1);
    assert_int_equal(parent.children, children + 1);
    ox_meta_unwatch(&child.watch);
    assert_int_equal(put(c, "/w/c", "", OX_META_ABSENT), OX_OK);
    assert_int_equal(child.changed, 2);
    assert_int_equal(other.changed + other.deleted + other.children + other.lost, 0);
    ox_meta_unwatch(&parent.watch);
    ox_meta_unwatch(&other.watch);
    ox_meta_unwatch(&other.watch);
}

static void test_watch_may_end_in_its_callback(void **state)
{
    struct conformance *c = of(state);
    struct watcher w[3];
    for (size_t i = 0; i < OX_COUNT(w); i++)
        watcher_start(c, &w[i], "/w");
    w[1].stop = true;
    assert_int_equal(put(c, "/w", "", OX_META_ANY), OX_OK);
    assert_int_equal(put(c, "/w", "", OX_META_ANY), OX_OK);
    assert_int_equal(w[0].changed, 2);
    assert_int_equal(w[1].changed, 1);
    assert_int_equal(w[2].changed, 2);
    ox_meta_unwatch(&w[0].watch);
    ox_meta_unwatch(&w[2].watch);
}

// A call that notes its place among the answers.
struct counted_put {
    struct ox_meta_put put;
    int *answers;
    int place;
};

static void counted_done(struct ox_op *op)
{
    struct ox_meta_put *put_op = CONTAINER_OF(op, struct ox_meta_put, op);
    struct counted_put *p = CONTAINER_OF(put_op, struct counted_put, put);
    p->place = (*p->answers)++;
    ox_free(put_op->path);
}

#define MANY 3000

static struct counted_put *start_many(struct conformance *c, int *answers)
{
    struct counted_put *puts = ox_calloc(MANY, sizeof *puts);
    for (int i = 0; i < MANY; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *value = ox_asprintf("%d", i);
        puts[i].answers = answers;
        ox_op_init(&puts[i].put.op, &c->f.loop, counted_done, "put");
        struct ox_buf buf = ox_buf_copy(value, strlen(value));
        ox_meta_put(c->meta, &puts[i].put, "/many", buf, i - 1, 0);
        ox_buf_unref(&buf);
    }
    return puts;
}

static void expect_many(struct counted_put *puts)
{
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(puts[i].put.op.err, OX_OK);
        assert_int_equal(puts[i].put.stat.version, i);
        assert_int_equal(puts[i].place, i);
    }
    ox_free(puts);
}

static void test_many_in_flight_keep_their_order(void **state)
{
    struct conformance *c = of(state);
    int answers = 0;
    struct counted_put *puts = start_many(c, &answers);
    assert_int_equal(answers, 0);
    fixture_run(&c->f);
    expect_many(puts);
    OX_CLEANUP(ox_free_ptr)
    char *last = ox_asprintf("%d", MANY - 1);
    expect_node(&c->f, c->meta, "/many", last, MANY - 1);
}

static void test_close_waits_for_what_is_in_flight(void **state)
{
    struct conformance *c = of(state);
    int answers = 0;
    struct watcher w;
    watcher_start(c, &w, "/many");
    struct counted_put *puts = start_many(c, &answers);
    assert_int_equal(fixture_close(&c->f, c->meta), OX_OK);
    expect_many(puts);
    assert_null(w.watch.meta);
    c->meta = c->open(c);
    OX_CLEANUP(ox_free_ptr)
    char *last = ox_asprintf("%d", MANY - 1);
    expect_node(&c->f, c->meta, "/many", last, MANY - 1);
}

static int test_setup(void **state)
{
    struct conformance_state *s = *state;
    fixture_init(&s->c->f);
    s->setup(s->c);
    s->c->meta = s->c->open(s->c);
    return 0;
}

static int test_teardown(void **state)
{
    struct conformance_state *s = *state;
    if (s->c->meta)
        assert_int_equal(fixture_close(&s->c->f, s->c->meta), OX_OK);
    s->teardown(s->c);
    fixture_fini(&s->c->f);
    return 0;
}

#define CONFORMANCE_TEST(fn)                       \
    {                                              \
#fn, fn, test_setup, test_teardown, &state \
    }

int conformance_run(const char *name, struct conformance *c, void (*setup)(struct conformance *c),
                    void (*teardown)(struct conformance *c))
{
    struct conformance_state state = {c, setup, teardown};
    const struct CMUnitTest tests[] = {
        CONFORMANCE_TEST(test_put_compares_versions),
        CONFORMANCE_TEST(test_delete_compares_versions),
        CONFORMANCE_TEST(test_stat_tells_times),
        CONFORMANCE_TEST(test_parents_are_made_empty),
        CONFORMANCE_TEST(test_children_are_sorted_bytewise),
        CONFORMANCE_TEST(test_delete_keeps_nodes_with_children),
        CONFORMANCE_TEST(test_paths_are_checked),
        CONFORMANCE_TEST(test_odd_and_long_names),
        CONFORMANCE_TEST(test_long_and_short_names_sort_together),
        CONFORMANCE_TEST(test_big_values),
        CONFORMANCE_TEST(test_sequential_numbers_rise),
        CONFORMANCE_TEST(test_ephemerals_end_with_their_session),
        CONFORMANCE_TEST(test_ephemeral_and_sequential),
        CONFORMANCE_TEST(test_multi_does_all),
        CONFORMANCE_TEST(test_multi_does_none),
        CONFORMANCE_TEST(test_watches_fire),
        CONFORMANCE_TEST(test_watch_may_end_in_its_callback),
        CONFORMANCE_TEST(test_many_in_flight_keep_their_order),
        CONFORMANCE_TEST(test_close_waits_for_what_is_in_flight),
    };
    return _cmocka_run_group_tests(name, tests, OX_COUNT(tests), NULL, NULL);
}
