// node.c - reading and changing JSON nodes for requests.
#include "admin/node.h"

#include <string.h>

#define NODE_TRIES_MAX 16 // lost races, one after the other

static ox_step node_get(struct ox_seq *s);

static struct admin_node *node_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct admin_node, seq);
}

static void node_done(struct ox_seq *s, enum ox_err err)
{
    struct admin_node *n = node_of(s);
    struct admin_request *r = n->request;
    if (err == OX_E_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "%s does not exist", n->no_tenant ? "Tenant" : n->what); // clients compare this sentence
    else if (err)
        admin_error(r, err, n->what, err == OX_E_BAD_VERSION ? "others keep changing it; try again" : NULL);
    else if (n->change && !r->answered && n->changed)
        n->changed(n);
    else if (n->change && !r->answered)
        admin_empty(r, HTTP_NO_CONTENT);
    json_decref(n->value);
    json_decref(n->initial);
    ox_free(n->path);
    ox_free(n);
}

static ox_step node_put(struct ox_seq *s)
{
    struct admin_node *n = node_of(s);
    if (s->err == OX_E_BAD_VERSION && ++n->tries < NODE_TRIES_MAX)
        return OX_GOTO(s, node_get);
    if (s->err)
        return OX_FINISH(s, s->err);
    ox_free(n->put.path);
    n->version = n->put.stat.version;
    return OX_FINISH(s, OX_OK);
}

static ox_step node_write(struct ox_seq *s)
{
    struct admin_node *n = node_of(s);
    struct ox_buf value = admin_json_buf(n->value);
    ox_seq_bind(s, &n->put.op, "node.put");
    ox_meta_put(n->request->admin->shard->meta, &n->put, n->path, value, n->version, 0);
    ox_buf_unref(&value);
    return OX_WAIT(s, node_put);
}

static ox_step node_tenant_got(struct ox_seq *s)
{
    struct admin_node *n = node_of(s);
    if (!s->err)
        ox_buf_unref(&n->get.value);
    n->no_tenant = s->err == OX_E_NOT_FOUND;
    return OX_FINISH(s, OX_E_NOT_FOUND);
}

// A namespace that is not there: is it the tenant that is missing?
static ox_step node_tenant(struct admin_node *n)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_strndup(n->path, (size_t)(strrchr(n->path, '/') - n->path));
    ox_seq_bind(&n->seq, &n->get.op, "node.tenant");
    ox_meta_get(n->request->admin->shard->meta, &n->get, path);
    return OX_WAIT(&n->seq, node_tenant_got);
}

// What has been read becomes the value. A node made as a parent only is empty; Pulsar writes a null where a body was missing.
static void node_take(struct admin_node *n)
{
    json_decref(n->value);
    n->value = NULL;
    n->version = n->seq.err ? OX_META_ABSENT : n->get.stat.version;
    if (!n->seq.err) {
        n->value = json_loadb((const char *)n->get.value.data, n->get.value.len, JSON_DECODE_ANY, NULL);
        if (n->initial && (n->get.value.len == 0 || json_is_null(n->value))) {
            json_decref(n->value);
            n->value = json_deep_copy(n->initial);
        }
        ox_buf_unref(&n->get.value);
    } else {
        n->value = json_deep_copy(n->initial);
    }
}

static ox_step node_got(struct ox_seq *s)
{
    struct admin_node *n = node_of(s);
    bool begins = s->err == OX_E_NOT_FOUND && n->initial;
    if (s->err == OX_E_NOT_FOUND && !begins && n->request->ns && n->change)
        return node_tenant(n);
    if (s->err && !begins)
        return OX_FINISH(s, s->err);
    node_take(n);
    if (!json_is_object(n->value))
        return OX_FINISH(s, OX_E_CORRUPT);
    if (json_is_true(json_object_get(n->value, "deleted")))
        return OX_FINISH(s, OX_E_NOT_FOUND);
    if (n->read)
        n->read(n);
    else if (n->change(n))
        return OX_GOTO(s, node_write);
    return OX_FINISH(s, OX_OK);
}

static ox_step node_get(struct ox_seq *s)
{
    struct admin_node *n = node_of(s);
    ox_seq_bind(s, &n->get.op, "node.get");
    ox_meta_get(n->request->admin->shard->meta, &n->get, n->path);
    return OX_WAIT(s, node_got);
}

static struct admin_node *node_new(struct admin_request *r, char *take_path, const char *what, const void *arg)
{
    struct admin_node *n = ox_malloc(sizeof *n);
    n->request = r;
    n->path = take_path;
    n->what = what;
    n->arg = arg;
    return n;
}

void admin_node_read(struct admin_request *r, char *take_path, const char *what, const void *arg,
                     void (*read)(struct admin_node *n))
{
    struct admin_node *n = node_new(r, take_path, what, arg);
    n->read = read;
    ox_seq_start(&n->seq, r->admin->shard->loop, "admin.node.read", node_get, node_done);
}

void admin_node_change(struct admin_request *r, char *take_path, const char *what, const void *arg,
                       bool (*change)(struct admin_node *n), void (*changed)(struct admin_node *n))
{
    struct admin_node *n = node_new(r, take_path, what, arg);
    n->change = change;
    n->changed = changed;
    ox_seq_start(&n->seq, r->admin->shard->loop, "admin.node.change", node_get, node_done);
}

void admin_node_read_or(struct admin_request *r, char *take_path, json_t *take_initial, const void *arg,
                        void (*read)(struct admin_node *n))
{
    struct admin_node *n = node_new(r, take_path, "node", arg);
    n->initial = take_initial;
    n->read = read;
    ox_seq_start(&n->seq, r->admin->shard->loop, "admin.node.read", node_get, node_done);
}

void admin_node_change_or(struct admin_request *r, char *take_path, json_t *take_initial, const void *arg,
                          bool (*change)(struct admin_node *n), void (*changed)(struct admin_node *n))
{
    struct admin_node *n = node_new(r, take_path, "node", arg);
    n->initial = take_initial;
    n->change = change;
    n->changed = changed;
    ox_seq_start(&n->seq, r->admin->shard->loop, "admin.node.change", node_get, node_done);
}

// ---- deleting, and asking whether one is there

struct node_call {
    struct admin_request *request;
    unsigned status;
    char *missing;
    const char *name; // borrowed from the request
    void (*go)(struct admin_request *r);
    struct ox_meta_del del;
    struct ox_meta_get get;
};

static void node_deleted(struct ox_op *op)
{
    struct node_call *c = CONTAINER_OF(op, struct node_call, del.op);
    if (op->err == OX_E_NOT_FOUND)
        admin_fail(c->request, HTTP_NOT_FOUND, "%s", c->missing);
    else if (op->err)
        admin_error(c->request, op->err, "node", NULL);
    else
        admin_empty(c->request, c->status);
    ox_free(c->missing);
    ox_free(c);
}

void admin_node_delete(struct admin_request *r, const char *path, unsigned status, char *take_missing)
{
    struct node_call *c = ox_malloc(sizeof *c);
    c->request = r;
    c->status = status;
    c->missing = take_missing;
    ox_op_init(&c->del.op, r->admin->shard->loop, node_deleted, "node.delete");
    ox_meta_del(r->admin->shard->meta, &c->del, path, OX_META_ANY);
}

static void cluster_looked(struct ox_op *op)
{
    struct node_call *c = CONTAINER_OF(op, struct node_call, get.op);
    struct admin_request *r = c->request;
    if (op->err == OX_OK) {
        ox_buf_unref(&c->get.value);
        c->go(r);
    } else if (op->err == OX_E_NOT_FOUND) {
        admin_fail(r, c->status, "Cluster %s does not exist.", c->name);
    } else {
        admin_error(r, op->err, c->name, NULL);
    }
    ox_free(c);
}

void admin_cluster_check(struct admin_request *r, size_t segment, unsigned status, void (*go)(struct admin_request *r))
{
    if (!admin_node_name(r, segment, "Cluster"))
        return;
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/clusters/%s", r->segments[segment]);
    struct node_call *c = ox_malloc(sizeof *c);
    c->request = r;
    c->status = status;
    c->name = r->segments[segment];
    c->go = go;
    ox_op_init(&c->get.op, r->admin->shard->loop, cluster_looked, "cluster.get");
    ox_meta_get(r->admin->shard->meta, &c->get, path);
}

bool admin_node_name(struct admin_request *r, size_t segment, const char *what)
{
    const char *name = r->segments[segment];
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/%s", name);
    if (*name && !strchr(name, '/') && ox_meta_path_valid(path))
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED, "%s name is not valid: %s", what, name);
    return false;
}
