// registry.c - the list of places, and how a place comes into it and out of it.
//
// Registering, in this order: open and compare; push the ids of all; identities; entries of both places; stamps; bootstrap record. A crash at any arrow leaves
// records with which the broker starts as before, and a repeat of the same order finishes.
#include <string.h>

#include "move/storage/control_int.h"

struct storage_place *storage_place_find(const struct ox_storage *st, const char *name)
{
    struct ox_map_node *node = ox_map_find_str(&st->places, name);
    return node ? CONTAINER_OF(node, struct storage_place, by_name) : NULL;
}

const char *storage_active(const struct ox_storage *st)
{
    return ox_router_name(st->p.router, st->p.router->active);
}

const char *storage_status(const struct ox_storage *st, const struct storage_place *p)
{
    bool previous = st->directive.previous && !strcmp(p->name, st->directive.previous);
    if (p->index == st->p.router->active)
        return "ACTIVE";
    if (previous || !strcmp(p->name, st->bootstrap))
        return "DEPRECATED";
    return p->status && !strcmp(p->status, "DEPRECATED") ? "DEPRECATED" : "STANDBY";
}

json_t *storage_place_json(const struct ox_storage *st, const struct storage_place *p)
{
    const struct ox_place *place = ox_router_place(st->p.router, p->index);
    struct ox_capacity capacity = {0};
    if (place)
        ox_place_capacity((struct ox_place *)(uintptr_t)place, &capacity);
    const char *state = place ? "OPEN" : ox_err_name(st->p.router->slots[p->index].err);
    return json_pack("{s:s,s:s?,s:s,s:s?,s:s,s:b,s:I,s:I,s:I}", "name", p->name, "metadataServiceUri", p->uri, "status",
                     storage_status(st, p), "identity", *p->identity ? p->identity : NULL, "state", state, "writable",
                     place && capacity.writable, "bytesTotal", (json_int_t)capacity.total, "bytesAvailable",
                     (json_int_t)capacity.available, "bytesUsed", (json_int_t)capacity.used_live);
}

void ox_storage_list(struct ox_storage *st, struct ox_storage_call *c)
{
    if (!storage_call_begin(st, c))
        return;
    json_t *list = json_array();
    OX_MAP_EACH(&st->places, node)
        json_array_append_new(list, storage_place_json(st, CONTAINER_OF(node, struct storage_place, by_name)));
    storage_call_answer(st, c, list);
}

void ox_storage_get(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    if (!storage_call_begin(st, c))
        return;
    const struct storage_place *p = storage_place_find(st, name);
    if (p)
        storage_call_answer(st, c, storage_place_json(st, p));
    else
        storage_call_fail(st, c, OX_E_NO_PLACE, "no bookie cluster is registered as %s: see the list", name);
}

void storage_place_attach(struct ox_storage *st, struct storage_place *p, struct ox_place *take_place)
{
    bool bootstrap = !strcmp(p->name, st->bootstrap);
    if (p->index == STORAGE_NO_INDEX)
        p->index = bootstrap ? 0 : ox_router_reserve(st->p.router, p->name, OX_E_PLACE_CLOSED);
    ox_router_attach(st->p.router, p->index, take_place);
    p->opened = true;
    storage_refresh(st);
}

// ---- registering -----------------------------------------------------------------------------------------------------

struct registering {
    struct ox_seq seq;
    struct ox_storage *st;
    struct ox_storage_call *call;
    struct storage_place draft; // what its node will say; not in the map
    char *name, *uri;
    bool known;             // it is registered already: only the activation is to be finished
    bool unrecorded;        // it is known here, but its entry is gone: it is written anew
    struct ox_place *place; // opened here, not in the router yet
    struct storage_opening opening;
    struct storage_ids ids;
    struct storage_put put;
    struct storage_bootstrap bootstrap;
    struct ox_meta_get get;
    struct ox_op close;
    enum ox_err err;
};

static ox_step reg_opened(struct ox_seq *s);
static ox_step reg_reopened(struct ox_seq *s);
static ox_step reg_repaired(struct ox_seq *s);
static ox_step reg_looked(struct ox_seq *s);
static ox_step reg_unwritten(struct ox_seq *s, const char *what);
static ox_step reg_ids(struct ox_seq *s);
static ox_step reg_identity(struct ox_seq *s);
static ox_step reg_first_identity(struct ox_seq *s);
static ox_step reg_first_entry(struct ox_seq *s);
static ox_step reg_first_recorded(struct ox_seq *s);
static ox_step reg_entry(struct ox_seq *s);
static ox_step reg_entry_read(struct ox_seq *s);
static ox_step reg_bootstrap(struct ox_seq *s);
static ox_step reg_bootstrap_read(struct ox_seq *s);
static ox_step reg_bootstrap_check(struct ox_seq *s);
static ox_step reg_end(struct ox_seq *s);
static ox_step reg_closed(struct ox_seq *s);

static struct registering *reg_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct registering, seq);
}

static void reg_free(struct registering *r)
{
    ox_free(r->draft.status);
    ox_free(r->name);
    ox_free(r->uri);
    ox_str_fini(&r->opening.why);
    storage_bootstrap_fini(&r->bootstrap);
    ox_free(r);
}

static void reg_done(struct ox_seq *s, enum ox_err err)
{
    struct registering *r = reg_of(s);
    struct ox_storage *st = r->st;
    storage_turn_give(st);
    if (err == OX_OK)
        storage_call_answer(st, r->call, storage_place_json(st, storage_place_find(st, r->name)));
    else
        storage_call_fail(st, r->call, err, "%s", "");
    reg_free(r);
    storage_watch_kick(st);
}

static ox_step reg_look(struct ox_seq *s);
static ox_step reg_fail(struct ox_seq *s, enum ox_err err, const char *format, ...) __attribute__((format(printf, 3, 4)));

// The sentence is kept; what was opened is closed again.
static ox_step reg_fail(struct ox_seq *s, enum ox_err err, const char *format, ...)
{
    struct registering *r = reg_of(s);
    va_list args;
    va_start(args, format);
    ox_str_addv(&r->call->why, format, args);
    va_end(args);
    r->err = err;
    if (!r->place)
        return OX_FINISH(s, err);
    ox_seq_bind(s, &r->close, "storage.register.close");
    ox_place_close(r->place, &r->close);
    r->place = NULL;
    return OX_WAIT(s, reg_closed);
}

static ox_step reg_closed(struct ox_seq *s)
{
    return reg_of(s)->err == OX_OK ? reg_look(s) : OX_FINISH(s, reg_of(s)->err);
}

static bool reg_status_valid(const char *status)
{
    return !strcmp(status, "STANDBY") || !strcmp(status, "ACTIVE") || !strcmp(status, "DEPRECATED");
}

// The name of a registered place with this address, or NULL.
static const char *reg_same_uri(const struct ox_storage *st, const char *uri)
{
    OX_MAP_EACH(&st->places, node) {
        const struct storage_place *p = CONTAINER_OF(node, struct storage_place, by_name);
        if (p->uri && !strcmp(p->uri, uri))
            return p->name;
    }
    return NULL;
}

// True if what outer names contains what inner does.
static bool reg_within(const char *inner, const char *outer)
{
    size_t len = strlen(outer);
    return strncmp(inner, outer, len) == 0 && (inner[len] == '/' || (len > 0 && outer[len - 1] == '/'));
}

// The registered place that lies within this address, or around it, or NULL: whoever deletes one of the two one day would delete both.
static const struct storage_place *reg_nested(const struct ox_storage *st, const char *uri)
{
    OX_MAP_EACH(&st->places, node) {
        const struct storage_place *p = CONTAINER_OF(node, struct storage_place, by_name);
        if (p->uri && (reg_within(p->uri, uri) || reg_within(uri, p->uri)))
            return p;
    }
    return NULL;
}

// What can be said without opening anything. False: answered.
static bool reg_check(struct ox_storage *st, struct ox_storage_call *c, const char *name, const char *uri, const char *status)
{
    const char *why = NULL;
    const struct storage_place *p = storage_place_find(st, name);
    if (!storage_name_valid(name, &why)) {
        storage_call_fail(st, c, OX_E_INVALID, "\"%s\" cannot be the name of a bookie cluster: %s; choose another one",
                          name, why);
        return false;
    }
    if (!reg_status_valid(status)) {
        storage_call_fail(st, c, OX_E_INVALID, "status \"%s\" is not known: use STANDBY", status);
        return false;
    }
    if (!p && !strcmp(status, "ACTIVE")) {
        storage_call_fail(st, c, OX_E_INVALID,
                          "%s cannot be registered as ACTIVE: register it as STANDBY, then switch to it", name);
        return false;
    }
    const char *other = reg_same_uri(st, uri);
    if (p && p->uri && strcmp(p->uri, uri) != 0) {
        storage_call_fail(st, c, OX_E_CONFLICT,
                          "%s is registered at %s: unregister it first, or choose another name than for %s", name,
                          p->uri, uri);
        return false;
    }
    if (other && strcmp(other, name) != 0) {
        storage_call_fail(st, c, OX_E_INVALID, "%s is registered already, as %s", uri, other);
        return false;
    }
    const struct storage_place *nested = p ? NULL : reg_nested(st, uri);
    if (nested) {
        storage_call_fail(st, c, OX_E_INVALID, "%s %s %s, the storage of %s: choose a directory of its own", uri,
                          reg_within(uri, nested->uri) ? "lies within" : "contains", nested->uri, nested->name);
        return false;
    }
    return true;
}

static ox_step reg_begin(struct ox_seq *s);

void ox_storage_register(struct ox_storage *st, struct ox_storage_call *c, const char *name, const char *uri,
                         const char *status)
{
    if (!storage_call_begin(st, c))
        return;
    const char *why = "it is not understood";
    char *canonical = st->p.opener->canonical(st->p.opener, uri, &why);
    if (!canonical) {
        storage_call_fail(st, c, OX_E_INVALID, "the address \"%s\" cannot be used: %s", uri, why);
        return;
    }
    status = status && *status ? status : "STANDBY";
    if (!reg_check(st, c, name, canonical, status) || !storage_turn_take(st, c, "registration")) {
        ox_free(canonical);
        return;
    }
    struct registering *r = ox_malloc(sizeof *r);
    r->st = st;
    r->call = c;
    r->name = ox_strdup(name);
    r->uri = canonical;
    r->draft = (struct storage_place){.name = r->name, .uri = r->uri, .status = ox_strdup(status), .version = -1};
    ox_seq_start(&r->seq, st->p.loop, "storage.register", reg_begin, reg_done);
}

// Again: it counts only if it is on record. Another broker may have unregistered it, or this one without learning that the entry went.
static ox_step reg_look(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(r->st, "%s", r->name);
    ox_seq_bind(s, &r->get.op, "storage.register.look");
    ox_meta_get(r->st->p.meta, &r->get, path);
    return OX_WAIT(s, reg_looked);
}

static ox_step reg_looked(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct storage_place *p = storage_place_find(r->st, r->name);
    if (s->err == OX_OK) {
        ox_buf_unref(&r->get.value);
        return OX_FINISH(s, OX_OK);
    }
    if (s->err != OX_E_NOT_FOUND)
        return reg_fail(s, s->err, "the entry of %s cannot be read: %s", r->name, ox_err_text(s->err));
    r->unrecorded = true;
    p->version = -1;
    memcpy(r->draft.identity, p->identity, sizeof p->identity);
    return OX_GOTO(s, reg_ids);
}

static ox_step reg_begin(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct ox_storage *st = r->st;
    const struct storage_place *p = storage_place_find(st, r->name);
    r->known = p != NULL;
    if (r->known && st->activated && !ox_router_place(st->p.router, p->index)) {
        ox_seq_bind(s, &r->opening.op, "storage.register.reopen");
        storage_opening_start(&st->p, &r->opening, r->name, r->uri, p->identity);
        return OX_WAIT(s, reg_reopened);
    }
    if (r->known && st->activated)
        return reg_look(s);
    if (r->known && !p->raw) // the only place there is
        return OX_FINISH(s, OX_OK);
    if (r->known && !*p->identity)
        return reg_fail(s, OX_E_PLACE_CLOSED,
                        "%s is registered without an identity and cannot be opened: make it reachable first", r->name);
    if (r->known) {
        memcpy(r->draft.identity, p->identity, sizeof p->identity);
        return OX_GOTO(s, reg_ids);
    }
    ox_seq_bind(s, &r->opening.op, "storage.register.open");
    storage_opening_start(&st->p, &r->opening, r->name, r->uri, "");
    return OX_WAIT(s, reg_opened);
}

// Its entry could not be understood: it is written anew.
static ox_step reg_repair(struct ox_seq *s, struct storage_place *p)
{
    struct registering *r = reg_of(s);
    p->uri = ox_strdup(r->uri);
    memcpy(p->identity, r->opening.place->identity, sizeof p->identity);
    ox_free(p->status);
    p->status = ox_strdup(storage_status(r->st, p));
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(r->st, "%s", r->name);
    ox_seq_bind(s, &r->put.op, "storage.register.repair");
    storage_put(r->st, &r->put, path, storage_entry_text(p), p->version);
    return OX_WAIT(s, reg_repaired);
}

static ox_step reg_repaired(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    if (s->err != OX_OK)
        return reg_unwritten(s, "the entry of the bookie cluster");
    storage_place_find(r->st, r->name)->version = r->put.version;
    return OX_FINISH(s, OX_OK);
}

// Registering a closed place once more opens it.
static ox_step reg_reopened(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct storage_place *p = storage_place_find(r->st, r->name);
    if (s->err != OX_OK)
        return reg_fail(s, s->err, "%s", ox_str_get(&r->opening.why));
    if (!ox_router_place(r->st->p.router, p->index)) {
        storage_place_attach(r->st, p, r->opening.place);
        return p->uri ? reg_look(s) : reg_repair(s, p);
    }
    r->place = r->opening.place; // opened by the watch meanwhile
    ox_seq_bind(s, &r->close, "storage.register.reclose");
    ox_place_close(r->place, &r->close);
    r->place = NULL;
    r->err = OX_OK;
    return OX_WAIT(s, reg_closed);
}

static const char *reg_same_identity(const struct ox_storage *st, const char *identity)
{
    OX_MAP_EACH(&st->places, node) {
        const struct storage_place *p = CONTAINER_OF(node, struct storage_place, by_name);
        if (!strcmp(p->identity, identity))
            return p->name;
    }
    return NULL;
}

// What a user may do about a storage that cannot be opened.
static const char *reg_advice(const struct ox_storage *st, enum ox_err err)
{
    switch ((int)err) {
    case OX_E_NOT_FOUND:
    case OX_E_NO_PARENT: return "; make the directory that it is to be made in";
    case OX_E_ACCESS:
        return st->p.is_service
                   ? "; let the broker's user write there, and its unit: ReadWritePaths= (systemctl edit), then restart"
                   : "; let the broker's user write there";
    case OX_E_NO_SPACE: return "; make room there";
    case OX_E_LIMIT: return "; raise the limit of open files (ulimit -n), or unregister what is not needed";
    case OX_E_EXISTS: return "; it is no directory";
    case OX_E_IO: return "; is each part of the path a directory, and the disk sound?";
    default: return "";
    }
}

static ox_step reg_opened(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct ox_storage *st = r->st;
    if (s->err == OX_E_PLACE_CHANGED)
        return reg_fail(s, OX_E_INVALID,
                        "the name %s belonged to another storage: choose another name (or, if nothing is in that one "
                        "any more, remove the "
                        "node /oxbow/places/%s); %s",
                        r->name, r->name, ox_str_get(&r->opening.why));
    if (s->err == OX_E_LOCKED)
        return reg_fail(s, OX_E_CONFLICT,
                        "the storage at %s is in use, by another process or as a registered bookie cluster", r->uri);
    if (s->err != OX_OK)
        return reg_fail(s, s->err, "%s%s", ox_str_get(&r->opening.why), reg_advice(st, s->err));
    r->place = r->opening.place;
    const char *other = reg_same_identity(st, r->place->identity);
    if (other)
        return reg_fail(s, OX_E_INVALID, "%s is the same storage as %s (identity %s), only written in another way",
                        r->uri, other, r->place->identity);
    if (!strcmp(r->name, st->bootstrap) && st->control->bootstrap.identity &&
        strcmp(st->control->bootstrap.identity, r->place->identity) != 0)
        return reg_fail(
            s, OX_E_INVALID,
            "the name %s is the bootstrap bookie cluster's, whose storage had another identity: choose another name",
            r->name);
    memcpy(r->draft.identity, r->place->identity, sizeof r->draft.identity);
    OX_CRASHPOINT(s->loop, "register.after_open");
    return OX_GOTO(s, reg_ids);
}

static ox_step reg_ids(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    ox_seq_bind(s, &r->ids.op, "storage.register.ids");
    storage_ids_push(r->st, &r->ids, r->place, r->known ? storage_place_find(r->st, r->name)->index : STORAGE_NO_INDEX);
    return OX_WAIT(s, reg_identity);
}

static void reg_put(struct ox_seq *s, char *take_path, struct ox_buf give_value)
{
    struct registering *r = reg_of(s);
    ox_seq_bind(s, &r->put.op, "storage.register.put");
    storage_put(r->st, &r->put, take_path, give_value, OX_META_ABSENT);
    ox_free(take_path);
}

static ox_step reg_identity(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    if (s->err != OX_OK)
        return reg_fail(s, s->err, "the id generator of %s cannot be pushed above the ids in use: %s", r->name,
                        ox_err_text(s->err));
    OX_CRASHPOINT(s->loop, "register.after_ids");
    reg_put(s, storage_identity_path(r->name), ox_buf_copy(r->draft.identity, strlen(r->draft.identity)));
    return OX_WAIT(s, reg_first_identity);
}

static ox_step reg_unwritten(struct ox_seq *s, const char *what)
{
    enum ox_err err = s->err == OX_E_BAD_VERSION ? OX_E_CONFLICT : s->err;
    return reg_fail(s, err, "%s could not be written: %s; registering the same again goes on from here", what,
                    s->err == OX_E_BAD_VERSION ? "something else is there already" : ox_err_text(s->err));
}

// The bootstrap place's own node is often there already: written when the first log was opened.
static ox_step reg_first_identity(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    const struct storage_place *first = storage_place_find(r->st, r->st->bootstrap);
    if (s->err != OX_OK)
        return reg_unwritten(s, "the identity of the bookie cluster");
    if (!first || first->raw || r->st->activated)
        return OX_GOTO(s, reg_entry);
    reg_put(s, storage_identity_path(first->name), ox_buf_copy(first->identity, strlen(first->identity)));
    return OX_WAIT(s, reg_first_entry);
}

static ox_step reg_first_entry(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct storage_place *first = storage_place_find(r->st, r->st->bootstrap);
    if (s->err != OX_OK)
        return reg_unwritten(s, "the identity of the bootstrap bookie cluster");
    OX_CRASHPOINT(s->loop, "register.after_identity");
    ox_free(first->status);
    first->status = ox_strdup("ACTIVE");
    reg_put(s, storage_path(r->st, "%s", first->name), storage_entry_text(first));
    return OX_WAIT(s, reg_first_recorded);
}

static void reg_recorded(struct storage_place *p, struct ox_buf give_text, int64_t version)
{
    struct storage_entry entry;
    if (storage_entry_read(give_text, &entry) == OX_OK)
        storage_place_take(p, &entry, version);
    ox_buf_unref(&give_text);
}

static ox_step reg_first_recorded(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct storage_place *first = storage_place_find(r->st, r->st->bootstrap);
    if (s->err != OX_OK)
        return reg_unwritten(s, "the entry of the bootstrap bookie cluster");
    reg_recorded(first, storage_entry_text(first), r->put.version);
    OX_CRASHPOINT(s->loop, "register.after_first_entry");
    return OX_GOTO(s, reg_entry);
}

static ox_step reg_entry(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    if (r->known && !r->unrecorded)
        return OX_GOTO(s, reg_bootstrap);
    reg_put(s, storage_path(r->st, "%s", r->name), storage_entry_text(&r->draft));
    return OX_WAIT(s, reg_entry_read);
}

static ox_step reg_entry_read(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    if (s->err != OX_OK)
        return reg_unwritten(s, "the entry of the bookie cluster");
    r->draft.version = r->put.version;
    OX_CRASHPOINT(s->loop, "register.after_entries");
    return OX_GOTO(s, reg_bootstrap);
}

// From here on records say where ledgers are: whatever a record without a stamp names was made before, its id is not above the one that is noted. (Stamps
// stay on if this fails: the record may be there all the same, and they name the place that all is in.)
static ox_step reg_bootstrap(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct ox_storage *st = r->st;
    if (st->activated)
        return OX_GOTO(s, reg_end);
    if (st->factory)
        st->factory->settings.stamps = true;
    const struct storage_place *first = storage_place_find(st, st->bootstrap);
    r->bootstrap = (struct storage_bootstrap){.name = ox_strdup(st->bootstrap),
                                              .identity = ox_strdup(first->identity),
                                              .recorded_ms = ox_wall_ms(s->loop),
                                              .max_ledger = OX_MAX(r->ids.largest, st->p.router->id_floor)};
    reg_put(s, storage_path(st, "bootstrap"), storage_bootstrap_text(&r->bootstrap));
    return OX_WAIT(s, reg_bootstrap_read);
}

static ox_step reg_bootstrap_read(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    if (s->err == OX_OK) {
        OX_CRASHPOINT(s->loop, "register.after_bootstrap");
        return OX_GOTO(s, reg_end);
    }
    if (s->err != OX_E_BAD_VERSION)
        return reg_unwritten(s, "the bootstrap record");
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(r->st, "bootstrap");
    ox_seq_bind(s, &r->get.op, "storage.register.bootstrap");
    ox_meta_get(r->st->p.meta, &r->get, path);
    return OX_WAIT(s, reg_bootstrap_check);
}

// Another broker has activated at the same time: the same place must be meant.
static ox_step reg_bootstrap_check(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct storage_bootstrap there;
    enum ox_err err = s->err;
    if (err == OX_OK) {
        err = storage_bootstrap_read(r->get.value, &there);
        ox_buf_unref(&r->get.value);
    }
    if (err != OX_OK)
        return reg_fail(s, err, "the bootstrap record cannot be used: %s", ox_err_text(err));
    bool same = !strcmp(there.name, r->st->bootstrap);
    storage_bootstrap_fini(&r->bootstrap);
    r->bootstrap = there;
    if (!same)
        return reg_fail(s, OX_E_CONFLICT, "%s/bootstrap names %s, this broker began in %s: restart it",
                        r->st->p.config.root, r->bootstrap.name, r->st->bootstrap);
    return OX_GOTO(s, reg_end);
}

static void reg_activate(struct registering *r)
{
    struct ox_storage *st = r->st;
    if (st->activated)
        return;
    storage_bootstrap_fini(&st->control->bootstrap);
    st->control->bootstrap = r->bootstrap;
    r->bootstrap = (struct storage_bootstrap){0};
    st->activated = true;
    st->control->interrupted = false;
    if (st->factory)
        storage_stamp(st);
    ox_info(st->p.log, "storage.activated", "bootstrap=%s max_ledger=%lld", st->bootstrap,
            (long long)st->control->bootstrap.max_ledger);
}

// Records name places already; from here on there may be a second one.
static ox_step reg_end(struct ox_seq *s)
{
    struct registering *r = reg_of(s);
    struct ox_storage *st = r->st;
    reg_activate(r);
    if (r->known && !r->unrecorded)
        return OX_FINISH(s, OX_OK);
    struct storage_place *p = storage_place_find(st, r->name);
    if (!p)
        p = storage_place_new(st, r->name, r->uri, r->draft.identity);
    reg_recorded(p, storage_entry_text(&r->draft), r->draft.version);
    if (r->place)
        storage_place_attach(st, p, r->place);
    r->place = NULL;
    ox_info(st->p.log, "storage.registered", "place=%s uri=%s identity=%s", p->name, p->uri, p->identity);
    return OX_FINISH(s, OX_OK);
}
