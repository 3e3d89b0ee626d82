// shared.h - the dispatcher for many consumers, for its own files' eyes: dispatcher_shared.c (the body), shared_pending.c (who has what), shared_read.c (reads), shared_deliver.c (who gets what), shared_keys.c (Key_Shared), shared_delayed.c (what is not due).
#ifndef BROKER_SHARED_H
#define BROKER_SHARED_H

#include "base/pos_set.h"
#include "broker/delayed.h"
#include "broker/dispatch_int.h"
#include "broker/draining.h"
#include "broker/pending.h"
#include "broker/selector.h"

#define SHARED_WAITING_SLOTS 4096u

// What the dispatcher keeps of a consumer: consumer->pending.
struct shared_consumer {
    struct ox_consumer *consumer;
    struct ox_list held;  // of struct pending, link: delivered to it and not acknowledged
    struct ox_link ready; // in shared->ready while it can take an entry
};

struct shared {
    struct ox_dispatcher base;
    struct pending_table known; // all entries that are with a consumer or wait to be delivered again
    struct ox_pos_set replay;   // those of them that wait
    struct ox_list ready;       // of struct shared_consumer: by priority, then whose turn it is
    double mean_messages;       // of an entry, lately
    struct ox_cursor_read read; // what comes new
    bool discard;               // the cursor went back while the read was in flight: its result is not wanted
    struct shared_again *again; // what comes again, while it is being read
    uint64_t again_changes;     // `changes` when it was chosen
    struct ox_pos again_from;   // where it began: nothing that waits before could go then
    bool failed;                // the last read failed, or the rate is used up: wait for `retry`
    bool look;                  // something of the replay set may have become deliverable
    uint64_t changes;           // grows when a consumer or a key may have become free
    struct ox_op kick;          // deliveries that must not happen inside the owner's call
    struct ox_timer retry;
    uint64_t retry_ns;      // the last waiting time, 0 after a read that worked
    struct ox_op *stopping; // finished when nothing is in flight
    uint32_t *waiting; // Key_Shared: how many of the replay set have a hash % SHARED_WAITING_SLOTS; NULL while none has waited
    struct ox_selector *selector;     // Key_Shared: whose a hash is; NULL before the first consumer
    enum ox_key_shared_mode key_mode; // Key_Shared
    struct ox_draining *draining;     // Key_Shared: who holds a hash; NULL where keys may come out of order
    struct ox_delayed delayed;        // what is not due
    struct ox_timer due;              // when the first of them is
    uint64_t due_ms;                  // what it waits for, UINT64_MAX: nothing
};

static inline struct shared *shared_of(struct ox_dispatcher *d)
{
    return CONTAINER_OF(d, struct shared, base);
}
static inline struct ox_subscription *shared_sub(const struct shared *d)
{
    return d->base.subscription;
}
static inline bool shared_by_key(const struct shared *d)
{
    return d->base.body->type == OX_SUB_KEY_SHARED;
}

// ---- who has what (shared_pending.c)

// The consumer's state has changed: puts it among those that are ready, or takes it out.
void shared_refresh(struct shared *d, struct ox_consumer *c);
// It has had its turn: the others of its priority come first now.
void shared_turn(struct shared *d, struct ox_consumer *c);
// Its acknowledgements or the policies have changed: lets the consumer and the subscription go on where they were held back and half of what is allowed is free.
void shared_release(struct shared *d, struct ox_consumer *c);
// The entry (that nobody has) is with c now, so many messages of it.
void shared_hold(struct shared *d, struct pending *p, struct ox_consumer *c, uint32_t messages);
// The entry (that nobody has) waits to be delivered again.
void shared_wait(struct shared *d, struct pending *p);
// It has left its holder: waits to be delivered again.
void shared_give_back(struct shared *d, struct pending *p);
// All that a consumer has.
void shared_give_back_all(struct shared *d, struct ox_consumer *c, bool count);
// Forgets an entry, wherever it is.
void shared_forget(struct shared *d, struct pending *p);
// Forgets all entries up to a position.
void shared_forget_upto(struct shared *d, struct ox_pos upto);
// Forgets everything; no consumer has anything.
void shared_clear(struct shared *d);
// Of an entry that waits, or is with a consumer, only so many messages are left.
void shared_left(struct shared *d, struct pending *p, uint32_t left);

// ---- who gets what (shared_deliver.c)

// Which consumer gets an entry of a key hash now; NULL: nobody can, it waits.
struct ox_consumer *shared_pick(struct shared *d, uint32_t hash);
// Might an entry of this hash go now? Cheaper than shared_pick, and right about "no".
bool shared_might_go(struct shared *d, uint32_t hash);
// Delivers what was read from the cursor; what cannot go waits, as a position.
void shared_deliver_new(struct shared *d, const struct ox_entry *entries, size_t count);
// Delivers what was read again: those that still wait and can go.
void shared_deliver_again(struct shared *d, const struct ox_entry *entries, size_t count);

// Key_Shared: might an entry of this hash that has just been read pass an older one that waits?
static inline bool shared_is_behind(const struct shared *d, uint32_t hash)
{
    return d->waiting && d->waiting[hash % SHARED_WAITING_SLOTS];
}

// ---- keys (shared_keys.c); without effect for Shared

// May this consumer join? As ox_dispatcher_body.admit.
enum ox_err shared_keys_admit(struct shared *d, struct ox_subscribe *o, struct ox_consumer **ret_holder) OX_CHECKED;
// It has joined; it leaves.
void shared_keys_joined(struct shared *d, struct ox_consumer *c, const struct ox_key_shared *want);
void shared_keys_left(struct shared *d, const struct ox_consumer *c);
// Frees what is known of keys; no consumer is there.
void shared_keys_fini(struct shared *d);
// The hash of an entry, 0 for Shared.
uint32_t shared_hash(const struct shared *d, const struct dispatch_view *view);
// Key_Shared: the consumer that can get an entry of this hash now, or NULL: nobody has it, it takes nothing, or the former owner is not through.
struct ox_consumer *shared_owner(struct shared *d, uint32_t hash);
// The entry went to its holder; it leaves it.
void shared_keys_sent(struct shared *d, const struct pending *p);
void shared_keys_done(struct shared *d, const struct pending *p);

// ---- what is not due (shared_delayed.c)

// True if the entry is not due: it is remembered, and comes when it is.
bool shared_delay(struct shared *d, const struct dispatch_view *view, uint32_t hash);
// May a portion more be read, whatever of it is not due?
bool shared_delay_has_room(const struct shared *d);
// What is due waits to be delivered from here on.
void shared_take_due(struct shared *d);
// Prepares the timer.
void shared_delay_init(struct shared *d);
// Forgets those up to a position; all.
void shared_delay_forget(struct shared *d, struct ox_pos upto);
void shared_delay_clear(struct shared *d);

// ---- reads (shared_read.c)

// Is there room to wait for more? So far the dispatcher looks ahead while what it has read waits for certain consumers.
bool shared_may_look_ahead(const struct shared *d);

// Starts what can be read now.
void shared_go(struct shared *d);
// Likewise, from the loop.
void shared_kick(struct shared *d);
// Ends the stopping if nothing is in flight.
void shared_stopped(struct shared *d);
// Prepares operations and timers.
void shared_read_init(struct shared *d);
// What is being read is not wanted any more.
void shared_read_discard(struct shared *d);
static inline bool shared_reading(const struct shared *d)
{
    return ox_op_pending(&d->read.op);
}
static inline bool shared_rereading(const struct shared *d)
{
    return d->again;
}

#endif
