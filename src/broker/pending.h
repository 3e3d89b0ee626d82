// pending.h - what a subscription with many consumers remembers of entries that were read and are not acknowledged.
#ifndef BROKER_PENDING_H
#define BROKER_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pos.h"

struct ox_consumer;

// One entry. With a consumer, or (holder NULL) waiting to be delivered again.
struct pending {
    struct ox_pos pos;          // read-only
    struct pending *next;       // private: of the same slot, or free
    struct ox_link link;        // the owner's: in the holder's list
    struct ox_consumer *holder; // the owner's
    uint32_t messages;          // the owner's: those that the holder has not acknowledged
    uint32_t hash;              // the owner's: sticky key hash (Key_Shared)
    uint32_t redeliveries;      // the owner's: how often it was asked for again
};

struct pending_block;

// By position, O(1); memory comes in blocks that are used again, and goes when the table is cleared. Zeroed memory is empty.
struct pending_table {
    struct pending **slots;       // private
    size_t slot_count;            // private: 0 or a power of two
    size_t count;                 // read-only
    struct pending *free;         // private
    struct pending_block *blocks; // private
};

// The entry of a position, or NULL.
struct pending *pending_find(const struct pending_table *t, struct ox_pos pos);
// A new entry, zeroed but for its position, which must not be there yet (asserted).
struct pending *pending_add(struct pending_table *t, struct ox_pos pos);
// Forgets an entry; it must be in no list.
void pending_remove(struct pending_table *t, struct pending *p);
// Forgets all and gives the memory back.
void pending_clear(struct pending_table *t);

#endif
