// policing.h - what policies demand on their own time: expiry, quotas, deletion of what nobody uses. One round a kind over all loaded topics, in portions.
#ifndef BROKER_POLICING_H
#define BROKER_POLICING_H

#include "broker/expire.h"
#include "broker/topic.h"

#define POLICING_KINDS(X)                                                   \
    X(TTL)           /* messages that are too old (policing.c) */           \
    X(QUOTA)         /* backlogs that are too large or too old (quota.c) */ \
    X(INACTIVE)      /* topics that nobody uses (inactive.c) */             \
    X(SUBSCRIPTIONS) /* subscriptions that nobody uses (inactive.c) */
enum policing_kind {
#define OX_X(name) POLICING_##name,
    POLICING_KINDS(OX_X)
#undef OX_X
        POLICING_COUNT
};

struct policing_round {
    struct ox_policing *policing;
    struct ox_timer timer;
    uint64_t interval_ns; // 0: never
    struct ox_link *next; // the topic to look at next; NULL: the round is over
    unsigned running;     // operations that looks have begun
    void (*look)(struct policing_round *r, struct ox_topic *t);
};

struct ox_policing {
    struct ox_shard *shard;
    struct ox_list topics; // open ones, in_policing
    struct policing_round rounds[POLICING_COUNT];
};

// Made with the shard; freed when no operation is under way.
struct ox_policing *policing_new(struct ox_shard *sh);
void policing_free(struct ox_policing *p);
// Starts and ends the rounds.
void policing_start(struct ox_policing *p);
void policing_stop(struct ox_policing *p);
// The settings have changed: rounds take their new intervals, one that has another than before begins with it now.
void policing_follow(struct ox_policing *p);
// Begins a round over the quotas of backlogs now, unless they are switched off.
void ox_policing_check_quotas(struct ox_shard *sh);
// A topic is open: rounds look at it, until it closes.
void policing_opened(struct ox_topic *t);
void policing_closing(struct ox_topic *t);
// An operation of a round begins, or has ended: the round waits while too many are under way.
void policing_busy(struct policing_round *r);
void policing_idle(struct policing_round *r);
// True while operations of rounds are under way.
bool policing_is_busy(const struct ox_policing *p);

// Lets messages older than that expire in all subscriptions of a topic, as an operation of the round; no effect while that is under way.
void policing_expire(struct policing_round *r, struct ox_topic *t, uint64_t seconds);
// The looks of the other files.
void quota_look(struct policing_round *r, struct ox_topic *t);
void inactive_look(struct policing_round *r, struct ox_topic *t);
void subscriptions_look(struct policing_round *r, struct ox_topic *t);
// Computes t->quota_exceeded from the backlog's size now and its age as of the last round.
void quota_refresh(struct ox_topic *t);

// When an entry was taken, or published, in wall ms. False: it cannot be told.
bool entry_time_ms(const struct ox_entry *entry, uint64_t *ret_ms);
// The smallest mark-delete position of the subscriptions that have a backlog (e: those that it concerns, NULL: all); OX_POS_LATEST if there is none.
struct ox_pos topic_oldest(const struct ox_topic *t, const struct ox_topic_expire *e, bool durable_only);

#endif
