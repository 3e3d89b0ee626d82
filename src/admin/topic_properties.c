// topic_properties.c - /{topic}/properties: a plain topic keeps them in its log's record, a partitioned one in its own node.
#include <string.h>

#include "admin/each.h"
#include "admin/node.h"
#include "gen/rest_routes.h"

// Properties of the log that are not the user's.
static bool property_is_ours(const char *name)
{
    return strncmp(name, "pulsar.", 7) == 0 || strncmp(name, "oxbow", 5) == 0 || strcmp(name, "index") == 0;
}

// ---- showing

static ox_step show_run(struct admin_each *e)
{
    const struct ox_mledger *ml = e->topic->ml;
    e->result = json_object();
    for (size_t i = 0; ml && i < ml->properties.count; i++) {
        const struct ox_kv_pair *pair = &ml->properties.pairs[i];
        if (!property_is_ours(pair->key))
            json_object_set_new(e->result, pair->key, json_string(pair->value));
    }
    return each_ran(e, OX_OK);
}

static void whole_read(struct admin_node *n)
{
    json_t *properties = json_object_get(n->value, "properties");
    admin_json(n->request, HTTP_OK, json_is_object(properties) ? json_incref(properties) : json_object());
}

static void whole_show(struct admin_request *r)
{
    admin_node_read(r, ox_topic_name_partitions_path(&r->topic), "Topic", NULL, whole_read);
}

static const struct admin_verb show_verb = {
    .name = "admin.properties.get", .partitioned = EACH_WHOLE, .run = show_run, .whole = whole_show};

static void properties_get(struct admin_request *r)
{
    each_start(each_new(r, &show_verb));
}

// ---- setting: one pair after the other

static ox_step set_run(struct admin_each *e)
{
    const struct ox_kv_pair *pair = &e->properties.pairs[e->number];
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "a non-persistent topic keeps no properties");
    each_bind(e, &e->u.property.op);
    ox_mledger_set_property(e->topic->ml, &e->u.property, pair->key, e->flag ? NULL : pair->value);
    return each_wait(e);
}

static bool set_again(struct admin_each *e)
{
    return (size_t)++e->number < e->properties.count && e->topic->ml;
}

static json_t *whole_object(struct admin_node *n)
{
    if (!json_is_object(json_object_get(n->value, "properties")))
        json_object_set_new(n->value, "properties", json_object());
    return json_object_get(n->value, "properties");
}

static bool whole_change(struct admin_node *n)
{
    json_t *body = n->request->json, *inner = json_object_get(body, "properties");
    json_object_update(whole_object(n), json_is_object(inner) ? inner : body);
    return true;
}

static void whole_set(struct admin_request *r)
{
    admin_node_change(r, ox_topic_name_partitions_path(&r->topic), "Topic", NULL, whole_change, NULL);
}

static bool whole_drop(struct admin_node *n)
{
    json_object_del(whole_object(n), admin_query(n->request, "key"));
    return true;
}

static void whole_remove(struct admin_request *r)
{
    admin_node_change(r, ox_topic_name_partitions_path(&r->topic), "Topic", NULL, whole_drop, NULL);
}

static const struct admin_verb set_verb = {
    .name = "admin.properties.set", .partitioned = EACH_WHOLE, .run = set_run, .again = set_again, .whole = whole_set};
static const struct admin_verb remove_verb = {
    .name = "admin.properties.remove", .partitioned = EACH_WHOLE, .run = set_run, .again = set_again, .whole = whole_remove};

static bool properties_fit(struct admin_request *r, json_t *properties)
{
    const char *key, *wrong = json_is_object(properties) ? NULL : "the body";
    json_t *value;
    json_object_foreach(properties, key, value)
    {
        if (!json_is_string(value) || property_is_ours(key))
            wrong = key;
    }
    if (wrong)
        admin_fail(r, HTTP_BAD_REQUEST,
                   "properties must be an object of texts, of names that the broker does not use itself: %s", wrong);
    return !wrong;
}

void admin_properties_set(struct admin_request *r, json_t *properties)
{
    if (!properties_fit(r, properties))
        return;
    if (!json_object_size(properties)) {
        admin_empty(r, HTTP_NO_CONTENT);
        return;
    }
    struct admin_each *e = each_new(r, &set_verb);
    admin_kv_read(&e->properties, properties);
    each_start(e);
}

static void properties_put(struct admin_request *r)
{
    json_t *body;
    if (admin_body(r, &body))
        admin_properties_set(r, body);
}

static void properties_remove(struct admin_request *r)
{
    const char *key = admin_query(r, "key");
    if (!key || property_is_ours(key)) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "the query must have a key: the property's name");
        return;
    }
    struct admin_each *e = each_new(r, &remove_verb);
    ox_kv_set(&e->properties, key, "");
    e->flag = true;
    each_start(e);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_TOPIC_PROPERTIES};
const struct admin_route_table admin_topic_properties = {routes, OX_COUNT(routes)};
