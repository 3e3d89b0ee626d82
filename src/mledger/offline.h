// offline.h - work on the nodes of logs that are not open in this process: by compare-and-set, under the log's claim, so that no opening of the same log in
// this process is fenced by it. Another process that opens the log meanwhile may lose its first compare-and-set; it then opens the log once more.
#ifndef MLEDGER_OFFLINE_H
#define MLEDGER_OFFLINE_H

#include "mledger/mledger_int.h"

// The right to work on the nodes of one log from outside: alone, or beside others who share it (each with one cursor's node). Granted in the order of the
// calls; an opening of the log waits for its turn too.
struct ml_claim {
    struct ox_op op;      // OK only: it is held
    bool shared;          // private
    struct ml_gate *gate; // private: of the log
};
// Asks for the claim on a log; op must be initialised. Give it back with ml_claim_release.
void ml_claim(struct ox_ml_factory *f, struct ml_claim *c, const char *log);
// Likewise, beside others who share it.
void ml_claim_shared(struct ox_ml_factory *f, struct ml_claim *c, const char *log);
// Gives a held claim back; the next ones get it.
void ml_claim_release(struct ml_claim *c);
// True while somebody holds the claim on a log.
bool ml_is_claimed(const struct ox_ml_factory *f, const char *log);

// Where a log is, for somebody who holds its claim.
enum ml_presence {
    ML_AWAY,    // not in this process: work on its nodes
    ML_HERE,    // open: ask it
    ML_BETWEEN, // being opened, closed, or fenced: again later
};
// *ret_ml is set for ML_HERE only, borrowed.
enum ml_presence ml_presence(const struct ox_ml_factory *f, const char *log, struct ox_mledger **ret_ml);

// One change of one node: read, edited, written by compare-and-set; again (bounded) when somebody else was quicker or the outcome is unknown. The claim on the
// log is the caller's to hold.
struct ml_node_edit {
    struct ox_op op; // OK: the node holds it. Errors: NOT_FOUND (no node), that of `edit`, BUSY (others write it all the time), UNKNOWN_OUTCOME, those of the store
    // in: makes the new value (the caller's reference) from the present one. Not to be written: an error, or OK with `nothing` set.
    enum ox_err (*edit)(struct ml_node_edit *e, struct ox_buf value, struct ox_buf *ret_value);
    bool unsure;  // read-only for edit: an earlier try may have taken effect, so that what is there may be our own
    bool nothing; // out of edit: there is nothing to change
    struct ox_ml_factory *factory; // private
    const char *path;              // private: borrowed until done
    struct ox_seq seq;             // private
    struct ox_meta_get get;        // private
    struct ox_meta_put put;        // private
    struct ox_buf value;           // private: being written
    int64_t version;               // private: that it replaces
    struct ox_timer pause;         // private
    int tries;                     // private
};
// Starts it; op must be initialised, edit set, path borrowed until op is done.
void ml_node_edit_start(struct ox_ml_factory *f, struct ml_node_edit *e, const char *path);

#endif
