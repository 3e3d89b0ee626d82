// draining.h - Key_Shared: who holds entries of which sticky hash, so that a hash goes to another consumer only when nobody has any of it left.
#ifndef BROKER_DRAINING_H
#define BROKER_DRAINING_H

#include <stdbool.h>
#include <stdint.h>

struct ox_consumer;
struct ox_draining;

// One of a subscription; bounded by its unacknowledged entries. A hash has one holder at most.
struct ox_draining *ox_draining_new(void);
// Frees it; NULL is allowed.
void ox_draining_free(struct ox_draining *d);
// An entry of the hash went to c: nobody else holds any (asserted).
void ox_draining_sent(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash);
// An entry of the hash is no longer with c: acknowledged, given back, or c leaves. True if that was the last one and somebody was refused the hash meanwhile: what waits can go.
bool ox_draining_done(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash);
// Calls fn for each hash that is out: who holds it, how many entries, how often somebody else was refused it.
void ox_draining_each(const struct ox_draining *d,
                      void (*fn)(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries, uint32_t refused),
                      void *ctx);
// May c get an entry of this hash now? False, and remembered, while another consumer has some of it.
bool ox_draining_allows(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash);

#endif
