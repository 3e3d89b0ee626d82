// format.c - encodes and decodes the bytes of segment files.
#include "ledger/store/format.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/mem.h"

#define SEGMENT_HEADER_BYTES 128u
#define SEGMENT_VERSION 1u
#define BATCH_MAGIC 0x3142584fu  // "OXB1"
#define FOOTER_MAGIC 0x3146584fu // "OXF1"
#define FOOTER_HEADER_BYTES 64u
#define INDEX_CONTENT_BYTES 4088u

static const uint8_t segment_magic[8] = {'O', 'X', 'S', 'E', 'G', 'M', 'T', 0};

int ox_journal_pos_cmp(struct ox_journal_pos a, struct ox_journal_pos b)
{
    if (a.segment != b.segment)
        return a.segment < b.segment ? -1 : 1;
    return a.offset < b.offset ? -1 : a.offset > b.offset;
}

uint32_t ox_format_salt(const char *identity)
{
    return ox_crc32c(0, identity, strlen(identity));
}

void ox_segment_header_encode(uint8_t *block, const struct ox_segment_header *h)
{
    memset(block, 0, OX_SEG_BLOCK);
    memcpy(block, segment_magic, sizeof segment_magic);
    ox_put_le32(block + 8, SEGMENT_VERSION);
    ox_put_le64(block + 16, h->number);
    ox_put_le64(block + 24, h->file_bytes);
    ox_put_le64(block + 32, h->made_ms);
    memcpy(block + 40, h->identity, strnlen(h->identity, OX_IDENTITY_BYTES - 1));
    ox_put_le32(block + 12, ox_crc32c(0, block + 16, SEGMENT_HEADER_BYTES - 16));
}

enum ox_err ox_segment_header_decode(const uint8_t *p, size_t len, struct ox_segment_header *ret)
{
    if (len < SEGMENT_HEADER_BYTES || memcmp(p, segment_magic, sizeof segment_magic) != 0)
        return OX_E_CORRUPT;
    if (ox_get_le32(p + 12) != ox_crc32c(0, p + 16, SEGMENT_HEADER_BYTES - 16))
        return OX_E_CORRUPT;
    if (ox_get_le32(p + 8) != SEGMENT_VERSION)
        return OX_E_UNSUPPORTED;
    struct ox_segment_header h = {
        .number = ox_get_le64(p + 16), .file_bytes = ox_get_le64(p + 24), .made_ms = ox_get_le64(p + 32)};
    memcpy(h.identity, p + 40, OX_IDENTITY_BYTES);
    h.identity[OX_IDENTITY_BYTES - 1] = 0;
    *ret = h;
    return OX_OK;
}

void ox_batch_header_encode(uint8_t *p, uint32_t salt, const struct ox_batch_header *h)
{
    ox_put_le32(p + 4, BATCH_MAGIC);
    ox_put_le64(p + 8, h->number);
    ox_put_le32(p + 16, h->offset);
    ox_put_le32(p + 20, h->bytes);
    ox_put_le32(p + 24, h->directory);
    ox_put_le32(p + 28, h->records);
    ox_put_le32(p + 32, h->directory_crc);
    ox_put_le32(p + 36, h->flags);
    ox_put_le64(p + 40, h->mark.segment);
    ox_put_le64(p + 48, h->mark.offset);
    ox_put_le64(p + 56, h->sequence);
    ox_put_le32(p, ox_crc32c(salt, p + 4, OX_BATCH_HEADER_BYTES - 4));
}

static bool batch_sizes_possible(const struct ox_batch_header *h, size_t len)
{
    uint64_t directory_end = (uint64_t)h->directory + (uint64_t)h->records * OX_DIR_ITEM_BYTES;
    return h->bytes % OX_SEG_BLOCK == 0 && h->bytes > 0 && h->offset + (uint64_t)h->bytes <= len &&
           h->directory >= OX_BATCH_HEADER_BYTES && directory_end <= h->bytes;
}

bool ox_batch_header_decode(const uint8_t *data, size_t len, uint32_t salt, uint64_t number, uint32_t offset,
                            struct ox_batch_header *ret)
{
    if (offset > len || len - offset < OX_BATCH_HEADER_BYTES)
        return false;
    const uint8_t *p = data + offset;
    if (ox_get_le32(p + 4) != BATCH_MAGIC || ox_get_le32(p) != ox_crc32c(salt, p + 4, OX_BATCH_HEADER_BYTES - 4))
        return false;
    struct ox_batch_header h = {
        .number = ox_get_le64(p + 8),
        .offset = ox_get_le32(p + 16),
        .bytes = ox_get_le32(p + 20),
        .directory = ox_get_le32(p + 24),
        .records = ox_get_le32(p + 28),
        .directory_crc = ox_get_le32(p + 32),
        .flags = ox_get_le32(p + 36),
        .mark = {ox_get_le64(p + 40), ox_get_le64(p + 48)},
        .sequence = ox_get_le64(p + 56),
    };
    if (h.number != number)
        return false;
    if (h.offset != offset || !batch_sizes_possible(&h, len))
        return false;
    *ret = h;
    return true;
}

void ox_segment_record_header_encode(uint8_t *p, uint32_t salt, const struct ox_segment_record *r,
                                     const struct ox_record_payload *payload)
{
    OX_ASSERT(payload->tail_len == 0 || payload->tail_len <= payload->parts[payload->count - 1].len);
    ox_put_le32(p + 4, r->length);
    ox_put_le64(p + 8, (uint64_t)r->type);
    ox_put_le64(p + 16, r->number);
    ox_put_le64(p + 24, (uint64_t)r->ledger);
    ox_put_le64(p + 32, (uint64_t)r->entry);
    ox_put_le64(p + 40, r->arg);
    uint32_t crc = ox_crc32c(salt, p + 4, OX_RECORD_HEADER_BYTES - 4);
    for (size_t i = 0; i < payload->count; i++) {
        size_t known = i + 1 == payload->count ? payload->tail_len : 0;
        crc = ox_crc32c(crc, payload->parts[i].data, payload->parts[i].len - known);
    }
    if (payload->tail_len)
        crc = ox_crc32c_join(crc, payload->tail_crc, payload->tail_len);
    ox_put_le32(p, crc);
}

static bool type_known(uint64_t type)
{
    return type >= OX_REC_ENTRY && type <= OX_REC_MOVED;
}

enum ox_err ox_segment_record_decode(const uint8_t *p, size_t avail, uint32_t salt, uint64_t number,
                                     struct ox_segment_record *ret)
{
    if (avail < OX_RECORD_HEADER_BYTES || !type_known(ox_get_le64(p + 8)))
        return OX_E_CORRUPT;
    if (ox_get_le64(p + 16) != number)
        return OX_E_CORRUPT;
    uint32_t length = ox_get_le32(p + 4);
    if (length > avail - OX_RECORD_HEADER_BYTES)
        return OX_E_CORRUPT;
    if (ox_get_le32(p) != ox_crc32c(salt, p + 4, OX_RECORD_HEADER_BYTES - 4 + (size_t)length))
        return OX_E_CORRUPT;
    *ret = (struct ox_segment_record){
        .type = (enum ox_segment_record_type)ox_get_le64(p + 8),
        .length = length,
        .number = number,
        .ledger = (int64_t)ox_get_le64(p + 24),
        .entry = (int64_t)ox_get_le64(p + 32),
        .arg = ox_get_le64(p + 40),
    };
    return OX_OK;
}

void ox_dir_item_encode(uint8_t *p, uint32_t offset, const struct ox_segment_record *r)
{
    ox_put_le32(p, offset | (uint32_t)r->type);
    ox_put_le32(p + 4, r->length);
    ox_put_le64(p + 8, (uint64_t)r->ledger);
    ox_put_le64(p + 16, (uint64_t)r->entry);
    ox_put_le64(p + 24, r->arg);
}

enum ox_err ox_dir_item_decode(const uint8_t *p, uint64_t number, uint32_t *ret_offset, struct ox_segment_record *ret)
{
    uint32_t word = ox_get_le32(p);
    if (!type_known(word & 7u))
        return OX_E_CORRUPT;
    *ret_offset = word & ~7u;
    *ret = (struct ox_segment_record){
        .type = (enum ox_segment_record_type)(word & 7u),
        .length = ox_get_le32(p + 4),
        .number = number,
        .ledger = (int64_t)ox_get_le64(p + 8),
        .entry = (int64_t)ox_get_le64(p + 16),
        .arg = ox_get_le64(p + 24),
    };
    return OX_OK;
}

static uint64_t blocks_for(uint64_t count, uint64_t per_block)
{
    return (count + per_block - 1) / per_block;
}

uint64_t ox_footer_bytes(uint64_t items, uint64_t runs)
{
    return OX_SEG_BLOCK * (1 + blocks_for(items, OX_ITEMS_PER_BLOCK) + blocks_for(runs, OX_RUNS_PER_BLOCK));
}

void ox_footer_header_encode(uint8_t *block, uint32_t salt, const struct ox_footer_header *h)
{
    memset(block, 0, OX_SEG_BLOCK);
    ox_put_le32(block + 4, FOOTER_MAGIC);
    ox_put_le64(block + 8, h->number);
    ox_put_le32(block + 16, h->offset);
    ox_put_le32(block + 20, h->bytes);
    ox_put_le32(block + 24, h->items);
    ox_put_le32(block + 28, h->runs);
    ox_put_le32(block, ox_crc32c(salt, block + 4, FOOTER_HEADER_BYTES - 4));
}

bool ox_footer_header_decode(const uint8_t *p, size_t len, uint32_t salt, uint64_t number, uint32_t offset,
                             struct ox_footer_header *ret)
{
    if (len < FOOTER_HEADER_BYTES || ox_get_le32(p + 4) != FOOTER_MAGIC || ox_get_le64(p + 8) != number)
        return false;
    if (ox_get_le32(p) != ox_crc32c(salt, p + 4, FOOTER_HEADER_BYTES - 4))
        return false;
    struct ox_footer_header h = {
        .number = number,
        .offset = ox_get_le32(p + 16),
        .bytes = ox_get_le32(p + 20),
        .items = ox_get_le32(p + 24),
        .runs = ox_get_le32(p + 28),
    };
    if (h.offset != offset || h.bytes != ox_footer_bytes(h.items, h.runs))
        return false;
    *ret = h;
    return true;
}

static uint32_t index_block_crc(const uint8_t *block, uint32_t salt, uint64_t number, uint32_t index)
{
    uint8_t tail[12];
    ox_put_le64(tail, number);
    ox_put_le32(tail + 8, index);
    return ox_crc32c(ox_crc32c(salt, block, INDEX_CONTENT_BYTES), tail, sizeof tail);
}

void ox_index_block_seal(uint8_t *block, uint32_t salt, uint64_t number, uint32_t index)
{
    ox_put_le32(block + INDEX_CONTENT_BYTES, index_block_crc(block, salt, number, index));
    ox_put_le32(block + INDEX_CONTENT_BYTES + 4, index);
}

enum ox_err ox_index_block_check(const uint8_t *block, uint32_t salt, uint64_t number, uint32_t index)
{
    bool good = ox_get_le32(block + INDEX_CONTENT_BYTES) == index_block_crc(block, salt, number, index);
    return good ? OX_OK : OX_E_CORRUPT;
}

void ox_item_put(uint8_t *block, uint32_t slot, struct ox_item item)
{
    ox_put_le32(block + slot * 8, item.offset);
    ox_put_le32(block + slot * 8 + 4, item.length);
}

struct ox_item ox_item_get(const uint8_t *block, uint32_t slot)
{
    return (struct ox_item){ox_get_le32(block + slot * 8), ox_get_le32(block + slot * 8 + 4)};
}

void ox_run_put(uint8_t *block, uint32_t slot, const struct ox_run *run)
{
    uint8_t *p = block + slot * OX_RUN_BYTES;
    ox_put_le64(p, (uint64_t)run->ledger);
    ox_put_le64(p + 8, (uint64_t)run->first);
    ox_put_le32(p + 16, run->count);
    ox_put_le32(p + 20, run->first_item);
    ox_put_le64(p + 24, run->bytes);
    ox_put_le64(p + 32, 0);
}

struct ox_run ox_run_get(const uint8_t *block, uint32_t slot)
{
    const uint8_t *p = block + slot * OX_RUN_BYTES;
    return (struct ox_run){
        .ledger = (int64_t)ox_get_le64(p),
        .first = (int64_t)ox_get_le64(p + 8),
        .count = ox_get_le32(p + 16),
        .first_item = ox_get_le32(p + 20),
        .bytes = ox_get_le64(p + 24),
    };
}

void ox_custom_encode(struct ox_str *out, const struct ox_kv *kv)
{
    uint8_t word[8];
    ox_put_le32(word, (uint32_t)kv->count);
    ox_str_add(out, word, 4);
    for (size_t i = 0; i < kv->count; i++) {
        size_t key = strlen(kv->pairs[i].key), value = strlen(kv->pairs[i].value);
        ox_put_le32(word, (uint32_t)key);
        ox_put_le32(word + 4, (uint32_t)value);
        ox_str_add(out, word, 8);
        ox_str_add(out, kv->pairs[i].key, key);
        ox_str_add(out, kv->pairs[i].value, value);
    }
}

// One pair; true and *p behind it, or false.
static bool custom_pair(const uint8_t **p, const uint8_t *end, struct ox_kv *kv)
{
    if (end - *p < 8)
        return false;
    size_t key = ox_get_le32(*p), value = ox_get_le32(*p + 4);
    *p += 8;
    if ((size_t)(end - *p) < key || (size_t)(end - *p) - key < value)
        return false;
    if (memchr(*p, 0, key + value))
        return false;
    char *k = ox_strndup((const char *)*p, key), *v = ox_strndup((const char *)*p + key, value);
    ox_kv_set(kv, k, v);
    ox_free(k);
    ox_free(v);
    *p += key + value;
    return true;
}

enum ox_err ox_custom_decode(const uint8_t *p, size_t len, struct ox_kv *ret)
{
    const uint8_t *end = p + len;
    if (len < 4)
        return OX_E_CORRUPT;
    uint32_t count = ox_get_le32(p);
    p += 4;
    for (uint32_t i = 0; i < count; i++) {
        if (!custom_pair(&p, end, ret)) {
            ox_kv_fini(ret);
            return OX_E_CORRUPT;
        }
    }
    if (p == end)
        return OX_OK;
    ox_kv_fini(ret);
    return OX_E_CORRUPT;
}
