// live_test.c - settings that change under a running broker (a whole one, simulated): each live key reaches the part that uses it, the others wait.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ledger/store/store_int.h"
#include "ledger/store/table_memory.h"
#include "metastore/memory.h"
#include "move/storage/storage_int.h"
#include "oxbowd/broker.h"
#include "sim/sim.h"

#define LIMIT_NS (60 * OX_SEC)

struct rig {
    struct ox_sim *sim;
    struct ox_sim_node *node;
    struct ox_meta_memory_tree *tree;
    struct ox_memory_table *table;
    struct ox_config config;
    struct ox_log log;
    struct ox_str lines;
    struct oxbowd broker;
    bool ended;
};

static void rig_line(void *ctx, const char *line, unsigned len)
{
    ox_str_add(&((struct rig *)ctx)->lines, line, len);
}

static uint64_t rig_ms(void *ctx)
{
    (void)ctx;
    return 0;
}

static void rig_ended(struct oxbowd *b, enum ox_err err)
{
    struct rig *r = (struct rig *)b->owner;
    assert_int_equal(err, OX_OK);
    ox_str_fini(&b->trouble);
    r->ended = true;
}

static bool rig_is_running(void *ctx)
{
    return ((struct rig *)ctx)->broker.running;
}

static bool rig_has_ended(void *ctx)
{
    return ((struct rig *)ctx)->ended;
}

static void rig_start(struct rig *r)
{
    struct oxbowd *b = &r->broker;
    *b = (struct oxbowd){.loop = ox_sim_loop(r->node),
                         .fs = ox_sim_fs(r->node),
                         .net = ox_sim_net(r->node),
                         .take_meta = ox_meta_memory_new(ox_sim_loop(r->node), r->tree, NULL),
                         .table = ox_memory_table_source(r->table),
                         .log = &r->log,
                         .config = &r->config,
                         .data_dir = "/data",
                         .cwd = "/",
                         .ended = rig_ended,
                         .owner = r};
    r->ended = false;
    oxbowd_start(b);
    assert_true(ox_sim_run(r->sim, rig_is_running, r, LIMIT_NS));
}

static void rig_init(struct rig *r)
{
    *r = (struct rig){.log = {.level = OX_LOG_INFO, .write = rig_line, .wall_ms = rig_ms, .ctx = r}};
    r->sim = ox_sim_new(1, NULL);
    r->node = ox_sim_node_new(r->sim, "broker");
    r->tree = ox_meta_memory_tree_new();
    r->table = ox_memory_table_new();
    ox_config_init(&r->config);
    rig_start(r);
}

static void rig_stop(struct rig *r)
{
    oxbowd_stop(&r->broker);
    assert_true(ox_sim_run(r->sim, rig_has_ended, r, LIMIT_NS));
}

static void rig_fini(struct rig *r)
{
    rig_stop(r);
    ox_config_fini(&r->config);
    ox_str_fini(&r->lines);
    ox_sim_free(r->sim);
    ox_meta_memory_tree_free(r->tree);
    ox_memory_table_free(r->table);
}

// Whether a line of the log has that in it since this was asked last.
static bool rig_says(struct rig *r, const char *what)
{
    bool said = strstr(ox_str_get(&r->lines), what) != NULL;
    ox_str_truncate(&r->lines, 0);
    return said;
}

static void rig_set(struct rig *r, const char *name, const char *value)
{
    struct ox_kv record = {0};
    ox_kv_copy(&record, &r->broker.live.dynamic);
    if (value)
        ox_kv_set(&record, name, value);
    else
        ox_kv_remove(&record, name);
    live_record(&r->broker.live, &record);
    ox_kv_fini(&record);
}

// ---- each key

// What the parts of the broker use.
struct snapshot {
    struct ox_broker_config broker;
    struct ox_ml_settings logs;
    struct ox_storage_config storage;
    struct ox_store_config store;
    struct ox_pulsar_config pulsar;
    uint64_t cache_bytes;
    int64_t shutdown_ms;
    int level;
};

static void snapshot_take(struct rig *r, struct snapshot *s)
{
    struct oxbowd *b = &r->broker;
    memset(s, 0, sizeof *s);
    memcpy(&s->broker, &b->shard.config, sizeof s->broker);
    memcpy(&s->logs, &b->mledgers.settings, sizeof s->logs);
    memcpy(&s->storage, &b->storage->p.config, sizeof s->storage);
    memcpy(&s->store, &store_of(ox_router_place(&b->router, 0))->cfg, sizeof s->store);
    memcpy(&s->pulsar, &b->pulsar.config, sizeof s->pulsar);
    s->cache_bytes = b->mledgers.cache_bytes;
    s->shutdown_ms = b->config->brokerShutdownTimeoutMs;
    s->level = (int)b->log->level;
}

// Another value than the default: one that is a candidate in that turn; NULL: there are no more.
static char *other_value(const struct ox_config_key *key, int turn)
{
    int64_t candidates[3] = {0, key->min, key->max};
    switch (key->type) {
    case OX_CONFIG_BOOL: return turn ? NULL : ox_strdup(strcmp(key->default_text, "true") == 0 ? "false" : "true");
    case OX_CONFIG_ENUM:
        return turn || !key->values[turn] ? NULL : ox_strdup(key->values[strcmp(key->values[0], key->default_text) == 0]);
    case OX_CONFIG_STRING: return turn ? NULL : ox_strdup("Shared");
    case OX_CONFIG_INT:
    case OX_CONFIG_FLOAT: break;
    }
    if (turn == 3)
        return NULL;
    candidates[0] = OX_MIN((int64_t)strtod(key->default_text, NULL) + 1, key->max);
    return ox_asprintf("%lld", (long long)candidates[turn]);
}

// Whether what the broker uses changes with a key.
static bool key_reaches(struct rig *r, const struct ox_config_key *key, const struct snapshot *before)
{
    bool reached = false;
    char *value;
    for (int turn = 0; !reached && (value = other_value(key, turn)); turn++) {
        struct snapshot after;
        rig_set(r, key->name, value);
        snapshot_take(r, &after);
        reached = memcmp(before, &after, sizeof after) != 0;
        ox_free(value);
    }
    rig_set(r, key->name, NULL);
    return reached;
}

static void test_live_each_key_reaches_the_running_broker(void **state)
{
    (void)state;
    struct rig r;
    struct snapshot before, same;
    rig_init(&r);
    r.broker.live.changed(&r.broker.live, &r.config); // filled anew from the same
    snapshot_take(&r, &before);
    size_t count = 0;
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++) {
        if (!ox_config_keys[i].live)
            continue;
        count++;
        if (!key_reaches(&r, &ox_config_keys[i], &before))
            fail_msg("%s is live, but nothing in the running broker changes with it", ox_config_keys[i].name);
        snapshot_take(&r, &same);
        if (memcmp(&before, &same, sizeof same) != 0)
            fail_msg("%s: the former value does not come back", ox_config_keys[i].name);
    }
    assert_true(count > 60);
    rig_fini(&r);
}

// ---- where values come from

static void given_set(struct rig *r, struct ox_config *given, const char *pair)
{
    struct ox_str why = {0};
    ox_config_copy(given, &r->broker.live.given);
    assert_int_equal(ox_config_set_pair(given, pair, &why), OX_OK);
}

static void test_live_given_again_changes_live_keys_and_names_the_others(void **state)
{
    (void)state;
    struct rig r;
    struct ox_config given;
    rig_init(&r);
    ox_config_init(&given);
    given_set(&r, &given, "maxConsumersPerTopic=7");
    rig_says(&r, "");
    assert_int_equal(live_give(&r.broker.live, &given), OX_OK);
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 7);
    assert_true(rig_says(&r, "settings.changed key=maxConsumersPerTopic from=\"0\" to=\"7\""));
    given_set(&r, &given, "clusterName=other");
    assert_int_equal(live_give(&r.broker.live, &given), OX_OK);
    assert_string_equal(r.broker.shard.config.cluster, "standalone");
    assert_true(rig_says(&r, "settings.needs_restart key=clusterName in_force=\"standalone\" given=\"other\""));
    ox_config_fini(&given);
    rig_fini(&r);
}

static void test_live_a_contradiction_changes_nothing(void **state)
{
    (void)state;
    struct rig r;
    struct ox_config given;
    rig_init(&r);
    ox_config_init(&given);
    given_set(&r, &given, "maxMessageSize=67108864"); // more than a segment takes
    given.maxConsumersPerTopic = 7;
    rig_says(&r, "");
    assert_int_equal(live_give(&r.broker.live, &given), OX_E_INVALID);
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 0);
    assert_true(rig_says(&r, "settings.contradiction why=\"storeSegmentSizeMB=64: too small"));
    ox_config_fini(&given);
    rig_fini(&r);
}

static void test_live_the_record_is_stronger_and_what_is_wrong_in_it_has_no_effect(void **state)
{
    (void)state;
    struct rig r;
    struct ox_config given;
    rig_init(&r);
    ox_config_init(&given);
    rig_set(&r, "maxConsumersPerTopic", "9");
    given_set(&r, &given, "maxConsumersPerTopic=7");
    assert_int_equal(live_give(&r.broker.live, &given), OX_OK);
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 9);
    rig_says(&r, "");
    rig_set(&r, "maxConsumersPerTopic", "many");
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 7);
    assert_true(rig_says(&r, "settings.record.ignored why=\"maxConsumersPerTopic: \\\"many\\\" is not a whole number"));
    rig_set(&r, "brokerServicePort", "1");
    assert_true(rig_says(&r, "brokerServicePort is no key that can be changed here"));
    rig_set(&r, "allowAutoTopicCreation", "TRUE but not quite"); // Pulsar takes any word but "true" for off
    assert_false(r.broker.shard.config.auto_topic_creation);
    ox_config_fini(&given);
    rig_fini(&r);
}

static void test_live_what_contradicts_in_the_record_leaves_the_rest_of_it_in_force(void **state)
{
    (void)state;
    struct rig r;
    struct ox_config given;
    rig_init(&r);
    ox_config_init(&given);
    rig_set(&r, "maxMessageSize", "67108864"); // allowed once, with larger segments
    rig_says(&r, "");
    rig_set(&r, "maxConsumersPerTopic", "9");
    assert_true(rig_says(&r, "settings.record.ignored why=\"storeSegmentSizeMB=64: too small"));
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 9);
    assert_int_equal(r.broker.shard.config.message_bytes_max, 5242880);
    given_set(&r, &given, "maxProducersPerTopic=7");
    assert_int_equal(live_give(&r.broker.live, &given), OX_OK);
    assert_int_equal(r.broker.shard.config.policies.max_producers, 7);
    ox_config_fini(&given);
    rig_fini(&r);
}

static void test_live_what_only_the_start_knows_stays(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_set(&r, "maxConsumersPerTopic", "9");
    assert_string_equal(r.broker.pulsar.config.advertised, "127.0.0.1");
    assert_string_equal(r.broker.shard.config.service_url, r.broker.service_url);
    rig_fini(&r);
}

// ---- the node

static enum ox_err node_set(struct rig *r, const char *name, const char *value)
{
    struct ox_admin_settings port = dynamic_port(&r->broker.dynamic);
    struct ox_admin_setting_put p = {.name = name, .value = value};
    ox_op_init(&p.op, r->broker.loop, ox_sim_done, "test");
    port.put(port.ctx, &p);
    enum ox_err err = ox_sim_wait(r->sim, &p.op);
    assert_true(p.why.len > 0 || err == OX_OK);
    ox_str_fini(&p.why);
    return err;
}

static void node_write(struct rig *r, const char *text)
{
    struct ox_meta_put put = {0};
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    ox_op_init(&put.op, r->broker.loop, ox_sim_done, "test");
    ox_meta_put(r->broker.meta, &put, DYNAMIC_PATH, value, OX_META_ANY, 0);
    ox_buf_unref(&value);
    assert_int_equal(ox_sim_wait(r->sim, &put.op), OX_OK);
    ox_free(put.path);
    ox_sim_run_for(r->sim, OX_SEC);
}

static char *node_text(struct rig *r)
{
    struct ox_meta_get get = {0};
    ox_op_init(&get.op, r->broker.loop, ox_sim_done, "test");
    ox_meta_get(r->broker.meta, &get, DYNAMIC_PATH);
    assert_int_equal(ox_sim_wait(r->sim, &get.op), OX_OK);
    char *text = ox_strndup((const char *)get.value.data, get.value.len);
    ox_buf_unref(&get.value);
    return text;
}

static void test_dynamic_set_holds_at_once_and_after_a_restart(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(node_set(&r, "maxConsumersPerTopic", "5"), OX_OK);
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 5);
    assert_int_equal(node_set(&r, "bookieClusterSwitch.migrationConcurrency", "3"), OX_OK);
    assert_int_equal(node_set(&r, "maxConsumersPerTopic", "-1"), OX_E_INVALID);
    assert_int_equal(node_set(&r, "maxConsumersPerTopic", "\xff"), OX_E_INVALID);
    assert_int_equal(node_set(&r, "clusterName", "x"), OX_E_NOT_FOUND);
    assert_int_equal(node_set(&r, "noSuchKey", NULL), OX_E_NOT_FOUND);
    rig_stop(&r);
    ox_config_fini(&r.config);
    ox_config_init(&r.config);
    rig_start(&r);
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 5);
    assert_int_equal(r.broker.storage->p.config.concurrency, 3); // made before the record was read
    assert_int_equal(node_set(&r, "maxConsumersPerTopic", NULL), OX_OK);
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 0);
    rig_fini(&r);
}

static void test_dynamic_follows_the_node_and_keeps_what_others_have_in_it(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    node_write(&r, "{\"superUserRoles\":\"me\",\"maxProducersPerTopic\":\"4\",\"odd\":17}");
    assert_int_equal(r.broker.shard.config.policies.max_producers, 4);
    assert_int_equal(node_set(&r, "maxConsumersPerTopic", "5"), OX_OK);
    char *text = node_text(&r);
    assert_string_equal(
        text, "{\"superUserRoles\":\"me\",\"maxProducersPerTopic\":\"4\",\"odd\":17,\"maxConsumersPerTopic\":\"5\"}");
    ox_free(text);
    rig_says(&r, "");
    node_write(&r, "[not an object]");
    assert_true(rig_says(&r, "settings.record.corrupt path=/admin/configuration"));
    assert_int_equal(r.broker.shard.config.policies.max_producers, 4);
    struct ox_admin_settings port = dynamic_port(&r.broker.dynamic);
    struct ox_admin_setting_put p = {.name = "maxConsumersPerTopic", .value = "6"};
    ox_op_init(&p.op, r.broker.loop, ox_sim_done, "test");
    port.put(port.ctx, &p);
    assert_int_equal(ox_sim_wait(r.sim, &p.op), OX_E_CORRUPT); // not written over
    assert_non_null(strstr(ox_str_get(&p.why), "/admin/configuration"));
    ox_str_fini(&p.why);
    rig_fini(&r);
}

static void test_dynamic_two_at_once_both_hold(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_admin_settings port = dynamic_port(&r.broker.dynamic);
    struct ox_admin_setting_put a = {.name = "maxConsumersPerTopic", .value = "5"},
                                b = {.name = "maxProducersPerTopic", .value = "6"};
    ox_op_init(&a.op, r.broker.loop, ox_sim_done, "test");
    ox_op_init(&b.op, r.broker.loop, ox_sim_done, "test");
    port.put(port.ctx, &a);
    port.put(port.ctx, &b);
    assert_int_equal(ox_sim_wait(r.sim, &a.op), OX_OK);
    assert_int_equal(ox_sim_wait(r.sim, &b.op), OX_OK);
    assert_int_equal(r.broker.shard.config.policies.max_consumers, 5);
    assert_int_equal(r.broker.shard.config.policies.max_producers, 6);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_each_key_reaches_the_running_broker),
        cmocka_unit_test(test_live_given_again_changes_live_keys_and_names_the_others),
        cmocka_unit_test(test_live_a_contradiction_changes_nothing),
        cmocka_unit_test(test_live_the_record_is_stronger_and_what_is_wrong_in_it_has_no_effect),
        cmocka_unit_test(test_live_what_contradicts_in_the_record_leaves_the_rest_of_it_in_force),
        cmocka_unit_test(test_live_what_only_the_start_knows_stays),
        cmocka_unit_test(test_dynamic_set_holds_at_once_and_after_a_restart),
        cmocka_unit_test(test_dynamic_follows_the_node_and_keeps_what_others_have_in_it),
        cmocka_unit_test(test_dynamic_two_at_once_both_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
