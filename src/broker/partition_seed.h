// partition_seed.h - the metadata of partitions that nobody has used yet: their nodes, with the subscriptions that the topic has, and the count, for this folder's own eyes.
#ifndef BROKER_PARTITION_SEED_H
#define BROKER_PARTITION_SEED_H

#include "broker/partitions.h"

struct seed_part {
    bool exists;       // its node is there
    bool begun;        // its node is among those that are written
    struct ox_kv have; // its subscriptions' nodes (encoded names): only where it exists although it is not counted
};

// A subscription of the topic.
struct seed_subscription {
    char *node;          // encoded name
    uint32_t part;       // where it was found
    struct ox_buf value; // the node of a new one: at the beginning, with the properties of the one that was found
};

// Makes the nodes of partitions that are missing and of those behind the present count, each with every subscription of the present partitions at its beginning; then sets the count.
// All in one transaction if it is small, else the count with the last. Errors: BAD_VERSION (the count's node, or something below, has changed), those of the metadata store.
struct ox_seed {
    struct ox_op op;
    struct ox_shard *shard;           // in
    const struct ox_topic_name *name; // in: base name, borrowed
    const char *path;                 // in: of the count's node, borrowed
    uint32_t old, count;              // in: partitions before, after
    int64_t expected;                 // in: version of the count's node; OX_META_ABSENT: it is to be made
    struct ox_buf node;               // in: that node as it is, borrowed; empty: it is to be made
    struct seed_part *parts;
    struct seed_subscription *subscriptions;
    size_t subscription_count;
    bool gathered; // the subscriptions have been looked for twice
    size_t known;  // subscriptions after the first look
    uint32_t at;   // partition being looked at or made
    size_t sub_at; // subscription of it
    struct ox_meta_children children;
    struct ox_meta_get get;
    struct ox_op step;
    struct ox_meta_step *steps; // of the transaction being made
    size_t step_count;
    struct ox_meta_multi multi;
    struct ox_seq seq;
};
void partition_seed(struct ox_seed *e);

#endif
