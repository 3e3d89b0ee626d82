// null_test.c - the null server with the client: sends are answered in order, with rising ids.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "client/client.h"
#include "sim/sim.h"

static enum ox_err wait_close(struct ox_sim *sim, struct ox_op *op)
{
    return ox_sim_wait(sim, op);
}

static void test_null_answers_sends(void **state)
{
    (void)state;
    struct ox_sim *sim = ox_sim_new(1, NULL);
    struct ox_sim_node *node = ox_sim_node_new(sim, "null");
    struct ox_loop *loop = ox_sim_loop(node);
    struct bench_null *n;
    struct ox_client *client;
    struct ox_op close = {0};
    struct ox_client_producer_open open = {0};
    struct ox_client_send sends[100] = {0};
    struct ox_client_config config = {.net = ox_sim_net(node), .service_url = "null:7000"};
    struct ox_client_producer_config producer = {.topic = "t", .batch_messages = 3};
    assert_int_equal(bench_null_open(ox_sim_net(node), "0.0.0.0", 7000, "pulsar://null:7000", &n), OX_OK);
    assert_int_equal(ox_client_new(&config, &client), OX_OK);
    ox_op_init(&open.call.op, loop, ox_sim_done, "open");
    ox_client_producer_open(client, &open, &producer);
    assert_int_equal(ox_sim_wait(sim, &open.call.op), OX_OK);
    for (size_t i = 0; i < OX_COUNT(sends); i++) {
        ox_op_init(&sends[i].op, loop, ox_sim_done, "send");
        sends[i].payload = ox_buf_static("x", 1);
        ox_client_producer_send(open.producer, &sends[i]);
    }
    for (size_t i = 0; i < OX_COUNT(sends); i++) {
        assert_int_equal(ox_sim_wait(sim, &sends[i].op), OX_OK);
        assert_int_equal(sends[i].id.entry, i / 3);
    }
    ox_op_init(&close, loop, ox_sim_done, "close");
    ox_client_producer_close(open.producer, &close);
    assert_int_equal(wait_close(sim, &close), OX_OK);
    ox_client_close(client, &close);
    assert_int_equal(wait_close(sim, &close), OX_OK);
    ox_sim_run_for(sim, OX_SEC);
    bench_null_close(n);
    ox_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_null_answers_sends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
