// topics.c - making, growing, deleting, unloading, ending and describing topics.
#include <stdio.h>
#include <string.h>

#include "admin/each.h"
#include "admin/node.h"
#include "broker/compaction.h"
#include "gen/rest_routes.h"

// What a topic's request waits for; one at a time.
struct topic_call {
    struct admin_request *request;
    union {
        struct ox_topic_get get;
        struct ox_topic_delete delete;
        struct ox_partitions_get partitions;
        struct ox_partitions_create create;
        struct ox_partitions_update update;
        struct ox_partitions_delete delete_all;
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
    if (err == OX_E_TOPIC_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Topic %s not found%s%s", r->topic.full, why ? ": " : "", why ? why : "");
    else if (err == OX_E_NAMESPACE_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Namespace not found: %s", r->topic.ns);
    else
        admin_done(r, err, r->topic.full, why);
}

// ---- making

static void topic_created(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, get.op);
    struct admin_request *r = call->request;
    if (op->err == OX_OK)
        ox_topic_put(call->get.topic);
    if (op->err || !json_object_size(r->json)) {
        call_end(call, op->err, call->get.why);
        return;
    }
    ox_free(call);
    admin_properties_set(r, r->json);
}

static void topic_make(struct topic_call *call)
{
    struct admin_request *r = call->request;
    memset(&call->get, 0, sizeof call->get);
    ox_op_init(&call->get.op, r->admin->shard->loop, topic_created, "admin.topic.create");
    call->get.create = call->get.explicit_create = true;
    ox_topic_get(r->admin->shard, &call->get, &r->topic);
}

static void topic_looked_for(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, get.op);
    if (op->err == OX_OK) {
        ox_topic_put(call->get.topic);
        call_end(call, OX_E_EXISTS, "This topic already exists");
    } else if (op->err != OX_E_TOPIC_NOT_FOUND) {
        call_end(call, op->err, call->get.why);
    } else {
        topic_make(call);
    }
}

// A partition needs its partitioned topic; a plain topic must not be one.
static void topic_create_checked(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, partitions.op);
    struct admin_request *r = call->request;
    uint32_t partitions = call->partitions.partitions;
    enum ox_err err = op->err;
    if (err == OX_E_TOPIC_NOT_FOUND && r->topic.partition < 0)
        err = OX_OK;
    if (err || partitions) {
        call_end(call, err ? err : OX_E_EXISTS, err ? NULL : "This topic already exists");
        return;
    }
    memset(&call->get, 0, sizeof call->get);
    ox_op_init(&call->get.op, r->admin->shard->loop, topic_looked_for, "admin.topic.look");
    ox_topic_get(r->admin->shard, &call->get, &r->topic);
}

static void topic_create(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (body && !json_is_null(body) && !json_is_object(body)) {
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be an object of texts: the topic's properties");
        return;
    }
    struct topic_call *call = call_new(r);
    ox_op_init(&call->partitions.op, r->admin->shard->loop, topic_create_checked, "partitions.get");
    ox_partitions_get(r->admin->shard, &call->partitions, &r->topic);
}

// ---- partitions

// The node, with the properties that it has.
static void partitions_read(struct admin_node *n)
{
    json_t *properties = json_object_get(n->value, "properties");
    json_t *answer = json_pack("{s:O, s:b}", "partitions", json_object_get(n->value, "partitions"), "deleted", 0);
    if (answer && json_object_size(properties))
        json_object_set(answer, "properties", properties);
    admin_json(n->request, HTTP_OK, answer);
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
    if (partitions)
        admin_node_read(r, ox_topic_name_partitions_path(&r->topic), "Topic", NULL, partitions_read);
    else
        admin_json(r, HTTP_OK, json_pack("{s:i,s:b}", "partitions", 0, "deleted", 0));
}

static void partitions_get(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->partitions.op, r->admin->shard->loop, partitions_got, "admin.partitions.get");
    call->partitions.create = admin_query_true(r, "checkAllowAutoCreation");
    ox_partitions_get(r->admin->shard, &call->partitions, &r->topic);
}

// The body: a number, also as text, or an object with one. False: answered.
static bool partitions_body(struct admin_request *r, int64_t *ret)
{
    json_t *body;
    if (!admin_body(r, &body))
        return false;
    const json_t *number = json_is_object(body) ? json_object_get(body, "partitions") : body;
    *ret = (int64_t)json_integer_value(number);
    if (json_is_integer(number) ||
        (json_is_string(number) && ox_parse_i64(json_string_value(number), INT32_MIN, INT32_MAX, ret) == OX_OK))
        return true;
    admin_fail(r, HTTP_BAD_REQUEST, "the body must be the number of partitions");
    return false;
}

static void partitions_created(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, create.op);
    struct admin_request *r = call->request;
    json_t *properties = json_object_get(r->json, "properties");
    if (op->err || !json_object_size(properties)) {
        call_end(call, op->err, op->err == OX_E_EXISTS ? "This topic already exists" : NULL);
        return;
    }
    ox_free(call);
    admin_properties_set(r, properties);
}

static void partitions_create(struct admin_request *r)
{
    int64_t partitions;
    if (!partitions_body(r, &partitions))
        return;
    if (r->topic.partition >= 0) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Partitioned Topic Name should not contain '-partition-': %s", r->topic.full);
        return;
    }
    if (partitions < 1 || partitions > OX_PARTITIONS_MAX) {
        admin_fail(r, HTTP_NOT_ACCEPTABLE, "Number of partitions should be more than 0 and at most %u", OX_PARTITIONS_MAX);
        return;
    }
    struct topic_call *call = call_new(r);
    ox_op_init(&call->create.op, r->admin->shard->loop, partitions_created, "admin.partitions.create");
    call->create.partitions = (uint32_t)partitions;
    ox_partitions_create(r->admin->shard, &call->create, &r->topic);
}

static void partitions_updated(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, update.op);
    struct admin_request *r = call->request;
    uint32_t had = call->update.had, wanted = call->update.partitions;
    if (op->err == OX_E_INVALID)
        admin_fail(r, HTTP_UNPROCESSABLE_CONTENT, "Desired partitions %u can't be less than the current partitions %u",
                   wanted, had);
    else if (op->err == OX_E_TOPIC_NOT_FOUND)
        admin_fail(r, r->route->arg ? HTTP_NOT_FOUND : HTTP_CONFLICT, "Topic %s is not the partitioned topic.",
                   r->topic.full);
    else {
        call_end(call, op->err, call->update.why);
        return;
    }
    ox_free(call);
}

static void partitions_update_to(struct admin_request *r, uint32_t partitions)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->update.op, r->admin->shard->loop, partitions_updated, "admin.partitions.update");
    call->update.partitions = partitions;
    ox_partitions_update(r->admin->shard, &call->update, &r->topic);
}

static void partitions_update(struct admin_request *r)
{
    int64_t partitions;
    if (!partitions_body(r, &partitions))
        return;
    if (partitions < 1 || partitions > OX_PARTITIONS_MAX)
        admin_fail(r, HTTP_UNPROCESSABLE_CONTENT,
                   "Desired partitions %lld can't be less than the current partitions, nor more than %u",
                   (long long)partitions, OX_PARTITIONS_MAX);
    else
        partitions_update_to(r, (uint32_t)partitions);
}

static void partitions_complete(struct admin_request *r)
{
    partitions_update_to(r, 0);
}

// ---- deleting

static const char *delete_why(enum ox_err err)
{
    return err == OX_E_BUSY ? "it has connected producers or consumers; use force=true to close them" : NULL;
}

static void partitions_deleted(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, delete_all.op);
    call_end(call, op->err, delete_why(op->err));
}

// A plain topic, or one that is nowhere?
static void partitions_delete_checked(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, partitions.op);
    struct admin_request *r = call->request;
    if (op->err == OX_OK && !call->partitions.partitions) {
        call_end(call, OX_E_CONFLICT, "it is a non-partitioned topic: delete it as such");
        return;
    }
    if (op->err && op->err != OX_E_TOPIC_NOT_FOUND) {
        call_end(call, op->err, NULL);
        return;
    }
    memset(&call->delete_all, 0, sizeof call->delete_all);
    ox_op_init(&call->delete_all.op, r->admin->shard->loop, partitions_deleted, "admin.partitions.delete");
    call->delete_all.force = admin_query_true(r, "force");
    ox_partitions_delete(r->admin->shard, &call->delete_all, &r->topic);
}

static void partitions_delete(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->partitions.op, r->admin->shard->loop, partitions_delete_checked, "partitions.get");
    ox_partitions_get(r->admin->shard, &call->partitions, &r->topic);
}

static void topic_deleted(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, delete.op);
    call_end(call, op->err, delete_why(op->err));
}

static void topic_delete_checked(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, partitions.op);
    struct admin_request *r = call->request;
    if (op->err == OX_OK && call->partitions.partitions) {
        call_end(call, OX_E_CONFLICT, "it is a partitioned topic: delete its partitions instead");
        return;
    }
    if (op->err && op->err != OX_E_TOPIC_NOT_FOUND) {
        call_end(call, op->err, NULL);
        return;
    }
    memset(&call->delete, 0, sizeof call->delete);
    ox_op_init(&call->delete.op, r->admin->shard->loop, topic_deleted, "admin.topic.delete");
    call->delete.force = admin_query_true(r, "force");
    ox_topic_delete(r->admin->shard, &call->delete, &r->topic);
}

static void topic_delete(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->partitions.op, r->admin->shard->loop, topic_delete_checked, "partitions.get");
    ox_partitions_get(r->admin->shard, &call->partitions, &r->topic);
}

// ---- verbs

static ox_step unload_run(struct admin_each *e)
{
    each_bind(e, &e->u.op);
    ox_topic_unload(e->request->admin->shard, &e->u.op, e->topic->name.full);
    return each_wait(e);
}

static const struct admin_verb unload_verb = {.name = "admin.topic.unload", .partitioned = EACH_PARTITION, .run = unload_run};

static ox_step terminate_run(struct admin_each *e)
{
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "Termination of a non-persistent topic is not allowed");
    each_bind(e, &e->u.terminate.op);
    ox_topic_terminate(e->topic, &e->u.terminate);
    return each_wait(e);
}

static void terminate_collect(struct admin_each *e)
{
    json_t *id = admin_message_id(e->u.terminate.last, -1, -1);
    char number[16];
    if (!e->count) {
        e->result = id;
        return;
    }
    if (!e->result)
        e->result = json_object();
    snprintf(number, sizeof number, "%u", e->at);
    json_object_set_new(e->result, number, id);
}

static void terminate_plain(struct admin_each *e)
{
    admin_fail(e->request, HTTP_METHOD_NOT_ALLOWED, "%s is not partitioned: terminate it as such", e->request->topic.full);
}

static const struct admin_verb terminate_verb = {.name = "admin.topic.terminate",
                                                 .partitioned = EACH_REFUSED,
                                                 .refusal = "Termination of a partitioned topic is not allowed",
                                                 .run = terminate_run,
                                                 .collect = terminate_collect};
static const struct admin_verb terminate_all_verb = {.name = "admin.topic.terminate",
                                                     .partitioned = EACH_PARTITION,
                                                     .only_partitioned = true,
                                                     .plain = terminate_plain,
                                                     .run = terminate_run,
                                                     .collect = terminate_collect};

// What lies before the end is acknowledged for everybody; the log trims itself.
static ox_step truncate_skip(struct admin_each *e)
{
    if (!e->topic->ml)
        return each_refuse(e, HTTP_PRECONDITION_FAILED, "a non-persistent topic keeps nothing that could be truncated");
    each_bind(e, &e->u.truncate.op);
    ox_topic_truncate(e->topic, &e->u.truncate);
    return each_wait(e);
}

static const struct admin_verb truncate_verb = {
    .name = "admin.topic.truncate", .partitioned = EACH_PARTITION, .run = truncate_skip};

static ox_step trim_run(struct admin_each *e)
{
    if (e->topic->ml)
        ox_mledger_trim(e->topic->ml);
    return each_ran(e, OX_OK);
}

static void trim_answer(struct admin_each *e)
{
    admin_empty(e->request, HTTP_OK);
}

static const struct admin_verb trim_verb = {
    .name = "admin.topic.trim", .partitioned = EACH_PARTITION, .run = trim_run, .answer = trim_answer};

static ox_step backlog_run(struct admin_each *e)
{
    const struct ox_mledger *ml = e->topic->ml;
    uint64_t bytes = ml ? ox_ml_bytes_between(ml, ox_ml_clamp(ml, e->pos), ml->last) : 0;
    e->result = json_integer((json_int_t)bytes);
    return each_ran(e, OX_OK);
}

static const struct admin_verb backlog_verb = {.name = "admin.topic.backlog",
                                               .partitioned = EACH_REFUSED,
                                               .refusal =
                                                   "the backlog of a partitioned topic is that of its partitions",
                                               .run = backlog_run};

// ---- the backlog of all subscriptions, for tools that ask for it while nobody uses the topic

static void backlog_cursors(const struct ox_mledger *ml, json_t *answer)
{
    json_t *cursors = json_object_get(answer, "cursorDetails");
    uint64_t all = 0;
    OX_LIST_EACH(&ml->cursors, link) {
        const struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        uint64_t entries = c->durable ? ox_cursor_backlog(c) : 0;
        all += entries;
        if (c->durable)
            json_object_set_new(cursors, c->name,
                                json_pack("{s:I, s:I}", "cursorBacklog", (json_int_t)entries, "cursorLedgerId",
                                          (json_int_t)c->cursor_ledger));
    }
    json_object_set_new(answer, "messageBacklog", json_integer((json_int_t)all));
}

static void backlog_ledgers(const struct ox_mledger *ml, json_t *answer)
{
    json_t *ledgers = json_object_get(answer, "dataLedgerDetails");
    for (size_t i = 0; i < ml->ledger_count; i++) {
        const struct ox_ml_ledger *l = ml->ledgers[i];
        if (l->sealed)
            json_array_append_new(ledgers, json_pack("{s:I, s:I, s:I, s:I}", "entries", (json_int_t)l->entries,
                                                     "timestamp", (json_int_t)l->closed_ms, "size",
                                                     (json_int_t)l->bytes, "ledgerId", (json_int_t)l->where.id));
    }
    json_object_set_new(answer, "storageSize", json_integer((json_int_t)ml->total_bytes));
    json_object_set_new(answer, "totalMessages", json_integer((json_int_t)ml->total_entries));
}

// ml NULL: there is no such log.
static json_t *backlog_json(const struct admin_request *r, const struct ox_mledger *ml)
{
    const char *broker = admin_broker_id(r->admin->shard);
    OX_CLEANUP(ox_free_ptr)
    char *name = ox_topic_name_storage(&r->topic);
    json_t *o =
        json_pack("{s:i, s:i, s:i, s:o, s:s, s:[], s:{}, s:I}", "storageSize", 0, "totalMessages", 0, "messageBacklog",
                  0, "brokerName", json_stringn(broker, strcspn(broker, ":")), "topicName", name, "dataLedgerDetails",
                  "cursorDetails", "statGeneratedAt", (json_int_t)ox_wall_ms(r->admin->shard->loop));
    if (ml) {
        backlog_ledgers(ml, o);
        backlog_cursors(ml, o);
    }
    return o;
}

static void estimate_got(struct ox_op *op)
{
    struct topic_call *call = CONTAINER_OF(op, struct topic_call, get.op);
    struct ox_topic *t = op->err ? NULL : call->get.topic;
    if (op->err && op->err != OX_E_TOPIC_NOT_FOUND && op->err != OX_E_UNSUPPORTED) {
        call_end(call, op->err, call->get.why);
        return;
    }
    admin_json(call->request, HTTP_OK, backlog_json(call->request, t ? t->ml : NULL));
    if (t)
        ox_topic_put(t);
    ox_free(call);
}

// A topic that is nowhere, or that has no log of its own, has no backlog.
static void topic_estimate(struct admin_request *r)
{
    struct topic_call *call = call_new(r);
    ox_op_init(&call->get.op, r->admin->shard->loop, estimate_got, "admin.topic.get");
    ox_topic_get(r->admin->shard, &call->get, &r->topic);
}

// ---- compaction

static ox_step compact_run(struct admin_each *e)
{
    enum ox_err err = ox_compaction_start(e->topic, NULL);
    if (err == OX_E_BUSY)
        return each_refuse(e, HTTP_CONFLICT, "Compaction already in progress");
    return each_ran(e, err);
}

static const struct admin_verb compact_verb = {.name = "admin.topic.compact", .partitioned = EACH_PARTITION, .run = compact_run};

static ox_step compaction_run(struct admin_each *e)
{
    struct ox_compaction_info info;
    ox_compaction_info(e->topic, &info);
    e->result = json_pack("{s:s, s:s}", "status", ox_compaction_status_name(info.status), "lastError", info.error);
    return each_ran(e, OX_OK);
}

static const struct admin_verb compaction_verb = {
    .name = "admin.topic.compaction", .partitioned = EACH_NOT_FOUND, .run = compaction_run};

static void topic_verb(struct admin_request *r)
{
    each_start(each_new(r, (const struct admin_verb *)r->route->arg));
}

static void topic_backlog(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    const json_t *ledger = json_object_get(body, "ledgerId"), *entry = json_object_get(body, "entryId");
    if (!json_is_integer(ledger) || !json_is_integer(entry)) {
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be a message id: an object with \"ledgerId\" and \"entryId\"");
        return;
    }
    struct admin_each *e = each_new(r, &backlog_verb);
    e->pos = (struct ox_pos){json_integer_value(ledger), json_integer_value(entry)};
    each_start(e);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_TOPICS};
const struct admin_route_table admin_topics = {routes, OX_COUNT(routes)};
