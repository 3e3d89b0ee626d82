// direct.h - memory for large writes that go past the page cache: aligned, in large pages, filled past the processor's caches.
#ifndef IO_DIRECT_H
#define IO_DIRECT_H

#include <stddef.h>

#define OX_DIRECT_ALIGN 4096u         // bytes; of memory, length and offset of such a write
#define OX_DIRECT_PAGE (2048u * 1024) // bytes of a large page
#define OX_DIRECT_LARGE (512u * 1024) // bytes from which on memory is taken in whole large pages

// Memory of at least n bytes, aligned to OX_DIRECT_ALIGN, not initialised; *ret_bytes is how many there are. To be given to ox_free. From OX_DIRECT_LARGE on it
// stands in large pages where the system has some: the disk gets a few long stretches instead of hundreds of short ones.
void *ox_direct_alloc(size_t n, size_t *ret_bytes) __attribute__((returns_nonnull));
// Copies n bytes that the processor won't read again soon: many of them do not push out of its caches what is in use.
void ox_direct_copy(void *to, const void *from, size_t n);

#endif
