// compaction_keys.h - for each key where its last message is. Keys are kept as they are (no hash stands for one), and their memory is bounded.
#ifndef BROKER_COMPACTION_KEYS_H
#define BROKER_COMPACTION_KEYS_H

#include "base/map.h"
#include "broker/compaction_entry.h"

// Zero it, set bytes_max.
struct compaction_keys {
    struct ox_map map;  // private: keys
    struct ox_map open; // private: chunked messages whose last chunk has not come
    size_t bytes;       // read-only: memory in use
    size_t bytes_max;   // public
};

// Forgets all.
void compaction_keys_fini(struct compaction_keys *k);
// True if an entry's messages can be noted without going beyond the limit.
bool compaction_keys_has_room(const struct compaction_keys *k, const struct compaction_entry *e);
// Notes an entry's messages: each is the last one of its key; a tombstone removes it.
void compaction_keys_note(struct compaction_keys *k, const struct compaction_entry *e, struct ox_pos pos);
// True if a message of an entry is the last of its key, or a chunk of it. Those without a key: `keyless`.
bool compaction_keys_has(const struct compaction_keys *k, const struct compaction_message *m, struct ox_pos pos, bool keyless);

#endif
