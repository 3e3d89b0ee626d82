// each.h - one verb on a topic, or on every partition of a partitioned one, one after the other. For this folder only.
#ifndef ADMIN_EACH_H
#define ADMIN_EACH_H

#include "admin/request.h"
#include "broker/expire.h"
#include "broker/partitions.h"
#include "broker/peek.h"
#include "broker/subscription_admin.h"
#include "broker/topic.h"
#include "io/seq.h"

struct admin_each;

enum each_partitioned {
    EACH_PARTITION, // runs on each partition
    EACH_NOT_FOUND, // 404, as if the topic were not there
    EACH_REFUSED,   // 405 with the verb's refusal
    EACH_WHOLE,     // the verb's `whole` does it in another way, and answers
};

// What is done. Static.
struct admin_verb {
    const char *name;
    enum each_partitioned partitioned;
    const char *refusal;                 // EACH_REFUSED: why
    bool may_create;                     // a topic that is nowhere is made where that is automatic
    bool only_partitioned;               // a plain topic is refused by `plain`
    void (*plain)(struct admin_each *e); // answers for it
    ox_step (*run)(struct admin_each *e); // on e->topic: starts an operation bound by each_bind and returns each_wait(e), or returns each_ran(e, outcome)
    bool (*again)(struct admin_each *e); // the operation went well: true if run has more to do on this topic; may be NULL
    void (*collect)(struct admin_each *e);  // all of run went well; may be NULL
    void (*whole)(struct admin_request *r); // EACH_WHOLE: goes on with the request of a partitioned topic
    void (*answer)(struct admin_each *e);   // all went well; NULL: e->result with 200, or 204 if there is none
};

// A verb at work. The handler fills in what run needs, then each_start.
struct admin_each {
    struct admin_request *request;
    const struct admin_verb *verb;
    struct ox_topic *topic;               // read-only: held while run and collect work on it
    struct ox_subscription *subscription; // read-only: of that topic, where a name was given
    uint32_t count, at;                   // read-only: partitions (0: it has none), the one at work
    char *subscription_name;              // in: owned; NULL: the verb has none
    int64_t number;                       // in
    struct ox_pos pos;                    // in
    bool flag;                            // in
    struct ox_kv properties;              // in
    json_t *result;                       // what is answered
    json_t *notes;                        // the verb's own, while it runs on a topic
    void *note;                           // likewise: where it is in `notes` or `result`
    bool handed_over;                     // private: somebody else answers
    unsigned done;                        // private: partitions that went well
    enum ox_err soft;                     // private: what a partition said that does not count if another went well
    enum ox_err failed;                   // private
    struct ox_seq seq;                    // private
    struct admin_pause pause;             // private
    struct ox_partitions_get partitions;  // private
    struct ox_topic_get get;              // private
    struct ox_topic_name name;            // private: of a partition
    union {
        struct ox_op op;
        struct ox_subscription_create create;
        struct ox_subscription_skip skip;
        struct ox_subscription_properties set_properties;
        struct ox_subscription_replicate replicate;
        struct ox_backlog_analysis analysis;
        struct ox_unsubscribe unsubscribe;
        struct ox_seek seek;
        struct ox_last_id last_id;
        struct ox_peek peek;
        struct ox_meta_get node;
        struct ox_time_find time;
        struct ox_topic_delete delete;
        struct ox_ml_property property;
        struct ox_topic_terminate terminate;
        struct ox_topic_truncate truncate;
        struct ox_topic_expire expire;
    } u; // the operation at work, zeroed before each run
};

// A new one for a request.
struct admin_each *each_new(struct admin_request *r, const struct admin_verb *verb);
// The subscription's name from a segment of the path, which clients may encode twice.
void each_subscription(struct admin_each *e, size_t segment);
// Runs it; the request is answered and `e` freed in the end.
void each_start(struct admin_each *e);
// Ends one that has not begun: it has been answered.
void each_free(struct admin_each *e);
// Before an operation is started by run.
void each_bind(struct admin_each *e, struct ox_op *op);
// What run returns after it has started the bound operation.
ox_step each_wait(struct admin_each *e);
// What run returns when it is over at once.
ox_step each_ran(struct admin_each *e, enum ox_err err);
// From run: answers by itself with a status and a reason, and ends everything.
ox_step each_refuse(struct admin_each *e, unsigned status, const char *reason);
// The number of the partition that is at work, -1 for a topic without; it appears in message ids.
int32_t each_partition(const struct admin_each *e);

#endif
