// client_test.c - the client's connections, look-ups and questions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "client/client_fixture.h"

static void test_url_forms(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host;
        uint16_t port;
    } good[] = {{"pulsar://a:1", "a", 1},       {"a:65535", "a", 65535}, {"a", "a", 6650},
                {"pulsar://a.b/", "a.b", 6650}, {"[::1]:7", "::1", 7},   {"pulsar://[::1]", "::1", 6650}};
    const char *bad[] = {"", "pulsar://", "a:", "a:0", "a:65536", "a:1x", "a:1/x", "[::1", ":1", "pulsar+ssl://a"};
    char *host;
    uint16_t port;
    for (size_t i = 0; i < OX_COUNT(good); i++) {
        assert_int_equal(ox_client_parse_url(good[i].url, &host, &port), OX_OK);
        assert_string_equal(host, good[i].host);
        assert_int_equal(port, good[i].port);
        ox_free(host);
    }
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(ox_client_parse_url(bad[i], &host, &port), OX_E_INVALID);
}

static enum ox_err ask_partitions(struct client_fixture *f, uint32_t *ret)
{
    struct ox_client_partitions ask = {0};
    ox_op_init(&ask.call.op, f->loop, ox_sim_done, "partitions");
    ox_client_partitions(f->client, &ask, "persistent://public/default/t");
    enum ox_err err = ox_sim_wait(f->sim, &ask.call.op);
    *ret = ask.count;
    return err;
}

static void test_partitions_share_a_connection(void **state)
{
    struct client_fixture *f = *state;
    uint32_t count;
    f->broker.partitions = 4;
    assert_int_equal(ask_partitions(f, &count), OX_OK);
    assert_int_equal(count, 4);
    assert_int_equal(ask_partitions(f, &count), OX_OK);
    assert_int_equal(f->broker.connects, 1);
}

static void test_silent_server_times_out(void **state)
{
    struct client_fixture *f = *state;
    uint32_t count;
    uint64_t start = ox_sim_now(f->sim);
    f->broker.silent = true;
    assert_int_equal(ask_partitions(f, &count), OX_E_TIMEOUT);
    assert_in_range((ox_sim_now(f->sim) - start) / OX_SEC, 29, 32);
}

static void test_dead_peer_is_noticed(void **state)
{
    struct client_fixture *f = *state;
    uint32_t count;
    assert_int_equal(ask_partitions(f, &count), OX_OK);
    client_fixture_run(f, 300 * OX_SEC);
    assert_int_equal(ask_partitions(f, &count), OX_OK);
    assert_int_equal(f->broker.connects, 1); // kept alive by pings
    f->broker.silent = true;
    client_fixture_run(f, 100 * OX_SEC);
    f->broker.silent = false;
    assert_int_equal(ask_partitions(f, &count), OX_OK);
    assert_int_equal(f->broker.connects, 2);
}

static void test_damaged_answer_breaks_the_connection(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_producer_config config = {.topic = "t"};
    f->broker.garbage = true;
    enum ox_err err = client_fixture_producer(f, &config, &p);
    assert_true(err == OX_E_TOO_BIG || err == OX_E_MALFORMED);
    f->broker.garbage = false;
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_OK);
    assert_int_equal(f->broker.connects, 2);
    client_fixture_close_producer(f, p);
}

static void test_redirections_end(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_producer_config config = {.topic = "t"};
    f->broker.redirect = "pulsar://broker:6650";
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_E_NOT_OWNER);
    assert_int_equal(f->broker.lookups, 21);
}

static void test_redirection_is_followed(void **state)
{
    struct client_fixture *f = *state;
    struct ox_sim_node *other_node = ox_sim_node_new(f->sim, "other");
    struct fake_broker *other = ox_malloc(sizeof *other);
    struct ox_client_producer *p;
    struct ox_client_producer_config config = {.topic = "t"};
    fake_broker_start(other, ox_sim_net(other_node));
    f->broker.redirect = "pulsar://other:6650";
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_OK);
    assert_int_equal(other->lookups, 1);
    assert_int_equal(f->broker.producers, 1); // the other one says: the first one has it
    client_fixture_close_producer(f, p);
    fake_broker_stop(other);
    client_fixture_run(f, OX_SEC);
    ox_free(other);
}

static void test_nobody_listens(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client *client;
    struct ox_client_config config = {.net = ox_sim_net(f->machine), .service_url = "broker:1"};
    struct ox_client_producer_open open = {0};
    struct ox_client_producer_config producer = {.topic = "t"};
    struct ox_op close = {0};
    assert_int_equal(ox_client_new(&config, &client), OX_OK);
    ox_op_init(&open.call.op, f->loop, ox_sim_done, "open");
    ox_op_init(&close, f->loop, ox_sim_done, "close");
    ox_client_producer_open(client, &open, &producer);
    assert_int_equal(ox_sim_wait(f->sim, &open.call.op), OX_E_CONNECTION_REFUSED);
    ox_client_close(client, &close);
    assert_int_equal(ox_sim_wait(f->sim, &close), OX_OK);
}

static void test_server_errors_keep_their_words(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer_open open = {0};
    struct ox_client_producer_config config = {.topic = "t"};
    f->broker.create_error = OXPB__SERVER_ERROR__ProducerBusy;
    f->broker.create_errors = 1;
    ox_op_init(&open.call.op, f->loop, ox_sim_done, "open");
    ox_client_producer_open(f->client, &open, &config);
    assert_int_equal(ox_sim_wait(f->sim, &open.call.op), OX_E_PRODUCER_BUSY);
    assert_string_equal(open.call.text, "refused for the test");
    assert_null(open.producer);
}

static void test_every_server_error_has_a_meaning(void **state)
{
    (void)state;
    for (unsigned i = 0; i < oxpb__server_error__descriptor.n_values; i++)
        assert_int_not_equal(ox_client_err_of_server((Oxpb__ServerError)oxpb__server_error__descriptor.values[i].value),
                             OX_OK);
}

#define WITH_CLIENT(fn) cmocka_unit_test_setup_teardown(fn, client_fixture_setup, client_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_forms),
        WITH_CLIENT(test_partitions_share_a_connection),
        WITH_CLIENT(test_silent_server_times_out),
        WITH_CLIENT(test_dead_peer_is_noticed),
        WITH_CLIENT(test_damaged_answer_breaks_the_connection),
        WITH_CLIENT(test_redirections_end),
        WITH_CLIENT(test_redirection_is_followed),
        WITH_CLIENT(test_nobody_listens),
        WITH_CLIENT(test_server_errors_keep_their_words),
        cmocka_unit_test(test_every_server_error_has_a_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
