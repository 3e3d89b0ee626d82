// offload.c - moving closed ledgers of a topic into long-term storage: what its policies look like, and what is answered where no offloader is there.
#include <string.h>

#include "admin/each.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

// ---- policies: kept and shown

static const char *const read_priorities[] = {"bookkeeper-first", "tiered-storage-first", "BOOKKEEPER_FIRST",
                                              "TIERED_STORAGE_FIRST", NULL};

#define OFFLOAD_TEXT(name)              \
    {                                   \
        name, FIELD_WORD, 0, true, NULL \
    }
#define OFFLOAD_NUMBER(name, value)            \
    {                                          \
        name, FIELD_NUMBER, value, false, NULL \
    }

static const struct policy_field offload_fields[] = {
    OFFLOAD_TEXT("offloadersDirectory"),
    OFFLOAD_TEXT("managedLedgerOffloadDriver"),
    OFFLOAD_NUMBER("managedLedgerOffloadMaxThreads", 2),
    OFFLOAD_NUMBER("managedLedgerOffloadPrefetchRounds", 1),
    {"managedLedgerOffloadThresholdInBytes", FIELD_LONG, 0, true, NULL},
    {"managedLedgerOffloadThresholdInSeconds", FIELD_LONG, 0, true, NULL},
    {"managedLedgerOffloadDeletionLagInMillis", FIELD_LONG, 0, true, NULL},
    {"managedLedgerOffloadedReadPriority", FIELD_WORD, 0, true, read_priorities},
    OFFLOAD_TEXT("s3ManagedLedgerOffloadRegion"),
    OFFLOAD_TEXT("s3ManagedLedgerOffloadBucket"),
    OFFLOAD_TEXT("s3ManagedLedgerOffloadServiceEndpoint"),
    OFFLOAD_NUMBER("s3ManagedLedgerOffloadMaxBlockSizeInBytes", 64 * 1024 * 1024),
    OFFLOAD_NUMBER("s3ManagedLedgerOffloadReadBufferSizeInBytes", 1024 * 1024),
    OFFLOAD_TEXT("s3ManagedLedgerOffloadCredentialId"),
    OFFLOAD_TEXT("s3ManagedLedgerOffloadCredentialSecret"),
    OFFLOAD_TEXT("s3ManagedLedgerOffloadRole"),
    OFFLOAD_TEXT("s3ManagedLedgerOffloadRoleSessionName"),
    OFFLOAD_TEXT("gcsManagedLedgerOffloadRegion"),
    OFFLOAD_TEXT("gcsManagedLedgerOffloadBucket"),
    OFFLOAD_NUMBER("gcsManagedLedgerOffloadMaxBlockSizeInBytes", 128 * 1024 * 1024),
    OFFLOAD_NUMBER("gcsManagedLedgerOffloadReadBufferSizeInBytes", 1024 * 1024),
    OFFLOAD_TEXT("gcsManagedLedgerOffloadServiceAccountKeyFile"),
    OFFLOAD_TEXT("fileSystemProfilePath"),
    OFFLOAD_TEXT("fileSystemURI"),
    OFFLOAD_TEXT("managedLedgerOffloadBucket"),
    OFFLOAD_TEXT("managedLedgerOffloadRegion"),
    OFFLOAD_TEXT("managedLedgerOffloadServiceEndpoint"),
    {"managedLedgerOffloadMaxBlockSizeInBytes", FIELD_NUMBER, 0, true, NULL},
    {"managedLedgerOffloadReadBufferSizeInBytes", FIELD_NUMBER, 0, true, NULL},
    {0}};

#define OFFLOAD_DRIVERS "S3,aws-s3,google-cloud-storage,filesystem,azureblob,aliyun-oss"

// True if one of the names, parted by commas, is `name`; letters' case does not count.
static bool driver_among(const char *names, const char *name)
{
    size_t len = name ? strlen(name) : 0;
    while (len && *names) {
        size_t n = strcspn(names, ",");
        if (n == len && strncasecmp(names, name, n) == 0)
            return true;
        names += n + (names[n] == ',');
    }
    return false;
}

static void offload_text_default(json_t *value, const char *name, const char *text)
{
    if (!json_object_get(value, name))
        json_object_set_new(value, name, json_string(text));
}

// The read priority is kept under the name that topics' policies are written with.
static void offload_priority(json_t *value)
{
    const char *name = "managedLedgerOffloadedReadPriority";
    const char *given = json_string_value(json_object_get(value, name));
    if (given)
        json_object_set_new(value, name,
                            json_string(strncasecmp(given, "book", 4) == 0 ? "BOOKKEEPER_FIRST" : "TIERED_STORAGE_FIRST"));
}

static bool offload_check(struct admin_request *r, const json_t *value)
{
    json_t *kept = (json_t *)(uintptr_t)value; // still the body's copy
    const json_t *extra = json_object_get(r->json, "managedLedgerExtraConfigurations");
    if (!driver_among(OFFLOAD_DRIVERS, json_string_value(json_object_get(value, "managedLedgerOffloadDriver")))) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "The driver is not supported, support value: " OFFLOAD_DRIVERS);
        return false;
    }
    offload_text_default(kept, "offloadersDirectory", "./offloaders");
    offload_text_default(kept, "s3ManagedLedgerOffloadRoleSessionName", "pulsar-s3-offload");
    offload_priority(kept);
    json_object_set_new(kept, "managedLedgerExtraConfigurations",
                        json_is_object(extra) ? json_deep_copy(extra) : json_object());
    return true;
}

const struct policy_shape policy_offload = {.kind = POLICY_OBJECT, .fields = offload_fields, .check = offload_check};

json_t *policy_offload_defaults(void)
{
    json_t *value = json_pack("{s:{}}", "managedLedgerExtraConfigurations");
    for (const struct policy_field *f = offload_fields; f->name; f++) {
        if (!f->optional)
            json_object_set_new(value, f->name, json_integer((json_int_t)f->fallback));
    }
    offload_text_default(value, "offloadersDirectory", "./offloaders");
    offload_text_default(value, "s3ManagedLedgerOffloadRoleSessionName", "pulsar-s3-offload");
    return value;
}

void policy_offload_show(json_t *value)
{
    const char *driver = json_string_value(json_object_get(value, "managedLedgerOffloadDriver"));
    json_object_set_new(value, "fileSystemDriver", json_boolean(driver_among("filesystem", driver)));
    json_object_set_new(value, "gcsDriver", json_boolean(driver_among("google-cloud-storage", driver)));
    json_object_set_new(value, "s3Driver", json_boolean(driver_among("S3,aws-s3", driver)));
}

// ---- runs: each fails, for there is no offloader. As Pulsar says it: in the status, not in the answer to who started it.

static ox_step status_run(struct admin_each *e)
{
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "a non-persistent topic keeps nothing that could be offloaded");
    bool failed = e->topic->offload_failed;
    e->result = json_pack("{s:s, s:s, s:o}", "status", failed ? "ERROR" : "NOT_RUN", "lastError",
                          failed ? "this broker has no offloader: ledgers stay in its store" : "",
                          "firstUnoffloadedMessage", admin_message_id(OX_POS_EARLIEST, -1, -1));
    return each_ran(e, OX_OK);
}

static const struct admin_verb status_verb = {.name = "admin.offload.status", .partitioned = EACH_NOT_FOUND, .run = status_run};

static ox_step start_run(struct admin_each *e)
{
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "a non-persistent topic keeps nothing that could be offloaded");
    e->topic->offload_failed = true;
    return each_ran(e, OX_OK);
}

static const struct admin_verb start_verb = {.name = "admin.offload", .partitioned = EACH_NOT_FOUND, .run = start_run};

static void offload_status(struct admin_request *r)
{
    each_start(each_new(r, &status_verb));
}

static void offload_start(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (!json_is_object(body))
        admin_fail(r, HTTP_BAD_REQUEST, "messageId is null: the body must be an object with \"ledgerId\" and \"entryId\", the first message that stays");
    else
        each_start(each_new(r, &start_verb));
}

static const struct admin_route routes[] = {ADMIN_ROUTES_OFFLOAD};
const struct admin_route_table admin_offload = {routes, OX_COUNT(routes)};
