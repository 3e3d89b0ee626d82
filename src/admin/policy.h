// policy.h - policies as tables: what a body must look like, and how it becomes the value that is kept. For this folder only.
#ifndef ADMIN_POLICY_H
#define ADMIN_POLICY_H

#include "admin/request.h"

enum policy_kind {
    POLICY_BOOL,
    POLICY_NUMBER, // a whole number, `least` or more
    POLICY_WORD,   // one of `words`
    POLICY_WORDS,  // a list of them; words NULL: any texts
    POLICY_OBJECT, // members as in `fields`
};

// A member of an object. What is not sent becomes its default.
struct policy_field {
    const char *name;
    enum { FIELD_NUMBER, FIELD_LONG, FIELD_REAL, FIELD_FLAG, FIELD_WORD } kind; // NUMBER: 32 bits, as Pulsar reads it
    int64_t fallback;                                                           // numbers and flags
    bool optional;            // no default: left out where it is not sent
    const char *const *words; // FIELD_WORD: NULL-terminated; NULL: any
};

// What a value may be. Static.
struct policy_shape {
    enum policy_kind kind;
    int64_t least;
    int64_t most;        // 0: what 32 bits hold, as Pulsar reads it
    const char *refusal; // of a smaller number; NULL: the common one
    const char *const *words;
    const struct policy_field *fields;                           // the last has no name
    bool (*check)(struct admin_request *r, const json_t *value); // between members; false: answered. May be NULL
};

// The body as the value to be kept (a new reference). False: it does not fit, and that is answered: 400, or 412 for a number that is too small.
bool policy_read(struct admin_request *r, const struct policy_shape *shape, const char *name, const json_t *body,
                 json_t **ret);

// The shapes that namespaces and topics share.
extern const struct policy_shape policy_flag, policy_count, policy_bytes, policy_expiration, policy_dispatch_rate,
    policy_subscribe_rate, policy_publish_rate, policy_retention, policy_persistence, policy_inactive, policy_delayed,
    policy_auto_topic, policy_auto_subscription, policy_quota, policy_subscription_types, policy_compatibility,
    policy_texts, policy_offload, policy_entry_filters, policy_any_number, policy_interval, policy_update_strategy,
    policy_auth_mode;

// Adds to offload policies (offload.c) what Pulsar shows beside them: of which kind the driver is.
void policy_offload_show(json_t *value);
// Offload policies of which nothing is said but what always is. The caller's.
json_t *policy_offload_defaults(void);

// The kind of a quota in the query ("destination_storage" where none is named), or NULL: answered.
const char *policy_quota_type(struct admin_request *r);

#endif
