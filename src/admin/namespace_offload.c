// namespace_offload.c - when a namespace's ledgers are to be moved to long-term storage: kept and shown, as nothing is moved here. All lies in one member of the policies; older
// members of their own are looked at where it is not there.
#include <string.h>

#include "admin/node.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

static const char offload[] = "offload_policies";

// A number in the offload policies that has a path of its own.
struct offload_number {
    const char *path, *member;
    const char *old;      // the member of the policies that was it once
    const char *fallback; // JSON of an answer where nothing is set; NULL: an empty answer
    unsigned status;      // of a change
};
static const struct offload_number threshold = {"offloadThreshold", "managedLedgerOffloadThresholdInBytes",
                                                "offload_threshold", "-1", HTTP_NO_CONTENT};
static const struct offload_number threshold_seconds = {
    "offloadThresholdInSeconds", "managedLedgerOffloadThresholdInSeconds", "offload_threshold_in_seconds", "-1", HTTP_OK};
static const struct offload_number deletion_lag = {"offloadDeletionLagMs", "managedLedgerOffloadDeletionLagInMillis",
                                                   "offload_deletion_lag_ms", NULL, HTTP_NO_CONTENT};

static const struct offload_number *number_of(const struct admin_request *r)
{
    return (const struct offload_number *)r->route->arg;
}

// ---- numbers

static void number_read(struct admin_node *n)
{
    const struct offload_number *p = number_of(n->request);
    json_t *value = json_object_get(json_object_get(n->value, offload), p->member);
    if (!value)
        value = json_object_get(n->value, p->old);
    if (json_is_integer(value))
        admin_json(n->request, HTTP_OK, json_incref(value));
    else
        admin_bytes(n->request, HTTP_OK, p->fallback ? p->fallback : "", p->fallback ? strlen(p->fallback) : 0);
}

static void number_get(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, number_read);
}

static bool number_change(struct admin_node *n)
{
    const struct offload_number *p = number_of(n->request);
    json_t *value, *policies = json_object_get(n->value, offload);
    if (!policy_read(n->request, &policy_any_number, p->path, n->request->json, &value))
        return false;
    if (!json_is_object(policies)) {
        policies = policy_offload_defaults();
        json_object_set_new(n->value, offload, policies);
    }
    json_object_set_new(policies, p->member, value);
    return true;
}

static void number_changed(struct admin_node *n)
{
    admin_empty(n->request, number_of(n->request)->status);
}

static void number_set(struct admin_request *r)
{
    json_t *body;
    if (admin_body(r, &body))
        admin_node_change(r, admin_namespace_path(r->ns), "Namespace", NULL, number_change, number_changed);
}

static bool number_drop(struct admin_node *n)
{
    json_object_del(json_object_get(n->value, offload), number_of(n->request)->member);
    json_object_del(n->value, number_of(n->request)->old);
    return true;
}

static void number_remove(struct admin_request *r)
{
    admin_namespace_change(r, number_drop);
}

// ---- all of them

void admin_offload_answer(struct admin_node *n)
{
    json_t *value = json_object_get(n->value, offload);
    if (!json_is_object(value)) {
        admin_empty(n->request, HTTP_OK);
        return;
    }
    value = json_deep_copy(value);
    policy_offload_show(value);
    admin_json(n->request, HTTP_OK, value);
}

static void offload_get(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, admin_offload_answer);
}

// A driver that writes to a bucket must know which: its own or the one for all. The file system has none.
static bool bucket_named(struct admin_request *r, const json_t *value)
{
    static const char *const members[] = {"managedLedgerOffloadBucket", "s3ManagedLedgerOffloadBucket",
                                          "gcsManagedLedgerOffloadBucket"};
    const char *driver = json_string_value(json_object_get(value, "managedLedgerOffloadDriver"));
    for (size_t i = 0; i < OX_COUNT(members); i++) {
        const char *bucket = json_string_value(json_object_get(value, members[i]));
        if (bucket && *bucket)
            return true;
    }
    if (driver && strcasecmp(driver, "filesystem") == 0)
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED, "The bucket must be specified for namespace offload.");
    return false;
}

static bool offload_change(struct admin_node *n)
{
    json_t *value;
    if (!policy_read(n->request, &policy_offload, "offloadPolicies", n->request->json, &value))
        return false;
    bool named = bucket_named(n->request, value);
    if (named)
        json_object_set(n->value, offload, value);
    json_decref(value);
    return named;
}

static void offload_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (!body || json_is_null(body))
        admin_fail(r, HTTP_PRECONDITION_FAILED, "The offloadPolicies must be specified for namespace offload.");
    else
        admin_namespace_change(r, offload_change);
}

static bool offload_drop(struct admin_node *n)
{
    json_object_del(n->value, offload);
    return true;
}

static void offload_remove(struct admin_request *r)
{
    admin_namespace_change(r, offload_drop);
}

// ---- looking for ledgers in long-term storage that nobody knows of

static void scan_refuse(struct admin_node *n)
{
    admin_fail(n->request, HTTP_NOT_IMPLEMENTED,
               "namespace %s: this broker has no offloader, so there are no offloaded ledgers to scan", n->request->ns);
}

static void offload_scan(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, scan_refuse);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_NAMESPACE_OFFLOAD};
const struct admin_route_table admin_namespace_offload = {routes, OX_COUNT(routes)};
