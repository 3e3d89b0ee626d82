// resource_groups.c - /admin/v2/resourcegroups, and which of them a namespace is in. Kept: nothing here is limited by group.
#include <string.h>

#include "admin/node.h"
#include "admin/nodes.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

#define GROUP_AT 3
#define NS_GROUP_AT 6

static const struct policy_field group_fields[] = {{"publishRateInMsgs", FIELD_NUMBER, 0, true, NULL},
                                                   {"publishRateInBytes", FIELD_LONG, 0, true, NULL},
                                                   {"dispatchRateInMsgs", FIELD_NUMBER, 0, true, NULL},
                                                   {"dispatchRateInBytes", FIELD_LONG, 0, true, NULL},
                                                   {0}};
static const struct policy_shape group_shape = {.kind = POLICY_OBJECT, .fields = group_fields};

static char *group_node(const char *name)
{
    return ox_asprintf("/admin/resourcegroups/%s", name);
}

static void groups_list(struct admin_request *r)
{
    admin_nodes_list(r, ox_strdup("/admin/resourcegroups"));
}

static void group_read(struct admin_node *n)
{
    admin_json(n->request, HTTP_OK, json_incref(n->value));
}

static void group_get(struct admin_request *r)
{
    if (admin_node_name(r, GROUP_AT, "ResourceGroup"))
        admin_node_read(r, group_node(r->segments[GROUP_AT]), "ResourceGroup", NULL, group_read);
}

// Members that are not given stay as they are; in a new group they are -1: without limit.
static bool group_change(struct admin_node *n)
{
    json_t *value;
    if (!policy_read(n->request, &group_shape, "resource group", n->request->json, &value))
        return false;
    json_object_update(n->value, value);
    json_decref(value);
    return true;
}

static void group_set(struct admin_request *r)
{
    json_t *body;
    if (admin_node_name(r, GROUP_AT, "ResourceGroup") && admin_body(r, &body))
        admin_node_change_or(r, group_node(r->segments[GROUP_AT]),
                             json_pack("{s:i, s:i, s:i, s:i}", "publishRateInMsgs", -1, "publishRateInBytes", -1,
                                       "dispatchRateInMsgs", -1, "dispatchRateInBytes", -1),
                             NULL, group_change, NULL);
}

// ---- deleting: not while a namespace is in it

static bool group_use(struct admin_nodes *n, const char *name, const json_t *value)
{
    struct admin_request *r = n->request;
    const char *group = json_string_value(json_object_get(value, "resource_group_name"));
    if (!group || strcmp(group, r->segments[GROUP_AT]) != 0)
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED, "ResourceGroup is in use: namespace %s is in %s", name, group);
    return false;
}

static void group_unused(struct admin_nodes *n)
{
    struct admin_request *r = n->request;
    OX_CLEANUP(ox_free_ptr)
    char *path = group_node(r->segments[GROUP_AT]);
    admin_node_delete(r, path, HTTP_NO_CONTENT, ox_asprintf("ResourceGroup %s does not exist", r->segments[GROUP_AT]));
}

static void group_delete(struct admin_request *r)
{
    if (admin_node_name(r, GROUP_AT, "ResourceGroup"))
        admin_nodes_read(r, ox_strdup("/admin/policies"), 2, NULL, group_use, group_unused);
}

// ---- the group of a namespace

static void ns_group_read(struct admin_node *n)
{
    const char *name = json_string_value(json_object_get(n->value, "resource_group_name"));
    admin_bytes(n->request, HTTP_OK, name ? name : "", name ? strlen(name) : 0);
}

static void ns_group_get(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, ns_group_read);
}

static bool ns_group_change(struct admin_node *n)
{
    return json_object_set_new(n->value, "resource_group_name", json_string(n->request->segments[NS_GROUP_AT])) == 0;
}

static void ns_group_known(struct admin_node *n)
{
    struct admin_request *r = n->request;
    if (n->version == OX_META_ABSENT)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "ResourceGroup does not exist: %s", r->segments[NS_GROUP_AT]);
    else
        admin_namespace_change(r, ns_group_change);
}

static void ns_group_set(struct admin_request *r)
{
    if (admin_node_name(r, NS_GROUP_AT, "ResourceGroup"))
        admin_node_read_or(r, group_node(r->segments[NS_GROUP_AT]), json_object(), NULL, ns_group_known);
}

static bool ns_group_drop(struct admin_node *n)
{
    json_object_del(n->value, "resource_group_name");
    return true;
}

static void ns_group_remove(struct admin_request *r)
{
    admin_namespace_change(r, ns_group_drop);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_RESOURCE_GROUPS};
const struct admin_route_table admin_resource_groups = {routes, OX_COUNT(routes)};
