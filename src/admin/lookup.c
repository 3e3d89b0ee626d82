// lookup.c - /lookup/v2: which broker serves a topic, and in which bundle it is. This broker serves all.
#include <string.h>

#include "admin/node.h"
#include "broker/namespaces.h"
#include "gen/rest_routes.h"

struct lookup_call {
    struct admin_request *request;
    struct ox_namespace_get ns;
};

static json_t *lookup_address(const struct ox_broker_config *c)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "brokerUrl", c->service_url, "httpUrl", c->web_url, "nativeUrl",
                     c->service_url, "brokerUrlSsl", "");
}

// The bundle is that of the namespace's own policies.
static void lookup_bundle_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    uint32_t low, high;
    char bundle[32];
    if (admin_bundle_of(n->value, ox_topic_name_hash(&r->topic), &low, &high, bundle))
        admin_bytes(r, MHD_HTTP_OK, bundle, strlen(bundle));
    else
        admin_fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "namespace %s has no bundles that make sense", r->topic.ns);
}

static void lookup_bundle(struct admin_request *r)
{
    r->ns = ox_strdup(r->topic.ns);
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, lookup_bundle_read);
}

static void lookup_namespace_got(struct ox_op *op)
{
    struct lookup_call *call = CONTAINER_OF(op, struct lookup_call, ns.op);
    struct admin_request *r = call->request;
    if (op->err == OX_OK)
        admin_json(r, MHD_HTTP_OK, lookup_address(&r->admin->shard->config));
    else if (op->err == OX_E_NAMESPACE_NOT_FOUND)
        admin_fail(r, MHD_HTTP_NOT_FOUND, "Namespace not found: %s", r->topic.ns);
    else
        admin_error(r, op->err, r->topic.full, NULL);
    ox_free(call);
}

static void lookup_topic(struct admin_request *r)
{
    struct lookup_call *call = ox_malloc(sizeof *call);
    call->request = r;
    ox_op_init(&call->ns.op, r->admin->shard->loop, lookup_namespace_got, "namespace.get");
    ox_namespace_get(r->admin->shard, &call->ns, r->topic.ns);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_LOOKUP};
const struct admin_route_table admin_lookup = {routes, OX_COUNT(routes)};
