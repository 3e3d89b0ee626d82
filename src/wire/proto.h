// proto.h - the door to protobuf: generated messages, an arena with a limit to unpack into, and guarded unpacking.
// Messages of Pulsar's protocol are Oxpb__..., those of managed ledgers Mldata__... (spec/proto/*.proto).
#ifndef WIRE_PROTO_H
#define WIRE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/mldata.pb-c.h"
#include "proto/pulsar_api.pb-c.h"

// Memory for messages: grows in blocks, is given back as a whole, never hands out more than its limit.
// Blocks do not move: structs that embed an arena do not either (the allocator points at it).
struct ox_arena {
    ProtobufCAllocator allocator;  // private: what unpacking is given
    struct ox_arena_block *blocks; // private: newest first
    size_t used;                   // read-only: bytes handed out since the last reset
    size_t limit;                  // public: bytes
    bool over;                     // read-only: a request was refused since the last reset
};

// Makes an empty arena that hands out at most limit bytes between two resets.
void ox_arena_init(struct ox_arena *arena, size_t limit);
// Takes back all that was handed out; keeps one small block.
void ox_arena_reset(struct ox_arena *arena);
// Gives all memory back.
void ox_arena_fini(struct ox_arena *arena);
// n bytes, not initialised, aligned for any type; NULL if the limit would be passed. Valid until the next reset.
void *ox_arena_alloc(struct ox_arena *arena, size_t n);
// count * size zeroed bytes; NULL if the limit would be passed or the product overflows.
void *ox_arena_calloc(struct ox_arena *arena, size_t count, size_t size);
// A zero-terminated copy of len bytes; NULL if the limit would be passed.
char *ox_arena_strndup(struct ox_arena *arena, const char *s, size_t len);

// Messages nested deeper than this are malformed: unpacking recurses.
#define OX_PROTO_DEPTH_MAX 16

// Unpacks a message of `type` (&oxpb__command_producer__descriptor, ...) into the arena; *ret_message, a pointer to the generated struct
// (give its address: `Oxpb__CommandProducer *m; ... &m`), is valid until the arena's next reset. Unknown fields are kept in it.
// Strings are checked to be UTF-8 without zero bytes. Errors: MALFORMED; TOO_BIG (more memory than the arena's limit).
enum ox_err ox_proto_unpack(const ProtobufCMessageDescriptor *type, struct ox_arena *arena, const void *data,
                            size_t len, void *ret_message) OX_CHECKED;
// The message's bytes in a slice of its own; the caller owns one reference. Required fields must be set.
struct ox_buf ox_proto_pack(const ProtobufCMessage *message);

#endif
