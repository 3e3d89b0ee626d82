// record.c - edits of a log's record on the unpacked message.
#include "mledger/record.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"

#define RECORD_ARENA_BYTES (16u * OX_NODE_VALUE_BYTES_MAX)

typedef Mldata__ManagedLedgerInfo__LedgerInfo record_ledger;

struct ox_record *ox_record_new(void)
{
    struct ox_record *r = ox_malloc(sizeof *r);
    ox_arena_init(&r->arena, RECORD_ARENA_BYTES);
    OX_ASSERT(ox_record_decode(r, ox_buf_empty()) == OX_OK);
    return r;
}

void ox_record_free(struct ox_record *r)
{
    if (!r)
        return;
    ox_arena_fini(&r->arena);
    ox_free(r);
}

static bool record_ids_rise(const struct ox_record *r)
{
    int64_t last = -1;
    for (size_t i = 0; i < r->info->n_ledger_info; i++) {
        if (r->info->ledger_info[i]->ledger_id <= last)
            return false;
        last = r->info->ledger_info[i]->ledger_id;
    }
    return true;
}

enum ox_err ox_record_decode(struct ox_record *r, struct ox_buf value)
{
    ox_arena_reset(&r->arena);
    enum ox_err err = ox_ledgers_decode(&r->arena, value, &r->info, NULL);
    if (err == OX_OK && !record_ids_rise(r))
        err = OX_E_CORRUPT;
    return err;
}

struct ox_buf ox_record_encode(const struct ox_record *r, bool guard, const char *bootstrap)
{
    bool guarded = guard && ox_record_is_foreign(r, bootstrap);
    return ox_ledgers_encode(r->info, guarded ? OX_RECORD_GUARDED : OX_RECORD_PLAIN);
}

void ox_record_copy(struct ox_record *to, const struct ox_record *from)
{
    struct ox_buf bytes = ox_ledgers_encode(from->info, OX_RECORD_PLAIN);
    enum ox_err err = ox_record_decode(to, bytes);
    OX_ASSERT(err == OX_OK);
    ox_buf_unref(&bytes);
}

// ---- memory of the message -------------------------------------------------------------------------------------------

static void *record_alloc(struct ox_record *r, size_t n)
{
    void *p = ox_arena_calloc(&r->arena, 1, n);
    OX_ASSERT(p);
    return p;
}

static char *record_text(struct ox_record *r, const char *text)
{
    char *p = ox_arena_strndup(&r->arena, text, strlen(text));
    OX_ASSERT(p);
    return p;
}

// A list of pointers with one more place at its end.
static void *record_grow(struct ox_record *r, const void *list, size_t count)
{
    void **grown = record_alloc(r, (count + 1) * sizeof(void *));
    if (count)
        memcpy(grown, list, count * sizeof(void *));
    return grown;
}

static Mldata__KeyValue *record_find_pair(Mldata__KeyValue *const *pairs, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i]->key, key) == 0)
            return pairs[i];
    return NULL;
}

static void record_set_pair(struct ox_record *r, Mldata__KeyValue ***pairs, size_t *count, const char *key, const char *value)
{
    Mldata__KeyValue *pair = record_find_pair(*pairs, *count, key);
    if (!pair) {
        pair = record_alloc(r, sizeof *pair);
        mldata__key_value__init(pair);
        pair->key = record_text(r, key);
        *pairs = record_grow(r, *pairs, *count);
        (*pairs)[(*count)++] = pair;
    }
    pair->value = record_text(r, value);
}

// Returns how many pairs are left.
static size_t record_unset_pair(Mldata__KeyValue **pairs, size_t count, const char *key)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i]->key, key) != 0)
            pairs[kept++] = pairs[i];
    return kept;
}

// ---- what is in it ---------------------------------------------------------------------------------------------------

size_t ox_record_count(const struct ox_record *r)
{
    return r->info->n_ledger_info;
}

static record_ledger *record_find(const struct ox_record *r, int64_t id)
{
    for (size_t i = 0; i < r->info->n_ledger_info; i++)
        if (r->info->ledger_info[i]->ledger_id == id)
            return r->info->ledger_info[i];
    return NULL;
}

static const char *record_stamp_value(const record_ledger *l, const char *key)
{
    const Mldata__KeyValue *pair = record_find_pair(l->properties, l->n_properties, key);
    return pair ? pair->value : NULL;
}

struct ox_record_ledger ox_record_get(const struct ox_record *r, size_t i)
{
    OX_ASSERT(i < r->info->n_ledger_info);
    const record_ledger *l = r->info->ledger_info[i];
    struct ox_record_ledger ret = {.id = l->ledger_id, .physical = l->ledger_id};
    const char *physical = record_stamp_value(l, OX_STAMP_PHYSICAL);
    if (physical && ox_parse_i64(physical, 0, INT64_MAX, &ret.physical) != OX_OK)
        ret.physical = -1;
    ret.place = record_stamp_value(l, OX_STAMP_PLACE);
    ret.entries = l->has_entries && l->entries > 0 ? l->entries : 0;
    ret.bytes = l->has_size && l->size > 0 ? (uint64_t)l->size : 0;
    ret.copies = record_stamp_value(l, OX_STAMP_COPIES);
    ret.digest = record_stamp_value(l, OX_STAMP_DIGEST);
    ret.closed_ms = l->has_timestamp && l->timestamp > 0 ? (uint64_t)l->timestamp : 0;
    return ret;
}

size_t ox_record_at(const struct ox_record *r, int64_t id)
{
    size_t i = 0;
    while (i < r->info->n_ledger_info && r->info->ledger_info[i]->ledger_id != id)
        i++;
    return i;
}

static enum ox_err record_ledger_names(const struct ox_record_ledger *l, const char *bootstrap, const char *place,
                                       int64_t physical, bool *ret)
{
    struct ox_copies copies = {0};
    if (l->physical < 0)
        return OX_E_CORRUPT;
    enum ox_err err = ox_copies_parse(&copies, l->copies);
    *ret |= (l->physical == physical && strcmp(l->place ? l->place : bootstrap, place) == 0) ||
            ox_copies_find(&copies, place, physical);
    ox_copies_fini(&copies);
    return err;
}

enum ox_err ox_record_names(const struct ox_record *r, const char *bootstrap, const char *place, int64_t physical, bool *ret)
{
    enum ox_err first = OX_OK;
    *ret = false;
    for (size_t i = 0; i < ox_record_count(r); i++) {
        struct ox_record_ledger l = ox_record_get(r, i);
        enum ox_err err = record_ledger_names(&l, bootstrap, place, physical, ret);
        first = first == OX_OK ? err : first;
    }
    struct ox_copies compacted = {0};
    enum ox_err err = ox_copies_parse(&compacted, ox_record_find_property(r, OX_PROPERTY_COMPACTED));
    *ret |= ox_copies_find(&compacted, place, physical) != NULL;
    ox_copies_fini(&compacted);
    first = first == OX_OK ? err : first;
    return first;
}

bool ox_record_terminated(const struct ox_record *r, struct ox_pos *ret)
{
    if (!r->info->terminated_position)
        return false;
    *ret = (struct ox_pos){r->info->terminated_position->ledger_id, r->info->terminated_position->entry_id};
    return true;
}

static bool record_ledger_is_foreign(const record_ledger *l, const char *bootstrap)
{
    const char *place = record_stamp_value(l, OX_STAMP_PLACE);
    return (place && strcmp(place, bootstrap) != 0) || record_stamp_value(l, OX_STAMP_PHYSICAL) ||
           record_stamp_value(l, OX_STAMP_TRUNCATED);
}

bool ox_record_is_foreign(const struct ox_record *r, const char *bootstrap)
{
    for (size_t i = 0; i < r->info->n_ledger_info; i++)
        if (record_ledger_is_foreign(r->info->ledger_info[i], bootstrap))
            return true;
    return false;
}

const char *ox_record_find_property(const struct ox_record *r, const char *key)
{
    const Mldata__KeyValue *pair = record_find_pair(r->info->properties, r->info->n_properties, key);
    return pair ? pair->value : NULL;
}

// ---- edits -----------------------------------------------------------------------------------------------------------

void ox_record_append_open(struct ox_record *r, int64_t id)
{
    size_t n = r->info->n_ledger_info;
    OX_ASSERT(n == 0 || r->info->ledger_info[n - 1]->ledger_id < id);
    record_ledger *l = record_alloc(r, sizeof *l);
    mldata__managed_ledger_info__ledger_info__init(l);
    l->ledger_id = id;
    l->has_timestamp = true; // 0, as Pulsar writes it
    r->info->ledger_info = record_grow(r, r->info->ledger_info, n);
    r->info->ledger_info[n] = l;
    r->info->n_ledger_info = n + 1;
}

void ox_record_set_ledger_property(struct ox_record *r, int64_t id, const char *key, const char *value)
{
    record_ledger *l = record_find(r, id);
    OX_ASSERT(l);
    record_set_pair(r, &l->properties, &l->n_properties, key, value);
}

void ox_record_unset_ledger_property(struct ox_record *r, int64_t id, const char *key)
{
    record_ledger *l = record_find(r, id);
    OX_ASSERT(l);
    l->n_properties = record_unset_pair(l->properties, l->n_properties, key);
}

void ox_record_stamp(struct ox_record *r, struct ox_location where, const char *place)
{
    ox_record_set_ledger_property(r, where.id, OX_STAMP_PLACE, place);
    if (where.physical == where.id) {
        ox_record_unset_ledger_property(r, where.id, OX_STAMP_PHYSICAL);
        return;
    }
    OX_CLEANUP(ox_free_ptr)
    char *physical = ox_asprintf("%lld", (long long)where.physical);
    ox_record_set_ledger_property(r, where.id, OX_STAMP_PHYSICAL, physical);
}

void ox_record_set_copies(struct ox_record *r, int64_t id, const struct ox_copies *copies)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_copies_text(copies);
    if (text)
        ox_record_set_ledger_property(r, id, OX_STAMP_COPIES, text);
    else
        ox_record_unset_ledger_property(r, id, OX_STAMP_COPIES);
}

void ox_record_seal(struct ox_record *r, int64_t id, int64_t entries, uint64_t bytes, uint64_t closed_ms)
{
    record_ledger *l = record_find(r, id);
    OX_ASSERT(l);
    l->has_entries = l->has_size = l->has_timestamp = true;
    l->entries = entries;
    l->size = (int64_t)bytes;
    l->timestamp = (int64_t)closed_ms;
}

bool ox_record_drop(struct ox_record *r, int64_t id)
{
    size_t kept = 0, count = r->info->n_ledger_info;
    for (size_t i = 0; i < count; i++)
        if (r->info->ledger_info[i]->ledger_id != id)
            r->info->ledger_info[kept++] = r->info->ledger_info[i];
    r->info->n_ledger_info = kept;
    return kept < count;
}

void ox_record_drop_all(struct ox_record *r)
{
    r->info->n_ledger_info = 0;
}

void ox_record_set_property(struct ox_record *r, const char *key, const char *value)
{
    record_set_pair(r, &r->info->properties, &r->info->n_properties, key, value);
}

void ox_record_unset_property(struct ox_record *r, const char *key)
{
    r->info->n_properties = record_unset_pair(r->info->properties, r->info->n_properties, key);
}

void ox_record_terminate(struct ox_record *r, struct ox_pos last)
{
    Mldata__NestedPositionInfo *p = record_alloc(r, sizeof *p);
    mldata__nested_position_info__init(p);
    p->ledger_id = last.ledger;
    p->entry_id = last.entry;
    r->info->terminated_position = p;
}
