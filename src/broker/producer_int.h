// producer_int.h - producers and their sends for this folder's own eyes.
#ifndef BROKER_PRODUCER_INT_H
#define BROKER_PRODUCER_INT_H

#include "broker/producer.h"

#define PRODUCER_MAGIC OX_MAGIC('P', 'r', 'o', 'd')

// One send in flight; recycled through shard->free_publishes.
struct publish {
    struct ox_ml_append append;
    struct ox_topic *topic;       // held
    struct ox_producer *producer; // NULL once it is gone
    struct ox_receipt receipt;
    uint64_t bytes; // charged to topic and shard; 0 for what is not stored
    uint32_t messages;
    bool over;           // the outcome is known; earlier sends of the producer may not be
    struct ox_link link; // in producer->publishes, or in the pool
};

// The producer leaves its sends: they end without a receipt.
void publishes_orphan(struct ox_producer *p);
// Tells who waits for the end of its sends.
void producer_drained(struct ox_producer *p, enum ox_err err);
// Frees a producer that is in no list any more.
void producer_free(struct ox_producer *p);

#endif
