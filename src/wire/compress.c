// compress.c - the four codecs behind two functions.
#include "wire/compress.h"

#include <limits.h>

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "base/assert.h"

#define COMPRESS_ZSTD_LEVEL 3

// The greatest size that `len` bytes may take compressed; 0 if there are too many.
static size_t compress_bound(uint32_t compression, size_t len)
{
    switch ((enum ox_compression)compression) {
    case OX_COMPRESSION_NONE: return len;
    case OX_COMPRESSION_LZ4: return len > LZ4_MAX_INPUT_SIZE ? 0 : (size_t)LZ4_compressBound((int)len);
    case OX_COMPRESSION_ZLIB: return compressBound(len);
    case OX_COMPRESSION_ZSTD: return ZSTD_compressBound(len);
    case OX_COMPRESSION_SNAPPY: return len > UINT32_MAX ? 0 : snappy_max_compressed_length(len);
    }
    return 0;
}

// Compresses into `room` bytes at `to`; the bytes written, 0 on failure.
static size_t compress_into(uint32_t compression, const void *data, size_t len, uint8_t *to, size_t room)
{
    uLongf zlib_len = room;
    size_t n = room;
    switch ((enum ox_compression)compression) {
    case OX_COMPRESSION_LZ4: return (size_t)LZ4_compress_default((const char *)data, (char *)to, (int)len, (int)room);
    case OX_COMPRESSION_ZLIB: return compress(to, &zlib_len, (const Bytef *)data, len) == Z_OK ? zlib_len : 0;
    case OX_COMPRESSION_ZSTD:
        n = ZSTD_compress(to, room, data, len, COMPRESS_ZSTD_LEVEL);
        return ZSTD_isError(n) ? 0 : n;
    case OX_COMPRESSION_SNAPPY: return snappy_compress((const char *)data, len, (char *)to, &n) == SNAPPY_OK ? n : 0;
    case OX_COMPRESSION_NONE: break;
    }
    return 0;
}

enum ox_err ox_compress(uint32_t compression, const void *data, size_t len, struct ox_buf *ret)
{
    if (compression > OX_COMPRESSION_SNAPPY)
        return OX_E_UNSUPPORTED;
    if (compression == OX_COMPRESSION_NONE) {
        *ret = ox_buf_copy(data, len);
        return OX_OK;
    }
    uint8_t *to;
    size_t room = compress_bound(compression, len);
    if (room == 0)
        return OX_E_TOO_BIG;
    struct ox_buf buf = ox_buf_new(room, &to);
    size_t n = compress_into(compression, len ? data : "", len, to, room);
    OX_ASSERT(n > 0 && n <= room);
    *ret = ox_buf_copy(to, n);
    ox_buf_unref(&buf);
    return OX_OK;
}

static bool decompress_lz4(const void *data, size_t len, uint8_t *to, size_t plain_len)
{
    if (len > INT_MAX || plain_len > INT_MAX)
        return false;
    return LZ4_decompress_safe((const char *)data, (char *)to, (int)len, (int)plain_len) == (int)plain_len;
}

static bool decompress_snappy(const void *data, size_t len, uint8_t *to, size_t plain_len)
{
    size_t told, n = plain_len;
    if (snappy_uncompressed_length((const char *)data, len, &told) != SNAPPY_OK || told != plain_len)
        return false;
    return snappy_uncompress((const char *)data, len, (char *)to, &n) == SNAPPY_OK && n == plain_len;
}

static bool decompress_zlib(const void *data, size_t len, uint8_t *to, size_t plain_len)
{
    uLongf n = plain_len;
    return uncompress(to, &n, (const Bytef *)data, len) == Z_OK && n == plain_len;
}

static bool decompress_into(uint32_t compression, const void *data, size_t len, uint8_t *to, size_t plain_len)
{
    switch ((enum ox_compression)compression) {
    case OX_COMPRESSION_LZ4: return decompress_lz4(data, len, to, plain_len);
    case OX_COMPRESSION_ZLIB: return decompress_zlib(data, len, to, plain_len);
    case OX_COMPRESSION_ZSTD: return ZSTD_decompress(to, plain_len, data, len) == plain_len;
    case OX_COMPRESSION_SNAPPY: return decompress_snappy(data, len, to, plain_len);
    case OX_COMPRESSION_NONE: break;
    }
    return false;
}

enum ox_err ox_decompress(uint32_t compression, const void *data, size_t len, size_t plain_len, size_t bytes_max,
                          struct ox_buf *ret)
{
    if (compression > OX_COMPRESSION_SNAPPY)
        return OX_E_UNSUPPORTED;
    if (plain_len > bytes_max)
        return OX_E_TOO_BIG;
    if (compression == OX_COMPRESSION_NONE) {
        if (len != plain_len)
            return OX_E_MALFORMED;
        *ret = ox_buf_copy(data, len);
        return OX_OK;
    }
    uint8_t *to;
    struct ox_buf buf = ox_buf_new(plain_len, &to);
    if (!decompress_into(compression, len ? data : "", len, to, plain_len)) {
        ox_buf_unref(&buf);
        return OX_E_MALFORMED;
    }
    *ret = buf;
    return OX_OK;
}
