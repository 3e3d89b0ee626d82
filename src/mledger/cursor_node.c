// cursor_node.c - nodes of cursors as records: where the ledger is, and moving the position from one home to another. Nothing here knows an open log.
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "mledger/cursor_impl.h"

#define NODE_ARENA_BYTES (64u * 1024 * 1024) // one node and one entry, unpacked
#define NODE_STAMP "_pulsar.bookieClusterName"
#define NODE_STAMP_INTERNAL "#pulsar.internal.bookieClusterName" // survives Pulsar's update of subscription properties
#define NODE_PHYSICAL "_pulsar.physicalLedgerId"

bool cursor_key_is_internal(const char *key)
{
    return strncmp(key, "#pulsar.internal.", 17) == 0 || strncmp(key, "_pulsar.", 8) == 0;
}

static bool node_key_is_place(const char *key)
{
    return strcmp(key, NODE_STAMP) == 0 || strcmp(key, NODE_STAMP_INTERNAL) == 0;
}

Mldata__StringProperty *cursor_node_property(struct ox_arena *arena, const char *name, const char *value)
{
    Mldata__StringProperty *p = ox_arena_alloc(arena, sizeof *p);
    mldata__string_property__init(p);
    p->name = ox_arena_strndup(arena, name, strlen(name));
    p->value = ox_arena_strndup(arena, value, strlen(value));
    return p;
}

enum ox_err cursor_node_location(const struct ox_ml_factory *f, const Mldata__ManagedCursorInfo *info, struct ox_location *ret)
{
    enum ox_err err = OX_OK;
    struct ox_location where = {0, info->cursors_ledger_id, info->cursors_ledger_id};
    for (size_t i = 0; where.id >= 0 && i < info->n_cursor_properties && err == OX_OK; i++) {
        const Mldata__StringProperty *p = info->cursor_properties[i];
        if (node_key_is_place(p->name))
            err = ox_router_find(f->router, p->value, &where.place);
        else if (strcmp(p->name, NODE_PHYSICAL) == 0)
            err = ox_parse_i64(p->value, 0, INT64_MAX, &where.physical) == OX_OK ? OX_OK : OX_E_CORRUPT;
    }
    if (err == OX_OK)
        *ret = where;
    return err;
}

static void node_forget_location(Mldata__ManagedCursorInfo *info)
{
    size_t kept = 0;
    for (size_t i = 0; i < info->n_cursor_properties; i++) {
        const char *name = info->cursor_properties[i]->name;
        if (!node_key_is_place(name) && strcmp(name, NODE_PHYSICAL) != 0)
            info->cursor_properties[kept++] = info->cursor_properties[i];
    }
    info->n_cursor_properties = kept;
}

void cursor_node_locate(const struct ox_ml_factory *f, Mldata__ManagedCursorInfo *info, struct ox_arena *arena,
                        struct ox_location where)
{
    node_forget_location(info);
    if (where.id < 0)
        return;
    size_t n = info->n_cursor_properties;
    Mldata__StringProperty **all = ox_arena_alloc(arena, (n + 3) * sizeof *all);
    if (n)
        memcpy(all, info->cursor_properties, n * sizeof *all);
    if (f->settings.stamps) {
        const char *place = ox_router_name(f->router, where.place);
        all[n++] = cursor_node_property(arena, NODE_STAMP, place);
        all[n++] = cursor_node_property(arena, NODE_STAMP_INTERNAL, place);
    }
    if (where.physical != where.id) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)where.physical);
        all[n++] = cursor_node_property(arena, NODE_PHYSICAL, number);
    }
    info->cursor_properties = all;
    info->n_cursor_properties = n;
}

struct ox_buf cursor_node_encode(const struct ox_ml_factory *f, const Mldata__ManagedCursorInfo *info, struct ox_location where)
{
    bool elsewhere = where.id >= 0 && (where.place != 0 || where.physical != where.id);
    bool guarded = elsewhere && f->settings.guarded_records;
    return ox_cursor_encode(info, guarded ? OX_RECORD_GUARDED : OX_RECORD_PLAIN);
}

enum ox_err cursor_node_find(const struct ox_ml_factory *f, struct ox_buf node, struct ox_location *ret)
{
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *info = NULL;
    ox_arena_init(&arena, NODE_ARENA_BYTES);
    enum ox_err err =
        ox_cursor_decode(&arena, node, &info, NULL) == OX_OK ? cursor_node_location(f, info, ret) : OX_E_CORRUPT;
    ox_arena_fini(&arena);
    return err;
}

// ---- moving a position ------------------------------------------------------------------------------------------------

// How many runs of set bits there are in a ledger's words.
static size_t node_count_runs(const Mldata__LongListMap *map)
{
    size_t runs = 0;
    uint64_t carry = 0; // the bit before this word
    for (size_t i = 0; i < map->n_values; i++) {
        uint64_t word = (uint64_t)map->values[i];
        runs += (size_t)__builtin_popcountll(word & ~(word << 1 | carry));
        carry = word >> 63;
    }
    return runs;
}

static size_t node_count_ranges(const Mldata__PositionInfo *p)
{
    size_t n = p->n_individual_deleted_messages;
    for (size_t i = 0; i < p->n_individual_deleted_message_ranges; i++)
        n += node_count_runs(p->individual_deleted_message_ranges[i]);
    return n;
}

static Mldata__NestedPositionInfo *node_position(struct ox_arena *arena, int64_t ledger, int64_t entry)
{
    Mldata__NestedPositionInfo *p = ox_arena_alloc(arena, sizeof *p);
    mldata__nested_position_info__init(p);
    p->ledger_id = ledger;
    p->entry_id = entry;
    return p;
}

// Runs of set bits as Pulsar's ranges (first - 1, last], for the node has no field for words.
static size_t node_put_runs(struct ox_arena *arena, const Mldata__LongListMap *map, Mldata__MessageRange **out)
{
    size_t n = 0;
    int64_t bits = (int64_t)map->n_values * 64, first = -1;
    for (int64_t bit = 0; bit <= bits; bit++) {
        bool set = bit < bits && (uint64_t)map->values[bit / 64] >> bit % 64 & 1;
        if (set && first < 0)
            first = bit;
        if (set || first < 0)
            continue;
        Mldata__MessageRange *range = ox_arena_alloc(arena, sizeof *range);
        mldata__message_range__init(range);
        range->lower_endpoint = node_position(arena, map->key, first - 1);
        range->upper_endpoint = node_position(arena, map->key, bit - 1);
        out[n++] = range;
        first = -1;
    }
    return n;
}

static void node_put_position(struct ox_arena *arena, Mldata__ManagedCursorInfo *info, Mldata__PositionInfo *p)
{
    size_t n = p->n_individual_deleted_messages;
    info->individual_deleted_messages =
        ox_arena_alloc(arena, (node_count_ranges(p) + 1) * sizeof *info->individual_deleted_messages);
    if (n)
        memcpy(info->individual_deleted_messages, p->individual_deleted_messages, n * sizeof *p->individual_deleted_messages);
    for (size_t i = 0; i < p->n_individual_deleted_message_ranges; i++)
        n += node_put_runs(arena, p->individual_deleted_message_ranges[i], info->individual_deleted_messages + n);
    info->n_individual_deleted_messages = n;
    info->properties = p->properties;
    info->n_properties = p->n_properties;
    info->batched_entry_deletion_index_info = p->batched_entry_deletion_index_info;
    info->n_batched_entry_deletion_index_info = p->n_batched_entry_deletion_index_info;
}

static enum ox_err node_move(const struct ox_ml_factory *f, struct ox_arena *arena, struct ox_buf node,
                             struct ox_buf entry, struct ox_location where, struct ox_buf *ret)
{
    Mldata__ManagedCursorInfo *info = NULL;
    Mldata__PositionInfo *p = NULL;
    if (ox_cursor_decode(arena, node, &info, NULL) != OX_OK ||
        (entry.len > 0 && ox_position_decode(arena, entry, &p) != OX_OK))
        return OX_E_CORRUPT;
    info->cursors_ledger_id = where.id;
    if (p) {
        info->has_mark_delete_ledger_id = info->has_mark_delete_entry_id = 1;
        info->mark_delete_ledger_id = p->ledger_id;
        info->mark_delete_entry_id = p->entry_id;
    }
    info->n_individual_deleted_messages = info->n_properties = info->n_batched_entry_deletion_index_info = 0;
    if (p && where.id < 0)
        node_put_position(arena, info, p);
    cursor_node_locate(f, info, arena, where);
    *ret = cursor_node_encode(f, info, where);
    return OX_OK;
}

enum ox_err cursor_node_move(const struct ox_ml_factory *f, struct ox_buf node, struct ox_buf entry,
                             struct ox_location where, struct ox_buf *ret)
{
    struct ox_arena arena;
    ox_arena_init(&arena, NODE_ARENA_BYTES);
    enum ox_err err = node_move(f, &arena, node, entry, where, ret);
    ox_arena_fini(&arena);
    return err;
}

bool cursor_entry_is_position(struct ox_buf entry)
{
    struct ox_arena arena;
    Mldata__PositionInfo *p = NULL;
    ox_arena_init(&arena, NODE_ARENA_BYTES);
    bool is = ox_position_decode(&arena, entry, &p) == OX_OK;
    ox_arena_fini(&arena);
    return is;
}

// What an entry says beyond the fields of a node would be lost there.
static bool node_entry_fits(const struct ox_ml_factory *f, struct ox_buf entry)
{
    struct ox_arena arena;
    Mldata__PositionInfo *p = NULL;
    ox_arena_init(&arena, NODE_ARENA_BYTES);
    bool fits = ox_position_decode(&arena, entry, &p) == OX_OK && p->base.n_unknown_fields == 0 &&
                node_count_ranges(p) + p->n_batched_entry_deletion_index_info <= f->settings.ranges_in_node_max;
    ox_arena_fini(&arena);
    return fits;
}

bool cursor_node_holds(const struct ox_ml_factory *f, struct ox_buf node, struct ox_buf entry)
{
    struct ox_buf value = ox_buf_empty();
    if (entry.len > 0 && !node_entry_fits(f, entry))
        return false;
    bool fits = cursor_node_move(f, node, entry, (struct ox_location){0, -1, -1}, &value) == OX_OK &&
                value.len <= OX_NODE_VALUE_BYTES_MAX;
    ox_buf_unref(&value);
    return fits;
}
