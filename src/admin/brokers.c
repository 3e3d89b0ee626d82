// brokers.c - the broker itself: health, readiness, version, clusters, metrics.
#include "admin/request.h"
#include "base/version.h"

// Healthy = clients are served, the metadata session lives, and the place where new ledgers go takes appends.
static const char *broker_trouble(const struct ox_shard *sh)
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

void admin_broker_health(struct admin_request *r)
{
    const char *trouble = broker_trouble(r->admin->shard);
    if (trouble)
        admin_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "not healthy: %s", trouble);
    else
        admin_text(r, MHD_HTTP_OK, "text/plain", "ok");
}

void admin_broker_ready(struct admin_request *r)
{
    if (r->admin->shard->state == OX_SHARD_RUNNING)
        admin_text(r, MHD_HTTP_OK, "text/plain", "ok");
    else
        admin_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready: %s", ox_shard_state_name(r->admin->shard->state));
}

void admin_broker_version(struct admin_request *r)
{
    admin_text(r, MHD_HTTP_OK, "text/plain", OX_VERSION);
}

void admin_clusters(struct admin_request *r)
{
    admin_json(r, MHD_HTTP_OK, json_pack("[s]", r->admin->shard->config.cluster));
}

void admin_metrics(struct admin_request *r)
{
    struct ox_str page = {0};
    ox_metrics_print(r->admin->shard->metrics, &page);
    admin_text(r, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", ox_str_get(&page));
    ox_str_fini(&page);
}
