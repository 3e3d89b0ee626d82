// namespaces.c - reading policies and partition counts, making partitioned topics, listing topics.
#include "broker/namespaces.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

// ---- policies

static bool json_flag(json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static void policies_override(struct ox_namespace_policies *p, json_t *override)
{
    if (!json_is_object(override))
        return;
    p->auto_topic_creation = json_flag(override, "allowAutoTopicCreation");
    const char *type = json_string_value(json_object_get(override, "topicType"));
    p->auto_topic_partitioned = type && !strcmp(type, "partitioned");
    p->default_partitions = (uint32_t)json_integer_value(json_object_get(override, "defaultNumPartitions"));
}

static enum ox_err policies_read(struct ox_buf value, struct ox_namespace_policies *ret)
{
    json_t *root = json_loadb((const char *)value.data, value.len, 0, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        return OX_E_CORRUPT;
    }
    *ret = (struct ox_namespace_policies){.auto_topic_creation = -1, .deleted = json_flag(root, "deleted")};
    policies_override(ret, json_object_get(root, "autoTopicCreationOverride"));
    json_decref(root);
    return OX_OK;
}

static void namespace_got(struct ox_op *op)
{
    struct ox_namespace_get *g = CONTAINER_OF(op, struct ox_namespace_get, get.op);
    enum ox_err err = op->err;
    if (err == OX_E_NOT_FOUND) // the first namespaces may be about to be made: clients must ask again
        err = g->shard->state == OX_SHARD_STARTING ? OX_E_SHUTDOWN : OX_E_NAMESPACE_NOT_FOUND;
    if (!err) {
        err = policies_read(g->get.value, &g->policies);
        ox_buf_unref(&g->get.value);
        if (!err && g->policies.deleted)
            err = OX_E_NAMESPACE_NOT_FOUND;
    }
    ox_op_finish(&g->op, err);
}

void ox_namespace_get(struct ox_shard *sh, struct ox_namespace_get *g, const char *ns)
{
    ox_op_begin(&g->op);
    g->shard = sh;
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", ns);
    ox_op_init(&g->get.op, sh->loop, namespace_got, "namespace.get");
    ox_meta_get(sh->meta, &g->get, path);
}

// ---- how many partitions

static ox_step partitions_topic(struct ox_seq *s);
static ox_step partitions_topic_got(struct ox_seq *s);

static enum ox_err partitions_read(struct ox_buf value, uint32_t *ret)
{
    json_t *root = json_loadb((const char *)value.data, value.len, 0, NULL);
    json_t *count = json_object_get(root, "partitions");
    bool good = json_is_integer(count) && json_integer_value(count) >= 0 && json_integer_value(count) <= INT32_MAX;
    if (good)
        *ret = json_flag(root, "deleted") ? 0 : (uint32_t)json_integer_value(count);
    json_decref(root);
    return good ? OX_OK : OX_E_CORRUPT;
}

// Makes the node of a partitioned topic.
static void partitions_make(struct ox_meta *meta, struct ox_meta_put *put, const char *path, uint32_t partitions)
{
    OX_CLEANUP(ox_free_ptr)
    char *json = ox_asprintf("{\"partitions\":%u,\"deleted\":false}", (unsigned)partitions);
    struct ox_buf value = ox_buf_copy(json, strlen(json));
    ox_meta_put(meta, put, path, value, OX_META_ABSENT, 0);
    ox_buf_unref(&value);
}

static struct ox_partitions_get *partitions_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_partitions_get, seq);
}

static ox_step partitions_got(struct ox_seq *s)
{
    struct ox_partitions_get *p = partitions_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return OX_GOTO(s, partitions_topic);
    if (s->err)
        return OX_FINISH(s, s->err);
    enum ox_err err = partitions_read(p->get.value, &p->partitions);
    ox_buf_unref(&p->get.value);
    return OX_FINISH(s, err);
}

static ox_step partitions_node(struct ox_seq *s)
{
    struct ox_partitions_get *p = partitions_of(s);
    ox_seq_bind(s, &p->get.op, "partitions.get");
    ox_meta_get(p->shard->meta, &p->get, p->path);
    return OX_WAIT(s, partitions_got);
}

static ox_step partitions_namespace_got(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, partitions_node);
}

static ox_step partitions_start(struct ox_seq *s)
{
    struct ox_partitions_get *p = partitions_of(s);
    if (p->name.partition >= 0)
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &p->ns.op, "namespace.get");
    ox_namespace_get(p->shard, &p->ns, p->name.ns);
    return OX_WAIT(s, partitions_namespace_got);
}

// Not a partitioned topic: is there a plain one?
static ox_step partitions_topic(struct ox_seq *s)
{
    struct ox_partitions_get *p = partitions_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *storage = ox_topic_name_storage(&p->name);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s", storage);
    ox_seq_bind(s, &p->get.op, "partitions.plain");
    ox_meta_get(p->shard->meta, &p->get, path);
    return OX_WAIT(s, partitions_topic_got);
}

static ox_step partitions_put(struct ox_seq *s)
{
    struct ox_partitions_get *p = partitions_of(s);
    if (s->err == OX_E_BAD_VERSION)
        return OX_GOTO(s, partitions_node);
    if (!s->err)
        ox_free(p->put.path);
    return OX_FINISH(s, s->err);
}

static ox_step partitions_topic_got(struct ox_seq *s)
{
    struct ox_partitions_get *p = partitions_of(s);
    const struct ox_namespace_policies *ns = &p->ns.policies;
    const struct ox_broker_config *c = &p->shard->config;
    if (s->err != OX_E_NOT_FOUND) {
        if (!s->err)
            ox_buf_unref(&p->get.value);
        return OX_FINISH(s, s->err);
    }
    bool own = ns->auto_topic_creation >= 0;
    bool allowed = own ? ns->auto_topic_creation == 1 : c->auto_topic_creation;
    if (!p->create || !allowed)
        return OX_FINISH(s, OX_E_TOPIC_NOT_FOUND);
    if (!(own ? ns->auto_topic_partitioned : c->auto_topic_partitioned))
        return OX_FINISH(s, OX_OK);
    uint32_t count = own ? ns->default_partitions : c->default_partitions;
    p->partitions = count ? count : 1;
    ox_seq_bind(s, &p->put.op, "partitions.put");
    partitions_make(p->shard->meta, &p->put, p->path, p->partitions);
    return OX_WAIT(s, partitions_put);
}

static void partitions_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_partitions_get *p = partitions_of(s);
    ox_free(p->path);
    ox_topic_name_fini(&p->name);
    ox_op_finish(&p->op, err);
}

void ox_partitions_get(struct ox_shard *sh, struct ox_partitions_get *p, const struct ox_topic_name *name)
{
    ox_op_begin(&p->op);
    p->shard = sh;
    p->partitions = 0;
    ox_topic_name_copy(&p->name, name);
    p->path = ox_topic_name_partitions_path(name);
    ox_seq_start(&p->seq, sh->loop, "partitions.get", partitions_start, partitions_done);
}

// ---- making a partitioned topic

static ox_step create_put(struct ox_seq *s)
{
    struct ox_partitions_create *p = CONTAINER_OF(s, struct ox_partitions_create, seq);
    if (!s->err)
        ox_free(p->put.path);
    return OX_FINISH(s, s->err == OX_E_BAD_VERSION ? OX_E_EXISTS : s->err);
}

static ox_step create_namespace(struct ox_seq *s)
{
    struct ox_partitions_create *p = CONTAINER_OF(s, struct ox_partitions_create, seq);
    if (s->err)
        return OX_FINISH(s, s->err);
    ox_seq_bind(s, &p->put.op, "partitions.put");
    partitions_make(p->shard->meta, &p->put, p->path, p->partitions);
    return OX_WAIT(s, create_put);
}

static void create_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_partitions_create *p = CONTAINER_OF(s, struct ox_partitions_create, seq);
    ox_free(p->path);
    ox_op_finish(&p->op, err);
}

static ox_step create_start(struct ox_seq *s)
{
    struct ox_partitions_create *p = CONTAINER_OF(s, struct ox_partitions_create, seq);
    if (p->partitions == 0 || p->partitions > 100000)
        return OX_FINISH(s, OX_E_INVALID);
    ox_seq_bind(s, &p->ns.op, "namespace.get");
    ox_namespace_get(p->shard, &p->ns, p->ns_name);
    return OX_WAIT(s, create_namespace);
}

void ox_partitions_create(struct ox_shard *sh, struct ox_partitions_create *p, const struct ox_topic_name *name)
{
    ox_op_begin(&p->op);
    p->shard = sh;
    p->path = ox_topic_name_partitions_path(name);
    snprintf(p->ns_name, sizeof p->ns_name, "%s", name->ns);
    ox_seq_start(&p->seq, sh->loop, "partitions.create", create_start, create_done);
}

// ---- lists

static int name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// The full names of children; a child whose name cannot be decoded is left out.
static void list_take(struct ox_topics_list *l)
{
    l->names = ox_calloc(l->children.count, sizeof *l->names);
    for (size_t i = 0; i < l->children.count; i++) {
        struct ox_str local = {0};
        struct ox_topic_name name = {0};
        if (ox_name_decode(&local, l->children.names[i]) == OX_OK) {
            OX_CLEANUP(ox_free_ptr)
            char *full = ox_asprintf("persistent://%s/%s", l->ns, ox_str_get(&local));
            if (ox_topic_name_parse(&name, full) == OX_OK && (l->with_system || !ox_topic_name_is_system(&name)))
                l->names[l->count++] = ox_strdup(name.full);
        }
        ox_topic_name_fini(&name);
        ox_str_fini(&local);
    }
    if (l->count)
        qsort(l->names, l->count, sizeof *l->names, name_order);
    ox_meta_names_free(l->children.names, l->children.count);
}

static ox_step list_children(struct ox_seq *s)
{
    struct ox_topics_list *l = CONTAINER_OF(s, struct ox_topics_list, seq);
    if (s->err == OX_E_NOT_FOUND)
        return OX_FINISH(s, OX_OK);
    if (!s->err)
        list_take(l);
    return OX_FINISH(s, s->err);
}

static ox_step list_namespace(struct ox_seq *s)
{
    struct ox_topics_list *l = CONTAINER_OF(s, struct ox_topics_list, seq);
    if (s->err)
        return OX_FINISH(s, s->err);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s/persistent", l->ns);
    ox_seq_bind(s, &l->children.op, "topics.children");
    ox_meta_children(l->shard->meta, &l->children, path);
    return OX_WAIT(s, list_children);
}

static ox_step list_start(struct ox_seq *s)
{
    struct ox_topics_list *l = CONTAINER_OF(s, struct ox_topics_list, seq);
    if (!ox_namespace_valid(l->ns))
        return OX_FINISH(s, OX_E_NAMESPACE_NOT_FOUND);
    ox_seq_bind(s, &l->get.op, "namespace.get");
    ox_namespace_get(l->shard, &l->get, l->ns);
    return OX_WAIT(s, list_namespace);
}

static void list_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_topics_list *l = CONTAINER_OF(s, struct ox_topics_list, seq);
    ox_free(l->ns);
    ox_op_finish(&l->op, err);
}

void ox_topics_list(struct ox_shard *sh, struct ox_topics_list *l, const char *ns)
{
    ox_op_begin(&l->op);
    l->shard = sh;
    l->names = NULL;
    l->count = 0;
    l->ns = ox_strdup(ns);
    ox_seq_start(&l->seq, sh->loop, "topics.list", list_start, list_done);
}

void ox_topics_list_fini(struct ox_topics_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        ox_free(l->names[i]);
    ox_free(l->names);
    l->names = NULL;
    l->count = 0;
}
