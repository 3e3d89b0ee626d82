// broker_views.c - what a broker has and how it is wired: bundles, stores, health; and a look at the quotas of backlogs.
#include <string.h>

#include "admin/walk.h"
#include "broker/policing.h"
#include "gen/rest_routes.h"

#define BROKER_AT 4 // /admin/v2/brokers/{cluster}/{broker}

// False: there is no broker of that id, which is answered.
static bool broker_is_here(struct admin_request *r, const char *id)
{
    if (strcmp(id, admin_broker_id(r->admin->shard)) == 0)
        return true;
    admin_fail(r, HTTP_NOT_FOUND, "Broker id '%s' not found in available brokers.", id);
    return false;
}

// ---- health

static bool topic_version_known(struct admin_request *r)
{
    const char *version = admin_query(r, "topicVersion");
    if (!version || !*version || strcmp(version, "V1") == 0 || strcmp(version, "V2") == 0)
        return true;
    admin_fail(r, HTTP_NOT_FOUND, "topicVersion %s is not known: it is V1 or V2", version);
    return false;
}

// The same check for both versions of the health topic: nothing is published for it.
static void view_health(struct admin_request *r)
{
    const char *id = admin_query(r, "brokerId"), *trouble = admin_broker_trouble(r->admin->shard);
    if (!topic_version_known(r) || (id && *id && !broker_is_here(r, id)))
        return;
    if (trouble)
        admin_fail(r, HTTP_SERVICE_UNAVAILABLE, "not healthy: %s", trouble);
    else
        admin_text(r, HTTP_OK, "text/plain", "ok");
}

// ---- bundles with topics that are loaded

static void owned_done(struct admin_walk *w)
{
    json_t *o = json_object();
    OX_MAP_EACH(&w->namespaces, node) {
        const struct walk_namespace *ns = WALK_NAMESPACE_OF(node);
        OX_MAP_EACH(&ns->bundles, inner) {
            OX_CLEANUP(ox_free_ptr)
            char *name = ox_asprintf("%s/%s", ns->name, WALK_BUNDLE_OF(inner)->name);
            json_object_set_new(
                o, name, json_pack("{s:s, s:b, s:b}", "broker_assignment", "shared", "is_controlled", 0, "is_active", 1));
        }
    }
    admin_json(w->request, HTTP_OK, o);
}

static void view_owned(struct admin_request *r)
{
    if (broker_is_here(r, r->segments[BROKER_AT]))
        walk_start(walk_new(r, owned_done));
}

// ---- stores

static void view_internal(struct admin_request *r)
{
    const char *url = r->admin->shard->config.metadata_url;
    admin_json(r, HTTP_OK,
               json_pack("{s:s, s:s, s:s, s:s, s:s}", "zookeeperServers", url, "configurationStoreServers", url,
                         "metadataStoreUrl", url, "configurationMetadataStoreUrl", url, "ledgersRootPath", "/ledgers"));
}

// ---- quotas

static void view_quota_check(struct admin_request *r)
{
    ox_policing_check_quotas(r->admin->shard);
    admin_empty(r, HTTP_NO_CONTENT);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_BROKER_VIEWS};
const struct admin_route_table admin_broker_views = {routes, OX_COUNT(routes)};
