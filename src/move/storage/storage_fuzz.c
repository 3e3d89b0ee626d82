// storage_fuzz.c - fuzzes the readers of the switch's nodes; what is read and written again must be read the same.
#include "fuzz.h"

#include "move/storage/records.h"

static void fuzz_directive(struct ox_buf value)
{
    struct storage_directive d, again;
    if (storage_directive_read(value, 3, &d) != OX_OK)
        return;
    struct ox_buf text = storage_directive_text(&d);
    OX_ASSERT(storage_directive_read(text, 4, &again) == OX_OK);
    OX_ASSERT(again.epoch == d.epoch && !again.partial);
    ox_buf_unref(&text);
    storage_directive_copy(&again, &d);
    storage_directive_fini(&again);
    storage_directive_fini(&d);
}

static void fuzz_header(struct ox_buf value)
{
    struct storage_header h, again;
    if (storage_header_read(value, &h) != OX_OK)
        return;
    struct ox_buf text = storage_header_text(&h, NULL);
    OX_ASSERT(storage_header_read(text, &again) == OX_OK && again.state == h.state);
    ox_buf_unref(&text);
    storage_header_fini(&again);
    storage_header_fini(&h);
}

static void fuzz_bootstrap(struct ox_buf value)
{
    struct storage_bootstrap b;
    if (storage_bootstrap_read(value, &b) != OX_OK)
        return;
    struct ox_buf text = storage_bootstrap_text(&b);
    struct storage_bootstrap again;
    OX_ASSERT(storage_bootstrap_read(text, &again) == OX_OK);
    ox_buf_unref(&text);
    storage_bootstrap_fini(&again);
    storage_bootstrap_fini(&b);
}

static void fuzz_failures(struct ox_buf value)
{
    struct ox_list list;
    struct ox_link *link;
    ox_list_init(&list);
    enum ox_err err = storage_failures_read(value, &list);
    while ((link = ox_list_pop_front(&list))) {
        struct storage_failure *f = CONTAINER_OF(link, struct storage_failure, link);
        json_t *json = storage_failure_json(f);
        OX_ASSERT(json || err == OX_OK);
        json_decref(json);
        storage_failure_free(f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ox_buf value = ox_buf_copy(data, size);
    struct storage_entry e;
    if (storage_entry_read(value, &e) == OX_OK)
        storage_entry_fini(&e);
    fuzz_directive(value);
    fuzz_header(value);
    fuzz_bootstrap(value);
    fuzz_failures(value);
    ox_buf_unref(&value);
    return 0;
}
