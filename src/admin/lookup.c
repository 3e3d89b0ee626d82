// lookup.c - /lookup/v2: which broker serves a topic, and in which bundle it is. This broker serves all.
#include <string.h>

#include "admin/node.h"
#include "broker/namespaces.h"
#include "broker/partitions.h"
#include "gen/rest_routes.h"

struct lookup_call {
    struct admin_request *request;
    struct ox_namespace_get ns;
    struct ox_partitions_get partitions;
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
        admin_bytes(r, HTTP_OK, bundle, strlen(bundle));
    else
        admin_fail(r, HTTP_INTERNAL_SERVER_ERROR, "namespace %s has no bundles that make sense", r->topic.ns);
}

static void lookup_bundle(struct admin_request *r)
{
    r->ns = ox_strdup(r->topic.ns);
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, lookup_bundle_read);
}

static void lookup_end(struct lookup_call *call, enum ox_err err)
{
    struct admin_request *r = call->request;
    ox_free(call);
    if (err == OX_OK)
        admin_json(r, HTTP_OK, lookup_address(&r->admin->shard->config));
    else if (err == OX_E_NAMESPACE_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Namespace not found: %s", r->topic.ns);
    else if (err == OX_E_TOPIC_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Topic not found %s", r->topic.full);
    else
        admin_error(r, err, r->topic.full, NULL);
}

static void lookup_partitions_got(struct ox_op *op)
{
    struct lookup_call *call = CONTAINER_OF(op, struct lookup_call, partitions.op);
    lookup_end(call, op->err);
}

// A partition beyond the count is nowhere; a partition of a topic that is not partitioned is a name like any other.
static void lookup_base_got(struct ox_op *op)
{
    struct lookup_call *call = CONTAINER_OF(op, struct lookup_call, partitions.op);
    uint32_t count = op->err ? 0 : call->partitions.partitions;
    bool beyond = count && (uint32_t)call->request->topic.partition >= count;
    lookup_end(call, beyond ? OX_E_TOPIC_NOT_FOUND : op->err == OX_E_TOPIC_NOT_FOUND ? OX_OK : op->err);
}

static void lookup_partitions(struct lookup_call *call, void (*got)(struct ox_op *op), const struct ox_topic_name *name)
{
    struct ox_shard *sh = call->request->admin->shard;
    ox_op_init(&call->partitions.op, sh->loop, got, "partitions.get");
    ox_partitions_get(sh, &call->partitions, name);
}

static void lookup_base(struct lookup_call *call)
{
    struct ox_topic_name name;
    OX_CLEANUP(ox_free_ptr)
    char *base = ox_topic_name_base(&call->request->topic);
    if (ox_topic_name_parse(&name, base) != OX_OK) {
        lookup_end(call, OX_E_TOPIC_NOT_FOUND);
        return;
    }
    lookup_partitions(call, lookup_base_got, &name);
    ox_topic_name_fini(&name);
}

// Where topics are not made by themselves, one that is nowhere is not found here already.
static void lookup_namespace_got(struct ox_op *op)
{
    struct lookup_call *call = CONTAINER_OF(op, struct lookup_call, ns.op);
    const struct ox_topic_name *name = &call->request->topic;
    int made = call->ns.policies.auto_topic_creation;
    bool automatic = made >= 0 ? made == 1 : call->request->admin->shard->config.auto_topic_creation;
    if (op->err)
        lookup_end(call, op->err);
    else if (!automatic && name->domain == OX_DOMAIN_PERSISTENT)
        lookup_partitions(call, lookup_partitions_got, name);
    else if (name->partition >= 0)
        lookup_base(call);
    else
        lookup_end(call, OX_OK);
}

// This broker has one listener, without a name.
static bool lookup_listener_known(struct admin_request *r)
{
    const char *name = admin_query(r, "listenerName");
    if (!name || !*name)
        return true;
    admin_fail(r, HTTP_BAD_REQUEST, "the broker does not have the listener %s", name);
    return false;
}

static void lookup_topic(struct admin_request *r)
{
    if (!lookup_listener_known(r))
        return;
    struct lookup_call *call = ox_malloc(sizeof *call);
    call->request = r;
    ox_op_init(&call->ns.op, r->admin->shard->loop, lookup_namespace_got, "namespace.get");
    ox_namespace_get(r->admin->shard, &call->ns, r->topic.ns);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_LOOKUP};
const struct admin_route_table admin_lookup = {routes, OX_COUNT(routes)};
