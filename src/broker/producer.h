// producer.h - a producer on a topic: its name, its sends in order, back-pressure, re-sends.
#ifndef BROKER_PRODUCER_H
#define BROKER_PRODUCER_H

#include "base/kv.h"
#include "broker/topic.h"

struct dedup_name;
struct ox_cursor_open;
struct ox_message_meta;
struct ox_producer;
struct ox_resend_scan;
struct ox_subscription;

#define OX_REPLICATOR_PREFIX \
    "pulsar.repl." // names of producers that bring another cluster's messages: deduplicated by the names inside the messages

// Numbers as in the protocol. All but SHARED want to be alone and draw a topic epoch.
enum ox_access_mode {
    OX_ACCESS_SHARED,
    OX_ACCESS_EXCLUSIVE,              // refused while somebody is there
    OX_ACCESS_WAIT_FOR_EXCLUSIVE,     // waits until nobody is, in the order of coming
    OX_ACCESS_EXCLUSIVE_WITH_FENCING, // throws everybody out, those who wait too
    OX_ACCESS_MODES
};

// One send: what was given and what came of it.
struct ox_receipt {
    enum ox_err err;
    struct ox_pos pos; // stored at (OK)
    uint64_t sequence_id;
    uint64_t highest_sequence_id; // of a batch, else 0
    uint64_t index;               // broker entry index of its last message, with broker entry metadata
    const char *why;              // on errors: static sentence or NULL
};

// The owner's side. All are called from the loop, none inside a call of the owner's; inside receipt and unblocked the owner neither publishes nor closes.
struct ox_producer_events {
    // The outcome of each send, in order of the sends.
    void (*receipt)(struct ox_producer *p, const struct ox_receipt *r);
    // Memory is there again after ox_producer_publish said to stop.
    void (*unblocked)(struct ox_producer *p);
    // The broker closes the producer (topic unloaded, deleted, failed): tell the client to reconnect. The producer is freed when this returns.
    void (*closed)(struct ox_producer *p, enum ox_err err);
    // Somebody wants the name: is the client alive? Finish op with OK if it is, DISCONNECTED if not (the owner closes the connection then), within config.probe_ns.
    void (*probe)(struct ox_producer *p, struct ox_op *op);
};

// Members are read-only outside this folder.
struct ox_producer {
    uint32_t magic;
    struct ox_topic *topic;
    char *name;
    bool user_named;         // the client chose the name
    uint64_t epoch;          // of the client's reconnects
    uint64_t id;             // the connection's number for it: public, the owner's
    const void *connection;  // identity of the connection: public, the owner's
    char peer[64];           // for statistics
    char client_version[64]; // what the client calls itself
    uint64_t connected_ms;
    struct ox_kv metadata;
    struct ox_rate in;
    uint32_t inflight; // sends without an outcome
    bool failed;       // a send failed: all later ones fail until it reconnects
    bool blocked;      // ox_producer_publish said to stop
    bool resending;    // read-only: sends may be re-sends of stored ones
    bool replicator;   // its name begins with OX_REPLICATOR_PREFIX
    enum ox_access_mode mode;
    const struct ox_producer_events *events;
    void *owner;                 // public
    struct ox_list publishes;    // private: in flight, in order
    struct dedup_name *dedup;    // private: NULL: no deduplication, or a replicator
    struct ox_op *draining;      // private: finished when nothing is in flight
    struct ox_link link;         // private: in topic->producers
    struct ox_link blocked_link; // private: in shard->blocked
};

// Attaches a producer. What is given by pointer is copied, and must live until the operation is over. Errors: PRODUCER_BUSY (the name is connected and its holder
// alive; shared where one is or waits to be alone; too many), PRODUCER_FENCED (an exclusive one is or was there, or came while this one waited), TOPIC_FENCED, TOPIC_TERMINATED, NOT_ALLOWED (the
// initial subscription may not be made), ENCRYPTION_REQUIRED, QUOTA_HOLD, QUOTA_EXCEPTION, CANCELED, those of the log (what may be re-sent, the topic epoch).
struct ox_producer_open {
    struct ox_op op;
    const char *name;       // in: NULL or "": generated
    bool user_named;        // in
    bool reconnect;         // in: the name was in use before (a name given, or an epoch above 0): sends may be re-sends
    bool encrypted;         // in: it encrypts
    uint64_t epoch;         // in
    uint64_t id;            // in
    const void *connection; // in
    enum ox_access_mode mode;         // in
    int64_t topic_epoch;              // in: the one it had when it was connected before; -1: none
    const char *initial_subscription; // in: made first, from the earliest message on, where it is not there; may be NULL
    void (*queued)(struct ox_producer_open *op); // in: called, from the loop, when it begins to wait for its turn to be alone; own_name is its name
    const struct ox_kv *metadata;            // in: may be NULL
    const char *peer;                        // in: may be NULL
    const char *client_version;              // in: may be NULL
    const struct ox_producer_events *events; // in
    void *owner;                             // in
    struct ox_producer *producer;            // result
    const char *why;                         // result on errors: static sentence or NULL
    struct ox_topic *topic;                  // private
    struct ox_op probe;                      // private
    struct ox_link link;                     // private
    struct ox_seq seq;                       // private
    char *own_name;                          // in `queued`: the name
    uint64_t wait_for;                       // private: topic->appends that must have ended
    bool probed;                             // private
    struct ox_resend_scan *scan;             // private
    struct ox_link join;                     // private: in topic->joining or topic->queued
    bool fenced;                             // private: somebody else threw it out
    int64_t drawn_epoch;                     // private
    struct ox_ml_property property;          // private
    struct ox_subscription *sub;             // private
    struct ox_cursor_open *cursor;           // private
};
void ox_producer_open(struct ox_topic *t, struct ox_producer_open *op);
// The client does not want it any more: one that waits for its turn ends with CANCELED; another one ends as it would.
void ox_producer_open_cancel(struct ox_producer_open *op);
// The highest sequence id that is stored of its name, with deduplication; else -1.
int64_t ox_producer_last_sequence(const struct ox_producer *p);
// Waits until all sends so far have their receipts; one at a time. It goes on existing. Errors: CANCELED (it was closed meanwhile).
void ox_producer_drain(struct ox_producer *p, struct ox_op *op);
// Detaches and frees it; no event comes any more. Appends in flight go on without a receipt.
void ox_producer_close(struct ox_producer *p);
// Likewise where its connection broke: receipts may be lost, so the log keeps for a while what it may send again.
void ox_producer_lost(struct ox_producer *p);

// What a send is, taken from its metadata by the front door.
struct ox_send {
    struct ox_buf entry; // [0x0e01 checksum] metadata size, metadata, payload: as it came; a reference is taken
    size_t plain_len;    // bytes of the entry behind the checksum
    uint32_t crc;        // CRC-32C of those, verified; needed only while producer->resending
    bool crc_known;      // crc is there although it is not needed: it is not computed again
    uint32_t messages;   // >= 1
    uint64_t sequence_id;
    uint64_t highest_sequence_id;       // of a batch, else 0
    const struct ox_message_meta *meta; // its metadata, where ox_producer_looks; else NULL
};
// True if sends need their metadata: a policy or deduplication looks at it. chunk: the send says that it is a part of a message.
static inline bool ox_producer_looks(const struct ox_producer *p, bool chunk)
{
    return chunk || p->topic->looks || p->dedup || p->replicator;
}
// Stores a message; the outcome comes as a receipt. Returns false if the owner should stop sending for this producer until `unblocked` (this message is taken all the same).
bool ox_producer_publish(struct ox_producer *p, const struct ox_send *send);
// A receipt that stores nothing: keeps its place among those of earlier sends. For sends that the front door refuses (checksum, size).
void ox_producer_refuse(struct ox_producer *p, enum ox_err err, uint64_t sequence_id, uint64_t highest_sequence_id);

#endif
