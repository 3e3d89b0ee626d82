// named.h - what nodes say about where ledgers are; for those that look at nodes without opening their log.
#ifndef MLEDGER_NAMED_H
#define MLEDGER_NAMED_H

#include "mledger/mledger_int.h"

// The ledger that a cursor's node names.
struct ml_cursor_ledger {
    int64_t id;        // logical; -1: none, the position is in the node
    int64_t physical;  // in its place
    const char *place; // name; NULL: the bootstrap place. Borrowed from the arena
};
// Reads a cursor's node; the strings live in the arena. Errors: those of ox_cursor_decode, CORRUPT (an impossible physical id).
enum ox_err ml_cursor_ledger_find(struct ox_arena *arena, struct ox_buf node, struct ml_cursor_ledger *ret) OX_CHECKED;

enum ml_named {
    ML_NOT_NAMED,
    ML_NAMED,
    ML_UNREADABLE, // can't be understood, or has lost a stamp: it may mean this ledger
};
// Whether a log's (cursor false) or a cursor's node names a location. Only what is NOT_NAMED may be deleted.
enum ml_named ml_node_names(const struct ox_ml_factory *f, struct ox_buf node, bool cursor, const char *place,
                            int64_t physical);
// Whether a node has a ledger of this (logical or physical) id; *ret is where it says that one is (place UINT32_MAX: in none that is known here).
bool ml_node_namesake(const struct ox_ml_factory *f, struct ox_buf node, bool cursor, int64_t id, struct ox_location *ret);

#endif
