// clusters.c - /admin/v2/clusters: which clusters this instance knows.
#include <string.h>

#include "admin/node.h"
#include "gen/rest_routes.h"

#define CLUSTER_AT 3

struct cluster_call {
    struct admin_request *request;
    struct ox_meta_children children;
    struct ox_meta_put put;
};

static struct cluster_call *cluster_call_new(struct admin_request *r)
{
    struct cluster_call *c = ox_malloc(sizeof *c);
    c->request = r;
    return c;
}

static char *cluster_path(const struct admin_request *r)
{
    return ox_asprintf("/admin/clusters/%s", r->segments[CLUSTER_AT]);
}

static void clusters_listed(struct ox_op *op)
{
    struct cluster_call *c = CONTAINER_OF(op, struct cluster_call, children.op);
    json_t *names = json_array();
    for (size_t i = 0; op->err == OX_OK && i < c->children.count; i++) {
        if (strcmp(c->children.names[i], "global") != 0) // not a cluster, but what replication once used for all of them
            json_array_append_new(names, json_string(c->children.names[i]));
    }
    if (op->err == OX_OK)
        ox_meta_names_free(c->children.names, c->children.count);
    if (op->err == OX_OK || op->err == OX_E_NOT_FOUND) {
        admin_json(c->request, HTTP_OK, names);
    } else {
        json_decref(names);
        admin_error(c->request, op->err, "clusters", NULL);
    }
    ox_free(c);
}

static void clusters_list(struct admin_request *r)
{
    struct cluster_call *c = cluster_call_new(r);
    ox_op_init(&c->children.op, r->admin->shard->loop, clusters_listed, "clusters.list");
    ox_meta_children(r->admin->shard->meta, &c->children, "/admin/clusters");
}

static void cluster_read(struct admin_node *n)
{
    admin_json(n->request, HTTP_OK, json_incref(n->value));
}

static bool cluster_named(struct admin_request *r)
{
    if (admin_name_valid(r->segments[CLUSTER_AT]))
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED, "Cluster name is not valid: %s", r->segments[CLUSTER_AT]);
    return false;
}

static void cluster_get(struct admin_request *r)
{
    if (cluster_named(r))
        admin_node_read(r, cluster_path(r), "Cluster", NULL, cluster_read);
}

static bool cluster_url_valid(const json_t *body, const char *member, const char *scheme, const char *secure)
{
    const json_t *url = json_object_get(body, member);
    const char *text = json_string_value(url);
    if (!url || json_is_null(url) || (text && !*text))
        return true;
    return text && (strncmp(text, scheme, strlen(scheme)) == 0 || strncmp(text, secure, strlen(secure)) == 0);
}

// The body, checked. False: answered.
static bool cluster_body(struct admin_request *r, json_t **ret)
{
    if (!admin_body(r, ret))
        return false;
    if (!json_is_object(*ret)) {
        admin_fail(r, HTTP_BAD_REQUEST, "cluster data is required: an object with \"serviceUrl\" and \"brokerServiceUrl\"");
        return false;
    }
    const char *wrong =
        !cluster_url_valid(*ret, "serviceUrl", "http://", "https://")                   ? "serviceUrl"
        : !cluster_url_valid(*ret, "serviceUrlTls", "http://", "https://")              ? "serviceUrlTls"
        : !cluster_url_valid(*ret, "brokerServiceUrl", "pulsar://", "pulsar+ssl://")    ? "brokerServiceUrl"
        : !cluster_url_valid(*ret, "brokerServiceUrlTls", "pulsar://", "pulsar+ssl://") ? "brokerServiceUrlTls"
                                                                                        : NULL;
    if (wrong)
        admin_fail(r, HTTP_BAD_REQUEST,
                   "Illegal %s, example: http://pulsar.example.com:8080 or pulsar://pulsar.example.com:6650", wrong);
    return !wrong;
}

static void cluster_put(struct ox_op *op)
{
    struct cluster_call *c = CONTAINER_OF(op, struct cluster_call, put.op);
    struct admin_request *r = c->request;
    if (op->err == OX_OK) {
        ox_free(c->put.path);
        admin_empty(r, HTTP_OK);
    } else if (op->err == OX_E_BAD_VERSION) {
        admin_fail(r, HTTP_CONFLICT, "Cluster already exists: %s", r->segments[CLUSTER_AT]);
    } else {
        admin_error(r, op->err, r->segments[CLUSTER_AT], NULL);
    }
    ox_free(c);
}

static void cluster_defaults(json_t *body)
{
    static const char *const flags[] = {"brokerClientTlsEnabled", "tlsAllowInsecureConnection",
                                        "brokerClientTlsEnabledWithKeyStore"};
    for (size_t i = 0; i < OX_COUNT(flags); i++) {
        if (!json_object_get(body, flags[i]))
            json_object_set_new(body, flags[i], json_false());
    }
}

static void cluster_create(struct admin_request *r)
{
    json_t *body;
    if (!cluster_named(r) || !cluster_body(r, &body))
        return;
    cluster_defaults(body);
    OX_CLEANUP(ox_free_ptr)
    char *path = cluster_path(r);
    struct cluster_call *c = cluster_call_new(r);
    struct ox_buf value = admin_json_buf(body);
    ox_op_init(&c->put.op, r->admin->shard->loop, cluster_put, "cluster.put");
    ox_meta_put(r->admin->shard->meta, &c->put, path, value, OX_META_ABSENT, 0);
    ox_buf_unref(&value);
}

static bool cluster_change(struct admin_node *n)
{
    json_t *body = n->request->json;
    cluster_defaults(body);
    json_object_clear(n->value);
    json_object_update(n->value, body);
    return true;
}

static void cluster_changed(struct admin_node *n)
{
    admin_empty(n->request, HTTP_OK);
}

static void cluster_update(struct admin_request *r)
{
    json_t *body;
    if (cluster_named(r) && cluster_body(r, &body))
        admin_node_change(r, cluster_path(r), "Cluster", NULL, cluster_change, cluster_changed);
}

// ---- deleting: not while it has isolation policies; what is kept below it goes first

static const char *const cluster_below[] = {"/failureDomain", "/namespaceIsolationPolicies", "/policies", ""};

struct cluster_delete {
    struct admin_request *request;
    size_t at; // in cluster_below
    struct ox_meta_children domains;
    struct ox_meta_del del;
    struct ox_seq seq;
};

static struct cluster_delete *delete_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct cluster_delete, seq);
}

static ox_step delete_part(struct ox_seq *s);

static ox_step delete_gone(struct ox_seq *s)
{
    struct cluster_delete *d = delete_of(s);
    bool last = d->at + 1 == OX_COUNT(cluster_below);
    if (s->err && (s->err != OX_E_NOT_FOUND || last))
        return OX_FINISH(s, s->err);
    d->at++;
    return last ? OX_FINISH(s, OX_OK) : OX_GOTO(s, delete_part);
}

static ox_step delete_part(struct ox_seq *s)
{
    struct cluster_delete *d = delete_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/clusters/%s%s", d->request->segments[CLUSTER_AT], cluster_below[d->at]);
    ox_seq_bind(s, &d->del.op, "cluster.delete");
    ox_meta_del(d->request->admin->shard->meta, &d->del, path, OX_META_ANY);
    return OX_WAIT(s, delete_gone);
}

static ox_step delete_domain(struct ox_seq *s)
{
    struct cluster_delete *d = delete_of(s);
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    if (d->domains.count == 0)
        return OX_GOTO(s, delete_part);
    char *name = d->domains.names[--d->domains.count];
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/clusters/%s/failureDomain/%s", d->request->segments[CLUSTER_AT], name);
    ox_free(name);
    ox_seq_bind(s, &d->del.op, "domain.delete");
    ox_meta_del(d->request->admin->shard->meta, &d->del, path, OX_META_ANY);
    return OX_WAIT(s, delete_domain);
}

static ox_step delete_start(struct ox_seq *s)
{
    struct cluster_delete *d = delete_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/clusters/%s/failureDomain", d->request->segments[CLUSTER_AT]);
    ox_seq_bind(s, &d->domains.op, "cluster.domains");
    ox_meta_children(d->request->admin->shard->meta, &d->domains, path);
    return OX_WAIT(s, delete_domain);
}

static void delete_done(struct ox_seq *s, enum ox_err err)
{
    struct cluster_delete *d = delete_of(s);
    struct admin_request *r = d->request;
    if (err == OX_E_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Cluster does not exist: %s", r->segments[CLUSTER_AT]);
    else
        admin_done(r, err, r->segments[CLUSTER_AT], NULL);
    ox_meta_names_free(d->domains.names, d->domains.count);
    ox_free(d);
}

static void cluster_delete_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    if (json_object_size(n->value)) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Cluster not empty: %s has namespace isolation policies",
                   r->segments[CLUSTER_AT]);
        return;
    }
    struct cluster_delete *d = ox_malloc(sizeof *d);
    d->request = r;
    ox_seq_start(&d->seq, r->admin->shard->loop, "admin.cluster.delete", delete_start, delete_done);
}

static void cluster_delete(struct admin_request *r)
{
    const char *name = r->segments[CLUSTER_AT];
    if (!cluster_named(r))
        return;
    if (strcmp(name, r->admin->shard->config.cluster) == 0)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Cluster not empty: %s is the one this broker is in", name);
    else
        admin_node_read_or(r, ox_asprintf("/admin/clusters/%s/namespaceIsolationPolicies", name), json_object(), NULL,
                           cluster_delete_read);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_CLUSTERS};
const struct admin_route_table admin_clusters = {routes, OX_COUNT(routes)};
