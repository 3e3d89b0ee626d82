// loaded.c - the non-persistent topics of a bundle: they are there while they are loaded.
#include <string.h>

#include "admin/node.h"
#include "admin/walk.h"
#include "gen/rest_routes.h"

#define NAMESPACE_AT 3 // /admin/v2/non-persistent/{tenant}/{namespace}/{bundle}
#define BUNDLE_AT 5

static void loaded_visit(struct admin_walk *w, struct walk_bundle *bundle, const struct ox_topic *t)
{
    const struct admin_request *r = w->request;
    if (t->name.domain == OX_DOMAIN_NON_PERSISTENT && strcmp(t->name.ns, r->ns) == 0 &&
        strcmp(bundle->name, r->segments[BUNDLE_AT]) == 0)
        json_array_append_new(w->result, json_string(t->name.full));
}

static void loaded_visited(struct admin_walk *w)
{
    admin_json(w->request, HTTP_OK, json_incref(w->result));
}

static void loaded_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    uint32_t low, high;
    if (!admin_bundle_named(r, n->value, r->segments[BUNDLE_AT], &low, &high))
        return;
    struct admin_walk *w = walk_new(r, loaded_visited);
    w->result = json_array();
    w->visit = loaded_visit;
    walk_start(w);
}

static void loaded_list(struct admin_request *r)
{
    r->ns = ox_asprintf("%s/%s", r->segments[NAMESPACE_AT], r->segments[NAMESPACE_AT + 1]);
    if (ox_namespace_valid(r->ns))
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, loaded_read);
    else
        admin_fail(r, HTTP_PRECONDITION_FAILED, "namespace %s: the name is not valid", r->ns);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_LOADED};
const struct admin_route_table admin_loaded = {routes, OX_COUNT(routes)};
