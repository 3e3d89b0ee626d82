// failover.h - Failover: which of several consumers is the active one.
#ifndef BROKER_FAILOVER_H
#define BROKER_FAILOVER_H

#include "broker/subscription.h"

// Of those with the lowest priority number, sorted by name: number n modulo their count for partition n of a topic; for a plain topic the one whose points on a
// ring of hashes follow the topic's. NULL if none is there but `leaving` (may be NULL).
struct ox_consumer *failover_choose(struct ox_subscription *s, const struct ox_consumer *leaving);

#endif
