// table_memory.c - the in-memory key-value store of simulated places: a sorted array, and a copy of it while a transaction writes.
#include "ledger/store/table_memory.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

struct memory_pair {
    struct ox_buf key, value; // own references
};
struct memory_content {
    struct memory_pair *pairs;
    size_t count, cap;
};
struct ox_memory_table {
    struct memory_content committed;
    uint32_t fail;
    enum ox_err fail_err;
};
// One process's view.
struct memory_kv {
    struct ox_table_kv kv;
    struct ox_memory_table *table;
    struct memory_content copy;
    bool writing;
};

static struct memory_kv *memory_of(struct ox_table_kv *kv)
{
    return CONTAINER_OF(kv, struct memory_kv, kv);
}

static struct memory_content *memory_content(struct memory_kv *m)
{
    return m->writing ? &m->copy : &m->table->committed;
}

static void memory_content_fini(struct memory_content *c)
{
    for (size_t i = 0; i < c->count; i++) {
        ox_buf_unref(&c->pairs[i].key);
        ox_buf_unref(&c->pairs[i].value);
    }
    ox_free(c->pairs);
    *c = (struct memory_content){0};
}

static int memory_cmp(struct ox_buf a, struct ox_buf b)
{
    int order = memcmp(a.data, b.data, OX_MIN(a.len, b.len));
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

// The first pair at or after key.
static size_t memory_at(const struct memory_content *c, struct ox_buf key)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (memory_cmp(c->pairs[mid].key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static enum ox_err memory_begin(struct ox_table_kv *kv, bool write)
{
    struct memory_kv *m = memory_of(kv);
    m->writing = write;
    if (!write)
        return OX_OK;
    const struct memory_content *from = &m->table->committed;
    m->copy = (struct memory_content){ox_calloc(from->count + 16, sizeof *from->pairs), from->count, from->count + 16};
    for (size_t i = 0; i < from->count; i++)
        m->copy.pairs[i] = (struct memory_pair){ox_buf_ref(from->pairs[i].key), ox_buf_ref(from->pairs[i].value)};
    return OX_OK;
}

static enum ox_err memory_seek(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf *ret_key, struct ox_buf *ret_value)
{
    const struct memory_content *c = memory_content(memory_of(kv));
    size_t at = memory_at(c, key);
    if (at == c->count)
        return OX_E_NOT_FOUND;
    *ret_key = c->pairs[at].key;
    *ret_value = c->pairs[at].value;
    return OX_OK;
}

static enum ox_err memory_get(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf *ret_value)
{
    struct ox_buf found;
    enum ox_err err = memory_seek(kv, key, &found, ret_value);
    return err == OX_OK && memory_cmp(found, key) != 0 ? OX_E_NOT_FOUND : err;
}

static enum ox_err memory_put(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf value)
{
    struct memory_content *c = &memory_of(kv)->copy;
    size_t at = memory_at(c, key);
    struct ox_buf copy = ox_buf_copy(value.data, value.len);
    if (at < c->count && memory_cmp(c->pairs[at].key, key) == 0) {
        ox_buf_unref(&c->pairs[at].value);
        c->pairs[at].value = copy;
        return OX_OK;
    }
    if (c->count == c->cap)
        c->pairs = ox_realloc(c->pairs, c->cap *= 2, sizeof *c->pairs);
    memmove(&c->pairs[at + 1], &c->pairs[at], (c->count - at) * sizeof *c->pairs);
    c->pairs[at] = (struct memory_pair){ox_buf_copy(key.data, key.len), copy};
    c->count++;
    return OX_OK;
}

static enum ox_err memory_del(struct ox_table_kv *kv, struct ox_buf key)
{
    struct memory_content *c = &memory_of(kv)->copy;
    size_t at = memory_at(c, key);
    if (at == c->count || memory_cmp(c->pairs[at].key, key) != 0)
        return OX_OK;
    ox_buf_unref(&c->pairs[at].key);
    ox_buf_unref(&c->pairs[at].value);
    memmove(&c->pairs[at], &c->pairs[at + 1], (c->count - at - 1) * sizeof *c->pairs);
    c->count--;
    return OX_OK;
}

static void memory_abort(struct ox_table_kv *kv)
{
    struct memory_kv *m = memory_of(kv);
    if (m->writing)
        memory_content_fini(&m->copy);
    m->writing = false;
}

static enum ox_err memory_commit(struct ox_table_kv *kv)
{
    struct memory_kv *m = memory_of(kv);
    if (m->writing && m->table->fail > 0) {
        m->table->fail--;
        memory_abort(kv);
        return m->table->fail_err;
    }
    if (m->writing) {
        memory_content_fini(&m->table->committed);
        m->table->committed = m->copy;
        m->copy = (struct memory_content){0};
    }
    m->writing = false;
    return OX_OK;
}

static void memory_close(struct ox_table_kv *kv)
{
    ox_free(memory_of(kv));
}

static const struct ox_table_kv_body memory_body = {
    .begin = memory_begin,
    .get = memory_get,
    .seek = memory_seek,
    .put = memory_put,
    .del = memory_del,
    .commit = memory_commit,
    .abort = memory_abort,
    .close = memory_close,
};

struct ox_memory_table *ox_memory_table_new(void)
{
    return ox_malloc(sizeof(struct ox_memory_table));
}

void ox_memory_table_free(struct ox_memory_table *m)
{
    memory_content_fini(&m->committed);
    ox_free(m);
}

static enum ox_err memory_open(void *ctx, const char *dir, struct ox_table_kv **ret)
{
    (void)dir;
    struct memory_kv *m = ox_malloc(sizeof *m);
    m->kv.body = &memory_body;
    m->table = ctx;
    *ret = &m->kv;
    return OX_OK;
}

struct ox_table_source ox_memory_table_source(struct ox_memory_table *m)
{
    return (struct ox_table_source){memory_open, m};
}

void ox_memory_table_fail(struct ox_memory_table *m, uint32_t n, enum ox_err err)
{
    m->fail = n;
    m->fail_err = err;
}
