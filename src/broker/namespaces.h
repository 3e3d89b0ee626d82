// namespaces.h - tenants, namespaces and partitioned topics as Pulsar keeps them in the metadata store, and lists of topics.
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

// Reads how many partitions a topic has; 0 = not partitioned. With create, a topic that is nowhere becomes a partitioned one if automatic creation is on and
// its type is partitioned, and is answered with 0 (nothing is made) if the type is not. Errors: NAMESPACE_NOT_FOUND, TOPIC_NOT_FOUND (nowhere, and create false or
// automatic creation off), CORRUPT, those of the metadata store.
struct ox_partitions_get {
    struct ox_op op;
    bool create;                // in: may be made
    uint32_t partitions;        // result
    struct ox_shard *shard;     // private
    struct ox_topic_name name;  // private
    struct ox_namespace_get ns; // private
    struct ox_meta_get get;     // private
    struct ox_meta_put put;     // private
    struct ox_seq seq;          // private
    char *path;                 // private
};
// The name is copied.
void ox_partitions_get(struct ox_shard *sh, struct ox_partitions_get *op, const struct ox_topic_name *name);

// Makes a partitioned topic. Errors: EXISTS, INVALID (partitions 0 or above 100,000), NAMESPACE_NOT_FOUND, those of the metadata store.
struct ox_partitions_create {
    struct ox_op op;
    uint32_t partitions;        // in
    struct ox_shard *shard;     // private
    char *path;                 // private
    char ns_name[768];          // private
    struct ox_namespace_get ns; // private
    struct ox_meta_put put;     // private
    struct ox_seq seq;          // private
};
void ox_partitions_create(struct ox_shard *sh, struct ox_partitions_create *op, const struct ox_topic_name *name);

// Lists the persistent topics of a namespace by their full names, sorted; partitions appear one by one. Errors: NAMESPACE_NOT_FOUND, those of the metadata store.
struct ox_topics_list {
    struct ox_op op;
    bool with_system;                 // in: topics that only brokers use too
    char **names;                     // result: free with ox_topics_list_fini
    size_t count;                     // result
    struct ox_shard *shard;           // private
    char *ns;                         // private
    struct ox_namespace_get get;      // private
    struct ox_meta_children children; // private
    struct ox_seq seq;                // private
};
void ox_topics_list(struct ox_shard *sh, struct ox_topics_list *op, const char *ns);
void ox_topics_list_fini(struct ox_topics_list *op);

#endif
