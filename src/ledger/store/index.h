// index.h - where the entries of an unsealed segment are: runs of neighbouring entries per ledger, in memory until the footer holds them.
#ifndef LEDGER_STORE_INDEX_H
#define LEDGER_STORE_INDEX_H

#include "base/map.h"
#include "ledger/store/format.h"

// Neighbouring entries of one ledger: entry first+i is items[i].
struct ox_index_run {
    int64_t first;
    uint32_t count, cap;
    struct ox_item *items;
};
// The runs of one ledger, sorted by first, never overlapping.
struct ox_index_ledger {
    struct ox_map_node node;
    int64_t ledger;
    struct ox_index_run *runs;
    uint32_t count, cap;
    bool dropped; // the ledger is deleted; memory stays until the index goes (a commit may be reading it)
};
struct ox_index {
    struct ox_map ledgers;
    uint64_t items, runs; // read-only: upper bounds, for the footer's size
};

// Zeroed memory is an empty index. Frees everything.
void ox_index_fini(struct ox_index *x);
// Notes where an entry is; an older place in this segment is replaced.
void ox_index_add(struct ox_index *x, int64_t ledger, int64_t entry, struct ox_item item);
// The item of an entry, or NULL; *ret_more is how many items of the following entries stand behind it.
const struct ox_item *ox_index_find(const struct ox_index *x, int64_t ledger, int64_t entry, uint32_t *ret_more);
// Forgets a ledger.
void ox_index_drop(struct ox_index *x, int64_t ledger);
// The runs that are not dropped, sorted by ledger and first entry, with first_item set; *ret_items gets each run's items (borrowed). Both arrays are the caller's to free.
struct ox_run *ox_index_runs(const struct ox_index *x, size_t *ret_count, const struct ox_item ***ret_items);
// The footer's bytes (to be freed by the caller) for runs as ox_index_runs returned them.
uint8_t *ox_index_footer(const struct ox_run *runs, const struct ox_item *const *items, size_t count, uint32_t salt,
                         uint64_t number, uint32_t offset, struct ox_footer_header *ret);

#endif
