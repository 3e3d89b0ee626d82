// group.h - subscriptions with several consumers (Shared, Key_Shared, Failover) that come, go, freeze and lie; and what none of them may ever see.
#ifndef TESTS_SIM_GROUP_H
#define TESTS_SIM_GROUP_H

#include "workload.h"

#define GROUP_MEMBERS_MAX 5
#define GROUP_KEYS 7

// What a group knows of a message.
struct group_message {
    bool received, ack_sent; // as in struct load_message
    bool confirmed;          // its acknowledgement was answered: the entry at confirmed_at never is sent again
    struct ox_pos confirmed_at;
    uint64_t confirmed_ns; // what was sent before that may still be on its way to another member
    uint32_t asked; // requests for its redelivery: with the group's for everything no less than its redelivery count
    struct load_member *holder;       // got it last, and neither acknowledged it nor asked for it again
    uint32_t seen[GROUP_MEMBERS_MAX]; // the member's epoch when it got it
};

// A consumer of a group.
struct load_member {
    struct load_group *group;
    uint32_t index;
    char name[32];
    int32_t ranges[2]; // sticky
    bool lies;
    struct ox_client_consumer *client;
    struct ox_client_consumer_open open;
    bool opening, ending, failed, frozen;
    uint32_t epoch; // rises when it is attached anew; Failover: also when it asks for everything again or becomes the active one
    struct ox_pos last_pos; // Failover: since then
    int32_t last_batch;
    uint32_t from; // which of the workload's clients it uses
    struct ox_timer turn, again;
    struct ox_op gone, close;
    // What comes now was sent after this time: the last request that was answered.
    struct ox_client_last_id ping;
    bool pinging;
    uint64_t pinged_ns, sure_ns;
    // It has asked for messages again: what still comes from before is no longer its own.
    struct ox_client_last_id ask;
    bool asking, ask_more;
    // Another consumer got a key that this one holds: are both still attached?
    struct ox_client_last_id alibi;
    bool suspected;
    uint32_t suspected_epoch;
    struct load_member *other;
    uint32_t other_epoch;
    char suspicion[400];
};

struct load_group {
    struct load_topic *topic;
    uint32_t index;
    char name[32];
    Oxpb__CommandSubscribe__SubType type;
    bool sticky, out_of_order, batch_index_ack;
    bool asks_all;  // its members ask for everything again
    uint32_t asked; // how often
    uint32_t members_count;
    struct load_member members[GROUP_MEMBERS_MAX];
    struct group_message *messages[WORKLOAD_PRODUCERS_MAX]; // by producer and number
    bool is_there;                                          // has had a consumer
    bool healed;                                            // its members know that faults are over
};

// Draws a topic's groups and opens their consumers.
void groups_init(struct load_topic *t);
void groups_free(struct load_topic *t);
// Every group has had a consumer: what is sent from now on must come to all of them.
bool groups_are_there(const struct load_topic *t);
// What keeps a message from being settled; NULL: nothing.
const char *groups_miss(const struct load_message *m);
// Every group has acknowledged it.
bool groups_have_acked(const struct load_message *m);
// A consumer of a group comes or goes.
bool groups_are_busy(const struct load_topic *t);
// All consumers leave and come again; what they did not acknowledge must come once more.
void groups_reattach(struct load_topic *t);
// Every message was acknowledged, and the broker has nothing left for the groups.
bool groups_are_acked(const struct load_topic *t);
// Says what a group still has to do; false if nothing.
bool groups_describe(const struct load_topic *t, char *out, size_t len);
// Looks at the broker's own books.
void groups_look(struct load_topic *t);
// Closes all consumers; load_part_closed is called for each (their number is returned).
uint32_t groups_close(struct load_topic *t);

#endif
