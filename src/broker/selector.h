// selector.h - Key_Shared: which consumer gets which key, and which keys must wait for a former consumer's acknowledgements.
#ifndef BROKER_SELECTOR_H
#define BROKER_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ox_consumer;
struct ox_selector;
struct ox_message_meta;

#define OX_KEY_HASHES 65536u // sticky key hashes are 0 .. 65535

enum ox_key_shared_mode { OX_KEY_AUTO_SPLIT, OX_KEY_STICKY };

// What a consumer asks for when it subscribes (CommandSubscribe.keySharedMeta). Ranges: both ends inclusive; an end of 65536 is taken as 65535.
struct ox_key_shared {
    enum ox_key_shared_mode mode;
    bool out_of_order; // allow_out_of_order_delivery: keys need not wait for a former consumer
    const int32_t *ranges; // start, end, start, end ...; borrowed
    size_t range_count;
};

// The sticky hash of an entry: murmur3 (32 bits, seed 0) of ordering key, else partition key (decoded from base64 where it says so), else "<producer name>-<sequence id>";
// & 0x7fffffff, % 65536. Keys inside a batch do not count. `metadata` is the entry's serialized MessageMetadata.
uint32_t ox_key_hash(struct ox_buf metadata);
// murmur3 x86 32 bits.
uint32_t ox_murmur3(const void *data, size_t len, uint32_t seed);

// A selector of a mode; the first consumer of a subscription decides. Auto split is consistent hashing with `points` per consumer (subscriptionKeySharedConsistentHashingReplicaPoints 100).
struct ox_selector *ox_selector_new(enum ox_key_shared_mode mode, uint32_t points);
void ox_selector_free(struct ox_selector *s);
enum ox_key_shared_mode ox_selector_mode(const struct ox_selector *s);
// Adds a consumer. Errors: CONSUMER_ASSIGN (sticky: no ranges, ranges that overlap each other or another consumer's: that one in *ret_holder).
enum ox_err ox_selector_add(struct ox_selector *s, struct ox_consumer *c, const struct ox_key_shared *want, struct ox_consumer **ret_holder) OX_CHECKED;
void ox_selector_remove(struct ox_selector *s, struct ox_consumer *c);
// The consumer of a hash, or NULL (nobody is there, or no range covers it).
struct ox_consumer *ox_selector_find(const struct ox_selector *s, uint32_t hash);

// Keys whose messages are still with a consumer that does not own the hash any more ("draining"): nobody gets more of that hash before they are acknowledged, or that consumer is gone.
// One per subscription; counts pending entries per (consumer, hash), 0 when zeroed. Bounded by the unacknowledged messages.
struct ox_draining;
struct ox_draining *ox_draining_new(void);
void ox_draining_free(struct ox_draining *d);
// An entry of the hash went to c / is no longer with c (acknowledged or given back). Returns true if that ended a hash's draining: somebody may be waiting for it.
void ox_draining_sent(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash);
bool ox_draining_done(struct ox_draining *d, const struct ox_consumer *c, uint32_t hash);
// The consumer is gone with all it had; true if a hash's draining ended.
bool ox_draining_gone(struct ox_draining *d, const struct ox_consumer *c);
// May c get an entry of this hash now? False while another consumer has some of it.
bool ox_draining_allows(const struct ox_draining *d, const struct ox_consumer *c, uint32_t hash);

#endif
