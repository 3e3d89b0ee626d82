// bookie_clusters.c - /admin/v2/bookie-clusters: reads path, query and body, calls one verb of the storage move, answers.
#include <string.h>

#include "admin/request.h"
#include "gen/rest_routes.h"
#include "move/storage/storage.h"

#define CLUSTER_BASE "admin/v2/bookie-clusters"
#define CLUSTER_NAME_AT 3 // the segment behind the base

// One verb in work. Names in the path live as long as the request, names in the body as long as the body.
struct cluster_call {
    struct ox_storage_call call;
    struct admin_request *request;
    json_t *body;         // NULL: none was sent
    char *query;          // a decoded parameter
    unsigned good_status; // of the answer when all went well
    unsigned busy_status; // of BUSY
    bool places_address;  // the body says where a storage is: if nothing can be opened there, the body is wrong
};

static void cluster_free(struct cluster_call *c)
{
    ox_storage_call_fini(&c->call);
    json_decref(c->body);
    ox_free(c->query);
    ox_free(c);
}

static unsigned cluster_status(const struct cluster_call *c, enum ox_err err)
{
    if (err == OX_E_BUSY)
        return c->busy_status;
    if (c->places_address && (err == OX_E_NOT_FOUND || err == OX_E_ACCESS || err == OX_E_NO_PARENT))
        return HTTP_BAD_REQUEST;
    if (err == OX_E_LOCKED)
        return HTTP_CONFLICT; // the operator's storage is in use elsewhere: nothing is wrong with this broker
    return admin_status(err);
}

static void cluster_answered(struct ox_op *op)
{
    struct cluster_call *c = CONTAINER_OF(op, struct cluster_call, call.op);
    struct admin_request *r = c->request;
    if (op->err != OX_OK && c->call.why.len)
        admin_fail(r, cluster_status(c, op->err), "%s", ox_str_get(&c->call.why));
    else if (op->err != OX_OK)
        admin_fail(r, cluster_status(c, op->err), "%s: %s", op->name, ox_err_text(op->err));
    else if (c->good_status == HTTP_NO_CONTENT)
        admin_empty(r, c->good_status);
    else
        admin_json(r, c->good_status, c->call.answer ? json_incref(c->call.answer) : json_object());
    cluster_free(c);
}

// Begins a verb; NULL, and answered, where the feature is off.
static struct cluster_call *cluster_begin(struct admin_request *r, unsigned good_status, const char *name)
{
    if (!r->admin->storage) {
        admin_fail(r, HTTP_NOT_FOUND, "the feature is off: this broker does not manage bookie clusters");
        return NULL;
    }
    struct cluster_call *c = ox_malloc(sizeof *c);
    c->request = r;
    c->good_status = good_status;
    c->busy_status = HTTP_CONFLICT;
    ox_op_init(&c->call.op, r->admin->shard->loop, cluster_answered, name);
    return c;
}

// Answers 400 and frees the call.
static bool cluster_refuse(struct cluster_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool cluster_refuse(struct cluster_call *c, const char *format, ...)
{
    struct ox_str why = {0};
    va_list args;
    va_start(args, format);
    ox_str_addv(&why, format, args);
    va_end(args);
    admin_fail(c->request, HTTP_BAD_REQUEST, "%s: %s", c->call.op.name, ox_str_get(&why));
    ox_str_fini(&why);
    cluster_free(c);
    return false;
}

// ---- bodies ---------------------------------------------------------------------------------------------------------

enum field_kind { FIELD_TEXT, FIELD_BOOL, FIELD_NUMBER };
// A member of a body: where its value goes. What is not sent stays as it was.
struct field {
    const char *name;
    enum field_kind kind;
    bool required;
    int64_t least; // of a number
    union {
        const char **text;
        bool *flag;
        int64_t *number;
    } to;
};

static bool field_store(const struct field *f, const json_t *value)
{
    switch (f->kind) {
    case FIELD_TEXT:
        if (!json_is_string(value))
            return false;
        *f->to.text = json_string_value(value);
        return true;
    case FIELD_BOOL:
        if (!json_is_boolean(value))
            return false;
        *f->to.flag = json_is_true(value);
        return true;
    case FIELD_NUMBER:
        if (!json_is_integer(value) || json_integer_value(value) < f->least)
            return false;
        *f->to.number = json_integer_value(value);
        return true;
    }
    OX_UNREACHABLE("field kind");
}

static bool field_wrong(struct cluster_call *c, const struct field *f)
{
    switch (f->kind) {
    case FIELD_TEXT: return cluster_refuse(c, "the field \"%s\" must be a text", f->name);
    case FIELD_BOOL: return cluster_refuse(c, "the field \"%s\" must be true or false", f->name);
    case FIELD_NUMBER:
        return cluster_refuse(c, "the field \"%s\" must be a whole number, %lld or more", f->name, (long long)f->least);
    }
    OX_UNREACHABLE("field kind");
}

// A misspelt "dryRun" or "maxDeletions" must not be taken for its default.
static bool body_knows(struct cluster_call *c, const struct field *fields, size_t count)
{
    const char *name;
    json_t *value;
    json_object_foreach(c->body, name, value)
    {
        size_t i = 0;
        while (i < count && strcmp(fields[i].name, name) != 0)
            i++;
        if (i < count)
            continue;
        struct ox_str known = {0};
        for (size_t k = 0; k < count; k++)
            ox_str_addf(&known, "%s%s", k ? ", " : "", fields[k].name);
        cluster_refuse(c, "unknown field \"%s\" (known: %s)%s%s", name, count ? ox_str_get(&known) : "none",
                       strcmp(name, "metadataServiceUri") == 0 ? "; no bookie cluster can be named " : "",
                       strcmp(name, "metadataServiceUri") == 0 ? c->request->segments[CLUSTER_NAME_AT] : "");
        ox_str_fini(&known);
        return false;
    }
    return true;
}

static bool body_parse(struct cluster_call *c)
{
    const struct ox_str *text = &c->request->body;
    json_error_t error;
    if (text->len == 0)
        return true;
    c->body = json_loadb(ox_str_get(text), text->len, JSON_REJECT_DUPLICATES, &error);
    if (!c->body)
        return cluster_refuse(c, "the body is no JSON: line %d, column %d: %s", error.line, error.column, error.text);
    return json_is_object(c->body) || cluster_refuse(c, "the body must be a JSON object");
}

// Reads the body's fields. False: answered, and the call is gone.
static bool body_read(struct cluster_call *c, const struct field *fields, size_t count)
{
    if (!body_parse(c) || !body_knows(c, fields, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(c->body, fields[i].name);
        if (!value && fields[i].required)
            return cluster_refuse(c, "the field \"%s\" is missing in the body", fields[i].name);
        if (value && !field_store(&fields[i], value))
            return field_wrong(c, &fields[i]);
    }
    return true;
}

// ---- queries --------------------------------------------------------------------------------------------------------

// A parameter of the query; *ret is NULL if it was not given. False: answered, and the call is gone.
static bool query_text(struct cluster_call *c, const char *name, const char **ret)
{
    size_t len;
    const char *raw = admin_query_raw(c->request, name, &len);
    struct ox_str text = {0};
    *ret = NULL;
    if (!raw)
        return true;
    if (ox_percent_decode(&text, raw, len) != OX_OK)
        return cluster_refuse(c, "the query's \"%s\" is not properly percent-encoded", name);
    *ret = c->query = ox_str_take(&text);
    return true;
}

static bool query_number(struct cluster_call *c, const char *name, int64_t *ret)
{
    const char *text = admin_query(c->request, name);
    if (!text || ox_parse_i64(text, 0, INT64_MAX, ret) == OX_OK)
        return true;
    return cluster_refuse(c, "the query's \"%s\" must be a whole number, 0 or more", name);
}

// ---- registry -------------------------------------------------------------------------------------------------------

static void admin_storage_list(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "list");
    if (c)
        ox_storage_list(r->admin->storage, &c->call);
}

static void admin_storage_get(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "get");
    if (c)
        ox_storage_get(r->admin->storage, &c->call, r->segments[CLUSTER_NAME_AT]);
}

static void admin_storage_register(struct admin_request *r)
{
    const char *uri = NULL, *status = "STANDBY";
    const struct field fields[] = {
        {"metadataServiceUri", FIELD_TEXT, .required = true, .to.text = &uri},
        {"status", FIELD_TEXT, .to.text = &status},
    };
    struct cluster_call *c = cluster_begin(r, HTTP_NO_CONTENT, "register");
    if (!c || !body_read(c, fields, OX_COUNT(fields)))
        return;
    c->places_address = true;
    ox_storage_register(r->admin->storage, &c->call, r->segments[CLUSTER_NAME_AT], uri, status);
}

static void admin_storage_unregister(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_NO_CONTENT, "unregister");
    if (c)
        ox_storage_unregister(r->admin->storage, &c->call, r->segments[CLUSTER_NAME_AT]);
}

// ---- switching ------------------------------------------------------------------------------------------------------

static void admin_storage_precheck(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "precheck");
    if (c)
        ox_storage_precheck(r->admin->storage, &c->call, r->segments[CLUSTER_NAME_AT + 1]);
}

static void admin_storage_switch(struct admin_request *r)
{
    const char *target = NULL;
    bool supersede = false;
    const struct field fields[] = {
        {"target", FIELD_TEXT, .required = true, .to.text = &target},
        {"supersede", FIELD_BOOL, .to.flag = &supersede},
    };
    struct cluster_call *c = cluster_begin(r, HTTP_ACCEPTED, "switch");
    if (c && body_read(c, fields, OX_COUNT(fields)))
        ox_storage_switch(r->admin->storage, &c->call, target, supersede);
}

// An order without a body: one with a body was meant for something else.
static void cluster_order(struct admin_request *r, unsigned good_status, const char *name,
                          void (*verb)(struct ox_storage *st, struct ox_storage_call *call))
{
    struct cluster_call *c = cluster_begin(r, good_status, name);
    if (c && body_read(c, NULL, 0))
        verb(r->admin->storage, &c->call);
}

// It is a switch, and answers like one.
static void admin_storage_rollback(struct admin_request *r)
{
    cluster_order(r, HTTP_ACCEPTED, "rollback", ox_storage_rollback);
}

static void admin_storage_pause(struct admin_request *r)
{
    cluster_order(r, HTTP_NO_CONTENT, "pause", ox_storage_pause);
}

static void admin_storage_resume(struct admin_request *r)
{
    cluster_order(r, HTTP_NO_CONTENT, "resume", ox_storage_resume);
}

static void admin_storage_abort(struct admin_request *r)
{
    cluster_order(r, HTTP_NO_CONTENT, "abort", ox_storage_abort);
}

static void admin_storage_status(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "status");
    if (c)
        ox_storage_status(r->admin->storage, &c->call);
}

static void admin_storage_read_mode(struct admin_request *r)
{
    const char *mode = NULL;
    const struct field fields[] = {{"mode", FIELD_TEXT, .required = true, .to.text = &mode}};
    struct cluster_call *c = cluster_begin(r, HTTP_NO_CONTENT, "read-mode");
    if (c && body_read(c, fields, OX_COUNT(fields)))
        ox_storage_read_mode(r->admin->storage, &c->call, mode);
}

static void admin_storage_promote_cursor(struct admin_request *r)
{
    const char *topic = NULL, *cursor = NULL, *target = NULL;
    int64_t expected = -1;
    const struct field fields[] = {
        {"topic", FIELD_TEXT, .required = true, .to.text = &topic},
        {"cursorName", FIELD_TEXT, .required = true, .to.text = &cursor},
        {"targetClusterName", FIELD_TEXT, .required = true, .to.text = &target},
        {"expectedCursorsLedgerId", FIELD_NUMBER, .required = true, .least = -1, .to.number = &expected},
    };
    struct cluster_call *c = cluster_begin(r, HTTP_NO_CONTENT, "promote-cursor");
    if (!c || !body_read(c, fields, OX_COUNT(fields)))
        return;
    c->busy_status = HTTP_SERVICE_UNAVAILABLE; // ask again
    ox_storage_promote_cursor(r->admin->storage, &c->call, topic, cursor, target, expected);
}

// ---- places of their own --------------------------------------------------------------------------------------------

// "tenant/namespace" or "persistent://tenant/namespace/topic" of the path; kept with the call. NULL: answered, and the call is gone.
static const char *target_name(struct cluster_call *c, bool topic)
{
    char **at = &c->request->segments[CLUSTER_NAME_AT + 1];
    if (strchr(at[0], '/') || strchr(at[1], '/')) {
        cluster_refuse(c, "tenant and namespace are one segment of the path each");
        return NULL;
    }
    c->query = topic ? ox_asprintf("persistent://%s/%s/%s", at[0], at[1], at[2]) : ox_asprintf("%s/%s", at[0], at[1]);
    return c->query;
}

static void target_ask(struct admin_request *r, unsigned good_status, const char *what, bool topic,
                       void (*verb)(struct ox_storage *st, struct ox_storage_call *call, const char *name))
{
    struct cluster_call *c = cluster_begin(r, good_status, what);
    const char *name = c && body_read(c, NULL, 0) ? target_name(c, topic) : NULL;
    if (name)
        verb(r->admin->storage, &c->call, name);
}

static void target_set(struct admin_request *r, bool topic)
{
    const char *target = NULL;
    const struct field fields[] = {{"target", FIELD_TEXT, .required = true, .to.text = &target}};
    struct cluster_call *c = cluster_begin(r, HTTP_NO_CONTENT, "set-target");
    const char *name = c && body_read(c, fields, OX_COUNT(fields)) ? target_name(c, topic) : NULL;
    if (name)
        ox_storage_target_set(r->admin->storage, &c->call, name, target);
}

static void admin_storage_namespace_target(struct admin_request *r)
{
    target_ask(r, HTTP_OK, "get-target", false, ox_storage_target_get);
}

static void admin_storage_namespace_target_set(struct admin_request *r)
{
    target_set(r, false);
}

static void admin_storage_namespace_target_remove(struct admin_request *r)
{
    target_ask(r, HTTP_NO_CONTENT, "remove-target", false, ox_storage_target_remove);
}

static void admin_storage_topic_target(struct admin_request *r)
{
    target_ask(r, HTTP_OK, "get-target", true, ox_storage_target_get);
}

static void admin_storage_topic_target_set(struct admin_request *r)
{
    target_set(r, true);
}

static void admin_storage_topic_target_remove(struct admin_request *r)
{
    target_ask(r, HTTP_NO_CONTENT, "remove-target", true, ox_storage_target_remove);
}

// ---- data -----------------------------------------------------------------------------------------------------------

static void admin_storage_move_data(struct admin_request *r)
{
    const char *target = NULL;
    const struct field fields[] = {{"target", FIELD_TEXT, .required = true, .to.text = &target}};
    struct cluster_call *c = cluster_begin(r, HTTP_ACCEPTED, "move-data");
    if (c && body_read(c, fields, OX_COUNT(fields)))
        ox_storage_move_data(r->admin->storage, &c->call, target);
}

static void admin_storage_throttle(struct admin_request *r)
{
    int64_t bytes = -1, ops = -1;
    const struct field fields[] = {
        {"bytesPerSecond", FIELD_NUMBER, .to.number = &bytes},
        {"opsPerSecond", FIELD_NUMBER, .to.number = &ops},
    };
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "throttle");
    if (!c || !body_read(c, fields, OX_COUNT(fields)))
        return;
    if (bytes < 0 && ops < 0)
        cluster_refuse(c, "one of the fields \"bytesPerSecond\" and \"opsPerSecond\" is needed (0: no limit)");
    else
        ox_storage_throttle(r->admin->storage, &c->call, bytes, ops);
}

static void admin_storage_plan(struct admin_request *r)
{
    const char *target;
    int64_t bytes = 0;
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "plan");
    if (!c || !query_text(c, "target", &target) || !query_number(c, "bytesPerSecond", &bytes))
        return;
    if (!target)
        cluster_refuse(c, "the query's \"target\" is missing: GET /%s/plan?target=NAME", CLUSTER_BASE);
    else
        ox_storage_plan(r->admin->storage, &c->call, target, bytes);
}

static void admin_storage_inventory(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "inventory");
    if (c)
        ox_storage_inventory(r->admin->storage, &c->call);
}

static void admin_storage_failures(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "failures");
    if (c)
        ox_storage_failures(r->admin->storage, &c->call);
}

static void admin_storage_verify(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "verify");
    if (c)
        ox_storage_verify(r->admin->storage, &c->call, r->segments[CLUSTER_NAME_AT + 1]);
}

static void admin_storage_safe_to_release(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "safe-to-release");
    if (c)
        ox_storage_safe_to_release(r->admin->storage, &c->call, r->segments[CLUSTER_NAME_AT + 1]);
}

static void admin_storage_cleanup_targets(struct admin_request *r)
{
    const char *source;
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "cleanup-targets");
    if (c && query_text(c, "srcClusterFilter", &source))
        ox_storage_cleanup_targets(r->admin->storage, &c->call, source);
}

static void admin_storage_cleanup(struct admin_request *r)
{
    const char *source = NULL;
    bool dry_run = true, force = false;
    int64_t max = 0;
    const struct field fields[] = {
        {"dryRun", FIELD_BOOL, .to.flag = &dry_run},
        {"srcClusterFilter", FIELD_TEXT, .to.text = &source},
        {"maxDeletions", FIELD_NUMBER, .to.number = &max},
        {"force", FIELD_BOOL, .to.flag = &force},
    };
    struct cluster_call *c = cluster_begin(r, HTTP_OK, "cleanup");
    if (c && body_read(c, fields, OX_COUNT(fields)))
        ox_storage_cleanup(r->admin->storage, &c->call, source, dry_run, force, max);
}

static void admin_storage_close_client(struct admin_request *r)
{
    struct cluster_call *c = cluster_begin(r, HTTP_NO_CONTENT, "close-client");
    if (c && body_read(c, NULL, 0))
        ox_storage_close_client(r->admin->storage, &c->call, r->segments[CLUSTER_NAME_AT + 1]);
}

static const struct admin_route storage_routes[] = {ADMIN_ROUTES_BOOKIE_CLUSTERS};
const struct admin_route_table admin_bookie_clusters = {storage_routes, OX_COUNT(storage_routes)};
