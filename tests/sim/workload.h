// workload.h - clients of a simulated broker: producers and consumers that remember what they were promised, and the checks on it (the oracle).
#ifndef TESTS_SIM_WORKLOAD_H
#define TESTS_SIM_WORKLOAD_H

#include "client/client.h"
#include "world.h"

#define WORKLOAD_TOPICS_MAX 4
#define WORKLOAD_PRODUCERS_MAX 4 // per topic
#define WORKLOAD_SUBS_MAX 4      // per topic

struct load_topic;

// A message as its producer and the consumers know it. What is promised: acked = it is in the log at `id`, for ever (or until every subscription has acknowledged it).
struct load_message {
    struct ox_client_send send;
    struct load_producer *producer;
    uint32_t number;   // of its producer
    bool sent, acked, failed;
    struct ox_pos pos;     // from the receipt or from the first consumer that got it; {-1, -1}: not known
    bool received[WORKLOAD_SUBS_MAX];     // at least once
    bool ack_sent[WORKLOAD_SUBS_MAX];     // an acknowledgement that covers it has been sent
    bool confirmed[WORKLOAD_SUBS_MAX];    // and answered: never delivered again to that subscription
    uint32_t reread;   // times in the last reading from the start
};

struct load_producer {
    struct load_topic *topic;
    uint32_t index;
    struct ox_client_producer *client;
    struct ox_client_producer_open open;
    bool opening;
    struct load_message *messages;
    uint32_t count, next;
    struct ox_timer timer;
    struct ox_pos last_pos;   // of the last receipt: positions only rise
    struct ox_op close;
    char name[32];
};

struct load_sub {
    struct load_topic *topic;
    uint32_t index;
    struct ox_client_consumer *client;
    struct ox_client_consumer_open open;
    bool opening, failed;
    struct ox_pos last_pos;   // delivered since it was attached
    int32_t last_batch;
    struct ox_client_call seek;
    struct ox_timer seek_timer;
    bool seeking;
    uint32_t acks_from; // rises with every seek
    struct ox_op close;
    char name[32];
};

struct load_topic {
    struct workload *load;
    uint32_t index;
    char name[64];
    struct load_producer producers[WORKLOAD_PRODUCERS_MAX];
    struct load_sub subs[WORKLOAD_SUBS_MAX];
    // the last reading from the start
    struct ox_client_consumer *reader;
    struct ox_client_consumer_open reader_open;
    struct ox_client_last_id last_id;
    struct ox_op reader_close;
    struct ox_pos reader_pos;
    int32_t reader_batch;
    int64_t reader_next[WORKLOAD_PRODUCERS_MAX];
    uint32_t reader_asks;
    bool reader_asked;
};

struct workload {
    struct world *world;
    struct ox_random random;
    struct ox_client *client;
    struct load_topic topics[WORKLOAD_TOPICS_MAX];
    uint32_t closing; // closes in flight
    struct ox_op close;
    bool closed;
};

// Starts clients against the world's broker.
struct workload *workload_new(struct world *w);
// Frees it; it must be closed.
void workload_free(struct workload *load);
// Everything was sent and answered, and every subscription has received every acknowledged message.
bool workload_is_drained(const struct workload *load);
// Says what is missing, for a violation's text.
void workload_describe(const struct workload *load, char *out, size_t len);
// Reads every topic from its start; workload_is_reread tells when that is over.
void workload_reread(struct workload *load);
bool workload_is_reread(const struct workload *load);
// After the reading: every acknowledged message was there once, with its bytes, at its id, in order.
void workload_check(struct workload *load);
// Closes all clients.
void workload_close(struct workload *load);

#endif
