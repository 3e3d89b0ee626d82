// copies.h - the other complete locations of a ledger, as its record names them: "place:physical id:since ms", separated by commas.
#ifndef MLEDGER_COPIES_H
#define MLEDGER_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OX_COPIES_MAX 64u // of one ledger

struct ox_copy {
    char *place; // name; owned by the list
    int64_t physical;
    uint64_t since_ms; // wall time at which it stopped being the primary
};
// In the order in which they became copies. Zeroed memory is an empty list.
struct ox_copies {
    struct ox_copy *items; // read-only
    size_t count;          // read-only
};

// Reads a property's value (NULL: no copies) into ret, whose former content is freed. Errors: CORRUPT (or more than OX_COPIES_MAX); the list is empty then.
enum ox_err ox_copies_parse(struct ox_copies *ret, const char *text) OX_CHECKED;
// The property's value, to be freed; NULL if there are none.
char *ox_copies_text(const struct ox_copies *c);
// Frees the items; the list is empty then.
void ox_copies_fini(struct ox_copies *c);
// The copy at a location, or NULL. Borrowed until the next change.
const struct ox_copy *ox_copies_find(const struct ox_copies *c, const char *place, int64_t physical);
// Adds one at the end (the name is copied); it must not be there (asserted).
void ox_copies_add(struct ox_copies *c, const char *place, int64_t physical, uint64_t since_ms);
// Takes one out; false if it wasn't there.
bool ox_copies_remove(struct ox_copies *c, const char *place, int64_t physical);

#endif
