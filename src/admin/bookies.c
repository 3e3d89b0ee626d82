// bookies.c - /admin/v2/bookies: which there are (none: the store is part of the broker), and in which racks they stand, which is kept for brokers that have some.
#include <string.h>

#include "admin/node.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

#define BOOKIE_AT 4

static const char racks_node[] = "/bookies";

static const struct policy_field rack_fields[] = {
    {"rack", FIELD_WORD, 0, true, NULL}, {"hostname", FIELD_WORD, 0, true, NULL}, {0}};

// A slash may stand at the beginning and at the end only.
static bool rack_check(struct admin_request *r, const json_t *value)
{
    const char *rack = json_string_value(json_object_get(value, "rack"));
    const char *slash = rack && *rack ? strchr(rack + 1, '/') : NULL;
    if (!slash || !slash[1])
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED,
               "Bookie 'rack' parameter is invalid: %s has a slash that is neither at its beginning nor at its end", rack);
    return false;
}

static const struct policy_shape rack_shape = {.kind = POLICY_OBJECT, .fields = rack_fields, .check = rack_check};

static void bookies_all(struct admin_request *r)
{
    admin_json(r, HTTP_OK, json_pack("{s:[]}", "bookies"));
}

static void racks_read(struct admin_node *n)
{
    admin_json(n->request, HTTP_OK, json_incref(n->value));
}

static void racks_get(struct admin_request *r)
{
    admin_node_read_or(r, ox_strdup(racks_node), json_object(), NULL, racks_read);
}

static void rack_missing(struct admin_request *r)
{
    admin_fail(r, HTTP_NOT_FOUND, "Bookie rack placement configuration not found: %s", r->segments[BOOKIE_AT]);
}

static void rack_read(struct admin_node *n)
{
    const char *group;
    json_t *bookies;
    json_object_foreach(n->value, group, bookies)
    {
        json_t *found = json_object_get(bookies, n->request->segments[BOOKIE_AT]);
        if (found) {
            admin_json(n->request, HTTP_OK, json_incref(found));
            return;
        }
    }
    rack_missing(n->request);
}

static void rack_get(struct admin_request *r)
{
    admin_node_read_or(r, ox_strdup(racks_node), json_object(), NULL, rack_read);
}

// Takes a bookie out of all groups; groups without one go. True if it was in one.
static bool rack_drop(json_t *groups, const char *bookie)
{
    const char *group;
    json_t *bookies;
    void *next;
    bool found = false;
    json_object_foreach_safe(groups, next, group, bookies)
    {
        found |= json_object_del(bookies, bookie) == 0;
        if (json_object_size(bookies) == 0)
            json_object_del(groups, group);
    }
    return found;
}

static bool rack_change(struct admin_node *n)
{
    struct admin_request *r = n->request;
    const char *group = admin_query(r, "group"), *bookie = r->segments[BOOKIE_AT];
    json_t *value;
    if (!policy_read(r, &rack_shape, "racks-info", r->json, &value))
        return false;
    rack_drop(n->value, bookie);
    json_t *bookies = json_object_get(n->value, group);
    if (!json_is_object(bookies)) {
        json_object_set_new(n->value, group, json_object());
        bookies = json_object_get(n->value, group);
    }
    if (json_object_set_new(bookies, bookie, value) == 0)
        return true;
    admin_fail(r, HTTP_BAD_REQUEST, "the names of a bookie and of its group must be UTF-8");
    return false;
}

static void rack_set(struct admin_request *r)
{
    json_t *body;
    const char *group = admin_query(r, "group");
    if (!admin_body(r, &body))
        return;
    if (!group || !*group)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Bookie 'group' parameters is missing");
    else
        admin_node_change_or(r, ox_strdup(racks_node), json_object(), NULL, rack_change, NULL);
}

static bool rack_forget(struct admin_node *n)
{
    if (rack_drop(n->value, n->request->segments[BOOKIE_AT]))
        return true;
    rack_missing(n->request);
    return false;
}

static void rack_delete(struct admin_request *r)
{
    admin_node_change_or(r, ox_strdup(racks_node), json_object(), NULL, rack_forget, NULL);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_BOOKIES};
const struct admin_route_table admin_bookies = {routes, OX_COUNT(routes)};
