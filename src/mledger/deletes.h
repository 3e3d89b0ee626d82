// deletes.h - intents: deletes of ledgers that cannot be done now, kept as nodes until their place can be reached.
//
//   /oxbow/deletes/<place>/<physical id>-<checksum of the owner>
//
// The value is text, a line "key=value" each, both sides encoded like names: ledger (logical id), physical, since (ms), and owner.<key> for each pair of
// custom metadata that the ledger must carry. Unknown keys are ignored, so that later versions may add some.
#ifndef MLEDGER_DELETES_H
#define MLEDGER_DELETES_H

#include "mledger/mledger_int.h"

// An intent being written.
struct ml_intent {
    struct ox_op op; // OK: the node is there (it may have been before). Errors: those of the metadata store
    struct ox_ml_factory *factory; // private
    char *path;                    // private
    struct ox_buf value;           // private
    struct ox_meta_put put;        // private
    int tries;                     // private
};
// Writes it; op must be initialised. It may be written before the record that drops the ledger: whoever retries looks first whether a node still names that
// (then the intent is void). place: by name, registered or not. owner is copied.
void ml_intent_write(struct ox_ml_factory *f, struct ml_intent *i, const char *place, int64_t id, int64_t physical,
                     const struct ox_kv *owner);
// Removes one: it was carried out, or is void. del->op must be initialised; its errors: NOT_FOUND and those of the metadata store.
void ml_intent_forget(struct ox_ml_factory *f, struct ox_meta_del *del, const char *place, int64_t physical,
                      const struct ox_kv *owner);
// Reads one. get->op must be initialised; its errors: NOT_FOUND (no such delete waits) and those of the metadata store.
void ml_intent_get(struct ox_ml_factory *f, struct ox_meta_get *get, const char *place, int64_t physical,
                   const struct ox_kv *owner);
// True for errors that say: this place can't be used now, whatever is asked of it.
bool ml_place_is_away(enum ox_err err);

#endif
