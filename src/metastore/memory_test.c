// memory_test.c - the store in memory: conformance, and the faults that the simulator asks for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "metastore/conformance.h"
#include "metastore/memory.h"

// The conformance suite's tree, which outlives a store; and a fault hook that gives every call the same fate.
struct memory_case {
    struct conformance c; // first
    struct ox_meta_memory_tree *tree;
};

static struct ox_meta *case_open(struct conformance *c)
{
    return ox_meta_memory_new(&c->f.loop, CONTAINER_OF(c, struct memory_case, c)->tree, NULL);
}

static void case_setup(struct conformance *c)
{
    CONTAINER_OF(c, struct memory_case, c)->tree = ox_meta_memory_tree_new();
    c->open = case_open;
}

static void case_teardown(struct conformance *c)
{
    ox_meta_memory_tree_free(CONTAINER_OF(c, struct memory_case, c)->tree);
}

struct faulty {
    struct fixture f;
    struct ox_meta_memory_tree *tree;
    struct ox_meta_memory_faults hook;
    struct ox_meta_fault fate;
    struct ox_meta *meta;
    struct ox_meta_listener listener;
    enum ox_meta_session told;
};

static void faulty_choose(struct ox_meta_memory_faults *hook, bool write, const char *path, struct ox_meta_fault *fault)
{
    assert_non_null(path);
    (void)write;
    *fault = CONTAINER_OF(hook, struct faulty, hook)->fate;
}

static void faulty_told(struct ox_meta_listener *l, enum ox_meta_session state)
{
    CONTAINER_OF(l, struct faulty, listener)->told = state;
}

static int faulty_setup(void **state)
{
    struct faulty *f = ox_malloc(sizeof *f);
    fixture_init(&f->f);
    f->tree = ox_meta_memory_tree_new();
    f->hook.choose = faulty_choose;
    f->meta = ox_meta_memory_new(&f->f.loop, f->tree, &f->hook);
    f->listener.session = faulty_told;
    ox_meta_listen(f->meta, &f->listener);
    *state = f;
    return 0;
}

static int faulty_teardown(void **state)
{
    struct faulty *f = *state;
    if (f->meta) {
        ox_meta_unlisten(f->meta, &f->listener);
        assert_int_equal(fixture_close(&f->f, f->meta), OX_OK);
    }
    ox_meta_memory_tree_free(f->tree);
    fixture_fini(&f->f);
    ox_free(f);
    return 0;
}

static enum ox_err faulty_put(struct faulty *f, const char *path, enum ox_meta_outcome outcome)
{
    f->fate.outcome = outcome;
    enum ox_err err = fixture_put(&f->f, f->meta, path, "v", OX_META_ANY, 0);
    f->fate.outcome = OX_META_DO;
    return err;
}

static void test_faults_choose_effect_and_answer(void **state)
{
    struct faulty *f = *state;
    assert_int_equal(faulty_put(f, "/before", OX_META_FAIL_BEFORE), OX_E_DISCONNECTED);
    assert_int_equal(faulty_put(f, "/after", OX_META_FAIL_AFTER), OX_E_UNKNOWN_OUTCOME);
    assert_int_equal(faulty_put(f, "/unknown", OX_META_FAIL_UNKNOWN), OX_E_UNKNOWN_OUTCOME);
    expect_children(&f->f, f->meta, "/", "after");
    f->fate.outcome = OX_META_FAIL_AFTER;
    char *value;
    assert_int_equal(fixture_get(&f->f, f->meta, "/after", &value, NULL), OX_E_DISCONNECTED);
    f->fate.outcome = OX_META_DO;
}

static void test_delays_are_kept(void **state)
{
    struct faulty *f = *state;
    f->fate = (struct ox_meta_fault){.before_ns = 30 * OX_MS, .after_ns = 20 * OX_MS};
    uint64_t start = f->f.now_ns;
    assert_int_equal(faulty_put(f, "/a", OX_META_DO), OX_OK);
    assert_int_equal(f->f.now_ns - start, 50 * OX_MS);
}

static void noted(struct ox_op *op)
{
    ox_free(CONTAINER_OF(op, struct ox_meta_put, op)->path);
}

static void start_put(struct faulty *f, struct ox_meta_put *put, const char *path)
{
    *put = (struct ox_meta_put){0};
    ox_op_init(&put->op, &f->f.loop, noted, "put");
    ox_meta_put(f->meta, put, path, ox_buf_empty(), OX_META_ABSENT, 0);
}

// Two puts on their way; the first one has taken effect but is not answered.
static void start_two(struct faulty *f, struct ox_meta_put *first, struct ox_meta_put *second)
{
    f->fate = (struct ox_meta_fault){.before_ns = OX_MS, .after_ns = OX_SEC};
    start_put(f, first, "/first");
    f->fate.before_ns = 100 * OX_MS;
    start_put(f, second, "/second");
    ox_loop_turn(&f->f.loop);
    f->f.now_ns += OX_MS;
    ox_loop_turn(&f->f.loop);
    f->fate = (struct ox_meta_fault){0};
}

static void test_crash_keeps_what_happened(void **state)
{
    struct faulty *f = *state;
    struct ox_meta_put first, second;
    assert_int_equal(fixture_put(&f->f, f->meta, "/mine", "", OX_META_ANY, OX_META_EPHEMERAL), OX_OK);
    uint64_t session = f->meta->session_id;
    start_two(f, &first, &second);
    f->f.loop.dead = true;
    ox_meta_memory_crash(f->meta);
    fixture_run(&f->f);
    assert_int_equal(first.op.err, OX_E_SHUTDOWN);
    assert_int_equal(second.op.err, OX_E_SHUTDOWN);
    assert_int_equal(faulty_put(f, "/late", OX_META_DO), OX_E_SHUTDOWN);
    ox_meta_unlisten(f->meta, &f->listener);
    assert_int_equal(fixture_close(&f->f, f->meta), OX_OK);
    f->f.loop.dead = false;
    f->meta = ox_meta_memory_new(&f->f.loop, f->tree, NULL);
    expect_children(&f->f, f->meta, "/", "first,mine");
    ox_meta_memory_expire(f->tree, session);
    expect_children(&f->f, f->meta, "/", "first");
}

static void test_dead_loop_answers_by_itself(void **state)
{
    struct faulty *f = *state;
    struct ox_meta_put first, second;
    start_two(f, &first, &second);
    f->f.loop.dead = true;
    fixture_run(&f->f);
    assert_int_equal(first.op.err, OX_E_SHUTDOWN);
    assert_int_equal(second.op.err, OX_E_SHUTDOWN);
    ox_meta_unlisten(f->meta, &f->listener);
    assert_int_equal(fixture_close(&f->f, f->meta), OX_OK);
    f->meta = NULL;
}

struct lost_watch {
    struct ox_meta_watch watch;
    int lost, others;
};

static void lost_fired(struct ox_meta_watch *w, enum ox_meta_event event)
{
    struct lost_watch *l = CONTAINER_OF(w, struct lost_watch, watch);
    *(event == OX_META_LOST ? &l->lost : &l->others) += 1;
}

static void test_disconnect_leaves_outcomes_open(void **state)
{
    struct faulty *f = *state;
    struct ox_meta_put first, second;
    struct lost_watch w = {.watch.fired = lost_fired};
    ox_meta_watch(f->meta, &w.watch, "/first");
    start_two(f, &first, &second);
    ox_meta_memory_disconnect(f->meta);
    fixture_run(&f->f);
    assert_int_equal(f->told, OX_META_DISCONNECTED);
    assert_int_equal(first.op.err, OX_E_UNKNOWN_OUTCOME);
    assert_int_equal(second.op.err, OX_E_UNKNOWN_OUTCOME);
    assert_int_equal(faulty_put(f, "/x", OX_META_DO), OX_E_DISCONNECTED);
    uint64_t session = f->meta->session_id;
    ox_meta_memory_reconnect(f->meta);
    assert_int_equal(f->told, OX_META_CONNECTED);
    assert_int_equal(w.lost, 1);
    assert_int_equal(w.others, 0);
    assert_int_equal(f->meta->session_id, session);
    expect_children(&f->f, f->meta, "/", "first");
    ox_meta_unwatch(&w.watch);
}

static void test_expiry_removes_ephemerals_and_tells(void **state)
{
    struct faulty *f = *state;
    assert_int_equal(fixture_put(&f->f, f->meta, "/e", "", OX_META_ANY, OX_META_EPHEMERAL), OX_OK);
    struct ox_meta *other = ox_meta_memory_new(&f->f.loop, f->tree, NULL);
    struct lost_watch w = {.watch.fired = lost_fired};
    ox_meta_watch(other, &w.watch, "/e");
    uint64_t session = f->meta->session_id;
    ox_meta_memory_expire(f->tree, session);
    fixture_run(&f->f);
    assert_int_equal(w.others, 1);
    assert_int_equal(f->told, OX_META_EXPIRED);
    assert_int_equal(faulty_put(f, "/x", OX_META_DO), OX_E_SESSION_EXPIRED);
    expect_none(&f->f, other, "/e");
    ox_meta_memory_reconnect(f->meta);
    assert_int_not_equal(f->meta->session_id, session);
    assert_int_equal(faulty_put(f, "/x", OX_META_DO), OX_OK);
    assert_int_equal(fixture_close(&f->f, other), OX_OK);
}

static void test_memory_url_opens(void **state)
{
    (void)state;
    struct fixture f;
    struct ox_meta *meta;
    fixture_init(&f);
    assert_int_equal(fixture_open(&f, "memory:", &meta), OX_OK);
    assert_int_equal(fixture_put(&f, meta, "/a/b", "x", OX_META_ABSENT, 0), OX_OK);
    expect_node(&f, meta, "/a/b", "x", 0);
    assert_int_equal(fixture_close(&f, meta), OX_OK);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_faults_choose_effect_and_answer, faulty_setup, faulty_teardown),
        cmocka_unit_test_setup_teardown(test_delays_are_kept, faulty_setup, faulty_teardown),
        cmocka_unit_test_setup_teardown(test_crash_keeps_what_happened, faulty_setup, faulty_teardown),
        cmocka_unit_test_setup_teardown(test_dead_loop_answers_by_itself, faulty_setup, faulty_teardown),
        cmocka_unit_test_setup_teardown(test_disconnect_leaves_outcomes_open, faulty_setup, faulty_teardown),
        cmocka_unit_test_setup_teardown(test_expiry_removes_ephemerals_and_tells, faulty_setup, faulty_teardown),
        cmocka_unit_test(test_memory_url_opens),
    };
    struct memory_case c = {0};
    int failed = conformance_run("memory conformance", &c.c, case_setup, case_teardown);
    return failed + cmocka_run_group_tests_name("memory faults", tests, NULL, NULL);
}
