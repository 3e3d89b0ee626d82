// lmdb_test.c - the store in an LMDB file: conformance, persistence, batching, locks, full maps and damage.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "metastore/conformance.h"
#include "metastore/lmdb.h"
#include "metastore/lmdb_nodes.h"

struct lmdb_case {
    struct conformance c; // first
    char dir[32];
    uint64_t map_bytes;
};

static void opened(struct ox_op *op)
{
    (void)op;
}

static enum ox_err case_try(struct lmdb_case *l, bool readonly, struct ox_meta **ret)
{
    struct ox_op op = {0};
    struct ox_meta_lmdb_config config = {.dir = l->dir, .map_bytes = l->map_bytes, .readonly = readonly};
    ox_op_init(&op, &l->c.f.loop, opened, "open");
    ox_meta_lmdb_open(&l->c.f.loop, &op, &config, ret);
    fixture_run(&l->c.f);
    assert_false(ox_op_pending(&op));
    return op.err;
}

static struct ox_meta *case_open(struct conformance *c)
{
    struct ox_meta *meta;
    assert_int_equal(case_try(CONTAINER_OF(c, struct lmdb_case, c), false, &meta), OX_OK);
    return meta;
}

static void case_setup(struct conformance *c)
{
    struct lmdb_case *l = CONTAINER_OF(c, struct lmdb_case, c);
    strcpy(l->dir, "metastore-XXXXXX");
    assert_non_null(mkdtemp(l->dir));
    c->open = case_open;
}

static void case_teardown(struct conformance *c)
{
    struct lmdb_case *l = CONTAINER_OF(c, struct lmdb_case, c);
    const char *files[] = {"data.mdb", "lock", "lock.mdb"};
    for (size_t i = 0; i < OX_COUNT(files); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("%s/%s", l->dir, files[i]);
        unlink(path);
    }
    rmdir(l->dir);
}

static int lmdb_setup(void **state)
{
    struct lmdb_case *l = ox_malloc(sizeof *l);
    fixture_init(&l->c.f);
    case_setup(&l->c);
    l->c.meta = case_open(&l->c);
    *state = l;
    return 0;
}

static int lmdb_teardown(void **state)
{
    struct lmdb_case *l = *state;
    if (l->c.meta)
        assert_int_equal(fixture_close(&l->c.f, l->c.meta), OX_OK);
    case_teardown(&l->c);
    fixture_fini(&l->c.f);
    ox_free(l);
    return 0;
}

static void lmdb_reopen(struct lmdb_case *l)
{
    assert_int_equal(fixture_close(&l->c.f, l->c.meta), OX_OK);
    l->c.meta = case_open(&l->c);
}

static void test_lmdb_survives_reopening(void **state)
{
    struct lmdb_case *l = *state;
    struct fixture *f = &l->c.f;
    char name[601] = "/";
    memset(name + 1, 'x', 599);
    assert_int_equal(fixture_put(f, l->c.meta, "/a/b", "kept", OX_META_ABSENT, 0), OX_OK);
    assert_int_equal(fixture_put(f, l->c.meta, "/a/b", "newer", 0, 0), OX_OK);
    assert_int_equal(fixture_put(f, l->c.meta, name, "long", OX_META_ABSENT, 0), OX_OK);
    char *path;
    assert_int_equal(fixture_put_path(f, l->c.meta, "/s/n", OX_META_SEQUENTIAL, &path), OX_OK);
    ox_free(path);
    lmdb_reopen(l);
    expect_node(f, l->c.meta, "/a/b", "newer", 1);
    expect_node(f, l->c.meta, name, "long", 0);
    assert_int_equal(fixture_put_path(f, l->c.meta, "/s/n", OX_META_SEQUENTIAL, &path), OX_OK);
    assert_string_equal(path, "/s/n0000000001");
    ox_free(path);
    assert_int_equal(fixture_put(f, l->c.meta, "/a/c", "id is new", OX_META_ABSENT, 0), OX_OK);
    expect_children(f, l->c.meta, "/a", "b,c");
}

static void test_lmdb_counter_ends_with_its_node(void **state)
{
    struct lmdb_case *l = *state;
    char *path;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fixture_put_path(&l->c.f, l->c.meta, "/s/n", OX_META_SEQUENTIAL, &path), OX_OK);
        assert_string_equal(path, "/s/n0000000000");
        assert_int_equal(fixture_del(&l->c.f, l->c.meta, path, 0), OX_OK);
        assert_int_equal(fixture_del(&l->c.f, l->c.meta, "/s", 0), OX_OK);
        ox_free(path);
    }
}

static void test_lmdb_locks_its_directory(void **state)
{
    struct lmdb_case *l = *state;
    struct ox_meta *second;
    assert_int_equal(case_try(l, false, &second), OX_E_LOCKED);
    assert_int_equal(case_try(l, true, &second), OX_E_LOCKED);
    expect_node(&l->c.f, l->c.meta, "/", "", 0);
}

static void test_lmdb_readonly_changes_nothing(void **state)
{
    struct lmdb_case *l = *state;
    struct fixture *f = &l->c.f;
    assert_int_equal(fixture_put(f, l->c.meta, "/a", "x", OX_META_ABSENT, 0), OX_OK);
    assert_int_equal(fixture_close(f, l->c.meta), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *url = ox_asprintf("lmdb:%s?readonly", l->dir);
    assert_int_equal(fixture_open(f, url, &l->c.meta), OX_OK);
    expect_node(f, l->c.meta, "/a", "x", 0);
    assert_int_equal(fixture_put(f, l->c.meta, "/a", "y", 0, 0), OX_E_ACCESS);
    assert_int_equal(fixture_del(f, l->c.meta, "/a", 0), OX_E_ACCESS);
    expect_node(f, l->c.meta, "/a", "x", 0);
    assert_int_equal(fixture_close(f, l->c.meta), OX_OK);
    l->c.meta = NULL;
    struct ox_meta *none;
    assert_int_equal(fixture_open(f, "lmdb:no-such-folder?readonly", &none), OX_E_NOT_FOUND);
}

static void test_lmdb_url_makes_the_directory(void **state)
{
    struct lmdb_case *l = *state;
    struct ox_meta *meta;
    OX_CLEANUP(ox_free_ptr)
    char *dir = ox_asprintf("%s/deep/er", l->dir);
    OX_CLEANUP(ox_free_ptr)
    char *url = ox_asprintf("lmdb:%s", dir);
    assert_int_equal(fixture_open(&l->c.f, url, &meta), OX_OK);
    assert_int_equal(fixture_close(&l->c.f, meta), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *clean = ox_asprintf("rm -r %s/deep", l->dir);
    assert_int_equal(system(clean), 0);
    assert_int_equal(fixture_open(&l->c.f, "lmdb:", &meta), OX_E_INVALID);
    assert_int_equal(fixture_open(&l->c.f, "etcd:x", &meta), OX_E_INVALID);
}

static void test_lmdb_calls_share_a_job(void **state)
{
    struct lmdb_case *l = *state;
    struct ox_meta_put puts[50];
    uint64_t before = l->c.f.jobs;
    for (size_t i = 0; i < OX_COUNT(puts); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("/n%zu", i);
        puts[i] = (struct ox_meta_put){0};
        ox_op_init(&puts[i].op, &l->c.f.loop, opened, "put");
        ox_meta_put(l->c.meta, &puts[i], path, ox_buf_empty(), OX_META_ABSENT, 0);
    }
    fixture_run(&l->c.f);
    assert_int_equal(l->c.f.jobs - before, 1);
    for (size_t i = 0; i < OX_COUNT(puts); i++) {
        assert_int_equal(puts[i].op.err, OX_OK);
        ox_free(puts[i].path);
    }
}

static void test_lmdb_failed_multi_leaves_its_neighbours(void **state)
{
    struct lmdb_case *l = *state;
    struct ox_meta_put put = {0};
    struct ox_meta_step steps[] = {{.kind = OX_META_PUT, .path = "/m/a", .expected = OX_META_ABSENT},
                                   {.kind = OX_META_CHECK, .path = "/none", .expected = 0}};
    struct ox_meta_multi multi = {.steps = steps, .count = OX_COUNT(steps)};
    ox_op_init(&put.op, &l->c.f.loop, opened, "put");
    ox_op_init(&multi.op, &l->c.f.loop, opened, "multi");
    uint64_t before = l->c.f.jobs;
    ox_meta_put(l->c.meta, &put, "/p", ox_buf_empty(), OX_META_ABSENT, 0);
    ox_meta_multi(l->c.meta, &multi);
    fixture_run(&l->c.f);
    assert_int_equal(l->c.f.jobs - before, 1);
    assert_int_equal(put.op.err, OX_OK);
    assert_int_equal(multi.op.err, OX_E_BAD_VERSION);
    assert_int_equal(multi.failed, 1);
    expect_children(&l->c.f, l->c.meta, "/", "p");
    ox_free(put.path);
}

// Fills a small map; returns how many nodes went in.
static int fill(struct lmdb_case *l, char *value)
{
    for (int i = 0;; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("/full/%06d", i);
        enum ox_err err = fixture_put(&l->c.f, l->c.meta, path, value, OX_META_ABSENT, 0);
        if (err == OX_OK)
            continue;
        assert_int_equal(err, OX_E_METADATA_FULL);
        return i;
    }
}

static void test_lmdb_full_map_reads_and_deletes(void **state)
{
    struct lmdb_case *l = *state;
    assert_int_equal(fixture_close(&l->c.f, l->c.meta), OX_OK);
    l->map_bytes = 4u << 20;
    l->c.meta = case_open(&l->c);
    char *value = ox_malloc(20000);
    memset(value, 'v', 19999);
    int count = fill(l, value);
    assert_true(count > 50);
    expect_node(&l->c.f, l->c.meta, "/full/000000", value, 0);
    lmdb_reopen(l);
    for (int i = 0; i < count; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("/full/%06d", i);
        assert_int_equal(fixture_del(&l->c.f, l->c.meta, path, 0), OX_OK);
    }
    assert_true(fill(l, value) > count / 2);
    ox_free(value);
}

// Enough pages are free, but nowhere enough in a row: LMDB itself refuses, in the middle of a transaction.
static void test_lmdb_full_batch_does_what_it_can(void **state)
{
    struct lmdb_case *l = *state;
    struct fixture *f = &l->c.f;
    assert_int_equal(fixture_close(f, l->c.meta), OX_OK);
    l->map_bytes = 4u << 20;
    l->c.meta = case_open(&l->c);
    char value[3000], wide[1u << 20];
    memset(value, 'v', sizeof value);
    value[sizeof value - 1] = '\0';
    int count = fill(l, value);
    for (int i = 0; i < count; i += 2) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("/full/%06d", i);
        assert_int_equal(fixture_del(f, l->c.meta, path, 0), OX_OK);
    }
    struct ox_meta_put put = {0};
    struct ox_meta_del del = {0};
    struct ox_meta_put small = {0};
    ox_op_init(&put.op, &f->loop, opened, "put");
    ox_op_init(&del.op, &f->loop, opened, "delete");
    ox_op_init(&small.op, &f->loop, opened, "put");
    memset(wide, 'w', sizeof wide);
    ox_meta_put(l->c.meta, &put, "/wide", ox_buf_static(wide, sizeof wide), OX_META_ABSENT, 0);
    ox_meta_del(l->c.meta, &del, "/full/000001", 0);
    ox_meta_put(l->c.meta, &small, "/full/000001", ox_buf_static("s", 1), OX_META_ABSENT, 0);
    fixture_run(f);
    assert_int_equal(put.op.err, OX_E_METADATA_FULL);
    assert_int_equal(del.op.err, OX_OK);
    assert_int_equal(small.op.err, OX_OK);
    expect_none(f, l->c.meta, "/wide");
    expect_node(f, l->c.meta, "/full/000001", "s", 0);
    ox_free(small.path);
}

static void test_record_refuses_damage(void **state)
{
    (void)state;
    uint8_t bytes[OX_META_RECORD_HEADER + 9] = {0}, key_bytes[OX_META_KEY_BYTES_MAX];
    MDB_val key = {ox_meta_record_key(key_bytes, 1, "name", 4), key_bytes}, record = {sizeof bytes, bytes};
    struct ox_meta_node node;
    const char *name;
    size_t name_len;
    bytes[4] = 1;
    bytes[7] = 4;
    ox_put_be64(bytes + 8, 77);
    memcpy(bytes + OX_META_RECORD_HEADER, "longvalue", 9);
    ox_meta_record_seal(key, record);
    assert_int_equal(ox_meta_record_decode(key, record, &node, &name, &name_len), OX_OK);
    assert_int_equal(node.id, 77);
    assert_memory_equal(name, "long", name_len);
    assert_int_equal(node.value.len, 5);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 0x10;
        assert_int_equal(ox_meta_record_decode(key, record, &node, &name, &name_len), OX_E_CORRUPT);
        bytes[i] ^= 0x10;
    }
    for (record.mv_size = 0; record.mv_size < sizeof bytes; record.mv_size++)
        assert_int_equal(ox_meta_record_decode(key, record, &node, &name, &name_len), OX_E_CORRUPT);
    key_bytes[7] = 2;
    assert_int_equal(ox_meta_record_decode(key, record, &node, &name, &name_len), OX_E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lmdb_survives_reopening, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_counter_ends_with_its_node, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_locks_its_directory, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_readonly_changes_nothing, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_url_makes_the_directory, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_calls_share_a_job, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_failed_multi_leaves_its_neighbours, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_full_map_reads_and_deletes, lmdb_setup, lmdb_teardown),
        cmocka_unit_test_setup_teardown(test_lmdb_full_batch_does_what_it_can, lmdb_setup, lmdb_teardown),
        cmocka_unit_test(test_record_refuses_damage),
    };
    struct lmdb_case c = {0};
    int failed = conformance_run("lmdb conformance", &c.c, case_setup, case_teardown);
    return failed + cmocka_run_group_tests_name("lmdb", tests, NULL, NULL);
}
