// walk.c - a walk over the nodes of all logs: where every ledger is, without opening any log.
#include <string.h>

#include "base/limits.h"
#include "mledger/named.h"
#include "mledger/offline.h"
#include "mledger/places.h"

#define WALK_TOPICS 3 // level of the tree whose nodes are logs: tenant, namespace, domain, topic
#define WALK_CURSORS 4
#define WALK_ARENA_BYTES (16u * OX_NODE_VALUE_BYTES_MAX)

// The names of one level, below the present name of the level above.
struct walk_level {
    struct ox_meta_children list;
    size_t at;
    bool listed;
};

struct walk {
    struct ox_seq seq;
    struct ox_ml_factory *factory;
    struct ox_ml_walk *walk;
    bool cursors;
    struct walk_level levels[WALK_CURSORS + 1];
    int level;                  // being listed or gone through; -1: the walk is over
    struct ox_record *record;   // of the log that is gone through, at level WALK_CURSORS
    size_t ledger;              // of the record, the next one; then of `compacted`
    struct ox_copies compacted; // the log's compacted ledgers
    char *log;
    struct ox_arena arena; // a cursor's node
    struct ox_meta_get get;
    char *bad_cursor; // name that the result borrows
    // The step's items and what they borrow.
    struct ox_ml_found found[OX_ML_WALK_ITEMS];
    struct ox_copies copies[OX_ML_WALK_ITEMS];
    struct ox_ml_copy *views[OX_ML_WALK_ITEMS];
    char *texts[2 * OX_ML_WALK_ITEMS]; // names of cursors and of their places
    size_t count, text_count;
};

static ox_step walk_on(struct ox_seq *s);
static ox_step walk_up(struct ox_seq *s);
static ox_step walk_listed(struct ox_seq *s);
static ox_step walk_log_read(struct ox_seq *s);
static ox_step walk_cursor_read(struct ox_seq *s);

static struct walk *walk_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct walk, seq);
}

void ox_ml_owner(const struct ox_ml_factory *f, const char *log, const char *cursor, struct ox_kv *ret)
{
    if (cursor) {
        ml_cursor_owner(f, log, cursor, ret);
        return;
    }
    ox_kv_set(ret, "application", "pulsar");
    ox_kv_set(ret, "component", "managed-ledger");
    ox_kv_set(ret, "pulsar/managed-ledger", log);
    if (f->instance)
        ox_kv_set(ret, "oxbow/instance", f->instance);
}

// ---- the walk and its steps ------------------------------------------------------------------------------------------

void ox_ml_walk_begin(struct ox_ml_factory *f, struct ox_ml_walk *w, bool cursors)
{
    struct walk *k = ox_malloc(sizeof *k);
    k->factory = f;
    k->walk = w;
    k->cursors = cursors;
    k->record = ox_record_new();
    ox_arena_init(&k->arena, WALK_ARENA_BYTES);
    w->private_ = k;
}

static void walk_unlist(struct walk_level *l)
{
    if (l->listed)
        ox_meta_names_free(l->list.names, l->list.count);
    l->listed = false;
    l->at = 0;
}

// Lets go of what the last step has handed out.
static void walk_clear(struct walk *k)
{
    for (size_t i = 0; i < k->count; i++) {
        ox_copies_fini(&k->copies[i]);
        ox_free(k->views[i]);
    }
    for (size_t i = 0; i < k->text_count; i++)
        ox_free(k->texts[i]);
    ox_free(k->bad_cursor);
    k->bad_cursor = NULL;
    k->count = k->text_count = 0;
}

void ox_ml_walk_end(struct ox_ml_walk *w)
{
    struct walk *k = w->private_;
    OX_ASSERT(!k->seq.active);
    walk_clear(k);
    for (int i = 0; i <= WALK_CURSORS; i++)
        walk_unlist(&k->levels[i]);
    ox_record_free(k->record);
    ox_copies_fini(&k->compacted);
    ox_arena_fini(&k->arena);
    ox_free(k->log);
    ox_free(k);
    w->private_ = NULL;
}

static void walk_step_done(struct ox_seq *s, enum ox_err err)
{
    struct walk *k = walk_of(s);
    struct ox_mledger *ml;
    struct ox_ml_walk *w = k->walk;
    w->log = k->level < 0 ? NULL : k->log;
    w->found = k->found;
    w->count = k->count;
    w->loaded = w->log && ml_presence(k->factory, w->log, &ml) == ML_HERE;
    ox_op_finish(&w->op, err);
}

void ox_ml_walk_next(struct ox_ml_walk *w)
{
    struct walk *k = w->private_;
    ox_op_begin(&w->op);
    walk_clear(k);
    w->log_err = OX_OK;
    w->cursor = NULL;
    ox_seq_start(&k->seq, k->factory->loop, "mledger.walk", walk_on, walk_step_done);
}

// The node at the present names of the levels above and at `level`.
static char *walk_path(const struct walk *k, int level)
{
    struct ox_str path = {0};
    ox_str_adds(&path, "/managed-ledgers");
    for (int i = 0; i <= level; i++)
        ox_str_addf(&path, "/%s", k->levels[i].list.names[k->levels[i].at]);
    return ox_str_take(&path);
}

static ox_step walk_get(struct ox_seq *s, ox_step_fn then, const char *name)
{
    struct walk *k = walk_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = walk_path(k, k->level);
    ox_seq_bind(s, &k->get.op, "mledger.walk.get");
    ox_meta_get(k->factory->meta, &k->get, path);
    return ox_seq_goto(s, then, name, OX_STEP_WAIT);
}

static ox_step walk_list(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = walk_path(k, k->level - 1);
    ox_seq_bind(s, &k->levels[k->level].list.op, "mledger.walk.list");
    ox_meta_children(k->factory->meta, &k->levels[k->level].list, path);
    return OX_WAIT(s, walk_listed);
}

// The store fails: what was found before is handed out first. The next step tries the same again.
static ox_step walk_fail(struct ox_seq *s)
{
    return OX_FINISH(s, walk_of(s)->count > 0 ? OX_OK : s->err);
}

// Removed meanwhile: there is nothing below it.
static ox_step walk_listed(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    struct walk_level *l = &k->levels[k->level];
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return walk_fail(s);
    if (s->err == OX_E_NOT_FOUND)
        l->list.count = 0;
    l->listed = s->err == OX_OK;
    return l->list.count ? OX_GOTO(s, walk_on) : OX_GOTO(s, walk_up);
}

// All names of a level have been gone through. With the last cursor a log is over, and so is the step.
static ox_step walk_up(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    bool log_over = k->level == WALK_CURSORS;
    walk_unlist(&k->levels[k->level]);
    k->level--;
    if (k->level >= 0)
        k->levels[k->level].at++;
    return log_over || k->level < 0 ? OX_FINISH(s, OX_OK) : OX_GOTO(s, walk_on);
}

// A log or cursor that was removed since its name was listed.
static ox_step walk_skip(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    k->levels[k->level].at++;
    return OX_GOTO(s, walk_on);
}

// ---- ledgers of a log ------------------------------------------------------------------------------------------------

static void walk_place(const struct walk *k, struct ox_ml_found *found, const char *place, int64_t id, int64_t physical)
{
    const struct ox_router *router = k->factory->router;
    found->stamped = place != NULL;
    found->place = place ? place : ox_router_name(router, 0);
    found->where = (struct ox_location){.id = id, .physical = physical};
    found->known = ox_router_find(router, found->place, &found->where.place) == OX_OK;
}

// A ledger's copies in the form of the contract; the texts stay with the list.
static void walk_take_copies(struct walk *k, const char *text)
{
    struct ox_copies *copies = &k->copies[k->count];
    struct ox_ml_found *found = &k->found[k->count];
    OX_ASSERT(ox_copies_parse(copies, text) == OX_OK); // looked at when the node was read
    k->views[k->count] = ox_calloc(copies->count, sizeof **k->views);
    for (size_t i = 0; i < copies->count; i++)
        k->views[k->count][i] =
            (struct ox_ml_copy){copies->items[i].place, copies->items[i].physical, copies->items[i].since_ms};
    found->copies = k->views[k->count];
    found->copy_count = copies->count;
}

static void walk_take_ledger(struct walk *k)
{
    struct ox_record_ledger l = ox_record_get(k->record, k->ledger++);
    struct ox_ml_found *found = &k->found[k->count];
    *found = (struct ox_ml_found){
        .kind = OX_ML_KIND_DATA, .entries = l.entries, .bytes = l.bytes, .open = l.entries == 0, .digest = l.digest};
    walk_place(k, found, l.place, l.id, l.physical);
    walk_take_copies(k, l.copies);
    k->count++;
}

static void walk_take_compacted(struct walk *k)
{
    const struct ox_copy *c = &k->compacted.items[k->ledger++ - ox_record_count(k->record)];
    struct ox_ml_found *found = &k->found[k->count];
    k->views[k->count] = NULL;
    *found = (struct ox_ml_found){.kind = OX_ML_KIND_COMPACTED};
    walk_place(k, found, c->place, c->physical, c->physical);
    k->count++;
}

// Ledgers of the log that is gone through: its own and the compacted ones.
static size_t walk_total(const struct walk *k)
{
    return ox_record_count(k->record) + k->compacted.count;
}

static bool walk_is_full(const struct walk *k)
{
    return k->count == OX_ML_WALK_ITEMS;
}

static ox_step walk_ledgers(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    while (k->ledger < walk_total(k) && !walk_is_full(k))
        if (k->ledger < ox_record_count(k->record))
            walk_take_ledger(k);
        else
            walk_take_compacted(k);
    if (walk_is_full(k))
        return OX_FINISH(s, OX_OK);
    return k->cursors ? OX_GOTO(s, walk_on) : OX_GOTO(s, walk_up);
}

// Where to go on.
static ox_step walk_on(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    if (k->level < 0)
        return OX_FINISH(s, OX_OK);
    struct walk_level *l = &k->levels[k->level];
    if (k->level == WALK_CURSORS && (k->ledger < walk_total(k) || !k->cursors))
        return OX_GOTO(s, walk_ledgers);
    if (!l->listed)
        return OX_GOTO(s, walk_list);
    if (l->at == l->list.count)
        return OX_GOTO(s, walk_up);
    if (k->level == WALK_CURSORS)
        return walk_get(s, walk_cursor_read, "walk_cursor_read");
    if (k->level == WALK_TOPICS)
        return walk_get(s, walk_log_read, "walk_log_read");
    k->level++;
    return OX_GOTO(s, walk_on);
}

// The record of the log that is gone through now. Errors: as of decoding; CORRUPT also if a ledger's place can't be understood.
static enum ox_err walk_decode(struct walk *k, struct ox_buf node)
{
    enum ox_err err = ox_record_decode(k->record, node);
    struct ox_copies copies = {0};
    for (size_t i = 0; err == OX_OK && i < ox_record_count(k->record); i++) {
        struct ox_record_ledger l = ox_record_get(k->record, i);
        err = l.physical < 0 ? OX_E_CORRUPT : ox_copies_parse(&copies, l.copies);
    }
    ox_copies_fini(&copies);
    ox_copies_fini(&k->compacted);
    if (err == OX_OK)
        err = ox_copies_parse(&k->compacted, ox_record_find_property(k->record, OX_PROPERTY_COMPACTED));
    if (err != OX_OK)
        OX_ASSERT(ox_record_decode(k->record, ox_buf_empty()) == OX_OK);
    return err;
}

static ox_step walk_log_read(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return walk_skip(s);
    if (s->err != OX_OK)
        return walk_fail(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = walk_path(k, WALK_TOPICS);
    ox_free(k->log);
    k->log = ox_strdup(path + strlen("/managed-ledgers/"));
    k->walk->log_err = walk_decode(k, k->get.value);
    ox_buf_unref(&k->get.value);
    k->ledger = 0;
    k->level = WALK_CURSORS;
    bool stop = k->walk->log_err != OX_OK && k->cursors;
    return stop ? OX_FINISH(s, OX_OK) : OX_GOTO(s, walk_ledgers);
}

// ---- cursors ---------------------------------------------------------------------------------------------------------

static char *walk_keep(struct walk *k, char *take_text)
{
    k->texts[k->text_count++] = take_text;
    return take_text;
}

static void walk_take_cursor(struct walk *k, char *take_name, const struct ml_cursor_ledger *l)
{
    struct ox_ml_found *found = &k->found[k->count];
    k->views[k->count] = NULL;
    *found = (struct ox_ml_found){.kind = OX_ML_KIND_CURSOR, .cursor = walk_keep(k, take_name)};
    const char *place = l->place ? walk_keep(k, ox_strdup(l->place)) : NULL;
    walk_place(k, found, place, l->id, l->physical);
    k->count++;
}

// A cursor's name as the client gave it, or that of its node if it isn't a name.
static enum ox_err walk_cursor_name(const char *node, char **ret)
{
    struct ox_str name = {0};
    enum ox_err err = ox_name_decode(&name, node);
    if (err != OX_OK) {
        ox_str_fini(&name);
        ox_str_adds(&name, node);
    }
    *ret = ox_str_take(&name);
    return err == OX_OK ? OX_OK : OX_E_CORRUPT;
}

// What can't be understood is a step of its own; what was found before comes first.
static ox_step walk_cursor_bad(struct ox_seq *s, enum ox_err err, char *take_name)
{
    struct walk *k = walk_of(s);
    if (k->count > 0) {
        ox_free(take_name);
        return OX_FINISH(s, OX_OK);
    }
    k->levels[WALK_CURSORS].at++;
    k->bad_cursor = take_name;
    k->walk->cursor = take_name;
    k->walk->log_err = err;
    return OX_FINISH(s, OX_OK);
}

static ox_step walk_cursor_read(struct ox_seq *s)
{
    struct walk *k = walk_of(s);
    struct walk_level *l = &k->levels[WALK_CURSORS];
    struct ml_cursor_ledger where = {.id = -1};
    char *name;
    if (s->err == OX_E_NOT_FOUND)
        return walk_skip(s);
    if (s->err != OX_OK)
        return walk_fail(s);
    enum ox_err err = walk_cursor_name(l->list.names[l->at], &name);
    ox_arena_reset(&k->arena);
    if (err == OX_OK)
        err = ml_cursor_ledger_find(&k->arena, k->get.value, &where);
    ox_buf_unref(&k->get.value);
    if (err != OX_OK)
        return walk_cursor_bad(s, err, name);
    l->at++;
    if (where.id >= 0)
        walk_take_cursor(k, name, &where);
    else
        ox_free(name);
    return walk_is_full(k) ? OX_FINISH(s, OX_OK) : OX_GOTO(s, walk_on);
}
