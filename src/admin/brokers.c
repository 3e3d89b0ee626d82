// brokers.c - the broker itself: health, readiness, version, who is there, settings.
#include <string.h>

#include "admin/request.h"
#include "base/version.h"
#include "gen/rest_routes.h"

#define SETTING_AT 4 // /admin/v2/brokers/configuration/{name}

const char *admin_broker_id(const struct ox_shard *sh)
{
    const char *host = strstr(sh->config.web_url, "://");
    return host ? host + 3 : sh->config.web_url;
}

// Healthy = clients are served, the metadata session lives, and the place where new ledgers go takes appends.
const char *admin_broker_trouble(const struct ox_shard *sh)
{
    struct ox_capacity capacity;
    if (sh->state != OX_SHARD_RUNNING)
        return ox_shard_state_name(sh->state);
    if (sh->meta->session != OX_META_CONNECTED)
        return "the metadata store's session is not connected";
    ox_place_capacity(ox_router_place(sh->router, sh->router->active), &capacity);
    return capacity.writable ? NULL
                             : "the ledger store takes no appends: its disk is full or a write has failed; see the log";
}

static void broker_ready(struct admin_request *r)
{
    if (r->admin->shard->state == OX_SHARD_RUNNING)
        admin_text(r, HTTP_OK, "text/plain", "ok");
    else
        admin_fail(r, HTTP_SERVICE_UNAVAILABLE, "not ready: %s", ox_shard_state_name(r->admin->shard->state));
}

static void broker_version(struct admin_request *r)
{
    admin_text(r, HTTP_OK, "text/plain", OX_VERSION);
}

static void broker_list(struct admin_request *r)
{
    admin_json(r, HTTP_OK, json_pack("[s]", admin_broker_id(r->admin->shard)));
}

static void broker_leader(struct admin_request *r)
{
    const struct ox_shard *sh = r->admin->shard;
    admin_json(r, HTTP_OK, json_pack("{s:s, s:s}", "serviceUrl", sh->config.web_url, "brokerId", admin_broker_id(sh)));
}

// ---- settings: those of the program, by its port

struct broker_change {
    struct admin_request *request;
    struct ox_admin_setting_put put;
    const char *verb; // in Pulsar's sentence: update, delete
};

static void broker_add_name(void *arg, const char *name, const char *value)
{
    (void)value;
    json_array_append_new((json_t *)arg, json_string(name));
}

static void broker_add_value(void *arg, const char *name, const char *value)
{
    json_object_set_new((json_t *)arg, name, json_string(value));
}

static void broker_dynamic_names(struct admin_request *r)
{
    const struct ox_admin_settings *s = &r->admin->settings;
    json_t *names = json_array();
    if (s->list)
        s->list(s->ctx, true, broker_add_name, names);
    admin_json(r, HTTP_OK, names);
}

static void broker_dynamic_values(struct admin_request *r)
{
    const struct ox_admin_settings *s = &r->admin->settings;
    admin_json(r, HTTP_OK, s->record ? admin_kv_json(s->record(s->ctx)) : json_object());
}

static void broker_runtime(struct admin_request *r)
{
    const struct ox_admin_settings *s = &r->admin->settings;
    json_t *values = json_object();
    if (s->list)
        s->list(s->ctx, false, broker_add_value, values);
    admin_json(r, HTTP_OK, values);
}

static void broker_changed(struct ox_op *op)
{
    struct broker_change *c = CONTAINER_OF(op, struct broker_change, put.op);
    const char *why = ox_str_get(&c->put.why);
    if (op->err == OX_OK)
        admin_empty(c->request, HTTP_OK);
    else if (op->err == OX_E_NOT_FOUND)
        admin_fail(c->request, HTTP_PRECONDITION_FAILED, "Can't %s non-dynamic configuration: %s", c->verb, why);
    else if (op->err == OX_E_INVALID)
        admin_fail(c->request, HTTP_PRECONDITION_FAILED, "Invalid dynamic-config value: %s", why);
    else if (*why)
        admin_fail(c->request, HTTP_INTERNAL_SERVER_ERROR, "%s", why);
    else
        admin_error(c->request, op->err, "configuration", c->put.name);
    ox_str_fini(&c->put.why);
    ox_free(c);
}

static void broker_change(struct admin_request *r, const char *value, const char *verb)
{
    const struct ox_admin_settings *s = &r->admin->settings;
    if (!s->put) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Can't %s non-dynamic configuration: %s", verb, r->segments[SETTING_AT]);
        return;
    }
    struct broker_change *c = ox_malloc(sizeof *c);
    c->request = r;
    c->verb = verb;
    c->put.name = r->segments[SETTING_AT];
    c->put.value = value;
    ox_op_init(&c->put.op, r->admin->shard->loop, broker_changed, "brokers.setting");
    s->put(s->ctx, &c->put);
}

static void broker_set(struct admin_request *r)
{
    broker_change(r, r->segments[SETTING_AT + 1], "update");
}

static void broker_unset(struct admin_request *r)
{
    broker_change(r, NULL, "delete");
}

static const struct admin_route routes[] = {ADMIN_ROUTES_BROKERS};
const struct admin_route_table admin_brokers = {routes, OX_COUNT(routes)};
