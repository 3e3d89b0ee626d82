// resource_quotas.c - /admin/v2/resource-quotas: what a bundle is expected to need, and what any needs of which nothing is said. Kept: nothing here is placed by it.
#include <string.h>

#include "admin/node.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

#define NS_AT 3
#define BUNDLE_AT 5

static const char default_node[] = "/loadbalance/resource-quota/default";

static const struct policy_field quota_fields[] = {{"msgRateIn", FIELD_REAL, 0, false, NULL},
                                                   {"msgRateOut", FIELD_REAL, 0, false, NULL},
                                                   {"bandwidthIn", FIELD_REAL, 0, false, NULL},
                                                   {"bandwidthOut", FIELD_REAL, 0, false, NULL},
                                                   {"memory", FIELD_REAL, 0, false, NULL},
                                                   {"dynamic", FIELD_FLAG, true, false, NULL},
                                                   {0}};
static const struct policy_shape quota_shape = {.kind = POLICY_OBJECT, .fields = quota_fields};

// What a bundle needs of which nobody has said anything: messages and bytes a second, in and out, and MB.
static json_t *quota_initial(void)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:b}", "msgRateIn", 40.0, "msgRateOut", 120.0, "bandwidthIn", 100000.0,
                     "bandwidthOut", 300000.0, "memory", 80.0, "dynamic", 1);
}

static void quota_read(struct admin_node *n)
{
    admin_json(n->request, HTTP_OK, json_incref(n->value));
}

static bool quota_change(struct admin_node *n)
{
    json_t *value;
    if (!policy_read(n->request, &quota_shape, "resource quota", n->request->json, &value))
        return false;
    json_object_update(n->value, value);
    json_decref(value);
    return true;
}

static void default_get(struct admin_request *r)
{
    admin_node_read_or(r, ox_strdup(default_node), quota_initial(), NULL, quota_read);
}

static void default_set(struct admin_request *r)
{
    json_t *body;
    if (admin_body(r, &body))
        admin_node_change_or(r, ox_strdup(default_node), quota_initial(), NULL, quota_change, NULL);
}

// ---- of a bundle

static char *bundle_node(const struct admin_request *r)
{
    return ox_asprintf("/loadbalance/resource-quota/%s/%s", r->ns, r->segments[BUNDLE_AT]);
}

static void bundle_quota_read(struct admin_node *n)
{
    if (n->version == OX_META_ABSENT)
        default_get(n->request);
    else
        quota_read(n);
}

static void bundle_remove(struct admin_request *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = bundle_node(r);
    admin_node_delete(r, path, HTTP_NO_CONTENT,
                      ox_asprintf("bundle %s of %s has no quota of its own", r->segments[BUNDLE_AT], r->ns));
}

static void bundle_go(struct admin_node *n)
{
    struct admin_request *r = n->request;
    uint32_t low, high;
    if (!admin_bundle_named(r, n->value, r->segments[BUNDLE_AT], &low, &high))
        return;
    if (strcmp(r->route->method, "GET") == 0)
        admin_node_read_or(r, bundle_node(r), json_object(), NULL, bundle_quota_read);
    else if (strcmp(r->route->method, "DELETE") == 0)
        bundle_remove(r);
    else
        admin_node_change_or(r, bundle_node(r), quota_initial(), NULL, quota_change, NULL);
}

static void bundle_quota(struct admin_request *r)
{
    json_t *body;
    r->ns = ox_asprintf("%s/%s", r->segments[NS_AT], r->segments[NS_AT + 1]);
    if (!ox_namespace_valid(r->ns))
        admin_fail(r, HTTP_PRECONDITION_FAILED, "namespace %s: the name is not valid", r->ns);
    else if (admin_body(r, &body))
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, bundle_go);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_RESOURCE_QUOTAS};
const struct admin_route_table admin_resource_quotas = {routes, OX_COUNT(routes)};
