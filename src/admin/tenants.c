// tenants.c - /admin/v2/tenants.
#include <string.h>

#include "admin/node.h"
#include "broker/namespace_admin.h"
#include "gen/rest_routes.h"

#define TENANT_AT 3

struct tenant_call {
    struct admin_request *request;
    struct ox_meta_children children; // of the tenants, or of the clusters while a body is checked
    struct ox_meta_put put;
    struct ox_tenant_delete delete;
};

static struct tenant_call *tenant_call_new(struct admin_request *r)
{
    struct tenant_call *c = ox_malloc(sizeof *c);
    c->request = r;
    return c;
}

static char *tenant_path(const struct admin_request *r)
{
    return ox_asprintf("/admin/policies/%s", r->segments[TENANT_AT]);
}

static void tenants_listed(struct ox_op *op)
{
    struct tenant_call *c = CONTAINER_OF(op, struct tenant_call, children.op);
    if (op->err == OX_OK) {
        admin_json(c->request, HTTP_OK, admin_names(c->children.names, c->children.count));
        ox_meta_names_free(c->children.names, c->children.count);
    } else {
        admin_error(c->request, op->err, "tenants", NULL);
    }
    ox_free(c);
}

static void tenants_list(struct admin_request *r)
{
    struct tenant_call *c = tenant_call_new(r);
    ox_op_init(&c->children.op, r->admin->shard->loop, tenants_listed, "tenants.list");
    ox_meta_children(r->admin->shard->meta, &c->children, "/admin/policies");
}

static void tenant_read(struct admin_node *n)
{
    admin_json(n->request, HTTP_OK, json_incref(n->value));
}

static void tenant_get(struct admin_request *r)
{
    if (!admin_name_valid(r->segments[TENANT_AT]))
        admin_fail(r, HTTP_NOT_FOUND, "Tenant does not exist: %s", r->segments[TENANT_AT]);
    else
        admin_node_read(r, tenant_path(r), "Tenant", NULL, tenant_read);
}

// ---- making and changing: the clusters in the body must be there

static bool texts_only(const json_t *array)
{
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value)
    {
        if (!json_is_string(value) || !*json_string_value(value))
            return false;
    }
    return json_is_array(array);
}

// The body, checked as far as it goes alone. False: answered.
static bool tenant_body(struct admin_request *r, json_t **ret)
{
    if (!admin_body(r, ret))
        return false;
    const char *why = NULL;
    json_t *roles = json_object_get(*ret, "adminRoles"), *clusters = json_object_get(*ret, "allowedClusters");
    if (!*ret || json_is_null(*ret))
        why = "TenantInfo is null: the body must be an object with \"adminRoles\" and \"allowedClusters\"";
    else if (json_is_object(*ret) && (!clusters || json_is_null(clusters)))
        why = "Clusters cannot be null: \"allowedClusters\" must be a list of clusters";
    if (why) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "%s", why);
        return false;
    }
    if (json_is_object(*ret) && texts_only(clusters) && (!roles || texts_only(roles)))
        return true;
    admin_fail(r, HTTP_BAD_REQUEST, "the body must be an object; \"adminRoles\" and \"allowedClusters\" are lists of texts");
    return false;
}

static json_t *tenant_info(json_t *body)
{
    json_t *roles = json_object_get(body, "adminRoles");
    return json_pack("{s:o, s:O}", "adminRoles", roles ? json_incref(roles) : json_array(), "allowedClusters",
                     json_object_get(body, "allowedClusters"));
}

static void tenant_put(struct ox_op *op)
{
    struct tenant_call *c = CONTAINER_OF(op, struct tenant_call, put.op);
    struct admin_request *r = c->request;
    if (op->err == OX_E_BAD_VERSION)
        admin_fail(r, HTTP_CONFLICT, "Tenant already exist: %s", r->segments[TENANT_AT]);
    else
        admin_done(r, op->err, r->segments[TENANT_AT], NULL);
    if (op->err == OX_OK)
        ox_free(c->put.path);
    ox_free(c);
}

static bool tenant_change(struct admin_node *n)
{
    json_t *info = tenant_info(n->request->json);
    json_object_update(n->value, info);
    json_decref(info);
    return true;
}

// The first cluster of a body that is not known, or NULL.
static const char *tenant_stranger(json_t *body, char *const *known, size_t count)
{
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(body, "allowedClusters"), i, value)
    {
        size_t k = 0;
        while (k < count && strcmp(known[k], json_string_value(value)) != 0)
            k++;
        if (k == count)
            return json_string_value(value);
    }
    return NULL;
}

static void tenant_store(struct tenant_call *c)
{
    struct admin_request *r = c->request;
    OX_CLEANUP(ox_free_ptr)
    char *path = tenant_path(r);
    json_t *info = tenant_info(r->json);
    struct ox_buf value = admin_json_buf(info);
    json_decref(info);
    ox_op_init(&c->put.op, r->admin->shard->loop, tenant_put, "tenant.put");
    ox_meta_put(r->admin->shard->meta, &c->put, path, value, OX_META_ABSENT, 0);
    ox_buf_unref(&value);
}

static void tenant_clusters_known(struct ox_op *op)
{
    struct tenant_call *c = CONTAINER_OF(op, struct tenant_call, children.op);
    struct admin_request *r = c->request;
    const char *stranger = op->err ? NULL : tenant_stranger(r->json, c->children.names, c->children.count);
    if (op->err)
        admin_error(r, op->err, "clusters", NULL);
    else if (stranger)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Clusters do not exist: %s", stranger);
    if (!op->err)
        ox_meta_names_free(c->children.names, c->children.count);
    if (!r->answered && r->route->arg) {
        tenant_store(c);
        return;
    }
    if (!r->answered)
        admin_node_change(r, tenant_path(r), "Tenant", NULL, tenant_change, NULL);
    ox_free(c);
}

// PUT (arg: any) makes one, POST changes one that is there.
static void tenant_write(struct admin_request *r)
{
    json_t *body;
    if (!admin_name_valid(r->segments[TENANT_AT])) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Tenant name is not valid: %s", r->segments[TENANT_AT]);
        return;
    }
    if (!tenant_body(r, &body))
        return;
    struct tenant_call *c = tenant_call_new(r);
    ox_op_init(&c->children.op, r->admin->shard->loop, tenant_clusters_known, "clusters.list");
    ox_meta_children(r->admin->shard->meta, &c->children, "/admin/clusters");
}

// ---- deleting

static void tenant_deleted(struct ox_op *op)
{
    struct tenant_call *c = CONTAINER_OF(op, struct tenant_call, delete.op);
    struct admin_request *r = c->request;
    const char *tenant = r->segments[TENANT_AT];
    if (op->err == OX_E_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Tenant doesn't exist: %s", tenant);
    else if (op->err == OX_E_CONFLICT)
        admin_fail(r, HTTP_CONFLICT, "The tenant still has active namespaces: %s", tenant);
    else
        admin_done(r, op->err, tenant, c->delete.why);
    ox_free(c);
}

static void tenant_delete(struct admin_request *r)
{
    if (!admin_name_valid(r->segments[TENANT_AT])) {
        admin_fail(r, HTTP_NOT_FOUND, "Tenant doesn't exist: %s", r->segments[TENANT_AT]);
        return;
    }
    if (admin_query_true(r, "force") && !r->admin->shard->config.force_delete_tenant) {
        admin_fail(r, HTTP_METHOD_NOT_ALLOWED,
                   "Broker doesn't allow forced deletion of tenants: forceDeleteTenantAllowed is false");
        return;
    }
    struct tenant_call *c = tenant_call_new(r);
    ox_op_init(&c->delete.op, r->admin->shard->loop, tenant_deleted, "tenant.delete");
    c->delete.force = admin_query_true(r, "force");
    ox_tenant_delete(r->admin->shard, &c->delete, r->segments[TENANT_AT]);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_TENANTS};
const struct admin_route_table admin_tenants = {routes, OX_COUNT(routes)};
