// topics_test.c - topics as clients see them: lists, patterns, watches, non-persistent ones, automatic creation, names that are bad.
#include "pulsar/fixture.h"

#include <stdio.h>
#include <string.h>

#define P "persistent://public/default/"
#define N "non-persistent://public/default/"

// ---- lists

static Oxpb__BaseCommand *list_ask(struct peer *p, int mode, const char *pattern, Oxpb__BaseCommand__Type answer)
{
    Oxpb__CommandGetTopicsOfNamespace c = OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE__INIT;
    char ns[] = "public/default";
    c.request_id = 80;
    c.namespace_ = ns;
    c.has_mode = 1;
    c.mode = (Oxpb__CommandGetTopicsOfNamespace__Mode)mode;
    c.topics_pattern = (char *)(uintptr_t)pattern;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__GET_TOPICS_OF_NAMESPACE, &c.base);
    return peer_next(p, answer);
}

static Oxpb__CommandGetTopicsOfNamespaceResponse *list_of(struct peer *p, int mode, const char *pattern)
{
    return list_ask(p, mode, pattern, OXPB__BASE_COMMAND__TYPE__GET_TOPICS_OF_NAMESPACE_RESPONSE)->get_topics_of_namespace_response;
}

static void test_lists_by_domain_and_pattern(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, P "a1");
    peer_open_producer(&p, 2, P "a2");
    peer_open_producer(&p, 3, N "a3");
    assert_int_equal(list_of(&p, 0, NULL)->n_topics, 2);
    Oxpb__CommandGetTopicsOfNamespaceResponse *r = list_of(&p, 1, NULL);
    assert_int_equal(r->n_topics, 1);
    assert_string_equal(r->topics[0], N "a3");
    assert_false(r->filtered);
    r = list_of(&p, 2, "persistent://public/default/a[13]"); // the domain of a pattern does not count
    assert_int_equal(r->n_topics, 2);
    assert_true(r->filtered);
    assert_int_equal(list_of(&p, 2, "public/default/a")->n_topics, 0); // whole names only
    assert_int_equal(list_of(&p, 2, "public/default/(?!a1).*")->n_topics, 2);
    r = list_of(&p, 2, "public/default/the-client-applies-patterns-that-are-longer-than-this.*");
    assert_int_equal(r->n_topics, 3);
    assert_false(r->filtered);
    list_ask(&p, 2, "(broken", OXPB__BASE_COMMAND__TYPE__ERROR);
    peer_fini(&p);
    door_fini(&d);
}

// ---- watches

static void watch(struct peer *p, uint64_t id, const char *pattern, const char *hash)
{
    Oxpb__CommandWatchTopicList c = OXPB__COMMAND_WATCH_TOPIC_LIST__INIT;
    char ns[] = "public/default";
    c.request_id = 90 + id;
    c.watcher_id = id;
    c.namespace_ = ns;
    c.topics_pattern = (char *)(uintptr_t)pattern;
    c.topics_hash = (char *)(uintptr_t)hash;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__WATCH_TOPIC_LIST, &c.base);
}

static Oxpb__CommandWatchTopicListSuccess *watch_opened(struct peer *p)
{
    return peer_next(p, OXPB__BASE_COMMAND__TYPE__WATCH_TOPIC_LIST_SUCCESS)->watch_topic_list_success;
}

static Oxpb__CommandWatchTopicUpdate *watch_update(struct peer *p)
{
    return peer_next(p, OXPB__BASE_COMMAND__TYPE__WATCH_TOPIC_UPDATE)->watch_topic_update;
}

static void watch_close(struct peer *p, uint64_t id)
{
    Oxpb__CommandWatchTopicListClose c = OXPB__COMMAND_WATCH_TOPIC_LIST_CLOSE__INIT;
    c.request_id = 99;
    c.watcher_id = id;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__WATCH_TOPIC_LIST_CLOSE, &c.base);
    peer_next(p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
}

static enum ox_err topic_delete(struct door *d, const char *topic)
{
    struct ox_topic_delete del = {.force = true};
    struct ox_topic_name name;
    assert_int_equal(ox_topic_name_parse(&name, topic), OX_OK);
    rig_op(&d->rig, &del.op);
    ox_topic_delete(&d->rig.shard, &del, &name);
    ox_topic_name_fini(&name);
    return rig_wait(&d->rig, &del.op);
}

static void test_watch_tells_what_comes_and_goes(void **state)
{
    (void)state;
    struct door d;
    struct peer p, maker;
    char hash[16];
    door_init(&d);
    peer_connect(&d, &p);
    peer_connect(&d, &maker);
    peer_open_producer(&maker, 1, P "w0");
    watch(&p, 7, "public/default/w.*", NULL);
    Oxpb__CommandWatchTopicListSuccess *opened = watch_opened(&p);
    assert_int_equal(opened->watcher_id, 7);
    assert_int_equal(opened->n_topic, 1);
    assert_string_equal(opened->topic[0], P "w0");
    snprintf(hash, sizeof hash, "%s", opened->topics_hash);
    peer_open_producer(&maker, 2, P "other");
    peer_open_producer(&maker, 3, N "w-not-stored");
    peer_expect_nothing(&p);
    peer_open_producer(&maker, 4, P "w1");
    Oxpb__CommandWatchTopicUpdate *u = watch_update(&p);
    assert_int_equal(u->watcher_id, 7);
    assert_int_equal(u->n_new_topics, 1);
    assert_string_equal(u->new_topics[0], P "w1");
    assert_int_equal(u->n_deleted_topics, 0);
    assert_string_not_equal(u->topics_hash, hash);
    assert_int_equal(topic_delete(&d, P "w1"), OX_OK);
    peer_next(&maker, OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER);
    u = watch_update(&p);
    assert_int_equal(u->n_deleted_topics, 1);
    assert_string_equal(u->deleted_topics[0], P "w1");
    assert_string_equal(u->topics_hash, hash);
    watch(&p, 8, "public/default/w.*", hash); // knows it already
    assert_int_equal(watch_opened(&p)->n_topic, 0);
    watch_close(&p, 7);
    watch_close(&p, 7);
    peer_open_producer(&maker, 5, P "w2");
    assert_int_equal(watch_update(&p)->watcher_id, 8);
    peer_expect_nothing(&p);
    watch(&p, 9, "(broken", NULL);
    peer_expect_error(&p, 99, OXPB__SERVER_ERROR__InvalidTopicName);
    watch(&p, 9, "a pattern that is longer than the fifty bytes which are allowed", NULL);
    peer_expect_error(&p, 99, OXPB__SERVER_ERROR__NotAllowedError);
    peer_fini(&p);
    peer_fini(&maker);
    door_fini(&d);
}

static void test_watch_whose_pattern_explodes_is_refused(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    door_init(&d);
    peer_connect(&d, &p);
    assert_int_equal(rig_topic_err(&d.rig, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", true), OX_OK);
    watch(&p, 1, "public/default/((x+x+)+y|t)", NULL);
    peer_expect_error(&p, 91, OXPB__SERVER_ERROR__InvalidTopicName);
    watch(&p, 1, "public/default/x+", NULL);
    assert_int_equal(watch_opened(&p)->n_topic, 1);
    watch_close(&p, 1);
    peer_fini(&p);
    door_fini(&d);
}

static void test_watch_ends_with_its_connection(void **state)
{
    (void)state;
    struct door d;
    struct peer p, maker;
    door_init(&d);
    peer_connect(&d, &p);
    peer_connect(&d, &maker);
    for (uint64_t i = 0; i < 100; i++)
        watch(&p, i, ".*", NULL);
    for (uint64_t i = 0; i < 50; i++)
        watch_opened(&p);
    peer_fini(&p); // half of the answers are on their way
    peer_open_producer(&maker, 1, P "t");
    rig_settle(&d.rig);
    assert_int_equal(ox_map_count(&d.rig.shard.boards), 0);
    peer_fini(&maker);
    door_fini(&d);
}

// ---- non-persistent topics

static void test_nonpersistent_topic_over_the_wire(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    Oxpb__CommandGetLastMessageId last = OXPB__COMMAND_GET_LAST_MESSAGE_ID__INIT;
    Oxpb__CommandSeek seek = OXPB__COMMAND_SEEK__INIT;
    door_init(&d);
    peer_connect(&d, &p);
    peer_open_producer(&p, 1, N "t");
    peer_open_consumer(&p, 1, N "t", "s");
    peer_frame(&p, peer_send_frame(1, 0, "lost"));
    const Oxpb__MessageIdData *id = peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT)->send_receipt->message_id;
    assert_true(id->ledger_id == 0 && id->entry_id == 0);
    peer_flow(&p, 1, 5);
    peer_frame(&p, peer_send_frame(1, 1, "taken"));
    struct ox_message_id got = OX_MESSAGE_ID_NONE;
    for (int i = 0; i < 2; i++) {
        Oxpb__BaseCommand *command = p.taken < p.count ? p.frames[p.taken].command : NULL;
        rig_settle(&d.rig);
        command = p.frames[p.taken].command;
        if (command->type == OXPB__BASE_COMMAND__TYPE__MESSAGE)
            got = peer_expect_message(&p, "taken");
        else
            peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    }
    assert_true(got.ledger == 0 && got.entry == 0);
    peer_ack(&p, 1, got, false, 44);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE);
    last.consumer_id = 1;
    last.request_id = 45;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID, &last.base);
    peer_expect_error(&p, 45, OXPB__SERVER_ERROR__UnknownError);
    seek.consumer_id = 1;
    seek.request_id = 46;
    seek.has_message_publish_time = 1;
    peer_command(&p, OXPB__BASE_COMMAND__TYPE__SEEK, &seek.base);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    peer_fini(&p);
    door_fini(&d);
}

// ---- names and automatic creation

static Oxpb__ServerError lookup_error(struct peer *p, const char *topic)
{
    Oxpb__CommandLookupTopic c = OXPB__COMMAND_LOOKUP_TOPIC__INIT;
    c.topic = (char *)(uintptr_t)topic;
    c.request_id = 5;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__LOOKUP, &c.base);
    return peer_next(p, OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE)->lookup_topic_response->error;
}

static Oxpb__ServerError metadata_error(struct peer *p, const char *topic)
{
    Oxpb__CommandPartitionedTopicMetadata c = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA__INIT;
    c.topic = (char *)(uintptr_t)topic;
    c.request_id = 5;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA, &c.base);
    return peer_next(p, OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE)->partition_metadata_response->error;
}

static void expect_all_ways_in(struct peer *p, uint64_t *id, const char *topic, Oxpb__ServerError error)
{
    ++*id;
    assert_int_equal(lookup_error(p, topic), error);
    assert_int_equal(metadata_error(p, topic), error);
    peer_producer(p, *id, topic, NULL, 0);
    peer_expect_error(p, 1000 + *id, error);
    peer_subscribe(p, *id, topic, "s");
    peer_expect_error(p, 2000 + *id, error);
}

static void test_bad_names_are_refused_by_all_four_commands(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    uint64_t id = 0;
    static const char *const bad[] = {"",
                                      "persistent://public",
                                      "what://public/default/t",
                                      "persistent://public/default/",
                                      "public/default/a/b",
                                      "persistent://pub lic/default/t",
                                      "persistent:///default/t"};
    door_init(&d);
    peer_connect(&d, &p);
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        expect_all_ways_in(&p, &id, bad[i], OXPB__SERVER_ERROR__InvalidTopicName);
    peer_fini(&p);
    door_fini(&d);
}

static void test_topics_are_not_found_on_any_way_in_where_they_are_not_made(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    uint64_t id = 0;
    door_init(&d);
    d.rig.shard.config.auto_topic_creation = false;
    peer_connect(&d, &p);
    expect_all_ways_in(&p, &id, P "t", OXPB__SERVER_ERROR__TopicNotFound);
    expect_all_ways_in(&p, &id, P "t-partition-0", OXPB__SERVER_ERROR__TopicNotFound);
    expect_all_ways_in(&p, &id, N "t", OXPB__SERVER_ERROR__TopicNotFound);
    d.rig.shard.config.auto_topic_creation = true;
    expect_all_ways_in(&p, &id, "persistent://public/nowhere/t", OXPB__SERVER_ERROR__TopicNotFound);
    assert_int_equal(list_of(&p, 2, NULL)->n_topics, 0);
    peer_fini(&p);
    door_fini(&d);
}

static void test_names_may_have_any_characters_and_cross_nothing(void **state)
{
    (void)state;
    struct door d;
    struct peer p;
    static const char *const locals[] = {"t#1", "t%41", "tA", "t+u", "t u", "тема", "t%2Fu", "t&x=1?", "t\"q\""};
    static const char *const subscriptions[] = {"a/b", "x%2Fy", "x/y", "q#1", "name with space", "ключ", "p+q"};
    char topic[128], payload[16];
    door_init(&d);
    peer_connect(&d, &p);
    for (size_t i = 0; i < OX_COUNT(locals); i++) {
        snprintf(topic, sizeof topic, P "%s", locals[i]);
        peer_open_producer(&p, i + 1, topic);
        for (size_t k = 0; k < OX_COUNT(subscriptions); k++)
            peer_open_consumer(&p, i * 10 + k + 1, topic, subscriptions[k]);
        snprintf(payload, sizeof payload, "of %zu", i);
        peer_frame(&p, peer_send_frame(i + 1, 0, payload));
        peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    }
    assert_int_equal(list_of(&p, 0, NULL)->n_topics, OX_COUNT(locals));
    peer_fini(&p);
    door_crash(&d);
    peer_connect(&d, &p);
    for (size_t i = 0; i < OX_COUNT(locals); i++) {
        snprintf(topic, sizeof topic, P "%s", locals[i]);
        snprintf(payload, sizeof payload, "of %zu", i);
        for (size_t k = 0; k < OX_COUNT(subscriptions); k++) {
            peer_open_consumer(&p, i * 10 + k + 1, topic, subscriptions[k]);
            peer_flow(&p, i * 10 + k + 1, 5);
            peer_expect_message(&p, payload);
        }
        struct ox_topic *t = ox_topic_find(&d.rig.shard, topic);
        assert_int_equal(ox_map_count(&t->subscriptions), OX_COUNT(subscriptions));
    }
    peer_expect_nothing(&p);
    peer_fini(&p);
    door_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_by_domain_and_pattern),
        cmocka_unit_test(test_watch_tells_what_comes_and_goes),
        cmocka_unit_test(test_watch_whose_pattern_explodes_is_refused),
        cmocka_unit_test(test_watch_ends_with_its_connection),
        cmocka_unit_test(test_nonpersistent_topic_over_the_wire),
        cmocka_unit_test(test_bad_names_are_refused_by_all_four_commands),
        cmocka_unit_test(test_topics_are_not_found_on_any_way_in_where_they_are_not_made),
        cmocka_unit_test(test_names_may_have_any_characters_and_cross_nothing),
    };
    return cmocka_run_group_tests_name("pulsar.topics", tests, NULL, NULL);
}
