// compress.h - the compressions of Pulsar's clients: LZ4 (bare block), zlib, zstd, snappy (bare).
#ifndef WIRE_COMPRESS_H
#define WIRE_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

// Numbers of the protocol and of the metadata nodes.
enum ox_compression {
    OX_COMPRESSION_NONE,
    OX_COMPRESSION_LZ4,
    OX_COMPRESSION_ZLIB,
    OX_COMPRESSION_ZSTD,
    OX_COMPRESSION_SNAPPY,
};

// The compressed bytes in a slice of its own; the caller owns one reference. Takes the time of a compression: a job's work for big inputs.
// Errors: TOO_BIG (above what the compression can take), UNSUPPORTED (unknown number).
enum ox_err ox_compress(uint32_t compression, const void *data, size_t len, struct ox_buf *ret) OX_CHECKED;

// The plain bytes, which must be exactly plain_len; the caller owns one reference. plain_len comes from a peer: it is compared with bytes_max before anything is allocated.
// Errors: TOO_BIG (plain_len above bytes_max), MALFORMED, UNSUPPORTED (unknown number).
enum ox_err ox_decompress(uint32_t compression, const void *data, size_t len, size_t plain_len, size_t bytes_max,
                          struct ox_buf *ret) OX_CHECKED;

#endif
