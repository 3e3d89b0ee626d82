// compaction.h - topic compaction: a ledger that holds the last message of each key, up to a horizon; for consumers that ask for no more than that.
//
// Two passes over what there is (the former compacted ledger, then the log behind its horizon): the first notes the last message of each key, the second writes those into a
// new ledger, in Pulsar's form. Then one write of the cursor "__compaction" makes it the one in use: its position is the horizon, its property names the ledger.
// Messages without a key are dropped (topicCompactionRetainNullKey keeps them), an empty or null value removes its key, what cannot be looked into (encrypted, damaged) is kept as it is.
#ifndef BROKER_COMPACTION_H
#define BROKER_COMPACTION_H

#include "broker/topic.h"
#include "mledger/cursor.h"

enum ox_compaction_status { OX_COMPACTION_NOT_RUN, OX_COMPACTION_RUNNING, OX_COMPACTION_SUCCESS, OX_COMPACTION_ERROR };

// What is known of a topic's compaction.
struct ox_compaction_info {
    enum ox_compaction_status status; // of this load of the topic
    const char *error;                // of the last run that failed; "" if none. Borrowed
    int64_t ledger;                   // the compacted ledger in use, -1: none
    int64_t entries, bytes;           // of it; -1: not known yet
    struct ox_pos horizon;            // what is at or before it is in the ledger
    uint64_t removed;                 // messages that the last run left out
    uint64_t succeeded_ms, failed_ms; // wall time of the last run that did; 0: none
    uint64_t duration_ms;             // of the last run
    uint64_t succeeded, failed;       // runs of this load of the topic
};
void ox_compaction_info(const struct ox_topic *t, struct ox_compaction_info *ret);
// "NOT_RUN", "RUNNING", "SUCCESS", "ERROR".
const char *ox_compaction_status_name(enum ox_compaction_status status);

// Starts a run; one at a time in a broker, others wait for their turn (and are RUNNING all the same). op (may be NULL) finishes at its end.
// Errors: BUSY (one runs or waits: returned, op is not begun), UNSUPPORTED (the topic has no log; likewise). Of op: TOO_BIG (more different keys than memory
// is meant for), CANCELED (the topic is closing), those of the log and of the place.
enum ox_err ox_compaction_start(struct ox_topic *t, struct ox_op *op) OX_CHECKED;

// What consumers that read compacted give to ox_cursor_read as its view; NULL: the topic is not compacted. Valid until the topic closes.
struct ox_cursor_view *ox_compaction_view(const struct ox_topic *t);

// The last message of the compacted ledger (there must be one in use, asserted), for topics that hold nothing behind the horizon. *ret_pos: {-1, -1} if it is empty; *ret_index: of
// the last message that is left of a batch, else -1; both are written before op finishes. Errors: those of the place.
void ox_compaction_last(struct ox_topic *t, struct ox_op *op, struct ox_pos *ret_pos, int32_t *ret_index);
// True if the topic is compacted up to its last message or beyond what its log still holds.
bool ox_compaction_covers(const struct ox_topic *t);

// Rewrites the compacted ledger, as it is, into the place where the topic's ledgers are to be. Errors as ox_compaction_start; OK if there is nothing to do.
enum ox_err ox_compaction_move(struct ox_topic *t, struct ox_op *op) OX_CHECKED;

#endif
