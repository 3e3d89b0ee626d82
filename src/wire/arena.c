// arena.c - memory that is handed out piece by piece and taken back as a whole.
#include <stdalign.h>
#include <string.h>

#include "base/mem.h"
#include "wire/proto.h"

#define ARENA_BLOCK_BYTES 480u       // of the first block: there are two arenas for each topic
#define ARENA_BLOCK_BYTES_KEPT 4000u // a larger one goes at a reset
#define ARENA_BLOCK_BYTES_MAX (64u * 1024u)

struct ox_arena_block {
    struct ox_arena_block *next;
    size_t size, used; // of data
    alignas(max_align_t) uint8_t data[];
};

static void *arena_proto_alloc(void *arena, size_t n)
{
    return ox_arena_alloc((struct ox_arena *)arena, n);
}

static void arena_proto_free(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

void ox_arena_init(struct ox_arena *arena, size_t limit)
{
    *arena = (struct ox_arena){
        .allocator = {arena_proto_alloc, arena_proto_free, arena},
        .limit = limit,
    };
}

static void arena_drop(struct ox_arena *arena)
{
    struct ox_arena_block *block = arena->blocks;
    arena->blocks = block->next;
    ox_free(block);
}

void ox_arena_reset(struct ox_arena *arena)
{
    while (arena->blocks && arena->blocks->size > ARENA_BLOCK_BYTES_KEPT)
        arena_drop(arena);
    struct ox_arena_block *kept = arena->blocks;
    if (kept) {
        arena->blocks = kept->next;
        while (arena->blocks)
            arena_drop(arena);
        kept->next = NULL;
        kept->used = 0;
        arena->blocks = kept;
    }
    arena->used = 0;
    arena->over = false;
}

void ox_arena_fini(struct ox_arena *arena)
{
    while (arena->blocks)
        arena_drop(arena);
    arena->used = 0;
}

static void arena_grow(struct ox_arena *arena, size_t n)
{
    size_t size = arena->blocks ? OX_MIN(arena->blocks->size * 2, ARENA_BLOCK_BYTES_MAX) : ARENA_BLOCK_BYTES;
    size = OX_MAX(size, n);
    struct ox_arena_block *block = (struct ox_arena_block *)ox_malloc_raw(sizeof *block + size);
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
}

void *ox_arena_alloc(struct ox_arena *arena, size_t n)
{
    size_t left = arena->limit - arena->used;
    if (n > left || arena->used > arena->limit) {
        arena->over = true;
        return NULL;
    }
    size_t rounded = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (arena->blocks == NULL || arena->blocks->size - arena->blocks->used < rounded)
        arena_grow(arena, rounded);
    void *p = arena->blocks->data + arena->blocks->used;
    arena->blocks->used += rounded;
    arena->used += OX_MIN(rounded, left);
    return p;
}

void *ox_arena_calloc(struct ox_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->over = true;
        return NULL;
    }
    void *p = ox_arena_alloc(arena, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

char *ox_arena_strndup(struct ox_arena *arena, const char *s, size_t len)
{
    char *copy = len < SIZE_MAX ? (char *)ox_arena_alloc(arena, len + 1) : NULL;
    if (copy) {
        memcpy(copy, s, len);
        copy[len] = 0;
    }
    return copy;
}
