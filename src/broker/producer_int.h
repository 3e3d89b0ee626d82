// producer_int.h - producers and their sends for this folder's own eyes.
#ifndef BROKER_PRODUCER_INT_H
#define BROKER_PRODUCER_INT_H

#include "base/token_bucket.h"
#include "broker/dedup.h"
#include "broker/producer.h"

#define OX_EPOCH_PROPERTY "pulsar.topic.epoch" // of the log: the topic epoch, in decimal
#define PRODUCER_MAGIC OX_MAGIC('P', 'r', 'o', 'd')

// One send in flight; recycled through shard->free_publishes.
struct publish {
    struct ox_ml_append append;
    struct ox_topic *topic;       // held
    struct ox_producer *producer; // NULL once it is gone
    struct ox_receipt receipt;
    struct dedup_name *dedup; // with a reference; NULL: nobody asks
    struct dedup_send seen;   // valid with dedup
    bool duplicate;           // nothing is stored: it is the same as an earlier send
    uint64_t bytes;           // charged to topic and shard; 0 for what is not stored
    uint64_t since_ns;        // when it was handed to the log
    uint32_t messages;
    bool over;           // the outcome is known; earlier sends of the producer may not be
    struct ox_link link; // in producer->publishes, or in the pool
};

// How fast a topic may be published to.
struct publish_limits {
    struct ox_token_bucket messages, bytes;
};

// The producer leaves its sends: they end without a receipt.
void publishes_orphan(struct ox_producer *p);
// Tells who waits for the end of its sends.
void producer_drained(struct ox_producer *p, enum ox_err err);
// Takes it out of its topic's lists; it is told nothing.
void producer_detach(struct ox_producer *p);
// Frees a producer that is in no list any more.
void producer_free(struct ox_producer *p);
// Detaches it, tells it why, frees it.
void producer_throw_out(struct ox_producer *p, enum ox_err why);
// Connects it with what deduplication knows of its name, or ends that.
void producer_join_dedup(struct ox_producer *p);
// A new one, attached, as asked for; the name is taken.
struct ox_producer *producer_new(struct ox_producer_open *o);
// What a producer that wants to attach is told because of the backlog quota; OK: nothing.
enum ox_err producers_quota_error(const struct ox_topic *t);
// True if the topic's policy wants deduplication.
bool producers_want_dedup(const struct ox_topic *t);

// ---- who may be alone (producer_access.c)

enum access_answer { ACCESS_GRANTED, ACCESS_WAIT, ACCESS_BUSY, ACCESS_FENCED };
// May it join the topic, as its mode goes? GRANTED: it is in t->joining now (with fencing, everybody else has been thrown out). WAIT: it is in t->queued. ret_why: a static sentence on refusals.
enum access_answer access_ask(struct ox_topic *t, struct ox_producer_open *o, const char **ret_why);
// It leaves t->joining or t->queued, if it is there.
void access_leave(struct ox_topic *t, struct ox_producer_open *o);
// Somebody has left: who waits first has its turn, if nobody is there. On a topic that closes all who wait are woken.
void access_next(struct ox_topic *t);
// The topic epoch that an exclusive one draws.
int64_t access_epoch(const struct ox_topic *t, const struct ox_producer_open *o);
// Goes on with one that waited.
void opening_woken(struct ox_producer_open *o, enum ox_err err);

// ---- rates (publish_limits.c)

// Counts a send that was taken. False: sends have to wait now.
bool limits_take(struct ox_topic *t, uint32_t messages, uint64_t bytes);
// May the topic's producers go on, as far as rates are concerned?
bool limits_ready(struct ox_topic *t);
// A producer waits because of a rate: blocked_wake comes in time.
void limits_wait(struct ox_topic *t);
// t->policies.publish may have changed.
void limits_follow(struct ox_topic *t);
// Those who may go on now do (publish.c).
void blocked_wake(struct ox_shard *sh);

#endif
