// producer_test.c - producers: order, windows, batches, losses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "client/client_fixture.h"
#include "wire/compress.h"

static const struct ox_client_producer_config plain = {.topic = "t"};

// Starts n sends of the texts "0", "1", ...
static struct ox_client_send *start_sends(struct client_fixture *f, struct ox_client_producer *p, size_t n)
{
    struct ox_client_send *sends = ox_calloc(n, sizeof *sends);
    for (size_t i = 0; i < n; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *text = ox_asprintf("%zu", i);
        ox_op_init(&sends[i].op, f->loop, ox_sim_done, "send");
        sends[i].payload = ox_buf_static(text, strlen(text));
        ox_client_producer_send(p, &sends[i]);
    }
    return sends;
}

static void wait_sends(struct client_fixture *f, struct ox_client_send *sends, size_t n, enum ox_err err)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ox_sim_wait(f->sim, &sends[i].op), err);
}

// The payload of a stored entry that isn't a batch.
static struct ox_buf stored(struct client_fixture *f, size_t entry, struct ox_message_meta *ret_meta)
{
    struct ox_message_view view;
    assert_int_equal(ox_message_parse(f->broker.entries[entry], true, &view), OX_OK);
    assert_int_equal(ox_message_meta_scan(view.metadata.data, view.metadata.len, ret_meta), OX_OK);
    return view.payload;
}

static void test_producer_stores_in_order(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    assert_string_equal(ox_client_producer_name(p), "made-up-name");
    struct ox_client_send *sends = start_sends(f, p, 100);
    wait_sends(f, sends, 100, OX_OK);
    assert_int_equal(f->broker.count, 100);
    for (size_t i = 0; i < 100; i++) {
        struct ox_message_meta meta;
        OX_CLEANUP(ox_free_ptr)
        char *text = ox_asprintf("%zu", i);
        assert_true(ox_buf_equal(stored(f, i, &meta), ox_buf_static(text, strlen(text))));
        assert_int_equal(meta.sequence_id, i);
        assert_int_equal(sends[i].sequence_id, i);
        assert_int_equal(sends[i].id.entry, i);
        assert_int_equal(sends[i].id.batch_index, -1);
    }
    ox_free(sends);
    client_fixture_close_producer(f, p);
}

static void test_producer_answered_with_another_command_is_malformed(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    f->broker.wrong_answers = true;
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_E_MALFORMED);
}

static void test_producer_window_is_bounded(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_producer_config config = {.topic = "t", .pending_max = 10};
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_OK);
    struct ox_client_send *sends = start_sends(f, p, 11);
    assert_int_equal(ox_client_producer_pending(p), 10);
    wait_sends(f, sends, 10, OX_OK);
    assert_int_equal(sends[10].op.err, OX_E_LIMIT);
    assert_int_equal(ox_client_producer_pending(p), 0);
    ox_free(sends);
    client_fixture_close_producer(f, p);
}

static void test_producer_batches(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_producer_config config = {.topic = "t", .batch_messages = 10, .batch_delay_ns = 5 * OX_MS};
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_OK);
    struct ox_client_send *sends = start_sends(f, p, 25);
    wait_sends(f, sends, 25, OX_OK);
    assert_int_equal(f->broker.count, 3);
    assert_int_equal(f->broker.messages[0], 10);
    assert_int_equal(f->broker.messages[2], 5);
    assert_int_equal(sends[12].id.entry, 1);
    assert_int_equal(sends[12].id.batch_index, 2);
    assert_int_equal(sends[24].id.batch_size, 5);
    struct ox_message_meta meta;
    stored(f, 1, &meta);
    assert_int_equal(meta.sequence_id, 10);
    assert_int_equal(meta.highest_sequence_id, 19);
    ox_free(sends);
    client_fixture_close_producer(f, p);
}

static void test_producer_batch_closes_by_bytes(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_producer_config config = {.topic = "t", .batch_messages = 1000, .batch_bytes = 60};
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_OK);
    struct ox_client_send *sends = start_sends(f, p, 50);
    wait_sends(f, sends, 50, OX_OK);
    assert_in_range(f->broker.count, 5, 25);
    ox_free(sends);
    client_fixture_close_producer(f, p);
}

static void test_producer_compresses(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_producer_config config = {.topic = "t", .compression = OX_COMPRESSION_ZSTD};
    struct ox_client_send send = {.key = "k"};
    char text[5001];
    memset(text, 'x', 5000);
    text[5000] = '\0';
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_OK);
    assert_int_equal(client_fixture_send(f, p, text, &send), OX_OK);
    struct ox_message_meta meta;
    struct ox_buf payload = stored(f, 0, &meta), plain_text;
    assert_true(payload.len < 200);
    assert_int_equal(ox_decompress(meta.compression, payload.data, payload.len, meta.uncompressed_size, 5000, &plain_text),
                     OX_OK);
    assert_memory_equal(plain_text.data, text, 5000);
    assert_memory_equal(meta.partition_key.data, "k", 1);
    ox_buf_unref(&plain_text);
    client_fixture_close_producer(f, p);
}

static void test_producer_sends_again_after_a_loss(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    f->broker.deduplicate = true;
    f->broker.receipts_before_cut = 20;
    struct ox_client_send *sends = start_sends(f, p, 50);
    wait_sends(f, sends, 50, OX_OK);
    assert_int_equal(f->broker.connects, 2);
    assert_int_equal(f->broker.producers, 2);
    assert_int_equal(f->broker.count, 50);
    assert_int_equal(sends[20].id.entry, -1); // stored before; the server knows
    for (size_t i = 0; i < 50; i++) {
        struct ox_message_meta meta;
        stored(f, i, &meta);
        assert_int_equal(meta.sequence_id, i);
    }
    ox_free(sends);
    client_fixture_close_producer(f, p);
}

static void test_producer_survives_an_unload(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_send send = {0};
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    fake_broker_unload(&f->broker);
    client_fixture_run(f, 100 * OX_MS);
    assert_int_equal(client_fixture_send(f, p, "x", &send), OX_OK);
    assert_int_equal(f->broker.connects, 1);
    assert_int_equal(f->broker.producers, 2);
    client_fixture_close_producer(f, p);
}

static void test_producer_attaches_again_when_busy(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_send send = {0};
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    f->broker.create_error = OXPB__SERVER_ERROR__ProducerBusy; // the server has not noticed yet
    f->broker.create_errors = 3;
    fake_broker_cut(&f->broker);
    client_fixture_run(f, OX_MS);
    assert_int_equal(client_fixture_send(f, p, "x", &send), OX_OK);
    client_fixture_close_producer(f, p);
}

static void test_producer_send_errors(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_send send = {0};
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    f->broker.has_send_error = true;
    f->broker.send_error = OXPB__SERVER_ERROR__ChecksumError;
    assert_int_equal(client_fixture_send(f, p, "a", &send), OX_E_CHECKSUM);
    assert_string_equal(ox_client_producer_text(p), "not this one");
    assert_int_equal(client_fixture_send(f, p, "b", &send), OX_OK);
    f->broker.has_send_error = true;
    f->broker.send_error = OXPB__SERVER_ERROR__PersistenceError; // attaches again, sends again
    assert_int_equal(client_fixture_send(f, p, "c", &send), OX_OK);
    assert_int_equal(f->broker.connects, 2);
    f->broker.has_send_error = true;
    f->broker.send_error = OXPB__SERVER_ERROR__TopicTerminatedError;
    assert_int_equal(client_fixture_send(f, p, "d", &send), OX_E_TOPIC_TERMINATED);
    assert_int_equal(client_fixture_send(f, p, "e", &send), OX_E_TOPIC_TERMINATED);
    client_fixture_close_producer(f, p);
}

static void test_producer_limits_messages(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_send send = {0};
    f->broker.message_bytes_max = 10;
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    assert_int_equal(client_fixture_send(f, p, "0123456789", &send), OX_OK);
    assert_int_equal(client_fixture_send(f, p, "0123456789a", &send), OX_E_TOO_BIG);
    assert_int_equal(client_fixture_send(f, p, "ok", &send), OX_OK);
    client_fixture_close_producer(f, p);
}

static void test_producer_times_out(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    struct ox_client_send send = {0};
    struct ox_client_producer_config config = {.topic = "t", .send_timeout_ns = 3 * OX_SEC};
    assert_int_equal(client_fixture_producer(f, &config, &p), OX_OK);
    f->broker.silent = true;
    assert_int_equal(client_fixture_send(f, p, "x", &send), OX_E_TIMEOUT);
    f->broker.silent = false;
    client_fixture_close_producer(f, p);
}

static void test_producer_close_ends_what_is_pending(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    struct ox_client_send *sends = start_sends(f, p, 5);
    client_fixture_close_producer(f, p);
    wait_sends(f, sends, 5, OX_E_CLOSED);
    ox_free(sends);
}

static void test_patient_client_waits_and_can_be_canceled(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer_open open = {0};
    f->broker.create_error = OXPB__SERVER_ERROR__ServiceNotReady;
    f->broker.create_errors = 3;
    struct ox_client_producer *p;
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    client_fixture_close_producer(f, p);
    f->broker.create_errors = INT32_MAX;
    ox_op_init(&open.call.op, f->loop, ox_sim_done, "open");
    ox_client_producer_open(f->client, &open, &plain);
    client_fixture_run(f, 20 * OX_SEC);
    assert_true(ox_op_pending(&open.call.op));
    ox_op_cancel(&open.call.op);
    assert_int_equal(ox_sim_wait(f->sim, &open.call.op), OX_E_CANCELED);
    assert_null(open.producer);
}

static void test_dead_process_answers_everything(void **state)
{
    struct client_fixture *f = *state;
    struct ox_client_producer *p;
    assert_int_equal(client_fixture_producer(f, &plain, &p), OX_OK);
    struct ox_client_send *sends = start_sends(f, p, 5);
    ox_sim_node_crash(f->machine, OX_SIM_CRASH_PROCESS);
    wait_sends(f, sends, 5, OX_E_SHUTDOWN);
    client_fixture_close_producer(f, p);
    ox_free(sends);
}

#define WITH_CLIENT(fn) cmocka_unit_test_setup_teardown(fn, client_fixture_setup, client_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLIENT(test_producer_stores_in_order),
        WITH_CLIENT(test_producer_answered_with_another_command_is_malformed),
        WITH_CLIENT(test_producer_window_is_bounded),
        WITH_CLIENT(test_producer_batches),
        WITH_CLIENT(test_producer_batch_closes_by_bytes),
        WITH_CLIENT(test_producer_compresses),
        WITH_CLIENT(test_producer_sends_again_after_a_loss),
        WITH_CLIENT(test_producer_survives_an_unload),
        WITH_CLIENT(test_producer_attaches_again_when_busy),
        WITH_CLIENT(test_producer_send_errors),
        WITH_CLIENT(test_producer_limits_messages),
        WITH_CLIENT(test_producer_times_out),
        WITH_CLIENT(test_producer_close_ends_what_is_pending),
        WITH_CLIENT(test_dead_process_answers_everything),
        cmocka_unit_test_setup_teardown(test_patient_client_waits_and_can_be_canceled, client_fixture_setup_patient,
                                        client_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
