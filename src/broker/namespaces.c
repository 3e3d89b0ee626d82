// namespaces.c - reading the policies of namespaces that the broker needs for itself.
#include "broker/namespaces.h"

#include <jansson.h>
#include <string.h>

#include "base/mem.h"

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
