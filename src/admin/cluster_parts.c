// cluster_parts.c - /admin/v2/clusters/{cluster}/...: peers, migration, failure domains. They are kept for brokers that replicate and place; nothing here follows them.
#include <string.h>

#include "admin/node.h"
#include "admin/nodes.h"
#include "gen/rest_routes.h"

#define CLUSTER_AT 3
#define DOMAIN_AT 5

static char *cluster_node(const struct admin_request *r, const char *below)
{
    return ox_asprintf("/admin/clusters/%s%s", r->segments[CLUSTER_AT], below);
}

// A list as it is kept: each text once. Takes the reference; the caller's.
static json_t *texts_once(json_t *take_list)
{
    json_t *set = admin_text_set(take_list), *once = admin_members(set);
    json_decref(set);
    json_decref(take_list);
    return once;
}

static bool texts_only(const json_t *list)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        if (!json_is_string(value))
            return false;
    }
    return json_is_array(list);
}

// ---- peers

static void peers_read(struct admin_node *n)
{
    json_t *peers = json_object_get(n->value, "peerClusterNames");
    if (json_is_array(peers))
        admin_json(n->request, HTTP_OK, json_incref(peers));
    else
        admin_empty(n->request, HTTP_OK);
}

static void peers_get(struct admin_request *r)
{
    if (admin_node_name(r, CLUSTER_AT, "Cluster"))
        admin_node_read(r, cluster_node(r, ""), "Cluster", NULL, peers_read);
}

static bool peers_change(struct admin_node *n)
{
    return json_object_set(n->value, "peerClusterNames", n->request->json) == 0;
}

// The first text of a list that is (or is not) in a set; NULL: none.
static const char *first_of(const json_t *list, const json_t *set, bool is_in)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        if ((json_object_get(set, json_string_value(value)) != NULL) == is_in)
            return json_string_value(value);
    }
    return NULL;
}

static void peers_known(struct admin_nodes *n)
{
    struct admin_request *r = n->request;
    for (size_t i = 0; i < n->count; i++)
        json_object_set_new(n->result, n->names[i], json_true());
    const char *unknown = first_of(r->json, n->result, false);
    if (unknown)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Peer cluster %s does not exist", unknown);
    else
        admin_node_change(r, cluster_node(r, ""), "Cluster", NULL, peers_change, NULL);
}

// The body as a list of other clusters; no body: of none. False: answered.
static bool peers_body(struct admin_request *r)
{
    json_t *body, *value;
    size_t i;
    if (!admin_body(r, &body))
        return false;
    if (body && !json_is_null(body) && !texts_only(body)) {
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be a list of clusters' names");
        return false;
    }
    r->json = texts_once(body);
    json_array_foreach(r->json, i, value)
    {
        if (strcmp(json_string_value(value), r->segments[CLUSTER_AT]) == 0) {
            admin_fail(r, HTTP_PRECONDITION_FAILED, "%s itself can't be part of peer-list", r->segments[CLUSTER_AT]);
            return false;
        }
    }
    return true;
}

static void peers_set(struct admin_request *r)
{
    if (admin_node_name(r, CLUSTER_AT, "Cluster") && peers_body(r))
        admin_nodes_read(r, ox_strdup("/admin/clusters"), 1, NULL, NULL, peers_known);
}

// ---- migration: where the clients of a cluster that has moved are sent

static const char *const url_members[] = {"serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls"};

static void migration_read(struct admin_node *n)
{
    json_t *shown = json_deep_copy(n->value), *url = json_object_get(shown, "migratedClusterUrl");
    bool empty = true;
    for (size_t i = 0; i < OX_COUNT(url_members); i++)
        empty &= !json_object_get(url, url_members[i]);
    if (json_is_object(url))
        json_object_set_new(url, "empty", json_boolean(empty));
    admin_json(n->request, HTTP_OK, shown);
}

static void migration_get(struct admin_request *r)
{
    if (admin_node_name(r, CLUSTER_AT, "Cluster"))
        admin_node_read(r, cluster_node(r, "/policies"), "Cluster", NULL, migration_read);
}

static bool migration_change(struct admin_node *n)
{
    json_t *url = json_object();
    for (size_t i = 0; i < OX_COUNT(url_members); i++) {
        json_t *value = json_object_get(n->request->json, url_members[i]);
        if (json_is_string(value))
            json_object_set(url, url_members[i], value);
    }
    json_object_set_new(n->value, "migrated", json_boolean(admin_query_true(n->request, "migrated")));
    json_object_set_new(n->value, "migratedClusterUrl", url);
    return true;
}

static void part_changed(struct admin_node *n)
{
    admin_empty(n->request, HTTP_OK);
}

static void migration_checked(struct admin_request *r)
{
    admin_node_change_or(r, cluster_node(r, "/policies"), json_object(), NULL, migration_change, part_changed);
}

static void migration_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    for (size_t i = 0; json_is_object(body) && i < OX_COUNT(url_members); i++) {
        json_t *value = json_object_get(body, url_members[i]);
        if (value && !json_is_null(value) && !json_is_string(value)) {
            admin_fail(r, HTTP_BAD_REQUEST, "\"%s\" must be text: a URL", url_members[i]);
            return;
        }
    }
    if (json_is_object(body))
        admin_cluster_check(r, CLUSTER_AT, HTTP_NOT_FOUND, migration_checked);
    else
        admin_fail(
            r, HTTP_BAD_REQUEST,
            "the body must be an object: \"serviceUrl\" and \"brokerServiceUrl\" of the cluster that clients move to");
}

// ---- failure domains

static bool domains_see(struct admin_nodes *n, const char *name, const json_t *value)
{
    json_object_set(n->result, name, (json_t *)(uintptr_t)value);
    return true;
}

static void domains_answer(struct admin_nodes *n)
{
    admin_json(n->request, HTTP_OK, json_incref(n->result));
}

static void domains_list(struct admin_request *r)
{
    if (admin_node_name(r, CLUSTER_AT, "Cluster"))
        admin_nodes_read(r, cluster_node(r, "/failureDomain"), 1, NULL, domains_see, domains_answer);
}

static char *domain_node(const struct admin_request *r)
{
    return ox_asprintf("/admin/clusters/%s/failureDomain/%s", r->segments[CLUSTER_AT], r->segments[DOMAIN_AT]);
}

static void domain_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    if (n->version == OX_META_ABSENT)
        admin_fail(r, HTTP_NOT_FOUND, "Domain %s for cluster %s does not exist", r->segments[DOMAIN_AT],
                   r->segments[CLUSTER_AT]);
    else
        admin_json(r, HTTP_OK, json_incref(n->value));
}

static void domain_look(struct admin_request *r)
{
    admin_node_read_or(r, domain_node(r), json_object(), NULL, domain_read);
}

static void domain_get(struct admin_request *r)
{
    if (admin_node_name(r, DOMAIN_AT, "Failure domain"))
        admin_cluster_check(r, CLUSTER_AT, HTTP_PRECONDITION_FAILED, domain_look);
}

// A broker is in one domain only.
static bool domain_compare(struct admin_nodes *n, const char *name, const json_t *value)
{
    struct admin_request *r = n->request;
    if (strcmp(name, r->segments[DOMAIN_AT]) == 0)
        return true;
    json_t *others = admin_text_set(json_object_get(value, "brokers"));
    const char *taken = first_of(json_object_get(r->json, "brokers"), others, true);
    json_decref(others);
    if (taken)
        admin_fail(r, HTTP_CONFLICT, "[%s] already exists in %s", taken, name);
    return !taken;
}

static bool domain_change(struct admin_node *n)
{
    json_t *brokers = json_object_get(n->request->json, "brokers");
    if (brokers && !json_is_null(brokers))
        json_object_set_new(n->value, "brokers", texts_once(json_incref(brokers)));
    else
        json_object_del(n->value, "brokers");
    return true;
}

static void domain_compared(struct admin_nodes *n)
{
    struct admin_request *r = n->request;
    admin_node_change_or(r, domain_node(r), json_object(), NULL, domain_change, NULL);
}

static void domain_checked(struct admin_request *r)
{
    admin_nodes_read(r, cluster_node(r, "/failureDomain"), 1, NULL, domain_compare, domain_compared);
}

static void domain_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_node_name(r, DOMAIN_AT, "Failure domain") || !admin_body(r, &body))
        return;
    json_t *brokers = json_object_get(body, "brokers");
    if (!json_is_object(body) || (brokers && !json_is_null(brokers) && !texts_only(brokers)))
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be an object with \"brokers\", a list of brokers' names");
    else
        admin_cluster_check(r, CLUSTER_AT, HTTP_PRECONDITION_FAILED, domain_checked);
}

static void domain_remove(struct admin_request *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = domain_node(r);
    admin_node_delete(
        r, path, HTTP_OK,
        ox_asprintf("Domain-name %s or cluster %s does not exist", r->segments[DOMAIN_AT], r->segments[CLUSTER_AT]));
}

static void domain_delete(struct admin_request *r)
{
    if (admin_node_name(r, DOMAIN_AT, "Failure domain"))
        admin_cluster_check(r, CLUSTER_AT, HTTP_PRECONDITION_FAILED, domain_remove);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_CLUSTER_PARTS};
const struct admin_route_table admin_cluster_parts = {routes, OX_COUNT(routes)};
