// rig_test.h - a server on a real loopback without a broker behind it, and one client that sends bytes and keeps what comes back.
#ifndef ADMIN_RIG_TEST_H
#define ADMIN_RIG_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admin/request.h"
#include "io/posix/posix.h"

#define LIMIT_NS (20 * OX_SEC)

struct rig {
    struct ox_loop *loop;
    struct ox_shard shard;
    struct ox_metrics metrics;
    struct ox_admin_limits limits;
    struct ox_admin *admin;
    struct ox_stream *client;
    struct ox_op op;
    uint8_t space[4096];
    struct ox_str got;
    const char *want; // stops the loop when it has come
};

static inline void rig_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct rig *rig = (struct rig *)s->owner;
    *ret_data = rig->space;
    *ret_len = sizeof rig->space;
}

static inline void rig_filled(struct ox_stream *s, size_t n)
{
    struct rig *rig = (struct rig *)s->owner;
    ox_str_add(&rig->got, rig->space, n);
    if (rig->want && strstr(ox_str_get(&rig->got), rig->want))
        ox_posix_stop(rig->loop);
}

static inline void rig_writable(struct ox_stream *s)
{
    (void)s;
}

static inline void rig_closed(struct ox_stream *s, enum ox_err err)
{
    (void)err;
    struct rig *rig = (struct rig *)s->owner;
    rig->client = NULL;
    ox_posix_stop(rig->loop);
}

static const struct ox_stream_events rig_events = {
    .space = rig_space, .filled = rig_filled, .writable = rig_writable, .closed = rig_closed};

static inline void rig_overdue(struct ox_timer *t)
{
    ox_posix_stop(t->loop);
    fail_msg("the test waits for something that does not come");
}

static inline void rig_run(struct rig *rig)
{
    struct ox_timer limit;
    ox_timer_init(&limit, rig->loop, rig_overdue);
    ox_timer_start(&limit, LIMIT_NS);
    ox_posix_run(rig->loop);
    ox_timer_stop(&limit);
}

static inline void rig_connected(struct ox_op *op)
{
    struct rig *rig = CONTAINER_OF(op, struct rig, op);
    assert_int_equal(op->err, OX_OK);
    rig->client->owner = rig;
    rig->client->events = &rig_events;
    ox_posix_stop(rig->loop);
}

static inline void rig_connect(struct rig *rig)
{
    ox_op_init(&rig->op, rig->loop, rig_connected, "connect");
    ox_net_connect(ox_posix_net(rig->loop), &rig->op, "127.0.0.1", ox_admin_port(rig->admin), &rig->client);
    rig_run(rig);
}

static inline void rig_serve(struct rig *rig, struct ox_storage *storage)
{
    rig->shard.metrics = &rig->metrics;
    ox_metrics_init(&rig->metrics);
    struct ox_admin_config config = {
        .shard = &rig->shard, .storage = storage, .host = "127.0.0.1", .net = ox_posix_net(rig->loop), .limits = rig->limits};
    assert_int_equal(ox_admin_open(&config, &rig->admin), OX_OK);
}

static inline void rig_start(struct rig *rig)
{
    *rig = (struct rig){.loop = ox_posix_loop_new(NULL)};
    rig->shard.loop = rig->loop;
    rig_serve(rig, NULL);
    rig_connect(rig);
}

static inline void rig_end(struct rig *rig)
{
    rig->want = NULL;
    ox_admin_close(rig->admin);
    if (rig->client)
        ox_stream_abort(rig->client, OX_E_CANCELED);
    ox_posix_loop_free(rig->loop);
    ox_str_fini(&rig->got);
}

// Sends text and waits until `want` has come back.
static inline void rig_expect(struct rig *rig, const char *text, const char *want)
{
    struct ox_buf buf = ox_buf_static(text, strlen(text));
    rig->want = want;
    ox_str_truncate(&rig->got, 0);
    ox_stream_write(rig->client, &buf, 1);
    rig_run(rig);
    assert_non_null(strstr(ox_str_get(&rig->got), want));
}

#endif
