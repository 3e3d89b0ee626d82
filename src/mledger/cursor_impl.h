// cursor_impl.h - the hidden half of a cursor, for cursor*.c only.
#ifndef MLEDGER_CURSOR_IMPL_H
#define MLEDGER_CURSOR_IMPL_H

#include "io/seq.h"
#include "mledger/cursor_int.h"
#include "mledger/follow.h"
#include "wire/mldata.h"

#define CURSOR_MAGIC OX_MAGIC('C', 'U', 'R', 'S')

// What the running flush sequence is for.
enum cursor_job {
    CURSOR_JOB_NONE,
    CURSOR_JOB_FLUSH,  // the position as of flushing_version becomes durable
    CURSOR_JOB_CREATE, // the node of a new cursor is written
    CURSOR_JOB_CLOSE,  // the last flush, then the cursor is freed
    CURSOR_JOB_REMOVE, // node and ledger are deleted, then the cursor is freed
};

// How far a cursor has come with following the active place.
enum cursor_follow_step {
    CURSOR_FOLLOW_MAKING,    // its next ledger is being made and begun, beside the flushes
    CURSOR_FOLLOW_READY,     // the next flush switches over to it
    CURSOR_FOLLOW_INTO_NODE, // the next flush puts the position into the node
    CURSOR_FOLLOW_SWITCHING, // that flush runs
};
struct cursor_follow {
    struct ox_seq seq;
    struct cursor_impl *impl;
    struct ox_op *op; // ends with the following
    enum cursor_follow_step step;
    struct ox_router_create create;
    struct ox_append append;
    struct ox_buf first; // first entry of the next ledger
    struct ox_pos first_pos;
    struct ox_ledger *handle; // of the next ledger, until a flush has it
    struct ox_location where;
    enum ox_err err; // why the switch went back
};

// What a flush asks of others.
struct cursor_io {
    struct ox_meta_get get;
    struct ox_meta_put put;
    struct ox_meta_del del;
    struct ox_router_create create;
    struct ox_append append;
};

struct cursor_impl {
    uint32_t magic;
    struct ox_cursor *cursor;  // back
    char *path;                // node
    int64_t node_version;      // OX_META_ABSENT before the node exists
    enum ox_err failed;        // not OK: the store lost us; every ack ends with it
    struct ox_location where;  // cursor ledger named by the node; id -1 = none
    struct ox_ledger *handle;  // writer's handle of `where` while OPEN
    int64_t next_entry;        // of the cursor ledger
    uint64_t ledger_since_ns;  // when the cursor ledger was made
    struct ox_pos stored_pos;  // mark-delete position as last stored
    uint64_t version;          // rises with every change
    uint64_t stored_version;   // changes up to it are durable
    uint64_t flushing_version; // changes up to it are in the flush that runs
    uint64_t flushed_ns;       // start of the last flush
    struct ox_list acks;       // struct ox_cursor_ack that wait for stored_version, by version
    struct ox_timer timer;     // the next flush
    struct ox_timer pause;     // before the node is read again
    uint32_t rereads;          // tries to read it since its outcome is unknown
    bool properties_dirty;     // the node must be written even if the position is in a ledger
    bool properties_writing;   // what `put` writes holds properties that no node has held before
    bool node_stale; // the stored position is none of this log any more: what was taken for it is stored at close, as Pulsar does
    enum cursor_job job;             // what seq runs for
    struct ox_op *ending;            // the close's or removal's operation
    bool unloading;                  // the end is a removal
    struct ox_cursor_open *creating; // the open that waits for the new node
    struct ox_cursor_read *reading;  // the pending read

    struct ox_seq seq;
    struct cursor_io *io;       // while seq runs
    struct ox_buf node_value;   // the node as last read or written: what the next value is made from
    struct ox_buf node_writing; // what `put` writes
    struct ox_buf record;       // PositionInfo being stored
    struct ox_buf first_record; // PositionInfo that begins a cursor ledger
    struct ox_pos record_pos;
    struct ox_ledger *new_handle; // being made current
    struct ox_location new_where;
    struct ml_follower follower;  // durable cursors
    struct cursor_follow *follow; // or NULL
};

// The hidden half, checked.
struct cursor_impl *cursor_impl(const struct ox_cursor *c);

// cursor.c
// A fresh cursor in memory, linked into ml->cursors.
struct ox_cursor *cursor_new(struct ox_mledger *ml, const char *name, bool durable, struct ox_pos mark_delete);
// The first position to read behind a mark-delete position; in a compacted log it may lie in a ledger that is gone.
struct ox_pos cursor_after(const struct ox_mledger *ml, struct ox_pos mark_delete);
// Unlinks and frees; nothing may be pending.
void cursor_free(struct ox_cursor *c);
// Adds acknowledged entries first..last of a ledger behind mark_delete without looking further.
void cursor_add_hole(struct ox_cursor *c, int64_t ledger, int64_t first, int64_t last);
// Moves mark_delete over what follows it without a gap, forgets holes at or before it, lifts the read position behind it.
void cursor_settle(struct ox_cursor *c);
// Notes a change; ack (may be NULL) ends when it is durable.
void cursor_changed(struct ox_cursor *c, struct ox_cursor_ack *ack);
// Likewise for an operation of the caller's.
void cursor_change_with_op(struct ox_cursor *c, struct ox_op *op);
// Likewise for an acknowledgement that changes nothing: it ends when what it repeats is durable.
void cursor_unchanged(struct ox_cursor *c, struct ox_cursor_ack *ack);
// Why nothing is acknowledged any more; OK: it is.
enum ox_err cursor_refuses(const struct ox_cursor *c);
// True if an entry exists and is not acknowledged.
bool cursor_has_entry(const struct ox_cursor *c, struct ox_pos p);
// Custom metadata of a cursor ledger, also what owner checks expect.
void cursor_custom(const struct ox_cursor *c, struct ox_kv *ret);

// cursor_parts.c
// Forgets the sets of entries that are acknowledged or not there (any more).
void cursor_forget_parts(struct ox_cursor *c);
// An upper bound of what the sets take in a record.
size_t cursor_parts_bytes_max(const struct ox_cursor *c);
// The sets of the first `max` entries for a record, in the arena.
Mldata__BatchedEntryDeletionIndexInfo **cursor_pack_parts(const struct ox_cursor *c, struct ox_arena *arena, size_t max,
                                                          size_t *ret_count);
// Takes a record's sets.
void cursor_take_parts(struct ox_cursor *c, Mldata__BatchedEntryDeletionIndexInfo **parts, size_t count);

// cursor_store.c
// Starts or schedules a flush for what is not durable yet.
void cursor_schedule(struct ox_cursor *c);
// Ends waiting acks up to stored_version with OK, or all with an error.
void cursor_answer(struct ox_cursor *c, enum ox_err err);

// Ends or removes a cursor that was asked to, if nothing of it is under way.
void cursor_end_if_quiet(struct cursor_impl *impl);
// Deletes a cursor ledger that no node names (any more), in the background.
void cursor_discard(const struct cursor_impl *impl, struct ox_location where);

// cursor_follow.c
// True if it waits for a flush; while it still makes the next ledger; while a flush switches over.
bool cursor_follow_waits(const struct cursor_impl *impl);
bool cursor_follow_is_making(const struct cursor_impl *impl);
bool cursor_follow_is_switching(const struct cursor_impl *impl);
// For a flush: takes over the ledger that was begun (new_handle, new_where), whose entry 1 comes next; or is to write the node. False: an ordinary flush.
bool cursor_follow_take(struct cursor_impl *impl);
bool cursor_follow_into_node(struct cursor_impl *impl);
// The following is over; a ledger that was begun and not taken is deleted. drop: only if it waits for a flush.
void cursor_follow_end(struct cursor_impl *impl, enum ox_err err);
void cursor_follow_drop(struct cursor_impl *impl, enum ox_err err);

// cursor_node.c: pure functions on nodes and entries, for cursors that are open and for those that are not.
// True for names that clients neither see nor change.
bool cursor_key_is_internal(const char *key);
// A property of a node, in the arena.
Mldata__StringProperty *cursor_node_property(struct ox_arena *arena, const char *name, const char *value);
// Where the cursor ledger is (id -1: none): its stamp's place, else the bootstrap place. Errors: NO_PLACE, CORRUPT (an impossible physical id).
enum ox_err cursor_node_location(const struct ox_ml_factory *f, const Mldata__ManagedCursorInfo *info,
                                 struct ox_location *ret) OX_CHECKED;
// The same from the node's bytes. Errors also: CORRUPT.
enum ox_err cursor_node_find(const struct ox_ml_factory *f, struct ox_buf node, struct ox_location *ret) OX_CHECKED;
// Replaces what the properties say of the ledger's place: stamps where they are on, the physical id where it differs; nothing without a ledger.
void cursor_node_locate(const struct ox_ml_factory *f, Mldata__ManagedCursorInfo *info, struct ox_arena *arena,
                        struct ox_location where);
// The node's bytes, guarded where Pulsar would misread them; the caller's reference.
struct ox_buf cursor_node_encode(const struct ox_ml_factory *f, const Mldata__ManagedCursorInfo *info,
                                 struct ox_location where);
// True if an entry of a cursor ledger can be understood.
bool cursor_entry_is_position(struct ox_buf entry);
// True if the whole of an entry of a cursor ledger (empty: none was ever written) can stand in that node.
bool cursor_node_holds(const struct ox_ml_factory *f, struct ox_buf node, struct ox_buf entry);
// The node with another cursor ledger, whose last entry is `entry`; where.id -1: with the entry's position in it (empty: with the one it has already).
// All else of it stays, byte for byte. Errors: CORRUPT.
enum ox_err cursor_node_move(const struct ox_ml_factory *f, struct ox_buf node, struct ox_buf entry,
                             struct ox_location where, struct ox_buf *ret) OX_CHECKED;

// cursor_record.c
// A position in the arena.
Mldata__NestedPositionInfo *cursor_nested(struct ox_arena *arena, int64_t ledger, int64_t entry);
// The PositionInfo of a mark-delete position with the ranges known now, packed; the slice is the caller's.
struct ox_buf cursor_pack_position(const struct ox_cursor *c, struct ox_pos mark_delete);
// The node's value: with_position: cursor ledger -1 and everything in it; otherwise cursor ledger `where` and the snapshot position.
struct ox_buf cursor_pack_node(const struct ox_cursor *c, bool with_position, struct ox_location where,
                               struct ox_pos snapshot);
// Takes a PositionInfo's position and ranges as the cursor's state. Errors: CORRUPT.
enum ox_err cursor_take_position(struct ox_cursor *c, struct ox_buf record) OX_CHECKED;
// Takes a node's value: properties, position where it is in the node, and where the cursor ledger is. Errors: CORRUPT, NO_PLACE.
enum ox_err cursor_take_node(struct ox_cursor *c, struct ox_buf value, struct ox_location *ret_where) OX_CHECKED;
// True if a node is that of a cursor which has never stored more than a position.
bool cursor_node_is_unused(struct ox_buf value);
// True if the ranges fit into the node.
bool cursor_fits_node(const struct ox_cursor *c);

#endif
