// posix_test.c - the engine on real files and LMDB: the suite for places, and a directory in use.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/posix/posix.h"
#include "ledger/conformance.h"
#include "ledger/store/store.h"

#define POLL_NS (50 * 1000)

struct rig {
    struct ox_loop *loop;
    struct ox_place *place;
    struct ox_op *awaited;
    struct ox_timer timer;
    enum ox_store_sync sync;
    char dir[64];
};

static void rig_poll(struct ox_timer *t)
{
    struct rig *rig = CONTAINER_OF(t, struct rig, timer);
    if (ox_op_pending(rig->awaited))
        ox_timer_start(t, POLL_NS);
    else
        ox_posix_stop(rig->loop);
}

static void rig_done(struct ox_op *op)
{
    (void)op;
}

static enum ox_err rig_wait(struct rig *rig, struct ox_op *op)
{
    rig->awaited = op;
    ox_timer_start(&rig->timer, 1);
    ox_posix_run(rig->loop);
    return op->err;
}

static enum ox_err rig_open(struct rig *rig, struct ox_place **ret)
{
    struct ox_op op;
    struct ox_store_config config;
    ox_store_config_init(&config, rig->dir);
    config.segment_bytes = 256 * 1024;
    config.reserve_bytes = 0;
    config.sync = rig->sync;
    ox_op_init(&op, rig->loop, rig_done, "open");
    ox_store_open(rig->loop, ox_posix_fs(rig->loop), &op, &config, ret);
    return rig_wait(rig, &op);
}

static void rig_close(struct rig *rig)
{
    struct ox_op op;
    ox_op_init(&op, rig->loop, rig_done, "close");
    ox_place_close(rig->place, &op);
    assert_int_equal(rig_wait(rig, &op), OX_OK);
}

static void rig_start(struct rig *rig)
{
    snprintf(rig->dir, sizeof rig->dir, "store-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    rig->loop = ox_posix_loop_new(NULL);
    ox_timer_init(&rig->timer, rig->loop, rig_poll);
    assert_int_equal(rig_open(rig, &rig->place), OX_OK);
}

static void rig_end(struct rig *rig)
{
    rig_close(rig);
    ox_posix_loop_free(rig->loop);
    DIR *dir = opendir(rig->dir);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", rig->dir, e->d_name);
        (void)!unlink(path);
    }
    closedir(dir);
    assert_int_equal(rmdir(rig->dir), 0);
}

static enum ox_err conformance_wait(struct ox_conformance *c, struct ox_op *op)
{
    return rig_wait(c->ctx, op);
}

static void conformance_reopen(struct ox_conformance *c)
{
    struct rig *rig = c->ctx;
    rig_close(rig);
    assert_int_equal(rig_open(rig, &rig->place), OX_OK);
    c->place = rig->place;
}

static void conformance_run(void **state)
{
    const struct ox_conformance_test *test = *state;
    // Thousands of syncs say nothing new; the first test and its reopens do them.
    struct rig rig = {.sync = test == ox_conformance_tests ? OX_STORE_SYNC : OX_STORE_SYNC_NONE};
    rig_start(&rig);
    struct ox_conformance c = {.place = rig.place, .wait = conformance_wait, .reopen = conformance_reopen, .ctx = &rig};
    test->run(&c);
    rig_end(&rig);
}

static void test_a_directory_in_use_is_refused(void **state)
{
    (void)state;
    struct rig rig = {0};
    struct ox_place *second = NULL;
    rig_start(&rig);
    assert_int_equal(rig_open(&rig, &second), OX_E_LOCKED);
    assert_null(second);
    rig_end(&rig);
}

int main(void)
{
    struct CMUnitTest tests[33] = {{0}};
    size_t n = 0;
    for (const struct ox_conformance_test *t = ox_conformance_tests; t->name; t++)
        tests[n++] =
            (struct CMUnitTest){.name = t->name, .test_func = conformance_run, .initial_state = (void *)(uintptr_t)t};
    tests[n++] =
        (struct CMUnitTest){.name = "a_directory_in_use_is_refused", .test_func = test_a_directory_in_use_is_refused};
    return _cmocka_run_group_tests("store on real files", tests, n, NULL, NULL);
}
