// net_test.c - streams over a real loopback.
#include "io/posix/rig_test.h"

#include <string.h>
#include <sys/resource.h>

struct peer {
    struct ox_stream *stream; // NULL once closed
    struct ox_loop *loop;
    uint8_t space[4096];
    size_t received, want; // stops the loop when received reaches want
    uint8_t next;          // expected value of the next byte
    bool hold, echo;       // hold: gives no space
    bool abort_in_space, pause_in_space, close_in_space;
    int writable, closed;
    enum ox_err err;
};

static void peer_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct peer *p = s->owner;
    *ret_data = p->space;
    *ret_len = p->hold ? 0 : sizeof(p->space);
    if (p->abort_in_space)
        ox_stream_abort(s, OX_E_LIMIT);
    if (p->close_in_space)
        ox_stream_close(s);
    if (p->pause_in_space) {
        p->pause_in_space = false;
        ox_stream_pause(s);
        ox_posix_stop(p->loop);
    }
}

static void peer_filled(struct ox_stream *s, size_t n)
{
    struct peer *p = s->owner;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(p->space[i], p->next++);
    p->received += n;
    if (p->echo) {
        struct ox_buf buf = ox_buf_copy(p->space, n);
        ox_stream_write(s, &buf, 1);
        ox_buf_unref(&buf);
    }
    if (p->want && p->received >= p->want)
        ox_posix_stop(p->loop);
}

static void peer_writable(struct ox_stream *s)
{
    struct peer *p = s->owner;
    p->writable++;
    ox_posix_stop(p->loop);
}

static void peer_closed(struct ox_stream *s, enum ox_err err)
{
    struct peer *p = s->owner;
    p->closed++;
    p->err = err;
    p->stream = NULL;
    ox_posix_stop(p->loop);
}

static const struct ox_stream_events peer_events = {
    .space = peer_space, .filled = peer_filled, .writable = peer_writable, .closed = peer_closed};

static void peer_adopt(struct peer *p, struct ox_stream *s)
{
    p->stream = s;
    p->loop = s->loop;
    s->owner = p;
    s->events = &peer_events;
}

static void server_accept(struct ox_listener *l, struct ox_stream *give_s)
{
    peer_adopt(l->owner, give_s);
}

struct pair {
    struct ox_loop *loop;
    struct ox_listener *listener;
    struct ox_op op;
    struct ox_stream *connected;
    struct peer client, server;
};

static void pair_connected(struct ox_op *op)
{
    struct pair *p = CONTAINER_OF(op, struct pair, op);
    if (!op->err)
        peer_adopt(&p->client, p->connected);
    ox_posix_stop(op->loop);
}

static enum ox_err pair_connect(struct pair *p, const char *host, uint16_t port)
{
    ox_op_init(&p->op, p->loop, pair_connected, "connect");
    ox_net_connect(ox_posix_net(p->loop), &p->op, host, port, &p->connected);
    return rig_wait(&p->op);
}

static void pair_start(struct pair *p)
{
    *p = (struct pair){.loop = ox_posix_loop_new(NULL)};
    assert_int_equal(ox_net_listen(ox_posix_net(p->loop), "127.0.0.1", 0, &p->listener), OX_OK);
    p->listener->accept = server_accept;
    p->listener->owner = &p->server;
    assert_int_equal(pair_connect(p, "127.0.0.1", p->listener->port), OX_OK);
    struct ox_buf hello = ox_buf_static("\0", 1);
    p->server.want = 1;
    ox_stream_write(p->client.stream, &hello, 1);
    rig_run(p->loop);
    p->server.want = 0;
}

static void pair_end(struct pair *p)
{
    if (p->client.stream)
        ox_stream_abort(p->client.stream, OX_E_SHUTDOWN);
    if (p->server.stream)
        ox_stream_abort(p->server.stream, OX_E_SHUTDOWN);
    while (p->client.stream || p->server.stream)
        rig_run(p->loop);
    ox_net_unlisten(p->listener);
    ox_posix_loop_free(p->loop);
}

// Writes n bytes that count up from `first`, in slices of any size.
static void write_counting(struct ox_stream *s, size_t n, uint8_t first)
{
    uint8_t *data;
    struct ox_buf all = ox_buf_new(n, &data);
    for (size_t i = 0; i < n; i++)
        data[i] = first++;
    for (size_t at = 0, step = 1; at < n; at += step, step = step * 7 % 30011 + 1) {
        step = OX_MIN(step, n - at);
        struct ox_buf part = ox_buf_sub(all, at, step);
        ox_stream_write(s, &part, 1);
        ox_buf_unref(&part);
    }
    ox_buf_unref(&all);
}

static void test_posix_stream_echoes_megabytes_in_order(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    assert_memory_equal(p.server.stream->peer, "127.0.0.1:", 10);
    p.server.echo = true;
    p.client.next = 1;
    p.client.want = 8000000;
    write_counting(p.client.stream, 8000000, 1);
    assert_true(p.client.stream->above_high);
    while (p.client.received < p.client.want)
        rig_run(p.loop);
    assert_int_equal(p.client.writable, 1);
    assert_int_equal(p.client.stream->queued_bytes, 0);
    pair_end(&p);
}

static void test_posix_stream_without_space_holds_the_peer_back(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    p.server.hold = true;
    write_counting(p.client.stream, 30000000, 1);
    struct ox_op tick; // a connect elsewhere takes a few turns: enough for the kernel to take what it can
    for (int i = 0; i < 20; i++) {
        struct ox_stream *none;
        ox_op_init(&tick, p.loop, rig_op_done, "tick");
        ox_net_connect(ox_posix_net(p.loop), &tick, "127.0.0.1", 1, &none);
        assert_int_equal(rig_wait(&tick), OX_E_CONNECTION_REFUSED);
    }
    assert_int_equal(p.server.received, 1);
    assert_true(p.client.stream->queued_bytes > p.client.stream->low_bytes);
    p.server.hold = false;
    p.server.want = 30000001;
    ox_stream_resume(p.server.stream);
    while (p.server.received < p.server.want)
        rig_run(p.loop);
    pair_end(&p);
}

static void test_posix_stream_close_delivers_everything_first(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    write_counting(p.server.stream, 1, 0); // the server has unread bytes below: they must not turn its close into a reset
    ox_stream_pause(p.server.stream);
    write_counting(p.client.stream, 5000, 1);
    p.client.want = 1;
    rig_run(p.loop);
    write_counting(p.server.stream, 2000000, 1);
    ox_stream_close(p.server.stream);
    while (!p.client.closed || !p.server.closed)
        rig_run(p.loop);
    assert_int_equal(p.client.received, 2000001);
    assert_int_equal(p.client.err, OX_E_END_OF_FILE);
    assert_int_equal(p.server.err, OX_OK);
    pair_end(&p);
}

static void test_posix_stream_tells_a_paused_owner_that_its_peer_has_ended(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    ox_stream_pause(p.server.stream);
    write_counting(p.client.stream, 5, 1);
    assert_false(ox_stream_peer_ended(p.server.stream));
    ox_stream_close(p.client.stream);
    while (!p.client.closed)
        rig_run(p.loop);
    assert_true(ox_stream_peer_ended(p.server.stream));
    assert_int_equal(p.server.closed, 0);
    p.server.next = 1;
    ox_stream_resume(p.server.stream);
    while (!p.server.closed)
        rig_run(p.loop);
    assert_int_equal(p.server.received, 6);
    pair_end(&p);
}

static void test_posix_stream_abort_reports_its_error_once(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    write_counting(p.client.stream, 5000000, 1);
    ox_stream_abort(p.client.stream, OX_E_LIMIT);
    assert_int_equal(p.client.closed, 0);
    while (!p.client.closed || !p.server.closed)
        rig_run(p.loop);
    assert_int_equal(p.client.closed, 1);
    assert_int_equal(p.client.err, OX_E_LIMIT);
    pair_end(&p);
}

static void test_posix_listen_names_what_is_wrong(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    struct ox_net *net = ox_posix_net(p.loop);
    struct ox_listener *second;
    assert_int_equal(ox_net_listen(net, "127.0.0.1", p.listener->port, &second), OX_E_ADDRESS_IN_USE);
    assert_int_equal(ox_net_listen(net, "203.0.113.1", 0, &second), OX_E_INVALID);
    assert_int_equal(ox_net_listen(net, "", 0, &second), OX_E_INVALID);
    pair_end(&p);
}

static void test_posix_connect_refused_and_by_name(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    struct pair q = {.loop = p.loop};
    assert_int_equal(pair_connect(&q, "127.0.0.1", 1), OX_E_CONNECTION_REFUSED);
    p.listener->owner = &q.server;
    assert_int_equal(pair_connect(&q, "localhost", p.listener->port), OX_OK);
    while (!q.server.stream) {
        struct ox_buf hello = ox_buf_static("\0", 1);
        q.server.want = 1;
        ox_stream_write(q.client.stream, &hello, 1);
        rig_run(p.loop);
    }
    ox_stream_close(q.client.stream);
    while (!q.client.closed || !q.server.closed)
        rig_run(p.loop);
    assert_int_equal(q.server.err, OX_E_END_OF_FILE);
    pair_end(&p);
}

static void test_posix_connect_cancel_ends_it(void **state)
{
    (void)state;
    struct pair p;
    pair_start(&p);
    struct pair q = {.loop = p.loop};
    p.listener->owner = &q.server;
    ox_op_init(&q.op, q.loop, pair_connected, "connect");
    ox_net_connect(ox_posix_net(p.loop), &q.op, "127.0.0.1", p.listener->port, &q.connected);
    ox_op_cancel(&q.op);
    assert_int_equal(rig_wait(&q.op), OX_E_CANCELED);
    while (q.server.stream && !q.server.closed)
        rig_run(p.loop);
    pair_end(&p);
}

static void test_posix_stream_may_be_paused_closed_or_aborted_when_asked_for_space(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct pair p;
        pair_start(&p);
        p.server.pause_in_space = true;
        write_counting(p.client.stream, 5000, 1);
        rig_run(p.loop);
        assert_int_equal(p.server.received, 1);
        p.server.abort_in_space = how == 0;
        p.server.close_in_space = how == 1;
        ox_stream_resume(p.server.stream);
        while (!p.client.closed || !p.server.closed)
            rig_run(p.loop);
        assert_int_equal(p.server.err, how == 0 ? OX_E_LIMIT : OX_OK);
        assert_int_equal(p.server.received, 1);
        pair_end(&p);
    }
}

#define CROWD 30

struct crowd {
    struct ox_loop *loop;
    struct pair clients[CROWD];
    struct peer servers[CROWD];
    size_t accepted;
};

static void crowd_accept(struct ox_listener *l, struct ox_stream *give_s)
{
    struct crowd *c = l->owner;
    peer_adopt(&c->servers[c->accepted++], give_s);
    ox_posix_stop(c->loop);
}

static size_t crowd_refused(const struct crowd *c)
{
    size_t n = 0;
    for (size_t i = 0; i < CROWD; i++)
        n += c->clients[i].client.closed > 0;
    return n;
}

// However many connect, files can be opened. The last test: it lowers the limit for good.
static void test_posix_listener_leaves_descriptors_for_files(void **state)
{
    (void)state;
    struct rlimit limit = {64, 64};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct crowd c = {.loop = ox_posix_loop_new(NULL)};
    struct ox_listener *listener;
    assert_int_equal(ox_net_listen(ox_posix_net(c.loop), "127.0.0.1", 0, &listener), OX_OK);
    listener->accept = crowd_accept;
    listener->owner = &c;
    size_t refused = 0;
    for (size_t i = 0; i < CROWD; i++) {
        c.clients[i].loop = c.loop;
        assert_int_equal(pair_connect(&c.clients[i], "127.0.0.1", listener->port), OX_OK);
    }
    while ((refused = crowd_refused(&c)) + c.accepted < CROWD)
        rig_run(c.loop);
    assert_true(refused > 0 && c.accepted > 0);
    struct ox_file *file;
    struct ox_op op;
    uint64_t size;
    ox_op_init(&op, c.loop, rig_op_done, "open");
    ox_file_open(ox_posix_fs(c.loop), &op, OX_LANE_POOL, "/dev/null", OX_OPEN_READ, &file, &size);
    assert_int_equal(rig_wait(&op), OX_OK);
    ox_file_close(file);
    for (size_t i = 0; i < CROWD; i++) {
        if (c.clients[i].client.stream)
            ox_stream_abort(c.clients[i].client.stream, OX_E_SHUTDOWN);
        if (c.servers[i].stream)
            ox_stream_abort(c.servers[i].stream, OX_E_SHUTDOWN);
    }
    for (size_t i = 0; i < CROWD; i++) {
        while (c.clients[i].client.stream || c.servers[i].stream)
            rig_run(c.loop);
    }
    ox_net_unlisten(listener);
    ox_posix_loop_free(c.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posix_stream_echoes_megabytes_in_order),
        cmocka_unit_test(test_posix_stream_without_space_holds_the_peer_back),
        cmocka_unit_test(test_posix_stream_close_delivers_everything_first),
        cmocka_unit_test(test_posix_stream_tells_a_paused_owner_that_its_peer_has_ended),
        cmocka_unit_test(test_posix_stream_abort_reports_its_error_once),
        cmocka_unit_test(test_posix_listen_names_what_is_wrong),
        cmocka_unit_test(test_posix_connect_refused_and_by_name),
        cmocka_unit_test(test_posix_connect_cancel_ends_it),
        cmocka_unit_test(test_posix_stream_may_be_paused_closed_or_aborted_when_asked_for_space),
        cmocka_unit_test(test_posix_listener_leaves_descriptors_for_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
