// namespace_policies.c - /admin/v2/namespaces/{tenant}/{namespace}/{policy}: one table says what there is; reading, setting and removing are the same for all.
#include <string.h>

#include "admin/node.h"
#include "admin/policy.h"
#include "broker/policy_scope.h"
#include "gen/rest_routes.h"

// How a policy lies in the namespace's node.
enum ns_layout {
    NS_PLAIN,   // a member of its own
    NS_CLUSTER, // an object by cluster; this cluster's counts
    NS_QUOTA,   // an object by kind of quota
};

struct ns_policy {
    const char *name;   // in the path
    const char *method; // that sets it
    bool removable;
    const char *member; // in the node
    const struct policy_shape *shape;
    enum ns_layout layout;
    const char *fallback; // JSON of an answer where nothing is set; NULL: an empty answer, "": that with 204
    const char *also;     // another member that older readers look at; NULL: none
    bool bodiless;        // setting it turns it on
};

static const struct ns_policy ns_policies[] = {
    {"autoSubscriptionCreation", "POST", true, "autoSubscriptionCreationOverride", &policy_auto_subscription, NS_PLAIN,
     NULL, NULL, false},
    {"autoTopicCreation", "POST", true, "autoTopicCreationOverride", &policy_auto_topic, NS_PLAIN, NULL, NULL, false},
    {"backlogQuota", "POST", true, "backlog_quota_map", &policy_quota, NS_QUOTA, NULL, NULL, false},
    {"compactionThreshold", "PUT", true, "compaction_threshold", &policy_bytes, NS_PLAIN, NULL, NULL, false},
    {"deduplication", "POST", true, "deduplicationEnabled", &policy_flag, NS_PLAIN, NULL, NULL, false},
    {"deduplicationSnapshotInterval", "POST", false, "deduplicationSnapshotIntervalSeconds", &policy_interval, NS_PLAIN,
     NULL, NULL, false},
    {"delayedDelivery", "POST", true, "delayed_delivery_policies", &policy_delayed, NS_PLAIN, NULL, NULL, false},
    {"dispatchRate", "POST", true, "topicDispatchRate", &policy_dispatch_rate, NS_CLUSTER, NULL, "clusterDispatchRate", false},
    {"subscriptionDispatchRate", "POST", true, "subscriptionDispatchRate", &policy_dispatch_rate, NS_CLUSTER, NULL, NULL, false},
    {"replicatorDispatchRate", "POST", true, "replicatorDispatchRate", &policy_dispatch_rate, NS_CLUSTER, NULL, NULL, false},
    {"subscribeRate", "POST", true, "clusterSubscribeRate", &policy_subscribe_rate, NS_CLUSTER, NULL, NULL, false},
    {"publishRate", "POST", true, "publishMaxMessageRate", &policy_publish_rate, NS_CLUSTER, NULL, NULL, false},
    {"encryptionRequired", "POST", false, "encryption_required", &policy_flag, NS_PLAIN, "false", NULL, false},
    {"inactiveTopicPolicies", "POST", true, "inactive_topic_policies", &policy_inactive, NS_PLAIN, NULL, NULL, false},
    {"isAllowAutoUpdateSchema", "POST", false, "is_allow_auto_update_schema", &policy_flag, NS_PLAIN, "true", NULL, false},
    {"maxConsumersPerSubscription", "POST", true, "max_consumers_per_subscription", &policy_count, NS_PLAIN, NULL, NULL, false},
    {"maxConsumersPerTopic", "POST", true, "max_consumers_per_topic", &policy_count, NS_PLAIN, NULL, NULL, false},
    {"maxProducersPerTopic", "POST", true, "max_producers_per_topic", &policy_count, NS_PLAIN, NULL, NULL, false},
    {"maxSubscriptionsPerTopic", "POST", true, "max_subscriptions_per_topic", &policy_count, NS_PLAIN, NULL, NULL, false},
    {"maxTopicsPerNamespace", "POST", true, "max_topics_per_namespace", &policy_count, NS_PLAIN, "0", NULL, false},
    {"maxUnackedMessagesPerConsumer", "POST", true, "max_unacked_messages_per_consumer", &policy_count, NS_PLAIN, NULL,
     NULL, false},
    {"maxUnackedMessagesPerSubscription", "POST", true, "max_unacked_messages_per_subscription", &policy_count,
     NS_PLAIN, NULL, NULL, false},
    {"messageTTL", "POST", true, "message_ttl_in_seconds", &policy_count, NS_PLAIN, NULL, NULL, false},
    {"persistence", "POST", true, "persistence", &policy_persistence, NS_PLAIN, NULL, NULL, false},
    {"retention", "POST", true, "retention_policies", &policy_retention, NS_PLAIN, NULL, NULL, false},
    {"schemaCompatibilityStrategy", "PUT", false, "schema_compatibility_strategy", &policy_compatibility, NS_PLAIN,
     "\"UNDEFINED\"", NULL, false},
    {"schemaValidationEnforced", "POST", false, "schema_validation_enforced", &policy_flag, NS_PLAIN, "false", NULL, false},
    {"schemaAutoUpdateCompatibilityStrategy", "PUT", false, "schema_auto_update_compatibility_strategy",
     &policy_update_strategy, NS_PLAIN, "", NULL, false},
    {"subscriptionAuthMode", "POST", false, "subscription_auth_mode", &policy_auth_mode, NS_PLAIN, "\"None\"", NULL, false},
    {"entryFilters", "POST", true, "entryFilters", &policy_entry_filters, NS_PLAIN, NULL, NULL, false},
    {"subscriptionExpirationTime", "POST", true, "subscription_expiration_time_minutes", &policy_expiration, NS_PLAIN,
     NULL, NULL, false},
    {"subscriptionTypesEnabled", "POST", true, "subscription_types_enabled", &policy_subscription_types, NS_PLAIN, "[]",
     NULL, false},
    {"dispatcherPauseOnAckStatePersistent", "POST", true, "dispatcherPauseOnAckStatePersistentEnabled", &policy_flag,
     NS_PLAIN, "false", NULL, true},
};

#define POLICY_AT 5 // the segment with the name

// The policy that the path names, or NULL.
static const struct ns_policy *ns_policy_of(const struct admin_request *r)
{
    for (size_t i = 0; i < OX_COUNT(ns_policies); i++) {
        if (strcmp(ns_policies[i].name, r->segments[POLICY_AT]) == 0)
            return &ns_policies[i];
    }
    return NULL;
}

// The same for a request of that method. NULL: answered.
static const struct ns_policy *ns_policy_for(struct admin_request *r, const char *method)
{
    const struct ns_policy *p = ns_policy_of(r);
    if (!p)
        admin_unknown(r, r->segments[POLICY_AT]);
    else if (strcmp(method, "GET") == 0      ? p->layout == NS_QUOTA
             : strcmp(method, "DELETE") == 0 ? !p->removable
                                             : strcmp(method, p->method) != 0)
        admin_fail(r, HTTP_METHOD_NOT_ALLOWED, "%s is not a method of %s", method, p->name);
    else if (p->layout != NS_QUOTA || policy_quota_type(r))
        return p;
    return NULL;
}

char *admin_namespace_path(const char *ns)
{
    return ox_asprintf("/admin/policies/%s", ns);
}

// Topics of the namespace that are loaded follow before the answer is given.
static void ns_changed(struct admin_node *n)
{
    struct policy_scope *scope = scope_find(n->request->admin->shard, n->request->ns);
    if (scope)
        scope_take(scope, n->value, n->version);
    admin_empty(n->request, HTTP_NO_CONTENT);
}

void admin_namespace_change(struct admin_request *r, bool (*change)(struct admin_node *n))
{
    admin_node_change(r, admin_namespace_path(r->ns), "Namespace", NULL, change, ns_changed);
}

// ---- reading

static json_t *ns_policy_value(const struct ns_policy *p, const struct admin_request *r, const json_t *policies)
{
    json_t *value = json_object_get(policies, p->member);
    if (p->layout == NS_CLUSTER)
        value = json_object_get(value, r->admin->shard->config.cluster);
    return json_is_null(value) ? NULL : value;
}

static void ns_policy_read(struct admin_node *n)
{
    const struct ns_policy *p = ns_policy_of(n->request);
    json_t *value = ns_policy_value(p, n->request, n->value);
    if (value)
        admin_json(n->request, HTTP_OK, json_incref(value));
    else if (p->fallback && !*p->fallback)
        admin_empty(n->request, HTTP_NO_CONTENT);
    else if (p->fallback)
        admin_bytes(n->request, HTTP_OK, p->fallback, strlen(p->fallback));
    else
        admin_empty(n->request, HTTP_OK);
}

static void ns_policy_get(struct admin_request *r)
{
    if (ns_policy_for(r, "GET"))
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, ns_policy_read);
}

static void ns_quota_read(struct admin_node *n)
{
    json_t *map = json_object_get(n->value, "backlog_quota_map");
    admin_json(n->request, HTTP_OK, json_is_object(map) ? json_incref(map) : json_object());
}

static void ns_quota_get(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, ns_quota_read);
}

// ---- setting and removing

// The object under a member, made where there is none.
static json_t *ns_object(json_t *policies, const char *member)
{
    json_t *object = json_object_get(policies, member);
    if (json_is_object(object))
        return object;
    json_object_set_new(policies, member, json_object());
    return json_object_get(policies, member);
}

json_t *admin_quota_full(json_t *take_quota)
{
    json_t *size = json_object_get(take_quota, "limitSize"), *limit = json_object_get(take_quota, "limit");
    json_t *both = size ? size : limit;
    json_t *full = json_pack("{s:o, s:o, s:O, s:O}", "limit", both ? json_incref(both) : json_integer(0), "limitSize",
                             both ? json_incref(both) : json_integer(0), "limitTime",
                             json_object_get(take_quota, "limitTime"), "policy", json_object_get(take_quota, "policy"));
    json_decref(take_quota);
    return full;
}

static void ns_policy_put(const struct ns_policy *p, struct admin_request *r, json_t *policies, json_t *take_value)
{
    const char *cluster = r->admin->shard->config.cluster;
    if (p->layout == NS_QUOTA) {
        json_object_set_new(ns_object(policies, p->member), policy_quota_type(r), admin_quota_full(take_value));
        return;
    }
    if (p->also)
        json_object_set(ns_object(policies, p->also), cluster, take_value);
    if (p->layout == NS_CLUSTER)
        json_object_set_new(ns_object(policies, p->member), cluster, take_value);
    else
        json_object_set_new(policies, p->member, take_value);
}

static bool ns_policy_change(struct admin_node *n)
{
    const struct ns_policy *p = ns_policy_of(n->request);
    json_t *value;
    if (!policy_read(n->request, p->shape, p->name, n->request->json, &value))
        return false;
    ns_policy_put(p, n->request, n->value, value);
    return true;
}

static bool ns_policy_drop(struct admin_node *n)
{
    const struct ns_policy *p = ns_policy_of(n->request);
    const char *cluster = n->request->admin->shard->config.cluster;
    if (p->layout == NS_QUOTA)
        json_object_del(json_object_get(n->value, p->member), policy_quota_type(n->request));
    else if (p->layout == NS_CLUSTER)
        json_object_del(json_object_get(n->value, p->member), cluster);
    else if (p->bodiless)
        json_object_set_new(n->value, p->member, json_false()); // so it is there once it was
    else if (p->shape == &policy_subscription_types)
        json_object_set_new(n->value, p->member, json_array()); // it is always there
    else
        json_object_del(n->value, p->member);
    if (p->also)
        json_object_del(json_object_get(n->value, p->also), cluster);
    return true;
}

// No body takes some policies away: those that are objects or words to Pulsar, and one number.
static bool ns_policy_clears(const struct ns_policy *p, const json_t *body)
{
    if (body && !json_is_null(body))
        return false;
    return (p->shape->kind == POLICY_OBJECT && p->layout != NS_QUOTA && p->shape != &policy_persistence) ||
           p->shape->kind == POLICY_WORD || p->shape == &policy_interval;
}

static void ns_policy_set(struct admin_request *r)
{
    json_t *body;
    const struct ns_policy *p = ns_policy_for(r, r->route->method);
    if (p && p->bodiless)
        r->json = json_true();
    if (p && admin_body(r, &body))
        admin_namespace_change(r, ns_policy_clears(p, body) ? ns_policy_drop : ns_policy_change);
}

static void ns_policy_remove(struct admin_request *r)
{
    if (ns_policy_for(r, "DELETE"))
        admin_namespace_change(r, ns_policy_drop);
}

// ---- those that a namespace is made with

// One value, or one for each cluster or kind of quota. False: answered.
static bool ns_member_fits(struct admin_request *r, const struct ns_policy *p, json_t *holder, const char *key, json_t *given)
{
    json_t *value;
    if (json_is_null(given))
        return true;
    if (!policy_read(r, p->shape, key, given, &value))
        return false;
    json_object_set_new(holder, key, p->layout == NS_QUOTA ? admin_quota_full(value) : value);
    return true;
}

static bool ns_group_fits(struct admin_request *r, const struct ns_policy *p, json_t *group)
{
    const char *key;
    json_t *given;
    void *next;
    if (!json_is_object(group)) {
        admin_fail(r, HTTP_BAD_REQUEST, "%s: it must be an object", p->member);
        return false;
    }
    json_object_foreach_safe(group, next, key, given)
    {
        if (!ns_member_fits(r, p, group, key, given))
            return false;
    }
    return true;
}

bool admin_policies_fit(struct admin_request *r, json_t *policies)
{
    for (size_t i = 0; i < OX_COUNT(ns_policies); i++) {
        const struct ns_policy *p = &ns_policies[i];
        json_t *given = json_object_get(policies, p->member);
        if (!given || json_is_null(given))
            continue;
        if (p->layout == NS_PLAIN ? !ns_member_fits(r, p, policies, p->member, given) : !ns_group_fits(r, p, given))
            return false;
    }
    return true;
}

static const struct admin_route routes[] = {ADMIN_ROUTES_NAMESPACE_POLICIES};
const struct admin_route_table admin_namespace_policies = {routes, OX_COUNT(routes)};
