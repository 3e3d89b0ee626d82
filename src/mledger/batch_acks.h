// batch_acks.h - batches of which only some messages are acknowledged, kept in memory by their subscription.
#ifndef MLEDGER_BATCH_ACKS_H
#define MLEDGER_BATCH_ACKS_H

#include "base/map.h"
#include "base/pos.h"

#define OX_BATCH_ACKS_MAX \
    10000u // batches remembered per subscription; beyond it a partial acknowledgement has no effect (the whole batch comes again)
#define OX_BATCH_WORDS_MAX 1024u              // words of one set: batches of up to 65,536 messages
#define OX_BATCH_ACKS_WORDS_MAX (128u * 1024) // words of all sets together: 1 MiB; beyond it likewise

// One partly acknowledged batch.
struct ox_batch_ack {
    struct ox_pos pos;       // the key
    struct ox_map_node node; // private
    size_t words;
    uint64_t bits[]; // bit i of word i/64: message i is still to be delivered
};

// Zeroed memory is empty.
struct ox_batch_acks {
    struct ox_map map; // private
    size_t words;      // read-only: of all sets
};

// Forgets all.
void ox_batch_acks_fini(struct ox_batch_acks *b);
// Keeps only those of the entry's messages that `bits` has too. Returns true if nothing is left to deliver: the entry is acknowledged as a whole, and forgotten here.
bool ox_batch_acks_and(struct ox_batch_acks *b, struct ox_pos pos, const uint64_t *bits, size_t words);
// Sets the entry's messages still to be delivered, whatever was there.
void ox_batch_acks_set(struct ox_batch_acks *b, struct ox_pos pos, const uint64_t *bits, size_t words);
// The set of an entry, or NULL.
const struct ox_batch_ack *ox_batch_acks_find(const struct ox_batch_acks *b, struct ox_pos pos);
// How many entries there are.
size_t ox_batch_acks_count(const struct ox_batch_acks *b);
// The entries by position, at most `max` of them, the first ones; the caller frees the list, which borrows them until the next change.
const struct ox_batch_ack **ox_batch_acks_sorted(const struct ox_batch_acks *b, size_t max, size_t *ret_count);
// How many bits are set: messages still to be delivered.
uint32_t ox_batch_bits_count(const uint64_t *bits, size_t words);
// Forgets one entry.
void ox_batch_acks_forget(struct ox_batch_acks *b, struct ox_pos pos);
// Forgets all entries up to pos.
void ox_batch_acks_forget_upto(struct ox_batch_acks *b, struct ox_pos pos);

#endif
