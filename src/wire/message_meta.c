// message_meta.c - scanners over the metadata of messages and batches.
#include "wire/message_meta.h"

#include "base/bytes.h"
#include "base/varint.h"

// What a scanned field's value is.
enum scan_kind {
    SCAN_SKIP,       // any wire type: not a field of the protocol
    SCAN_SKIP_BYTES, // known, its value is not needed
    SCAN_SPAN,       // up to here bytes, numbers from here on
    SCAN_SKIP_VARINT,
    SCAN_U64, // 64 bits, signed ones too
    SCAN_U32, // 32 bits, signed ones too
    SCAN_BOOL,
};

struct scan_row {
    enum scan_kind kind;
    size_t offset;
};

#define SCAN_ROWS_MAX 32

static inline bool scan_fits(enum scan_kind kind, uint32_t wire_type)
{
    return kind == SCAN_SKIP || wire_type == (kind <= SCAN_SPAN ? 2u : 0u);
}

static bool scan_value(const struct scan_row *row, const struct ox_pb_field *f, void *target)
{
    if (!scan_fits(row->kind, f->wire_type))
        return false;
    void *at = (char *)target + row->offset;
    uint32_t low = (uint32_t)f->value;
    switch (row->kind) {
    case SCAN_SPAN: *(struct ox_span *)at = (struct ox_span){f->data, f->len}; break;
    case SCAN_U64: memcpy(at, &f->value, sizeof f->value); break;
    case SCAN_U32: memcpy(at, &low, sizeof low); break;
    case SCAN_BOOL: *(bool *)at = f->value != 0; break;
    case SCAN_SKIP:
    case SCAN_SKIP_BYTES:
    case SCAN_SKIP_VARINT: break;
    }
    return true;
}

// Fills `target` by the table (SCAN_ROWS_MAX rows, by field number); *ret_seen has a bit for each field number that occurs. False: malformed.
static bool scan(const struct scan_row *rows, const uint8_t *p, size_t len, void *target, uint32_t *ret_seen)
{
    const uint8_t *end = ox_bytes_end(p, len);
    struct ox_pb_field f;
    uint32_t seen = 0;
    int more;
    while ((more = ox_pb_step(&p, end, &f)) > 0) {
        if (f.number >= SCAN_ROWS_MAX)
            continue;
        if (!scan_value(&rows[f.number], &f, target))
            return false;
        seen |= 1u << f.number;
    }
    *ret_seen = seen;
    return more == 0;
}

#define META_ROW(kind, member)                                \
    {                                                         \
        SCAN_##kind, offsetof(struct ox_message_meta, member) \
    }
static const struct scan_row meta_rows[SCAN_ROWS_MAX] = {
    [1] = META_ROW(SPAN, producer_name),
    [2] = META_ROW(U64, sequence_id),
    [3] = META_ROW(U64, publish_time_ms),
    [4] = {SCAN_SKIP_BYTES, 0},
    [5] = META_ROW(SPAN, replicated_from),
    [6] = META_ROW(SPAN, partition_key),
    [7] = {SCAN_SKIP_BYTES, 0},
    [8] = META_ROW(U32, compression),
    [9] = META_ROW(U32, uncompressed_size),
    [11] = META_ROW(U32, num_messages),
    [12] = META_ROW(U64, event_time_ms),
    [13] = {SCAN_SKIP_BYTES, 0},
    [14] = {SCAN_SKIP_BYTES, 0},
    [15] = {SCAN_SKIP_BYTES, 0},
    [16] = META_ROW(SPAN, schema_version),
    [17] = META_ROW(BOOL, is_key_base64),
    [18] = META_ROW(SPAN, ordering_key),
    [19] = META_ROW(U64, deliver_at_ms),
    [20] = META_ROW(U32, marker_type),
    [22] = META_ROW(U64, txn_least),
    [23] = META_ROW(U64, txn_most),
    [24] = META_ROW(U64, highest_sequence_id),
    [25] = META_ROW(BOOL, is_null_value),
    [26] = META_ROW(SPAN, uuid),
    [27] = META_ROW(U32, num_chunks),
    [28] = META_ROW(U32, total_chunk_bytes),
    [29] = META_ROW(U32, chunk_id),
    [30] = META_ROW(BOOL, is_null_key),
};

#define META_REQUIRED (1u << 1 | 1u << 2 | 1u << 3)

enum ox_err ox_message_meta_scan(const void *metadata, size_t len, struct ox_message_meta *ret)
{
    struct ox_message_meta m = {.num_messages = 1};
    uint32_t seen;
    if (!scan(meta_rows, (const uint8_t *)metadata, len, &m, &seen) || (seen & META_REQUIRED) != META_REQUIRED ||
        m.num_messages < 1)
        return OX_E_MALFORMED;
    m.has_num_messages = seen & 1u << 11;
    m.is_encrypted = seen & 1u << 13;
    m.has_deliver_at = seen & 1u << 19;
    m.has_marker = seen & 1u << 20;
    m.has_txn = (seen & 1u << 22) && (seen & 1u << 23);
    m.has_highest = seen & 1u << 24;
    m.is_chunk = m.num_chunks > 1;
    *ret = m;
    return OX_OK;
}

enum ox_err ox_message_meta_count(const void *metadata, size_t len, uint32_t *ret_messages)
{
    const uint8_t *p = (const uint8_t *)metadata, *end = ox_bytes_end(p, len);
    struct ox_pb_field f;
    uint32_t seen = 0, messages = 1;
    int more;
    while ((more = ox_pb_step(&p, end, &f)) > 0) {
        if (f.number >= SCAN_ROWS_MAX)
            continue;
        if (!scan_fits(meta_rows[f.number].kind, f.wire_type))
            return OX_E_MALFORMED;
        if (f.number == 11)
            messages = (uint32_t)f.value;
        seen |= 1u << f.number;
    }
    if (more < 0 || (seen & META_REQUIRED) != META_REQUIRED || messages < 1 || messages > INT32_MAX)
        return OX_E_MALFORMED;
    *ret_messages = messages;
    return OX_OK;
}

uint64_t ox_message_meta_last_sequence(const struct ox_message_meta *m)
{
    return m->has_highest && m->highest_sequence_id > m->sequence_id ? m->highest_sequence_id : m->sequence_id;
}

struct ox_property_iter ox_property_iter(const void *metadata, size_t len, uint32_t field)
{
    const uint8_t *p = (const uint8_t *)metadata;
    return (struct ox_property_iter){p, ox_bytes_end(p, len), field};
}

static const struct scan_row pair_rows[SCAN_ROWS_MAX] = {
    [1] = {SCAN_SPAN, 0},
    [2] = {SCAN_SPAN, sizeof(struct ox_span)},
};

bool ox_property_next(struct ox_property_iter *it, struct ox_span *ret_key, struct ox_span *ret_value)
{
    struct ox_pb_field f;
    while (ox_pb_next(&it->at, it->end, &f) > 0) {
        if (f.number != it->field || f.wire_type != 2)
            continue;
        struct ox_span pair[2] = {0};
        uint32_t seen;
        if (!scan(pair_rows, f.data, f.len, pair, &seen) || (~seen & (1u << 1 | 1u << 2)))
            break;
        *ret_key = pair[0];
        *ret_value = pair[1];
        return true;
    }
    it->at = it->end;
    return false;
}

// A batch message and its payload's size, which the caller does not need to see.
struct batch_scan {
    struct ox_batch_message message;
    int32_t payload_size;
};

#define BATCH_ROW(kind, member)                          \
    {                                                    \
        SCAN_##kind, offsetof(struct batch_scan, member) \
    }
static const struct scan_row batch_rows[SCAN_ROWS_MAX] = {
    [1] = {SCAN_SKIP_BYTES, 0},
    [2] = BATCH_ROW(SPAN, message.partition_key),
    [3] = BATCH_ROW(U32, payload_size),
    [4] = BATCH_ROW(BOOL, message.is_compacted_out),
    [5] = BATCH_ROW(U64, message.event_time_ms),
    [6] = BATCH_ROW(BOOL, message.is_key_base64),
    [7] = BATCH_ROW(SPAN, message.ordering_key),
    [8] = BATCH_ROW(U64, message.sequence_id),
    [9] = BATCH_ROW(BOOL, message.is_null_value),
    [10] = BATCH_ROW(BOOL, message.is_null_key),
};

enum ox_err ox_batch_next(const void *payload, size_t len, size_t *at, struct ox_batch_message *ret)
{
    size_t left = len - *at;
    if (left == 0)
        return OX_E_END_OF_FILE; // an empty payload may be NULL
    const uint8_t *p = (const uint8_t *)payload + *at;
    size_t meta_len = left < 4 ? SIZE_MAX : ox_get_be32(p);
    if (left < 4 || meta_len > left - 4)
        return OX_E_MALFORMED;
    struct batch_scan s = {0};
    uint32_t seen;
    if (!scan(batch_rows, p + 4, meta_len, &s, &seen) || !(seen & 1u << 3) || s.payload_size < 0)
        return OX_E_MALFORMED;
    size_t size = (size_t)s.payload_size;
    if (size > left - 4 - meta_len)
        return OX_E_MALFORMED;
    s.message.has_sequence = seen & 1u << 8;
    s.message.metadata = (struct ox_span){p + 4, meta_len};
    s.message.payload = (struct ox_span){p + 4 + meta_len, size};
    *ret = s.message;
    *at += 4 + meta_len + size;
    return OX_OK;
}
