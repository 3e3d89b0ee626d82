// session_test.c - a connection from CONNECT to its end: producing, consuming, keep-alive, back-pressure, what a crash leaves.
#include "pulsar/fixture.h"

#include <stdio.h>
#include <string.h>

#include "pulsar/session.h"
#include "wire/message_build.h"

#define T "persistent://public/default/t"

static void send_many(struct peer *p, uint64_t producer_id, int first, int count)
{
    char text[16];
    for (int i = first; i < first + count; i++) {
        snprintf(text, sizeof text, "m%d", i);
        peer_frame(p, peer_send_frame(producer_id, (uint64_t)i, text));
    }
}

static void expect_receipts(struct peer *p, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        Oxpb__BaseCommand *c = peer_next(p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
        assert_int_equal(c->send_receipt->sequence_id, i);
    }
}

static void expect_messages(struct peer *p, int first, int count)
{
    char text[16];
    for (int i = first; i < first + count; i++) {
        snprintf(text, sizeof text, "m%d", i);
        peer_expect_message(p, text);
    }
}

static void test_produce_and_consume_end_to_end(void **state)
{
    (void)state;
    struct door d;
    struct peer p, c;
    door_init(&d);
    peer_connect(&d, &p);
    peer_connect(&d, &c);
    peer_open_producer(&p, 1, T);
    peer_open_consumer(&c, 1, T, "s");
    send_many(&p, 1, 0, 100);
    expect_receipts(&p, 0, 100);
    peer_flow(&c, 1, 30);
    expect_messages(&c, 0, 30);
    peer_expect_nothing(&c);
    peer_flow(&c, 1, 100);
    expect_messages(&c, 30, 70);
    struct ox_message_id last = {.ledger = (int64_t)c.frames[c.taken - 1].command->message->message_id->ledger_id,
                                 .entry = 99};
    peer_ack(&c, 1, last, true, 77);
    Oxpb__BaseCommand *answer = peer_next(&c, OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE);
    assert_int_equal(answer->ack_response->request_id, 77);
    assert_false(answer->ack_response->has_error);
    peer_fini(&p);
    peer_fini(&c);
    door_fini(&d);
}

static void test_broken_connection_frees_name_and_subscription(void **state)
{
    (void)state;
    struct door d;
    struct peer p, q;
    door_init(&d);
    peer_connect(&d, &p);
    peer_producer(&p, 1, T, "me", 0);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    peer_open_consumer(&p, 1, T, "s");
    send_many(&p, 1, 0, 3);
    expect_receipts(&p, 0, 3);
    peer_flow(&p, 1, 10);
    expect_messages(&p, 0, 3);
    peer_fini(&p);
    peer_connect(&d, &q);
    peer_producer(&q, 1, T, "me", 1);
    peer_next(&q, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    peer_open_consumer(&q, 1, T, "s");
    peer_flow(&q, 1, 10);
    expect_messages(&q, 0, 3);
    peer_fini(&q);
    door_fini(&d);
}

static void test_silent_holder_is_thrown_out_for_a_second_consumer(void **state)
{
    (void)state;
    struct door d;
    struct peer holder, second;
    door_init(&d);
    peer_connect(&d, &holder);
    peer_connect(&d, &second);
    peer_open_consumer(&holder, 1, T, "s");
    peer_subscribe(&second, 1, T, "s");
    peer_expect_error(&second, 2001, OXPB__SERVER_ERROR__ConsumerBusy);
    holder.silent = true;
    peer_subscribe(&second, 2, T, "s");
    Oxpb__BaseCommand *c = peer_next(&second, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    assert_int_equal(c->success->request_id, 2002);
    peer_expect_end(&holder);
    peer_fini(&holder);
    peer_fini(&second);
    door_fini(&d);
}

static void test_dead_peer_is_closed_after_two_intervals(void **state)
{
    (void)state;
    struct door d;
    struct peer p, q;
    door_init(&d);
    peer_connect(&d, &p);
    peer_connect(&d, &q);
    p.silent = true;
    ox_sim_run_for(d.rig.sim, 55 * OX_SEC);
    assert_non_null(p.stream);
    ox_sim_run_for(d.rig.sim, 40 * OX_SEC);
    assert_null(p.stream);
    assert_non_null(q.stream);
    peer_fini(&p);
    peer_fini(&q);
    door_fini(&d);
}

static void test_crash_and_resend_store_each_message_once(void **state)
{
    (void)state;
    struct door d;
    struct peer p, c;
    door_init(&d);
    peer_connect(&d, &p);
    peer_producer(&p, 1, T, "raw", 0);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    send_many(&p, 1, 0, 20);
    expect_receipts(&p, 0, 20);
    door_crash(&d);
    peer_expect_end(&p);
    peer_fini(&p);
    peer_connect(&d, &p);
    peer_producer(&p, 1, T, "raw", 1);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    send_many(&p, 1, 10, 20);
    expect_receipts(&p, 10, 20);
    peer_connect(&d, &c);
    peer_open_consumer(&c, 1, T, "s");
    peer_flow(&c, 1, 100);
    expect_messages(&c, 0, 30);
    peer_expect_nothing(&c);
    peer_fini(&p);
    peer_fini(&c);
    door_fini(&d);
}

static void test_unload_closes_producers_and_consumers_and_keeps_the_connection(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    struct ox_op op;
    door_init(&d);
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, T);
    peer_open_consumer(&p, 2, T, "s");
    rig_op(&d.rig, &op);
    ox_topic_unload(&d.rig.shard, &op, T);
    assert_int_equal(rig_wait(&d.rig, &op), OX_OK);
    Oxpb__BaseCommand *c = peer_next(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER);
    assert_int_equal(c->close_consumer->consumer_id, 2);
    assert_true(c->close_consumer->request_id == UINT64_MAX);
    c = peer_next(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER);
    assert_int_equal(c->close_producer->producer_id, 1);
    send_many(&p, 1, 0, 3); // on their way when the broker closed it: dropped
    peer_expect_nothing(&p);
    peer_open_producer(&p, 1, T);
    send_many(&p, 1, 0, 3);
    expect_receipts(&p, 0, 3);
    peer_fini(&p);
    door_fini(&d);
}

static void slow_appends(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    (void)r;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_APPEND)
        fault->before_ns = OX_SEC / 4;
}

static void test_publishing_beyond_the_limit_stops_reading_and_goes_on(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    d.rig.shard.config.topic_inflight_bytes = 1000;
    d.rig.on_place = slow_appends;
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, T);
    send_many(&p, 1, 0, 200);
    uint64_t most = 0;
    for (int i = 0; i < 100; i++) {
        ox_sim_run_for(d.rig.sim, OX_SEC / 20);
        most = OX_MAX(most, d.rig.shard.inflight_bytes);
    }
    assert_true(most > 500 && most < 1200);
    expect_receipts(&p, 0, 200);
    d.rig.on_place = NULL;
    peer_fini(&p);
    door_fini(&d);
}

static void test_deaf_consumer_stops_dispatch_and_gets_all_later(void **state)
{
    (void)state;
    struct door d;
    struct peer p, c;
    door_init(&d);
    peer_connect(&d, &p);
    peer_connect(&d, &c);
    peer_open_producer(&p, 1, T);
    peer_open_consumer(&c, 1, T, "s");
    char big[20001];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    for (uint64_t i = 0; i < 200; i++)
        peer_frame(&p, peer_send_frame(1, i, big));
    expect_receipts(&p, 0, 200);
    c.deaf = true;
    ox_stream_pause(c.stream);
    peer_flow(&c, 1, 1000);
    rig_settle(&d.rig);
    struct ox_topic *t = ox_topic_find(&d.rig.shard, T);
    assert_true(t->out.messages > 20 && t->out.messages < 120); // about the high mark, of 4 MB in all
    c.deaf = false;
    ox_stream_resume(c.stream);
    for (int i = 0; i < 200; i++)
        peer_expect_message(&c, big);
    peer_fini(&p);
    peer_fini(&c);
    door_fini(&d);
}

// The stream tells of its drain only when it was beyond the mark.
static void test_consumer_that_is_held_right_at_the_high_mark_goes_on(void **state)
{
    (void)state;
    struct door d;
    struct peer p, c;
    char big[20001];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    door_init(&d);
    peer_connect(&d, &p);
    peer_connect(&d, &c);
    peer_open_producer(&p, 1, T);
    peer_open_consumer(&c, 1, T, "s");
    for (uint64_t i = 0; i < 30; i++)
        peer_frame(&p, peer_send_frame(1, i, big));
    expect_receipts(&p, 0, 30);
    c.deaf = true;
    ox_stream_pause(c.stream);
    peer_flow(&c, 1, 20);
    rig_settle(&d.rig);
    OX_LIST_EACH(&d.pulsar.sessions, link) {
        struct ox_stream *stream = CONTAINER_OF(link, struct session, link)->stream;
        stream->high_bytes = stream->queued_bytes ? stream->queued_bytes : stream->high_bytes;
        stream->low_bytes = stream->high_bytes / 2;
    }
    peer_flow(&c, 1, 10);
    ox_sim_run_for(d.rig.sim, OX_SEC);
    c.deaf = false;
    ox_stream_resume(c.stream);
    for (int i = 0; i < 30; i++)
        peer_expect_message(&c, big);
    peer_fini(&p);
    peer_fini(&c);
    door_fini(&d);
}

static void test_old_client_gets_messages_without_checksum(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    struct ox_message_view view;
    Oxpb__CommandConnect c = OXPB__COMMAND_CONNECT__INIT;
    char version[] = "old";
    door_init(&d);
    peer_open(&d, &p);
    c.client_version = version;
    c.has_protocol_version = 1;
    c.protocol_version = 5;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__CONNECT, &c.base);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__CONNECTED)->connected->protocol_version, 5);
    peer_open_producer(&p, 1, T);
    peer_open_consumer(&p, 1, T, "s");
    send_many(&p, 1, 0, 1);
    expect_receipts(&p, 0, 1);
    peer_flow(&p, 1, 1);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__MESSAGE);
    assert_int_equal(ox_message_parse(peer_body(&p), true, &view), OX_OK);
    assert_false(view.has_checksum);
    peer_fini(&p);
    door_fini(&d);
}

static void test_client_that_leaves_while_its_requests_are_open(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    for (int i = 0; i < 30; i++) {
        char topic[64];
        snprintf(topic, sizeof topic, "persistent://public/default/gone-%d", i);
        peer_connect(&d, &p);
        peer_producer(&p, 1, topic, NULL, 0);
        peer_subscribe(&p, 1, topic, "s");
        ox_sim_run_for(d.rig.sim, (uint64_t)i * OX_MS / 4);
        peer_fini(&p);
    }
    rig_settle(&d.rig);
    assert_int_equal(d.rig.shard.producers_count.value, 0);
    assert_int_equal(d.rig.shard.consumers_count.value, 0);
    assert_int_equal(d.pulsar.connections.value, 0);
    door_fini(&d);
}

static void fail_appends(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    (void)r;
    (void)ledger;
    if (call == OX_SIM_CALL_APPEND && entry >= 2)
        fault->err = OX_E_NO_SPACE;
}

static void test_full_disk_is_told_and_loses_nothing(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_producer(&p, 1, T, "raw", 0);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    d.rig.on_place = fail_appends;
    send_many(&p, 1, 0, 4);
    expect_receipts(&p, 0, 2);
    Oxpb__BaseCommand *c = peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_ERROR);
    assert_int_equal(c->send_error->sequence_id, 2);
    assert_int_equal(c->send_error->error, OXPB__SERVER_ERROR__PersistenceError);
    assert_non_null(strstr(c->send_error->message, "disk is full"));
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER);
    d.rig.on_place = NULL;
    peer_producer(&p, 1, T, "raw", 1);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    send_many(&p, 1, 2, 2);
    expect_receipts(&p, 2, 2);
    peer_open_consumer(&p, 1, T, "s");
    peer_flow(&p, 1, 10);
    expect_messages(&p, 0, 4);
    peer_fini(&p);
    door_fini(&d);
}

// A reader seeks, and comes back with whatever start it had: the place sought counts.
static void test_reader_comes_back_to_where_it_sought(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, T);
    send_many(&p, 1, 0, 6);
    expect_receipts(&p, 0, 6);
    Oxpb__CommandSubscribe c = OXPB__COMMAND_SUBSCRIBE__INIT;
    char topic[] = T, name[] = "reader-x";
    c.topic = topic;
    c.subscription = name;
    c.consumer_id = 1;
    c.request_id = 9;
    c.has_durable = 1;
    c.durable = 0;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SUBSCRIBE, &c.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    Oxpb__CommandSeek seek = OXPB__COMMAND_SEEK__INIT;
    seek.consumer_id = 1;
    seek.request_id = 10;
    seek.has_message_publish_time = 1;
    seek.message_publish_time = 1000 + 35;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SEEK, &seek.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SUBSCRIBE, &c.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    peer_flow(&p, 1, 10);
    expect_messages(&p, 4, 2);
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SEEK, &seek.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    assert_non_null(ox_subscription_find(ox_topic_find(&d.rig.shard, T), name));
    ox_sim_run_for(d.rig.sim, 300 * OX_SEC);
    assert_null(ox_subscription_find(ox_topic_find(&d.rig.shard, T), name));
    peer_fini(&p);
    door_fini(&d);
}

static void test_too_many_connections_are_refused(void **state)
{
    (void)state;
    struct door d;
    struct peer p, q;
    door_init(&d);
    d.pulsar.config.connections_max = 1;
    peer_connect(&d, &p);
    peer_open(&d, &q);
    peer_expect_end(&q);
    assert_int_equal(d.pulsar.connections_refused.value, 1);
    peer_open_producer(&p, 1, T);
    peer_fini(&p);
    peer_fini(&q);
    door_fini(&d);
}

static void test_client_that_never_reads_is_closed(void **state)
{
    (void)state;
    struct door d;
    struct peer p, c;
    door_init(&d);
    peer_connect(&d, &p);
    peer_connect(&d, &c);
    peer_open_producer(&p, 1, T);
    c.deaf = true;
    ox_stream_pause(c.stream);
    Oxpb__CommandLookupTopic lookup = OXPB__COMMAND_LOOKUP_TOPIC__INIT;
    char *topic = ox_malloc(1001);
    memset(topic, 'x', 1000);
    memcpy(topic, "x://", 4); // refused with a text that repeats it
    lookup.topic = topic;
    for (int i = 0; i < 8000; i++)
        peer_command(&c, OXPB__BASE_COMMAND__TYPE__LOOKUP, &lookup.base);
    lookup.topic = NULL;
    ox_free(topic);
    ox_sim_run_for(d.rig.sim, 190 * OX_SEC);
    assert_int_equal(d.pulsar.connections.value, 1);
    peer_expect_end(&c);
    peer_fini(&p);
    peer_fini(&c);
    door_fini(&d);
}

// The session that was accepted last.
static struct session *last_session(struct door *d)
{
    return CONTAINER_OF(ox_list_last(&d->pulsar.sessions), struct session, link);
}

// How many appends are handed over before others have their turn.
struct shares {
    struct ox_turn_hook hook;
    unsigned count, most;
};

static void share_over(struct ox_turn_hook *hook)
{
    struct shares *s = CONTAINER_OF(hook, struct shares, hook);
    s->most = OX_MAX(s->most, s->count);
    s->count = 0;
}

static void share_append(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    struct shares *s = r->ctx;
    (void)ledger, (void)entry, (void)fault;
    if (call != OX_SIM_CALL_APPEND)
        return;
    s->count++;
    ox_turn_end(r->loop, &s->hook);
}

static void test_fast_client_is_handled_in_shares(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    static char payload[8192];
    memset(payload, 'x', sizeof payload - 1);
    door_init(&d);
    d.pulsar.config.turn_bytes = 3 * sizeof payload;
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, T);
    struct session *s = last_session(&d);
    struct ox_topic *t = ox_topic_find(&d.rig.shard, T);
    s->blocked++; // it is not read while much gathers
    session_throttle(s);
    for (uint64_t i = 0; i < 100; i++)
        peer_frame(&p, peer_send_frame(1, i, payload));
    rig_settle(&d.rig);
    assert_int_equal(t->appends, 0);
    s->blocked--;
    session_throttle(s);
    struct shares shares = {.hook.run = share_over};
    d.rig.ctx = &shares;
    d.rig.on_place = share_append;
    rig_settle(&d.rig);
    d.rig.on_place = NULL;
    assert_int_equal(shares.most, 3);
    expect_receipts(&p, 0, 100);
    peer_fini(&p);
    door_fini(&d);
}

static void peer_wait_producer(struct peer *p, uint64_t producer_id)
{
    char topic[] = T;
    Oxpb__CommandProducer c = OXPB__COMMAND_PRODUCER__INIT;
    c.topic = topic;
    c.producer_id = producer_id;
    c.request_id = 1000 + producer_id;
    c.has_producer_access_mode = 1;
    c.producer_access_mode = OXPB__PRODUCER_ACCESS_MODE__WaitForExclusive;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__PRODUCER, &c.base);
}

static void test_producers_that_wait_for_their_turn_keep_nobody_from_being_read(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    d.pulsar.config.requests_max = 2;
    peer_connect(&d, &p);
    for (uint64_t id = 1; id <= 5; id++) {
        peer_wait_producer(&p, id);
        Oxpb__CommandProducerSuccess *a = peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS)->producer_success;
        assert_int_equal(a->producer_ready, id == 1);
    }
    assert_int_equal(last_session(&d)->requests, 0);
    peer_frame(&p, peer_send_frame(1, 0, "m0"));
    expect_receipts(&p, 0, 1);
    peer_fini(&p);
    rig_settle(&d.rig);
    struct ox_topic *t = ox_topic_find(&d.rig.shard, T);
    assert_true(t->producers.count == 0 && t->queued.count == 0 && t->pins == 0);
    door_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_produce_and_consume_end_to_end),
        cmocka_unit_test(test_broken_connection_frees_name_and_subscription),
        cmocka_unit_test(test_silent_holder_is_thrown_out_for_a_second_consumer),
        cmocka_unit_test(test_dead_peer_is_closed_after_two_intervals),
        cmocka_unit_test(test_crash_and_resend_store_each_message_once),
        cmocka_unit_test(test_unload_closes_producers_and_consumers_and_keeps_the_connection),
        cmocka_unit_test(test_publishing_beyond_the_limit_stops_reading_and_goes_on),
        cmocka_unit_test(test_deaf_consumer_stops_dispatch_and_gets_all_later),
        cmocka_unit_test(test_consumer_that_is_held_right_at_the_high_mark_goes_on),
        cmocka_unit_test(test_old_client_gets_messages_without_checksum),
        cmocka_unit_test(test_client_that_leaves_while_its_requests_are_open),
        cmocka_unit_test(test_full_disk_is_told_and_loses_nothing),
        cmocka_unit_test(test_reader_comes_back_to_where_it_sought),
        cmocka_unit_test(test_too_many_connections_are_refused),
        cmocka_unit_test(test_client_that_never_reads_is_closed),
        cmocka_unit_test(test_fast_client_is_handled_in_shares),
        cmocka_unit_test(test_producers_that_wait_for_their_turn_keep_nobody_from_being_read),
    };
    return cmocka_run_group_tests_name("pulsar.session", tests, NULL, NULL);
}
