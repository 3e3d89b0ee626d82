// cursor_record.c - a cursor's state to and from Pulsar's records: the node and the entries of cursor ledgers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mledger/cursor_impl.h"
#include "wire/mldata.h"

#define CURSOR_ARENA_BYTES (64u * 1024 * 1024) // one record, unpacked

static size_t cursor_range_count(const struct ox_cursor *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->hole_count; i++)
        n += c->holes[i].acked.count;
    return n;
}

bool cursor_fits_node(const struct ox_cursor *c)
{
    size_t count = cursor_range_count(c) + ox_batch_acks_count(&c->batches);
    return count <= c->ml->factory->settings.ranges_in_node_max && cursor_parts_bytes_max(c) <= OX_NODE_VALUE_BYTES_MAX / 2;
}

Mldata__NestedPositionInfo *cursor_nested(struct ox_arena *arena, int64_t ledger, int64_t entry)
{
    Mldata__NestedPositionInfo *p = ox_arena_alloc(arena, sizeof *p);
    mldata__nested_position_info__init(p);
    p->ledger_id = ledger;
    p->entry_id = entry;
    return p;
}

// first..last as Pulsar's (first - 1, last].
static Mldata__MessageRange *cursor_message_range(struct ox_arena *arena, int64_t ledger, struct ox_range range)
{
    Mldata__MessageRange *m = ox_arena_alloc(arena, sizeof *m);
    mldata__message_range__init(m);
    m->lower_endpoint = cursor_nested(arena, ledger, range.first - 1);
    m->upper_endpoint = cursor_nested(arena, ledger, range.last);
    return m;
}

// All ranges up to `max`, the oldest first: what does not fit is delivered again after a restart.
static Mldata__MessageRange **cursor_ranges(const struct ox_cursor *c, struct ox_arena *arena, size_t max, size_t *ret_count)
{
    size_t total = OX_MIN(cursor_range_count(c), max), n = 0;
    Mldata__MessageRange **ranges = ox_arena_alloc(arena, (total + 1) * sizeof *ranges);
    for (size_t i = 0; i < c->hole_count && n < total; i++)
        for (size_t k = 0; k < c->holes[i].acked.count && n < total; k++)
            ranges[n++] = cursor_message_range(arena, c->holes[i].ledger, c->holes[i].acked.items[k]);
    *ret_count = n;
    return ranges;
}

static Mldata__LongProperty **cursor_longs(const struct ox_kv *longs, struct ox_arena *arena, size_t *ret_count)
{
    Mldata__LongProperty **list = ox_arena_alloc(arena, (longs->count + 1) * sizeof *list);
    for (size_t i = 0; i < longs->count; i++) {
        list[i] = ox_arena_alloc(arena, sizeof **list);
        mldata__long_property__init(list[i]);
        list[i]->name = longs->pairs[i].key;
        list[i]->value = strtoll(longs->pairs[i].value, NULL, 10);
    }
    *ret_count = longs->count;
    return list;
}

struct ox_buf cursor_pack_position(const struct ox_cursor *c, struct ox_pos mark_delete)
{
    struct ox_arena arena;
    ox_arena_init(&arena, CURSOR_ARENA_BYTES);
    Mldata__PositionInfo info = MLDATA__POSITION_INFO__INIT;
    info.ledger_id = mark_delete.ledger;
    info.entry_id = mark_delete.entry;
    info.individual_deleted_messages =
        cursor_ranges(c, &arena, c->ml->factory->settings.ranges_persisted_max, &info.n_individual_deleted_messages);
    info.properties = cursor_longs(&c->position_properties, &arena, &info.n_properties);
    info.batched_entry_deletion_index_info = cursor_pack_parts(
        c, &arena, c->ml->factory->settings.batch_sets_persisted_max, &info.n_batched_entry_deletion_index_info);
    struct ox_buf bytes = ox_position_encode(&info);
    ox_arena_fini(&arena);
    return bytes;
}

// User properties as they are now, internal ones as they were found, and where the cursor ledger is.
static void cursor_pack_properties(const struct ox_cursor *c, Mldata__ManagedCursorInfo *info, struct ox_arena *arena,
                                   struct ox_location where)
{
    size_t old_count = info->n_cursor_properties;
    Mldata__StringProperty **old = info->cursor_properties;
    info->n_cursor_properties = 0;
    info->cursor_properties = ox_arena_alloc(arena, (old_count + c->properties.count + 1) * sizeof *old);
    for (size_t i = 0; i < c->properties.count; i++)
        info->cursor_properties[info->n_cursor_properties++] =
            cursor_node_property(arena, c->properties.pairs[i].key, c->properties.pairs[i].value);
    for (size_t i = 0; i < old_count; i++)
        if (cursor_key_is_internal(old[i]->name))
            info->cursor_properties[info->n_cursor_properties++] = old[i];
    cursor_node_locate(c->ml->factory, info, arena, where);
}

static void cursor_put_position(const struct ox_cursor *c, Mldata__ManagedCursorInfo *info, struct ox_arena *arena)
{
    info->cursors_ledger_id = -1;
    info->individual_deleted_messages =
        cursor_ranges(c, arena, c->ml->factory->settings.ranges_in_node_max, &info->n_individual_deleted_messages);
    info->properties = cursor_longs(&c->position_properties, arena, &info->n_properties);
    const struct ox_ml_settings *set = &c->ml->factory->settings;
    size_t room = set->ranges_in_node_max - info->n_individual_deleted_messages;
    info->batched_entry_deletion_index_info = cursor_pack_parts(c, arena, OX_MIN(room, set->batch_sets_persisted_max),
                                                                &info->n_batched_entry_deletion_index_info);
}

static void cursor_put_ledger(Mldata__ManagedCursorInfo *info, int64_t ledger)
{
    info->cursors_ledger_id = ledger;
    info->n_individual_deleted_messages = 0;
    info->n_properties = 0;
    info->n_batched_entry_deletion_index_info = 0;
}

struct ox_buf cursor_pack_node(const struct ox_cursor *c, bool with_position, struct ox_location where, struct ox_pos snapshot)
{
    const struct cursor_impl *impl = cursor_impl(c);
    struct ox_arena arena;
    ox_arena_init(&arena, CURSOR_ARENA_BYTES);
    Mldata__ManagedCursorInfo fresh = MLDATA__MANAGED_CURSOR_INFO__INIT, *info = &fresh;
    // The value is made from the one that is there, so that fields which we do not know stay.
    if (impl->node_value.len > 0)
        OX_ASSERT(ox_cursor_decode(&arena, impl->node_value, &info, NULL) == OX_OK);
    if (with_position) {
        where.id = where.physical = -1;
        cursor_put_position(c, info, &arena);
    } else {
        cursor_put_ledger(info, where.id);
    }
    info->has_mark_delete_ledger_id = info->has_mark_delete_entry_id = info->has_last_active = 1;
    info->mark_delete_ledger_id = snapshot.ledger;
    info->mark_delete_entry_id = snapshot.entry;
    info->last_active = (int64_t)c->last_active_ms;
    cursor_pack_properties(c, info, &arena, where);
    struct ox_buf bytes = cursor_node_encode(c->ml->factory, info, where);
    ox_arena_fini(&arena);
    return bytes;
}

// Acknowledged entries first..last, as far as their ledger is one of the log's.
static void cursor_take_entries(struct ox_cursor *c, int64_t ledger, int64_t first, int64_t last)
{
    const struct ox_ml_ledger *l = ox_ml_ledger(c->ml, ledger);
    if (l && l->sealed)
        last = OX_MIN(last, l->entries - 1);
    if (l && first <= last && first >= 0)
        cursor_add_hole(c, ledger, first, last);
}

static void cursor_take_ranges(struct ox_cursor *c, Mldata__MessageRange **ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Mldata__NestedPositionInfo *low = ranges[i]->lower_endpoint, *high = ranges[i]->upper_endpoint;
        if (low->ledger_id == high->ledger_id) {
            cursor_take_entries(c, high->ledger_id, OX_MAX(low->entry_id, -1) + 1, high->entry_id);
            continue;
        }
        const struct ox_ml_ledger *l = ox_ml_ledger(c->ml, low->ledger_id);
        if (l && l->sealed)
            cursor_take_entries(c, low->ledger_id, OX_MAX(low->entry_id, -1) + 1, l->entries - 1);
        cursor_take_entries(c, high->ledger_id, 0, high->entry_id);
    }
}

// Acknowledged entries as words of a bit set.
static void cursor_take_words(struct ox_cursor *c, const Mldata__LongListMap *map)
{
    for (size_t w = 0; w < map->n_values; w++) {
        uint64_t bits = (uint64_t)map->values[w];
        while (bits) {
            int bit = __builtin_ctzll(bits);
            cursor_take_entries(c, map->key, (int64_t)w * 64 + bit, (int64_t)w * 64 + bit);
            bits &= bits - 1;
        }
    }
}

static void cursor_take_longs(struct ox_cursor *c, Mldata__LongProperty **longs, size_t count)
{
    struct ox_kv *kv = &c->position_properties;
    ox_kv_fini(kv);
    for (size_t i = 0; i < count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)longs[i]->value);
        ox_kv_set(kv, longs[i]->name, number);
    }
}

enum ox_err cursor_take_position(struct ox_cursor *c, struct ox_buf record)
{
    struct ox_arena arena;
    ox_arena_init(&arena, CURSOR_ARENA_BYTES);
    Mldata__PositionInfo *info = NULL;
    enum ox_err err = ox_position_decode(&arena, record, &info);
    if (err == OX_OK) {
        c->mark_delete = (struct ox_pos){info->ledger_id, info->entry_id};
        cursor_take_ranges(c, info->individual_deleted_messages, info->n_individual_deleted_messages);
        for (size_t i = 0; i < info->n_individual_deleted_message_ranges; i++)
            cursor_take_words(c, info->individual_deleted_message_ranges[i]);
        cursor_take_longs(c, info->properties, info->n_properties);
        cursor_take_parts(c, info->batched_entry_deletion_index_info, info->n_batched_entry_deletion_index_info);
    }
    ox_arena_fini(&arena);
    return err == OX_OK ? OX_OK : OX_E_CORRUPT;
}

static void cursor_take_properties(struct ox_cursor *c, const Mldata__ManagedCursorInfo *info)
{
    for (size_t i = 0; i < info->n_cursor_properties; i++)
        if (!cursor_key_is_internal(info->cursor_properties[i]->name))
            ox_kv_set(&c->properties, info->cursor_properties[i]->name, info->cursor_properties[i]->value);
}

enum ox_err cursor_take_node(struct ox_cursor *c, struct ox_buf value, struct ox_location *ret_where)
{
    struct ox_arena arena;
    ox_arena_init(&arena, CURSOR_ARENA_BYTES);
    Mldata__ManagedCursorInfo *info = NULL;
    enum ox_err err = ox_cursor_decode(&arena, value, &info, NULL);
    err = err == OX_OK ? cursor_node_location(c->ml->factory, info, ret_where) : OX_E_CORRUPT;
    if (err == OX_OK) {
        cursor_take_properties(c, info);
        if (info->has_mark_delete_ledger_id && info->has_mark_delete_entry_id)
            c->mark_delete = (struct ox_pos){info->mark_delete_ledger_id, info->mark_delete_entry_id};
        if (info->has_last_active)
            c->last_active_ms = (uint64_t)info->last_active;
        if (info->cursors_ledger_id < 0) {
            cursor_take_ranges(c, info->individual_deleted_messages, info->n_individual_deleted_messages);
            cursor_take_longs(c, info->properties, info->n_properties);
            cursor_take_parts(c, info->batched_entry_deletion_index_info, info->n_batched_entry_deletion_index_info);
        }
        cursor_impl(c)->node_value = ox_buf_ref(value);
    }
    ox_arena_fini(&arena);
    return err;
}

bool cursor_node_is_unused(struct ox_buf value)
{
    struct ox_arena arena;
    ox_arena_init(&arena, CURSOR_ARENA_BYTES);
    Mldata__ManagedCursorInfo *info = NULL;
    bool unused = ox_cursor_decode(&arena, value, &info, NULL) == OX_OK && info->cursors_ledger_id < 0 &&
                  info->n_individual_deleted_messages == 0 && info->n_batched_entry_deletion_index_info == 0;
    ox_arena_fini(&arena);
    return unused;
}
