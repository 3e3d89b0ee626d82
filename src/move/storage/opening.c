// opening.c - a place is opened, and its identity compared with what is on record: nothing is believed from a place that is another one than registered.
#include <string.h>

#include "move/storage/control_int.h"

static ox_step opening_open(struct ox_seq *s);
static ox_step opening_opened(struct ox_seq *s);
static ox_step opening_compared(struct ox_seq *s);
static ox_step opening_closed(struct ox_seq *s);

char *storage_identity_path(const char *name)
{
    struct ox_str path = {0};
    ox_str_adds(&path, "/oxbow/places/");
    ox_name_encode(&path, name);
    return ox_str_take(&path);
}

static struct storage_opening *opening_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_opening, seq);
}

static void opening_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_opening *o = opening_of(s);
    ox_free(o->name);
    ox_free(o->uri);
    ox_op_finish(&o->op, err);
}

void storage_opening_start(const struct ox_storage_ports *ports, struct storage_opening *o, const char *name,
                           const char *uri, const char *identity)
{
    ox_op_begin(&o->op);
    o->ports = ports;
    o->name = ox_strdup(name);
    o->uri = ox_strdup(uri ? uri : "");
    o->place = NULL;
    o->recorded = o->meta_failed = false;
    memcpy(o->identity, identity, strlen(identity) + 1);
    ox_str_truncate(&o->why, 0);
    ox_seq_start(&o->seq, ports->loop, "storage.open", opening_open, opening_done);
}

static ox_step opening_open(struct ox_seq *s)
{
    struct storage_opening *o = opening_of(s);
    ox_seq_bind(s, &o->op_open, "storage.open.place");
    o->ports->opener->open(o->ports->opener, &o->op_open, o->name, o->uri, *o->identity != 0, &o->place);
    return OX_WAIT(s, opening_opened);
}

static ox_step opening_refuse(struct ox_seq *s, enum ox_err err)
{
    struct storage_opening *o = opening_of(s);
    o->err = err;
    ox_seq_bind(s, &o->op_open, "storage.open.close");
    ox_place_close(o->place, &o->op_open);
    o->place = NULL;
    return OX_WAIT(s, opening_closed);
}

static ox_step opening_closed(struct ox_seq *s)
{
    return OX_FINISH(s, opening_of(s)->err);
}

static ox_step opening_changed(struct ox_seq *s, const char *known, size_t known_len)
{
    struct storage_opening *o = opening_of(s);
    ox_str_addf(
        &o->why,
        "the storage at %s is not the one that was registered as %s: its identity changed from %.*s to %s; bring the "
        "former storage back, or register this one under another name",
        o->uri, o->name, (int)known_len, known, o->place->identity);
    return opening_refuse(s, OX_E_PLACE_CHANGED);
}

static ox_step opening_opened(struct ox_seq *s)
{
    struct storage_opening *o = opening_of(s);
    if (s->err == OX_E_NOT_FOUND && *o->identity) {
        ox_str_addf(&o->why, "nothing of the storage of %s is at %s: is its disk mounted? Bring it back", o->name, o->uri);
        o->place = NULL;
        return OX_FINISH(s, s->err);
    }
    if (s->err != OX_OK) {
        ox_str_addf(&o->why, "the storage of %s at %s cannot be opened: %s", o->name, o->uri, ox_err_text(s->err));
        o->place = NULL;
        return OX_FINISH(s, s->err);
    }
    if (*o->identity && strcmp(o->identity, o->place->identity) != 0)
        return opening_changed(s, o->identity, strlen(o->identity));
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_identity_path(o->name);
    ox_seq_bind(s, &o->get.op, "storage.open.identity");
    ox_meta_get(o->ports->meta, &o->get, path);
    return OX_WAIT(s, opening_compared);
}

static ox_step opening_compared(struct ox_seq *s)
{
    struct storage_opening *o = opening_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return OX_FINISH(s, OX_OK);
    if (s->err != OX_OK) {
        o->meta_failed = true;
        ox_str_addf(&o->why, "the identity of %s cannot be read from the metadata store: %s", o->name, ox_err_text(s->err));
        return opening_refuse(s, s->err);
    }
    struct ox_buf known = o->get.value;
    bool same = known.len == strlen(o->place->identity) && memcmp(known.data, o->place->identity, known.len) == 0;
    o->recorded = same;
    ox_step step = same ? OX_FINISH(s, OX_OK) : opening_changed(s, (const char *)known.data, known.len);
    ox_buf_unref(&o->get.value);
    return step;
}
