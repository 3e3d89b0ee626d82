// topic_round.h - visits to all topics that are loaded, a few in a turn, so that many topics hold nobody up. For this folder only.
#ifndef BROKER_TOPIC_ROUND_H
#define BROKER_TOPIC_ROUND_H

#include "broker/shard.h"
#include "io/loop.h"

// Zero it, set the public members once; a round may be started again when it is over.
struct topic_round {
    struct ox_shard *shard;                                       // public
    void (*visit)(struct topic_round *round, struct ox_topic *t); // public: of whatever state; it may make that topic go
    void (*over)(struct topic_round *round);                      // public: all were visited; NULL: nothing follows
    struct ox_map_node *next;                                     // private: in shard->topics
    struct ox_timer timer;                                        // private: until the next few
    struct ox_link link;                                          // private: in shard->rounds while it goes on
};
// Begins with the first topic; one that is loaded meanwhile is visited too, one that goes before its turn is not. Nothing happens inside this call.
void topic_round_start(struct topic_round *round);
// Ends it where it is; `over` is not called.
void topic_round_stop(struct topic_round *round);
// A topic is about to leave the map.
void topic_rounds_pass(struct ox_shard *sh, const struct ox_topic *t);

#endif
