// kept_test.c - what is kept for brokers that would follow it: nodes as Pulsar writes them, where Pulsar looks for them, with members that nobody here knows; and bodies that are wrong.
#include "admin/rig_test.h"

#include <stdlib.h>
#include <time.h>

// The rig with a metadata store.
struct world {
    struct rig rig;
    struct ox_meta *meta;
    long status; // of the last answer
    const char *body;
};

static void world_done(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static void world_op(struct world *w, struct ox_op *op)
{
    ox_op_init(op, w->rig.loop, world_done, "test");
}

static void world_put(struct world *w, const char *path, const char *value)
{
    struct ox_meta_put put = {0};
    struct ox_buf buf = ox_buf_copy(value, strlen(value));
    world_op(w, &put.op);
    ox_meta_put(w->meta, &put, path, buf, OX_META_ANY, 0);
    ox_buf_unref(&buf);
    rig_run(&w->rig);
    assert_int_equal(put.op.err, OX_OK);
    ox_free(put.path);
}

static void world_start(struct world *w)
{
    struct ox_op op;
    *w = (struct world){0};
    rig_start(&w->rig);
    w->rig.shard.config.cluster = "c1";
    w->rig.shard.config.web_url = "http://127.0.0.1:8080";
    world_op(w, &op);
    ox_meta_open(w->rig.loop, &op, "memory:", &w->meta);
    rig_run(&w->rig);
    assert_int_equal(op.err, OX_OK);
    w->rig.shard.meta = w->meta;
    world_put(w, "/admin/clusters/c1", "{\"serviceUrl\":\"http://h:80\",\"later\":1}");
    world_put(w, "/admin/policies/t", "{\"allowedClusters\":[\"c1\"]}");
    world_put(
        w, "/admin/policies/t/n",
        "{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x80000000\",\"0xffffffff\"],\"numBundles\":2},\"later\":1}");
}

static void world_end(struct world *w)
{
    struct ox_op op;
    world_op(w, &op);
    ox_meta_close(w->meta, &op);
    rig_run(&w->rig);
    rig_end(&w->rig);
}

// A request whose answer has this status and this text in it.
static void expect(struct world *w, const char *method, const char *path, const char *body, long status, const char *says)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_asprintf(
        "%s /admin/v2/%s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%sGET /end HTTP/1.1\r\nHost: a\r\n\r\n",
        method, path, strlen(body), body);
    rig_expect(&w->rig, text, "no such resource on this broker\"}");
    const char *got = ox_str_get(&w->rig.got);
    w->status = strtol(got + 9, NULL, 10);
    w->body = strstr(got, "\r\n\r\n") + 4;
    if (w->status != status || !strstr(w->body, says))
        fail_msg("%s %s %s: %ld %s\nwanted: %ld %s", method, path, body, w->status, w->body, status, says);
    if (status >= 400)
        assert_non_null(strstr(w->body, "{\"reason\":\""));
}

// The node holds exactly this JSON; NULL: it is not there.
static void expect_json(struct world *w, const char *path, const char *wanted)
{
    struct ox_meta_get get = {0};
    world_op(w, &get.op);
    ox_meta_get(w->meta, &get, path);
    rig_run(&w->rig);
    assert_int_equal(get.op.err, wanted ? OX_OK : OX_E_NOT_FOUND);
    if (!wanted)
        return;
    json_t *have = json_loadb((const char *)get.value.data, get.value.len, 0, NULL), *want = json_loads(wanted, 0, NULL);
    if (!json_equal(have, want))
        fail_msg("%s: %.*s\nwanted: %s", path, (int)get.value.len, (const char *)get.value.data, wanted);
    json_decref(have);
    json_decref(want);
    ox_buf_unref(&get.value);
}

static void test_parts_of_a_cluster_lie_where_pulsar_looks(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "PUT", "clusters/c2", "{\"serviceUrl\":\"http://h:80\"}", 200, "");
    expect(&w, "POST", "clusters/c1/peers", "[\"c2\"]", 204, "");
    expect_json(&w, "/admin/clusters/c1", "{\"serviceUrl\":\"http://h:80\",\"later\":1,\"peerClusterNames\":[\"c2\"]}");
    expect(&w, "POST", "clusters/c1/failureDomains/d", "{\"brokers\":[\"b:1\"],\"later\":1}", 204, "");
    expect_json(&w, "/admin/clusters/c1/failureDomain/d", "{\"brokers\":[\"b:1\"]}");
    expect(&w, "POST", "clusters/c1/failureDomains/e", "{\"brokers\":[\"b:1\"]}", 409, "already exists in d");
    expect(&w, "POST", "clusters/c1/migrate?migrated=true", "{\"brokerServiceUrl\":\"pulsar://o:1\"}", 200, "");
    expect_json(&w, "/admin/clusters/c1/policies",
                "{\"migrated\":true,\"migratedClusterUrl\":{\"brokerServiceUrl\":\"pulsar://o:1\"}}");
    world_end(&w);
}

#define FAILOVER                                                                                               \
    "\"auto_failover_policy\":{\"policy_type\":\"min_available\",\"parameters\":{\"min_limit\":\"1\",\"usage_" \
    "threshold\":\"80\"}}"
#define ISOLATION "{\"namespaces\":[\"t/.*\"],\"primary\":[\"127.*\"],\"secondary\":[]," FAILOVER "}"

static void test_isolation_policies_are_matched_against_brokers(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "GET", "clusters/c1/namespaceIsolationPolicies/brokers", "", 404, "for cluster c1 does not exist");
    expect(&w, "POST", "clusters/c1/namespaceIsolationPolicies/p", ISOLATION, 204, "");
    expect_json(&w, "/admin/clusters/c1/namespaceIsolationPolicies", "{\"p\":" ISOLATION "}");
    expect(&w, "GET", "clusters/c1/namespaceIsolationPolicies/brokers", "", 200,
           "[{\"brokerName\":\"127.0.0.1:8080\",\"policyName\":\"p\",\"namespaceRegex\":[\"t/.*\"],\"primary\":true}]");
    expect(&w, "GET", "clusters/c1/namespaceIsolationPolicies/brokers/other:80", "", 200,
           "{\"brokerName\":\"other:80\",\"namespaceRegex\":[],\"primary\":false}");
    expect(&w, "PUT", "clusters/c2", "{\"serviceUrl\":\"http://h:80\"}", 200, "");
    expect(&w, "POST", "clusters/c2/failureDomains/d", "{\"brokers\":[]}", 204, "");
    expect(&w, "POST", "clusters/c2/namespaceIsolationPolicies/p", ISOLATION, 204, "");
    expect(&w, "DELETE", "clusters/c2", "", 412, "c2 has namespace isolation policies");
    expect(&w, "DELETE", "clusters/c2/namespaceIsolationPolicies/p", "", 204, "");
    expect(&w, "DELETE", "clusters/c2", "", 204, "");
    expect_json(&w, "/admin/clusters/c2", NULL);
    expect_json(&w, "/admin/clusters/c2/failureDomain/d", NULL);
    world_end(&w);
}

// A broker that finds local policies without bundles takes the namespace to have one.
static void test_local_policies_begin_with_the_bundles(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "POST", "namespaces/t/n/antiAffinity", "g 1", 204, "");
    expect_json(&w, "/admin/local-policies/t/n", "{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x80000000\",\"0xffffffff\"],\"numBundles\":2},\"migrated\":false,\"namespaceAntiAffinityGroup\":\"g 1\"}");
    expect(&w, "GET", "namespaces/t/n/antiAffinity", "", 200, "g 1");
    expect(&w, "GET", "namespaces/c1/antiAffinity/G%201?tenant=t", "", 200, "[\"t/n\"]");
    expect(&w, "POST", "namespaces/t/n/persistence/bookieAffinity", "{\"bookkeeperAffinityGroupPrimary\":5}", 204, "");
    expect(&w, "GET", "namespaces/t/n/persistence/bookieAffinity", "", 200, "{\"bookkeeperAffinityGroupPrimary\":\"5\"}");
    expect(&w, "DELETE", "namespaces/t/n/antiAffinity", "", 204, "");
    expect(&w, "DELETE", "namespaces/t/n/persistence/bookieAffinity", "", 204, "");
    expect(&w, "POST", "namespaces/t/n/migration", "true", 204, "");
    expect_json(&w, "/admin/local-policies/t/n", "{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x80000000\",\"0xffffffff\"],\"numBundles\":2},\"migrated\":true}");
    world_end(&w);
}

static void test_a_split_is_in_both_nodes(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "PUT", "namespaces/t/n/0x80000000_0xffffffff/split", "", 204, "");
    expect(&w, "PUT", "namespaces/t/n/0x00000000_0x80000000/split?splitAlgorithmName=specified_positions_divide",
           "[16,16,4294967295,2147483648,0,32]", 204, "");
    static const char bundles[] = "{\"boundaries\":[\"0x00000000\",\"0x00000010\",\"0x00000020\",\"0x80000000\","
                                  "\"0xbfffffff\",\"0xffffffff\"],\"numBundles\":5}";
    OX_CLEANUP(ox_free_ptr)
    char *local = ox_asprintf("{\"bundles\":%s,\"migrated\":false}", bundles);
    OX_CLEANUP(ox_free_ptr)
    char *policies = ox_asprintf("{\"bundles\":%s,\"later\":1}", bundles);
    expect_json(&w, "/admin/local-policies/t/n", local);
    expect_json(&w, "/admin/policies/t/n", policies);
    expect(&w, "PUT", "namespaces/t/n/0x80000000_0xffffffff/split", "", 412,
           "0x80000000_0xffffffff is none of the bundles of t/n");
    world_end(&w);
}

// A crash came between the two nodes: the same split brings them together again.
static void test_a_split_that_was_cut_off_is_finished_by_the_next(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    world_put(&w, "/admin/local-policies/t/n", "{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x40000000\",\"0x80000000\",\"0xffffffff\"],\"numBundles\":3},\"later\":1}");
    expect(&w, "PUT", "namespaces/t/n/0x00000000_0x80000000/split", "", 204, "");
    static const char both[] = "{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x40000000\",\"0x80000000\","
                               "\"0xffffffff\"],\"numBundles\":3},\"later\":1}";
    expect_json(&w, "/admin/local-policies/t/n", both);
    expect_json(&w, "/admin/policies/t/n", both);
    world_end(&w);
}

// A list of `count` texts or numbers, each made of its place. The caller's.
static char *list_of(const char *before, const char *format, unsigned count, const char *after)
{
    struct ox_str text = {0};
    ox_str_adds(&text, before);
    for (unsigned i = 1; i <= count; i++) {
        char one[32];
        snprintf(one, sizeof one, format, i);
        ox_str_addf(&text, "%s%s", i > 1 ? "," : "", one);
    }
    ox_str_adds(&text, after);
    return ox_str_take(&text);
}

static void test_a_split_into_too_many_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    const char *path = "namespaces/t/n/0x00000000_0x80000000/split?splitAlgorithmName=specified_positions_divide";
    OX_CLEANUP(ox_free_ptr)
    char *too_many = list_of("[", "%u", 4095, "]");
    expect(&w, "PUT", path, too_many, 412, "t/n would have 4097 bundles; 4096 are possible");
    expect_json(&w, "/admin/local-policies/t/n", NULL);
    OX_CLEANUP(ox_free_ptr)
    char *most = list_of("[", "%u", 4094, "]");
    expect(&w, "PUT", path, most, 204, "");
    expect(&w, "GET", "namespaces/t/n/bundles", "", 200, "\"0x00000ffe\",\"0x80000000\"");
    expect(&w, "PUT", "namespaces/t/n/HOT/split", "", 404, "Bundle range HOT not found");
    world_end(&w);
}

// Each text once, as in Pulsar's sets; and 30,000 of them are compared with 30,000 others in a moment, not in half a minute.
static void test_long_lists_hold_nobody_up(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    expect(&w, "PUT", "clusters/c2", "{\"serviceUrl\":\"http://h:80\"}", 200, "");
    expect(&w, "POST", "clusters/c1/peers", "[\"c2\",\"c2\"]", 204, "");
    expect(&w, "GET", "clusters/c1/peers", "", 200, "[\"c2\"]");
    expect(&w, "POST", "namespaces/t/n/replication", "[\"c1\",\"c1\"]", 200, "");
    expect(&w, "GET", "namespaces/t/n/replication", "", 200, "[\"c1\"]");
    expect(&w, "POST", "clusters/c1/failureDomains/twice", "{\"brokers\":[\"x\",\"x\"]}", 204, "");
    expect(&w, "GET", "clusters/c1/failureDomains/twice", "", 200, "{\"brokers\":[\"x\"]}");
    OX_CLEANUP(ox_free_ptr)
    char *some = list_of("{\"brokers\":[", "\"a%u\"", 30000, "]}");
    OX_CLEANUP(ox_free_ptr)
    char *others = list_of("{\"brokers\":[", "\"b%u\"", 30000, "]}");
    expect(&w, "POST", "clusters/c1/failureDomains/some", some, 204, "");
    clock_t began = clock();
    expect(&w, "POST", "clusters/c1/failureDomains/others", others, 204, "");
    assert_true((double)(clock() - began) / CLOCKS_PER_SEC < 5);
    expect(&w, "POST", "clusters/c1/failureDomains/more", "{\"brokers\":[\"b30000\"]}", 409,
           "[b30000] already exists in others");
    world_end(&w);
}

static void test_groups_quotas_and_racks_are_kept(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    world_put(&w, "/admin/resourcegroups/g", "{\"publishRateInMsgs\":1,\"later\":1}");
    expect(&w, "PUT", "resourcegroups/g", "{\"publishRateInBytes\":\"5000000000\"}", 204, "");
    expect_json(&w, "/admin/resourcegroups/g", "{\"publishRateInMsgs\":1,\"later\":1,\"publishRateInBytes\":5000000000}");
    expect(&w, "POST", "namespaces/t/n/resourcegroup/g", "", 204, "");
    for (const char *const *ns = (const char *const[]){"o", "p", "q", NULL}; *ns; ns++) { // the first one in it ends the search
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("/admin/policies/t/%s", *ns);
        world_put(&w, path, "{\"resource_group_name\":\"g\"}");
    }
    expect(&w, "DELETE", "resourcegroups/g", "", 412, "namespace t/n is in g");
    for (const char *const *ns = (const char *const[]){"o", "p", "q", NULL}; *ns; ns++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("/admin/policies/t/%s", *ns);
        world_put(&w, path, "{}");
    }
    expect(&w, "DELETE", "namespaces/t/n/resourcegroup", "", 204, "");
    expect(&w, "DELETE", "resourcegroups/g", "", 204, "");
    world_put(&w, "/loadbalance/resource-quota/default", "null"); // Pulsar writes it for a missing body
    expect(&w, "GET", "resource-quotas", "", 200, "\"msgRateIn\":40.0");
    expect(&w, "POST", "resource-quotas", "{\"msgRateIn\":1}", 204, "");
    expect(&w, "GET", "resource-quotas/t/n/0x00000000_0x80000000", "", 200, "\"msgRateIn\":1.0");
    expect(&w, "POST", "resource-quotas/t/n/0x00000000_0x80000000", "{\"memory\":2}", 204, "");
    expect_json(&w, "/loadbalance/resource-quota/t/n/0x00000000_0x80000000", "{\"msgRateIn\":0.0,\"msgRateOut\":0.0,\"bandwidthIn\":0.0,\"bandwidthOut\":0.0,\"memory\":2.0,\"dynamic\":true}");
    expect(&w, "POST", "bookies/racks-info/b:1?group=g1", "{\"rack\":\"/r\",\"hostname\":\"h\"}", 204, "");
    expect(&w, "POST", "bookies/racks-info/b:2?group=g1", "{\"rack\":\"/r\"}", 204, "");
    expect(&w, "POST", "bookies/racks-info/b:1?group=g2", "{\"rack\":\"/s\"}", 204, "");
    expect_json(&w, "/bookies", "{\"g1\":{\"b:2\":{\"rack\":\"/r\"}},\"g2\":{\"b:1\":{\"rack\":\"/s\"}}}");
    expect(&w, "DELETE", "bookies/racks-info/b:2", "", 204, "");
    expect_json(&w, "/bookies", "{\"g2\":{\"b:1\":{\"rack\":\"/s\"}}}");
    world_end(&w);
}

static void test_thresholds_of_offloading_lie_in_its_policies(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    world_put(&w, "/admin/policies/t/n", "{\"offload_threshold\":7}");
    expect(&w, "GET", "namespaces/t/n/offloadThreshold", "", 200, "7");
    expect(&w, "PUT", "namespaces/t/n/offloadThreshold", "9223372036854775807", 204, "");
    expect(&w, "GET", "namespaces/t/n/offloadThreshold", "", 200, "9223372036854775807");
    expect(&w, "GET", "namespaces/t/n/offloadPolicies", "", 200, "\"managedLedgerOffloadMaxThreads\":2");
    expect(&w, "DELETE", "namespaces/t/n/removeOffloadPolicies", "", 204, "");
    expect_json(&w, "/admin/policies/t/n", "{\"offload_threshold\":7}");
    expect(&w, "POST", "namespaces/t/n/offloadPolicies", "{\"managedLedgerOffloadDriver\":\"S3\"}", 412,
           "bucket must be specified");
    expect(&w, "GET", "namespaces/t/n/scanOffloadedLedgers", "", 501, "no offloader");
    world_end(&w);
}

static void test_no_body_takes_away_what_is_an_object_or_a_word(void **state)
{
    (void)state;
    struct world w;
    world_start(&w);
    world_put(&w, "/admin/policies/t/n", "{\"retention_policies\":{},\"topicDispatchRate\":{\"c1\":{},\"c2\":{}},\"subscription_auth_mode\":\"Prefix\",\"deduplicationSnapshotIntervalSeconds\":5,\"persistence\":{}}");
    expect(&w, "POST", "namespaces/t/n/retention", "", 204, "");
    expect(&w, "POST", "namespaces/t/n/dispatchRate", "null", 204, "");
    expect(&w, "POST", "namespaces/t/n/subscriptionAuthMode", "", 204, "");
    expect(&w, "POST", "namespaces/t/n/deduplicationSnapshotInterval", "", 204, "");
    expect(&w, "POST", "namespaces/t/n/persistence", "", 400, "persistence");
    expect(&w, "POST", "namespaces/t/n/messageTTL", "", 400, "messageTTL");
    expect(&w, "POST", "namespaces/t/n/backlogQuota", "", 400, "backlogQuota");
    expect(&w, "DELETE", "namespaces/t/n/dispatcherPauseOnAckStatePersistent", "", 204, "");
    expect_json(
        &w, "/admin/policies/t/n",
        "{\"topicDispatchRate\":{\"c2\":{}},\"persistence\":{},\"dispatcherPauseOnAckStatePersistentEnabled\":false}");
    world_end(&w);
}

// What is wrong is named.
static void test_wrong_bodies_and_names_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *body;
        long status;
        const char *says;
    } calls[] = {
        {"POST", "clusters/c1/peers", "[1]", 400, "a list of clusters' names"},
        {"POST", "clusters/c1/peers", "[\"c1\"]", 412, "c1 itself"},
        {"POST", "clusters/c1/peers", "[\"c9\"]", 412, "Peer cluster c9"},
        {"POST", "clusters/c1/migrate", "", 400, "brokerServiceUrl"},
        {"POST", "clusters/c1/migrate", "{\"serviceUrl\":7}", 400, "\\\"serviceUrl\\\" must be text"},
        {"POST", "clusters/c1/failureDomains/d", "", 400, "\\\"brokers\\\""},
        {"POST", "clusters/c1/failureDomains/d%2Fe", "{}", 412, "Failure domain name is not valid: d/e"},
        {"POST", "clusters/c1/failureDomains/..", "{}", 412, "Failure domain name is not valid: .."},
        {"GET", "clusters/c%2F1/failureDomains", "", 412, "Cluster name is not valid: c/1"},
        {"GET", "clusters/c9/failureDomains/d", "", 412, "Cluster c9 does not exist"},
        {"GET", "clusters/c1/failureDomains/d%252Fe", "", 404, "Domain d%2Fe for cluster c1"},
        {"POST", "clusters/c1/namespaceIsolationPolicies/p", "[]", 400, "\\\"namespaces\\\""},
        {"POST", "clusters/c1/namespaceIsolationPolicies/p",
         "{\"namespaces\":[\"(\"],\"primary\":[\"b\"],\"secondary\":[]," FAILOVER "}", 400, "\\\"namespaces\\\""},
        {"POST", "clusters/c1/namespaceIsolationPolicies/p",
         "{\"namespaces\":[\"a\"],\"primary\":[\"b\"],\"secondary\":[],\"unload_scope\":\"some\"," FAILOVER "}", 400,
         "unload_scope"},
        {"POST", "namespaces/t/n/antiAffinity", " \n", 412, "can't be empty"},
        {"POST", "namespaces/t/n/antiAffinity", "\xff", 400, "UTF-8"},
        {"POST", "namespaces/t/nope/antiAffinity", "g", 404, "Namespace does not exist"},
        {"GET", "namespaces/c1/antiAffinity/g", "", 400, "Tenant should not be null"},
        {"GET", "namespaces/c1/antiAffinity/g?tenant=a%2Fb", "", 412, "Tenant name is not valid: a/b"},
        {"POST", "namespaces/t/n/persistence/bookieAffinity", "[]", 400, "bookieAffinity"},
        {"POST", "namespaces/t/n/migration", "\"yes\"", 400, "true or false"},
        {"POST", "namespaces/t/n/resourcegroup/g9", "", 412, "ResourceGroup does not exist: g9"},
        {"PUT", "resourcegroups/a%2Fb", "{}", 412, "ResourceGroup name is not valid: a/b"},
        {"PUT", "resourcegroups/g", "{\"publishRateInMsgs\":4294967296}", 400, "publishRateInMsgs"},
        {"PUT", "resourcegroups/g", "{\"publishRateInMsgs\":", 400, "JSON"},
        {"POST", "resource-quotas", "", 400, "resource quota: the body must be an object"},
        {"POST", "resource-quotas", "{\"memory\":\"much\"}", 400, "\\\"memory\\\""},
        {"GET", "resource-quotas/t/n/0x00000000_0x00000001", "", 412, "0x00000000_0x00000001 is none of the bundles of t/n"},
        {"GET", "resource-quotas/t/a%20b/0x00000000_0x80000000", "", 412, "namespace t/a b: the name is not valid"},
        {"DELETE", "resource-quotas/t/n/0x00000000_0x80000000", "", 404, "0x00000000_0x80000000"},
        {"POST", "bookies/racks-info/b:1", "{}", 412, "'group' parameters is missing"},
        {"POST", "bookies/racks-info/b:1?group=g", "{\"rack\":\"/a/b\"}", 412, "/a/b has a slash"},
        {"GET", "bookies/racks-info/b:1", "", 404, "b:1"},
        {"PUT", "namespaces/t/n/offloadThreshold", "1.5", 400, "offloadThreshold"},
        {"POST", "namespaces/t/n/offloadPolicies", "", 412, "must be specified"},
        {"PUT", "namespaces/t/n/0x00000000_0x80000000/split?splitAlgorithmName=by_luck", "", 412, "algorithm by_luck"},
        {"PUT", "namespaces/t/n/0x00000000_0x80000000/split", "{\"a\":1}", 400, "a list of whole numbers"},
        {"DELETE", "namespaces/t/n/encryptionRequired", "", 405, "is not a method of encryptionRequired"},
        {"DELETE", "namespaces/t/n/0x00000000_0x00000001", "", 412, "0x00000000_0x00000001 is none of the bundles"},
        {"POST", "namespaces/t/n/entryFilters", "{\"entryFilterNames\":\"a,b\"}", 400, "'a' not found"},
        {"POST", "namespaces/grantPermissionsOnTopics", "{}", 400, "a list of objects"},
        {"POST", "namespaces/grantPermissionsOnTopics", "[{\"topic\":\"persistent://t/n/x\",\"role\":\"r\"}]", 400,
         "entry 0: \\\"actions\\\""},
        {"POST", "namespaces/grantPermissionsOnTopics", "[{\"topic\":\"persistent://t/n/x\",\"role\":\"r\",\"actions\":[]},{\"topic\":\"persistent://t/m/x\",\"role\":\"r\",\"actions\":[]}]",
         400, "entry 1 is in t/m, not in t/n"},
        {"PUT", "namespaces/t/new", "{\"message_ttl_in_seconds\":\"x\"}", 400, "message_ttl_in_seconds"},
        {"PUT", "namespaces/t/new", "{\"publishMaxMessageRate\":{\"c1\":7}}", 400, "c1"},
        {"PUT", "namespaces/t/new", "{\"topicDispatchRate\":7}", 400, "topicDispatchRate: it must be an object"},
    };
    struct world w;
    world_start(&w);
    for (size_t i = 0; i < OX_COUNT(calls); i++)
        expect(&w, calls[i].method, calls[i].path, calls[i].body, calls[i].status, calls[i].says);
    expect_json(&w, "/admin/policies/t/new", NULL);
    expect_json(&w, "/admin/clusters/c1/failureDomain", NULL);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_a_cluster_lie_where_pulsar_looks),
        cmocka_unit_test(test_isolation_policies_are_matched_against_brokers),
        cmocka_unit_test(test_local_policies_begin_with_the_bundles),
        cmocka_unit_test(test_a_split_is_in_both_nodes),
        cmocka_unit_test(test_a_split_that_was_cut_off_is_finished_by_the_next),
        cmocka_unit_test(test_a_split_into_too_many_is_refused),
        cmocka_unit_test(test_long_lists_hold_nobody_up),
        cmocka_unit_test(test_groups_quotas_and_racks_are_kept),
        cmocka_unit_test(test_thresholds_of_offloading_lie_in_its_policies),
        cmocka_unit_test(test_no_body_takes_away_what_is_an_object_or_a_word),
        cmocka_unit_test(test_wrong_bodies_and_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
