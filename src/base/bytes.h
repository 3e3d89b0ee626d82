// bytes.h - big and little endian integers in memory, and a checked reader.
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Where len bytes at p end; p may be NULL if len is 0.
static inline const uint8_t *ox_bytes_end(const uint8_t *p, size_t len)
{
    return len ? p + len : p;
}

// Integers at any address, in the byte order that the name tells.
static inline uint16_t ox_get_be16(const void *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint16_t)(b[0] << 8 | b[1]);
}
static inline uint32_t ox_get_be32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}
static inline uint64_t ox_get_be64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}
static inline void ox_put_be16(void *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, 2);
}
static inline void ox_put_be32(void *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}
static inline void ox_put_be64(void *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}
static inline uint32_t ox_get_le32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline uint64_t ox_get_le64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static inline void ox_put_le32(void *p, uint32_t v)
{
    memcpy(p, &v, 4);
}
static inline void ox_put_le64(void *p, uint64_t v)
{
    memcpy(p, &v, 8);
}

#endif
