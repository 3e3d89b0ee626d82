// topic_room.h - how many topics a namespace may have.
#ifndef BROKER_TOPIC_ROOM_H
#define BROKER_TOPIC_ROOM_H

#include "broker/policy_scope.h"
#include "broker/topic_list.h"

// Is there room in its namespace for a topic that is to be made, or (partitions > 0) for a partitioned one, whose partitions count each? Those that only brokers use do not count, and a topic
// that is there already always has room. Errors: NOT_ALLOWED (max_topics_per_namespace is reached), those of finding the namespace's policies, those of the metadata store.
struct ox_topic_room {
    struct ox_op op;
    uint32_t partitions;        // in
    uint32_t max;               // private
    struct ox_shard *shard;     // private
    struct ox_topic_name name;  // private
    struct scope_get scope;     // private
    struct ox_topics_list list; // private
    struct ox_seq seq;          // private
};
// The name is copied.
void ox_topic_room(struct ox_shard *sh, struct ox_topic_room *op, const struct ox_topic_name *name);

#endif
