// survey.c - questions that one walk over all records answers: the inventory, and whether a place can be switched off.
#include <string.h>

#include "move/storage/control_int.h"
#include "move/storage/data_int.h"

// What is in one place.
struct survey_place {
    const char *name; // the router's
    uint64_t data, compacted, cursors, copies, bytes, copy_bytes, topics, deletes;
    char *last_topic;
};

struct survey {
    struct ox_storage *st;
    struct ox_storage_call *call;
    struct ox_seq seq;
    struct data_walk walk;
    struct survey_place *places; // by index in the router
    uint32_t count, at;
    uint64_t unknown, unreadable, unstamped;
    char *unreadable_example;
    struct ox_ml_deletes_count deletes;
    uint32_t only; // safe-to-release: the place asked for
    char *example; // ... and something that is in it
    bool release;  // that question, else the inventory
};

static ox_step survey_walk(struct ox_seq *q);
static ox_step survey_walked(struct ox_seq *q);
static ox_step survey_deletes(struct ox_seq *q);
static ox_step survey_deletes_counted(struct ox_seq *q);
static ox_step survey_answer(struct ox_seq *q);

static struct survey *survey_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct survey, seq);
}

static void survey_done(struct ox_seq *q, enum ox_err err)
{
    struct survey *s = survey_of(q);
    if (err != OX_OK)
        storage_call_fail(s->st, s->call, err, "what is where can't be read: %s; try again", ox_err_text(err));
    for (uint32_t i = 0; i < s->count; i++)
        ox_free(s->places[i].last_topic);
    ox_free(s->places);
    ox_free(s->unreadable_example);
    ox_free(s->example);
    ox_free(s);
}

static struct survey *survey_start(struct ox_storage *st, struct ox_storage_call *c)
{
    struct survey *s = ox_malloc(sizeof *s);
    s->st = st;
    s->call = c;
    s->count = st->p.router->count;
    s->places = ox_calloc(s->count, sizeof *s->places);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t found = 0;
        const char *name = ox_router_name(st->p.router, i);
        bool registered = ox_router_find(st->p.router, name, &found) == OX_OK && found == i;
        s->places[i].name = registered ? name : NULL;
    }
    ox_seq_start(&s->seq, st->p.loop, "storage.survey", survey_walk, survey_done);
    return s;
}

static struct survey_place *survey_place(struct survey *s, const char *name)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->places[i].name && strcmp(s->places[i].name, name) == 0)
            return &s->places[i];
    return NULL;
}

static void survey_example(struct survey *s, const struct survey_place *p, const struct ox_ml_walk *w,
                           const struct ox_ml_found *f, const char *what)
{
    if (s->example || !s->release || p != &s->places[s->only])
        return;
    s->example = ox_asprintf("%s %lld of %s%s%s", what, (long long)f->where.id, w->log,
                             f->cursor ? ", subscription " : "", f->cursor ? f->cursor : "");
}

static void survey_count(struct survey *s, const struct ox_ml_walk *w, const struct ox_ml_found *f)
{
    struct survey_place *p = survey_place(s, f->place);
    for (size_t i = 0; i < f->copy_count; i++) {
        struct survey_place *at = survey_place(s, f->copies[i].place);
        if (!at)
            continue;
        at->copies++;
        at->copy_bytes += f->bytes;
        survey_example(s, at, w, f, "the copy of ledger");
    }
    if (!p) {
        s->unknown++;
        return;
    }
    p->data += f->kind == OX_ML_KIND_DATA;
    p->compacted += f->kind == OX_ML_KIND_COMPACTED;
    p->cursors += f->kind == OX_ML_KIND_CURSOR;
    p->bytes += f->bytes;
    survey_example(s, p, w, f, f->kind == OX_ML_KIND_COMPACTED ? "compacted ledger" : "ledger");
    if (p->last_topic && strcmp(p->last_topic, w->log) == 0)
        return;
    p->topics++;
    ox_free(p->last_topic);
    p->last_topic = ox_strdup(w->log);
}

static void survey_visit(void *ctx, const struct ox_ml_walk *w)
{
    struct survey *s = ctx;
    if (w->log_err != OX_OK) {
        s->unreadable++;
        if (!s->unreadable_example)
            s->unreadable_example = ox_strdup(w->log);
    }
    for (size_t i = 0; i < w->count; i++) {
        survey_count(s, w, &w->found[i]);
        s->unstamped += storage_lost_stamp(s->st, &w->found[i]);
    }
}

static ox_step survey_walk(struct ox_seq *q)
{
    struct survey *s = survey_of(q);
    s->walk = (struct data_walk){.st = s->st, .visit = survey_visit, .ctx = s};
    ox_seq_bind(q, &s->walk.op, "storage.survey.walk");
    data_walk_start(&s->walk, true);
    return OX_WAIT(q, survey_walked);
}

static ox_step survey_walked(struct ox_seq *q)
{
    return q->err == OX_OK ? OX_GOTO(q, survey_deletes) : OX_FINISH(q, q->err);
}

static ox_step survey_deletes(struct ox_seq *q)
{
    struct survey *s = survey_of(q);
    while (s->at < s->count && !s->places[s->at].name)
        s->at++;
    if (s->at >= s->count)
        return OX_GOTO(q, survey_answer);
    s->deletes = (struct ox_ml_deletes_count){.place = s->places[s->at].name};
    ox_seq_bind(q, &s->deletes.op, "storage.survey.deletes");
    ox_ml_deletes_count(s->st->factory, &s->deletes);
    return OX_WAIT(q, survey_deletes_counted);
}

static ox_step survey_deletes_counted(struct ox_seq *q)
{
    struct survey *s = survey_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    struct survey_place *p = &s->places[s->at++];
    p->deletes = s->deletes.count;
    return OX_GOTO(q, survey_deletes);
}

// ---- inventory

static json_t *survey_inventory(const struct survey *s)
{
    json_t *places = json_array();
    for (uint32_t i = 0; i < s->count; i++) {
        const struct survey_place *p = &s->places[i];
        if (p->name)
            json_array_append_new(places, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", p->name,
                                                    "dataLedgers", (json_int_t)p->data, "cursorLedgers",
                                                    (json_int_t)p->cursors, "copies", (json_int_t)p->copies, "bytes",
                                                    (json_int_t)p->bytes, "copyBytes", (json_int_t)p->copy_bytes, "topics",
                                                    (json_int_t)p->topics, "pendingDeletes", (json_int_t)p->deletes));
    }
    return json_pack("{s:o, s:I, s:I, s:I}", "places", places, "unknown", (json_int_t)s->unknown, "unreadable",
                     (json_int_t)s->unreadable, "unstamped", (json_int_t)s->unstamped);
}

// ---- safe to release

static void release_reason(json_t *reasons, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void release_reason(json_t *reasons, const char *format, ...)
{
    struct ox_str text = {0};
    va_list args;
    va_start(args, format);
    ox_str_addv(&text, format, args);
    va_end(args);
    json_array_append_new(reasons, json_string(ox_str_get(&text)));
    ox_str_fini(&text);
}

static json_t *survey_release(const struct survey *s)
{
    const struct survey_place *p = &s->places[s->only];
    struct ox_router *router = s->st->p.router;
    json_t *reasons = json_array();
    if (s->only == router->active)
        release_reason(reasons, "%s is active: new ledgers are made in it", p->name);
    if (storage_target_user(s->st, s->only))
        release_reason(reasons, "%s is the target of %s: set another one, or remove it", p->name,
                       storage_target_user(s->st, s->only));
    if (p->data + p->cursors > 0)
        release_reason(reasons, "%llu ledgers of topics and %llu of subscriptions are in it, e.g. %s: move data first",
                       (unsigned long long)p->data, (unsigned long long)p->cursors, s->example ? s->example : "-");
    if (p->compacted > 0)
        release_reason(reasons, "%llu compacted ledgers are in it%s%s: move data first",
                       (unsigned long long)p->compacted, p->data + p->cursors == 0 && s->example ? ", e.g. " : "",
                       p->data + p->cursors == 0 && s->example ? s->example : "");
    if (p->copies > 0)
        release_reason(reasons, "%llu copies are kept in it for switching back%s%s: clean up first",
                       (unsigned long long)p->copies, p->data + p->cursors == 0 && s->example ? ", e.g. " : "",
                       p->data + p->cursors == 0 && s->example ? s->example : "");
    if (p->deletes > 0)
        release_reason(reasons, "%llu deletes wait for it", (unsigned long long)p->deletes);
    size_t holders = ox_router_holders(router, s->only, NULL, NULL);
    if (holders > 0)
        release_reason(reasons, "%zu ledgers of it are open in this broker", holders);
    if (s->unreadable > 0)
        release_reason(reasons, "%llu records can't be understood and may name it, e.g. that of %s: repair or delete them",
                       (unsigned long long)s->unreadable, s->unreadable_example);
    if (s->unstamped > 0)
        release_reason(reasons, "%llu ledgers made after the bootstrap have lost the stamp that says where they are, and may be in it: repair their records",
                       (unsigned long long)s->unstamped);
    return json_pack("{s:b, s:o}", "safe", json_array_size(reasons) == 0, "reasons", reasons);
}

// What was found is shown as metrics, too.
static void survey_show(const struct survey *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct storage_place *p = s->places[i].name ? storage_place_find(s->st, s->places[i].name) : NULL;
        if (!p)
            continue;
        p->data_ledgers.value = (int64_t)s->places[i].data;
        p->cursor_ledgers.value = (int64_t)s->places[i].cursors;
    }
}

static ox_step survey_answer(struct ox_seq *q)
{
    struct survey *s = survey_of(q);
    survey_show(s);
    storage_call_answer(s->st, s->call, s->release ? survey_release(s) : survey_inventory(s));
    return OX_FINISH(q, OX_OK);
}

void ox_storage_inventory(struct ox_storage *st, struct ox_storage_call *c)
{
    if (storage_call_begin(st, c))
        survey_start(st, c);
}

void ox_storage_safe_to_release(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    uint32_t index = 0;
    if (!storage_call_begin(st, c))
        return;
    if (ox_router_find(st->p.router, name, &index) != OX_OK) {
        storage_call_fail(st, c, OX_E_NOT_FOUND, "no bookie cluster %s is registered", name);
        return;
    }
    struct survey *s = survey_start(st, c);
    s->release = true;
    s->only = index;
}
