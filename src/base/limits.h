// limits.h - every size that is chosen by us, in one place, and the budget object that enforces shared ones.
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#define OX_MESSAGE_BYTES_MAX (5u * 1024 * 1024)     // Pulsar's maxMessageSize, default
#define OX_FRAME_SLACK_BYTES (10u * 1024)           // a frame may exceed the message by this
#define OX_COMMAND_BYTES_MAX (1024u * 1024)         // one command without payload
#define OX_TOPIC_INFLIGHT_BYTES (16u * 1024 * 1024) // appends in flight, one topic
#define OX_TOTAL_INFLIGHT_BYTES (64u * 1024 * 1024) // appends in flight, all topics
#define OX_TAIL_CACHE_BYTES (32u * 1024 * 1024)     // tail cache
#define OX_PEEK_BYTES_MAX (16u * 1024 * 1024)       // a message that an administrator looks at, decompressed
#define OX_INDEX_CACHE_BYTES (16u * 1024 * 1024)    // index blocks of sealed segments
#define OX_SEGMENT_BYTES (64u * 1024 * 1024)        // one segment file
#define OX_NODE_VALUE_BYTES_MAX (4u * 1024 * 1024)  // one metadata value
#define OX_NODE_NAME_BYTES_MAX 4096u                // one path segment
#define OX_CONN_OUT_BYTES_HIGH (1024u * 1024)       // stop dispatching to a connection
#define OX_CONN_OUT_BYTES_LOW (256u * 1024)         // go on
#define OX_CONN_TURN_BYTES (256u * 1024) // what one connection sent and is handled before the others have their turn
#define OX_CONNECTIONS_MAX 10000u        // open connections
#define OX_LOOK_AHEAD_PER_CONSUMER \
    2000u // entries that wait for certain consumers of a subscription, beyond which nothing new is read: per consumer
#define OX_LOOK_AHEAD_PER_SUBSCRIPTION 20000u // and in all
#define OX_PENDING_ENTRIES_MAX \
    1000000u // entries of a subscription that are delivered and not acknowledged, whatever policies allow
#define OX_PERMITS_MAX (1u << 30) // permits of a consumer, however many it asks for
#define OX_SUBSCRIBERS_COUNTED_MAX \
    4096u // consumers of a topic whose subscribing is counted in a period with a rate; more are refused
#define OX_HELD_BYTES_MAX \
    (16u * 1024 * 1024) // entries that were read for consumers which take no more just now, all topics; beyond it they are read again
#define OX_TOPIC_POLICIES_MAX 100000u   // topics of a namespace with policies of their own
#define OX_POLICY_EVENTS_MORE_MAX 1000u // changes of them in the namespace's log beyond one each: then it is compacted

// A bounded amount shared by several users, with waiters woken by their owner.
struct ox_budget {
    uint64_t used; // read-only
    uint64_t max;  // public
};

// Takes n if it fits (or if nothing is taken yet, so that one oversized thing can pass); false otherwise.
bool ox_budget_take(struct ox_budget *b, uint64_t n);
// Gives n back.
void ox_budget_give(struct ox_budget *b, uint64_t n);

#endif
