// mem.c - allocation that aborts instead of failing.
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static void *mem_checked(void *p)
{
    if (__builtin_expect(p == NULL, 0))
        ox_abort("out of memory");
    return p;
}

void *ox_malloc(size_t n)
{
    return mem_checked(calloc(1, n ? n : 1));
}

void *ox_malloc_raw(size_t n)
{
    return mem_checked(malloc(n ? n : 1));
}

void *ox_calloc(size_t count, size_t size)
{
    return mem_checked(calloc(count ? count : 1, size ? size : 1));
}

void *ox_realloc(void *p, size_t count, size_t size)
{
    size_t bytes;
    OX_ASSERT(!__builtin_mul_overflow(count, size, &bytes));
    return mem_checked(realloc(p, bytes ? bytes : 1));
}

void ox_free(void *p)
{
    free(p);
}

char *ox_strdup(const char *s)
{
    return ox_strndup(s, strlen(s));
}

char *ox_strndup(const char *s, size_t n)
{
    char *copy = (char *)ox_malloc_raw(n + 1);
    if (n)
        memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}

void *ox_memdup(const void *p, size_t n)
{
    void *copy = ox_malloc_raw(n);
    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *ox_asprintf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    return (char *)mem_checked(n < 0 ? NULL : text);
}

void ox_free_ptr(void *pointer_to_pointer)
{
    void **p = (void **)pointer_to_pointer;
    ox_free(*p);
    *p = NULL;
}
