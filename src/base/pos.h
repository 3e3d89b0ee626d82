// pos.h - positions in a log: a ledger's id and an entry in it.
#ifndef BASE_POS_H
#define BASE_POS_H

#include <stdbool.h>
#include <stdint.h>

// Position of an entry; entry -1 = before the ledger's first. {-1, -1} = before everything.
struct ox_pos {
    int64_t ledger;
    int64_t entry;
};

#define OX_POS_EARLIEST ((struct ox_pos){-1, -1})
#define OX_POS_LATEST ((struct ox_pos){INT64_MAX, INT64_MAX})
#define OX_POS_FMT "%lld:%lld"
#define OX_POS_ARG(p) (long long)(p).ledger, (long long)(p).entry

// Negative, 0 or positive as a is before, at or after b.
static inline int ox_pos_cmp(struct ox_pos a, struct ox_pos b)
{
    if (a.ledger != b.ledger)
        return a.ledger < b.ledger ? -1 : 1;
    return a.entry < b.entry ? -1 : a.entry > b.entry;
}
// The later one of two.
static inline struct ox_pos ox_pos_max(struct ox_pos a, struct ox_pos b)
{
    return ox_pos_cmp(a, b) >= 0 ? a : b;
}
static inline bool ox_pos_equal(struct ox_pos a, struct ox_pos b)
{
    return a.ledger == b.ledger && a.entry == b.entry;
}

#endif
