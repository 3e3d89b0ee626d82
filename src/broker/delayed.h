// delayed.h - messages that are not due yet: positions by the time at which they may be delivered (Shared and Key_Shared subscriptions).
#ifndef BROKER_DELAYED_H
#define BROKER_DELAYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pos_set.h"

#define OX_DELAYED_MAX 1000000u // positions a subscription remembers; at the bound it reads no further

struct ox_delayed_item {
    uint64_t due_ms;
    struct ox_pos pos;
    uint32_t hash; // sticky key hash (Key_Shared)
};

// Positions, each once. Zeroed memory is empty. Times are wall-clock ms. 32 bytes a position, and a bit or more.
struct ox_delayed {
    struct ox_delayed_item *heap; // private: the earliest first
    size_t heap_cap;              // private
    struct ox_pos_set set;        // private: the same positions
    size_t count;                 // read-only
};
// Forgets all and frees the memory.
void ox_delayed_fini(struct ox_delayed *d);
// Remembers a position, once (a position that is there already keeps its place and time). False if it is full: read no further until some are due.
bool ox_delayed_add(struct ox_delayed *d, struct ox_pos pos, uint64_t due_ms, uint32_t hash) OX_CHECKED;
// Takes up to max of those that are due at now_ms, earliest first, those of one time in the log's order; returns how many.
size_t ox_delayed_take(struct ox_delayed *d, uint64_t now_ms, struct ox_delayed_item *ret, size_t max);
// When the first is due, UINT64_MAX if there is none.
uint64_t ox_delayed_first(const struct ox_delayed *d);
// True if it is remembered.
bool ox_delayed_has(const struct ox_delayed *d, struct ox_pos pos);
// Forgets all up to and with pos: the mark-delete position moved over them.
void ox_delayed_forget(struct ox_delayed *d, struct ox_pos upto);
// Forgets all (seek, restart).
void ox_delayed_clear(struct ox_delayed *d);

#endif
