// pulsar_frame.h - frames of Pulsar's binary protocol: cutting them out of a byte stream, and the entry behind a command.
//
// | bytes | field |
// |---|---|
// | 4 | total: bytes that follow |
// | 4 | n: bytes of the command |
// | n | BaseCommand |
// | rest | nothing, or an entry |
//
// An entry (as sent, as stored, as delivered; all numbers big-endian):
//
// | bytes | field |
// |---|---|
// | 2 + 4 + k | 0x0e02, k, BrokerEntryMetadata: only where the broker adds it |
// | 2 + 4 | 0x0e01, CRC-32C of all that follows: optional |
// | 4 + m | m, MessageMetadata |
// | rest | payload |
#ifndef WIRE_PULSAR_FRAME_H
#define WIRE_PULSAR_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

#define OX_FRAME_HEAD_BYTES 8 // total and command size
#define OX_MAGIC_CHECKSUM 0x0e01
#define OX_MAGIC_BROKER_ENTRY 0x0e02
#define OX_CHECKSUM_HEAD_BYTES 6 // magic and checksum

// Cuts frames out of what is read into its slabs. Frames share the slab they were read into: one copy from the socket, no other.
struct ox_frame_reader {
    struct ox_slab *slab;     // private: being filled, or NULL
    size_t start, end;        // private: bytes read and not yet cut are slab->data[start..end)
    size_t frame_bytes_max;   // read-only: limit of `total`
    size_t command_bytes_max; // read-only: limit of the command's size
};

// Makes a reader without memory. Limits in bytes: of one frame (OX_MESSAGE_BYTES_MAX + OX_FRAME_SLACK_BYTES for a broker) and of its command (OX_COMMAND_BYTES_MAX).
void ox_frame_reader_init(struct ox_frame_reader *r, size_t frame_bytes_max, size_t command_bytes_max);
// Gives the reader's own reference to its slab back; frames live on.
void ox_frame_reader_fini(struct ox_frame_reader *r);
// Where the socket may read into: *ret_len > 0 bytes at *ret_data, valid until the next call. Slabs have OX_SLAB_BYTES, or the size of the frame
// being read if that is more; a slab's untouched pages take no memory, and a slab that nobody else holds is used again.
void ox_frame_reader_space(struct ox_frame_reader *r, uint8_t **ret_data, size_t *ret_len);
// n bytes were read to where ox_frame_reader_space said.
void ox_frame_reader_filled(struct ox_frame_reader *r, size_t n);
// The next whole frame without its `total`: the caller owns one reference. Empty if more bytes are needed. Call until empty or error.
// Errors (the connection cannot go on): TOO_BIG (frame or command above its limit; told by the first 8 bytes), MALFORMED.
enum ox_err ox_frame_reader_next(struct ox_frame_reader *r, struct ox_buf *ret_frame) OX_CHECKED;
// Gives the slab back if no part of a frame is in it: for connections that have fallen silent.
void ox_frame_reader_idle(struct ox_frame_reader *r);

// The parts of a frame from ox_frame_reader_next; both are borrowed (no references of their own), the body may be empty. Errors: MALFORMED.
static inline OX_CHECKED enum ox_err ox_frame_split(struct ox_buf frame, struct ox_buf *ret_command, struct ox_buf *ret_body)
{
    if (frame.len < 4)
        return OX_E_MALFORMED;
    size_t command = ox_get_be32(frame.data);
    if (command > frame.len - 4)
        return OX_E_MALFORMED;
    *ret_command = (struct ox_buf){frame.slab, frame.data + 4, command};
    *ret_body = (struct ox_buf){frame.slab, frame.data + 4 + command, frame.len - 4 - command};
    return OX_OK;
}

// What a broker adds before an entry.
struct ox_broker_entry {
    bool has_timestamp, has_index;
    uint64_t timestamp_ms; // when the broker took it
    uint64_t index;        // of the entry's last message
};

// Room for ox_broker_entry_put.
#define OX_BROKER_ENTRY_BYTES_MAX 28
// Writes the 0x0e02 part at p (room for OX_BROKER_ENTRY_BYTES_MAX); returns its bytes. Fields that are not set are left out.
size_t ox_broker_entry_put(uint8_t *p, const struct ox_broker_entry *e);

// An entry taken apart. All slices are borrowed from the body.
struct ox_message_view {
    struct ox_buf entry;    // without the broker's part: what the producer sent
    struct ox_buf plain;    // without the checksum too: for clients that do not know checksums
    struct ox_buf metadata; // MessageMetadata's bytes
    struct ox_buf payload;
    bool has_broker_entry, has_checksum;
    struct ox_broker_entry broker_entry;
    uint32_t checksum;
};

// Takes an entry apart; with `verify` its checksum, if there is one, is computed. Errors: MALFORMED, CHECKSUM.
enum ox_err ox_message_parse(struct ox_buf body, bool verify, struct ox_message_view *ret_view) OX_CHECKED;

#endif
