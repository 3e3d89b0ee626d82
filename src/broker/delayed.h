// delayed.h - messages that are not due yet: positions by the time at which they may be delivered (Shared and Key_Shared subscriptions).
#ifndef BROKER_DELAYED_H
#define BROKER_DELAYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pos.h"

#define OX_DELAYED_MAX 1000000u // positions a subscription remembers; at the bound it reads no further

// Zeroed memory is empty. Times are wall-clock ms.
struct ox_delayed {
    void *impl; // private
    size_t count; // read-only
};
void ox_delayed_fini(struct ox_delayed *d);
// Remembers a position, once (a position that is there already keeps its place). False if it is full: read no further until some are due.
bool ox_delayed_add(struct ox_delayed *d, struct ox_pos pos, uint64_t due_ms);
// Takes up to max positions that are due at now_ms, earliest first; returns how many.
size_t ox_delayed_take(struct ox_delayed *d, uint64_t now_ms, struct ox_pos *ret, size_t max);
// When the first is due, UINT64_MAX if there is none.
uint64_t ox_delayed_first(const struct ox_delayed *d);
// Forgets all (seek, restart) or all up to pos (cumulative moves of the mark).
void ox_delayed_clear(struct ox_delayed *d);

#endif
