// named.c - reads in nodes where ledgers are.
#include "mledger/named.h"

#include <string.h>

#include "base/limits.h"
#include "mledger/places.h"

#define NAMED_ARENA_BYTES (16u * OX_NODE_VALUE_BYTES_MAX)
#define NAMED_STAMP_INTERNAL \
    "#pulsar.internal.bookieClusterName" // beside OX_STAMP_PLACE: survives Pulsar's update of properties

enum ox_err ml_cursor_ledger_find(struct ox_arena *arena, struct ox_buf node, struct ml_cursor_ledger *ret)
{
    Mldata__ManagedCursorInfo *info;
    enum ox_err err = ox_cursor_decode(arena, node, &info, NULL);
    if (err != OX_OK)
        return err;
    *ret = (struct ml_cursor_ledger){OX_MAX(info->cursors_ledger_id, -1), OX_MAX(info->cursors_ledger_id, -1), NULL};
    for (size_t i = 0; i < info->n_cursor_properties && err == OX_OK; i++) {
        const Mldata__StringProperty *p = info->cursor_properties[i];
        if (strcmp(p->name, OX_STAMP_PLACE) == 0 || strcmp(p->name, NAMED_STAMP_INTERNAL) == 0)
            ret->place = p->value;
        else if (strcmp(p->name, OX_STAMP_PHYSICAL) == 0 && ret->id >= 0)
            err = ox_parse_i64(p->value, 0, INT64_MAX, &ret->physical) == OX_OK ? OX_OK : OX_E_CORRUPT;
    }
    return err;
}

// A ledger that was made after stamps began and has none: an older broker has written the record. It may be in any place, under the id that is left of it.
static bool named_lost_stamp(const struct ox_ml_factory *f, int64_t id)
{
    return f->settings.stamps && id > f->settings.unstamped_max;
}

static enum ml_named named_by_cursor(const struct ox_ml_factory *f, const char *bootstrap, struct ox_buf node,
                                     const char *place, int64_t physical)
{
    struct ox_arena arena;
    struct ml_cursor_ledger l;
    ox_arena_init(&arena, NAMED_ARENA_BYTES);
    enum ox_err err = ml_cursor_ledger_find(&arena, node, &l);
    bool same = err == OX_OK && l.id >= 0 && l.physical == physical;
    bool named = same && strcmp(l.place ? l.place : bootstrap, place) == 0;
    bool lost = same && !l.place && named_lost_stamp(f, l.id);
    ox_arena_fini(&arena);
    return named ? ML_NAMED : err != OX_OK || lost ? ML_UNREADABLE : ML_NOT_NAMED;
}

static bool named_maybe(const struct ox_ml_factory *f, const struct ox_record *r, int64_t physical)
{
    for (size_t i = 0; i < ox_record_count(r); i++) {
        struct ox_record_ledger l = ox_record_get(r, i);
        if (!l.place && l.physical == physical && named_lost_stamp(f, l.id))
            return true;
    }
    return false;
}

static enum ml_named named_by_log(const struct ox_ml_factory *f, const char *bootstrap, struct ox_buf node,
                                  const char *place, int64_t physical)
{
    struct ox_record *r = ox_record_new();
    bool named = false;
    enum ox_err err = ox_record_decode(r, node);
    if (err == OX_OK)
        err = ox_record_names(r, bootstrap, place, physical, &named);
    if (err == OX_OK && !named && named_maybe(f, r, physical))
        err = OX_E_CORRUPT;
    ox_record_free(r);
    return named ? ML_NAMED : err != OX_OK ? ML_UNREADABLE : ML_NOT_NAMED;
}

enum ml_named ml_node_names(const struct ox_ml_factory *f, struct ox_buf node, bool cursor, const char *place, int64_t physical)
{
    const char *bootstrap = ox_router_name(f->router, 0);
    return cursor ? named_by_cursor(f, bootstrap, node, place, physical) : named_by_log(f, bootstrap, node, place, physical);
}

static bool namesake(const struct ox_ml_factory *f, const char *place, int64_t logical, int64_t physical, int64_t id,
                     struct ox_location *ret)
{
    if (logical != id && physical != id)
        return false;
    *ret = (struct ox_location){0, logical, physical};
    if (place && ox_router_find(f->router, place, &ret->place) != OX_OK)
        ret->place = UINT32_MAX;
    return true;
}

static bool namesake_of_cursor(const struct ox_ml_factory *f, struct ox_buf node, int64_t id, struct ox_location *ret)
{
    struct ox_arena arena;
    struct ml_cursor_ledger l;
    ox_arena_init(&arena, NAMED_ARENA_BYTES);
    bool found =
        ml_cursor_ledger_find(&arena, node, &l) == OX_OK && l.id >= 0 && namesake(f, l.place, l.id, l.physical, id, ret);
    ox_arena_fini(&arena);
    return found;
}

bool ml_node_namesake(const struct ox_ml_factory *f, struct ox_buf node, bool cursor, int64_t id, struct ox_location *ret)
{
    if (cursor)
        return namesake_of_cursor(f, node, id, ret);
    struct ox_record *r = ox_record_new();
    bool found = false;
    if (ox_record_decode(r, node) == OX_OK)
        for (size_t i = 0; i < ox_record_count(r) && !found; i++) {
            struct ox_record_ledger l = ox_record_get(r, i);
            found = namesake(f, l.place, l.id, l.physical, id, ret);
        }
    ox_record_free(r);
    return found;
}

static void named_read(struct ox_op *op)
{
    struct ox_ml_named *n = CONTAINER_OF(op, struct ox_ml_named, get.op);
    enum ox_err err = op->err;
    n->named = false;
    if (err == OX_OK) {
        const char *place = ox_router_name(n->factory->router, n->where.place);
        n->named = ml_node_names(n->factory, n->get.value, false, place, n->where.physical) != ML_NOT_NAMED;
        ox_buf_unref(&n->get.value);
    }
    ox_op_finish(&n->op, err == OX_E_NOT_FOUND ? OX_OK : err);
}

void ox_ml_named(struct ox_ml_factory *f, struct ox_ml_named *n)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s", n->log);
    ox_op_begin(&n->op);
    n->factory = f;
    ox_op_init(&n->get.op, f->loop, named_read, "mledger.named");
    ox_meta_get(f->meta, &n->get, path);
}
