// mem.h - allocation that never returns NULL, scope cleanup and small macros.
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

// Memory of n bytes, zeroed; the process aborts when there is none. n may be 0.
void *ox_malloc(size_t n) __attribute__((malloc, returns_nonnull));
// Like ox_malloc, but the bytes are not initialised.
void *ox_malloc_raw(size_t n) __attribute__((malloc, returns_nonnull));
// count * size bytes, zeroed; an overflow of the product aborts.
void *ox_calloc(size_t count, size_t size) __attribute__((returns_nonnull));
// p resized to count * size bytes; new bytes are not zeroed.
void *ox_realloc(void *p, size_t count, size_t size) __attribute__((returns_nonnull));
// Gives memory back; NULL is allowed.
void ox_free(void *p);
// A copy of a string, to be given to ox_free.
char *ox_strdup(const char *s) __attribute__((returns_nonnull));
// A zero-terminated copy of n bytes, to be given to ox_free.
char *ox_strndup(const char *s, size_t n) __attribute__((returns_nonnull));
// A copy of n bytes, to be given to ox_free.
void *ox_memdup(const void *p, size_t n) __attribute__((returns_nonnull));
// printf into a fresh string, to be given to ox_free.
char *ox_asprintf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

// Scope cleanup of a `char *` or other ox_malloc memory: `OX_CLEANUP(ox_free_ptr) char *s = ...`.
void ox_free_ptr(void *pointer_to_pointer);
#define OX_CLEANUP(fn) __attribute__((cleanup(fn)))

// The struct that embeds `member`, given a pointer to the member.
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define OX_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OX_MIN(a, b) ((a) < (b) ? (a) : (b))
#define OX_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
