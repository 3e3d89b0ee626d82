// admin_test.c - the HTTP server over a real loopback: bad bytes in requests, several requests at once, a drain.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admin/request.h"
#include "io/posix/posix.h"

#define LIMIT_NS (20 * OX_SEC)

// A server without a broker behind it, and one client that sends bytes and keeps what comes back.
struct rig {
    struct ox_loop *loop;
    struct ox_shard shard;
    struct ox_admin *admin;
    struct ox_stream *client;
    struct ox_op op;
    uint8_t space[4096];
    struct ox_str got;
    const char *want; // stops the loop when it has come
};

static void *rig_watch(void *ctx, int fd, void (*readable)(void *arg), void *arg)
{
    return ox_posix_watch_new((struct ox_loop *)ctx, fd, readable, arg);
}

static void rig_unwatch(void *handle)
{
    ox_posix_watch_free((struct ox_posix_watch *)handle);
}

static void rig_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct rig *rig = (struct rig *)s->owner;
    *ret_data = rig->space;
    *ret_len = sizeof rig->space;
}

static void rig_filled(struct ox_stream *s, size_t n)
{
    struct rig *rig = (struct rig *)s->owner;
    ox_str_add(&rig->got, rig->space, n);
    if (rig->want && strstr(ox_str_get(&rig->got), rig->want))
        ox_posix_stop(rig->loop);
}

static void rig_writable(struct ox_stream *s)
{
    (void)s;
}

static void rig_closed(struct ox_stream *s, enum ox_err err)
{
    (void)err;
    struct rig *rig = (struct rig *)s->owner;
    rig->client = NULL;
    ox_posix_stop(rig->loop);
}

static const struct ox_stream_events rig_events = {
    .space = rig_space, .filled = rig_filled, .writable = rig_writable, .closed = rig_closed};

static void rig_overdue(struct ox_timer *t)
{
    ox_posix_stop(t->loop);
    fail_msg("the test waits for something that does not come");
}

static void rig_run(struct rig *rig)
{
    struct ox_timer limit;
    ox_timer_init(&limit, rig->loop, rig_overdue);
    ox_timer_start(&limit, LIMIT_NS);
    ox_posix_run(rig->loop);
    ox_timer_stop(&limit);
}

static void rig_connected(struct ox_op *op)
{
    struct rig *rig = CONTAINER_OF(op, struct rig, op);
    assert_int_equal(op->err, OX_OK);
    rig->client->owner = rig;
    rig->client->events = &rig_events;
    ox_posix_stop(rig->loop);
}

static void rig_start(struct rig *rig)
{
    *rig = (struct rig){.loop = ox_posix_loop_new(NULL)};
    rig->shard.loop = rig->loop;
    struct ox_admin_config config = {.shard = &rig->shard, .host = "127.0.0.1", .poll = {rig_watch, rig_unwatch, rig->loop}};
    assert_int_equal(ox_admin_open(&config, &rig->admin), OX_OK);
    ox_op_init(&rig->op, rig->loop, rig_connected, "connect");
    ox_net_connect(ox_posix_net(rig->loop), &rig->op, "127.0.0.1", ox_admin_port(rig->admin), &rig->client);
    rig_run(rig);
}

static void rig_end(struct rig *rig)
{
    rig->want = NULL;
    ox_admin_close(rig->admin);
    if (rig->client)
        ox_stream_abort(rig->client, OX_E_CANCELED);
    ox_posix_loop_free(rig->loop);
    ox_str_fini(&rig->got);
}

// Sends text and waits until `want` has come back.
static void rig_expect(struct rig *rig, const char *text, const char *want)
{
    struct ox_buf buf = ox_buf_static(text, strlen(text));
    rig->want = want;
    ox_str_truncate(&rig->got, 0);
    ox_stream_write(rig->client, &buf, 1);
    rig_run(rig);
    assert_non_null(strstr(ox_str_get(&rig->got), want));
}

static void test_bytes_that_are_no_utf8_get_an_answer(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig_expect(&rig, "GET /admin/v2/persistent/%ff/x HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"namespace ?/x: the name is not valid\"}");
    rig_expect(&rig, "PUT /admin/v2/persistent/a/b/%C3%28 HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"Topic name is not valid: persistent://a/b/?(\"}");
    rig_expect(&rig, "\xc3\x28 /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "is not a method of this resource\"}");
    rig_expect(&rig, "GET /admin/v2/persistent/a/b/c%00d/stats HTTP/1.1\r\nHost: a\r\n\r\n",
               "is not properly percent-encoded\"}");
    rig_end(&rig);
}

static void test_an_answer_that_is_no_utf8_is_an_error(void **state)
{
    (void)state;
    struct rig rig;
    char cluster[] = "\xff";
    rig_start(&rig);
    rig.shard.config.cluster = cluster;
    rig_expect(&rig, "GET /admin/v2/clusters HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"the answer holds text that is not valid UTF-8\"}");
    rig_end(&rig);
}

static void test_several_requests_at_once_are_answered_in_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig.shard.config.cluster = "here";
    rig_expect(&rig,
               "HEAD /admin/v2/clusters HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
               "DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET /admin/v2/clusters HTTP/1.1\r\nHost: a\r\n\r\n",
               "[\"here\"]");
    const char *ok = strstr(ox_str_get(&rig.got), " 200 "), *missing = strstr(ox_str_get(&rig.got), " 404 "),
               *refused = strstr(ox_str_get(&rig.got), " 405 ");
    assert_true(ok && missing && refused && ok < missing && missing < refused);
    rig_end(&rig);
}

static void rig_drained(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static void test_drain_refuses_new_requests(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    ox_op_init(&rig.op, rig.loop, rig_drained, "drain");
    ox_admin_drain(rig.admin, &rig.op);
    rig_run(&rig);
    rig_expect(&rig, "GET /admin/v2/brokers/version HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"the broker is shutting down\"}");
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_that_are_no_utf8_get_an_answer),
        cmocka_unit_test(test_an_answer_that_is_no_utf8_is_an_error),
        cmocka_unit_test(test_several_requests_at_once_are_answered_in_order),
        cmocka_unit_test(test_drain_refuses_new_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
