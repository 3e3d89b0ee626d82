// brokers.c - the broker itself: health, readiness, version, who is there, settings, metrics.
#include <string.h>

#include "admin/request.h"
#include "base/version.h"
#include "gen/rest_routes.h"

const char *admin_broker_id(const struct ox_shard *sh)
{
    const char *host = strstr(sh->config.web_url, "://");
    return host ? host + 3 : sh->config.web_url;
}

// Healthy = clients are served, the metadata session lives, and the place where new ledgers go takes appends.
static const char *broker_trouble(const struct ox_shard *sh)
{
    struct ox_capacity capacity;
    if (sh->state != OX_SHARD_RUNNING)
        return ox_shard_state_name(sh->state);
    if (sh->meta->session != OX_META_CONNECTED)
        return "the metadata store's session is not connected";
    ox_place_capacity(ox_router_place(sh->router, sh->router->active), &capacity);
    return capacity.writable ? NULL
                             : "the ledger store takes no appends: its disk is full or a write has failed; see the log";
}

static void broker_health(struct admin_request *r)
{
    const char *trouble = broker_trouble(r->admin->shard);
    if (trouble)
        admin_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "not healthy: %s", trouble);
    else
        admin_text(r, MHD_HTTP_OK, "text/plain", "ok");
}

static void broker_ready(struct admin_request *r)
{
    if (r->admin->shard->state == OX_SHARD_RUNNING)
        admin_text(r, MHD_HTTP_OK, "text/plain", "ok");
    else
        admin_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready: %s", ox_shard_state_name(r->admin->shard->state));
}

static void broker_version(struct admin_request *r)
{
    admin_text(r, MHD_HTTP_OK, "text/plain", OX_VERSION);
}

static void broker_list(struct admin_request *r)
{
    admin_json(r, MHD_HTTP_OK, json_pack("[s]", admin_broker_id(r->admin->shard)));
}

static void broker_leader(struct admin_request *r)
{
    const struct ox_shard *sh = r->admin->shard;
    admin_json(r, MHD_HTTP_OK, json_pack("{s:s, s:s}", "serviceUrl", sh->config.web_url, "brokerId", admin_broker_id(sh)));
}

// No setting can be changed while the broker runs.
static void broker_no_names(struct admin_request *r)
{
    admin_json(r, MHD_HTTP_OK, json_array());
}

static void broker_no_values(struct admin_request *r)
{
    admin_json(r, MHD_HTTP_OK, json_object());
}

static void broker_not_dynamic(struct admin_request *r)
{
    admin_fail(r, MHD_HTTP_PRECONDITION_FAILED, "Can't update non-dynamic configuration: %s", r->segments[4]);
}

// The settings that requests can meet, under their keys.
static void broker_runtime(struct admin_request *r)
{
    const struct ox_broker_config *c = &r->admin->shard->config;
    admin_json(r, MHD_HTTP_OK,
               json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:s, s:s}", "clusterName", c->cluster, "maxMessageSize",
                         json_sprintf("%u", c->message_bytes_max), "defaultNumberOfNamespaceBundles",
                         json_sprintf("%u", c->bundles), "allowAutoTopicCreation", c->auto_topic_creation ? "true" : "false",
                         "allowAutoTopicCreationType", c->auto_topic_partitioned ? "partitioned" : "non-partitioned",
                         "defaultNumPartitions", json_sprintf("%u", c->default_partitions),
                         "allowAutoSubscriptionCreation", c->auto_subscription_creation ? "true" : "false",
                         "topicLevelPoliciesEnabled", c->topic_policies ? "true" : "false"));
}

static void broker_metrics(struct admin_request *r)
{
    struct ox_str page = {0};
    ox_metrics_print(r->admin->shard->metrics, &page);
    admin_text(r, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", ox_str_get(&page));
    ox_str_fini(&page);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_BROKERS};
const struct admin_route_table admin_brokers = {routes, OX_COUNT(routes)};
