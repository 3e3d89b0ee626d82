// policy.c - checking a policy's body against its shape.
#include "admin/policy.h"

#include <stdlib.h>
#include <string.h>

// ---- between members

static int64_t member(const json_t *value, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(value, name));
}

static bool refuse(struct admin_request *r, unsigned status, const char *why)
{
    admin_fail(r, status, "%s", why);
    return false;
}

static bool retention_check(struct admin_request *r, const json_t *value)
{
    int64_t minutes = member(value, "retentionTimeInMinutes"), mib = member(value, "retentionSizeInMB");
    if (minutes < -1)
        return refuse(r, HTTP_BAD_REQUEST, "Invalid retention policy: retentionTimeInMinutes must be >= -1");
    if (mib < -1)
        return refuse(r, HTTP_BAD_REQUEST, "Invalid retention policy: retentionSizeInMB must be >= -1");
    if ((minutes == 0) != (mib == 0))
        return refuse(
            r, HTTP_BAD_REQUEST, "Invalid retention policy: one of retentionTimeInMinutes and retentionSizeInMB is 0 and the other is not; use -1 for no limit, or 0 for both");
    return true;
}

static bool persistence_check(struct admin_request *r, const json_t *value)
{
    int64_t ensemble = member(value, "bookkeeperEnsemble"), write = member(value, "bookkeeperWriteQuorum"),
            ack = member(value, "bookkeeperAckQuorum");
    if (ack >= 0 && ensemble >= write && write >= ack)
        return true;
    admin_fail(r, HTTP_BAD_REQUEST, "Bookkeeper Ensemble (%lld) >= WriteQuorum (%lld) >= AckQuorum (%lld)",
               (long long)ensemble, (long long)write, (long long)ack);
    return false;
}

static const char *auto_topic_fault(const json_t *value)
{
    const char *type = json_string_value(json_object_get(value, "topicType"));
    const json_t *count = json_object_get(value, "defaultNumPartitions");
    if (!type || (strcmp(type, "partitioned") != 0 && strcmp(type, "non-partitioned") != 0))
        return "Unknown topic type: [topicType] must be partitioned or non-partitioned.";
    if (strcmp(type, "partitioned") != 0)
        return count ? "[defaultNumPartitions] is not allowed to be set when the type is non-partition." : NULL;
    if (!count)
        return "[defaultNumPartitions] cannot be null when the type is partitioned.";
    return json_integer_value(count) > 0 ? NULL : "[defaultNumPartitions] cannot be less than 1 for partition type.";
}

static bool auto_topic_check(struct admin_request *r, const json_t *value)
{
    const char *fault = json_is_true(json_object_get(value, "allowAutoTopicCreation")) ? auto_topic_fault(value) : NULL;
    if (fault)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Invalid configuration for autoTopicCreationOverride. the detail is %s",
                   fault);
    return !fault;
}

// ---- shapes

static const char *const quota_policies[] = {"producer_request_hold", "producer_exception", "consumer_backlog_eviction", NULL};
static const char *const inactive_modes[] = {"delete_when_no_subscriptions", "delete_when_subscriptions_caught_up", NULL};
static const char *const subscription_types[] = {"Exclusive", "Shared", "Failover", "Key_Shared", NULL};
static const char *const compatibilities[] = {
    "UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE",  "BACKWARD",        "FORWARD",
    "FULL",      "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE", NULL};

static const char *const update_strategies[] = {
    "AutoUpdateDisabled", "Backward",          "Forward",        "Full", "AlwaysCompatible",
    "BackwardTransitive", "ForwardTransitive", "FullTransitive", NULL};
static const char *const auth_modes[] = {"None", "Prefix", NULL};

static const struct policy_field dispatch_fields[] = {{"dispatchThrottlingRateInMsg", FIELD_NUMBER, 0, false, NULL},
                                                      {"dispatchThrottlingRateInByte", FIELD_LONG, 0, false, NULL},
                                                      {"relativeToPublishRate", FIELD_FLAG, 0, false, NULL},
                                                      {"ratePeriodInSecond", FIELD_NUMBER, 0, false, NULL},
                                                      {0}};
static const struct policy_field subscribe_fields[] = {{"subscribeThrottlingRatePerConsumer", FIELD_NUMBER, -1, false, NULL},
                                                       {"ratePeriodInSecond", FIELD_NUMBER, 30, false, NULL},
                                                       {0}};
static const struct policy_field publish_fields[] = {{"publishThrottlingRateInMsg", FIELD_NUMBER, -1, false, NULL},
                                                     {"publishThrottlingRateInByte", FIELD_LONG, -1, false, NULL},
                                                     {0}};
static const struct policy_field retention_fields[] = {
    {"retentionTimeInMinutes", FIELD_NUMBER, 0, false, NULL}, {"retentionSizeInMB", FIELD_LONG, 0, false, NULL}, {0}};
static const struct policy_field persistence_fields[] = {{"bookkeeperEnsemble", FIELD_NUMBER, 2, false, NULL},
                                                         {"bookkeeperWriteQuorum", FIELD_NUMBER, 2, false, NULL},
                                                         {"bookkeeperAckQuorum", FIELD_NUMBER, 2, false, NULL},
                                                         {"managedLedgerMaxMarkDeleteRate", FIELD_REAL, 0, false, NULL},
                                                         {0}};
static const struct policy_field inactive_fields[] = {{"inactiveTopicDeleteMode", FIELD_WORD, 0, true, inactive_modes},
                                                      {"maxInactiveDurationSeconds", FIELD_NUMBER, 0, false, NULL},
                                                      {"deleteWhileInactive", FIELD_FLAG, 0, false, NULL},
                                                      {0}};
static const struct policy_field delayed_fields[] = {{"tickTime", FIELD_LONG, 0, false, NULL},
                                                     {"active", FIELD_FLAG, 0, false, NULL},
                                                     {"maxDeliveryDelayInMillis", FIELD_LONG, 0, false, NULL},
                                                     {0}};
static const struct policy_field auto_topic_fields[] = {{"allowAutoTopicCreation", FIELD_FLAG, 0, false, NULL},
                                                        {"topicType", FIELD_WORD, 0, true, NULL},
                                                        {"defaultNumPartitions", FIELD_NUMBER, 0, true, NULL},
                                                        {0}};
static const struct policy_field auto_subscription_fields[] = {
    {"allowAutoSubscriptionCreation", FIELD_FLAG, 0, false, NULL}, {0}};
static const struct policy_field quota_fields[] = {{"limit", FIELD_LONG, 0, true, NULL},
                                                   {"limitSize", FIELD_LONG, 0, true, NULL},
                                                   {"limitTime", FIELD_NUMBER, 0, false, NULL},
                                                   {"policy", FIELD_WORD, 0, true, quota_policies},
                                                   {0}};

static bool quota_check(struct admin_request *r, const json_t *value)
{
    return json_object_get(value, "policy") ||
           refuse(r, HTTP_BAD_REQUEST, "the backlog quota is not valid: the attribute policy cannot be null");
}

// No filter can be brought along: whatever is named is not there.
static bool filters_check(struct admin_request *r, const json_t *value)
{
    const char *names = json_string_value(json_object_get(value, "entryFilterNames"));
    if (!names || !*names)
        return refuse(r, HTTP_BAD_REQUEST, "entryFilterNames can't be empty. To remove entry filters use the remove method.");
    admin_fail(r, HTTP_BAD_REQUEST, "Entry filter '%.*s' not found", (int)strcspn(names, ","), names);
    return false;
}

static const struct policy_field filter_fields[] = {{"entryFilterNames", FIELD_WORD, 0, true, NULL}, {0}};

const struct policy_shape policy_flag = {.kind = POLICY_BOOL};
const struct policy_shape policy_count = {.kind = POLICY_NUMBER};
const struct policy_shape policy_interval = {.kind = POLICY_NUMBER};
const struct policy_shape policy_any_number = {.kind = POLICY_NUMBER, .least = INT64_MIN, .most = INT64_MAX};
const struct policy_shape policy_bytes = {.kind = POLICY_NUMBER, .most = INT64_MAX};
const struct policy_shape policy_expiration = {.kind = POLICY_NUMBER,
                                               .refusal = "Invalid value for subscription expiration time"};
const struct policy_shape policy_dispatch_rate = {.kind = POLICY_OBJECT, .fields = dispatch_fields};
const struct policy_shape policy_subscribe_rate = {.kind = POLICY_OBJECT, .fields = subscribe_fields};
const struct policy_shape policy_publish_rate = {.kind = POLICY_OBJECT, .fields = publish_fields};
const struct policy_shape policy_retention = {.kind = POLICY_OBJECT, .fields = retention_fields, .check = retention_check};
const struct policy_shape policy_persistence = {.kind = POLICY_OBJECT, .fields = persistence_fields, .check = persistence_check};
const struct policy_shape policy_inactive = {.kind = POLICY_OBJECT, .fields = inactive_fields};
const struct policy_shape policy_delayed = {.kind = POLICY_OBJECT, .fields = delayed_fields};
const struct policy_shape policy_auto_topic = {.kind = POLICY_OBJECT, .fields = auto_topic_fields, .check = auto_topic_check};
const struct policy_shape policy_auto_subscription = {.kind = POLICY_OBJECT, .fields = auto_subscription_fields};
const struct policy_shape policy_quota = {.kind = POLICY_OBJECT, .fields = quota_fields, .check = quota_check};
const struct policy_shape policy_subscription_types = {.kind = POLICY_WORDS, .words = subscription_types};
const struct policy_shape policy_compatibility = {.kind = POLICY_WORD, .words = compatibilities};
const struct policy_shape policy_update_strategy = {.kind = POLICY_WORD, .words = update_strategies};
const struct policy_shape policy_auth_mode = {.kind = POLICY_WORD, .words = auth_modes};
const struct policy_shape policy_texts = {.kind = POLICY_WORDS};
const struct policy_shape policy_entry_filters = {.kind = POLICY_OBJECT, .fields = filter_fields, .check = filters_check};

const char *policy_quota_type(struct admin_request *r)
{
    static const char *const types[] = {"destination_storage", "message_age"};
    const char *asked = admin_query(r, "backlogQuotaType");
    if (!asked)
        return types[0];
    for (size_t i = 0; i < OX_COUNT(types); i++) {
        if (strcmp(asked, types[i]) == 0)
            return types[i];
    }
    admin_fail(r, HTTP_NOT_FOUND, "there is no backlogQuotaType \"%s\": it is destination_storage or message_age", asked);
    return NULL;
}

// ---- reading

static bool word_known(const char *const *words, const char *word)
{
    for (; words && *words; words++) {
        if (word && strcmp(*words, word) == 0)
            return true;
    }
    return word && !words;
}

static bool field_fits(const struct policy_field *f, const json_t *value)
{
    switch (f->kind) {
    case FIELD_NUMBER:
        return json_is_integer(value) && json_integer_value(value) >= INT32_MIN && json_integer_value(value) <= INT32_MAX;
    case FIELD_LONG: return json_is_integer(value);
    case FIELD_REAL: return json_is_number(value);
    case FIELD_FLAG: return json_is_boolean(value);
    case FIELD_WORD: return word_known(f->words, json_string_value(value));
    }
    return false;
}

static json_t *field_default(const struct policy_field *f)
{
    if (f->kind == FIELD_FLAG)
        return json_boolean(f->fallback);
    return f->kind == FIELD_REAL ? json_real((double)f->fallback) : json_integer((json_int_t)f->fallback);
}

// Pulsar takes a number or a truth value also where any text may stand. The answer is the caller's.
static json_t *text_of_value(const json_t *value)
{
    if (!json_is_number(value) && !json_is_boolean(value))
        return json_incref((json_t *)(uintptr_t)value);
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    json_t *read = json_string(text);
    free(text);
    return read;
}

// And a number or a truth value also as text. The answer is the caller's.
static json_t *value_of_text(const json_t *value)
{
    json_t *read = json_is_string(value) ? json_loads(json_string_value(value), JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_number(read) || json_is_boolean(read))
        return read;
    json_decref(read);
    return json_incref((json_t *)(uintptr_t)value);
}

static bool field_read(const struct policy_field *f, const json_t *given, json_t *to)
{
    if (!given || json_is_null(given)) {
        if (!f->optional)
            json_object_set_new(to, f->name, field_default(f));
        return true;
    }
    json_t *value = f->kind != FIELD_WORD ? value_of_text(given)
                    : f->words            ? json_incref((json_t *)(uintptr_t)given)
                                          : text_of_value(given);
    bool fits = field_fits(f, value);
    if (fits)
        json_object_set_new(to, f->name, f->kind == FIELD_REAL ? json_real(json_number_value(value)) : json_incref(value));
    json_decref(value);
    return fits;
}

static bool object_read(struct admin_request *r, const struct policy_shape *shape, const char *name, const json_t *body,
                        json_t *to)
{
    for (const struct policy_field *f = shape->fields; f->name; f++) {
        if (!field_read(f, json_object_get(body, f->name), to)) {
            admin_fail(r, HTTP_BAD_REQUEST, "%s: \"%s\" has a value of a wrong kind", name, f->name);
            return false;
        }
    }
    return !shape->check || shape->check(r, to);
}

static bool words_fit(const struct policy_shape *shape, const json_t *body)
{
    size_t i;
    json_t *value;
    json_array_foreach(body, i, value)
    {
        if (!word_known(shape->words, json_string_value(value)))
            return false;
    }
    return json_is_array(body);
}

static bool scalar_fits(const struct policy_shape *shape, const json_t *body)
{
    switch (shape->kind) {
    case POLICY_BOOL: return json_is_boolean(body);
    case POLICY_NUMBER:
        return json_is_integer(body) && json_integer_value(body) <= (shape->most ? shape->most : INT32_MAX);
    case POLICY_WORD: return word_known(shape->words, json_string_value(body));
    case POLICY_WORDS: return words_fit(shape, body);
    case POLICY_OBJECT: return json_is_object(body);
    }
    return false;
}

static const char *kind_text(enum policy_kind kind)
{
    static const char *const texts[] = {"true or false", "a whole number that is not too large", "one of its words",
                                        "a list of its words", "an object"};
    return texts[kind];
}

static bool scalar_read(struct admin_request *r, const struct policy_shape *shape, const char *name, const json_t *body)
{
    if (!scalar_fits(shape, body)) {
        admin_fail(r, HTTP_BAD_REQUEST, "%s: the body must be %s", name, kind_text(shape->kind));
        return false;
    }
    if (shape->kind == POLICY_NUMBER && json_integer_value(body) < shape->least) {
        if (shape->refusal)
            return refuse(r, HTTP_PRECONDITION_FAILED, shape->refusal);
        admin_fail(r, HTTP_PRECONDITION_FAILED, "%s must be %lld or more", name, (long long)shape->least);
        return false;
    }
    return true;
}

bool policy_read(struct admin_request *r, const struct policy_shape *shape, const char *name, const json_t *body, json_t **ret)
{
    bool is_plain = shape->kind == POLICY_BOOL || shape->kind == POLICY_NUMBER;
    json_t *value = is_plain ? value_of_text(body) : json_deep_copy(body);
    bool fits = scalar_read(r, shape, name, value);
    if (fits && shape->kind == POLICY_OBJECT) {
        json_t *object = json_object();
        fits = object_read(r, shape, name, value, object);
        json_decref(value);
        value = object;
    }
    if (fits)
        *ret = value;
    else
        json_decref(value);
    return fits;
}
