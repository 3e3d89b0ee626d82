// message_build.c - entries, batches and Send frames, each in one allocation.
#include "wire/message_build.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/pulsar_frame.h"

static size_t entry_size(size_t metadata_len, size_t payload_len)
{
    return OX_CHECKSUM_HEAD_BYTES + 4 + metadata_len + payload_len;
}

static void entry_put(uint8_t *p, const Oxpb__MessageMetadata *metadata, size_t metadata_len, const void *payload, size_t len)
{
    uint8_t *summed = p + OX_CHECKSUM_HEAD_BYTES;
    ox_put_be32(summed, (uint32_t)metadata_len);
    OX_ASSERT(oxpb__message_metadata__pack(metadata, summed + 4) == metadata_len);
    if (len)
        memcpy(summed + 4 + metadata_len, payload, len);
    ox_put_be16(p, OX_MAGIC_CHECKSUM);
    ox_put_be32(p + 2, ox_crc32c(0, summed, 4 + metadata_len + len));
}

struct ox_buf ox_entry_build(const Oxpb__MessageMetadata *metadata, const void *payload, size_t len)
{
    uint8_t *to;
    size_t metadata_len = oxpb__message_metadata__get_packed_size(metadata);
    struct ox_buf entry = ox_buf_new(entry_size(metadata_len, len), &to);
    entry_put(to, metadata, metadata_len, payload, len);
    return entry;
}

// A frame with room for a body of body_len bytes at *ret_body.
static struct ox_buf send_frame(const Oxpb__CommandSend *send, size_t body_len, uint8_t **ret_body)
{
    Oxpb__BaseCommand command = OXPB__BASE_COMMAND__INIT;
    command.type = OXPB__BASE_COMMAND__TYPE__SEND;
    command.send = (Oxpb__CommandSend *)(uintptr_t)send;
    uint8_t *to;
    size_t command_len = oxpb__base_command__get_packed_size(&command);
    OX_ASSERT(4 + command_len + body_len <= UINT32_MAX);
    struct ox_buf frame = ox_buf_new(OX_FRAME_HEAD_BYTES + command_len + body_len, &to);
    ox_put_be32(to, (uint32_t)(4 + command_len + body_len));
    ox_put_be32(to + 4, (uint32_t)command_len);
    oxpb__base_command__pack(&command, to + OX_FRAME_HEAD_BYTES);
    *ret_body = to + OX_FRAME_HEAD_BYTES + command_len;
    return frame;
}

struct ox_buf ox_send_build(const Oxpb__CommandSend *send, const Oxpb__MessageMetadata *metadata, const void *payload,
                            size_t len)
{
    uint8_t *to;
    size_t metadata_len = oxpb__message_metadata__get_packed_size(metadata);
    struct ox_buf frame = send_frame(send, entry_size(metadata_len, len), &to);
    entry_put(to, metadata, metadata_len, payload, len);
    return frame;
}

struct ox_buf ox_send_wrap(const Oxpb__CommandSend *send, struct ox_buf entry)
{
    uint8_t *to;
    struct ox_buf frame = send_frame(send, entry.len, &to);
    if (entry.len)
        memcpy(to, entry.data, entry.len);
    return frame;
}

void ox_batch_add(struct ox_str *batch, Oxpb__SingleMessageMetadata *metadata, const void *payload, size_t len)
{
    OX_ASSERT(len <= INT32_MAX);
    metadata->payload_size = (int32_t)len;
    size_t metadata_len = oxpb__single_message_metadata__get_packed_size(metadata);
    uint8_t *to = (uint8_t *)ox_str_reserve(batch, 4 + metadata_len);
    ox_put_be32(to, (uint32_t)metadata_len);
    oxpb__single_message_metadata__pack(metadata, to + 4);
    ox_str_grew(batch, 4 + metadata_len);
    ox_str_add(batch, payload, len);
}
