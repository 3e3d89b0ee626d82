// selector.h - Key_Shared: which consumer gets which sticky hash (key_hash.h).
#ifndef BROKER_SELECTOR_H
#define BROKER_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ox_consumer;
struct ox_selector;

enum ox_key_shared_mode { OX_KEY_AUTO_SPLIT, OX_KEY_STICKY };

// What a consumer asks for when it subscribes (CommandSubscribe.keySharedMeta). Ranges: both ends inclusive; an end of 65536 is taken as 65535.
struct ox_key_shared {
    enum ox_key_shared_mode mode;
    bool out_of_order;     // allow_out_of_order_delivery: keys need not wait for a former consumer
    const int32_t *ranges; // start, end, start, end ...; borrowed
    size_t range_count;
};

// A selector of a mode; the first consumer of a subscription decides. Auto split is consistent hashing with `points` per consumer (subscriptionKeySharedConsistentHashingReplicaPoints), placed by
// its name: a consumer that comes back gets its keys back.
struct ox_selector *ox_selector_new(enum ox_key_shared_mode mode, uint32_t points);
// Frees it, consumers or not.
void ox_selector_free(struct ox_selector *s);
// May a consumer with these wishes be added? Errors: CONSUMER_ASSIGN (sticky: no ranges, ranges out of bounds, ranges that overlap each other or those of another consumer: that one in *ret_holder, which
// is untouched otherwise).
enum ox_err ox_selector_check(const struct ox_selector *s, const struct ox_key_shared *want,
                              struct ox_consumer **ret_holder) OX_CHECKED;
// Adds a consumer whose wishes were checked.
void ox_selector_add(struct ox_selector *s, struct ox_consumer *c, const struct ox_key_shared *want);
// Takes it out; its hashes go to others.
void ox_selector_remove(struct ox_selector *s, const struct ox_consumer *c);
// Calls with each range of hashes that a consumer gets, both ends inclusive, rising.
void ox_selector_ranges(const struct ox_selector *s, const struct ox_consumer *c,
                        void (*range)(void *ctx, uint32_t from, uint32_t to), void *ctx);
// How keys are shared.
enum ox_key_shared_mode ox_selector_mode(const struct ox_selector *s);
// The consumer of a hash, or NULL (nobody is there, or no range covers it).
struct ox_consumer *ox_selector_find(const struct ox_selector *s, uint32_t hash);

#endif
