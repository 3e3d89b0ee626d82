// namespaces.c - /admin/v2/namespaces: lists, making, deleting, bundles, topics, properties, permissions, clusters.
#include <stdlib.h>
#include <string.h>

#include "admin/node.h"
#include "broker/namespace_admin.h"
#include "gen/rest_routes.h"

#define NAME_AT 6 // the segment behind a word like "property"

struct ns_call {
    struct admin_request *request;
    json_t *policies; // of lists by bundle
    union {
        struct ox_namespace_create create;
        struct ox_namespace_delete delete;
        struct ox_tenant_namespaces list;
        struct ox_topics_list topics;
    };
};

static struct ns_call *ns_call_new(struct admin_request *r)
{
    struct ns_call *c = ox_malloc(sizeof *c);
    c->request = r;
    return c;
}

// ---- lists

static void ns_listed(struct ox_op *op)
{
    struct ns_call *c = CONTAINER_OF(op, struct ns_call, list.op);
    if (op->err == OX_OK)
        admin_json(c->request, HTTP_OK, admin_names(c->list.names, c->list.count));
    else if (op->err == OX_E_NOT_FOUND)
        admin_fail(c->request, HTTP_NOT_FOUND, "Tenant not found: %s", c->request->segments[3]);
    else
        admin_error(c->request, op->err, c->request->segments[3], NULL);
    ox_tenant_namespaces_fini(&c->list);
    ox_free(c);
}

static void ns_list(struct admin_request *r)
{
    if (!admin_name_valid(r->segments[3])) {
        admin_fail(r, HTTP_NOT_FOUND, "Tenant not found: %s", r->segments[3]);
        return;
    }
    struct ns_call *c = ns_call_new(r);
    ox_op_init(&c->list.op, r->admin->shard->loop, ns_listed, "tenant.namespaces");
    ox_tenant_namespaces(r->admin->shard, &c->list, r->segments[3]);
}

// Keeps those whose hashes lie in the bundle that the query names, and returns how many; one that is none has no topics.
static size_t ns_topics_of_bundle(struct ns_call *c)
{
    const char *asked = admin_query(c->request, "bundle");
    size_t kept = 0;
    for (size_t i = 0; i < c->topics.count; i++) {
        char bundle[32], *name = c->topics.names[i];
        uint32_t low, high, hash = ox_topic_name_hash(&(struct ox_topic_name){.full = name});
        bool in = admin_bundle_of(c->policies, hash, &low, &high, bundle) && strcmp(bundle, asked) == 0;
        c->topics.names[i] = c->topics.names[kept]; // those that are left out come behind, where they are freed
        c->topics.names[kept] = name;
        kept += in;
    }
    return kept;
}

static void ns_topics_listed(struct ox_op *op)
{
    struct ns_call *c = CONTAINER_OF(op, struct ns_call, topics.op);
    if (op->err == OX_OK)
        admin_answer_names(c->request, c->topics.names, c->policies ? ns_topics_of_bundle(c) : c->topics.count);
    else if (op->err == OX_E_NAMESPACE_NOT_FOUND)
        admin_fail(c->request, HTTP_NOT_FOUND, "Namespace does not exist: %s", c->request->ns);
    else
        admin_error(c->request, op->err, c->request->ns, NULL);
    ox_topics_list_fini(&c->topics);
    json_decref(c->policies);
    ox_free(c);
}

// policies NULL: of all bundles.
static void ns_list_topics(struct admin_request *r, enum ox_topics_mode mode, bool partitioned, json_t *policies)
{
    struct ns_call *c = ns_call_new(r);
    ox_op_init(&c->topics.op, r->admin->shard->loop, ns_topics_listed, "topics.list");
    c->policies = json_incref(policies);
    c->topics.mode = mode;
    c->topics.partitioned = partitioned;
    c->topics.with_system = admin_query_true(r, "includeSystemTopic");
    ox_topics_list(r->admin->shard, &c->topics, r->ns);
}

static enum ox_topics_mode domain_mode(const struct admin_request *r)
{
    return strcmp(r->segments[2], "persistent") == 0 ? OX_TOPICS_PERSISTENT : OX_TOPICS_NON_PERSISTENT;
}

static void ns_bundle_topics(struct admin_node *n)
{
    ns_list_topics(n->request, domain_mode(n->request), false, n->value);
}

static void ns_domain_topics(struct admin_request *r)
{
    if (admin_query(r, "bundle"))
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, ns_bundle_topics);
    else
        ns_list_topics(r, domain_mode(r), false, NULL);
}

static void ns_partitioned_topics(struct admin_request *r)
{
    ns_list_topics(r, domain_mode(r), true, NULL);
}

static void ns_topics(struct admin_request *r)
{
    static const char *const modes[] = {
        [OX_TOPICS_PERSISTENT] = "PERSISTENT", [OX_TOPICS_NON_PERSISTENT] = "NON_PERSISTENT", [OX_TOPICS_ALL] = "ALL"};
    const char *asked = admin_query(r, "mode");
    for (size_t i = 0; i < OX_COUNT(modes); i++) {
        if (strcmp(asked ? asked : "PERSISTENT", modes[i]) == 0) {
            ns_list_topics(r, (enum ox_topics_mode)i, false, NULL);
            return;
        }
    }
    admin_fail(r, HTTP_NOT_FOUND, "there is no mode \"%s\": it is PERSISTENT, NON_PERSISTENT or ALL", asked);
}

// ---- making and deleting

static void ns_created(struct ox_op *op)
{
    struct ns_call *c = CONTAINER_OF(op, struct ns_call, create.op);
    struct admin_request *r = c->request;
    if (op->err == OX_E_EXISTS)
        admin_fail(r, HTTP_CONFLICT, "Namespace already exists: %s", r->ns);
    else if (op->err == OX_E_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Tenant does not exist: %s", r->segments[3]);
    else
        admin_done(r, op->err, r->ns, c->create.why);
    ox_free(c);
}

// Clusters other than this one cannot be named until replication knows them. Pulsar asks the tenant's list.
static bool ns_clusters_known(struct admin_request *r, const json_t *clusters)
{
    size_t i;
    json_t *value;
    json_array_foreach(clusters, i, value)
    {
        const char *name = json_string_value(value);
        if (!name || strcmp(name, r->admin->shard->config.cluster) != 0) {
            admin_fail(r, HTTP_FORBIDDEN, "Cluster [%s] is not in the list of allowed clusters list for tenant [%s]",
                       name ? name : "?", r->segments[3]);
            return false;
        }
    }
    return true;
}

// A topic whose hash lies in no bundle could not be looked up. Where no bounds are given, there are the usual ones.
static bool ns_bundles_cover(const json_t *bounds)
{
    uint32_t before = 0, bound = 0;
    size_t i;
    json_t *value;
    json_array_foreach(bounds, i, value)
    {
        char *end = NULL;
        const char *text = json_string_value(value);
        unsigned long long at = text ? strtoull(text, &end, 16) : 0;
        if (!text || strncmp(text, "0x", 2) != 0 || *end || strlen(text) != 10)
            return false;
        bound = (uint32_t)at;
        if (i ? bound <= before : bound != 0)
            return false;
        before = bound;
    }
    return json_array_size(bounds) == 0 || bound == UINT32_MAX;
}

// Whether they have the right form, and how many there are to be. False: answered.
static bool ns_bundles_fit(struct admin_request *r, json_t *bundles)
{
    const json_t *count = json_object_get(bundles, "numBundles"), *bounds = json_object_get(bundles, "boundaries");
    size_t given = json_array_size(bounds);
    if (!bundles || json_is_null(bundles))
        return true;
    if (!json_is_object(bundles) || (count && !json_is_integer(count)) ||
        (bounds && !json_is_null(bounds) && !json_is_array(bounds)))
        admin_fail(r, HTTP_BAD_REQUEST,
                   "\"bundles\" must be an object with a whole number \"numBundles\" or a list \"boundaries\"");
    else if (!ns_bundles_cover(bounds))
        admin_fail(r, HTTP_BAD_REQUEST, "Input bundles do not cover the whole hash range, in rising order");
    else if (json_integer_value(count) > OX_NAMESPACE_BUNDLES_MAX || given > OX_NAMESPACE_BUNDLES_MAX + 1)
        admin_fail(r, HTTP_BAD_REQUEST, "Invalid number of bundles. Number of bundles has to be in the range of (0, %u].",
                   OX_NAMESPACE_BUNDLES_MAX);
    else if (given)
        json_object_set_new(bundles, "numBundles", json_integer((json_int_t)given - 1));
    return !r->answered;
}

// False: answered. A list of no clusters says nothing.
static bool ns_create_body(struct admin_request *r, json_t **ret)
{
    if (!admin_body(r, ret))
        return false;
    if (*ret && !json_is_object(*ret) && !json_is_null(*ret)) {
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be an object: the namespace's policies");
        return false;
    }
    if (!ns_bundles_fit(r, json_object_get(*ret, "bundles")))
        return false;
    if (json_array_size(json_object_get(*ret, "replication_clusters")) == 0)
        json_object_del(*ret, "replication_clusters");
    return (!json_is_object(*ret) || admin_policies_fit(r, *ret)) &&
           ns_clusters_known(r, json_object_get(*ret, "replication_clusters"));
}

static void ns_create(struct admin_request *r)
{
    json_t *body;
    if (!ns_create_body(r, &body))
        return;
    struct ns_call *c = ns_call_new(r);
    char *text = json_is_object(body) ? json_dumps(body, JSON_COMPACT) : NULL;
    ox_op_init(&c->create.op, r->admin->shard->loop, ns_created, "namespace.create");
    ox_namespace_create(r->admin->shard, &c->create, r->ns, text);
    free(text);
}

static void ns_deleted(struct ox_op *op)
{
    struct ns_call *c = CONTAINER_OF(op, struct ns_call, delete.op);
    struct admin_request *r = c->request;
    if (op->err == OX_E_NAMESPACE_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Namespace %s does not exist.", r->ns);
    else if (op->err == OX_E_CONFLICT)
        admin_fail(r, HTTP_CONFLICT, "Cannot delete non empty namespace: %s", r->ns);
    else
        admin_done(r, op->err, r->ns, c->delete.why);
    ox_free(c);
}

static void ns_delete(struct admin_request *r)
{
    if (admin_query_true(r, "force") && !r->admin->shard->config.force_delete_namespace) {
        admin_fail(r, HTTP_METHOD_NOT_ALLOWED,
                   "Broker doesn't allow forced deletion of namespaces: forceDeleteNamespaceAllowed is false");
        return;
    }
    struct ns_call *c = ns_call_new(r);
    ox_op_init(&c->delete.op, r->admin->shard->loop, ns_deleted, "namespace.delete");
    c->delete.force = admin_query_true(r, "force");
    ox_namespace_delete(r->admin->shard, &c->delete, r->ns);
}

// ---- reading parts of the policies

// A part of the policies that a GET shows as it is.
struct ns_part {
    const char *group, *member; // group NULL: a member of the node itself
    const char *fallback;       // JSON where there is none; NULL: the whole node is shown
};
static const struct ns_part part_all = {NULL, NULL, NULL};
static const struct ns_part part_bundles = {NULL, "bundles", "{}"};
static const struct ns_part part_properties = {NULL, "properties", "{}"};
static const struct ns_part part_clusters = {NULL, "replication_clusters", "[]"};
static const struct ns_part part_allowed = {NULL, "allowed_clusters", "[]"};
static const struct ns_part part_roles = {"auth_policies", "namespace_auth", "{}"};
static const struct ns_part part_subscription_roles = {"auth_policies", "subscription_auth_roles", "{}"};

static void ns_part_read(struct admin_node *n)
{
    const struct ns_part *p = (const struct ns_part *)n->request->route->arg;
    const json_t *group = p->group ? json_object_get(n->value, p->group) : n->value;
    json_t *value = p->member ? json_object_get(group, p->member) : n->value;
    if (value && !json_is_null(value))
        admin_json(n->request, HTTP_OK, json_incref(value));
    else
        admin_bytes(n->request, HTTP_OK, p->fallback, strlen(p->fallback));
}

static void ns_part_get(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, ns_part_read);
}

// ---- properties

static json_t *ns_object(json_t *parent, const char *member)
{
    if (!json_is_object(json_object_get(parent, member)))
        json_object_set_new(parent, member, json_object());
    return json_object_get(parent, member);
}

static bool properties_change(struct admin_node *n)
{
    json_object_update(ns_object(n->value, "properties"), n->request->json);
    return true;
}

static bool texts_object(const json_t *body)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)body, key, value)
    {
        if (!json_is_string(value))
            return false;
    }
    return json_is_object(body);
}

static void ns_properties_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (texts_object(body))
        admin_namespace_change(r, properties_change);
    else
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be an object of texts: the namespace's properties");
}

static bool properties_clear(struct admin_node *n)
{
    return json_object_set_new(n->value, "properties", json_object()) == 0;
}

static void ns_properties_clear(struct admin_request *r)
{
    admin_namespace_change(r, properties_clear);
}

static void property_answer(struct admin_node *n)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(n->value, "properties"), n->request->segments[NAME_AT]));
    admin_bytes(n->request, HTTP_OK, text ? text : "", text ? strlen(text) : 0);
}

static void ns_property_get(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, property_answer);
}

static bool property_set(struct admin_node *n)
{
    char *const *segments = n->request->segments;
    if (json_object_set_new(ns_object(n->value, "properties"), segments[NAME_AT], json_string(segments[NAME_AT + 1])) == 0)
        return true;
    admin_fail(n->request, HTTP_BAD_REQUEST, "a property's name and value must be UTF-8");
    return false;
}

static void ns_property_set(struct admin_request *r)
{
    admin_namespace_change(r, property_set);
}

// What it was is the answer.
static bool property_drop(struct admin_node *n)
{
    json_t *properties = ns_object(n->value, "properties");
    const char *text = json_string_value(json_object_get(properties, n->request->segments[NAME_AT]));
    json_decref(n->request->json); // of a try that lost a race
    n->request->json = json_string(text ? text : "");
    json_object_del(properties, n->request->segments[NAME_AT]);
    return true;
}

static void property_dropped(struct admin_node *n)
{
    const char *text = json_string_value(n->request->json);
    admin_bytes(n->request, HTTP_OK, text, strlen(text));
}

static void ns_property_remove(struct admin_request *r)
{
    admin_node_change(r, admin_namespace_path(r->ns), "Namespace", NULL, property_drop, property_dropped);
}

// ---- clusters

// A cluster that is replicated to must be among those that are allowed. False: answered.
static bool clusters_cover(struct admin_node *n)
{
    size_t i;
    json_t *needed, *allowed = admin_text_set(n->request->json);
    const char *missing = NULL;
    json_array_foreach(json_object_get(n->value, part_clusters.member), i, needed)
    {
        if (!missing && !json_object_get(allowed, json_string_value(needed)))
            missing = json_string_value(needed);
    }
    json_decref(allowed);
    if (missing)
        admin_fail(
            n->request, HTTP_BAD_REQUEST,
            "Allowed clusters do not contain the replication cluster %s: remove it from the replication clusters first",
            missing);
    return !missing;
}

static bool clusters_change(struct admin_node *n)
{
    const struct ns_part *p = (const struct ns_part *)n->request->route->arg;
    if (p == &part_allowed && !clusters_cover(n))
        return false;
    json_t *each_once = admin_text_set(n->request->json);
    json_object_set_new(n->value, p->member, admin_members(each_once));
    json_decref(each_once);
    return true;
}

static void clusters_changed(struct admin_node *n)
{
    admin_empty(n->request, HTTP_OK);
}

static void ns_clusters_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (!json_is_array(body) || (json_array_size(body) == 0 && r->route->arg == &part_clusters))
        admin_fail(r, HTTP_PRECONDITION_FAILED, "ClusterIds should not be null or empty");
    else if (ns_clusters_known(r, body))
        admin_node_change(r, admin_namespace_path(r->ns), "Namespace", NULL, clusters_change, clusters_changed);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_NAMESPACES};
const struct admin_route_table admin_namespaces = {routes, OX_COUNT(routes)};
