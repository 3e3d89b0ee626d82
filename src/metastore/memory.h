// memory.h - the store in memory: for tests and the simulator, with faults on demand.
#ifndef METASTORE_MEMORY_H
#define METASTORE_MEMORY_H

#include "metastore/metastore.h"

// What is kept. It may outlive the processes (stores) that use it and be shared by several: it stands for a metadata service.
struct ox_meta_memory_tree;

// A tree with nothing but its root. Free with ox_meta_memory_tree_free.
struct ox_meta_memory_tree *ox_meta_memory_tree_new(void);
// Frees a tree; no store may be on it (asserted).
void ox_meta_memory_tree_free(struct ox_meta_memory_tree *tree);

// What becomes of one call.
enum ox_meta_outcome {
    OX_META_DO,           // the right answer
    OX_META_FAIL_BEFORE,  // no effect, DISCONNECTED
    OX_META_FAIL_AFTER,   // a write: takes effect, answered UNKNOWN_OUTCOME. A read: DISCONNECTED
    OX_META_FAIL_UNKNOWN, // a write: no effect, answered UNKNOWN_OUTCOME. A read: DISCONNECTED
};
struct ox_meta_fault {
    uint64_t before_ns; // until it takes effect; calls of one store keep their order
    uint64_t after_ns;  // from then until the answer, and until watches fire
    enum ox_meta_outcome outcome;
};

// Chooses each call's fate; embedded in its owner, which outlives the store.
struct ox_meta_memory_faults {
    // path: of the call, of a multi its first. *fault is zeroed (at once, OX_META_DO) before. Closing is never asked for.
    void (*choose)(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault);
};

// A store with a new session on a tree (borrowed); faults NULL: none. Never fails. Closed by ox_meta_close.
// When loop->dead is set (the process has crashed), everything in flight finishes with SHUTDOWN: what was due before the crash has happened, the rest never
// does. Closing it then frees the store and leaves the session (and its ephemerals) to ox_meta_memory_expire.
struct ox_meta *ox_meta_memory_new(struct ox_loop *loop, struct ox_meta_memory_tree *tree,
                                   struct ox_meta_memory_faults *faults);

// Finishes everything in flight with SHUTDOWN now, without waiting for its delay; loop->dead must be set.
void ox_meta_memory_crash(struct ox_meta *meta);
// The session is cut off: DISCONNECTED is told, calls fail with DISCONNECTED, what is in flight fails (writes that were under way: UNKNOWN_OUTCOME).
void ox_meta_memory_disconnect(struct ox_meta *meta);
// Connected again: with the same session, or, if that has expired, with a new id. Watches fire LOST.
void ox_meta_memory_reconnect(struct ox_meta *meta);
// Ends a session: its ephemerals go; the store that holds it, if there is one, learns EXPIRED and answers SESSION_EXPIRED until reconnected.
void ox_meta_memory_expire(struct ox_meta_memory_tree *tree, uint64_t session_id);

#endif
