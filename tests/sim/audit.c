// audit.c - reads the managed-ledger nodes and lists the places, and holds one against the other.
#include "audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mledger/copies.h"
#include "mledger/places.h"
#include "wire/mldata.h"

#define LOGS "/managed-ledgers"
#define STAMP_PLACE "_pulsar.bookieClusterName"
#define STAMP_PHYSICAL "_pulsar.physicalLedgerId"
#define STAMP_COPIES "_pulsar.copies"
#define AUDIT_PAGE 500

// One reading.
struct reading {
    struct world *world;
    struct ox_meta *meta; // a session of its own, without faults
    struct audit *audit;
    struct ox_arena arena;
    char path[1024];
};

static void audit_copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

static struct audit_ref *audit_add(struct audit *a, const char *log, const char *cursor, const char *place, int64_t id)
{
    a->refs = ox_realloc(a->refs, a->ref_count + 1, sizeof *a->refs);
    struct audit_ref *r = &a->refs[a->ref_count++];
    *r = (struct audit_ref){.id = id, .physical = id, .entries = -1};
    audit_copy(r->log, sizeof r->log, log);
    audit_copy(r->cursor, sizeof r->cursor, cursor);
    audit_copy(r->place, sizeof r->place, place ? place : "default");
    return r;
}

// ---- nodes

static bool reading_get(struct reading *r, const char *path, struct ox_buf *ret)
{
    struct ox_meta_get get = {0};
    ox_op_init(&get.op, r->meta->loop, ox_sim_done, "audit.get");
    ox_meta_get(r->meta, &get, path);
    enum ox_err err = ox_sim_wait(r->world->sim, &get.op);
    if (err == OX_OK)
        *ret = get.value;
    return err == OX_OK;
}

static const char *ledger_property(const Mldata__ManagedLedgerInfo__LedgerInfo *l, const char *key)
{
    for (size_t i = 0; i < l->n_properties; i++)
        if (strcmp(l->properties[i]->key, key) == 0)
            return l->properties[i]->value;
    return NULL;
}

static void reading_copies(struct reading *r, const char *log, int64_t id, int64_t entries, const char *text)
{
    struct ox_copies copies = {0};
    if (ox_copies_parse(&copies, text) != OX_OK) {
        world_violation(r->world, "%s: ledger %lld: its copies are not understood: %s", log, (long long)id, text);
        return;
    }
    for (size_t i = 0; i < copies.count; i++) {
        struct audit_ref *ref = audit_add(r->audit, log, "", copies.items[i].place, id);
        ref->physical = copies.items[i].physical;
        ref->entries = entries;
        ref->copy = true;
    }
    ox_copies_fini(&copies);
}

static void reading_log(struct reading *r, const char *log, struct ox_buf value)
{
    Mldata__ManagedLedgerInfo *info;
    ox_arena_reset(&r->arena);
    if (ox_ledgers_decode(&r->arena, value, &info, NULL) != OX_OK) {
        world_violation(r->world, "%s: its record is not understood", log);
        return;
    }
    int64_t before = -1;
    for (size_t i = 0; i < info->n_ledger_info; i++) {
        const Mldata__ManagedLedgerInfo__LedgerInfo *l = info->ledger_info[i];
        const char *physical = ledger_property(l, STAMP_PHYSICAL);
        struct audit_ref *ref = audit_add(r->audit, log, "", ledger_property(l, STAMP_PLACE), l->ledger_id);
        if (physical)
            ref->physical = strtoll(physical, NULL, 10);
        if (l->has_timestamp && l->timestamp > 0)
            ref->entries = l->entries;
        ref->last = i + 1 == info->n_ledger_info;
        if (l->ledger_id <= before)
            world_violation(r->world, "%s: ledger %lld stands behind %lld", log, (long long)l->ledger_id, (long long)before);
        before = l->ledger_id;
        reading_copies(r, log, l->ledger_id, ref->entries, ledger_property(l, STAMP_COPIES));
    }
}

static void reading_cursor(struct reading *r, const char *log, const char *cursor, struct ox_buf value)
{
    Mldata__ManagedCursorInfo *info;
    const char *place = NULL, *physical = NULL;
    ox_arena_reset(&r->arena);
    if (ox_cursor_decode(&r->arena, value, &info, NULL) != OX_OK) {
        world_violation(r->world, "%s %s: its node is not understood", log, cursor);
        return;
    }
    for (size_t i = 0; i < info->n_cursor_properties; i++) {
        const Mldata__StringProperty *p = info->cursor_properties[i];
        if (strcmp(p->name, STAMP_PLACE) == 0)
            place = p->value;
        if (strcmp(p->name, STAMP_PHYSICAL) == 0)
            physical = p->value;
    }
    if (info->cursors_ledger_id < 0)
        return; // the position is in the node
    struct audit_ref *ref = audit_add(r->audit, log, cursor, place, info->cursors_ledger_id);
    if (physical)
        ref->physical = strtoll(physical, NULL, 10);
    ref->last = true;
}

// Logs stand at depth 4 (tenant, namespace, domain, topic), cursors below them.
static void reading_walk(struct reading *r, int depth)
{
    struct ox_meta_children children = {0};
    size_t len = strlen(r->path);
    ox_op_init(&children.op, r->meta->loop, ox_sim_done, "audit.children");
    ox_meta_children(r->meta, &children, r->path);
    if (ox_sim_wait(r->world->sim, &children.op) != OX_OK)
        return;
    for (size_t i = 0; i < children.count; i++) {
        struct ox_buf value = {0};
        snprintf(r->path + len, sizeof r->path - len, "/%s", children.names[i]);
        if (depth >= 3 && reading_get(r, r->path, &value)) {
            if (depth == 3)
                reading_log(r, r->path + sizeof LOGS, value);
            else
                reading_cursor(r, strndupa(r->path + sizeof LOGS, len - sizeof LOGS), children.names[i], value);
            ox_buf_unref(&value);
        }
        if (depth < 4)
            reading_walk(r, depth + 1);
        r->path[len] = 0;
    }
    ox_meta_names_free(children.names, children.count);
}

static bool reading_nodes(struct reading *r)
{
    struct ox_loop *loop = ox_sim_loop(r->world->broker_node);
    struct ox_op op;
    r->meta = ox_meta_memory_new(loop, r->world->tree, NULL);
    ox_arena_init(&r->arena, 1u << 20);
    audit_copy(r->path, sizeof r->path, LOGS);
    reading_walk(r, 0);
    ox_arena_fini(&r->arena);
    ox_op_init(&op, loop, ox_sim_done, "audit.meta.close");
    ox_meta_close(r->meta, &op);
    return ox_sim_wait(r->world->sim, &op) == OX_OK && !r->world->violation[0];
}

// ---- places

static void reading_page(struct reading *r, const char *place, const struct ox_ledger_list *list)
{
    struct audit *a = r->audit;
    a->ledgers = ox_realloc(a->ledgers, a->ledger_count + list->count, sizeof *a->ledgers);
    for (size_t i = 0; i < list->count; i++) {
        const struct ox_ledger_info *info = &list->items[i];
        struct audit_ledger *l = &a->ledgers[a->ledger_count++];
        const char *log = ox_kv_find(&info->custom, "pulsar/managed-ledger");
        const char *cursor = ox_kv_find(&info->custom, "pulsar/cursor");
        const char *copy_of = ox_kv_find(&info->custom, OX_COPY_OF);
        *l = (struct audit_ledger){.id = info->id, .last_entry = info->last_entry, .open = info->state != OX_LEDGER_CLOSED};
        audit_copy(l->place, sizeof l->place, place);
        audit_copy(l->log, sizeof l->log, log ? log : "");
        audit_copy(l->cursor, sizeof l->cursor, cursor ? cursor : "");
        audit_copy(l->copy_of, sizeof l->copy_of, copy_of ? copy_of : "");
    }
}

static bool reading_place(struct reading *r, struct ox_place *place, const char *name)
{
    struct ox_ledger_list list = {.after = -1, .max = AUDIT_PAGE};
    do {
        ox_op_init(&list.op, place->loop, ox_sim_done, "audit.list");
        ox_ledger_list(place, &list);
        if (ox_sim_wait(r->world->sim, &list.op) != OX_OK)
            return false;
        reading_page(r, name, &list);
        if (list.count > 0)
            list.after = list.items[list.count - 1].id;
        bool more = list.count == AUDIT_PAGE;
        ox_ledger_list_fini(&list);
        if (!more)
            return true;
    } while (true);
}

bool audit_read(struct world *w, struct audit *ret)
{
    struct reading r = {.world = w, .audit = ret};
    *ret = (struct audit){0};
    if (!w->now || !w->now->broker.running || !reading_nodes(&r))
        return false;
    for (uint32_t i = 0; w->now && w->now->broker.running && i < w->now->broker.router.count; i++) {
        struct ox_place *place = ox_router_place(&w->now->broker.router, i);
        if (place && !reading_place(&r, place, ox_router_name(&w->now->broker.router, i)))
            return false;
    }
    return w->now && w->now->broker.running;
}

void audit_fini(struct audit *a)
{
    ox_free(a->refs);
    ox_free(a->ledgers);
    *a = (struct audit){0};
}

// ---- one held against the other

static struct audit_ledger *audit_find(struct audit *a, const struct audit_ref *ref)
{
    for (size_t i = 0; i < a->ledger_count; i++)
        if (a->ledgers[i].id == ref->physical && strcmp(a->ledgers[i].place, ref->place) == 0)
            return &a->ledgers[i];
    return NULL;
}

static bool audit_resolve_one(struct audit *a, const struct audit_ref *ref, struct ox_str *problem)
{
    struct audit_ledger *l = audit_find(a, ref);
    ox_str_truncate(problem, 0);
    ox_str_addf(problem, "%s %s: the %s of ledger %lld, %lld in %s, ", ref->log, ref->cursor,
                ref->copy ? "copy" : "place", (long long)ref->id, (long long)ref->physical, ref->place);
    if (!l) {
        ox_str_adds(problem, "is not there");
        return false;
    }
    l->found = true;
    if (strcmp(l->log, ref->log) != 0) {
        ox_str_addf(problem, "belongs to %s", l->log);
        return false;
    }
    if (ref->entries >= 0 && l->last_entry + 1 < ref->entries) {
        ox_str_addf(problem, "has %lld entries of %lld", (long long)l->last_entry + 1, (long long)ref->entries);
        return false;
    }
    return true;
}

// fault: E9 E13
bool audit_resolve(struct audit *a, struct ox_str *problem)
{
    for (size_t i = 0; i < a->ref_count; i++)
        if (!audit_resolve_one(a, &a->refs[i], problem))
            return false;
    return true;
}

size_t audit_count(const struct audit *a, const char *place, const char *target, bool copies, const struct audit_ref **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < a->ref_count; i++) {
        const struct audit_ref *ref = &a->refs[i];
        bool there = place ? strcmp(ref->place, place) == 0 : strcmp(ref->place, target) != 0;
        if (!there || (ref->copy && !copies))
            continue;
        *ret = ref;
        n++;
    }
    return n;
}

size_t audit_astray(const struct audit *a, const char *target, const struct audit_ref **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < a->ref_count; i++) {
        const struct audit_ref *ref = &a->refs[i];
        if (!ref->last || ref->copy || (!*ref->cursor && ref->entries >= 0) || strcmp(ref->place, target) == 0)
            continue;
        *ret = ref;
        n++;
    }
    return n;
}
