// throttle.h - how fast data is moved: bytes and entries a second, without bursts, changed at any time.
#ifndef MOVE_STORAGE_THROTTLE_H
#define MOVE_STORAGE_THROTTLE_H

#include "io/loop.h"

#define THROTTLE_SLICE_NS (25 * OX_MS) // so far ahead may be taken: who comes late by less loses nothing of the rate
#define THROTTLE_PIECE_NS \
    (3 * OX_MS) // so much time's worth is asked for at once: what clients write meanwhile waits for one piece, not for a heap

// Each limit is a moment up to which the rate is used up; while that moment lies beyond the slice, nobody may take.
struct throttle_limit {
    uint64_t per_s;   // 0: none
    uint64_t used_ns; // the moment
};
struct throttle {
    struct ox_loop *loop;
    struct throttle_limit bytes, ops;
    struct ox_list waiters; // struct throttle_wait by op.link: lowest rank first, equal ones in order of coming
    struct ox_timer timer;
    uint64_t taken; // bytes, ever
};

// Makes one without limits.
void throttle_init(struct throttle *t, struct ox_loop *loop);
// Stops it; nobody may wait.
void throttle_fini(struct throttle *t);
// Sets both limits (0: none) from now on; what was taken in advance is kept on the books. Those who wait look again.
void throttle_set(struct throttle *t, uint64_t bytes_per_s, uint64_t ops_per_s);
// How much one taker should ask for at most: one slice of time, at least 4 KiB and at most max; or of operations, at least 1.
uint64_t throttle_bytes_slice(const struct throttle *t, uint64_t max);
uint64_t throttle_ops_slice(const struct throttle *t, uint64_t max);
// Takes if it may be taken now. What was asked for and not used is given back with throttle_settle, what was used beyond it is booked there.
bool throttle_take(struct throttle *t, uint64_t bytes, uint64_t ops);
void throttle_settle(struct throttle *t, uint64_t asked_bytes, uint64_t asked_ops, uint64_t used_bytes, uint64_t used_ops);
// Somebody who waits; rank: the lower goes first, so that what was begun first ends first.
struct throttle_wait {
    struct ox_op op;
    uint64_t rank; // in
};
// op finishes (OK) when it is worth to ask again.
void throttle_wait(struct throttle *t, struct throttle_wait *w);
// All who wait look again now, though they may not be allowed to take: something else has ended their work.
void throttle_wake(struct throttle *t);

#endif
