// compacted.h - the compacted ledgers of a log: what its record says of them, and whose they are. Which one is in use says the position of the cursor
// "__compaction"; the record names all that may be, so that none is taken for an orphan, lost in a move, or left behind when the log is deleted.
//
// The record's property oxbow.compacted has the form of a ledger's copies (copies.h): place, id, and when it was begun. It is written before a new one is named by
// the cursor, and loses the old one only after that.
#ifndef MLEDGER_COMPACTED_H
#define MLEDGER_COMPACTED_H

#include "mledger/mledger.h"

// What the log's compacted ledgers carry as custom metadata, beside what says of which topic and up to where. Fills ret, the caller frees it.
void ox_ml_compacted_owner(const struct ox_ml_factory *f, const char *log, struct ox_kv *ret);
// Those on record; the caller frees ret. Errors: CORRUPT.
enum ox_err ox_ml_compacted(const struct ox_mledger *ml, struct ox_copies *ret) OX_CHECKED;
// Writes them down (an empty list: there are none any more), as ox_mledger_set_property does.
void ox_ml_compacted_note(struct ox_mledger *ml, struct ox_ml_property *p, const struct ox_copies *all);
// Deletes one that is neither in use nor on record any more, in the background, owner checked.
void ox_ml_compacted_discard(const struct ox_mledger *ml, const char *place, int64_t id);

#endif
