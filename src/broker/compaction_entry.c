// compaction_entry.c - taking entries apart and putting batches together again; pure functions.
#include "broker/compaction_entry.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/varint.h"
#include "wire/compress.h"
#include "wire/message_build.h"
#include "wire/pulsar_frame.h"

#define COMPACTION_ARENA_BYTES (16u << 20) // one MessageMetadata, unpacked

static const uint8_t message_taken_out[] = {0, 0, 0, 4, 0x18, 0, 0x20, 1}; // payload_size 0, compacted_out true

void compaction_entry_scan(struct compaction_entry *e, struct ox_buf data)
{
    struct ox_message_view view;
    *e = (struct compaction_entry){.kind = COMPACTION_KEEP, .data = data, .count = 1};
    if (ox_message_parse(data, false, &view) != OX_OK)
        return;
    e->data = view.entry;
    e->metadata = view.metadata;
    e->payload = view.payload;
    if (ox_message_meta_scan(view.metadata.data, view.metadata.len, &e->meta) != OX_OK)
        return;
    if (e->meta.has_marker)
        e->kind = COMPACTION_DROP;
    else if (!e->meta.has_num_messages)
        e->kind = COMPACTION_SINGLE;
    else if (!e->meta.is_encrypted)
        e->kind = COMPACTION_BATCH;
    e->count = e->meta.has_num_messages ? (uint32_t)e->meta.num_messages : 1;
}

bool compaction_entry_is_packed(const struct compaction_entry *e)
{
    return e->kind == COMPACTION_BATCH && e->meta.compression != OX_COMPRESSION_NONE;
}

// True if the plain payload holds as many messages as the metadata say, and nothing else.
static bool batch_is_sound(const struct compaction_entry *e)
{
    struct ox_batch_message m;
    size_t at = 0;
    for (uint32_t i = 0; i < e->count; i++)
        if (ox_batch_next(e->plain.data, e->plain.len, &at, &m) != OX_OK)
            return false;
    return at == e->plain.len;
}

void compaction_entry_open(struct compaction_entry *e, struct ox_buf take_plain)
{
    if (e->kind != COMPACTION_BATCH)
        return;
    e->plain = compaction_entry_is_packed(e) ? take_plain : ox_buf_ref(e->payload);
    if (!batch_is_sound(e))
        e->kind = COMPACTION_KEEP;
}

void compaction_entry_fini(struct compaction_entry *e)
{
    ox_buf_unref(&e->plain);
}

static bool single_is_tombstone(const struct compaction_entry *e)
{
    const struct ox_message_meta *m = &e->meta;
    bool empty = m->compression != OX_COMPRESSION_NONE ? m->uncompressed_size == 0 : e->payload.len == 0;
    return m->is_null_value || (empty && !m->is_encrypted && !m->is_chunk);
}

static bool single_next(const struct compaction_entry *e, size_t *at, struct compaction_message *ret)
{
    const struct ox_message_meta *m = &e->meta;
    if ((*at)++ > 0)
        return false;
    *ret = (struct compaction_message){.key = m->partition_key, .tombstone = single_is_tombstone(e), .index = -1};
    if (m->is_chunk && m->uuid.data) {
        ret->uuid = m->uuid;
        ret->is_first_chunk = m->chunk_id == 0;
        ret->is_last_chunk = m->chunk_id == m->num_chunks - 1;
    }
    return true;
}

// The low half of *at is where the next message is, the high half its index: a payload is smaller than 4 GiB.
bool compaction_entry_next(const struct compaction_entry *e, size_t *at, struct compaction_message *ret)
{
    if (e->kind == COMPACTION_SINGLE)
        return single_next(e, at, ret);
    struct ox_batch_message m;
    size_t offset = *at & UINT32_MAX, index = *at >> 32;
    if (e->kind != COMPACTION_BATCH || ox_batch_next(e->plain.data, e->plain.len, &offset, &m) != OX_OK)
        return false;
    *at = (index + 1) << 32 | offset;
    *ret = (struct compaction_message){.key = m.partition_key,
                                       .tombstone = m.is_null_value || m.payload.len == 0,
                                       .gone = m.is_compacted_out,
                                       .index = (int32_t)index};
    return true;
}

struct ox_str compaction_entry_thin(const struct compaction_entry *e,
                                    bool (*keeps)(void *ctx, const struct compaction_message *m), void *ctx)
{
    struct ox_str out = {0};
    struct compaction_message m;
    for (size_t at = 0, from = 0; compaction_entry_next(e, &at, &m); from = at & UINT32_MAX)
        if (!m.gone && keeps(ctx, &m))
            ox_str_add(&out, e->plain.data + from, (at & UINT32_MAX) - from);
        else
            ox_str_add(&out, message_taken_out, sizeof message_taken_out);
    return out;
}

enum ox_err compaction_entry_rebuild(const struct compaction_entry *e, struct ox_buf payload, size_t plain_len,
                                     struct ox_buf *ret)
{
    struct ox_arena arena;
    Oxpb__MessageMetadata *metadata;
    ox_arena_init(&arena, COMPACTION_ARENA_BYTES);
    enum ox_err err =
        ox_proto_unpack(&oxpb__message_metadata__descriptor, &arena, e->metadata.data, e->metadata.len, &metadata);
    if (err == OX_OK) {
        metadata->has_uncompressed_size = 1;
        metadata->uncompressed_size = (uint32_t)plain_len;
        *ret = ox_entry_build(metadata, payload.data, payload.len);
    }
    ox_arena_fini(&arena);
    return err == OX_OK ? OX_OK : OX_E_MALFORMED;
}

// ---- stored ----------------------------------------------------------------------------------------------------------

static size_t id_put(uint8_t out[32], struct ox_pos pos, int32_t partition)
{
    uint8_t *p = out;
    *p++ = 0x08;
    p += ox_varint_put(p, (uint64_t)pos.ledger);
    *p++ = 0x10;
    p += ox_varint_put(p, (uint64_t)pos.entry);
    *p++ = 0x18;
    p += ox_varint_put(p, (uint64_t)(int64_t)partition);
    return (size_t)(p - out);
}

size_t compaction_head_put(uint8_t out[COMPACTION_HEAD_BYTES_MAX], struct ox_pos pos, int32_t partition, size_t len)
{
    uint8_t id[32];
    size_t n = id_put(id, pos, partition);
    ox_put_be32(out, (uint32_t)n);
    memcpy(out + 4, id, n);
    ox_put_be32(out + 4 + n, (uint32_t)len);
    return n + 8;
}

static bool stored_id(const uint8_t *p, const uint8_t *end, struct ox_pos *ret)
{
    struct ox_pb_field f;
    int more, found = 0;
    while ((more = ox_pb_next(&p, end, &f)) > 0) {
        if (f.wire_type != 0 || f.number > 2)
            continue;
        *(f.number == 1 ? &ret->ledger : &ret->entry) = (int64_t)f.value;
        found |= 1 << f.number;
    }
    return more == 0 && found == 6 && ret->ledger >= 0 && ret->entry >= 0;
}

enum ox_err compaction_stored_parse(struct ox_buf stored, struct ox_pos *ret_pos, struct ox_buf *ret_entry)
{
    if (stored.len < 4)
        return OX_E_CORRUPT;
    size_t n = ox_get_be32(stored.data);
    if (n > stored.len - 4 || stored.len - 4 - n < 4 || !stored_id(stored.data + 4, stored.data + 4 + n, ret_pos))
        return OX_E_CORRUPT;
    size_t len = ox_get_be32(stored.data + 4 + n);
    if (len != stored.len - 8 - n)
        return OX_E_CORRUPT;
    *ret_entry = (struct ox_buf){stored.slab, stored.data + 8 + n, len};
    return OX_OK;
}
