// crc32c.h - CRC-32C (Castagnoli), by the processor's instruction where there is one; and zlib's CRC-32 for bundles.
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// The checksum of `len` bytes going on from `crc` (0 to start). ox_crc32c(ox_crc32c(0, a), b) is that of a followed by b.
uint32_t ox_crc32c(uint32_t crc, const void *data, size_t len);
// The checksum of bytes A followed by bytes B, from A's (begun with anything), B's (begun with 0) and the length of B: no byte is read again.
uint32_t ox_crc32c_join(uint32_t a, uint32_t b, size_t b_len);
// The same by shifting alone, whatever the processor.
uint32_t ox_crc32c_join_portable(uint32_t a, uint32_t b, size_t b_len);
// ox_crc32c by the table alone, whatever the processor; the two are compared in tests.
uint32_t ox_crc32c_portable(uint32_t crc, const void *data, size_t len);
// zlib's CRC-32, going on from `crc` in the same way: the hash that places topic names in bundles.
uint32_t ox_crc32(uint32_t crc, const void *data, size_t len);

#endif
