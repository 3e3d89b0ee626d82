// namespace_admin.c - making and deleting namespaces and tenants. What is deleted is marked first and gone last, so that a deletion that was cut off can be repeated.
#include "broker/namespace_admin.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "broker/setup.h"

// ---- making a namespace

static struct ox_namespace_create *create_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_namespace_create, seq);
}

static ox_step create_fail(struct ox_namespace_create *o, enum ox_err err, const char *why)
{
    o->why = why;
    return OX_FINISH(&o->seq, err);
}

// The defaults with what is given over them; NULL if that is no JSON object. Free with free().
static char *create_policies(const struct ox_namespace_create *o)
{
    json_t *policies = setup_policies(&o->shard->config, o->shard->config.bundles);
    json_t *given = o->policies ? json_loads(o->policies, 0, NULL) : json_object();
    bool good = json_is_object(given);
    json_t *bundles = json_object_get(given, "bundles");
    int64_t count = json_integer_value(json_object_get(bundles, "numBundles"));
    if (bundles && json_array_size(json_object_get(bundles, "boundaries")) == 0) {
        json_object_del(given, "bundles");
        if (count > 0 && count <= OX_NAMESPACE_BUNDLES_MAX)
            json_object_set_new(policies, "bundles", setup_bundles((uint32_t)count));
    }
    const char *key;
    json_t *value;
    json_object_foreach(given, key, value) if (!json_is_null(value)) json_object_set(policies, key, value);
    char *text = good ? json_dumps(policies, JSON_COMPACT) : NULL;
    json_decref(policies);
    json_decref(given);
    return text;
}

static ox_step create_put(struct ox_seq *s)
{
    struct ox_namespace_create *o = create_of(s);
    if (!s->err)
        ox_free(o->put.path);
    return s->err == OX_E_BAD_VERSION ? create_fail(o, OX_E_EXISTS, "Namespace already exists") : OX_FINISH(s, s->err);
}

static ox_step create_tenant_got(struct ox_seq *s)
{
    struct ox_namespace_create *o = create_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return create_fail(o, OX_E_NOT_FOUND, "Tenant does not exist");
    if (s->err)
        return OX_FINISH(s, s->err);
    ox_buf_unref(&o->get.value);
    char *text = create_policies(o);
    if (!text)
        return create_fail(o, OX_E_INVALID, "the policies are not a JSON object");
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", o->ns);
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    free(text);
    ox_seq_bind(s, &o->put.op, "namespace.put");
    ox_meta_put(o->shard->meta, &o->put, path, value, OX_META_ABSENT, 0);
    ox_buf_unref(&value);
    return OX_WAIT(s, create_put);
}

static ox_step create_start(struct ox_seq *s)
{
    struct ox_namespace_create *o = create_of(s);
    if (!ox_namespace_valid(o->ns))
        return create_fail(o, OX_E_INVALID, "Namespace name is not valid");
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%.*s", (int)strcspn(o->ns, "/"), o->ns);
    ox_seq_bind(s, &o->get.op, "tenant.get");
    ox_meta_get(o->shard->meta, &o->get, path);
    return OX_WAIT(s, create_tenant_got);
}

static void create_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_namespace_create *o = create_of(s);
    ox_free(o->ns);
    ox_free(o->policies);
    ox_op_finish(&o->op, err);
}

void ox_namespace_create(struct ox_shard *sh, struct ox_namespace_create *o, const char *ns, const char *policies)
{
    ox_op_begin(&o->op);
    o->shard = sh;
    o->why = NULL;
    o->ns = ox_strdup(ns);
    o->policies = policies && *policies ? ox_strdup(policies) : NULL;
    ox_seq_start(&o->seq, sh->loop, "namespace.create", create_start, create_done);
}

// ---- deleting a namespace

// What is below a namespace besides its topics, in the order in which it goes; the policies are last.
static const struct {
    const char *before, *after;
} namespace_nodes[] = {
    {"/admin/local-policies/", ""},
    {"/loadbalance/bundle-data/", ""},
    {"/namespace/", ""},
    {"/admin/partitioned-topics/", "/persistent"},
    {"/admin/partitioned-topics/", "/non-persistent"},
    {"/admin/partitioned-topics/", ""},
    {"/schemas/", ""},
    {"/managed-ledgers/", "/persistent"},
    {"/managed-ledgers/", ""},
    {"/admin/policies/", ""},
};

static char *namespace_node(const struct ox_namespace_delete *o)
{
    return ox_asprintf("%s%s%s", namespace_nodes[o->at].before, o->ns, namespace_nodes[o->at].after);
}

static ox_step delete_list(struct ox_seq *s);
static ox_step delete_partitioned(struct ox_seq *s);
static ox_step delete_topics(struct ox_seq *s);
static ox_step delete_topic(struct ox_seq *s);
static ox_step delete_node(struct ox_seq *s);
static ox_step delete_relooked(struct ox_seq *s);

static const char *const not_empty_text = "Cannot delete non empty namespace";

static struct ox_namespace_delete *delete_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_namespace_delete, seq);
}

static ox_step delete_fail(struct ox_namespace_delete *o, enum ox_err err, const char *why)
{
    o->why = why;
    return OX_FINISH(&o->seq, err);
}

static void delete_list_start(struct ox_namespace_delete *o, bool partitioned)
{
    o->at = 0;
    o->list = (struct ox_topics_list){.mode = partitioned && o->domain == OX_DOMAIN_NON_PERSISTENT ? OX_TOPICS_NON_PERSISTENT
                                              : partitioned ? OX_TOPICS_PERSISTENT
                                                            : OX_TOPICS_ALL,
                                      .with_system = true,
                                      .marked = true,
                                      .partitioned = partitioned};
    ox_seq_bind(&o->seq, &o->list.op, "namespace.topics");
    ox_topics_list(o->shard, &o->list, o->ns);
}

static ox_step delete_look(struct ox_namespace_delete *o, ox_step_fn next, const char *step)
{
    o->list = (struct ox_topics_list){.mode = OX_TOPICS_ALL, .marked = true};
    ox_seq_bind(&o->seq, &o->list.op, "namespace.topics");
    ox_topics_list(o->shard, &o->list, o->ns);
    return ox_seq_goto(&o->seq, next, step, OX_STEP_WAIT);
}

// One path's node; those with a child below each bundle lose these first.
static ox_step delete_node_gone(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    bool last = o->at + 1 == OX_COUNT(namespace_nodes);
    if (s->err && s->err != OX_E_NOT_FOUND && !(s->err == OX_E_NOT_EMPTY && !last))
        return OX_FINISH(s, s->err);
    o->at++;
    return last ? OX_FINISH(s, OX_OK) : OX_GOTO(s, delete_node);
}

static ox_step delete_node_itself(struct ox_namespace_delete *o)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = namespace_node(o);
    ox_seq_bind(&o->seq, &o->del.op, "namespace.remove");
    ox_meta_del(o->shard->meta, &o->del, path, OX_META_ANY);
    return OX_WAIT(&o->seq, delete_node_gone);
}

static ox_step delete_child(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err && s->err != OX_E_NOT_FOUND && s->err != OX_E_NOT_EMPTY)
        return OX_FINISH(s, s->err);
    if (o->children.count == 0) {
        ox_meta_names_free(o->children.names, 0);
        return delete_node_itself(o);
    }
    OX_CLEANUP(ox_free_ptr)
    char *parent = namespace_node(o);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("%s/%s", parent, o->children.names[o->children.count - 1]);
    ox_free(o->children.names[--o->children.count]);
    ox_seq_bind(s, &o->del.op, "namespace.remove_child");
    ox_meta_del(o->shard->meta, &o->del, path, OX_META_ANY);
    return OX_WAIT(s, delete_child);
}

static ox_step delete_children_got(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    return s->err ? delete_node_itself(o) : OX_GOTO(s, delete_child);
}

static ox_step delete_node(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    OX_CRASHPOINT(s->loop, "namespace.before_node");
    OX_CLEANUP(ox_free_ptr)
    char *path = namespace_node(o);
    o->children = (struct ox_meta_children){0};
    ox_seq_bind(s, &o->children.op, "namespace.children");
    ox_meta_children(o->shard->meta, &o->children, path);
    return OX_WAIT(s, delete_children_got);
}

static ox_step delete_topic_gone(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err && s->err != OX_E_TOPIC_NOT_FOUND) {
        ox_topics_list_fini(&o->list);
        return OX_FINISH(s, s->err);
    }
    OX_CRASHPOINT(s->loop, "namespace.after_topic");
    o->at++;
    return OX_GOTO(s, delete_topic);
}

static ox_step delete_topic(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (o->at == o->list.count) {
        ox_topics_list_fini(&o->list);
        o->at = 0;
        return OX_GOTO(s, delete_node);
    }
    if (ox_topic_name_parse(&o->name, o->list.names[o->at]) != OX_OK)
        return OX_FINISH(s, OX_E_CORRUPT);
    o->topic.force = o->topic.marked = true;
    ox_seq_bind(s, &o->topic.op, "topic.delete");
    ox_topic_delete(o->shard, &o->topic, &o->name);
    ox_topic_name_fini(&o->name);
    return OX_WAIT(s, delete_topic_gone);
}

static ox_step delete_topics_got(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, delete_topic);
}

static ox_step delete_topics(struct ox_seq *s)
{
    delete_list_start(delete_of(s), false);
    return OX_WAIT(s, delete_topics_got);
}

static ox_step delete_partitioned_gone(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err && s->err != OX_E_TOPIC_NOT_FOUND) {
        ox_topics_list_fini(&o->list);
        return OX_FINISH(s, s->err);
    }
    o->at++;
    return OX_GOTO(s, delete_partitioned);
}

static ox_step delete_partitioned(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (o->at == o->list.count) {
        ox_topics_list_fini(&o->list);
        bool more = o->domain == OX_DOMAIN_PERSISTENT;
        o->domain = OX_DOMAIN_NON_PERSISTENT;
        return more ? OX_GOTO(s, delete_list) : OX_GOTO(s, delete_topics);
    }
    if (ox_topic_name_parse(&o->name, o->list.names[o->at]) != OX_OK)
        return OX_FINISH(s, OX_E_CORRUPT);
    o->partitions.force = true;
    ox_seq_bind(s, &o->partitions.op, "partitions.delete");
    ox_partitions_delete(o->shard, &o->partitions, &o->name);
    ox_topic_name_fini(&o->name);
    return OX_WAIT(s, delete_partitioned_gone);
}

static ox_step delete_list_got(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, delete_partitioned);
}

static ox_step delete_list(struct ox_seq *s)
{
    delete_list_start(delete_of(s), true);
    return OX_WAIT(s, delete_list_got);
}

static ox_step delete_marked(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_BAD_VERSION ? OX_E_BUSY : s->err);
    ox_free(o->put.path);
    OX_CRASHPOINT(s->loop, "namespace.after_mark");
    o->domain = OX_DOMAIN_PERSISTENT;
    return o->force ? OX_GOTO(s, delete_list) : delete_look(o, delete_relooked, "delete_relooked");
}

static ox_step delete_unmarked(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (!s->err)
        ox_free(o->put.path);
    return s->err ? OX_FINISH(s, s->err) : delete_fail(o, OX_E_CONFLICT, not_empty_text);
}

// Is a topic loaded, or on its way in since before the mark?
static bool delete_sees_loaded(const struct ox_namespace_delete *o)
{
    OX_MAP_EACH(&o->shard->topics, n) {
        const struct ox_topic *t = CONTAINER_OF(n, struct ox_topic, by_name);
        if (!strcmp(t->name.ns, o->ns) && !ox_topic_name_is_system(&t->name))
            return true;
    }
    return false;
}

// Who came between the first look and the mark has not been asked to go. Behind the mark nobody comes.
static ox_step delete_relooked(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    bool empty = o->list.count == 0 && !delete_sees_loaded(o);
    ox_topics_list_fini(&o->list);
    if (empty)
        return OX_GOTO(s, delete_list);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", o->ns);
    int64_t version = o->put.stat.version;
    ox_seq_bind(s, &o->put.op, "namespace.unmark");
    ox_meta_put(o->shard->meta, &o->put, path, o->before, version, 0);
    return OX_WAIT(s, delete_unmarked);
}

// The policies as they are, marked.
static ox_step delete_mark(struct ox_namespace_delete *o)
{
    json_t *root = json_loadb((const char *)o->get.value.data, o->get.value.len, 0, NULL);
    o->before = o->get.value;
    if (!json_is_object(root)) {
        json_decref(root);
        return OX_FINISH(&o->seq, OX_E_CORRUPT);
    }
    json_object_set_new(root, "deleted", json_true());
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", o->ns);
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    free(text);
    ox_seq_bind(&o->seq, &o->put.op, "namespace.mark");
    ox_meta_put(o->shard->meta, &o->put, path, value, o->get.stat.version, 0);
    ox_buf_unref(&value);
    return OX_WAIT(&o->seq, delete_marked);
}

static ox_step delete_policies_got(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_E_NAMESPACE_NOT_FOUND : s->err);
    return delete_mark(o);
}

static ox_step delete_policies(struct ox_namespace_delete *o)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", o->ns);
    ox_seq_bind(&o->seq, &o->get.op, "namespace.get");
    ox_meta_get(o->shard->meta, &o->get, path);
    return OX_WAIT(&o->seq, delete_policies_got);
}

// Topics that only brokers use are no reason to keep it.
static ox_step delete_looked(struct ox_seq *s)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    bool empty = o->list.count == 0;
    ox_topics_list_fini(&o->list);
    return empty || o->force ? delete_policies(o) : delete_fail(o, OX_E_CONFLICT, not_empty_text);
}

static ox_step delete_start(struct ox_seq *s)
{
    return delete_look(delete_of(s), delete_looked, "delete_looked");
}

static void delete_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_namespace_delete *o = delete_of(s);
    if (err)
        ox_warn(o->shard->log, "namespace.delete.failed", "namespace=%s step=%s error=%s", o->ns, s->step, ox_err_name(err));
    ox_buf_unref(&o->before);
    ox_free(o->ns);
    ox_op_finish(&o->op, err);
}

void ox_namespace_delete(struct ox_shard *sh, struct ox_namespace_delete *o, const char *ns)
{
    ox_op_begin(&o->op);
    o->shard = sh;
    o->why = NULL;
    o->before = ox_buf_empty();
    o->ns = ox_strdup(ns);
    ox_seq_start(&o->seq, sh->loop, "namespace.delete", delete_start, delete_done);
}
