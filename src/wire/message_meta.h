// message_meta.h - what the broker and the clients need of a message's metadata, without allocation.
#ifndef WIRE_MESSAGE_META_H
#define WIRE_MESSAGE_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

// Bytes inside the scanned buffer; data NULL: the field is absent.
struct ox_span {
    const uint8_t *data;
    size_t len;
};

// The scanned fields of a MessageMetadata. Spans are borrowed from it. A number that is absent has the protocol's default.
struct ox_message_meta {
    struct ox_span producer_name; // always present
    struct ox_span partition_key; // base64 if is_key_base64
    struct ox_span ordering_key;
    struct ox_span replicated_from;
    struct ox_span uuid;
    struct ox_span schema_version;
    uint64_t sequence_id;         // of the first message of a batch
    uint64_t highest_sequence_id; // of the last message of a batch; valid if has_highest
    uint64_t publish_time_ms, event_time_ms;
    int64_t deliver_at_ms;        // valid if has_deliver_at
    uint64_t txn_most, txn_least; // valid if has_txn
    uint32_t compression;         // an enum ox_compression
    uint32_t uncompressed_size;
    int32_t num_messages;                            // 1 if has_num_messages is false
    int32_t marker_type;                             // valid if has_marker
    int32_t num_chunks, chunk_id, total_chunk_bytes; // valid if is_chunk
    bool has_num_messages;                           // true: the payload is a batch, even one of one message
    bool has_highest, has_deliver_at, has_marker, has_txn;
    bool is_chunk, is_encrypted, is_null_value, is_null_key, is_key_base64;
};

// Scans a MessageMetadata. Errors: MALFORMED (also: a required field is missing, a field has another type than the protocol's,
// num_messages_in_batch below 1).
enum ox_err ox_message_meta_scan(const void *metadata, size_t len, struct ox_message_meta *ret) OX_CHECKED;

// Checks a MessageMetadata exactly as ox_message_meta_scan does and tells only num_messages: what a broker needs of each send. Errors: MALFORMED.
enum ox_err ox_message_meta_count(const void *metadata, size_t len, uint32_t *ret_messages) OX_CHECKED;

// The last sequence id of the entry: highest_sequence_id if told and not below, else sequence_id.
uint64_t ox_message_meta_last_sequence(const struct ox_message_meta *m);

// Walks key-value pairs of a MessageMetadata (field 4) or a SingleMessageMetadata (field 1).
struct ox_property_iter {
    const uint8_t *at, *end; // private
    uint32_t field;          // private
};
#define OX_PROPERTIES_OF_MESSAGE 4
#define OX_PROPERTIES_OF_SINGLE 1
// Starts at the metadata's bytes; field is one of the OX_PROPERTIES_....
struct ox_property_iter ox_property_iter(const void *metadata, size_t len, uint32_t field);
// The next pair, borrowed; false at the end or at damaged bytes.
bool ox_property_next(struct ox_property_iter *it, struct ox_span *ret_key, struct ox_span *ret_value);

// One message of a batch.
struct ox_batch_message {
    struct ox_span metadata; // SingleMessageMetadata's bytes, for properties
    struct ox_span payload;
    struct ox_span partition_key, ordering_key;
    uint64_t sequence_id; // valid if has_sequence
    uint64_t event_time_ms;
    bool has_sequence, is_compacted_out, is_null_value, is_null_key, is_key_base64;
};
// The message at offset *at of a decompressed batch payload; moves *at behind it. Spans are borrowed. Errors: MALFORMED, END_OF_FILE (no more bytes).
enum ox_err ox_batch_next(const void *payload, size_t len, size_t *at, struct ox_batch_message *ret) OX_CHECKED;

#endif
