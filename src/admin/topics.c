// topics.c - listing, creating, deleting, unloading topics, and their partitions.
#include "admin/request.h"
#include "broker/namespaces.h"
#include "broker/topic.h"

// What a topic's request waits for; one at a time.
struct topic_call {
    struct admin_request *request;
    union {
        struct ox_topic_get get;
        struct ox_topic_delete delete;
        struct ox_topics_list list;
        struct ox_partitions_get partitions;
        struct ox_partitions_create create;
        struct ox_op unload;
    };
};

static struct topic_call *call_new(struct admin_request *r)
{
    struct topic_call *call = ox_malloc(sizeof *call);
    call->request = r;
    return call;
}

// Answers 204, or the error, and frees the call.
static void call_end(struct topic_call *call, enum ox_err err, const char *why)
{
    struct admin_request *r = call->request;
    ox_free(call);
    if (err == OX_OK)
        admin_empty(r, MHD_HTTP_NO_CONTENT);
    else
        admin_error(r, err, r->topic.full ? r->topic.full : "request", why);
}

static json_t *json_names(char *const *names, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_string(names[i]));
    return array;
}

static void topics_listed(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, list.op);
    struct admin_request *r = call->request;
    enum ox_err err = op->err;
    json_t *names = err == OX_OK ? json_names(call->list.names, call->list.count) : NULL;
    ox_topics_list_fini(&call->list);
    ox_free(call);
    if (names)
        admin_json(r, MHD_HTTP_OK, names);
    else
        admin_error(r, err, "namespace", NULL);
}

void admin_topics_list(struct admin_request *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *ns = ox_asprintf("%s/%s", r->segments[3], r->segments[4]);
    if (!ox_namespace_valid(ns)) {
        admin_fail(r, MHD_HTTP_PRECONDITION_FAILED, "namespace %s: the name is not valid", ns);
        return;
    }
    struct topic_call *call = call_new(r);
    ox_op_init(&call->list.op, r->admin->shard->loop, topics_listed, "admin.topics.list");
    ox_topics_list(r->admin->shard, &call->list, ns);
}

static void topic_created(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, get.op);
    const char *why = call->get.why;
    if (op->err == OX_OK)
        ox_topic_put(call->get.topic);
    call_end(call, op->err, why);
}

static void topic_looked_for(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, get.op);
    struct admin_request *r = call->request;
    if (op->err == OX_OK) {
        ox_topic_put(call->get.topic);
        call_end(call, OX_E_EXISTS, "This topic already exists");
        return;
    }
    if (op->err != OX_E_TOPIC_NOT_FOUND) {
        call_end(call, op->err, call->get.why);
        return;
    }
    ox_op_init(&call->get.op, r->admin->shard->loop, topic_created, "admin.topic.create");
    call->get.create = call->get.explicit_create = true;
    ox_topic_get(r->admin->shard, &call->get, &r->topic);
}

void admin_topic_create(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->get.op, r->admin->shard->loop, topic_looked_for, "admin.topic.look");
    call->get.create = call->get.explicit_create = false;
    ox_topic_get(r->admin->shard, &call->get, &r->topic);
}

static void topic_deleted(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, delete.op);
    call_end(call, op->err, op->err == OX_E_BUSY ? "it has producers or consumers; use force=true to close them" : NULL);
}

void admin_topic_delete(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->delete.op, r->admin->shard->loop, topic_deleted, "admin.topic.delete");
    call->delete.force = admin_query_true(r, "force");
    ox_topic_delete(r->admin->shard, &call->delete, &r->topic);
}

static void topic_unloaded(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, unload);
    call_end(call, op->err, NULL);
}

void admin_topic_unload(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->unload, r->admin->shard->loop, topic_unloaded, "admin.topic.unload");
    ox_topic_unload(r->admin->shard, &call->unload, r->topic.full);
}

static void partitions_got(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, partitions.op);
    struct admin_request *r = call->request;
    uint32_t partitions = call->partitions.partitions;
    if (op->err != OX_OK) {
        call_end(call, op->err, NULL);
        return;
    }
    ox_free(call);
    admin_json(r, MHD_HTTP_OK, json_pack("{s:i,s:b}", "partitions", (int)partitions, "deleted", 0));
}

void admin_partitions_get(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->partitions.op, r->admin->shard->loop, partitions_got, "admin.partitions.get");
    ox_partitions_get(r->admin->shard, &call->partitions, &r->topic);
}

static void partitions_created(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, create.op);
    call_end(call, op->err, op->err == OX_E_EXISTS ? "This topic already exists" : NULL);
}

void admin_partitions_create(struct admin_request *r)
{
    int64_t partitions;
    if (ox_parse_i64(ox_str_get(&r->body), 1, 100000, &partitions) != OX_OK) {
        admin_fail(r, MHD_HTTP_NOT_ACCEPTABLE, "the body must be the number of partitions, from 1 to 100000");
        return;
    }
    struct topic_call *call = call_new(r);
    ox_op_init(&call->create.op, r->admin->shard->loop, partitions_created, "admin.partitions.create");
    call->create.partitions = (uint32_t)partitions;
    ox_partitions_create(r->admin->shard, &call->create, &r->topic);
}
