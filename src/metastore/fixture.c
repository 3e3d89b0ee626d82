// fixture.c - for tests of stores: a loop with a clock set by hand, and calls that run it until they are answered.
#include "metastore/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

static uint64_t fixture_now(struct ox_loop *loop)
{
    return CONTAINER_OF(loop, struct fixture, loop)->now_ns;
}

static uint64_t fixture_wall(struct ox_loop *loop)
{
    return 1700000000000u + fixture_now(loop) / OX_MS;
}

static uint64_t fixture_random(struct ox_loop *loop)
{
    (void)loop;
    return 4;
}

static void fixture_submit(struct ox_loop *loop, struct ox_job *job)
{
    CONTAINER_OF(loop, struct fixture, loop)->jobs++;
    job->run(job);
    ox_op_finish(&job->op, OX_OK);
}

static const struct ox_loop_body fixture_body = {
    .now_ns = fixture_now, .wall_ms = fixture_wall, .random = fixture_random, .submit = fixture_submit};

void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.now_ns = OX_SEC};
    ox_loop_init(&f->loop, &fixture_body, NULL);
}

void fixture_fini(struct fixture *f)
{
    ox_loop_fini(&f->loop);
}

void fixture_run(struct fixture *f)
{
    for (;;) {
        uint64_t due = ox_loop_turn(&f->loop);
        if (due != UINT64_MAX)
            f->now_ns = OX_MAX(f->now_ns, due);
        else if (ox_list_empty(&f->loop.ready))
            return;
    }
}

static void fixture_done(struct ox_op *op)
{
    (void)op;
}

static enum ox_err fixture_wait(struct fixture *f, struct ox_op *op)
{
    fixture_run(f);
    assert_false(ox_op_pending(op));
    return op->err;
}

enum ox_err fixture_open(struct fixture *f, const char *url, struct ox_meta **ret)
{
    struct ox_op op = {0};
    ox_op_init(&op, &f->loop, fixture_done, "open");
    ox_meta_open(&f->loop, &op, url, ret);
    return fixture_wait(f, &op);
}

enum ox_err fixture_close(struct fixture *f, struct ox_meta *meta)
{
    struct ox_op op = {0};
    ox_op_init(&op, &f->loop, fixture_done, "close");
    ox_meta_close(meta, &op);
    return fixture_wait(f, &op);
}

enum ox_err fixture_put(struct fixture *f, struct ox_meta *meta, const char *path, const char *value, int64_t expected,
                        int flags)
{
    struct ox_meta_put put = {0};
    ox_op_init(&put.op, &f->loop, fixture_done, "put");
    ox_meta_put(meta, &put, path, ox_buf_static(value, strlen(value)), expected, flags);
    enum ox_err err = fixture_wait(f, &put.op);
    ox_free(put.path);
    return err;
}

enum ox_err fixture_put_path(struct fixture *f, struct ox_meta *meta, const char *path, int flags, char **ret_path)
{
    struct ox_meta_put put = {0};
    ox_op_init(&put.op, &f->loop, fixture_done, "put");
    ox_meta_put(meta, &put, path, ox_buf_empty(), OX_META_ABSENT, flags);
    enum ox_err err = fixture_wait(f, &put.op);
    *ret_path = put.path;
    return err;
}

enum ox_err fixture_del(struct fixture *f, struct ox_meta *meta, const char *path, int64_t expected)
{
    struct ox_meta_del del = {0};
    ox_op_init(&del.op, &f->loop, fixture_done, "delete");
    ox_meta_del(meta, &del, path, expected);
    return fixture_wait(f, &del.op);
}

enum ox_err fixture_get(struct fixture *f, struct ox_meta *meta, const char *path, char **ret_value,
                        struct ox_meta_stat *ret_stat)
{
    struct ox_meta_get get = {0};
    ox_op_init(&get.op, &f->loop, fixture_done, "get");
    ox_meta_get(meta, &get, path);
    enum ox_err err = fixture_wait(f, &get.op);
    if (err != OX_OK)
        return err;
    *ret_value = ox_strndup(get.value.len ? (const char *)get.value.data : "", get.value.len);
    if (ret_stat)
        *ret_stat = get.stat;
    ox_buf_unref(&get.value);
    return OX_OK;
}

enum ox_err fixture_children(struct fixture *f, struct ox_meta *meta, const char *path, char **ret_names)
{
    struct ox_meta_children children = {0};
    ox_op_init(&children.op, &f->loop, fixture_done, "children");
    ox_meta_children(meta, &children, path);
    enum ox_err err = fixture_wait(f, &children.op);
    if (err != OX_OK)
        return err;
    struct ox_str text = {0};
    for (size_t i = 0; i < children.count; i++)
        ox_str_addf(&text, "%s%s", i ? "," : "", children.names[i]);
    ox_meta_names_free(children.names, children.count);
    *ret_names = ox_str_take(&text);
    return OX_OK;
}

enum ox_err fixture_multi(struct fixture *f, struct ox_meta *meta, struct ox_meta_step *steps, size_t count, size_t *ret_failed)
{
    struct ox_meta_multi multi = {.steps = steps, .count = count};
    ox_op_init(&multi.op, &f->loop, fixture_done, "multi");
    ox_meta_multi(meta, &multi);
    enum ox_err err = fixture_wait(f, &multi.op);
    *ret_failed = multi.failed;
    return err;
}

void expect_node(struct fixture *f, struct ox_meta *meta, const char *path, const char *value, int64_t version)
{
    char *found;
    struct ox_meta_stat stat;
    assert_int_equal(fixture_get(f, meta, path, &found, &stat), OX_OK);
    assert_string_equal(found, value);
    assert_int_equal(stat.version, version);
    ox_free(found);
}

void expect_none(struct fixture *f, struct ox_meta *meta, const char *path)
{
    char *found;
    assert_int_equal(fixture_get(f, meta, path, &found, NULL), OX_E_NOT_FOUND);
}

void expect_children(struct fixture *f, struct ox_meta *meta, const char *path, const char *names)
{
    char *found;
    assert_int_equal(fixture_children(f, meta, path, &found), OX_OK);
    assert_string_equal(found, names);
    ox_free(found);
}
