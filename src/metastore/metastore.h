// metastore.h - a versioned tree of small values with compare-and-set, ephemerals, watches and sessions; every broker's shared truth.
#ifndef METASTORE_METASTORE_H
#define METASTORE_METASTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "io/loop.h"

struct ox_meta;

// Expected versions. A node's first version is 0; each put adds one.
#define OX_META_ANY INT64_C(-2)    // whatever is there, or nothing
#define OX_META_ABSENT INT64_C(-1) // must not exist

enum ox_meta_flags {
    OX_META_EPHEMERAL = 1,  // lives as long as the session; has no children
    OX_META_SEQUENTIAL = 2, // ten decimal digits, rising per parent, are appended to the path
};

struct ox_meta_stat {
    int64_t version;            // of the value
    uint64_t created_ms;        // wall time
    uint64_t modified_ms;       // wall time
    uint64_t ephemeral_session; // 0: persistent
};

// Paths are absolute UTF-8, segments separated by '/', no empty segment, no "." or "..", at most OX_NODE_NAME_BYTES_MAX bytes a segment.
// Missing parents are made with empty values. A path that isn't valid: INVALID. The root "/" can be read, listed and watched only.
// A flag counts when the node is made: a put on a node that exists keeps its kind and its session (compare stat.ephemeral_session). A child below an
// ephemeral node: INVALID. A multi's CHECK with OX_META_ANY always passes. Any call: SHUTDOWN (store closed or process dead), DISCONNECTED (not taken
// effect), SESSION_EXPIRED, IO (the store failed and takes nothing more), CORRUPT.

// get: value and version of a node. Errors: NOT_FOUND.
struct ox_meta_get {
    struct ox_op op;
    struct ox_buf value;      // result: owned by the caller after success
    struct ox_meta_stat stat; // result
};
// put: creates or replaces. Errors: BAD_VERSION (a wrong version; EXISTS never), METADATA_FULL, TOO_BIG, UNKNOWN_OUTCOME (re-read before telling anybody).
struct ox_meta_put {
    struct ox_op op;
    struct ox_meta_stat stat; // result
    char *path;               // result: the real path (sequential); owned by the caller after success
};
// delete. Errors: NOT_FOUND, BAD_VERSION, NOT_EMPTY, UNKNOWN_OUTCOME.
struct ox_meta_del {
    struct ox_op op;
};
// children: names (last segments), sorted bytewise. Errors: NOT_FOUND.
struct ox_meta_children {
    struct ox_op op;
    char **names; // result: count strings and the array, to be freed with ox_meta_names_free
    size_t count; // result
};
// multi: all or none. Errors: that of the first step that failed, whose index is in `failed`.
enum ox_meta_kind { OX_META_CHECK, OX_META_PUT, OX_META_DELETE };
struct ox_meta_step {
    enum ox_meta_kind kind;
    const char *path;    // borrowed until done
    struct ox_buf value; // put: borrowed until done
    int64_t expected;    // version, OX_META_ANY or OX_META_ABSENT
    int flags;           // put
    int64_t ret_version; // result: version after a put
};
struct ox_meta_multi {
    struct ox_op op;
    struct ox_meta_step *steps; // borrowed until done
    size_t count;
    size_t failed; // result
};

enum ox_meta_event { OX_META_CHANGED, OX_META_DELETED, OX_META_CHILDREN_CHANGED, OX_META_LOST };
// A watch on one path: fires for creation, change, deletion and changes of the set of children, until closed. A hint: events may be merged; after LOST
// (session re-established) re-read. Re-armed by the store itself.
struct ox_meta_watch {
    void (*fired)(struct ox_meta_watch *w, enum ox_meta_event event); // public: from the loop
    char *path;                                                       // private
    struct ox_meta *meta;                                             // private
    struct ox_link link;                                              // private
};

enum ox_meta_session { OX_META_CONNECTED, OX_META_DISCONNECTED, OX_META_EXPIRED };
// A listener for session changes.
struct ox_meta_listener {
    void (*session)(struct ox_meta_listener *l, enum ox_meta_session state); // public: from the loop
    struct ox_link link;                                                     // private
};

struct ox_meta_body {
    void (*get)(struct ox_meta *meta, struct ox_meta_get *op, const char *path);
    void (*put)(struct ox_meta *meta, struct ox_meta_put *op, const char *path, struct ox_buf value, int64_t expected,
                int flags);
    void (*del)(struct ox_meta *meta, struct ox_meta_del *op, const char *path, int64_t expected);
    void (*children)(struct ox_meta *meta, struct ox_meta_children *op, const char *path);
    void (*multi)(struct ox_meta *meta, struct ox_meta_multi *op);
    void (*watch)(struct ox_meta *meta, struct ox_meta_watch *w);
    void (*unwatch)(struct ox_meta *meta, struct ox_meta_watch *w);
    void (*close)(struct ox_meta *meta, struct ox_op *op);
};

// A store; bodies embed it first.
struct ox_meta {
    const struct ox_meta_body *body;
    struct ox_loop *loop;
    enum ox_meta_session session; // read-only
    uint64_t session_id;          // read-only, never 0
    struct ox_list listeners;     // private
    struct ox_list watches;       // private
};

// Opens the store that a URL names: "lmdb:DIR" (made if it is not there; one process at a time), "lmdb:DIR?readonly" (for tools: no session, ephemerals
// stay, every write answers ACCESS) or "memory:". *ret is set before op finishes with OK. What went wrong is also logged with the directory's name
// (events metastore.open, metastore.url). Errors: INVALID (unknown scheme), LOCKED, IO, ACCESS, NO_SPACE, CORRUPT, NOT_FOUND (readonly), UNSUPPORTED (a newer format).
void ox_meta_open(struct ox_loop *loop, struct ox_op *op, const char *url, struct ox_meta **ret);
// Ends the session (its ephemerals go), waits for what is in flight, frees the store.
void ox_meta_close(struct ox_meta *meta, struct ox_op *op);

// The five calls: path and value are copied or referenced before they return; op->op must be initialised; strings in results are the caller's.
// Reads a node.
void ox_meta_get(struct ox_meta *meta, struct ox_meta_get *op, const char *path);
// Creates a node or replaces its value. Errors beside those above: TOO_BIG (above OX_NODE_VALUE_BYTES_MAX).
void ox_meta_put(struct ox_meta *meta, struct ox_meta_put *op, const char *path, struct ox_buf value, int64_t expected,
                 int flags);
// Removes a node without children.
void ox_meta_del(struct ox_meta *meta, struct ox_meta_del *op, const char *path, int64_t expected);
// Lists the names below a node.
void ox_meta_children(struct ox_meta *meta, struct ox_meta_children *op, const char *path);
// Runs all steps or none.
void ox_meta_multi(struct ox_meta *meta, struct ox_meta_multi *op);
// Frees what a children operation returned.
void ox_meta_names_free(char **names, size_t count);
// Starts a watch (path copied).
void ox_meta_watch(struct ox_meta *meta, struct ox_meta_watch *w, const char *path);
// Ends a watch; it doesn't fire any more.
void ox_meta_unwatch(struct ox_meta_watch *w);
// Adds a session listener.
void ox_meta_listen(struct ox_meta *meta, struct ox_meta_listener *l);
// Removes it.
void ox_meta_unlisten(struct ox_meta *meta, struct ox_meta_listener *l);
// True if a path is valid for a store.
bool ox_meta_path_valid(const char *path);

#endif
