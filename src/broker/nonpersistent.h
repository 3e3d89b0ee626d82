// nonpersistent.h - non-persistent topics: what is published goes to who can take it now, and is dropped for the others. Nothing is stored, nothing is kept in memory.
#ifndef BROKER_NONPERSISTENT_H
#define BROKER_NONPERSISTENT_H

#include "broker/dispatcher.h"
#include "broker/producer.h"
#include "broker/subscription.h"

// Every message of a non-persistent topic has this id.
#define NONPERSISTENT_POS ((struct ox_pos){0, 0})

// Gives a message to every subscription of the topic.
void nonpersistent_publish(struct ox_topic *t, const struct ox_send *send);
// A dispatcher for one of its subscriptions; four bodies, one for each type.
struct ox_dispatcher *ox_dispatcher_nonpersistent_new(struct ox_subscription *s, enum ox_sub_type type);
// Ends a statistics interval of the drops.
void nonpersistent_tick(struct ox_subscription *s, double seconds);

#endif
