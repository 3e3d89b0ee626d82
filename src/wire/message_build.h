// message_build.h - building entries and Send frames: for our client, the tools and tests.
#ifndef WIRE_MESSAGE_BUILD_H
#define WIRE_MESSAGE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/proto.h"

// An entry with checksum: metadata and payload (already compressed if the metadata says so). The caller owns one reference.
struct ox_buf ox_entry_build(const Oxpb__MessageMetadata *metadata, const void *payload, size_t len);

// A whole Send frame around such an entry. The caller owns one reference.
struct ox_buf ox_send_build(const Oxpb__CommandSend *send, const Oxpb__MessageMetadata *metadata, const void *payload,
                            size_t len);

// A Send frame around an entry that exists. The caller owns one reference.
struct ox_buf ox_send_wrap(const Oxpb__CommandSend *send, struct ox_buf entry);

// Appends one message to a batch payload; payload_size of the metadata is set to len. The entry's metadata must then have num_messages_in_batch.
void ox_batch_add(struct ox_str *batch, Oxpb__SingleMessageMetadata *metadata, const void *payload, size_t len);

#endif
