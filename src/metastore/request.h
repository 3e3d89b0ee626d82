// request.h - the folder's own eyes: one copied call on a store, from the loop to the engine and back.
#ifndef METASTORE_REQUEST_H
#define METASTORE_REQUEST_H

#include "metastore/metastore.h"

enum ox_meta_request_kind { OX_META_REQ_GET, OX_META_REQ_CHILDREN, OX_META_REQ_WRITE, OX_META_REQ_CLOSE };

// One change of a write request; put and delete are writes of one edit, a multi has several.
struct ox_meta_edit {
    enum ox_meta_kind kind;
    char *path;          // owned
    struct ox_buf value; // owned reference
    int64_t expected;
    int flags;
    struct ox_meta_stat stat; // result of a put
    char *real_path;          // result of a put: owned
};

// An event that a write brings about; fired on the loop when the write is durable.
struct ox_meta_note {
    char *path; // owned
    enum ox_meta_event event;
};

struct ox_meta_request {
    struct ox_link link;
    enum ox_meta_request_kind kind;
    struct ox_op *op;                           // the caller's operation, begun
    void (*deliver)(struct ox_meta_request *r); // hands the results to the typed operation; NULL: none
    char *path;                                 // get, children: owned
    struct ox_meta_edit *edits;                 // write
    size_t edit_count;
    enum ox_err err; // result, as are all below
    size_t failed;   // index of the edit that failed
    struct ox_buf value;
    struct ox_meta_stat stat;
    char **names;
    size_t name_count, name_cap;
    struct ox_meta_note *notes;
    size_t note_count, note_cap;
    uint64_t due_ns;   // memory: when it is applied
    uint64_t reply_ns; // memory: how long the answer takes
    int outcome;       // memory: what the fault hook chose
};

// A store whose calls are all turned into requests; bodies embed it first.
struct ox_meta_store {
    struct ox_meta base;
    void (*submit)(struct ox_meta_store *store, struct ox_meta_request *give_r);
};

// The calls of struct ox_meta_body as requests (metastore rule 1).
void ox_meta_request_get(struct ox_meta *meta, struct ox_meta_get *op, const char *path);
// As above: a write of one edit.
void ox_meta_request_put(struct ox_meta *meta, struct ox_meta_put *op, const char *path, struct ox_buf value,
                         int64_t expected, int flags);
// As above: a write of one edit.
void ox_meta_request_del(struct ox_meta *meta, struct ox_meta_del *op, const char *path, int64_t expected);
// As above.
void ox_meta_request_children(struct ox_meta *meta, struct ox_meta_children *op, const char *path);
// As above: a write of all steps.
void ox_meta_request_multi(struct ox_meta *meta, struct ox_meta_multi *op);
// As above: the last request of a store.
void ox_meta_request_close(struct ox_meta *meta, struct ox_op *op);
// For stores that see all changes themselves: nothing to do for one more watch.
void ox_meta_request_watch(struct ox_meta *meta, struct ox_meta_watch *w);

// Bytes that a write may add, to be held against the room that is left.
size_t ox_meta_request_bytes(const struct ox_meta_request *r);
// Forgets the results, for a second try.
void ox_meta_request_reset(struct ox_meta_request *r);
// Hands results to the caller's operation, finishes it and frees the request. From the loop. Firing the notes is the store's.
void ox_meta_request_finish(struct ox_meta_request *give_r);
// Remembers an event on the first path_len bytes of a path.
void ox_meta_request_note(struct ox_meta_request *r, const char *path, size_t path_len, enum ox_meta_event event);
// Adds a child's name to the results.
void ox_meta_request_add_name(struct ox_meta_request *r, const char *name, size_t len);
// Sorts the names bytewise.
void ox_meta_request_sort_names(struct ox_meta_request *r);

// Prepares the shared part of a store.
void ox_meta_init(struct ox_meta *meta, const struct ox_meta_body *body, struct ox_loop *loop);
// Unlinks watches and listeners that are left.
void ox_meta_fini(struct ox_meta *meta);
// Fires all watches on a path.
void ox_meta_fire(struct ox_meta *meta, const char *path, enum ox_meta_event event);
// Fires LOST on all watches.
void ox_meta_fire_lost(struct ox_meta *meta);
// Sets the session's state and tells the listeners if it is another one.
void ox_meta_set_session(struct ox_meta *meta, enum ox_meta_session state);

// Opens "memory:" and "lmdb:" (dir without scheme).
void ox_meta_memory_open(struct ox_loop *loop, struct ox_op *op, struct ox_meta **ret);

#endif
