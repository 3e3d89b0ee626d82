// direct.c - memory for writes past the page cache, and copies into it.
#include "io/direct.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

#define DIRECT_STREAM_MIN 16384u // shorter copies gain nothing

void *ox_direct_alloc(size_t n, size_t *ret_bytes)
{
    size_t align = n < OX_DIRECT_LARGE ? OX_DIRECT_ALIGN : OX_DIRECT_PAGE;
    size_t bytes = (n + align - 1) / align * align;
    void *p = aligned_alloc(align, bytes);
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    if (align == OX_DIRECT_PAGE)
        (void)madvise(p, bytes, MADV_HUGEPAGE); // a wish: without large pages it works as well
    *ret_bytes = bytes;
    return p;
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static void direct_stream(uint8_t *to, const uint8_t *from, size_t n)
{
    size_t head = (size_t)(-(uintptr_t)to % 32);
    memcpy(to, from, head);
    to += head;
    from += head;
    n -= head;
    for (; n >= 128; n -= 128, to += 128, from += 128) {
        __m256i a = _mm256_loadu_si256((const __m256i_u *)from), b = _mm256_loadu_si256((const __m256i_u *)(from + 32));
        __m256i c = _mm256_loadu_si256((const __m256i_u *)(from + 64)),
                d = _mm256_loadu_si256((const __m256i_u *)(from + 96));
        _mm256_stream_si256((__m256i *)(void *)to, a);
        _mm256_stream_si256((__m256i *)(void *)(to + 32), b);
        _mm256_stream_si256((__m256i *)(void *)(to + 64), c);
        _mm256_stream_si256((__m256i *)(void *)(to + 96), d);
    }
    memcpy(to, from, n);
    _mm_sfence(); // whoever is told of the bytes must see them
}

void ox_direct_copy(void *to, const void *from, size_t n)
{
    if (n >= DIRECT_STREAM_MIN && __builtin_cpu_supports("avx2"))
        direct_stream(to, from, n);
    else if (n)
        memcpy(to, from, n);
}
#else
void ox_direct_copy(void *to, const void *from, size_t n)
{
    if (n)
        memcpy(to, from, n);
}
#endif
