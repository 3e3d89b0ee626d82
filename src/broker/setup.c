// setup.c - the JSON of a cluster's first nodes, in Pulsar's words: clusters, tenants, namespaces, bundles.
#include "broker/setup.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

#define SYSTEM_BUNDLES 16u
#define COORDINATORS 16u

// Takes the JSON's reference.
static void setup_add(struct shard_setup *setup, char *take_path, json_t *take_value)
{
    OX_ASSERT(setup->count < OX_COUNT(setup->nodes) && take_value);
    char *text = json_dumps(take_value, JSON_COMPACT);
    OX_ASSERT(text);
    setup->nodes[setup->count++] = (struct setup_node){take_path, ox_strdup(text)};
    free(text);
    json_decref(take_value);
}

static json_t *setup_cluster(const struct ox_broker_config *c)
{
    return json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:s, s:s}", "serviceUrl", c->web_url, "brokerServiceUrl", c->service_url,
                     "brokerClientTlsEnabled", 0, "tlsAllowInsecureConnection", 0, "brokerClientTlsEnabledWithKeyStore",
                     0, "brokerClientTlsTrustStoreType", "JKS", "brokerClientTlsKeyStoreType", "JKS",
                     "brokerClientSslFactoryPlugin", "org.apache.pulsar.common.util.DefaultPulsarSslFactory");
}

static json_t *setup_global(void)
{
    return json_pack("{s:b, s:b, s:b, s:s, s:s, s:s}", "brokerClientTlsEnabled", 0, "tlsAllowInsecureConnection", 0,
                     "brokerClientTlsEnabledWithKeyStore", 0, "brokerClientTlsTrustStoreType", "JKS",
                     "brokerClientTlsKeyStoreType", "JKS", "brokerClientSslFactoryPlugin",
                     "org.apache.pulsar.common.util.DefaultPulsarSslFactory");
}

static json_t *setup_tenant(const struct ox_broker_config *c)
{
    return json_pack("{s:[], s:[s]}", "adminRoles", "allowedClusters", c->cluster);
}

json_t *setup_bundles(uint32_t count)
{
    json_t *boundaries = json_array();
    for (uint32_t i = 0; i <= count; i++) {
        char text[16];
        uint64_t at = (UINT64_C(1) << 32) / count * i;
        snprintf(text, sizeof text, "0x%08" PRIx32, i == count ? UINT32_MAX : (uint32_t)at);
        json_array_append_new(boundaries, json_string(text));
    }
    return json_pack("{s:o, s:i}", "boundaries", boundaries, "numBundles", (int)count);
}

json_t *setup_policies(const struct ox_broker_config *c, uint32_t bundles)
{
    json_t *p = json_pack("{s:{s:{}, s:{}, s:{}}, s:[s], s:[], s:o, s:{}, s:{}, s:{}, s:{}, s:{}, s:{}, s:{}, s:{}}",
                          "auth_policies", "namespace_auth", "destination_auth", "subscription_auth_roles",
                          "replication_clusters", c->cluster, "allowed_clusters", "bundles", setup_bundles(bundles),
                          "backlog_quota_map", "clusterDispatchRate", "topicDispatchRate", "subscriptionDispatchRate",
                          "replicatorDispatchRate", "clusterSubscribeRate", "publishMaxMessageRate",
                          "latency_stats_sample_rate");
    json_t *rest =
        json_pack("{s:b, s:b, s:s, s:i, s:i, s:s, s:b, s:b, s:[], s:{}, s:b}", "deleted", 0, "encryption_required", 0,
                  "subscription_auth_mode", "None", "offload_threshold", -1, "offload_threshold_in_seconds", -1,
                  "schema_compatibility_strategy", "UNDEFINED", "is_allow_auto_update_schema", 1,
                  "schema_validation_enforced", 0, "subscription_types_enabled", "properties", "migrated", 0);
    OX_ASSERT(p && rest && json_object_update(p, rest) == 0);
    json_decref(rest);
    return p;
}

struct shard_setup *setup_new(const struct ox_broker_config *c)
{
    struct shard_setup *s = ox_malloc(sizeof *s);
    setup_add(s, ox_asprintf("/admin/clusters/%s", c->cluster), setup_cluster(c));
    setup_add(s, ox_strdup("/admin/clusters/global"), setup_global());
    setup_add(s, ox_strdup("/admin/policies/public"), setup_tenant(c));
    setup_add(s, ox_strdup("/admin/policies/pulsar"), setup_tenant(c));
    setup_add(s, ox_strdup("/admin/policies/pulsar/system"), setup_policies(c, SYSTEM_BUNDLES));
    setup_add(s, ox_strdup("/admin/local-policies/pulsar/system"),
              json_pack("{s:o, s:b}", "bundles", setup_bundles(SYSTEM_BUNDLES), "migrated", 0));
    setup_add(s, ox_strdup("/admin/policies/public/default"), setup_policies(c, c->bundles));
    setup_add(s, ox_strdup("/admin/partitioned-topics/pulsar/system/persistent/transaction_coordinator_assign"),
              json_pack("{s:i, s:b}", "partitions", (int)COORDINATORS, "deleted", 0));
    setup_add(s, ox_strdup("/bookies"), json_object());
    setup_add(s, ox_strdup("/admin/configuration"), json_object());
    return s;
}

void setup_free(struct shard_setup *setup)
{
    for (size_t i = 0; i < setup->count; i++) {
        ox_free(setup->nodes[i].path);
        ox_free(setup->nodes[i].value);
    }
    ox_free(setup);
}
