// inspect_test.c - dumps of a folder that a metadata store and an embedded store have written.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "inspect/inspect.h"
#include "io/posix/posix.h"
#include "ledger/store/store.h"
#include "metastore/lmdb.h"

struct rig {
    struct ox_log log;
    struct ox_loop *loop;
    struct ox_str said; // log lines, not shown
    struct ox_str out;  // lines of the dump
    struct ox_str trouble;
    enum ox_err err;
    char dir[64];
};

static void rig_log(void *ctx, const char *line, unsigned len)
{
    ox_str_add(&((struct rig *)ctx)->said, line, len);
}

static uint64_t rig_wall(void *ctx)
{
    (void)ctx;
    return 0;
}

static void rig_done(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static void rig_wait(struct ox_op *op)
{
    while (ox_op_pending(op))
        ox_posix_run(op->loop);
    assert_int_equal(op->err, OX_OK);
}

static void rig_line(struct inspect *i, const char *text, size_t len)
{
    ox_str_add(&((struct rig *)i->owner)->out, text, len);
}

static void rig_ended(struct inspect *i, enum ox_err err)
{
    ((struct rig *)i->owner)->err = err;
    ox_posix_stop(i->loop);
}

// Runs one dump; its lines are in out, its sentences in trouble.
static enum ox_err rig_inspect(struct rig *r, struct inspect i)
{
    ox_str_truncate(&r->out, 0);
    ox_str_truncate(&r->trouble, 0);
    i.loop = r->loop;
    i.fs = ox_posix_fs(r->loop);
    i.dir = r->dir;
    i.owner = r;
    i.line = rig_line;
    i.ended = rig_ended;
    inspect_start(&i);
    ox_posix_run(r->loop);
    ox_str_adds(&r->trouble, ox_str_get(&i.trouble));
    inspect_fini(&i);
    return r->err;
}

static struct ox_meta *rig_meta(struct rig *r)
{
    struct ox_op op = {0};
    struct ox_meta *meta = NULL;
    OX_CLEANUP(ox_free_ptr)
    char *dir = ox_asprintf("%s/metadata", r->dir);
    struct ox_meta_lmdb_config config = {.dir = dir};
    ox_op_init(&op, r->loop, rig_done, "test");
    ox_meta_lmdb_open(r->loop, &op, &config, &meta);
    rig_wait(&op);
    return meta;
}

static void rig_meta_close(struct rig *r, struct ox_meta *meta)
{
    struct ox_op op = {0};
    ox_op_init(&op, r->loop, rig_done, "test");
    ox_meta_close(meta, &op);
    rig_wait(&op);
}

static void rig_put(struct rig *r, struct ox_meta *meta, const char *path, const char *value)
{
    struct ox_meta_put put = {0};
    ox_op_init(&put.op, r->loop, rig_done, "test");
    ox_meta_put(meta, &put, path, ox_buf_static(value, strlen(value)), OX_META_ANY, 0);
    rig_wait(&put.op);
    ox_free(put.path);
}

static struct ox_place *rig_place(struct rig *r)
{
    struct ox_op op = {0};
    struct ox_place *place = NULL;
    struct ox_store_config config;
    OX_CLEANUP(ox_free_ptr)
    char *dir = ox_asprintf("%s/store", r->dir);
    ox_store_config_init(&config, dir);
    config.segment_bytes = 1024 * 1024;
    config.reserve_bytes = 0;
    ox_op_init(&op, r->loop, rig_done, "test");
    ox_store_open(r->loop, ox_posix_fs(r->loop), &op, &config, &place);
    rig_wait(&op);
    return place;
}

static void rig_place_close(struct rig *r, struct ox_place *place)
{
    struct ox_op op = {0};
    ox_op_init(&op, r->loop, rig_done, "test");
    ox_place_close(place, &op);
    rig_wait(&op);
}

// Writes a ledger with entries "<word>0", "<word>1", ... and closes it if asked.
static void rig_ledger(struct rig *r, struct ox_place *place, int64_t id, const char *word, int entries, bool close)
{
    struct ox_ledger_create create = {0};
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "component", "a \"test\"");
    ox_op_init(&create.op, r->loop, rig_done, "test");
    ox_ledger_create(place, &create, id, &custom);
    rig_wait(&create.op);
    ox_kv_fini(&custom);
    for (int e = 0; e < entries; e++) {
        struct ox_append append = {.entry = e, .part_count = 1};
        OX_CLEANUP(ox_free_ptr)
        char *text = ox_asprintf("%s%d", word, e);
        append.parts[0] = ox_buf_copy(text, strlen(text));
        ox_op_init(&append.op, r->loop, rig_done, "test");
        ox_ledger_append(create.ledger, &append);
        rig_wait(&append.op);
        ox_buf_unref(&append.parts[0]);
    }
    struct ox_ledger_close end = {0};
    ox_op_init(&end.op, r->loop, rig_done, "test");
    if (close) {
        ox_ledger_close(create.ledger, &end);
        rig_wait(&end.op);
    }
    ox_ledger_release(create.ledger);
}

// Turns one bit of the first place where a segment file holds `text`; true if there was one.
static bool rig_damage_file(const char *path, const char *text)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        close(fd);
        return false;
    }
    char *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_true(map != MAP_FAILED);
    bool found = false;
    for (size_t at = 0; !found && at + strlen(text) <= (size_t)st.st_size; at++) {
        found = memcmp(map + at, text, strlen(text)) == 0;
        if (found)
            map[at] ^= 1;
    }
    munmap(map, (size_t)st.st_size);
    return found;
}

static void rig_damage(struct rig *r, const char *text)
{
    bool found = false;
    for (unsigned n = 1; n < 10 && !found; n++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("%s/store/seg-%016x", r->dir, n);
        found = access(path, F_OK) == 0 && rig_damage_file(path, text);
    }
    assert_true(found);
}

static int setup(void **state)
{
    struct rig *r = ox_malloc(sizeof *r);
    r->log = (struct ox_log){.level = OX_LOG_ERROR, .write = rig_log, .wall_ms = rig_wall, .ctx = r};
    snprintf(r->dir, sizeof r->dir, "inspect.XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    r->loop = ox_posix_loop_new(&r->log);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    ox_posix_loop_free(r->loop);
    OX_CLEANUP(ox_free_ptr)
    char *remove_it = ox_asprintf("rm -r %s", r->dir);
    int rc = system(remove_it); // NOLINT: a name of our own
    ox_str_fini(&r->said);
    ox_str_fini(&r->out);
    ox_str_fini(&r->trouble);
    ox_free(r);
    return rc;
}

static void test_inspect_nodes_parents_first_sorted(void **state)
{
    struct rig *r = *state;
    struct ox_meta *meta = rig_meta(r);
    rig_put(r, meta, "/b", "2");
    rig_put(r, meta, "/a/\"c", "1");
    rig_put(r, meta, "/a/\"c", "new");
    rig_meta_close(r, meta);
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_NODES}), OX_OK);
    assert_string_equal(ox_str_get(&r->out), "{\"path\":\"/a\",\"version\":0,\"hex\":\"\"}\n"
                                             "{\"path\":\"/a/\\\"c\",\"version\":1,\"hex\":\"6e6577\"}\n"
                                             "{\"path\":\"/b\",\"version\":0,\"hex\":\"32\"}\n");
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_NODES, .prefix = "/b/"}), OX_OK);
    assert_string_equal(ox_str_get(&r->out), "{\"path\":\"/b\",\"version\":0,\"hex\":\"32\"}\n");
}

static void test_inspect_missing_node_is_named(void **state)
{
    struct rig *r = *state;
    rig_meta_close(r, rig_meta(r));
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_NODES, .prefix = "/none"}), OX_E_NOT_FOUND);
    assert_non_null(strstr(ox_str_get(&r->trouble), "/none"));
}

static void test_inspect_used_folder_says_stop_the_broker(void **state)
{
    struct rig *r = *state;
    struct ox_meta *meta = rig_meta(r);
    struct ox_place *place = rig_place(r);
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_NODES}), OX_E_LOCKED);
    assert_non_null(strstr(ox_str_get(&r->trouble), r->dir));
    assert_non_null(strstr(ox_str_get(&r->trouble), "stop the broker first"));
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_LEDGERS}), OX_E_LOCKED);
    assert_non_null(strstr(ox_str_get(&r->trouble), "stop the broker first"));
    rig_meta_close(r, meta);
    rig_place_close(r, place);
}

static void test_inspect_makes_nothing_where_nothing_is(void **state)
{
    struct rig *r = *state;
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_NODES}), OX_E_NOT_FOUND);
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_LEDGERS}), OX_E_NOT_FOUND);
    OX_CLEANUP(ox_free_ptr)
    char *store = ox_asprintf("%s/store", r->dir);
    assert_int_equal(mkdir(store, 0700), 0);
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_LEDGERS}), OX_E_NOT_FOUND);
    assert_int_equal(rmdir(store), 0);
}

static void test_inspect_ledgers_of_both_states(void **state)
{
    struct rig *r = *state;
    struct ox_place *place = rig_place(r);
    rig_ledger(r, place, 7, "word", 2, true);
    rig_ledger(r, place, 9, "word", 1, false);
    rig_place_close(r, place);
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_LEDGERS}), OX_OK);
    assert_string_equal(ox_str_get(&r->out), "{\"ledger\":7,\"state\":\"closed\",\"last_entry\":1,\"length\":10,"
                                             "\"custom\":{\"component\":\"a \\\"test\\\"\"}}\n"
                                             "{\"ledger\":9,\"state\":\"open\",\"last_entry\":0,\"length\":5,"
                                             "\"custom\":{\"component\":\"a \\\"test\\\"\"}}\n");
}

static void test_inspect_missing_ledger_is_named_the_others_are_shown(void **state)
{
    struct rig *r = *state;
    struct ox_place *place = rig_place(r);
    rig_ledger(r, place, 7, "A", 2, true);
    rig_place_close(r, place);
    const int64_t ids[] = {8, 7};
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_ENTRIES, .ids = ids, .id_count = 2}), OX_E_NO_LEDGER);
    assert_string_equal(ox_str_get(&r->out),
                        "{\"ledger\":7,\"entry\":0,\"hex\":\"4130\"}\n{\"ledger\":7,\"entry\":1,\"hex\":\"4131\"}\n");
    assert_non_null(strstr(ox_str_get(&r->trouble), "ledger 8"));
}

static void test_inspect_damaged_entry_is_reported_and_passed(void **state)
{
    struct rig *r = *state;
    struct ox_place *place = rig_place(r);
    rig_ledger(r, place, 7, "some-bytes-", 3, true);
    rig_place_close(r, place);
    rig_damage(r, "some-bytes-1");
    const int64_t id = 7;
    assert_int_equal(rig_inspect(r, (struct inspect){.what = INSPECT_ENTRIES, .ids = &id, .id_count = 1}), OX_E_CORRUPT);
    const char *out = ox_str_get(&r->out);
    assert_non_null(strstr(out, "{\"ledger\":7,\"entry\":0,\"hex\":\"736f6d652d62797465732d30\"}\n"));
    assert_non_null(strstr(out, "{\"ledger\":7,\"entry\":1,\"error\":\"CORRUPT\",\"where\":\"ledger=7 entry=1 file="));
    assert_non_null(strstr(out, "offset="));
    assert_non_null(strstr(out, "{\"ledger\":7,\"entry\":2,\"hex\":"));
    assert_non_null(strstr(ox_str_get(&r->trouble), "entry=1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_inspect_nodes_parents_first_sorted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inspect_missing_node_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inspect_used_folder_says_stop_the_broker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inspect_makes_nothing_where_nothing_is, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inspect_ledgers_of_both_states, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inspect_missing_ledger_is_named_the_others_are_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inspect_damaged_entry_is_reported_and_passed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
