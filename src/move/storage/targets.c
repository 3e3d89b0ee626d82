// targets.c - places of their own for namespaces and topics: which ones are on record, what belongs where, and the verbs that change them.
#include <string.h>

#include "move/storage/control_int.h"

#define TARGET_NAME_MAX 1024 // bytes of a name
#define TARGET_TRIES 30      // of a removal whose outcome is not known

// ---- names -------------------------------------------------------------------------------------------------------------

static bool target_part_valid(const char *part, size_t len)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-=:._";
    for (size_t i = 0; i < len; i++)
        if (!strchr(allowed, part[i]))
            return false;
    return len > 0;
}

// Where logs look it up: "tenant/namespace", or the log's name. NULL: neither form.
static char *target_key(const char *name)
{
    static const char scheme[] = "persistent://";
    bool topic = strncmp(name, scheme, sizeof scheme - 1) == 0;
    const char *tenant = topic ? name + sizeof scheme - 1 : name, *ns = strchr(tenant, '/');
    const char *local = ns && topic ? strchr(ns + 1, '/') : NULL;
    if (!ns || (topic && !local) || strlen(name) > TARGET_NAME_MAX)
        return NULL;
    size_t ns_len = local ? (size_t)(local - ns - 1) : strlen(ns + 1);
    if (!target_part_valid(tenant, (size_t)(ns - tenant)) || !target_part_valid(ns + 1, ns_len))
        return NULL;
    if (!topic)
        return ox_strdup(name);
    if (!local[1] || !ox_utf8_valid(local + 1, strlen(local + 1)))
        return NULL;
    struct ox_str key = {0};
    ox_str_addf(&key, "%.*s/persistent/", (int)(local - tenant), tenant);
    ox_name_encode(&key, local + 1);
    return ox_str_take(&key);
}

// Bytes of a log's name in front of its last `parts` slashes; 0: there are not so many.
static size_t target_cut(const char *log, size_t len, int parts)
{
    while (len > 0 && parts > 0)
        parts -= log[--len] == '/';
    return parts == 0 ? len : 0;
}

// Bytes of a log's name without "-partition-N", or 0.
static size_t target_base(const char *log, size_t len)
{
    static const char mark[] = "-partition-";
    size_t end = len;
    while (end > 0 && log[end - 1] >= '0' && log[end - 1] <= '9')
        end--;
    bool marked = end < len && end > sizeof mark - 1 && memcmp(log + end - (sizeof mark - 1), mark, sizeof mark - 1) == 0;
    return marked ? end - (sizeof mark - 1) : 0;
}

// ---- what belongs where ------------------------------------------------------------------------------------------------

static struct storage_target *target_at(const struct ox_map *map, const char *key, size_t len)
{
    struct ox_map_node *node = len ? ox_map_find(map, key, len) : NULL;
    return node ? CONTAINER_OF(node, struct storage_target, by_key) : NULL;
}

// The topic's own one, that of the topic whose partition it is, or its namespace's.
static struct storage_target *target_of_log(const struct ox_storage *st, const char *log)
{
    if (ox_map_count(&st->targets) == 0)
        return NULL;
    size_t len = strlen(log);
    struct storage_target *t = target_at(&st->targets, log, len);
    if (!t)
        t = target_at(&st->targets, log, target_base(log, len));
    return t ? t : target_at(&st->targets, log, target_cut(log, len, 2));
}

uint32_t storage_home_if(const struct ox_storage *st, const char *log, uint32_t active)
{
    const struct storage_target *t = target_of_log(st, log);
    return t ? t->place : active;
}

uint32_t storage_home(const struct ox_storage *st, const char *log)
{
    return storage_home_if(st, log, st->p.router->active);
}

uint32_t storage_home_hook(void *ctx, const char *log)
{
    return storage_home(ctx, log);
}

const char *storage_home_name(const struct ox_storage *st, const char *log)
{
    return ox_router_name(st->p.router, storage_home(st, log));
}

const char *storage_target_user(const struct ox_storage *st, uint32_t place)
{
    OX_MAP_EACH(&st->targets, node) {
        const struct storage_target *t = CONTAINER_OF(node, struct storage_target, by_key);
        if (t->place == place)
            return t->name;
    }
    return NULL;
}

bool storage_is_home(const struct ox_storage *st, uint32_t place)
{
    return place == st->p.router->active || storage_target_user(st, place) != NULL;
}

// ---- the map -------------------------------------------------------------------------------------------------------------

static void target_put(struct ox_map *map, char *take_key, const char *name, uint32_t place, int64_t version)
{
    struct storage_target *t = ox_malloc(sizeof *t);
    t->key = take_key;
    t->name = ox_strdup(name);
    t->place = place;
    t->version = version;
    ox_map_put_str(map, &t->by_key, t->key);
}

static void target_drop(struct ox_map *map, struct storage_target *t)
{
    ox_map_remove(map, &t->by_key);
    ox_free(t->key);
    ox_free(t->name);
    ox_free(t);
}

static void targets_clear(struct ox_map *map)
{
    OX_MAP_EACH(map, node)
        target_drop(map, CONTAINER_OF(node, struct storage_target, by_key));
}

void storage_targets_fini(struct ox_storage *st)
{
    targets_clear(&st->targets);
}

static bool targets_equal(const struct ox_map *a, const struct ox_map *b)
{
    if (ox_map_count(a) != ox_map_count(b))
        return false;
    OX_MAP_EACH(a, node) {
        const struct storage_target *t = CONTAINER_OF(node, struct storage_target, by_key);
        const struct storage_target *other = target_at(b, t->key, strlen(t->key));
        if (!other || other->place != t->place)
            return false;
    }
    return true;
}

// Open logs go where they belong now.
static void targets_changed(struct ox_storage *st)
{
    st->targets_changes++;
    if (st->factory)
        ox_ml_follow(st->factory);
}

// ---- reading all records ---------------------------------------------------------------------------------------------------

static ox_step load_listed(struct ox_seq *s);
static ox_step load_next(struct ox_seq *s);
static ox_step load_read(struct ox_seq *s);

static struct storage_targets_load *load_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_targets_load, seq);
}

static void load_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_targets_load *l = load_of(s);
    struct ox_storage *st = l->st;
    // Whatever was set or removed while the records were read is newer than what was read.
    if (err == OX_OK && l->changes == st->targets_changes && !targets_equal(&l->fresh, &st->targets)) {
        struct ox_map before = st->targets;
        st->targets = l->fresh;
        l->fresh = before;
        targets_changed(st);
    }
    targets_clear(&l->fresh);
    ox_meta_names_free(l->children.names, l->children.count);
    ox_op_finish(&l->op, err);
}

static ox_step load_start(struct ox_seq *s)
{
    struct storage_targets_load *l = load_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(l->st, "targets");
    ox_seq_bind(s, &l->children.op, "storage.targets.list");
    ox_meta_children(l->st->p.meta, &l->children, path);
    return OX_WAIT(s, load_listed);
}

void storage_targets_load(struct ox_storage *st, struct storage_targets_load *l)
{
    ox_op_begin(&l->op);
    l->st = st;
    l->changes = st->targets_changes;
    l->at = 0;
    l->children.names = NULL;
    l->children.count = 0;
    ox_seq_start(&l->seq, st->p.loop, "storage.targets", load_start, load_done);
}

static ox_step load_listed(struct ox_seq *s)
{
    struct storage_targets_load *l = load_of(s);
    if (s->err != OX_OK) {
        l->children.names = NULL;
        l->children.count = 0;
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_OK : s->err);
    }
    return OX_GOTO(s, load_next);
}

static ox_step load_next(struct ox_seq *s)
{
    struct storage_targets_load *l = load_of(s);
    if (l->at == l->children.count)
        return OX_FINISH(s, OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(l->st, "targets/%s", l->children.names[l->at]);
    ox_seq_bind(s, &l->get.op, "storage.targets.read");
    ox_meta_get(l->st->p.meta, &l->get, path);
    return OX_WAIT(s, load_read);
}

static ox_step load_refuse(struct ox_seq *s, enum ox_err err, const char *why, const char *what)
{
    struct storage_targets_load *l = load_of(s);
    ox_str_truncate(&l->why, 0);
    ox_str_addf(&l->why, "%s/targets/%s %s%s: correct or remove that record", l->st->p.config.root,
                l->children.names[l->at], why, what);
    return OX_FINISH(s, err);
}

// Takes one record over.
static ox_step load_take(struct ox_seq *s, const json_t *record)
{
    struct storage_targets_load *l = load_of(s);
    const char *name = json_string_value(json_object_get(record, "name"));
    const char *place = json_string_value(json_object_get(record, "target"));
    char *key = name && place ? target_key(name) : NULL;
    struct ox_str node = {0};
    if (key)
        ox_name_encode(&node, key);
    bool right = key && strcmp(ox_str_get(&node), l->children.names[l->at]) == 0;
    ox_str_fini(&node);
    const struct storage_place *p = right ? storage_place_find(l->st, place) : NULL;
    if (!p || p->index >= l->st->p.router->count) {
        ox_free(key);
        return right ? load_refuse(s, OX_E_CONFLICT, "names a bookie cluster that is not registered here: ", place)
                     : load_refuse(s, OX_E_CORRUPT, "cannot be understood", "");
    }
    target_put(&l->fresh, key, name, p->index, l->get.stat.version);
    l->at++;
    return OX_GOTO(s, load_next);
}

static ox_step load_read(struct ox_seq *s)
{
    struct storage_targets_load *l = load_of(s);
    if (s->err == OX_E_NOT_FOUND) {
        l->at++;
        return OX_GOTO(s, load_next);
    }
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    json_t *record = json_loadb((const char *)l->get.value.data, l->get.value.len, JSON_REJECT_DUPLICATES, NULL);
    ox_buf_unref(&l->get.value);
    ox_step step = load_take(s, record);
    json_decref(record);
    return step;
}

// ---- verbs -----------------------------------------------------------------------------------------------------------------

// A change of one record.
struct targeting {
    struct ox_seq seq;
    struct ox_storage *st;
    struct ox_storage_call *call;
    char *key, *name, *path;
    const char *place; // of the call's: NULL: to be removed
    uint32_t index;
    struct storage_put put;
    struct ox_meta_del del;
    struct ox_timer timer;
    uint32_t tries;
};

static struct targeting *targeting_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct targeting, seq);
}

static json_t *target_json(const struct ox_storage *st, const char *name, const char *key)
{
    const struct storage_target *own = target_of_log(st, key);
    bool topic = strncmp(name, "persistent://", 13) == 0;
    if (!topic)
        own = target_at(&st->targets, key, strlen(key));
    const char *source = !own ? "cluster" : strncmp(own->name, "persistent://", 13) == 0 ? "topic" : "namespace";
    return json_pack("{s:s,s:s,s:s}", "name", name, "target",
                     own ? ox_router_name(st->p.router, own->place) : storage_active(st), "source", source);
}

// Begins a call about a name; NULL: answered.
static char *target_begin(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    if (!storage_call_begin(st, c))
        return NULL;
    char *key = target_key(name);
    if (!key)
        storage_call_fail(st, c, OX_E_INVALID,
                          "\"%s\" is neither TENANT/NAMESPACE nor persistent://TENANT/NAMESPACE/TOPIC", name);
    return key;
}

void ox_storage_target_get(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    char *key = target_begin(st, c, name);
    if (!key)
        return;
    json_t *answer = target_json(st, name, key);
    ox_free(key);
    storage_call_answer(st, c, answer);
}

static void targeting_free(struct targeting *t)
{
    ox_timer_stop(&t->timer);
    ox_free(t->key);
    ox_free(t->name);
    ox_free(t->path);
    ox_free(t);
}

// The record says so: it holds from now on.
static void targeting_apply(struct targeting *t)
{
    struct ox_storage *st = t->st;
    struct storage_target *old = target_at(&st->targets, t->key, strlen(t->key));
    if (old)
        target_drop(&st->targets, old);
    if (t->place)
        target_put(&st->targets, ox_strdup(t->key), t->name, t->index, t->put.version);
    ox_info(st->p.log, "storage.target", "name=\"%s\" target=%s", t->name,
            t->place ? ox_router_name(st->p.router, t->index) : "-");
    targets_changed(st);
}

static void targeting_done(struct ox_seq *s, enum ox_err err)
{
    struct targeting *t = targeting_of(s);
    struct ox_storage *st = t->st;
    storage_turn_give(st);
    if (err == OX_OK) {
        targeting_apply(t);
        storage_call_answer(st, t->call, t->place ? target_json(st, t->name, t->key) : NULL);
    } else if (err == OX_E_BAD_VERSION) {
        storage_call_fail(st, t->call, OX_E_CONFLICT,
                          "somebody else has just changed the target of %s: look, then ask again", t->name);
    } else {
        storage_call_fail(st, t->call, err,
                          "it is not known whether the target of %s was changed (%s): ask for it, then again", t->name,
                          ox_err_text(err));
    }
    targeting_free(t);
    if (err != OX_OK)
        storage_watch_kick(st); // reads what holds now
}

static ox_step targeting_put(struct ox_seq *s);
static ox_step targeting_written(struct ox_seq *s);
static ox_step targeting_del(struct ox_seq *s);
static ox_step targeting_removed(struct ox_seq *s);

static void targeting_pause_over(struct ox_timer *timer)
{
    ox_seq_resume(&CONTAINER_OF(timer, struct targeting, timer)->seq, OX_OK);
}

static void targeting_start(struct ox_storage *st, struct ox_storage_call *c, const char *name, char *take_key,
                            const struct storage_place *p)
{
    struct targeting *t = ox_malloc(sizeof *t);
    struct ox_str node = {0};
    ox_name_encode(&node, take_key);
    t->st = st;
    t->call = c;
    t->key = take_key;
    t->name = ox_strdup(name);
    t->path = storage_path(st, "targets/%s", ox_str_get(&node));
    t->place = p ? p->name : NULL;
    t->index = p ? p->index : 0;
    ox_str_fini(&node);
    ox_timer_init(&t->timer, st->p.loop, targeting_pause_over);
    ox_seq_start(&t->seq, st->p.loop, "storage.target", p ? targeting_put : targeting_del, targeting_done);
}

static ox_step targeting_put(struct ox_seq *s)
{
    struct targeting *t = targeting_of(s);
    const struct storage_target *now = target_at(&t->st->targets, t->key, strlen(t->key));
    json_t *record = json_pack("{s:s,s:s}", "name", t->name, "target", t->place);
    char *text = json_dumps(record, JSON_COMPACT);
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    free(text);
    json_decref(record);
    ox_seq_bind(s, &t->put.op, "storage.target.put");
    storage_put(t->st, &t->put, t->path, value, now ? now->version : OX_META_ABSENT);
    return OX_WAIT(s, targeting_written);
}

static ox_step targeting_written(struct ox_seq *s)
{
    if (s->err == OX_OK)
        OX_CRASHPOINT(s->loop, "target.after_record");
    return OX_FINISH(s, s->err);
}

void ox_storage_target_set(struct ox_storage *st, struct ox_storage_call *c, const char *name, const char *place)
{
    char *key = target_begin(st, c, name);
    const struct storage_place *p = storage_place_find(st, place);
    if (!key)
        return;
    if (!p || p->index >= st->p.router->count)
        storage_call_fail(st, c, OX_E_NO_PLACE, "no bookie cluster is registered as %s: register it first", place);
    else if (!st->activated)
        storage_call_fail(st, c, OX_E_CONFLICT, "%s is the only bookie cluster: register a second one first", place);
    else if (!ox_router_place(st->p.router, p->index))
        storage_call_fail(st, c, OX_E_PLACE_CLOSED, "bookie cluster %s is not open here: see the log for the reason", place);
    else if (storage_turn_take(st, c, "change of a target")) {
        targeting_start(st, c, name, key, p);
        return;
    }
    ox_free(key);
}

static ox_step targeting_del(struct ox_seq *s)
{
    struct targeting *t = targeting_of(s);
    const struct storage_target *now = target_at(&t->st->targets, t->key, strlen(t->key));
    if (!now) // the watch has seen that somebody else has removed it
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &t->del.op, "storage.target.del");
    ox_meta_del(t->st->p.meta, &t->del, t->path, now->version);
    return OX_WAIT(s, targeting_removed);
}

// Until the outcome is known.
static ox_step targeting_removed(struct ox_seq *s)
{
    struct targeting *t = targeting_of(s);
    bool may_pass = s->err == OX_E_DISCONNECTED || s->err == OX_E_SESSION_EXPIRED || s->err == OX_E_UNKNOWN_OUTCOME;
    if (may_pass && t->tries++ < TARGET_TRIES && !t->st->stopping) {
        ox_timer_start(&t->timer, STORAGE_RETRY_NS);
        return OX_WAIT(s, targeting_del);
    }
    if (s->err == OX_OK)
        OX_CRASHPOINT(s->loop, "target.after_remove");
    return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_OK : s->err);
}

void ox_storage_target_remove(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    char *key = target_begin(st, c, name);
    if (!key)
        return;
    if (!target_at(&st->targets, key, strlen(key)))
        storage_call_fail(st, c, OX_E_NOT_FOUND, "%s has no target of its own", name);
    else if (storage_turn_take(st, c, "change of a target")) {
        targeting_start(st, c, name, key, NULL);
        return;
    }
    ox_free(key);
}
