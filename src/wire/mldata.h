// mldata.h - nodes of managed ledgers and cursors, and entries of cursor ledgers, between bytes and structs.
//
// A node is a plain message, or in the form that begins with 0x4778 (a plain message never does):
//
// | bytes | field |
// |---|---|
// | 2 | 0x4778 |
// | 4 | n, big-endian |
// | n | header: 1 compression type, 2 uncompressed size |
// | rest | the message, compressed |
//
// Types 0 to 4 are Pulsar's (enum ox_compression). Type OX_RECORD_TYPE_GUARDED is ours: the message stands there as it is, and a broker
// that is not Oxbow refuses the record instead of acting on what it does not understand.
#ifndef WIRE_MLDATA_H
#define WIRE_MLDATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/proto.h"

#define OX_RECORD_MAGIC 0x4778
#define OX_RECORD_TYPE_GUARDED 79

// How a record was, or shall be, written.
enum ox_record_form {
    OX_RECORD_PLAIN,
    OX_RECORD_COMPRESSED, // read only
    OX_RECORD_GUARDED,
};

// The plain bytes inside a record of any form; the caller owns one reference. bytes_max bounds the plain bytes. Errors: CORRUPT, TOO_BIG, UNSUPPORTED (a type of
// which we know nothing).
enum ox_err ox_record_open(struct ox_buf record, size_t bytes_max, struct ox_buf *ret_plain,
                           enum ox_record_form *ret_form) OX_CHECKED;
// A record around plain bytes in the form PLAIN or GUARDED; the caller owns one reference.
struct ox_buf ox_record_close(struct ox_buf plain, enum ox_record_form form);

// Decode a topic's node (empty bytes: no ledgers), a cursor's node, an entry of a cursor ledger. The struct lives in the arena until its reset.
// Unknown fields, nested ones too, are kept and written again by the encoders. ret_form may be NULL.
// Errors: CORRUPT, UNSUPPORTED (unknown form), TOO_BIG (more memory than the arena's limit, or plain bytes above OX_NODE_VALUE_BYTES_MAX).
enum ox_err ox_ledgers_decode(struct ox_arena *arena, struct ox_buf node, Mldata__ManagedLedgerInfo **ret,
                              enum ox_record_form *ret_form) OX_CHECKED;
enum ox_err ox_cursor_decode(struct ox_arena *arena, struct ox_buf node, Mldata__ManagedCursorInfo **ret,
                             enum ox_record_form *ret_form) OX_CHECKED;
enum ox_err ox_position_decode(struct ox_arena *arena, struct ox_buf entry, Mldata__PositionInfo **ret) OX_CHECKED;

// The bytes of a node in the form PLAIN or GUARDED, or of a cursor ledger's entry; the caller owns one reference. The plain form is what Pulsar 4.0.7 writes, byte for byte.
struct ox_buf ox_ledgers_encode(const Mldata__ManagedLedgerInfo *info, enum ox_record_form form);
struct ox_buf ox_cursor_encode(const Mldata__ManagedCursorInfo *info, enum ox_record_form form);
struct ox_buf ox_position_encode(const Mldata__PositionInfo *info);

#endif
