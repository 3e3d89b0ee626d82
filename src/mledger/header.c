// header.c - broker entry metadata: a small header before an entry that holds its index and when it was appended (Pulsar's PIP-70).
//
// | bytes | field |
// |---|---|
// | 2 | 0x0e02 |
// | 4 | n, big-endian |
// | n | BrokerEntryMetadata: 1 broker_timestamp, 2 index (of the entry's last message), both varints |
#include "base/bytes.h"
#include "base/varint.h"
#include "mledger/mledger_int.h"

#define HEADER_MAGIC 0x0e02
#define HEADER_PREFIX_BYTES 6
#define HEADER_TAG_TIMESTAMP 0x08
#define HEADER_TAG_INDEX 0x10

size_t ml_header_put(uint8_t out[48], uint64_t wall_ms, uint64_t index)
{
    uint8_t *p = out + HEADER_PREFIX_BYTES;
    *p++ = HEADER_TAG_TIMESTAMP;
    p += ox_varint_put(p, wall_ms);
    *p++ = HEADER_TAG_INDEX;
    p += ox_varint_put(p, index);
    ox_put_be16(out, HEADER_MAGIC);
    ox_put_be32(out + 2, (uint32_t)(p - out - HEADER_PREFIX_BYTES));
    return (size_t)(p - out);
}

bool ml_header_index(struct ox_buf entry, uint64_t *ret_index)
{
    if (entry.len < HEADER_PREFIX_BYTES || ox_get_be16(entry.data) != HEADER_MAGIC)
        return false;
    uint32_t n = ox_get_be32(entry.data + 2);
    if (n > entry.len - HEADER_PREFIX_BYTES)
        return false;
    const uint8_t *p = entry.data + HEADER_PREFIX_BYTES, *end = p + n;
    struct ox_pb_field field;
    int more;
    bool found = false;
    while ((more = ox_pb_next(&p, end, &field)) > 0)
        if (field.number == 2 && field.wire_type == 0) {
            *ret_index = field.value;
            found = true;
        }
    return more == 0 && found;
}
