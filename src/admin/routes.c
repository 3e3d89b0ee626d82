// routes.c - which path and method belong to which handler, and the status of each error.
#include <string.h>

#include "admin/request.h"

// "*" is any segment; "T" thrice is a topic's tenant, namespace and local name, parsed into request->topic.
struct admin_route {
    const char *method;
    const char *path;
    admin_handler handler;
};

static const struct admin_route admin_routes[] = {
    {"GET", "metrics", admin_metrics},
    {"GET", "admin/v2/brokers/health", admin_broker_health},
    {"GET", "admin/v2/brokers/ready", admin_broker_ready},
    {"GET", "admin/v2/brokers/version", admin_broker_version},
    {"GET", "admin/v2/clusters", admin_clusters},
    {"GET", "admin/v2/bookie-clusters", admin_storage_list},
    {"GET", "admin/v2/bookie-clusters/status", admin_storage_status},
    {"GET", "admin/v2/bookie-clusters/plan", admin_storage_plan},
    {"GET", "admin/v2/bookie-clusters/inventory", admin_storage_inventory},
    {"GET", "admin/v2/bookie-clusters/failures", admin_storage_failures},
    {"GET", "admin/v2/bookie-clusters/cleanup-targets", admin_storage_cleanup_targets},
    {"GET", "admin/v2/bookie-clusters/precheck/*", admin_storage_precheck},
    {"GET", "admin/v2/bookie-clusters/verify/*", admin_storage_verify},
    {"GET", "admin/v2/bookie-clusters/safe-to-release/*", admin_storage_safe_to_release},
    {"POST", "admin/v2/bookie-clusters/switch", admin_storage_switch},
    {"POST", "admin/v2/bookie-clusters/rollback", admin_storage_rollback},
    {"POST", "admin/v2/bookie-clusters/pause", admin_storage_pause},
    {"POST", "admin/v2/bookie-clusters/resume", admin_storage_resume},
    {"POST", "admin/v2/bookie-clusters/abort", admin_storage_abort},
    {"POST", "admin/v2/bookie-clusters/read-mode", admin_storage_read_mode},
    {"POST", "admin/v2/bookie-clusters/move-data", admin_storage_move_data},
    {"PUT", "admin/v2/bookie-clusters/throttle", admin_storage_throttle},
    {"POST", "admin/v2/bookie-clusters/cleanup", admin_storage_cleanup},
    {"POST", "admin/v2/bookie-clusters/close-client/*", admin_storage_close_client},
    {"POST", "admin/v2/bookie-clusters/internal/promote-cursor", admin_storage_promote_cursor},
    {"GET", "admin/v2/bookie-clusters/namespaces/*/*/target", admin_storage_namespace_target},
    {"PUT", "admin/v2/bookie-clusters/namespaces/*/*/target", admin_storage_namespace_target_set},
    {"DELETE", "admin/v2/bookie-clusters/namespaces/*/*/target", admin_storage_namespace_target_remove},
    {"GET", "admin/v2/bookie-clusters/topics/*/*/*/target", admin_storage_topic_target},
    {"PUT", "admin/v2/bookie-clusters/topics/*/*/*/target", admin_storage_topic_target_set},
    {"DELETE", "admin/v2/bookie-clusters/topics/*/*/*/target", admin_storage_topic_target_remove},
    {"GET", "admin/v2/bookie-clusters/*", admin_storage_get}, // behind the words above, which no cluster can be named
    {"POST", "admin/v2/bookie-clusters/*", admin_storage_register},
    {"DELETE", "admin/v2/bookie-clusters/*", admin_storage_unregister},
    {"GET", "admin/v2/persistent/*/*", admin_topics_list},
    {"PUT", "admin/v2/persistent/T/T/T", admin_topic_create},
    {"DELETE", "admin/v2/persistent/T/T/T", admin_topic_delete},
    {"PUT", "admin/v2/persistent/T/T/T/unload", admin_topic_unload},
    {"GET", "admin/v2/persistent/T/T/T/stats", admin_topic_stats},
    {"GET", "admin/v2/persistent/T/T/T/subscriptions", admin_topic_subscriptions},
    {"GET", "admin/v2/persistent/T/T/T/partitions", admin_partitions_get},
    {"PUT", "admin/v2/persistent/T/T/T/partitions", admin_partitions_create},
};

static bool route_matches(const struct admin_route *route, const struct admin_request *r, size_t *ret_topic_at)
{
    const char *p = route->path;
    *ret_topic_at = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t len = strcspn(p, "/");
        if (len == 0)
            return false;
        bool topic = len == 1 && *p == 'T', any = len == 1 && *p == '*';
        if (topic && !*ret_topic_at)
            *ret_topic_at = i;
        if (!topic && !any && (strncmp(p, r->segments[i], len) != 0 || r->segments[i][len]))
            return false;
        p += len;
        p += *p == '/';
    }
    return *p == 0 && r->count > 0;
}

static bool route_parse_topic(struct admin_request *r, size_t at)
{
    OX_CLEANUP(ox_free_ptr)
    char *full =
        ox_asprintf("%s://%s/%s/%s", r->segments[at - 1], r->segments[at], r->segments[at + 1], r->segments[at + 2]);
    if (ox_topic_name_parse(&r->topic, full) == OX_OK)
        return true;
    admin_fail(r, MHD_HTTP_PRECONDITION_FAILED, "Topic name is not valid: %s", full);
    return false;
}

static bool route_refuses(struct admin_request *r)
{
    if (r->admin->draining)
        admin_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the broker is shutting down");
    else if (r->path_err == OX_E_INVALID)
        admin_fail(r, MHD_HTTP_BAD_REQUEST, "segment %zu of the path is not properly percent-encoded", r->count);
    else if (r->path_err != OX_OK)
        admin_fail(r, MHD_HTTP_NOT_FOUND, "no such resource: the path has more than %d segments", ADMIN_SEGMENTS_MAX);
    else if (r->body_too_big)
        admin_fail(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than %u bytes", ADMIN_BODY_BYTES_MAX);
    return r->answered;
}

void admin_dispatch(struct admin_request *r, const char *method)
{
    bool path_known = false;
    if (route_refuses(r))
        return;
    if (strcmp(method, "HEAD") == 0)
        method = "GET"; // the server leaves the body out
    for (size_t i = 0; i < OX_COUNT(admin_routes); i++) {
        size_t topic_at;
        if (!route_matches(&admin_routes[i], r, &topic_at))
            continue;
        path_known = true;
        if (strcmp(method, admin_routes[i].method) != 0)
            continue;
        if (topic_at == 0 || route_parse_topic(r, topic_at))
            admin_routes[i].handler(r);
        return;
    }
    if (path_known)
        admin_fail(r, MHD_HTTP_METHOD_NOT_ALLOWED, "%s is not a method of this resource", method);
    else
        admin_fail(r, MHD_HTTP_NOT_FOUND, "no such resource on this broker");
}

unsigned admin_status(enum ox_err err)
{
    switch (err) {
    case OX_E_OK: return MHD_HTTP_OK;
    case OX_E_NOT_FOUND:
    case OX_E_TOPIC_NOT_FOUND:
    case OX_E_NAMESPACE_NOT_FOUND:
    case OX_E_SUBSCRIPTION_NOT_FOUND:
    case OX_E_CONSUMER_NOT_FOUND:
    case OX_E_PRODUCER_NOT_FOUND:
    case OX_E_NO_LEDGER:
    case OX_E_NO_ENTRY:
    case OX_E_NO_PLACE: return MHD_HTTP_NOT_FOUND;
    case OX_E_EXISTS:
    case OX_E_LEDGER_EXISTS:
    case OX_E_BAD_VERSION:
    case OX_E_CONFLICT: return MHD_HTTP_CONFLICT;
    case OX_E_BUSY:
    case OX_E_INVALID_TOPIC_NAME:
    case OX_E_NOT_ALLOWED:
    case OX_E_CONSUMER_BUSY:
    case OX_E_CONSUMER_ASSIGN:
    case OX_E_QUOTA_HOLD:
    case OX_E_QUOTA_EXCEPTION:
    case OX_E_DUPLICATE_UNKNOWN:
    case OX_E_PRODUCER_BUSY:
    case OX_E_SUBSCRIPTION_BUSY:
    case OX_E_NOT_EMPTY: return MHD_HTTP_PRECONDITION_FAILED;
    case OX_E_INVALID:
    case OX_E_MALFORMED:
    case OX_E_CHECKSUM:
    case OX_E_NO_PARENT: return MHD_HTTP_BAD_REQUEST;
    case OX_E_TOO_BIG: return MHD_HTTP_CONTENT_TOO_LARGE;
    case OX_E_UNSUPPORTED: return MHD_HTTP_NOT_IMPLEMENTED;
    case OX_E_ACCESS: return MHD_HTTP_FORBIDDEN;
    case OX_E_NOT_OWNER:
    case OX_E_TOPIC_FENCED:
    case OX_E_SHUTDOWN:
    case OX_E_PLACE_FAILED:
    case OX_E_PLACE_CLOSED:
    case OX_E_PLACE_CHANGED:
    case OX_E_PLACE_BLOCKED:
    case OX_E_NO_SPACE:
    case OX_E_METADATA_FULL:
    case OX_E_LIMIT:
    case OX_E_SESSION_EXPIRED:
    case OX_E_DISCONNECTED: return MHD_HTTP_SERVICE_UNAVAILABLE;
    case OX_E_TIMEOUT: return MHD_HTTP_GATEWAY_TIMEOUT;
    case OX_E_CANCELED:
    case OX_E_CORRUPT:
    case OX_E_UNKNOWN_OUTCOME:
    case OX_E_IO:
    case OX_E_LOCKED:
    case OX_E_ADDRESS_IN_USE:
    case OX_E_CONNECTION_REFUSED:
    case OX_E_END_OF_FILE:
    case OX_E_FENCED:
    case OX_E_CLOSED:
    case OX_E_IDENTITY_MISMATCH:
    case OX_E_TOPIC_TERMINATED:
    case OX_E_PRODUCER_FENCED:
    case OX_ERR_COUNT: return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
    return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

void admin_error(struct admin_request *r, enum ox_err err, const char *what, const char *why)
{
    admin_fail(r, admin_status(err), "%s: %s", what, why ? why : ox_err_text(err));
}
