// opener.h - opens the storage that a URI names: embedded:DIR by the embedded engine.
#ifndef OXBOWD_OPENER_H
#define OXBOWD_OPENER_H

#include "base/metrics.h"
#include "io/file.h"
#include "ledger/store/store.h"
#include "move/storage/storage.h"
#include "oxbowd/config.h"

// Set the public members, then opener_init.
struct opener {
    struct ox_place_opener opener;  // read-only: what move/storage asks
    struct ox_loop *loop;           // public
    struct ox_fs *fs;               // public
    const struct ox_config *config; // public
    struct ox_metrics *metrics;     // public
    const char *cwd;                // public: absolute; where relative directories begin
    const char *data; // public: absolute; the data folder, in which metadata is: no storage may have it in it; NULL: none
    struct ox_table_source table; // public: of the stores' ledger tables; zeroed: LMDB
    uint64_t segment_bytes;       // public: of the stores' files, instead of the configured size; 0: as configured
    uint32_t opened;              // private: how many places it has opened
};
// Fills in the functions.
void opener_init(struct opener *o);
// A directory's one absolute form, without "." and "..", to be freed. It does not look at the disk: a symbolic link is another name.
char *opener_absolute(const char *cwd, const char *dir);

#endif
