// policy_scope.c - what is in force in a namespace: read with its first topic, followed by a watch, laid over the broker's settings for each topic.
#include "broker/policy_scope.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/subscription_int.h"
#include "broker/topic_events.h"

#define REFRESH_TURN_TOPICS 128u
#define REFRESH_PAUSE_NS OX_MS
#define SETTINGS_TURN_SCOPES 4u

static const char *scope_state_name(enum scope_state state)
{
    static const char *const names[] = {
#define OX_X(name) [SCOPE_##name] = #name,
        SCOPE_STATES(OX_X)
#undef OX_X
    };
    return names[state];
}

static void scope_set_state(struct policy_scope *scope, enum scope_state to)
{
    static const unsigned allowed[] = {
        [SCOPE_NEW] = 1u << SCOPE_READING,
        [SCOPE_READING] = 1u << SCOPE_NEW | 1u << SCOPE_READ,
        [SCOPE_READ] = 1u << SCOPE_LOADING | 1u << SCOPE_READY,
        [SCOPE_LOADING] = 1u << SCOPE_READ | 1u << SCOPE_READY,
        [SCOPE_READY] = 0,
    };
    OX_ASSERT(allowed[scope->state] & 1u << to);
    ox_debug(scope->shard->log, "scope.state", "namespace=%s from=%s to=%s", scope->ns, scope_state_name(scope->state),
             scope_state_name(to));
    scope->state = to;
}

// ---- what follows for a topic

static void scope_compute_base(struct policy_scope *scope)
{
    const struct ox_shard *sh = scope->shard;
    scope->stale = false;
    ox_policies_of_broker(&sh->config, &scope->base);
    scope->base.retention_ms = sh->mledgers->settings.retention_ms;
    scope->base.retention_bytes = sh->mledgers->settings.retention_bytes;
    ox_policies_apply_namespace(&scope->base, scope->policies, sh->config.cluster);
}

const struct ox_policies *scope_base(struct policy_scope *scope)
{
    if (scope->stale)
        scope_compute_base(scope);
    return &scope->base;
}

static void topic_policies_compute(struct ox_topic *t)
{
    OX_CLEANUP(ox_free_ptr)
    char *base = ox_topic_name_base(&t->name);
    t->policies = *scope_base(t->scope);
    t->own_policies = scope_own(t->scope, base);
    if (t->own_policies)
        ox_policies_apply_topic(&t->policies, t->own_policies);
}

static void topic_refresh(struct ox_topic *t)
{
    topic_policies_compute(t);
    topic_policies_changed(t);
}

// A namespace may have very many topics: a portion at a time, others have their turn between.
static void scope_refresh(struct ox_timer *timer)
{
    struct policy_scope *scope = CONTAINER_OF(timer, struct policy_scope, refresh);
    scope->refs++;
    for (unsigned n = 0; scope->refresh_next && n < REFRESH_TURN_TOPICS; n++) {
        struct ox_topic *t = CONTAINER_OF(scope->refresh_next, struct ox_topic, in_scope);
        scope->refresh_next = ox_list_next(&scope->topics, scope->refresh_next);
        topic_refresh(t);
    }
    if (scope->refresh_next)
        ox_timer_start(timer, REFRESH_PAUSE_NS);
    scope_put(scope);
}

void scope_join(struct policy_scope *scope, struct ox_topic *t)
{
    OX_ASSERT(!t->scope);
    t->scope = scope;
    ox_list_push_back(&scope->topics, &t->in_scope);
    topic_policies_compute(t);
}

void scope_leave(struct ox_topic *t)
{
    struct policy_scope *scope = t->scope;
    if (!scope)
        return;
    if (scope->refresh_next == &t->in_scope)
        scope->refresh_next = ox_list_next(&scope->topics, &t->in_scope);
    ox_list_remove(&scope->topics, &t->in_scope);
    t->scope = NULL;
    t->own_policies = NULL;
    scope_put(scope);
}

// ---- topics' own policies

static struct own_policies *own_find(const struct policy_scope *scope, const char *base_name)
{
    struct ox_map_node *n = ox_map_find_str(&scope->own, base_name);
    return n ? CONTAINER_OF(n, struct own_policies, by_topic) : NULL;
}

json_t *scope_own(const struct policy_scope *scope, const char *base_name)
{
    struct own_policies *own = own_find(scope, base_name);
    return own ? own->policies : NULL;
}

static void own_free(struct policy_scope *scope, struct own_policies *own)
{
    ox_map_remove(&scope->own, &own->by_topic);
    json_decref(own->policies);
    ox_free(own->topic);
    ox_free(own);
}

static struct own_policies *own_make(struct policy_scope *scope, const char *base_name)
{
    struct own_policies *own = ox_malloc(sizeof *own);
    own->topic = ox_strdup(base_name);
    ox_map_put_str(&scope->own, &own->by_topic, own->topic);
    return own;
}

// The topic itself, or its partitions.
static bool own_is_for(const struct ox_topic *t, const char *base_name)
{
    size_t len = strlen(base_name);
    if (strncmp(t->name.full, base_name, len) != 0)
        return false;
    return t->name.partition < 0 ? t->name.full[len] == 0 : strncmp(t->name.full + len, "-partition-", 11) == 0;
}

void scope_set_own(struct policy_scope *scope, const char *base_name, json_t *policies)
{
    struct own_policies *own = own_find(scope, base_name);
    json_t *old = own ? own->policies : NULL;
    if (policies && !own)
        own = own_make(scope, base_name);
    if (own)
        own->policies = json_incref(policies);
    if (own && !policies)
        own_free(scope, own);
    OX_LIST_EACH(&scope->topics, l) {
        struct ox_topic *t = CONTAINER_OF(l, struct ox_topic, in_scope);
        if (own_is_for(t, base_name))
            topic_refresh(t);
    }
    json_decref(old);
}

void scope_clear_own(struct policy_scope *scope)
{
    OX_LIST_EACH(&scope->topics, l)
        CONTAINER_OF(l, struct ox_topic, in_scope)->own_policies = NULL;
    OX_MAP_EACH(&scope->own, n)
        own_free(scope, CONTAINER_OF(n, struct own_policies, by_topic));
}

// ---- the namespace's node

static void scope_read(struct policy_scope *scope);
static void scope_go(struct policy_scope *scope);

void scope_take(struct policy_scope *scope, json_t *policies, int64_t version)
{
    if (scope->policies && version <= scope->version)
        return;
    json_t *old = scope->policies;
    scope->policies = json_incref(policies);
    scope->version = version;
    scope_compute_base(scope);
    json_decref(old);
    scope->refresh_next = ox_list_first(&scope->topics);
    scope_refresh(&scope->refresh);
}

static enum ox_err scope_parse(struct policy_scope *scope)
{
    json_t *root = json_loadb((const char *)scope->get.value.data, scope->get.value.len, 0, NULL);
    enum ox_err err = json_is_object(root) ? OX_OK : OX_E_CORRUPT;
    if (!err)
        scope_take(scope, root, scope->get.stat.version);
    json_decref(root);
    ox_buf_unref(&scope->get.value);
    return err;
}

static void scope_answer(struct policy_scope *scope, struct scope_get *g, enum ox_err err)
{
    ox_list_remove(&scope->waiters, &g->link);
    if (!err)
        scope->refs++;
    g->scope = err ? NULL : scope;
    ox_op_finish(&g->op, err);
}

static void scope_fail(struct policy_scope *scope, enum ox_err err, bool system_too)
{
    OX_LIST_EACH(&scope->waiters, l) {
        struct scope_get *g = CONTAINER_OF(l, struct scope_get, link);
        if (system_too || !g->system)
            scope_answer(scope, g, err);
    }
}

// A node that is gone or damaged leaves in force what was.
static void scope_got(struct ox_op *op)
{
    struct policy_scope *scope = CONTAINER_OF(op, struct policy_scope, get.op);
    enum ox_err err = op->err;
    if (err == OX_E_NOT_FOUND) {
        scope->version = -1; // whatever version it has when it is made anew
        err = OX_E_NAMESPACE_NOT_FOUND;
    }
    if (!err)
        err = scope_parse(scope);
    if (err && err != OX_E_NAMESPACE_NOT_FOUND && err != OX_E_SHUTDOWN)
        ox_warn(scope->shard->log, "scope.read.failed", "namespace=%s error=%s", scope->ns, ox_err_name(err));
    if (scope->state == SCOPE_READING) {
        scope_set_state(scope, err ? SCOPE_NEW : SCOPE_READ);
        if (err)
            scope_fail(scope, err, true);
        else
            scope_go(scope);
    }
    if (scope->get_again && err != OX_E_SHUTDOWN)
        scope_read(scope);
    scope_put(scope);
}

static void scope_read(struct policy_scope *scope)
{
    if (ox_op_pending(&scope->get.op)) {
        scope->get_again = true;
        return;
    }
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", scope->ns);
    scope->get_again = false;
    scope->refs++;
    ox_op_init(&scope->get.op, scope->shard->loop, scope_got, "scope.get");
    ox_meta_get(scope->shard->meta, &scope->get, path);
}

static void scope_fired(struct ox_meta_watch *w, enum ox_meta_event event)
{
    struct policy_scope *scope = CONTAINER_OF(w, struct policy_scope, watch);
    if (event != OX_META_CHILDREN_CHANGED && scope->state >= SCOPE_READING)
        scope_read(scope); // what is being read may have been older
}

// Very many namespaces: some each millisecond.
void scopes_settings_changed(struct ox_shard *sh)
{
    unsigned count = 0;
    OX_MAP_EACH(&sh->scopes, n) {
        struct policy_scope *scope = CONTAINER_OF(n, struct policy_scope, by_ns);
        if (!scope->policies)
            continue;
        scope->stale = true;
        scope->refresh_next = ox_list_first(&scope->topics);
        ox_timer_start(&scope->refresh, count++ / SETTINGS_TURN_SCOPES * REFRESH_PAUSE_NS);
    }
}

// ---- users

// Who can be served is; if others wait, the next thing they need begins.
static void scope_go(struct policy_scope *scope)
{
    if (scope->state == SCOPE_READ && !scope->shard->config.topic_policies)
        scope_set_state(scope, SCOPE_READY);
    OX_LIST_EACH(&scope->waiters, l) {
        struct scope_get *g = CONTAINER_OF(l, struct scope_get, link);
        if (scope->state == SCOPE_READY || (g->system && scope->state >= SCOPE_READ))
            scope_answer(scope, g, OX_OK);
    }
    if (ox_list_empty(&scope->waiters))
        return;
    if (scope->state == SCOPE_NEW) {
        scope_set_state(scope, SCOPE_READING);
        scope_read(scope);
    } else if (scope->state == SCOPE_READ) {
        scope_set_state(scope, SCOPE_LOADING);
        topic_events_load(scope);
    }
}

void scope_loaded(struct policy_scope *scope, enum ox_err err)
{
    if (err)
        ox_warn(scope->shard->log, "scope.load.failed", "namespace=%s error=%s", scope->ns, ox_err_name(err));
    scope_set_state(scope, err ? SCOPE_READ : SCOPE_READY);
    if (err)
        scope_fail(scope, err, false);
    scope_go(scope);
}

struct policy_scope *scope_find(struct ox_shard *sh, const char *ns)
{
    struct ox_map_node *n = ox_map_find_str(&sh->scopes, ns);
    return n ? CONTAINER_OF(n, struct policy_scope, by_ns) : NULL;
}

static struct policy_scope *scope_new(struct ox_shard *sh, const char *ns)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/admin/policies/%s", ns);
    struct policy_scope *scope = ox_malloc(sizeof *scope);
    scope->shard = sh;
    scope->ns = ox_strdup(ns);
    scope->version = -1;
    ox_list_init(&scope->topics);
    ox_list_init(&scope->waiters);
    ox_timer_init(&scope->refresh, sh->loop, scope_refresh);
    scope->watch.fired = scope_fired;
    ox_meta_watch(sh->meta, &scope->watch, path);
    ox_map_put_str(&sh->scopes, &scope->by_ns, scope->ns);
    return scope;
}

void scope_put(struct policy_scope *scope)
{
    OX_ASSERT(scope->refs > 0);
    if (--scope->refs || !ox_list_empty(&scope->waiters))
        return;
    OX_ASSERT(ox_list_empty(&scope->topics));
    ox_timer_stop(&scope->refresh);
    scope_clear_own(scope);
    topic_events_free(scope);
    ox_meta_unwatch(&scope->watch);
    ox_map_remove(&scope->shard->scopes, &scope->by_ns);
    struct ox_shard *sh = scope->shard;
    json_decref(scope->policies);
    ox_free(scope->ns);
    ox_free(scope);
    shard_quieter(sh);
}

void scope_get(struct ox_shard *sh, struct scope_get *g, const char *ns)
{
    ox_op_begin(&g->op);
    struct policy_scope *scope = scope_find(sh, ns);
    if (!scope)
        scope = scope_new(sh, ns);
    g->scope = scope;
    g->link = (struct ox_link){0};
    scope->refs++;
    ox_list_push_back(&scope->waiters, &g->link);
    scope_go(scope);
    scope_put(scope);
}
