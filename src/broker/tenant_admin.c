// tenant_admin.c - a tenant's namespaces, and deleting a tenant.
#include <string.h>

#include "base/mem.h"
#include "broker/namespace_admin.h"

// ---- its namespaces

static ox_step list_next(struct ox_seq *s);

static struct ox_tenant_namespaces *list_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_tenant_namespaces, seq);
}

// A child with policies is a namespace; one without is the cluster of old names, "tenant/cluster/namespace", whose children are not looked at.
static ox_step list_child_got(struct ox_seq *s)
{
    struct ox_tenant_namespaces *o = list_of(s);
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    if (!s->err && o->get.value.len)
        o->names[o->count++] = ox_asprintf("%s/%s", o->tenant, o->children.names[o->at]);
    if (!s->err)
        ox_buf_unref(&o->get.value);
    o->at++;
    return OX_GOTO(s, list_next);
}

static ox_step list_next(struct ox_seq *s)
{
    struct ox_tenant_namespaces *o = list_of(s);
    if (o->at == o->children.count)
        return OX_FINISH(s, OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s/%s", o->tenant, o->children.names[o->at]);
    ox_seq_bind(s, &o->get.op, "namespace.get");
    ox_meta_get(o->shard->meta, &o->get, path);
    return OX_WAIT(s, list_child_got);
}

static ox_step list_children_got(struct ox_seq *s)
{
    struct ox_tenant_namespaces *o = list_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    o->names = ox_calloc(o->children.count + 1, sizeof *o->names);
    return OX_GOTO(s, list_next);
}

static ox_step list_start(struct ox_seq *s)
{
    struct ox_tenant_namespaces *o = list_of(s);
    if (!*o->tenant || strchr(o->tenant, '/'))
        return OX_FINISH(s, OX_E_NOT_FOUND);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", o->tenant);
    ox_seq_bind(s, &o->children.op, "tenant.children");
    ox_meta_children(o->shard->meta, &o->children, path);
    return OX_WAIT(s, list_children_got);
}

static void list_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_tenant_namespaces *o = list_of(s);
    ox_meta_names_free(o->children.names, o->children.count);
    ox_free(o->tenant);
    if (err)
        ox_tenant_namespaces_fini(o);
    ox_op_finish(&o->op, err);
}

void ox_tenant_namespaces(struct ox_shard *sh, struct ox_tenant_namespaces *o, const char *tenant)
{
    ox_op_begin(&o->op);
    o->shard = sh;
    o->names = NULL;
    o->count = o->at = 0;
    o->children.names = NULL;
    o->children.count = 0;
    o->tenant = ox_strdup(tenant);
    ox_seq_start(&o->seq, sh->loop, "tenant.namespaces", list_start, list_done);
}

void ox_tenant_namespaces_fini(struct ox_tenant_namespaces *o)
{
    for (size_t i = 0; i < o->count; i++)
        ox_free(o->names[i]);
    ox_free(o->names);
    o->names = NULL;
    o->count = 0;
}

// ---- deleting

static ox_step delete_next(struct ox_seq *s);

static struct ox_tenant_delete *delete_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_tenant_delete, seq);
}

static ox_step delete_gone(struct ox_seq *s)
{
    struct ox_tenant_delete *o = delete_of(s);
    if (s->err == OX_E_NOT_EMPTY)
        o->why = "The tenant still has active namespaces";
    return OX_FINISH(s, s->err == OX_E_NOT_EMPTY ? OX_E_CONFLICT : s->err);
}

static ox_step delete_namespace_gone(struct ox_seq *s)
{
    struct ox_tenant_delete *o = delete_of(s);
    o->why = o->delete_.why;
    if (s->err && s->err != OX_E_NAMESPACE_NOT_FOUND)
        return OX_FINISH(s, s->err);
    o->at++;
    return OX_GOTO(s, delete_next);
}

static ox_step delete_next(struct ox_seq *s)
{
    struct ox_tenant_delete *o = delete_of(s);
    if (o->at < o->list.count) {
        o->delete_.force = true;
        ox_seq_bind(s, &o->delete_.op, "namespace.delete");
        ox_namespace_delete(o->shard, &o->delete_, o->list.names[o->at]);
        return OX_WAIT(s, delete_namespace_gone);
    }
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", o->tenant);
    ox_seq_bind(s, &o->del.op, "tenant.remove");
    ox_meta_del(o->shard->meta, &o->del, path, OX_META_ANY);
    return OX_WAIT(s, delete_gone);
}

static ox_step delete_listed(struct ox_seq *s)
{
    struct ox_tenant_delete *o = delete_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    if (o->list.count && !o->force) {
        o->why = "The tenant still has active namespaces";
        return OX_FINISH(s, OX_E_CONFLICT);
    }
    return OX_GOTO(s, delete_next);
}

static ox_step delete_start(struct ox_seq *s)
{
    struct ox_tenant_delete *o = delete_of(s);
    ox_seq_bind(s, &o->list.op, "tenant.namespaces");
    ox_tenant_namespaces(o->shard, &o->list, o->tenant);
    return OX_WAIT(s, delete_listed);
}

static void delete_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_tenant_delete *o = delete_of(s);
    ox_tenant_namespaces_fini(&o->list);
    ox_free(o->tenant);
    ox_op_finish(&o->op, err);
}

void ox_tenant_delete(struct ox_shard *sh, struct ox_tenant_delete *o, const char *tenant)
{
    ox_op_begin(&o->op);
    o->shard = sh;
    o->why = NULL;
    o->at = 0;
    o->tenant = ox_strdup(tenant);
    ox_seq_start(&o->seq, sh->loop, "tenant.delete", delete_start, delete_done);
}
