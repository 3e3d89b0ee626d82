// consumer_test.c - consumers: permits, batches, acknowledgements, seeks, losses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "client/client_fixture.h"
#include "wire/message_build.h"

// What a consumer has received.
struct inbox {
    struct ox_message_id ids[FAKE_ENTRIES_MAX];
    size_t count;
    struct ox_str text; // payloads joined by commas
    int attached, damaged;
    enum ox_err failed, damage;
};

static void inbox_message(struct ox_client_consumer *c, const struct ox_received *m)
{
    struct inbox *in = ox_client_consumer_owner(c);
    in->ids[in->count++] = m->id;
    ox_str_addf(&in->text, "%s%.*s", in->text.len ? "," : "", (int)m->payload.len, (const char *)m->payload.data);
}

static void inbox_attached(struct ox_client_consumer *c)
{
    ((struct inbox *)ox_client_consumer_owner(c))->attached++;
}

static void inbox_failed(struct ox_client_consumer *c, enum ox_err err, const char *text)
{
    assert_non_null(text);
    ((struct inbox *)ox_client_consumer_owner(c))->failed = err;
}

static void inbox_damaged(struct ox_client_consumer *c, const struct ox_message_id *id, enum ox_err err)
{
    struct inbox *in = ox_client_consumer_owner(c);
    assert_int_equal(id->ledger, FAKE_LEDGER);
    in->damaged++;
    in->damage = err;
}

static const struct ox_client_consumer_events inbox_events = {
    .message = inbox_message, .attached = inbox_attached, .failed = inbox_failed, .damaged = inbox_damaged};

static void inbox_clear(struct inbox *in)
{
    in->count = 0;
    ox_str_truncate(&in->text, 0);
}

static struct ox_client_consumer_config inbox_config(struct inbox *in)
{
    memset(in, 0, sizeof *in);
    return (struct ox_client_consumer_config){
        .topic = "t", .subscription = "s", .earliest = true, .events = &inbox_events, .owner = in};
}

static void add_texts(struct client_fixture *f, int from, int to)
{
    for (int i = from; i < to; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *text = ox_asprintf("m%d", i);
        fake_broker_add(&f->broker, client_fixture_entry(text, (uint64_t)i), 1);
    }
}

static struct ox_client_consumer *inbox_open(struct client_fixture *f, const struct ox_client_consumer_config *config)
{
    struct ox_client_consumer *c;
    assert_int_equal(client_fixture_consumer(f, config, &c), OX_OK);
    client_fixture_run(f, OX_SEC);
    return c;
}

static enum ox_err inbox_ack(struct client_fixture *f, struct ox_client_consumer *c, const struct ox_message_id *id,
                             bool cumulative)
{
    struct ox_client_call call = {0};
    ox_op_init(&call.op, f->loop, ox_sim_done, "ack");
    ox_client_consumer_ack(c, &call, id, cumulative);
    return ox_sim_wait(f->sim, &call.op);
}

static void inbox_close(struct client_fixture *f, struct ox_client_consumer *c, struct inbox *in)
{
    client_fixture_close_consumer(f, c);
    ox_str_fini(&in->text);
}

static void test_consumer_receives_and_acknowledges(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    add_texts(f, 0, 3);
    struct ox_client_consumer *c = inbox_open(f, &config);
    add_texts(f, 3, 5);
    client_fixture_run(f, OX_SEC);
    assert_string_equal(in.text.data, "m0,m1,m2,m3,m4");
    assert_int_equal(inbox_ack(f, c, &in.ids[3], false), OX_OK);
    assert_true(f->broker.acked[3] && !f->broker.acked[2]);
    assert_int_equal(inbox_ack(f, c, &in.ids[1], true), OX_OK);
    assert_true(f->broker.acked[0] && f->broker.acked[1] && !f->broker.acked[2]);
    ox_client_consumer_ack(c, NULL, &in.ids[2], false);
    client_fixture_run(f, OX_SEC);
    assert_true(f->broker.acked[2]);
    inbox_close(f, c, &in);
}

static void test_consumer_permits_are_bounded(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    config.receiver_queue = 10;
    add_texts(f, 0, 100);
    struct ox_client_consumer *c;
    assert_int_equal(client_fixture_consumer(f, &config, &c), OX_OK);
    ox_client_consumer_pause(c);
    client_fixture_run(f, OX_SEC);
    assert_int_equal(in.count, 10);
    ox_client_consumer_resume(c);
    client_fixture_run(f, OX_SEC);
    assert_int_equal(in.count, 100);
    assert_in_range(f->broker.permits_given, 100, 110);
    inbox_close(f, c, &in);
}

static void test_consumer_opens_batches(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    fake_broker_add(&f->broker, client_fixture_batch(3, 0), 3);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_string_equal(in.text.data, "0,1,2");
    assert_int_equal(in.ids[2].batch_index, 2);
    assert_int_equal(in.ids[2].batch_size, 3);
    assert_int_equal(inbox_ack(f, c, &in.ids[1], false), OX_OK);
    assert_int_equal(inbox_ack(f, c, &in.ids[0], false), OX_OK);
    assert_int_equal(f->broker.acks, 0);
    assert_int_equal(inbox_ack(f, c, &in.ids[2], false), OX_OK);
    assert_int_equal(f->broker.acks, 1);
    assert_true(f->broker.acked[0]);
    inbox_close(f, c, &in);
}

static void test_consumer_tells_batch_indexes(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    config.batch_index_ack = true;
    fake_broker_add(&f->broker, client_fixture_batch(70, 0), 70);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_int_equal(inbox_ack(f, c, &in.ids[68], true), OX_OK);
    assert_int_equal(f->broker.ack_words, 2);
    assert_false(f->broker.acked[0]);
    assert_int_equal(inbox_ack(f, c, &in.ids[69], false), OX_OK);
    assert_int_equal(f->broker.ack_words, 0);
    assert_true(f->broker.acked[0]);
    inbox_close(f, c, &in);
}

static void test_consumer_waits_only_for_what_is_left_of_a_batch(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    f->broker.outstanding = 1 << 0 | 1 << 2;
    fake_broker_add(&f->broker, client_fixture_batch(4, 0), 4);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_string_equal(in.text.data, "0,2");
    assert_int_equal(inbox_ack(f, c, &in.ids[0], false), OX_OK);
    assert_false(f->broker.acked[0]);
    assert_int_equal(inbox_ack(f, c, &in.ids[1], false), OX_OK);
    assert_true(f->broker.acked[0]);
    inbox_close(f, c, &in);
}

static void test_consumer_cumulative_within_a_batch(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    add_texts(f, 0, 2);
    fake_broker_add(&f->broker, client_fixture_batch(3, 2), 3);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_int_equal(inbox_ack(f, c, &in.ids[3], true), OX_OK);
    assert_true(f->broker.acked[0] && f->broker.acked[1] && !f->broker.acked[2]);
    assert_int_equal(inbox_ack(f, c, &in.ids[4], true), OX_OK);
    assert_true(f->broker.acked[2]);
    inbox_close(f, c, &in);
}

static void test_consumer_attaches_again(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    add_texts(f, 0, 4);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_int_equal(inbox_ack(f, c, &in.ids[1], true), OX_OK);
    inbox_clear(&in);
    f->broker.create_error = OXPB__SERVER_ERROR__ConsumerBusy; // the server has not noticed yet
    f->broker.create_errors = 2;
    fake_broker_cut(&f->broker);
    client_fixture_run(f, 5 * OX_SEC);
    assert_int_equal(in.attached, 1);
    assert_string_equal(in.text.data, "m2,m3");
    inbox_clear(&in);
    fake_broker_unload(&f->broker);
    client_fixture_run(f, OX_SEC);
    assert_int_equal(in.attached, 2);
    assert_string_equal(in.text.data, "m2,m3");
    inbox_close(f, c, &in);
}

static void test_consumer_fails_for_good(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    struct ox_client_consumer *c;
    f->broker.create_error = OXPB__SERVER_ERROR__ConsumerBusy;
    f->broker.create_errors = 1;
    assert_int_equal(client_fixture_consumer(f, &config, &c), OX_E_CONSUMER_BUSY);
    c = inbox_open(f, &config);
    f->broker.create_error = OXPB__SERVER_ERROR__AuthorizationError;
    f->broker.create_errors = 1;
    fake_broker_cut(&f->broker);
    client_fixture_run(f, 5 * OX_SEC);
    assert_int_equal(in.failed, OX_E_ACCESS);
    assert_int_equal(inbox_ack(f, c, &(struct ox_message_id){.ledger = 1, .batch_index = -1}, false), OX_E_DISCONNECTED);
    inbox_close(f, c, &in);
}

static void test_reader_goes_on_behind_its_last_message(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    config.non_durable = true;
    add_texts(f, 0, 3);
    struct ox_client_consumer *c = inbox_open(f, &config);
    fake_broker_cut(&f->broker);
    add_texts(f, 3, 5);
    client_fixture_run(f, 5 * OX_SEC);
    assert_string_equal(in.text.data, "m0,m1,m2,m3,m4");
    inbox_close(f, c, &in);
}

static void test_reader_starts_where_told(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    config.non_durable = config.has_start = true;
    config.start = (struct ox_message_id){.ledger = FAKE_LEDGER, .entry = 1, .partition = -1, .batch_index = -1};
    add_texts(f, 0, 4);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_string_equal(in.text.data, "m2,m3");
    inbox_close(f, c, &in);
    config = inbox_config(&in);
    config.non_durable = config.has_start = config.start_inclusive = true;
    config.start = (struct ox_message_id){.ledger = FAKE_LEDGER, .entry = 1, .partition = -1, .batch_index = -1};
    c = inbox_open(f, &config);
    assert_string_equal(in.text.data, "m1,m2,m3");
    inbox_close(f, c, &in);
}

static void test_consumer_seeks(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    struct ox_client_call call = {0};
    add_texts(f, 0, 5);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_int_equal(inbox_ack(f, c, &in.ids[4], true), OX_OK);
    struct ox_message_id to = in.ids[3];
    inbox_clear(&in);
    ox_op_init(&call.op, f->loop, ox_sim_done, "seek");
    ox_client_consumer_seek(c, &call, &to);
    assert_int_equal(ox_sim_wait(f->sim, &call.op), OX_OK);
    client_fixture_run(f, OX_SEC);
    assert_string_equal(in.text.data, "m3,m4");
    inbox_clear(&in);
    ox_client_consumer_seek_time(c, &call, 0);
    assert_int_equal(ox_sim_wait(f->sim, &call.op), OX_OK);
    client_fixture_run(f, OX_SEC);
    assert_string_equal(in.text.data, "m0,m1,m2,m3,m4");
    inbox_close(f, c, &in);
}

static void test_consumer_asks_for_the_last_id(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    struct ox_client_last_id last = {0};
    add_texts(f, 0, 5);
    struct ox_client_consumer *c = inbox_open(f, &config);
    ox_op_init(&last.call.op, f->loop, ox_sim_done, "last id");
    ox_client_consumer_last_id(c, &last);
    assert_int_equal(ox_sim_wait(f->sim, &last.call.op), OX_OK);
    assert_int_equal(last.id.entry, 4);
    assert_false(last.has_mark_delete);
    inbox_close(f, c, &in);
}

static void test_consumer_redelivers(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    add_texts(f, 0, 3);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_int_equal(inbox_ack(f, c, &in.ids[1], false), OX_OK);
    inbox_clear(&in);
    ox_client_consumer_redeliver(c, NULL, 0);
    client_fixture_run(f, OX_SEC);
    assert_string_equal(in.text.data, "m0,m2");
    inbox_close(f, c, &in);
}

static void test_consumer_reports_damage(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    struct ox_buf bad = client_fixture_entry("broken", 0), copy;
    uint8_t *bytes;
    copy = ox_buf_new(bad.len, &bytes);
    memcpy(bytes, bad.data, bad.len);
    bytes[bad.len - 1] ^= 1;
    ox_buf_unref(&bad);
    fake_broker_add(&f->broker, copy, 1);
    add_texts(f, 1, 2);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_int_equal(in.damaged, 1);
    assert_int_equal(in.damage, OX_E_CHECKSUM);
    assert_string_equal(in.text.data, "m1");
    inbox_close(f, c, &in);
}

static void test_consumer_takes_no_batch_that_claims_more_than_it_holds(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    Oxpb__MessageMetadata metadata = OXPB__MESSAGE_METADATA__INIT;
    Oxpb__SingleMessageMetadata single = OXPB__SINGLE_MESSAGE_METADATA__INIT;
    struct ox_str batch = {0};
    char name[] = "p";
    ox_batch_add(&batch, &single, "x", 1);
    metadata.producer_name = name;
    metadata.has_num_messages_in_batch = 1;
    metadata.num_messages_in_batch = INT32_MAX;
    fake_broker_add(&f->broker, ox_entry_build(&metadata, batch.data, batch.len), 1);
    ox_str_fini(&batch);
    struct ox_client_consumer *c = inbox_open(f, &config);
    assert_int_equal(in.damaged, 1);
    assert_int_equal(in.count, 0);
    inbox_close(f, c, &in);
}

static void test_consumer_unsubscribes(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    struct ox_client_call call = {0};
    struct ox_client_consumer *c = inbox_open(f, &config);
    ox_op_init(&call.op, f->loop, ox_sim_done, "unsubscribe");
    ox_client_consumer_unsubscribe(c, &call);
    assert_int_equal(ox_sim_wait(f->sim, &call.op), OX_OK);
    fake_broker_unload(&f->broker);
    client_fixture_run(f, 5 * OX_SEC);
    assert_int_equal(f->broker.subscribes, 1);
    inbox_close(f, c, &in);
}

static void test_consumer_close_ends_calls(void **state)
{
    struct client_fixture *f = *state;
    struct inbox in;
    struct ox_client_consumer_config config = inbox_config(&in);
    struct ox_client_call call = {0};
    add_texts(f, 0, 1);
    struct ox_client_consumer *c = inbox_open(f, &config);
    ox_op_init(&call.op, f->loop, ox_sim_done, "ack");
    ox_client_consumer_ack(c, &call, &in.ids[0], false);
    inbox_close(f, c, &in);
    assert_int_equal(ox_sim_wait(f->sim, &call.op), OX_E_CLOSED);
}

#define WITH_CLIENT(fn) cmocka_unit_test_setup_teardown(fn, client_fixture_setup, client_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLIENT(test_consumer_receives_and_acknowledges),
        WITH_CLIENT(test_consumer_permits_are_bounded),
        WITH_CLIENT(test_consumer_opens_batches),
        WITH_CLIENT(test_consumer_tells_batch_indexes),
        WITH_CLIENT(test_consumer_waits_only_for_what_is_left_of_a_batch),
        WITH_CLIENT(test_consumer_cumulative_within_a_batch),
        WITH_CLIENT(test_consumer_attaches_again),
        WITH_CLIENT(test_consumer_fails_for_good),
        WITH_CLIENT(test_reader_goes_on_behind_its_last_message),
        WITH_CLIENT(test_reader_starts_where_told),
        WITH_CLIENT(test_consumer_seeks),
        WITH_CLIENT(test_consumer_asks_for_the_last_id),
        WITH_CLIENT(test_consumer_redelivers),
        WITH_CLIENT(test_consumer_reports_damage),
        WITH_CLIENT(test_consumer_takes_no_batch_that_claims_more_than_it_holds),
        WITH_CLIENT(test_consumer_unsubscribes),
        WITH_CLIENT(test_consumer_close_ends_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
