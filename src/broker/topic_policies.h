// topic_policies.h - a topic's own policies: reading and changing them. JSON objects with the members of Pulsar's TopicPolicies (docs/policies.md).
#ifndef BROKER_TOPIC_POLICIES_H
#define BROKER_TOPIC_POLICIES_H

#include <jansson.h>

#include "broker/policy_scope.h"

// What applies to a topic, which may not be loaded and need not exist; a partition has those of its partitioned topic. Errors: UNSUPPORTED (a system topic, or they are switched off), NAMESPACE_NOT_FOUND, SHUTDOWN, those of the stores.
struct ox_topic_policies_get {
    struct ox_op op;
    json_t *own;                // result: the topic's own, the caller's reference; NULL if it has none
    struct ox_policies applied; // result: the values in force
    struct ox_shard *shard;     // private
    char *base_name;            // private
    struct scope_get scope;     // private
};
void ox_topic_policies_get(struct ox_shard *sh, struct ox_topic_policies_get *g, const struct ox_topic_name *name);

// Changes a topic's own policies: `change` edits a copy of what they are now (an empty object if there are none). Finishes when they are durable and in force.
// Changes of one namespace take effect one after another. Errors: those of `change`, INVALID (a value that Pulsar's types cannot hold), LIMIT (OX_TOPIC_POLICIES_MAX
// topics have policies), those of ox_topic_policies_get, those of the log.
struct ox_topic_policies_update {
    struct ox_op op;
    enum ox_err (*change)(struct ox_topic_policies_update *u, json_t *policies); // in: NULL: they are removed
    void *ctx;                                                                   // in: for change
    struct ox_shard *shard;                                                      // private
    struct ox_topic_name name;                                                   // private: the base name
    struct scope_get scope;                                                      // private
    struct ox_topic_get events;                                                  // private
    struct ox_ml_append append;                                                  // private
    struct ox_op applied;                                                        // private
    bool pinned;                                                                 // private
    struct ox_seq seq;                                                           // private
    struct ox_link link; // private: in the queue of the namespace's changes
};
// The name is copied. Whoever deletes a topic (or a partitioned topic) removes its policies first.
void ox_topic_policies_update(struct ox_shard *sh, struct ox_topic_policies_update *u, const struct ox_topic_name *name);

#endif
