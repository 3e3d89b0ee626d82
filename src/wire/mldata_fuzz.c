// mldata_fuzz.c - records of managed ledgers: what can be read is written again and reads the same.
#include "base/assert.h"
#include "fuzz.h"
#include "wire/mldata.h"

// Encodes twice with a decoding between: both must give the same bytes.
static void fuzz_ledgers(struct ox_arena *arena, struct ox_buf record)
{
    Mldata__ManagedLedgerInfo *info;
    enum ox_record_form form;
    if (ox_ledgers_decode(arena, record, &info, &form) != OX_OK)
        return;
    struct ox_buf first = ox_ledgers_encode(info, OX_RECORD_GUARDED);
    if (ox_ledgers_decode(arena, first, &info, &form) == OX_OK) {
        struct ox_buf second = ox_ledgers_encode(info, form);
        OX_ASSERT(form == OX_RECORD_GUARDED && ox_buf_equal(first, second));
        ox_buf_unref(&second);
    }
    ox_buf_unref(&first);
}

static void fuzz_cursor(struct ox_arena *arena, struct ox_buf record)
{
    Mldata__ManagedCursorInfo *info;
    if (ox_cursor_decode(arena, record, &info, NULL) != OX_OK)
        return;
    struct ox_buf bytes = ox_cursor_encode(info, OX_RECORD_PLAIN);
    ox_buf_unref(&bytes);
}

static void fuzz_position(struct ox_arena *arena, struct ox_buf record)
{
    Mldata__PositionInfo *info;
    if (ox_position_decode(arena, record, &info) != OX_OK)
        return;
    struct ox_buf bytes = ox_position_encode(info);
    ox_buf_unref(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ox_buf record = ox_buf_copy(data, size);
    struct ox_arena arena;
    ox_arena_init(&arena, 16u << 20);
    fuzz_ledgers(&arena, record);
    ox_arena_reset(&arena);
    fuzz_cursor(&arena, record);
    ox_arena_reset(&arena);
    fuzz_position(&arena, record);
    ox_arena_fini(&arena);
    ox_buf_unref(&record);
    return 0;
}
