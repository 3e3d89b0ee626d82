// net_test.c - what the simulated network delivers, delays and breaks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/sim_net.h"

struct peer {
    struct ox_stream *stream; // NULL once closed
    uint8_t space[700];
    size_t received;
    uint8_t next; // expected value of the next byte
    bool hold;
    int writable, closed;
    enum ox_err err;
};

static void peer_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct peer *p = s->owner;
    *ret_data = p->space;
    *ret_len = p->hold ? 0 : sizeof(p->space);
}

static void peer_filled(struct ox_stream *s, size_t n)
{
    struct peer *p = s->owner;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(p->space[i], p->next++);
    p->received += n;
}

static void peer_writable(struct ox_stream *s)
{
    ((struct peer *)s->owner)->writable++;
}

static void peer_closed(struct ox_stream *s, enum ox_err err)
{
    struct peer *p = s->owner;
    p->closed++;
    p->err = err;
    p->stream = NULL;
}

static const struct ox_stream_events peer_events = {
    .space = peer_space, .filled = peer_filled, .writable = peer_writable, .closed = peer_closed};

static void peer_adopt(struct peer *p, struct ox_stream *s)
{
    p->stream = s;
    s->owner = p;
    s->events = &peer_events;
}

struct rig {
    struct ox_sim *sim;
    struct ox_sim_node *a, *b; // client, server
    struct ox_listener *listener;
    struct ox_op op;
    struct ox_stream *connected;
    struct peer client, server;
};

static void rig_accept(struct ox_listener *l, struct ox_stream *give_s)
{
    peer_adopt(&((struct rig *)l->owner)->server, give_s);
}

static void rig_connected(struct ox_op *op)
{
    struct rig *r = CONTAINER_OF(op, struct rig, op);
    if (!op->err)
        peer_adopt(&r->client, r->connected);
}

static enum ox_err rig_connect(struct rig *r, const char *host, uint16_t port)
{
    ox_op_init(&r->op, ox_sim_loop(r->a), rig_connected, "connect");
    ox_net_connect(ox_sim_net(r->a), &r->op, host, port, &r->connected);
    return ox_sim_wait(r->sim, &r->op);
}

static void rig_listen(struct rig *r)
{
    assert_int_equal(ox_net_listen(ox_sim_net(r->b), "0.0.0.0", 6650, &r->listener), OX_OK);
    r->listener->accept = rig_accept;
    r->listener->owner = r;
}

static void rig_start(struct rig *r, uint64_t seed)
{
    *r = (struct rig){.sim = ox_sim_new(seed, NULL)};
    r->a = ox_sim_node_new(r->sim, "a");
    r->b = ox_sim_node_new(r->sim, "b");
    rig_listen(r);
    assert_int_equal(rig_connect(r, "b", 6650), OX_OK);
}

static void rig_end(struct rig *r)
{
    if (r->client.stream)
        ox_stream_abort(r->client.stream, OX_E_SHUTDOWN);
    if (r->server.stream)
        ox_stream_abort(r->server.stream, OX_E_SHUTDOWN);
    ox_sim_run_for(r->sim, 10 * OX_SEC);
    assert_null(r->client.stream);
    assert_null(r->server.stream);
    ox_net_unlisten(r->listener);
    ox_sim_free(r->sim);
}

static void write_counting(struct ox_stream *s, size_t n, uint8_t first)
{
    uint8_t *data;
    struct ox_buf buf = ox_buf_new(n, &data);
    for (size_t i = 0; i < n; i++)
        data[i] = first++;
    ox_stream_write(s, &buf, 1);
    ox_buf_unref(&buf);
}

static void test_simnet_bytes_arrive_in_order_then_the_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rig r;
        rig_start(&r, seed);
        ox_sim_faults(r.sim)->net_chop = 300000;
        ox_sim_faults(r.sim)->net_slow = 1000;
        write_counting(r.client.stream, 1500000, 0);
        assert_true(r.client.stream->above_high);
        ox_sim_run_for(r.sim, 3000 * OX_SEC);
        assert_int_equal(r.server.received, 1500000);
        assert_int_equal(r.client.writable, 1);
        write_counting(r.client.stream, 100, (uint8_t)1500000);
        ox_stream_close(r.client.stream);
        ox_sim_run_for(r.sim, 10 * OX_SEC);
        assert_int_equal(r.server.received, 1500100);
        assert_int_equal(r.server.err, OX_E_END_OF_FILE);
        assert_int_equal(r.client.err, OX_OK);
        assert_int_equal(r.client.closed, 1);
        rig_end(&r);
    }
}

static void test_simnet_without_space_the_sender_is_held_back(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 4);
    r.server.hold = true;
    write_counting(r.client.stream, 3000000, 0);
    ox_sim_run_for(r.sim, 60 * OX_SEC);
    assert_int_equal(r.server.received, 0);
    assert_true(r.client.stream->queued_bytes > 2000000);
    r.server.hold = false;
    ox_stream_resume(r.server.stream);
    ox_sim_run_for(r.sim, 60 * OX_SEC);
    assert_int_equal(r.server.received, 3000000);
    rig_end(&r);
}

static void test_simnet_paused_owner_can_ask_whether_its_peer_has_ended(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 5);
    ox_stream_pause(r.server.stream);
    write_counting(r.client.stream, 5, 0);
    ox_sim_run_for(r.sim, OX_SEC);
    assert_false(ox_stream_peer_ended(r.server.stream));
    ox_stream_close(r.client.stream);
    ox_sim_run_for(r.sim, OX_SEC);
    assert_true(ox_stream_peer_ended(r.server.stream));
    ox_stream_resume(r.server.stream);
    ox_sim_run_for(r.sim, OX_SEC);
    assert_null(r.server.stream);
    rig_end(&r);
}

static void test_simnet_partition_holds_bytes_and_connects(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 5);
    ox_sim_net_partition(r.a, r.b, true);
    write_counting(r.client.stream, 1000, 0);
    ox_sim_run_for(r.sim, 60 * OX_SEC);
    assert_int_equal(r.server.received, 0);
    struct peer old = r.client;
    assert_int_equal(rig_connect(&r, "b", 6650), OX_E_TIMEOUT);
    assert_ptr_equal(r.client.stream, old.stream);
    ox_sim_net_heal(r.sim);
    ox_sim_run_for(r.sim, OX_SEC);
    assert_int_equal(r.server.received, 1000);
    rig_end(&r);
}

static void test_simnet_listen_and_connect_errors(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 6);
    struct ox_listener *second;
    assert_int_equal(ox_net_listen(ox_sim_net(r.b), "127.0.0.1", 6650, &second), OX_E_ADDRESS_IN_USE);
    assert_int_equal(rig_connect(&r, "b", 1), OX_E_CONNECTION_REFUSED);
    assert_int_equal(rig_connect(&r, "nobody", 1), OX_E_INVALID);
    ox_op_init(&r.op, ox_sim_loop(r.a), rig_connected, "connect");
    ox_net_connect(ox_sim_net(r.a), &r.op, "b", 6650, &r.connected);
    ox_op_cancel(&r.op);
    assert_int_equal(ox_sim_wait(r.sim, &r.op), OX_E_CANCELED);
    rig_end(&r);
}

static void test_simnet_crash_cuts_streams_at_both_ends(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rig r;
        rig_start(&r, seed);
        write_counting(r.client.stream, 5000, 0);
        write_counting(r.server.stream, 5000, 0);
        ox_sim_step(r.sim);
        ox_sim_node_crash(r.b, seed % 2 ? OX_SIM_CRASH_PROCESS : OX_SIM_CRASH_MACHINE);
        ox_sim_run_for(r.sim, 5 * OX_SEC);
        assert_int_equal(r.server.err, OX_E_SHUTDOWN);
        assert_true(r.client.err == OX_E_DISCONNECTED || r.client.err == OX_E_END_OF_FILE);
        assert_int_equal(rig_connect(&r, "b", 6650), seed % 2 ? OX_E_CONNECTION_REFUSED : OX_E_TIMEOUT);
        ox_net_unlisten(r.listener);
        ox_sim_node_restart(r.b);
        rig_listen(&r);
        r.client = (struct peer){0};
        r.server = (struct peer){0};
        assert_int_equal(rig_connect(&r, "b", 6650), OX_OK);
        write_counting(r.client.stream, 5000, 0);
        ox_sim_run_for(r.sim, OX_SEC);
        assert_int_equal(r.server.received, 5000);
        rig_end(&r);
    }
}

static void test_simnet_reset_breaks_both_ends(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 9);
    write_counting(r.client.stream, 100000, 0);
    ox_sim_step(r.sim);
    ox_sim_net_reset(r.a, NULL);
    ox_sim_run_for(r.sim, OX_SEC);
    assert_int_equal(r.client.err, OX_E_DISCONNECTED);
    assert_int_equal(r.server.err, OX_E_DISCONNECTED);
    assert_int_equal(r.server.closed, 1);
    rig_end(&r);
}

static void accept_and_crash(struct ox_listener *l, struct ox_stream *give_s)
{
    struct rig *r = l->owner;
    peer_adopt(&r->server, give_s);
    ox_sim_node_crash(r->a, OX_SIM_CRASH_PROCESS);
}

static void test_simnet_process_may_crash_inside_accept_of_its_own_connect(void **state)
{
    (void)state;
    struct rig r = {.sim = ox_sim_new(10, NULL)};
    r.a = r.b = ox_sim_node_new(r.sim, "a");
    rig_listen(&r);
    r.listener->accept = accept_and_crash;
    assert_int_equal(rig_connect(&r, "127.0.0.1", 6650), OX_OK);
    ox_sim_run_for(r.sim, 10 * OX_SEC);
    assert_int_equal(r.server.err, OX_E_SHUTDOWN);
    assert_int_equal(r.client.err, OX_E_SHUTDOWN);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simnet_bytes_arrive_in_order_then_the_end),
        cmocka_unit_test(test_simnet_without_space_the_sender_is_held_back),
        cmocka_unit_test(test_simnet_paused_owner_can_ask_whether_its_peer_has_ended),
        cmocka_unit_test(test_simnet_partition_holds_bytes_and_connects),
        cmocka_unit_test(test_simnet_listen_and_connect_errors),
        cmocka_unit_test(test_simnet_crash_cuts_streams_at_both_ends),
        cmocka_unit_test(test_simnet_reset_breaks_both_ends),
        cmocka_unit_test(test_simnet_process_may_crash_inside_accept_of_its_own_connect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
