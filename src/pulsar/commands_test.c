// commands_test.c - each command and its answer.
#include "pulsar/fixture.h"

#include <stdio.h>
#include <string.h>

#include "wire/message_build.h"

#define T "persistent://public/default/t"

static Oxpb__CommandPartitionedTopicMetadataResponse *partitions_of(struct peer *p, const char *topic, bool create)
{
    Oxpb__CommandPartitionedTopicMetadata c = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA__INIT;
    c.topic = (char *)(uintptr_t)topic;
    c.request_id = 5;
    c.has_metadata_auto_creation_enabled = 1;
    c.metadata_auto_creation_enabled = create;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA, &c.base);
    Oxpb__BaseCommand *answer = peer_next(p, OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE);
    assert_int_equal(answer->partition_metadata_response->request_id, 5);
    return answer->partition_metadata_response;
}

static void test_partition_metadata(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    Oxpb__CommandPartitionedTopicMetadataResponse *r = partitions_of(&p, T, true);
    assert_int_equal(r->response, OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Success);
    assert_true(r->has_partitions && r->partitions == 0);
    r = partitions_of(&p, T, false);
    assert_int_equal(r->response, OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Failed);
    assert_int_equal(r->error, OXPB__SERVER_ERROR__TopicNotFound);
    peer_open_producer(&p, 1, T);
    assert_int_equal(partitions_of(&p, T, false)->response,
                     OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Success);
    assert_int_equal(partitions_of(&p, "persistent://public/none/t", true)->error, OXPB__SERVER_ERROR__TopicNotFound);
    assert_int_equal(partitions_of(&p, "bogus://public/default/t", true)->error, OXPB__SERVER_ERROR__InvalidTopicName);
    peer_fini(&p);
    door_fini(&d);
}

static void test_partitioned_topics_are_made_where_that_is_the_setting(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    d.rig.shard.config.auto_topic_partitioned = true;
    d.rig.shard.config.default_partitions = 3;
    peer_connect(&d, &p);
    assert_int_equal(partitions_of(&p, T, true)->partitions, 3);
    d.rig.shard.config.auto_topic_partitioned = false;
    assert_int_equal(partitions_of(&p, T, true)->partitions, 3);
    peer_open_producer(&p, 1, T "-partition-2");
    peer_frame(&p, peer_send_frame(1, 0, "x"));
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    peer_open_consumer(&p, 1, T "-partition-2", "s");
    peer_flow(&p, 1, 1);
    assert_int_equal(peer_expect_message(&p, "x").partition, 2);
    peer_producer(&p, 2, T "-partition-3", NULL, 0);
    peer_expect_error(&p, 1002, OXPB__SERVER_ERROR__TopicNotFound);
    peer_producer(&p, 3, T, NULL, 0);
    peer_expect_error(&p, 1003, OXPB__SERVER_ERROR__NotAllowedError);
    peer_fini(&p);
    door_fini(&d);
}

static Oxpb__CommandLookupTopicResponse *lookup_of(struct peer *p, const char *topic)
{
    Oxpb__CommandLookupTopic c = OXPB__COMMAND_LOOKUP_TOPIC__INIT;
    c.topic = (char *)(uintptr_t)topic;
    c.request_id = 6;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__LOOKUP, &c.base);
    return peer_next(p, OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE)->lookup_topic_response;
}

static void test_lookup_knows_no_other_listener(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    Oxpb__CommandLookupTopic c = OXPB__COMMAND_LOOKUP_TOPIC__INIT;
    c.topic = (char *)(uintptr_t)T;
    c.advertised_listener_name = (char *)(uintptr_t) "outside";
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__LOOKUP, &c.base);
    Oxpb__CommandLookupTopicResponse *r = peer_next(&p, OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE)->lookup_topic_response;
    assert_int_equal(r->error, OXPB__SERVER_ERROR__ServiceNotReady);
    assert_non_null(strstr(r->message, "outside"));
    peer_fini(&p);
    door_fini(&d);
}

static void test_lookup_answers_with_this_broker(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    Oxpb__CommandLookupTopicResponse *r = lookup_of(&p, T);
    assert_int_equal(r->response, OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Connect);
    assert_string_equal(r->broker_service_url, "pulsar://127.0.0.1:6650");
    assert_true(r->authoritative);
    r = lookup_of(&p, "persistent://public/none/t");
    assert_int_equal(r->response, OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Failed);
    assert_int_equal(r->error, OXPB__SERVER_ERROR__TopicNotFound);
    assert_int_equal(lookup_of(&p, "persistent://public")->error, OXPB__SERVER_ERROR__InvalidTopicName);
    d.rig.shard.config.auto_topic_creation = false;
    assert_int_equal(lookup_of(&p, T)->error, OXPB__SERVER_ERROR__TopicNotFound);
    peer_fini(&p);
    door_fini(&d);
}

static void test_producer_answers(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_producer(&p, 1, T, "me", 0);
    assert_string_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS)->producer_success->producer_name,
                        "me");
    peer_producer(&p, 1, T, "another", 0);
    assert_string_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS)->producer_success->producer_name,
                        "me");
    peer_producer(&p, 2, T, "me", 0);
    peer_expect_error(&p, 1002, OXPB__SERVER_ERROR__ProducerBusy);
    peer_producer(&p, 3, "persistent://public/default/", NULL, 0);
    peer_expect_error(&p, 1003, OXPB__SERVER_ERROR__InvalidTopicName);
    peer_producer(&p, 4, "non-persistent://public/default/t", NULL, 0);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    Oxpb__CommandProducer c = OXPB__COMMAND_PRODUCER__INIT;
    char topic[] = T;
    c.topic = topic;
    c.producer_id = 5;
    c.request_id = 1005;
    c.has_producer_access_mode = 1;
    c.producer_access_mode = OXPB__PRODUCER_ACCESS_MODE__Exclusive;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__PRODUCER, &c.base);
    peer_expect_error(&p, 1005, OXPB__SERVER_ERROR__ProducerFenced);
    Oxpb__CommandCloseProducer close = OXPB__COMMAND_CLOSE_PRODUCER__INIT;
    close.producer_id = 1;
    close.request_id = 9;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER, &close.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER, &close.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    peer_fini(&p);
    door_fini(&d);
}

static void test_receipts_come_before_the_answer_to_a_close(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, T);
    for (uint64_t i = 0; i < 50; i++)
        peer_frame(&p, peer_send_frame(1, i, "x"));
    Oxpb__CommandCloseProducer close = OXPB__COMMAND_CLOSE_PRODUCER__INIT;
    close.producer_id = 1;
    close.request_id = 9;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER, &close.base);
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT)->send_receipt->sequence_id, i);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS)->success->request_id, 9);
    peer_fini(&p);
    door_fini(&d);
}

static void subscribe_as(struct peer *p, uint64_t consumer_id, Oxpb__CommandSubscribe__SubType type, bool compacted,
                         bool create, const char *topic)
{
    Oxpb__CommandSubscribe c = OXPB__COMMAND_SUBSCRIBE__INIT;
    char name[] = "s";
    c.topic = (char *)(uintptr_t)topic;
    c.subscription = name;
    c.sub_type = type;
    c.consumer_id = consumer_id;
    c.request_id = 2000 + consumer_id;
    c.has_read_compacted = 1;
    c.read_compacted = compacted;
    c.has_force_topic_creation = 1;
    c.force_topic_creation = create;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__SUBSCRIBE, &c.base);
}

static void test_subscribe_answers(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    subscribe_as(&p, 1, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive, false, false, T);
    peer_expect_error(&p, 2001, OXPB__SERVER_ERROR__TopicNotFound);
    subscribe_as(&p, 1, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Shared, true, true, T);
    peer_expect_error(&p, 2001, OXPB__SERVER_ERROR__NotAllowedError);
    subscribe_as(&p, 1, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive, false, true, T);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    subscribe_as(&p, 1, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive, false, true, T);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    subscribe_as(&p, 2, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Shared, false, true, T);
    peer_expect_error(&p, 2002, OXPB__SERVER_ERROR__ConsumerBusy);
    subscribe_as(&p, 2, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive, false, true, T);
    peer_expect_error(&p, 2002, OXPB__SERVER_ERROR__ConsumerBusy);
    peer_subscribe(&p, 3, T, "");
    peer_expect_error(&p, 2003, OXPB__SERVER_ERROR__NotAllowedError);
    peer_fini(&p);
    door_fini(&d);
}

static struct ox_message_id fill_and_read(struct peer *p, int count, int wanted)
{
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    char text[16];
    peer_open_producer(p, 1, T);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "m%d", i);
        peer_frame(p, peer_send_frame(1, (uint64_t)i, text));
        peer_next(p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    }
    peer_open_consumer(p, 1, T, "s");
    peer_flow(p, 1, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "m%d", i);
        struct ox_message_id got = peer_expect_message(p, text);
        if (i == wanted)
            id = got;
    }
    return id;
}

static void test_seek_closes_the_consumer_then_succeeds(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    struct ox_message_id third = fill_and_read(&p, 6, 3);
    Oxpb__CommandSeek c = OXPB__COMMAND_SEEK__INIT;
    Oxpb__MessageIdData id = OXPB__MESSAGE_ID_DATA__INIT;
    c.consumer_id = 1;
    c.request_id = 30;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SEEK, &c.base);
    peer_expect_error(&p, 30, OXPB__SERVER_ERROR__MetadataError);
    id.ledger_id = (uint64_t)third.ledger;
    id.entry_id = (uint64_t)third.entry;
    c.message_id = &id;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SEEK, &c.base);
    assert_true(peer_next(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER)->close_consumer->request_id == UINT64_MAX);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS)->success->request_id, 30);
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SEEK, &c.base);
    peer_expect_error(&p, 30, OXPB__SERVER_ERROR__MetadataError);
    peer_open_consumer(&p, 1, T, "s");
    peer_flow(&p, 1, 10);
    peer_expect_message(&p, "m3");
    peer_expect_message(&p, "m4");
    peer_fini(&p);
    door_fini(&d);
}

static void test_redelivery_carries_the_epoch(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    struct ox_message_id first = fill_and_read(&p, 3, 0);
    peer_ack(&p, 1, first, false, 0);
    Oxpb__CommandRedeliverUnacknowledgedMessages c = OXPB__COMMAND_REDELIVER_UNACKNOWLEDGED_MESSAGES__INIT;
    c.consumer_id = 1;
    c.has_consumer_epoch = 1;
    c.consumer_epoch = 4;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__REDELIVER_UNACKNOWLEDGED_MESSAGES, &c.base);
    peer_expect_nothing(&p);
    peer_flow(&p, 1, 10);
    peer_expect_message(&p, "m1");
    assert_int_equal(p.frames[p.taken - 1].command->message->consumer_epoch, 4);
    assert_int_equal(p.frames[p.taken - 1].command->message->redelivery_count, 0);
    peer_expect_message(&p, "m2");
    peer_fini(&p);
    door_fini(&d);
}

static void test_last_message_id_and_mark_delete(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    struct ox_message_id second = fill_and_read(&p, 4, 1);
    peer_ack(&p, 1, second, true, 40);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE);
    Oxpb__CommandGetLastMessageId c = OXPB__COMMAND_GET_LAST_MESSAGE_ID__INIT;
    c.consumer_id = 1;
    c.request_id = 41;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID, &c.base);
    Oxpb__CommandGetLastMessageIdResponse *r =
        peer_next(&p, OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID_RESPONSE)->get_last_message_id_response;
    assert_int_equal(r->request_id, 41);
    assert_int_equal(r->last_message_id->entry_id, 3);
    assert_int_equal(r->last_message_id->batch_index, -1);
    assert_int_equal(r->consumer_mark_delete_position->entry_id, 1);
    c.consumer_id = 99;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID, &c.base);
    peer_expect_error(&p, 41, OXPB__SERVER_ERROR__MetadataError);
    peer_fini(&p);
    door_fini(&d);
}

static void test_unsubscribe_and_closes(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_open_consumer(&p, 1, T, "s");
    Oxpb__CommandUnsubscribe u = OXPB__COMMAND_UNSUBSCRIBE__INIT;
    u.consumer_id = 1;
    u.request_id = 50;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__UNSUBSCRIBE, &u.base);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS)->success->request_id, 50);
    assert_null(ox_subscription_find(ox_topic_find(&d.rig.shard, T), "s"));
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__UNSUBSCRIBE, &u.base);
    peer_expect_error(&p, 50, OXPB__SERVER_ERROR__MetadataError);
    Oxpb__CommandCloseConsumer c = OXPB__COMMAND_CLOSE_CONSUMER__INIT;
    c.consumer_id = 1;
    c.request_id = 51;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER, &c.base);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS)->success->request_id, 51);
    peer_fini(&p);
    door_fini(&d);
}

static void test_unknown_consumers_are_ignored_where_nothing_waits(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_flow(&p, 7, 5);
    peer_ack(&p, 7, OX_MESSAGE_ID_NONE, false, 0);
    Oxpb__CommandRedeliverUnacknowledgedMessages r = OXPB__COMMAND_REDELIVER_UNACKNOWLEDGED_MESSAGES__INIT;
    r.consumer_id = 7;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__REDELIVER_UNACKNOWLEDGED_MESSAGES, &r.base);
    peer_expect_nothing(&p);
    peer_ack(&p, 7, OX_MESSAGE_ID_NONE, false, 60);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE)->ack_response->error,
                     OXPB__SERVER_ERROR__ConsumerNotFound);
    Oxpb__CommandConsumerStats s = OXPB__COMMAND_CONSUMER_STATS__INIT;
    s.request_id = 61;
    s.consumer_id = 7;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__CONSUMER_STATS, &s.base);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__CONSUMER_STATS_RESPONSE)->consumer_stats_response->error_code,
                     OXPB__SERVER_ERROR__ConsumerNotFound);
    peer_fini(&p);
    door_fini(&d);
}

static void test_acks_that_name_nothing_have_no_effect(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    struct ox_message_id beyond = fill_and_read(&p, 3, 2);
    beyond.entry = 100;
    peer_ack(&p, 1, beyond, true, 70);
    assert_false(peer_next(&p, OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE)->ack_response->has_error);
    beyond.ledger = 99999;
    peer_ack(&p, 1, beyond, false, 71);
    assert_false(peer_next(&p, OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE)->ack_response->has_error);
    struct ox_subscription_stats stats;
    ox_subscription_stats(ox_subscription_find(ox_topic_find(&d.rig.shard, T), "s"), &stats);
    assert_int_equal(stats.backlog_entries, 3);
    peer_fini(&p);
    door_fini(&d);
}

static void test_permits_count_messages_of_batches(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, T);
    peer_open_consumer(&p, 1, T, "s");
    Oxpb__CommandSend send = OXPB__COMMAND_SEND__INIT;
    send.producer_id = 1;
    struct ox_buf entry = rig_entry("raw", 0, "ten messages", 10);
    peer_frame(&p, ox_send_wrap(&send, entry));
    peer_frame(&p, ox_send_wrap(&send, entry));
    ox_buf_unref(&entry);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    peer_flow(&p, 1, 1);
    peer_expect_message(&p, "ten messages");
    Oxpb__CommandConsumerStats s = OXPB__COMMAND_CONSUMER_STATS__INIT;
    s.request_id = 61;
    s.consumer_id = 1;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__CONSUMER_STATS, &s.base);
    Oxpb__CommandConsumerStatsResponse *r =
        peer_next(&p, OXPB__BASE_COMMAND__TYPE__CONSUMER_STATS_RESPONSE)->consumer_stats_response;
    assert_int_equal((int64_t)r->available_permits, -9);
    assert_string_equal(r->type, "Exclusive");
    peer_flow(&p, 1, 9);
    peer_expect_nothing(&p);
    peer_flow(&p, 1, 1);
    peer_expect_message(&p, "ten messages");
    peer_fini(&p);
    door_fini(&d);
}

static Oxpb__CommandGetTopicsOfNamespaceResponse *topics_of(struct peer *p, const char *ns, const char *hash)
{
    Oxpb__CommandGetTopicsOfNamespace c = OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE__INIT;
    c.request_id = 80;
    c.namespace_ = (char *)(uintptr_t)ns;
    c.topics_hash = (char *)(uintptr_t)hash;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__GET_TOPICS_OF_NAMESPACE, &c.base);
    return peer_next(p, OXPB__BASE_COMMAND__TYPE__GET_TOPICS_OF_NAMESPACE_RESPONSE)->get_topics_of_namespace_response;
}

static void test_topics_of_a_namespace(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    Oxpb__CommandGetTopicsOfNamespaceResponse *r = topics_of(&p, "public/default", NULL);
    assert_int_equal(r->n_topics, 0);
    assert_string_equal(r->topics_hash, "00000000");
    assert_int_equal(topics_of(&p, "public/none", NULL)->n_topics, 0);
    peer_open_producer(&p, 1, T " u");
    peer_open_producer(&p, 2, T);
    peer_open_producer(&p, 3, "persistent://public/default/__system");
    r = topics_of(&p, "public/default", NULL);
    assert_int_equal(r->n_topics, 2);
    assert_string_equal(r->topics[0], T);
    assert_string_equal(r->topics[1], T " u");
    char hash[9];
    snprintf(hash, sizeof hash, "%s", r->topics_hash);
    r = topics_of(&p, "public/default", hash);
    assert_false(r->changed);
    assert_int_equal(r->n_topics, 0);
    peer_fini(&p);
    door_fini(&d);
}

static void test_what_is_not_supported_says_so(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    char topic[] = T;
    Oxpb__CommandGetSchema get = OXPB__COMMAND_GET_SCHEMA__INIT;
    get.request_id = 1;
    get.topic = topic;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__GET_SCHEMA, &get.base);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__GET_SCHEMA_RESPONSE)->get_schema_response->error_code,
                     OXPB__SERVER_ERROR__TopicNotFound);
    Oxpb__CommandNewTxn txn = OXPB__COMMAND_NEW_TXN__INIT;
    txn.request_id = 2;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__NEW_TXN, &txn.base);
    assert_int_equal(peer_next(&p, OXPB__BASE_COMMAND__TYPE__NEW_TXN_RESPONSE)->new_txn_response->error,
                     OXPB__SERVER_ERROR__NotAllowedError);
    Oxpb__CommandTcClientConnectRequest tc = OXPB__COMMAND_TC_CLIENT_CONNECT_REQUEST__INIT;
    tc.request_id = 3;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__TC_CLIENT_CONNECT_REQUEST, &tc.base);
    assert_true(peer_next(&p, OXPB__BASE_COMMAND__TYPE__TC_CLIENT_CONNECT_RESPONSE)->tc_client_connect_response->has_error);
    Oxpb__CommandEndTxn end = OXPB__COMMAND_END_TXN__INIT;
    end.request_id = 4;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__END_TXN, &end.base);
    assert_true(peer_next(&p, OXPB__BASE_COMMAND__TYPE__END_TXN_RESPONSE)->end_txn_response->has_error);
    Oxpb__CommandPing ping = OXPB__COMMAND_PING__INIT;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__PING, &ping.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__PONG);
    peer_fini(&p);
    door_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partition_metadata),
        cmocka_unit_test(test_partitioned_topics_are_made_where_that_is_the_setting),
        cmocka_unit_test(test_lookup_answers_with_this_broker),
        cmocka_unit_test(test_lookup_knows_no_other_listener),
        cmocka_unit_test(test_producer_answers),
        cmocka_unit_test(test_receipts_come_before_the_answer_to_a_close),
        cmocka_unit_test(test_subscribe_answers),
        cmocka_unit_test(test_seek_closes_the_consumer_then_succeeds),
        cmocka_unit_test(test_redelivery_carries_the_epoch),
        cmocka_unit_test(test_last_message_id_and_mark_delete),
        cmocka_unit_test(test_unsubscribe_and_closes),
        cmocka_unit_test(test_unknown_consumers_are_ignored_where_nothing_waits),
        cmocka_unit_test(test_acks_that_name_nothing_have_no_effect),
        cmocka_unit_test(test_permits_count_messages_of_batches),
        cmocka_unit_test(test_topics_of_a_namespace),
        cmocka_unit_test(test_what_is_not_supported_says_so),
    };
    return cmocka_run_group_tests_name("pulsar.commands", tests, NULL, NULL);
}
