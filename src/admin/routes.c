// routes.c - which path and method belong to which handler, and the status of each error.
#include <string.h>

#include "admin/request.h"

static const struct admin_route_table *const route_tables[] = {
    &admin_broker_views,
    &admin_brokers,
    &admin_metrics,
    &admin_broker_stats,
    &admin_lookup,
    &admin_clusters,
    &admin_cluster_parts,
    &admin_isolation,
    &admin_tenants,
    &admin_resource_groups,
    &admin_resource_quotas,
    &admin_bookies,
    &admin_bookie_clusters,
    &admin_namespaces,
    &admin_permissions,
    &admin_namespace_work,
    &admin_namespace_policies,
    &admin_namespace_offload,
    &admin_local_policies,
    &admin_bundles,
    &admin_loaded,
    &admin_subscriptions,
    &admin_stats,
    &admin_messages,
    &admin_offload,
    &admin_topics,
    &admin_topic_properties,
    &admin_topic_policies,
};

// Where a route's names are in the path; 0: it has none.
struct route_match {
    size_t ns, topic;
};

static bool segment_is_domain(const char *segment)
{
    return strcmp(segment, "persistent") == 0 || strcmp(segment, "non-persistent") == 0;
}

static bool segment_matches(const char *pattern, size_t len, const char *segment, size_t i, struct route_match *m)
{
    char kind = len == 1 ? *pattern : 0;
    if (kind == 'T')
        m->topic = m->topic ? m->topic : i;
    else if (kind == 'N')
        m->ns = m->ns ? m->ns : i;
    else if (kind == 'D')
        return segment_is_domain(segment);
    else if (kind != '*')
        return strncmp(pattern, segment, len) == 0 && !segment[len];
    return true;
}

static bool route_matches(const struct admin_route *route, const struct admin_request *r, struct route_match *ret)
{
    const char *p = route->path;
    *ret = (struct route_match){0};
    for (size_t i = 0; i < r->count; i++) {
        size_t len = strcspn(p, "/");
        if (len == 0 || !segment_matches(p, len, r->segments[i], i, ret))
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
    admin_fail(r, HTTP_PRECONDITION_FAILED, "Topic name is not valid: %s", full);
    return false;
}

static bool route_parse_namespace(struct admin_request *r, size_t at)
{
    r->ns = ox_asprintf("%s/%s", r->segments[at], r->segments[at + 1]);
    if (ox_namespace_valid(r->ns))
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED, "namespace %s: the name is not valid", r->ns);
    return false;
}

static void route_call(struct admin_request *r, const struct admin_route *route, const struct route_match *m)
{
    r->route = route;
    if (m->ns && !route_parse_namespace(r, m->ns))
        return;
    if (m->topic && !route_parse_topic(r, m->topic))
        return;
    route->handler(r);
}

// The route of a method and a path; NULL: none, and *ret_path_known tells whether another method has that path.
static const struct admin_route *route_find(const struct admin_request *r, const char *method, struct route_match *ret,
                                            bool *ret_path_known)
{
    for (size_t t = 0; t < OX_COUNT(route_tables); t++) {
        for (size_t i = 0; i < route_tables[t]->count; i++) {
            const struct admin_route *route = &route_tables[t]->routes[i];
            if (!route_matches(route, r, ret))
                continue;
            *ret_path_known = true;
            if (strcmp(method, route->method) == 0)
                return route;
        }
    }
    return NULL;
}

static void method_add(struct ox_str *to, const char *method, const char *between)
{
    if (strstr(ox_str_get(to), method))
        return;
    ox_str_addf(to, "%s%s", to->len ? between : "", method);
}

// What the path of a request can be asked for: "HEAD,GET,PUT,OPTIONS"; empty: nothing, there is no such path.
static void route_methods(const struct admin_request *r, const char *between, struct ox_str *ret)
{
    struct route_match match;
    for (size_t t = 0; t < OX_COUNT(route_tables); t++) {
        for (size_t i = 0; i < route_tables[t]->count; i++) {
            const struct admin_route *route = &route_tables[t]->routes[i];
            if (!route_matches(route, r, &match))
                continue;
            if (strcmp(route->method, "GET") == 0)
                method_add(ret, "HEAD", between);
            method_add(ret, route->method, between);
        }
    }
    if (ret->len)
        method_add(ret, "OPTIONS", between);
}

static void route_allow(struct admin_request *r)
{
    struct ox_str methods = {0};
    route_methods(r, ",", &methods);
    ox_kv_set(&r->headers, "Allow", ox_str_get(&methods));
    ox_str_fini(&methods);
}

static void route_options(struct admin_request *r)
{
    struct ox_str methods = {0};
    route_methods(r, ", ", &methods);
    if (methods.len) {
        route_allow(r);
        admin_text(r, HTTP_OK, "text/plain", ox_str_get(&methods));
    } else {
        admin_fail(r, HTTP_NOT_FOUND, "no such resource on this broker");
    }
    ox_str_fini(&methods);
}

static void route_refuse_method(struct admin_request *r, const char *method, const char *what)
{
    route_allow(r);
    admin_fail(r, HTTP_METHOD_NOT_ALLOWED, "%s is not a method of %s", method, what);
}

static bool route_refuses(struct admin_request *r)
{
    if (r->admin->draining)
        admin_fail(r, HTTP_SERVICE_UNAVAILABLE, "the broker is shutting down");
    else if (r->path_err == OX_E_INVALID)
        admin_fail(r, HTTP_BAD_REQUEST, "segment %zu of the path is not properly percent-encoded", r->count);
    else if (r->path_err != OX_OK)
        admin_fail(r, HTTP_NOT_FOUND, "no such resource: the path has more than %d segments", ADMIN_SEGMENTS_MAX);
    return r->answered;
}

void admin_dispatch(struct admin_request *r, const char *method)
{
    bool path_known = false;
    struct route_match match;
    if (route_refuses(r))
        return;
    if (strcmp(method, "HEAD") == 0)
        method = "GET"; // the server leaves the body out
    if (strcmp(method, "OPTIONS") == 0) {
        route_options(r);
        return;
    }
    const struct admin_route *route = route_find(r, method, &match, &path_known);
    if (route)
        route_call(r, route, &match);
    else if (path_known)
        route_refuse_method(r, method, "this resource");
    else
        admin_fail(r, HTTP_NOT_FOUND, "no such resource on this broker");
}

void admin_unknown(struct admin_request *r, const char *word)
{
    struct route_match match;
    for (size_t t = 0; t < OX_COUNT(route_tables); t++) {
        for (size_t i = 0; i < route_tables[t]->count; i++) {
            const struct admin_route *route = &route_tables[t]->routes[i];
            size_t len = strlen(route->path);
            if (route->path[len - 1] == '*' || !route_matches(route, r, &match))
                continue;
            route_refuse_method(r, r->route->method, word);
            return;
        }
    }
    admin_fail(r, HTTP_NOT_FOUND, "no such resource on this broker: there is no \"%s\"", word);
}

unsigned admin_status(enum ox_err err)
{
    switch (err) {
    case OX_E_OK: return HTTP_OK;
    case OX_E_NOT_FOUND:
    case OX_E_TOPIC_NOT_FOUND:
    case OX_E_NAMESPACE_NOT_FOUND:
    case OX_E_SUBSCRIPTION_NOT_FOUND:
    case OX_E_CONSUMER_NOT_FOUND:
    case OX_E_PRODUCER_NOT_FOUND:
    case OX_E_NO_LEDGER:
    case OX_E_NO_ENTRY:
    case OX_E_NO_PLACE: return HTTP_NOT_FOUND;
    case OX_E_EXISTS:
    case OX_E_LEDGER_EXISTS:
    case OX_E_BAD_VERSION:
    case OX_E_CONFLICT: return HTTP_CONFLICT;
    case OX_E_BUSY:
    case OX_E_INVALID_TOPIC_NAME:
    case OX_E_NOT_ALLOWED:
    case OX_E_ENCRYPTION_REQUIRED:
    case OX_E_CONSUMER_BUSY:
    case OX_E_CONSUMER_ASSIGN:
    case OX_E_QUOTA_HOLD:
    case OX_E_QUOTA_EXCEPTION:
    case OX_E_DUPLICATE_UNKNOWN:
    case OX_E_PRODUCER_BUSY:
    case OX_E_SUBSCRIPTION_BUSY:
    case OX_E_NOT_EMPTY: return HTTP_PRECONDITION_FAILED;
    case OX_E_INVALID:
    case OX_E_MALFORMED:
    case OX_E_CHECKSUM:
    case OX_E_NO_PARENT: return HTTP_BAD_REQUEST;
    case OX_E_TOO_BIG: return HTTP_CONTENT_TOO_LARGE;
    case OX_E_UNSUPPORTED: return HTTP_NOT_IMPLEMENTED;
    case OX_E_ACCESS: return HTTP_FORBIDDEN;
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
    case OX_E_DISCONNECTED: return HTTP_SERVICE_UNAVAILABLE;
    case OX_E_TIMEOUT: return HTTP_GATEWAY_TIMEOUT;
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
    case OX_ERR_COUNT: return HTTP_INTERNAL_SERVER_ERROR;
    }
    return HTTP_INTERNAL_SERVER_ERROR;
}

void admin_error(struct admin_request *r, enum ox_err err, const char *what, const char *why)
{
    admin_fail(r, admin_status(err), "%s: %s", what, why ? why : ox_err_text(err));
}
