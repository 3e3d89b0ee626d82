// partitions.h - partitioned topics: how many partitions there are, making, growing and deleting them.
#ifndef BROKER_PARTITIONS_H
#define BROKER_PARTITIONS_H

#include "base/kv.h"
#include "broker/namespaces.h"
#include "broker/topic.h"
#include "broker/topic_room.h"

#define OX_PARTITIONS_MAX 100000u // of one topic

struct ox_seed;

// Reads how many partitions a topic has; 0 = not partitioned. With create, a topic that is nowhere becomes a partitioned one if automatic creation is on and
// its type is partitioned, and is answered with 0 (nothing is made) if the type is not. A partition's own name is answered with 0 too. Errors: NAMESPACE_NOT_FOUND,
// TOPIC_NOT_FOUND (nowhere, and create false or automatic creation off; being deleted; a partition beyond the count), NOT_ALLOWED (the namespace has as many topics as it may have), CORRUPT, those of the metadata store.
struct ox_partitions_get {
    struct ox_op op;
    bool create;                // in: may be made
    uint32_t partitions;        // result
    struct ox_shard *shard;     // private
    struct ox_topic_name name;  // private
    struct ox_namespace_get ns; // private
    struct ox_topic_room room;  // private
    struct ox_meta_get get;     // private
    struct ox_meta_put put;     // private
    struct ox_seq seq;          // private
    char *path;                 // private
};
// The name is copied.
void ox_partitions_get(struct ox_shard *sh, struct ox_partitions_get *op, const struct ox_topic_name *name);

// Makes a partitioned topic with all its partitions (persistent ones get their nodes; logs are opened by their first user). Errors: EXISTS (partitioned or plain,
// or being deleted), INVALID (partitions 0 or above OX_PARTITIONS_MAX, or the name of a partition), NOT_ALLOWED (the namespace has as many topics as it may have), NAMESPACE_NOT_FOUND, those of the metadata store.
struct ox_partitions_create {
    struct ox_op op;
    uint32_t partitions;        // in
    struct ox_shard *shard;     // private
    struct ox_topic_name name;  // private
    char *path;                 // private
    struct ox_namespace_get ns; // private
    struct ox_topic_room room;  // private
    struct ox_meta_get get;     // private
    struct ox_seed *seed;       // private
    struct ox_op step;          // private
    struct ox_seq seq;          // private
};
// The name is copied.
void ox_partitions_create(struct ox_shard *sh, struct ox_partitions_create *op, const struct ox_topic_name *name);

// Gives a partitioned topic more partitions, or (partitions 0) makes those that are missing. The new ones have every subscription of the old ones, from their beginning,
// before the count changes: nobody who sees the new count can lose a message. After an error the count is the old one, and repeating it completes it.
// Errors: TOPIC_NOT_FOUND (not partitioned), INVALID (fewer than now, or too many; `why`), NOT_ALLOWED (the namespace has no room for so many more topics), BUSY (changed by somebody else meanwhile), those of the metadata store.
struct ox_partitions_update {
    struct ox_op op;
    uint32_t partitions;        // in: the new count; 0: the present one
    uint32_t had;               // result: the count before
    const char *why;            // result on errors: static sentence or NULL
    struct ox_shard *shard;     // private
    struct ox_topic_name name;  // private
    char *path;                 // private
    struct ox_namespace_get ns; // private
    struct ox_topic_room room;  // private
    struct ox_meta_get get;     // private
    struct ox_seed *seed;       // private
    struct ox_op step;          // private
    struct ox_seq seq;          // private
};
// The name is copied.
void ox_partitions_update(struct ox_shard *sh, struct ox_partitions_update *op, const struct ox_topic_name *name);

// Deletes a partitioned topic: it is marked first (nobody loads a partition any more; who came until then is reason to keep all of it), then its partitions go, then its own
// policies and its node. Repeating it completes one that was cut off.
// Errors: TOPIC_NOT_FOUND (not partitioned), BUSY (producers or consumers are connected and force is false; a partition is there and only_empty is true), those of the stores.
struct ox_partitions_delete {
    struct ox_op op;
    bool force;                       // in: connected clients are closed
    bool only_empty;                  // in: only if no partition is there
    struct ox_shard *shard;           // private
    struct ox_topic_name name;        // private
    char *path;                       // private
    uint32_t count, at;               // private
    int64_t version;                  // private
    enum ox_err err;                  // private: why it stops
    struct partitions_forget *forget; // private: removing the topic's own policies
    struct ox_meta_get get;           // private
    struct ox_meta_put put;           // private
    struct ox_meta_del del;           // private
    struct partition_delete *parts;   // private: those under way
    uint32_t running;                 // private: how many
    struct ox_seq seq;                // private
};
// The name is copied.
void ox_partitions_delete(struct ox_shard *sh, struct ox_partitions_delete *op, const struct ox_topic_name *name);

// The count in a partitioned topic's node, and whether it is being deleted. Errors: CORRUPT.
enum ox_err ox_partitions_decode(struct ox_buf node, uint32_t *ret_count, bool *ret_deleted) OX_CHECKED;
// The node with that count and mark; all else that `before` has (empty: there is none) stays. The caller's.
struct ox_buf ox_partitions_encode(struct ox_buf before, uint32_t count, bool deleted);
// The name of partition i of a (base) name; the caller's, ox_topic_name_fini.
void ox_partition_name(struct ox_topic_name *ret, const struct ox_topic_name *base, uint32_t i);

#endif
