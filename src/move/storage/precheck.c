// precheck.c - may the target become active? Each check answers pass, warn or fail with one sentence.
#include <string.h>

#include "move/storage/control_int.h"

#define CANARY_TEXT "a canary that sings"

static ox_step pre_entry(struct ox_seq *s);
static ox_step pre_entry_read(struct ox_seq *s);
static ox_step pre_reopened(struct ox_seq *s);
static ox_step pre_writable(struct ox_seq *s);
static ox_step pre_canary(struct ox_seq *s);
static ox_step pre_canary_create(struct ox_seq *s);
static ox_step pre_canary_append(struct ox_seq *s);
static ox_step pre_canary_close(struct ox_seq *s);
static ox_step pre_canary_open(struct ox_seq *s);
static ox_step pre_canary_read(struct ox_seq *s);
static ox_step pre_canary_compare(struct ox_seq *s);
static ox_step pre_canary_delete(struct ox_seq *s);
static ox_step pre_canary_over(struct ox_seq *s);
static ox_step pre_ids(struct ox_seq *s);
static ox_step pre_ids_pushed(struct ox_seq *s);
static ox_step pre_space(struct ox_seq *s);
static ox_step pre_space_add(struct ox_seq *s);
static ox_step pre_unfinished(struct ox_seq *s);
static ox_step pre_brokers(struct ox_seq *s);
static ox_step pre_brokers_asked(struct ox_seq *s);
static ox_step pre_end(struct ox_seq *s);

static struct storage_precheck *pre_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_precheck, seq);
}

static void pre_note(struct storage_precheck *k, const char *name, const char *result, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Adds a check to the report; a failed one makes the whole not ready.
static void pre_note(struct storage_precheck *k, const char *name, const char *result, const char *format, ...)
{
    struct ox_str detail = {0};
    va_list args;
    va_start(args, format);
    ox_str_addv(&detail, format, args);
    va_end(args);
    json_array_append_new(json_object_get(k->report, "checks"),
                          json_pack("{s:s,s:s,s:s}", "name", name, "result", result, "detail", ox_str_get(&detail)));
    if (!strcmp(result, "fail")) {
        k->ready = false;
        ox_str_addf(&k->why, "%s%s: %s", k->why.len ? "; " : "", name, ox_str_get(&detail));
    }
    ox_str_fini(&detail);
}

static struct ox_place *pre_place(struct storage_precheck *k)
{
    const struct storage_place *p = storage_place_find(k->st, k->target);
    return p ? ox_router_place(k->st->p.router, p->index) : NULL;
}

static void pre_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_precheck *k = pre_of(s);
    if (k->walking)
        ox_ml_walk_end(&k->walk);
    k->walking = false;
    ox_op_finish(&k->op, err);
}

void storage_precheck_run(struct ox_storage *st, struct storage_precheck *k, const char *target, bool supersede)
{
    ox_op_begin(&k->op);
    k->st = st;
    k->target = ox_strdup(target);
    k->supersede = supersede;
    k->ready = true;
    k->report = json_pack("{s:b,s:b,s:s,s:s,s:I,s:I,s:I,s:I,s:[]}", "ready", 0, "idgenAdvancedBeyondSource", 0,
                          "sourceClusterName", storage_active(st), "targetClusterName", target, "sourceMaxHighOrderBit",
                          (json_int_t)0, "targetMaxHighOrderBit", (json_int_t)0, "sourceMaxLedgerId", (json_int_t)-1,
                          "targetNextLedgerId", (json_int_t)-1, "checks");
    ox_seq_start(&k->seq, st->p.loop, "storage.precheck", pre_entry, pre_done);
}

void storage_precheck_fini(struct storage_precheck *k)
{
    json_decref(k->report);
    ox_str_fini(&k->why);
    ox_str_fini(&k->trouble);
    ox_str_fini(&k->opening.why);
    ox_free(k->target);
    ox_kv_fini(&k->custom);
}

// ---- reachable, and the one that was registered ----------------------------------------------------------------------

static ox_step pre_entry(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (k->st->control->interrupted)
        pre_note(k, "registered", "fail", "the registration of a second bookie cluster was cut off: register it once more");
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(k->st, "%s", k->target);
    ox_seq_bind(s, &k->get.op, "storage.precheck.entry");
    ox_meta_get(k->st->p.meta, &k->get, path);
    return OX_WAIT(s, pre_entry_read);
}

static void pre_identity(struct storage_precheck *k, struct storage_entry *take_entry, const struct ox_place *place)
{
    if (take_entry->identity && strcmp(take_entry->identity, place->identity) != 0)
        pre_note(k, "identity", "fail", "%s has identity %s, registered is %s: it is another storage now", k->target,
                 place->identity, take_entry->identity);
    else
        pre_note(k, "identity", "pass", "%s", place->identity);
    storage_entry_fini(take_entry);
}

static ox_step pre_entry_read(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    const struct storage_place *p = storage_place_find(k->st, k->target);
    struct storage_entry entry = {0};
    enum ox_err err = s->err;
    if (err == OX_OK) {
        err = storage_entry_read(k->get.value, &entry);
        ox_buf_unref(&k->get.value);
    }
    bool unrecorded = err == OX_E_NOT_FOUND && p && !p->raw; // the only place, before activation
    if ((err != OX_OK && !unrecorded) || !p) {
        pre_note(k, "registered", "fail", "the entry of %s cannot be used: %s; register it again", k->target,
                 ox_err_text(err));
        storage_entry_fini(&entry);
        return OX_GOTO(s, pre_unfinished);
    }
    struct ox_place *place = pre_place(k);
    if (!place) {
        storage_entry_fini(&entry);
        ox_seq_bind(s, &k->opening.op, "storage.precheck.open");
        storage_opening_start(&k->st->p, &k->opening, p->name, p->uri, p->identity);
        return OX_WAIT(s, pre_reopened);
    }
    pre_note(k, "reachable", "pass", "open at %s", place->uri);
    pre_identity(k, &entry, place);
    return OX_GOTO(s, pre_writable);
}

// It was not open here: closed by hand, or out of reach until now.
static ox_step pre_reopened(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    struct storage_place *p = storage_place_find(k->st, k->target);
    if (s->err != OX_OK) {
        pre_note(k, s->err == OX_E_PLACE_CHANGED ? "identity" : "reachable", "fail", "%s", ox_str_get(&k->opening.why));
        return OX_GOTO(s, pre_unfinished);
    }
    if (p && !ox_router_place(k->st->p.router, p->index)) {
        storage_place_attach(k->st, p, k->opening.place);
        pre_note(k, "reachable", "pass", "opened at %s", p->uri);
        pre_note(k, "identity", "pass", "%s", k->opening.place->identity);
        return OX_GOTO(s, pre_writable);
    }
    ox_seq_bind(s, &k->close_place, "storage.precheck.close"); // opened by somebody else meanwhile, or gone
    ox_place_close(k->opening.place, &k->close_place);
    return OX_WAIT(s, pre_writable);
}

static ox_step pre_writable(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    struct ox_capacity capacity;
    struct ox_place *place = pre_place(k);
    if (!place)
        return OX_GOTO(s, pre_unfinished);
    ox_place_capacity(place, &capacity);
    if (!capacity.writable) {
        pre_note(k, "writable", "fail", "%s takes no writes: it has failed, or its disk is full (%llu bytes available)",
                 k->target, (unsigned long long)capacity.available);
        return OX_GOTO(s, pre_unfinished);
    }
    pre_note(k, "writable", "pass", "%llu bytes available", (unsigned long long)capacity.available);
    return OX_GOTO(s, pre_canary);
}

// ---- canary: a ledger is written, read and deleted -------------------------------------------------------------------

static ox_step pre_canary(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    k->begun_ns = ox_now_ns(s->loop);
    ox_seq_bind(s, &k->next.op, "storage.canary.id");
    ox_place_next_id(pre_place(k), &k->next);
    return OX_WAIT(s, pre_canary_create);
}

// A step of the canary that failed; what was made of it is taken away.
static ox_step pre_canary_failed(struct ox_seq *s, const char *what, enum ox_err err)
{
    struct storage_precheck *k = pre_of(s);
    ox_str_addf(&k->trouble, "a test ledger could not be %s in %s: %s", what, k->target, ox_err_text(err));
    return OX_GOTO(s, pre_canary_delete);
}

static ox_step pre_canary_create(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    struct ox_place *place = pre_place(k);
    if (s->err != OX_OK || !place)
        return pre_canary_failed(s, "given an id", s->err != OX_OK ? s->err : OX_E_PLACE_CLOSED);
    k->canary = k->next.id;
    ox_kv_set(&k->custom, "application", "oxbow");
    ox_kv_set(&k->custom, "component", "canary");
    ox_kv_set(&k->custom, "oxbow/instance", k->st->factory ? k->st->factory->instance : "");
    ox_seq_bind(s, &k->create.op, "storage.canary.create");
    ox_ledger_create(place, &k->create, k->canary, &k->custom);
    return OX_WAIT(s, pre_canary_append);
}

static ox_step pre_canary_append(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (s->err != OX_OK)
        return pre_canary_failed(s, "created", s->err);
    k->writer = k->create.ledger;
    k->append = (struct ox_append){.entry = 0, .part_count = 1};
    k->append.parts[0] = ox_buf_static(CANARY_TEXT, strlen(CANARY_TEXT));
    ox_seq_bind(s, &k->append.op, "storage.canary.append");
    ox_ledger_append(k->writer, &k->append);
    return OX_WAIT(s, pre_canary_close);
}

static ox_step pre_canary_close(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (s->err != OX_OK)
        return pre_canary_failed(s, "written", s->err);
    ox_seq_bind(s, &k->close.op, "storage.canary.close");
    ox_ledger_close(k->writer, &k->close);
    return OX_WAIT(s, pre_canary_open);
}

static ox_step pre_canary_open(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    struct ox_place *place = pre_place(k);
    if (s->err != OX_OK || !place)
        return pre_canary_failed(s, "closed", s->err != OX_OK ? s->err : OX_E_PLACE_CLOSED);
    ox_seq_bind(s, &k->reopen.op, "storage.canary.open");
    ox_ledger_open(place, &k->reopen, k->canary, OX_OPEN_READ_ONLY, &k->custom);
    return OX_WAIT(s, pre_canary_read);
}

static ox_step pre_canary_read(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (s->err != OX_OK)
        return pre_canary_failed(s, "opened", s->err);
    k->reader = k->reopen.ledger;
    k->read = (struct ox_read){.first = 0, .last = 0, .bytes_max = 1};
    ox_seq_bind(s, &k->read.op, "storage.canary.read");
    ox_ledger_read(k->reader, &k->read);
    return OX_WAIT(s, pre_canary_compare);
}

static ox_step pre_canary_compare(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (s->err != OX_OK)
        return pre_canary_failed(s, "read", s->err);
    struct ox_buf want = ox_buf_static(CANARY_TEXT, strlen(CANARY_TEXT));
    bool same = k->read.count == 1 && ox_buf_equal(k->read.entries[0], want);
    ox_read_fini(&k->read);
    return same ? OX_GOTO(s, pre_canary_delete) : pre_canary_failed(s, "read as it was written", OX_E_CORRUPT);
}

static ox_step pre_canary_delete(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    struct ox_place *place = pre_place(k);
    bool made = k->writer != NULL;
    if (k->reader)
        ox_ledger_release(k->reader);
    if (k->writer)
        ox_ledger_release(k->writer);
    k->reader = k->writer = NULL;
    if (!made || !place)
        return OX_GOTO(s, pre_canary_over);
    ox_seq_bind(s, &k->del.op, "storage.canary.delete");
    ox_ledger_delete(place, &k->del, k->canary, &k->custom);
    return OX_WAIT(s, pre_canary_over);
}

static ox_step pre_canary_over(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (k->trouble.len == 0 && s->err != OX_OK)
        ox_str_addf(&k->trouble, "a test ledger could not be deleted in %s: %s", k->target, ox_err_text(s->err));
    if (k->trouble.len > 0) {
        pre_note(k, "canary", "fail", "%s", ox_str_get(&k->trouble));
        return OX_GOTO(s, pre_unfinished);
    }
    pre_note(k, "canary", "pass", "a ledger was written, read and deleted in %llu ms",
             (unsigned long long)((ox_now_ns(s->loop) - k->begun_ns) / OX_MS));
    return OX_GOTO(s, pre_ids);
}

// ---- ids --------------------------------------------------------------------------------------------------------------

static ox_step pre_ids(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    const struct storage_place *p = storage_place_find(k->st, k->target);
    if (!p)
        return OX_GOTO(s, pre_unfinished);
    ox_seq_bind(s, &k->ids.op, "storage.precheck.ids");
    storage_ids_push(k->st, &k->ids, NULL, p->index);
    return OX_WAIT(s, pre_ids_pushed);
}

static void pre_ids_report(struct storage_precheck *k)
{
    int64_t source = k->ids.largest, next = k->ids.largest + 1;
    json_object_set_new(k->report, "idgenAdvancedBeyondSource", json_true());
    json_object_set_new(k->report, "sourceMaxLedgerId", json_integer(source));
    json_object_set_new(k->report, "targetNextLedgerId", json_integer(next));
    json_object_set_new(k->report, "sourceMaxHighOrderBit", json_integer(source >> 32));
    json_object_set_new(k->report, "targetMaxHighOrderBit", json_integer(next >> 32));
    pre_note(k, "ids", "pass", "the next id of %s is above %lld, the largest one in use (its generator stood at %lld)",
             k->target, (long long)source, (long long)k->ids.target_next);
}

static ox_step pre_ids_pushed(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (s->err == OX_OK)
        pre_ids_report(k);
    else
        pre_note(k, "ids", k->st->p.config.skip_idgen ? "warn" : "fail",
                 "the id generator of %s cannot be pushed above the largest id in use: %s", k->target, ox_err_text(s->err));
    return OX_GOTO(s, pre_space);
}

// ---- space ------------------------------------------------------------------------------------------------------------

static ox_step pre_space(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (!k->st->factory)
        return OX_GOTO(s, pre_unfinished);
    if (!k->walking)
        ox_ml_walk_begin(k->st->factory, &k->walk, false);
    k->walking = true;
    ox_seq_bind(s, &k->walk.op, "storage.precheck.walk");
    ox_ml_walk_next(&k->walk);
    return OX_WAIT(s, pre_space_add);
}

static void pre_space_note(struct storage_precheck *k)
{
    struct ox_capacity capacity;
    struct ox_place *place = pre_place(k);
    if (!place)
        return;
    ox_place_capacity(place, &capacity);
    unsigned long long available = capacity.available, reserve = capacity.reserve, step = capacity.step,
                       keep = storage_keep_free(&capacity), bytes = k->bytes;
    if (available < reserve)
        pre_note(
            k, "space", "fail",
            "%llu bytes are available in %s, of which it keeps %llu free: it would soon refuse new data; make room, or "
            "choose another one",
            available, k->target, reserve);
    else if (available < reserve + step)
        pre_note(
            k, "space", "warn",
            "%llu bytes are available in %s, of which it keeps %llu free and takes %llu at a time: it will soon refuse "
            "new data; make room",
            available, k->target, reserve, step);
    else if (available < keep + bytes)
        pre_note(
            k, "space", "warn",
            "%llu bytes lie elsewhere, %llu are available in %s, %llu of them are kept free: new data fits, moving the "
            "older does not",
            bytes, available, k->target, keep);
    else
        pre_note(k, "space", "pass", "%llu bytes lie elsewhere, %llu are available in %s", bytes, available, k->target);
}

// Must this ledger be copied if all follows? Not if it is there, or a copy of it, or its log has another target.
static bool pre_space_needs(const struct storage_precheck *k, const struct ox_ml_found *f)
{
    const struct storage_place *p = storage_place_find(k->st, k->target);
    uint32_t index = p ? p->index : k->st->p.router->active;
    const char *home = p ? ox_router_name(k->st->p.router, storage_home_if(k->st, k->walk.log, index)) : k->target;
    bool there = !strcmp(f->place, k->target) || strcmp(home, k->target) != 0;
    for (size_t i = 0; i < f->copy_count && !there; i++)
        there = !strcmp(f->copies[i].place, k->target);
    return !there;
}

static ox_step pre_space_add(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (s->err != OX_OK) {
        pre_note(k, "space", "warn", "how much would have to be moved is not known: %s", ox_err_text(s->err));
        return OX_GOTO(s, pre_unfinished);
    }
    if (!k->walk.log) {
        pre_space_note(k);
        return OX_GOTO(s, pre_unfinished);
    }
    for (size_t i = 0; i < k->walk.count; i++)
        if (pre_space_needs(k, &k->walk.found[i]))
            k->bytes += k->walk.found[i].bytes;
    if (k->st->stopping)
        return OX_FINISH(s, OX_E_SHUTDOWN);
    return OX_GOTO(s, pre_space);
}

// ---- nothing else under way, everybody listens -------------------------------------------------------------------------

static ox_step pre_unfinished(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    struct ox_storage *st = k->st;
    bool unfinished =
        (st->state == STORAGE_RUNNING || st->state == STORAGE_PAUSED) && strcmp(storage_active(st), k->target) != 0;
    if (!unfinished)
        pre_note(k, "unfinished", "pass", "no other switch is under way");
    else
        pre_note(k, "unfinished", k->supersede ? "warn" : "fail",
                 "the switch %s to %s is %s: wait for it, abort it, or supersede it",
                 st->directive.switch_id ? st->directive.switch_id : "?", storage_active(st),
                 st->state == STORAGE_PAUSED ? "paused" : "not finished");
    return OX_GOTO(s, pre_brokers);
}

static ox_step pre_brokers(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    if (!k->st->activated) {
        pre_note(k, "brokers", "pass", "only one bookie cluster is registered");
        return OX_GOTO(s, pre_end);
    }
    ox_seq_bind(s, &k->brokers.op, "storage.precheck.brokers");
    storage_brokers_ask(k->st, &k->brokers);
    return OX_WAIT(s, pre_brokers_asked);
}

static ox_step pre_brokers_asked(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    size_t missing = json_array_size(k->brokers.missing);
    if (s->err != OX_OK)
        pre_note(k, "brokers", "fail", "it cannot be read which brokers are there: %s", ox_err_text(s->err));
    else if (missing > 0)
        pre_note(k, "brokers", "fail",
                 "%zu live broker(s) have not acknowledged epoch %lld, the first is %s: upgrade or stop it", missing,
                 (long long)k->st->directive.epoch, json_string_value(json_array_get(k->brokers.missing, 0)));
    else
        pre_note(k, "brokers", "pass", "%zu broker(s) have acknowledged epoch %lld", json_array_size(k->brokers.acked),
                 (long long)k->st->directive.epoch);
    storage_brokers_fini(&k->brokers);
    return OX_GOTO(s, pre_end);
}

static ox_step pre_end(struct ox_seq *s)
{
    struct storage_precheck *k = pre_of(s);
    json_object_set_new(k->report, "ready", json_boolean(k->ready));
    return OX_FINISH(s, k->st->stopping ? OX_E_SHUTDOWN : OX_OK);
}

// ---- the verb ----------------------------------------------------------------------------------------------------------

struct precheck_call {
    struct storage_precheck check;
    struct ox_storage *st;
    struct ox_storage_call *call;
};

static void precheck_over(struct ox_op *op)
{
    struct precheck_call *p = CONTAINER_OF(op, struct precheck_call, check.op);
    if (op->err == OX_OK)
        storage_call_answer(p->st, p->call, json_incref(p->check.report));
    else
        storage_call_fail(p->st, p->call, op->err, "the precheck of %s was cut off: %s", p->check.target,
                          ox_err_text(op->err));
    storage_precheck_fini(&p->check);
    ox_free(p);
}

void ox_storage_precheck(struct ox_storage *st, struct ox_storage_call *c, const char *target)
{
    if (!storage_call_begin(st, c))
        return;
    if (!storage_place_find(st, target)) {
        storage_call_fail(st, c, OX_E_NO_PLACE,
                          "no bookie cluster is registered as %s: see the list, or register it first", target);
        return;
    }
    struct precheck_call *p = ox_malloc(sizeof *p);
    *p = (struct precheck_call){.st = st, .call = c};
    ox_op_init(&p->check.op, st->p.loop, precheck_over, "storage.precheck");
    storage_precheck_run(st, &p->check, target, false);
}
