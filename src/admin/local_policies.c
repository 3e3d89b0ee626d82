// local_policies.c - what is kept of a namespace beside its policies, per cluster: its anti-affinity group and its bookies' affinity groups. Nothing here follows them.
#include <string.h>

#include "admin/node.h"
#include "admin/nodes.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

// Of .../namespaces/{cluster}/antiAffinity/{group}, which tools ask for below /admin, and below /admin/v2.
#define GROUP_BACK 1
#define CLUSTER_BACK 3

char *admin_local_path(const char *ns)
{
    return ox_asprintf("/admin/local-policies/%s", ns);
}

json_t *admin_local_initial(const json_t *policies)
{
    json_t *bundles = json_object_get(policies, "bundles");
    return json_pack("{s:O*, s:b}", "bundles", bundles, "migrated", 0);
}

// A member of the local policies. Static.
struct local_part {
    const char *member;
    bool (*change)(struct admin_node *n);
    void (*show)(struct admin_request *r, json_t *value); // not NULL
};

static const struct local_part *part_of(const struct admin_request *r)
{
    return (const struct local_part *)r->route->arg;
}

// ---- reading, setting, removing: the namespace must be there, its local policies need not

static void local_read(struct admin_node *n)
{
    const struct local_part *p = part_of(n->request);
    json_t *value = json_object_get(n->value, p->member);
    if (value && !json_is_null(value))
        p->show(n->request, value);
    else
        admin_empty(n->request, HTTP_NO_CONTENT);
}

static void local_look(struct admin_node *n)
{
    struct admin_request *r = n->request;
    admin_node_read_or(r, admin_local_path(r->ns), json_object(), NULL, local_read);
}

static void local_get(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, local_look);
}

static bool local_drop(struct admin_node *n)
{
    json_object_del(n->value, part_of(n->request)->member);
    return true;
}

static void local_write(struct admin_node *n)
{
    struct admin_request *r = n->request;
    bool removes = strcmp(r->route->method, "DELETE") == 0;
    admin_node_change_or(r, admin_local_path(r->ns), admin_local_initial(n->value), NULL,
                         removes ? local_drop : part_of(r)->change, NULL);
}

static void local_remove(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, local_write);
}

// ---- anti-affinity: the body is the group's name as it is, quotes and all

static bool group_change(struct admin_node *n)
{
    return json_object_set_new(n->value, part_of(n->request)->member, json_incref(n->request->json)) == 0;
}

static void group_show(struct admin_request *r, json_t *value)
{
    const char *text = json_string_value(value);
    admin_bytes(r, HTTP_OK, text ? text : "", text ? strlen(text) : 0);
}

static const struct local_part anti_affinity = {"namespaceAntiAffinityGroup", group_change, group_show};

static void group_set(struct admin_request *r)
{
    const char *text = ox_str_get(&r->body);
    if (text[strspn(text, " \t\r\n")] == '\0') {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "antiAffinityGroup can't be empty");
        return;
    }
    r->json = json_string(text);
    if (r->json)
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, local_write);
    else
        admin_fail(r, HTTP_BAD_REQUEST, "the name of an anti-affinity group must be UTF-8");
}

static const char *group_tenant(struct admin_request *r)
{
    const char *tenant = admin_query(r, "tenant");
    return tenant ? tenant : admin_query(r, "property");
}

static bool group_see(struct admin_nodes *n, const char *name, const json_t *value)
{
    const char *group = json_string_value(json_object_get(value, anti_affinity.member));
    OX_CLEANUP(ox_free_ptr)
    char *ns = ox_asprintf("%s/%s", group_tenant(n->request), name);
    if (group && strcasecmp(group, n->request->segments[n->request->count - GROUP_BACK]) == 0)
        json_object_set_new(n->result, ns, json_true());
    return true;
}

static void group_seen(struct admin_nodes *n)
{
    admin_json(n->request, HTTP_OK, admin_members(n->result));
}

static void group_look(struct admin_request *r)
{
    admin_nodes_read(r, ox_asprintf("/admin/local-policies/%s", group_tenant(r)), 1, NULL, group_see, group_seen);
}

static void group_namespaces(struct admin_request *r)
{
    const char *tenant = group_tenant(r);
    if (!tenant || !*tenant)
        admin_fail(r, HTTP_BAD_REQUEST, "Tenant should not be null: name it with ?tenant=");
    else if (!admin_name_valid(tenant))
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Tenant name is not valid: %s", tenant);
    else
        admin_cluster_check(r, r->count - CLUSTER_BACK, HTTP_PRECONDITION_FAILED, group_look);
}

// ---- affinity to groups of bookies

static const struct policy_field affinity_fields[] = {{"bookkeeperAffinityGroupPrimary", FIELD_WORD, 0, true, NULL},
                                                      {"bookkeeperAffinityGroupSecondary", FIELD_WORD, 0, true, NULL},
                                                      {0}};
static const struct policy_shape affinity_shape = {.kind = POLICY_OBJECT, .fields = affinity_fields};

// No body takes them away, as in Pulsar.
static bool affinity_change(struct admin_node *n)
{
    json_t *value;
    if (!n->request->json || json_is_null(n->request->json))
        return local_drop(n);
    if (!policy_read(n->request, &affinity_shape, "bookieAffinity", n->request->json, &value))
        return false;
    json_object_set_new(n->value, part_of(n->request)->member, value);
    return true;
}

static void affinity_show(struct admin_request *r, json_t *value)
{
    admin_json(r, HTTP_OK, json_incref(value));
}

static const struct local_part bookie_affinity = {"bookieAffinityGroup", affinity_change, affinity_show};

static void affinity_set(struct admin_request *r)
{
    json_t *body;
    if (admin_body(r, &body))
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, local_write);
}

// ---- whether the namespace's clients are to go to another cluster: in both nodes, as brokers look into one and tools into the other

static bool migration_change(struct admin_node *n)
{
    return json_object_set(n->value, "migrated", n->request->json) == 0;
}

static void migration_local_changed(struct admin_node *n)
{
    admin_namespace_change(n->request, migration_change);
}

static void migration_write(struct admin_node *n)
{
    struct admin_request *r = n->request;
    admin_node_change_or(r, admin_local_path(r->ns), admin_local_initial(n->value), NULL, migration_change,
                         migration_local_changed);
}

static void migration_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (json_is_boolean(body))
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, migration_write);
    else
        admin_fail(r, HTTP_BAD_REQUEST, "migration: the body must be true or false");
}

static const struct admin_route routes[] = {ADMIN_ROUTES_LOCAL_POLICIES};
const struct admin_route_table admin_local_policies = {routes, OX_COUNT(routes)};
