// message_meta_fuzz.c - the metadata scanners, the batch walker and the codecs on one input.
#include "base/assert.h"
#include "fuzz.h"
#include "wire/compress.h"
#include "wire/message_meta.h"
#include "wire/proto.h"

#define PLAIN_MAX (256u * 1024)

static void fuzz_scan(const uint8_t *data, size_t size)
{
    struct ox_message_meta m;
    struct ox_arena arena;
    Oxpb__MessageMetadata *pb;
    ox_arena_init(&arena, 1 << 22);
    uint32_t messages;
    bool counted = ox_message_meta_count(data, size, &messages) == OX_OK;
    OX_ASSERT(counted == (ox_message_meta_scan(data, size, &m) == OX_OK) &&
              (!counted || messages == (uint32_t)m.num_messages));
    bool is_read = ox_proto_unpack(&oxpb__message_metadata__descriptor, &arena, data, size, &pb) == OX_OK;
    if (ox_message_meta_scan(data, size, &m) == OX_OK && is_read) {
        OX_ASSERT(m.sequence_id == pb->sequence_id && m.publish_time_ms == pb->publish_time);
        OX_ASSERT(m.has_num_messages == pb->has_num_messages_in_batch && m.num_messages == pb->num_messages_in_batch);
        OX_ASSERT(m.has_highest == pb->has_highest_sequence_id && m.has_marker == pb->has_marker_type);
        OX_ASSERT((m.partition_key.data != NULL) == (pb->partition_key != NULL) &&
                  m.is_encrypted == (pb->n_encryption_keys > 0));
    }
    ox_arena_fini(&arena);
}

static void fuzz_batch(const uint8_t *data, size_t size)
{
    struct ox_batch_message m;
    size_t at = 0, before = 0;
    while (ox_batch_next(data, size, &at, &m) == OX_OK) {
        struct ox_property_iter it = ox_property_iter(m.metadata.data, m.metadata.len, OX_PROPERTIES_OF_SINGLE);
        struct ox_span key, value;
        while (ox_property_next(&it, &key, &value))
            OX_ASSERT(key.len + value.len < size);
        OX_ASSERT(at > before && at <= size);
        before = at;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nothing[1];
    struct ox_buf plain;
    data = size ? data : nothing;
    fuzz_scan(data, size);
    fuzz_batch(data, size);
    for (uint32_t type = 0; size > 2 && type <= OX_COMPRESSION_SNAPPY; type++)
        if (ox_decompress(type, data + 2, size - 2, (size_t)(data[0] << 8 | data[1]), PLAIN_MAX, &plain) == OX_OK)
            ox_buf_unref(&plain);
    return 0;
}
