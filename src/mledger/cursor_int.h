// cursor_int.h - what the log's own files need of cursors.
#ifndef MLEDGER_CURSOR_INT_H
#define MLEDGER_CURSOR_INT_H

#include "mledger/cursor.h"

// Opens every durable cursor whose node stands below the log's; used by the opening sequence before the topic is usable. op: the first error.
// A cursor that points between ledgers, beyond the end or before the start is clamped with a warning that names it (trap S07).
void ox_cursors_recover(struct ox_mledger *ml, struct ox_op *op);
// Closes or removes all cursors of a log, one after another.
void ox_cursors_close(struct ox_mledger *ml, struct ox_op *op);
void ox_cursors_remove(struct ox_mledger *ml, struct ox_op *op);
// The smallest mark_delete of all cursors that hold back trimming (durable ones); false if there is none.
bool ox_cursors_slowest(const struct ox_mledger *ml, struct ox_pos *ret);
// A ledger left the list (trimmed, empty, or lost and skipped): cursors on it step to the next legal position, holes in it are forgotten (trap S08).
void ox_cursors_ledger_gone(struct ox_mledger *ml, int64_t ledger);
// The log was fenced or failed: pending acks and reads end with err.
void ox_cursors_fail(struct ox_mledger *ml, enum ox_err err);

// Custom metadata of a cursor's ledgers, by the names of log and cursor; also what owner checks expect.
void ml_cursor_owner(const struct ox_ml_factory *f, const char *log, const char *cursor, struct ox_kv *ret);

struct ml_follower;
// What follows the active place for a durable cursor, and back.
struct ml_follower *ox_cursor_follower(struct ox_cursor *c);
struct ox_cursor *ox_cursor_of_follower(const struct ml_follower *w);
// True if its ledger is not in the active place and the cursor works.
bool ox_cursor_is_elsewhere(const struct ox_cursor *c);
// Brings its position into the active place or the node, by a flush; acknowledgements go on meanwhile. Errors: those of the stores; it stays where it was then.
void ox_cursor_follow(struct ox_cursor *c, struct ox_op *op);
// Looks at all cursors of a log that has just been opened.
void ox_cursors_check(struct ox_mledger *ml);

#endif
