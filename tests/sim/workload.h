// workload.h - clients of a simulated broker: producers and consumers that remember what they were promised, and the checks on it (the oracle).
#ifndef TESTS_SIM_WORKLOAD_H
#define TESTS_SIM_WORKLOAD_H

#include "client/client.h"
#include "world.h"

#define WORKLOAD_TOPICS_MAX 4
#define WORKLOAD_PRODUCERS_MAX 4 // per topic
#define WORKLOAD_SUBS_MAX 4      // per topic
#define WORKLOAD_CLIENTS 2       // each with its own connections

#define LOAD_BATCH 5 // most messages of a batch

struct load_topic;
struct load_group;

// A message as its producer and the consumers know it. What is promised: acked = it is in the log at `id`, for ever (or until every subscription has acknowledged it).
struct load_message {
    struct ox_client_send send;
    struct load_producer *producer;
    uint32_t number; // of its producer
    bool sent, acked, failed;
    struct ox_pos pos;                 // from the receipt or from the first consumer that got it; {-1, -1}: not known
    bool received[WORKLOAD_SUBS_MAX];  // at least once
    bool ack_sent[WORKLOAD_SUBS_MAX];  // an acknowledgement that covers it has been sent
    uint32_t seen[WORKLOAD_SUBS_MAX];  // sub->epoch when it came last
    bool confirmed[WORKLOAD_SUBS_MAX]; // and answered: never delivered again to that subscription
    uint32_t reread;                   // times in the last reading from the start
    bool forgotten;                    // its topic was deleted after it was sent: nothing is promised of it any more
    bool spared[WORKLOAD_SUBS_MAX];    // it may have been dropped before the subscription was there (again)
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
    struct ox_pos last_pos; // of the last receipt: positions only rise
    struct ox_op close;
    char name[32];
    uint32_t from;         // which of the workload's clients it uses
    bool started, ending;  // ending: being closed, to be opened again
    struct ox_timer churn; // when it comes and goes
    struct ox_op gone;
};

struct load_sub {
    struct load_topic *topic;
    uint32_t index;
    struct ox_client_consumer *client;
    struct ox_client_consumer_open open;
    bool opening, failed;
    struct ox_pos last_pos; // delivered since it was attached
    int32_t last_batch;
    uint32_t epoch; // rises when what is not acknowledged comes again
    struct ox_client_call seek;
    struct ox_pos sought; // where the seek goes
    struct ox_timer seek_timer;
    bool seeking;
    uint32_t acks_from; // rises with every seek
    struct ox_op close;
    char name[32];
    uint32_t from; // which of the workload's clients it uses
    bool ending;   // being closed (and perhaps removed), to be opened again
    bool renewed;  // removed, or perhaps so: what was sent before it is there again may have gone
    bool removed;  // certainly removed
    struct ox_timer churn, again;
    struct ox_client_call unsubscribe;
    struct ox_op gone;
};

// A reader that comes and goes: what it sees has no gaps.
struct load_scout {
    struct load_topic *topic;
    struct ox_client_consumer *client;
    struct ox_client_consumer_open open;
    bool opening, ending;
    struct ox_pos last_pos;
    int32_t last_batch;
    int64_t last[WORKLOAD_PRODUCERS_MAX]; // number of the last message seen, -1: none
    struct ox_timer churn;
    struct ox_op gone;
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
    uint64_t reader_since; // when it asked
    struct load_scout scout;
    struct load_group *groups; // plan.groups of them (group.h)
    bool deleting;             // a deletion is under way
    struct ox_timer doom;      // when it is deleted
};

struct workload {
    struct world *world;
    struct ox_random random;
    struct ox_client *clients[WORKLOAD_CLIENTS];
    struct ox_timer breaks; // connections that a client loses by itself
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
// Every subscription is left and opened again: what it did not acknowledge must come once more (and is acknowledged); workload_is_acked tells when it has.
void workload_reattach(struct workload *load);
bool workload_is_acked(const struct workload *load);
// Looks at the broker's own books: called at every tick.
void workload_look(struct workload *load);
// Reads every topic from its start; workload_is_reread tells when that is over.
void workload_reread(struct workload *load);
bool workload_is_reread(const struct workload *load);
// After the reading: every acknowledged message was there once, with its bytes, at its id, in order.
void workload_check(struct workload *load);

// ---- between workload.c, churn.c and group.c: clients that come and go

bool load_chance(struct workload *load, uint32_t per_mille);
struct ox_loop *load_loop(const struct workload *load);
// The message that received bytes belong to; NULL and a violation if they are nobody's.
struct load_message *load_message_of(struct load_topic *t, struct ox_buf payload, const char *where);
// A message has one place for ever: true if this is another one. Where what is sent again may not be recognised, another copy may follow.
bool load_has_moved(struct load_message *m, const struct ox_message_id *id);
// Its key; it decides who gets it (Key_Shared) unless it is in a batch. Only keyed messages that are not delayed come in the order of the log.
uint32_t load_key(const struct load_message *m);
bool load_is_keyed(const struct load_message *m);
// A subscription has its first consumer: producers start when all have.
void load_subscribed(struct load_topic *t);
// A consumer or producer has been closed at the end.
void load_part_closed(struct workload *load);
// Positions in batches, in order.
int load_id_cmp(struct ox_pos a, int32_t a_batch, struct ox_pos b, int32_t b_batch);
struct ox_pos load_id_pos(const struct ox_message_id *id);
void load_producer_open(struct load_producer *p);
void load_sub_open(struct load_sub *s);
// Everything may come again to a subscription.
void load_sub_forget(struct load_sub *s);
// The newest acknowledged message of m's producer below m's number and above `above`, of which something is promised; NULL: none.
const struct load_message *load_before(const struct load_message *m, int64_t above);

// Starts what the plan asks of a topic's clients.
void churn_start(struct load_topic *t);
void churn_start_producer(struct load_producer *p);
void churn_start_sub(struct load_sub *s);
// Closes a subscription's consumer and opens another one.
void churn_renew_sub(struct load_sub *s);
void churn_init_topic(struct load_topic *t);
// A subscription is there (again): what was sent before may be gone if it was away.
void churn_sub_is_there(struct load_sub *s);
// True while a client of the topic comes or goes.
bool churn_is_busy(const struct load_topic *t);
void churn_stop(struct load_topic *t);

// Closes all clients.
void workload_close(struct workload *load);

#endif
