// dynamic.c - reading the node of dynamic settings, following it, and changing it for REST.
#include "oxbowd/dynamic.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/seq.h"

#define TRIES_MAX 16u // of a change that meets others

static void dynamic_read(struct dynamic *d);

// The texts of an object; members of other types are not settings.
static void dynamic_texts(json_t *map, struct ox_kv *ret)
{
    const char *name;
    json_t *value;
    json_object_foreach(map, name, value)
    {
        if (json_is_string(value))
            ox_kv_set(ret, name, json_string_value(value));
    }
}

static json_t *dynamic_parse(const struct ox_buf *value)
{
    if (value->len == 0) // as a node that was made for the sake of its children
        return json_object();
    json_t *map = json_loadb((const char *)value->data, value->len, 0, NULL);
    if (json_is_object(map))
        return map;
    json_decref(map);
    return NULL;
}

// A value of the node: an older one than is known is passed over.
static void dynamic_take(struct dynamic *d, json_t *map, int64_t version)
{
    if (version <= d->version)
        return;
    struct ox_kv texts = {0};
    d->version = version;
    dynamic_texts(map, &texts);
    live_record(d->live, &texts);
    ox_kv_fini(&texts);
}

static void dynamic_gone(struct dynamic *d)
{
    json_t *none = json_object();
    d->version = -2;
    dynamic_take(d, none, -1);
    json_decref(none);
}

static void dynamic_understand(struct dynamic *d)
{
    json_t *map = dynamic_parse(&d->get.value);
    if (map)
        dynamic_take(d, map, d->get.stat.version);
    else
        ox_error(d->log, "settings.record.corrupt", "path=" DYNAMIC_PATH " version=%lld hint=" OX_LOG_Q,
                 (long long)d->get.stat.version, "it must be a JSON object of texts; the settings stay as they are");
    json_decref(map);
    ox_buf_unref(&d->get.value);
}

static void dynamic_got(struct ox_op *op)
{
    struct dynamic *d = CONTAINER_OF(op, struct dynamic, get.op);
    if (!d->open) // the parts that would follow end
        ox_buf_unref(&d->get.value);
    else if (op->err == OX_OK)
        dynamic_understand(d);
    else if (op->err == OX_E_NOT_FOUND)
        dynamic_gone(d);
    else if (op->err != OX_E_SHUTDOWN)
        ox_warn(d->log, "settings.record.unread", "path=" DYNAMIC_PATH " error=%s", ox_err_name(op->err));
    struct ox_op *first = d->first;
    d->first = NULL;
    if (first)
        ox_op_finish(first, OX_OK);
    if (d->again && d->open)
        dynamic_read(d);
}

static void dynamic_read(struct dynamic *d)
{
    d->again = ox_op_pending(&d->get.op);
    if (d->again)
        return;
    ox_op_init(&d->get.op, d->loop, dynamic_got, "settings.read");
    ox_meta_get(d->meta, &d->get, DYNAMIC_PATH);
}

static void dynamic_fired(struct ox_meta_watch *w, enum ox_meta_event event)
{
    struct dynamic *d = CONTAINER_OF(w, struct dynamic, watch);
    if (event == OX_META_DELETED)
        d->version = -1; // it may be made again, and begin anew
    if (event != OX_META_CHILDREN_CHANGED)
        dynamic_read(d);
}

void dynamic_open(struct dynamic *d, struct ox_op *op)
{
    ox_op_begin(op);
    d->first = op;
    d->version = -1;
    d->open = true;
    d->watch.fired = dynamic_fired;
    ox_meta_watch(d->meta, &d->watch, DYNAMIC_PATH);
    dynamic_read(d);
}

void dynamic_close(struct dynamic *d)
{
    if (d->open)
        ox_meta_unwatch(&d->watch);
    d->open = false;
}

// ---- changing it

// One call on its way.
struct change {
    struct ox_seq seq;
    struct dynamic *dynamic;
    struct ox_admin_setting_put *user;
    struct ox_meta_get get;
    struct ox_meta_put put;
    json_t *map;
    int64_t version;
    unsigned tries;
};

static ox_step change_read(struct ox_seq *s);
static ox_step change_write(struct ox_seq *s);
static ox_step change_written(struct ox_seq *s);

static struct change *change_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct change, seq);
}

static ox_step change_read(struct ox_seq *s)
{
    struct change *c = change_of(s);
    ox_seq_bind(s, &c->get.op, "settings.change.read");
    ox_meta_get(c->dynamic->meta, &c->get, DYNAMIC_PATH);
    return OX_WAIT(s, change_write);
}

// The map as it is now, for a change of it. False: *ret_err says why not.
static bool change_map(struct change *c, enum ox_err *ret_err)
{
    json_decref(c->map);
    c->map = NULL;
    *ret_err = c->seq.err;
    if (c->seq.err == OX_E_NOT_FOUND) {
        c->version = OX_META_ABSENT;
        c->map = json_object();
        return true;
    }
    if (c->seq.err != OX_OK)
        return false;
    c->version = c->get.stat.version;
    c->map = dynamic_parse(&c->get.value);
    ox_buf_unref(&c->get.value);
    *ret_err = c->map ? OX_OK : OX_E_CORRUPT;
    return c->map != NULL;
}

static ox_step change_write(struct ox_seq *s)
{
    struct change *c = change_of(s);
    enum ox_err err;
    if (!change_map(c, &err)) {
        if (err == OX_E_CORRUPT)
            ox_str_adds(&c->user->why, DYNAMIC_PATH " in the metadata is no JSON object: it is not written over");
        return OX_FINISH(s, err);
    }
    if (c->user->value)
        json_object_set_new(c->map, c->user->name, json_string(c->user->value));
    else
        json_object_del(c->map, c->user->name);
    char *text = json_dumps(c->map, JSON_COMPACT);
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    free(text);
    ox_seq_bind(s, &c->put.op, "settings.change.write");
    ox_meta_put(c->dynamic->meta, &c->put, DYNAMIC_PATH, value, c->version, 0);
    ox_buf_unref(&value);
    return OX_WAIT(s, change_written);
}

static ox_step change_written(struct ox_seq *s)
{
    struct change *c = change_of(s);
    if ((s->err == OX_E_BAD_VERSION || s->err == OX_E_UNKNOWN_OUTCOME) && ++c->tries < TRIES_MAX)
        return OX_GOTO(s, change_read);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    ox_free(c->put.path);
    dynamic_take(c->dynamic, c->map, c->put.stat.version);
    return OX_FINISH(s, OX_OK);
}

static void change_over(struct ox_seq *s, enum ox_err err)
{
    struct change *c = change_of(s);
    struct ox_admin_setting_put *user = c->user;
    json_decref(c->map);
    ox_free(c);
    ox_op_finish(&user->op, err);
}

static enum ox_err dynamic_no_text(struct ox_str *why)
{
    ox_str_adds(why, "the value is not valid UTF-8");
    return OX_E_INVALID;
}

static void dynamic_put(void *ctx, struct ox_admin_setting_put *p)
{
    struct dynamic *d = (struct dynamic *)ctx;
    const char *value = p->value ? p->value : ""; // the default, for the sake of the check of the name
    ox_op_begin(&p->op);
    enum ox_err err = live_check(d->live, p->name, value, &p->why);
    if (err == OX_OK && p->value && !ox_utf8_valid(p->value, strlen(p->value)))
        err = dynamic_no_text(&p->why);
    if (err != OX_OK && (p->value || err == OX_E_NOT_FOUND)) {
        ox_op_finish(&p->op, err);
        return;
    }
    struct change *c = ox_malloc(sizeof *c);
    c->dynamic = d;
    c->user = p;
    ox_seq_start(&c->seq, d->loop, "settings.change", change_read, change_over);
}

// ---- what there is

static void dynamic_list(void *ctx, bool live, void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
    const struct dynamic *d = (const struct dynamic *)ctx;
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++) {
        const struct ox_config_key *key = &ox_config_keys[i];
        struct ox_str text = {0};
        ox_config_text(d->live->config, key, &text);
        if (key->live || !live)
            fn(arg, key->name, ox_str_get(&text));
        ox_str_fini(&text);
    }
}

static const struct ox_kv *dynamic_record(void *ctx)
{
    return &((const struct dynamic *)ctx)->live->dynamic;
}

struct ox_admin_settings dynamic_port(struct dynamic *d)
{
    return (struct ox_admin_settings){.list = dynamic_list, .record = dynamic_record, .put = dynamic_put, .ctx = d};
}
