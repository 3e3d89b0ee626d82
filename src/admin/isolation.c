// isolation.c - /admin/v2/clusters/{cluster}/namespaceIsolationPolicies: which namespaces are for which brokers. Kept: there is one broker, and it takes all.
#include <stdlib.h>
#include <string.h>

#include "admin/node.h"
#include "admin/policy.h"
#include "broker/topic_pattern.h"
#include "gen/rest_routes.h"

#define CLUSTER_AT 3
#define NAME_AT 5   // of a policy
#define BROKER_AT 6 // behind "brokers"

static const char *const unload_scopes[] = {"all_matching", "none", "changed", NULL};

static char *isolation_node(const struct admin_request *r)
{
    return ox_asprintf("/admin/clusters/%s/namespaceIsolationPolicies", r->segments[CLUSTER_AT]);
}

// False: nothing has ever been set, and that is answered.
static bool isolation_there(const struct admin_node *n)
{
    struct admin_request *r = n->request;
    if (n->version != OX_META_ABSENT)
        return true;
    admin_fail(r, HTTP_NOT_FOUND, "NamespaceIsolationPolicies for cluster %s does not exist", r->segments[CLUSTER_AT]);
    return false;
}

// ---- reading

static void all_read(struct admin_node *n)
{
    if (isolation_there(n))
        admin_json(n->request, HTTP_OK, json_incref(n->value));
}

static void all_look(struct admin_request *r)
{
    admin_node_read_or(r, isolation_node(r), json_object(), NULL, all_read);
}

static void isolation_list(struct admin_request *r)
{
    admin_cluster_check(r, CLUSTER_AT, HTTP_NOT_FOUND, all_look);
}

static void one_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    json_t *policy = json_object_get(n->value, r->segments[NAME_AT]);
    if (!isolation_there(n))
        return;
    if (policy)
        admin_json(r, HTTP_OK, json_incref(policy));
    else
        admin_fail(r, HTTP_NOT_FOUND, "Cannot find NamespaceIsolationPolicy %s for cluster %s", r->segments[NAME_AT],
                   r->segments[CLUSTER_AT]);
}

static void one_look(struct admin_request *r)
{
    admin_node_read_or(r, isolation_node(r), json_object(), NULL, one_read);
}

static void isolation_get(struct admin_request *r)
{
    admin_cluster_check(r, CLUSTER_AT, HTTP_PRECONDITION_FAILED, one_look);
}

// ---- setting

// A list of regular expressions; empty only where it may be. False: answered.
static bool patterns_fit(struct admin_request *r, const char *member, bool may_be_empty)
{
    const json_t *list = json_object_get(r->json, member);
    size_t i;
    json_t *value;
    char why[120] = "it must be a list of regular expressions";
    bool fits = json_is_array(list) && (may_be_empty || json_array_size(list) > 0);
    json_array_foreach(list, i, value)
    {
        struct ox_topic_pattern *pattern = NULL;
        fits = fits && json_is_string(value) &&
               ox_topic_pattern_new(json_string_value(value), &pattern, why, sizeof why) == OX_OK;
        ox_topic_pattern_free(pattern);
    }
    if (!fits)
        admin_fail(r, HTTP_BAD_REQUEST, "Invalid format of input policy data. policy: %s; \"%s\": %s",
                   r->segments[NAME_AT], member, why);
    return fits;
}

static bool whole_number(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (text && *text)
        strtol(text, &end, 10);
    return json_is_integer(value) || (end && !*end);
}

static bool failover_fits(struct admin_request *r)
{
    const json_t *policy = json_object_get(r->json, "auto_failover_policy");
    const json_t *parameters = json_object_get(policy, "parameters");
    const char *type = json_string_value(json_object_get(policy, "policy_type"));
    if (type && strcmp(type, "min_available") == 0 && whole_number(json_object_get(parameters, "min_limit")) &&
        whole_number(json_object_get(parameters, "usage_threshold")))
        return true;
    admin_fail(r, HTTP_BAD_REQUEST, "Invalid format of input policy data. policy: %s; \"auto_failover_policy\": it must have \"policy_type\": \"min_available\" and \"parameters\" with whole numbers \"min_limit\" and \"usage_threshold\"",
               r->segments[NAME_AT]);
    return false;
}

static bool scope_fits(struct admin_request *r)
{
    const json_t *scope = json_object_get(r->json, "unload_scope");
    bool fits = !scope || json_is_null(scope);
    for (const char *const *word = unload_scopes; *word && !fits; word++)
        fits = json_is_string(scope) && strcmp(json_string_value(scope), *word) == 0;
    if (!fits)
        admin_fail(r, HTTP_BAD_REQUEST, "\"unload_scope\" must be all_matching, none or changed");
    return fits;
}

static json_t *isolation_value(const json_t *body)
{
    static const char *const members[] = {"namespaces", "primary", "secondary", "auto_failover_policy", "unload_scope"};
    json_t *value = json_object();
    for (size_t i = 0; i < OX_COUNT(members); i++) {
        json_t *given = json_object_get(body, members[i]);
        if (given && !json_is_null(given))
            json_object_set(value, members[i], given);
    }
    return value;
}

static bool isolation_change(struct admin_node *n)
{
    if (json_object_set_new(n->value, n->request->segments[NAME_AT], isolation_value(n->request->json)) == 0)
        return true;
    admin_fail(n->request, HTTP_BAD_REQUEST, "a policy's name must be UTF-8");
    return false;
}

static void isolation_write(struct admin_request *r)
{
    admin_node_change_or(r, isolation_node(r), json_object(), NULL, isolation_change, NULL);
}

static void isolation_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (!json_is_object(body))
        admin_fail(
            r, HTTP_BAD_REQUEST,
            "the body must be an object with \"namespaces\", \"primary\", \"secondary\" and \"auto_failover_policy\"");
    else if (patterns_fit(r, "namespaces", false) && patterns_fit(r, "primary", false) &&
             patterns_fit(r, "secondary", true) && failover_fits(r) && scope_fits(r))
        admin_cluster_check(r, CLUSTER_AT, HTTP_PRECONDITION_FAILED, isolation_write);
}

static bool isolation_drop(struct admin_node *n)
{
    json_object_del(n->value, n->request->segments[NAME_AT]);
    return true;
}

static void isolation_forget(struct admin_request *r)
{
    admin_node_change_or(r, isolation_node(r), json_object(), NULL, isolation_drop, NULL);
}

static void isolation_remove(struct admin_request *r)
{
    admin_cluster_check(r, CLUSTER_AT, HTTP_PRECONDITION_FAILED, isolation_forget);
}

// ---- which policies are about a broker

static bool broker_matches(const json_t *policy, const char *member, const char *broker)
{
    size_t i;
    json_t *value;
    bool matches = false;
    json_array_foreach(json_object_get(policy, member), i, value)
    {
        struct ox_topic_pattern *pattern = NULL;
        char why[120];
        const char *text = json_string_value(value);
        if (text && ox_topic_pattern_new(text, &pattern, why, sizeof why) == OX_OK)
            matches = matches || ox_topic_pattern_matches(pattern, broker);
        ox_topic_pattern_free(pattern);
    }
    return matches;
}

static json_t *broker_view(json_t *policies, const char *broker)
{
    json_t *namespaces = json_array(), *policy;
    const char *name, *last = NULL;
    bool primary = false;
    json_object_foreach(policies, name, policy)
    {
        bool first = broker_matches(policy, "primary", broker);
        if (!first && !broker_matches(policy, "secondary", broker))
            continue;
        json_array_extend(namespaces, json_object_get(policy, "namespaces"));
        primary |= first;
        last = name;
    }
    return json_pack("{s:s, s:s*, s:o, s:b}", "brokerName", broker, "policyName", last, "namespaceRegex", namespaces,
                     "primary", primary);
}

static void brokers_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    if (!isolation_there(n))
        return;
    if (r->count > BROKER_AT)
        admin_json(r, HTTP_OK, broker_view(n->value, r->segments[BROKER_AT]));
    else
        admin_json(r, HTTP_OK, json_pack("[o]", broker_view(n->value, admin_broker_id(r->admin->shard))));
}

static void brokers_look(struct admin_request *r)
{
    admin_node_read_or(r, isolation_node(r), json_object(), NULL, brokers_read);
}

static void isolation_brokers(struct admin_request *r)
{
    admin_cluster_check(r, CLUSTER_AT, HTTP_PRECONDITION_FAILED, brokers_look);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_ISOLATION};
const struct admin_route_table admin_isolation = {routes, OX_COUNT(routes)};
