// namespaces.h - namespaces as Pulsar keeps them in the metadata store.
#ifndef BROKER_NAMESPACES_H
#define BROKER_NAMESPACES_H

#include "broker/shard.h"
#include "broker/topic_name.h"

// What the broker needs of a namespace's policies.
struct ox_namespace_policies {
    bool deleted;                // the namespace is being deleted
    int auto_topic_creation;     // autoTopicCreationOverride: -1 none, 0 no, 1 yes
    bool auto_topic_partitioned; // with the override
    uint32_t default_partitions; // with the override
};

// Reads a namespace's policies. Errors: NAMESPACE_NOT_FOUND, CORRUPT (not JSON), those of the metadata store.
struct ox_namespace_get {
    struct ox_op op;
    struct ox_namespace_policies policies; // result
    struct ox_shard *shard;                // private
    struct ox_meta_get get;                // private
};
void ox_namespace_get(struct ox_shard *sh, struct ox_namespace_get *op, const char *ns);

#endif
