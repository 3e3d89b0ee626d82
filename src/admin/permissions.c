// permissions.c - which roles may do what in a namespace, with a topic, with a subscription: kept for when there is authorization. Roles are decoded once only.
#include <string.h>

#include "admin/node.h"
#include "broker/partitions.h"
#include "gen/rest_routes.h"

#define ROLE_AT 6       // the segment behind "permissions" of a namespace
#define TOPIC_ROLE_AT 7 // and of a topic

static const char *const actions[] = {"consume", "functions", "packages", "produce", "sinks", "sources"}; // sorted

static bool action_in(const json_t *list, const char *action)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        if (json_is_string(value) && strcmp(json_string_value(value), action) == 0)
            return true;
    }
    return false;
}

// The actions of a list, each once and sorted.
static json_t *actions_of(const json_t *list)
{
    json_t *sorted = json_array();
    for (size_t i = 0; i < OX_COUNT(actions); i++) {
        if (action_in(list, actions[i]))
            json_array_append_new(sorted, json_string(actions[i]));
    }
    return sorted;
}

static bool action_known(const char *action)
{
    for (size_t i = 0; i < OX_COUNT(actions); i++) {
        if (action && strcmp(actions[i], action) == 0)
            return true;
    }
    return false;
}

static bool actions_known(const json_t *list)
{
    size_t i;
    json_t *value;
    bool known = json_is_array(list);
    json_array_foreach(list, i, value) known &= action_known(json_string_value(value));
    return known;
}

// The body must be a list of actions. False: answered.
static bool actions_body(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return false;
    bool known = actions_known(body);
    if (!known)
        admin_fail(r, HTTP_BAD_REQUEST,
                   "the body must be a list of actions: produce, consume, functions, sources, sinks, packages");
    return known;
}

static json_t *object_under(json_t *parent, const char *member)
{
    if (!json_is_object(json_object_get(parent, member)))
        json_object_set_new(parent, member, json_object());
    return json_object_get(parent, member);
}

static json_t *auth_part(const struct admin_node *n, const char *part)
{
    return object_under(object_under(n->value, "auth_policies"), part);
}

static bool role_set(struct admin_node *n, json_t *roles, const char *role)
{
    if (json_object_set_new(roles, role, actions_of(n->request->json)) == 0)
        return true;
    admin_fail(n->request, HTTP_BAD_REQUEST, "a role's name must be UTF-8");
    return false;
}

// ---- of a namespace

static bool grant_change(struct admin_node *n)
{
    return role_set(n, auth_part(n, "namespace_auth"), n->request->segments[ROLE_AT]);
}

static void role_grant(struct admin_request *r)
{
    if (actions_body(r))
        admin_namespace_change(r, grant_change);
}

static bool revoke_change(struct admin_node *n)
{
    json_object_del(auth_part(n, "namespace_auth"), n->request->segments[ROLE_AT]);
    return true;
}

static void role_revoke(struct admin_request *r)
{
    admin_namespace_change(r, revoke_change);
}

// ---- of a subscription: which roles may use it

static bool subscription_grant_change(struct admin_node *n)
{
    OX_CLEANUP(ox_free_ptr)
    char *name = admin_twice(n->request, ROLE_AT + 1);
    json_t *body = n->request->json, *value;
    size_t i;
    bool texts = json_is_array(body);
    json_array_foreach(body, i, value) texts &= json_is_string(value);
    if (texts && json_object_set(auth_part(n, "subscription_auth_roles"), name, body) == 0)
        return true;
    admin_fail(n->request, HTTP_BAD_REQUEST, "the body must be a list of roles");
    return false;
}

static void subscription_grant(struct admin_request *r)
{
    json_t *body;
    if (admin_body(r, &body))
        admin_namespace_change(r, subscription_grant_change);
}

static bool subscription_revoke_change(struct admin_node *n)
{
    OX_CLEANUP(ox_free_ptr)
    char *name = admin_twice(n->request, ROLE_AT);
    json_t *subscriptions = auth_part(n, "subscription_auth_roles"), *roles = json_object_get(subscriptions, name);
    for (size_t i = json_array_size(roles); i-- > 0;) {
        const char *role = json_string_value(json_array_get(roles, i));
        if (role && strcmp(role, n->request->segments[ROLE_AT + 1]) == 0)
            json_array_remove(roles, i);
    }
    if (json_array_size(roles) == 0)
        json_object_del(subscriptions, name);
    return true;
}

static void subscription_revoke(struct admin_request *r)
{
    admin_namespace_change(r, subscription_revoke_change);
}

// ---- of a topic

struct topic_permission {
    struct admin_request *request;
    struct ox_partitions_get look;
    void (*go)(struct admin_request *r);
};

static void topic_looked(struct ox_op *op)
{
    struct topic_permission *p = CONTAINER_OF(op, struct topic_permission, look.op);
    struct admin_request *r = p->request;
    if (op->err == OX_OK)
        p->go(r);
    else if (op->err == OX_E_TOPIC_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Topic %s not found", r->topic.full);
    else
        admin_error(r, op->err, r->topic.full, NULL);
    ox_free(p);
}

// Goes on if the topic is there.
static void topic_look(struct admin_request *r, void (*go)(struct admin_request *r))
{
    struct topic_permission *p = ox_malloc(sizeof *p);
    p->request = r;
    p->go = go;
    r->ns = ox_strdup(r->topic.ns);
    ox_op_init(&p->look.op, r->admin->shard->loop, topic_looked, "partitions.get");
    ox_partitions_get(r->admin->shard, &p->look, &r->topic);
}

static void topic_show_read(struct admin_node *n)
{
    json_t *auth = json_object_get(n->value, "auth_policies"), *all = json_object();
    json_object_update(all, json_object_get(auth, "namespace_auth"));
    json_object_update(all, json_object_get(json_object_get(auth, "destination_auth"), n->request->topic.full));
    admin_json(n->request, HTTP_OK, all);
}

static void topic_show_found(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, topic_show_read);
}

static void topic_show(struct admin_request *r)
{
    topic_look(r, topic_show_found);
}

static bool topic_grant_change(struct admin_node *n)
{
    json_t *roles = object_under(auth_part(n, "destination_auth"), n->request->topic.full);
    return role_set(n, roles, n->request->segments[TOPIC_ROLE_AT]);
}

static void topic_grant_found(struct admin_request *r)
{
    admin_namespace_change(r, topic_grant_change);
}

static void topic_grant(struct admin_request *r)
{
    if (actions_body(r))
        topic_look(r, topic_grant_found);
}

static bool topic_revoke_change(struct admin_node *n)
{
    json_t *topics = auth_part(n, "destination_auth"), *roles = json_object_get(topics, n->request->topic.full);
    json_object_del(roles, n->request->segments[TOPIC_ROLE_AT]);
    if (json_object_size(roles) == 0)
        json_object_del(topics, n->request->topic.full);
    return true;
}

static void topic_revoke_found(struct admin_request *r)
{
    admin_namespace_change(r, topic_revoke_change);
}

static void topic_revoke(struct admin_request *r)
{
    topic_look(r, topic_revoke_found);
}

// ---- of many topics of one namespace at once

struct many_permissions {
    struct admin_request *request;
    size_t at;
    struct ox_topic_name name;
    struct ox_partitions_get look;
    struct ox_seq seq;
};

static ox_step many_next(struct ox_seq *s);

static bool many_change(struct admin_node *n)
{
    bool grants = strcmp(n->request->segments[3], "grantPermissionsOnTopics") == 0;
    json_t *topics = auth_part(n, "destination_auth"), *one;
    size_t i;
    json_array_foreach(n->request->json, i, one)
    {
        const char *topic = json_string_value(json_object_get(one, "topic"));
        const char *role = json_string_value(json_object_get(one, "role"));
        json_t *roles = grants ? object_under(topics, topic) : json_object_get(topics, topic);
        if (grants)
            json_object_set_new(roles, role, actions_of(json_object_get(one, "actions")));
        else
            json_object_del(roles, role);
        if (!grants && json_object_size(roles) == 0)
            json_object_del(topics, topic);
    }
    return true;
}

static ox_step many_looked(struct ox_seq *s)
{
    struct many_permissions *m = CONTAINER_OF(s, struct many_permissions, seq);
    if (s->err)
        return OX_FINISH(s, s->err);
    m->at++;
    return OX_GOTO(s, many_next);
}

// Each topic must be there; all names have been parsed once.
static ox_step many_next(struct ox_seq *s)
{
    struct many_permissions *m = CONTAINER_OF(s, struct many_permissions, seq);
    const json_t *one = json_array_get(m->request->json, m->at);
    if (!one)
        return OX_FINISH(s, OX_OK);
    ox_topic_name_fini(&m->name);
    m->name = (struct ox_topic_name){0};
    if (ox_topic_name_parse(&m->name, json_string_value(json_object_get(one, "topic"))) != OX_OK)
        return OX_FINISH(s, OX_E_INVALID_TOPIC_NAME);
    memset(&m->look, 0, sizeof m->look);
    ox_seq_bind(s, &m->look.op, "partitions.get");
    ox_partitions_get(m->request->admin->shard, &m->look, &m->name);
    return OX_WAIT(s, many_looked);
}

static void many_done(struct ox_seq *s, enum ox_err err)
{
    struct many_permissions *m = CONTAINER_OF(s, struct many_permissions, seq);
    struct admin_request *r = m->request;
    if (err == OX_E_TOPIC_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Topic %s not found", m->name.full);
    else if (err)
        admin_error(r, err, m->name.full ? m->name.full : "topic", NULL);
    else
        admin_namespace_change(r, many_change);
    ox_topic_name_fini(&m->name);
    ox_free(m);
}

// The namespace of a topic; NULL: it is no topic. The caller's.
static char *namespace_of(const json_t *topic)
{
    struct ox_topic_name name = {0};
    const char *text = json_string_value(topic);
    char *ns = text && ox_topic_name_parse(&name, text) == OX_OK ? ox_strdup(name.ns) : NULL;
    ox_topic_name_fini(&name);
    return ns;
}

// One entry of the list; the first one says which namespace it is about. False: answered.
static bool many_entry(struct admin_request *r, const json_t *one, size_t i, bool grants)
{
    OX_CLEANUP(ox_free_ptr)
    char *ns = namespace_of(json_object_get(one, "topic"));
    if (!ns)
        admin_fail(r, HTTP_BAD_REQUEST, "entry %zu: \"topic\" must be a topic's full name", i);
    else if (!json_is_string(json_object_get(one, "role")))
        admin_fail(r, HTTP_BAD_REQUEST, "entry %zu: \"role\" must be a text", i);
    else if (grants && !actions_known(json_object_get(one, "actions")))
        admin_fail(r, HTTP_BAD_REQUEST,
                   "entry %zu: \"actions\" must be a list of produce, consume, functions, sources, sinks, packages", i);
    else if (r->ns && strcmp(r->ns, ns) != 0)
        admin_fail(r, HTTP_BAD_REQUEST, "The namespace should be the same: entry %zu is in %s, not in %s", i, ns, r->ns);
    else if (!r->ns)
        r->ns = ox_strdup(ns);
    return !r->answered;
}

static void topics_permissions(struct admin_request *r)
{
    json_t *body, *one;
    size_t i;
    if (!admin_body(r, &body))
        return;
    if (!json_is_array(body))
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be a list of objects with \"topic\", \"role\" and \"actions\"");
    else if (json_array_size(body) == 0)
        admin_fail(r, HTTP_BAD_REQUEST, "The namespace should be the same: the list is empty");
    json_array_foreach(body, i, one)
    {
        if (r->answered || !many_entry(r, one, i, strncmp(r->segments[3], "grant", 5) == 0))
            return;
    }
    if (r->answered)
        return;
    struct many_permissions *m = ox_malloc(sizeof *m);
    m->request = r;
    ox_seq_start(&m->seq, r->admin->shard->loop, "admin.permissions", many_next, many_done);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_PERMISSIONS};
const struct admin_route_table admin_permissions = {routes, OX_COUNT(routes)};
