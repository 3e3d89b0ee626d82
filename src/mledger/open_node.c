// open_node.c - opening a log, first part: are the places those on record? what does the node say?
#include <string.h>

#include "mledger/open.h"

static struct ox_ml_factory *opening_factory(const struct ml_opening *o)
{
    return o->ml->factory;
}

// ---- places ----------------------------------------------------------------------------------------------------------
// "No such ledger" is believed only from the place that the record means (rule 8): its identity is kept under /oxbow/places.

static ox_step opening_place_read(struct ox_seq *s);
static ox_step opening_place_written(struct ox_seq *s);
static ox_step opening_node(struct ox_seq *s);

static char *opening_place_path(const struct ox_place *place)
{
    struct ox_str path = {0};
    ox_str_adds(&path, "/oxbow/places/");
    ox_name_encode(&path, place->name);
    return ox_str_take(&path);
}

ox_step opening_places(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct ox_ml_factory *f = opening_factory(o);
    while (f->places_known < f->router->count && !ox_router_place(f->router, f->places_known))
        f->places_known++; // not open here: whoever opens it checks it
    if (f->places_known >= f->router->count)
        return OX_GOTO(s, opening_node);
    o->place = f->places_known;
    OX_CLEANUP(ox_free_ptr)
    char *path = opening_place_path(ox_router_place(f->router, o->place));
    ox_seq_bind(s, &o->get.op, "mledger.open.place");
    ox_meta_get(f->meta, &o->get, path);
    return OX_WAIT(s, opening_place_read);
}

static ox_step opening_place_make(struct ox_seq *s, const struct ox_place *place)
{
    struct ml_opening *o = opening_of(s);
    OX_CLEANUP(ox_free_ptr)
    char *path = opening_place_path(place);
    struct ox_buf value = ox_buf_copy(place->identity, strlen(place->identity));
    ox_seq_bind(s, &o->put.op, "mledger.open.place_put");
    ox_meta_put(opening_factory(o)->meta, &o->put, path, value, OX_META_ABSENT, 0);
    ox_buf_unref(&value);
    return OX_WAIT(s, opening_place_written);
}

static ox_step opening_place_read(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct ox_ml_factory *f = opening_factory(o);
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return opening_fail(s, s->err);
    const struct ox_place *place = ox_router_place(f->router, o->place);
    if (!place) { // closed meanwhile
        if (s->err == OX_OK)
            ox_buf_unref(&o->get.value);
        return OX_GOTO(s, opening_places);
    }
    if (s->err == OX_E_NOT_FOUND)
        return opening_place_make(s, place);
    bool same =
        o->get.value.len == strlen(place->identity) && memcmp(o->get.value.data, place->identity, o->get.value.len) == 0;
    ox_buf_unref(&o->get.value);
    if (!same) {
        ox_error(f->log, "mledger.place.stranger", "place=%s identity=%s hint=" OX_LOG_Q, place->name,
                 place->identity, "the metadata store knows another identity for this place: start with the storage that belongs to the metadata");
        return opening_fail(s, OX_E_IDENTITY_MISMATCH);
    }
    f->places_known = OX_MAX(f->places_known, o->place + 1); // another opening may have been quicker
    return OX_GOTO(s, opening_places);
}

static ox_step opening_place_written(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (s->err == OX_OK)
        ox_free(o->put.path);
    else if (s->err != OX_E_BAD_VERSION && s->err != OX_E_UNKNOWN_OUTCOME)
        return opening_fail(s, s->err);
    return OX_GOTO(s, opening_places); // read it again: somebody else may have written it first
}

// ---- node ------------------------------------------------------------------------------------------------------------

static ox_step opening_node_read(struct ox_seq *s);
static ox_step opening_node_written(struct ox_seq *s);

static ox_step opening_node(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    ox_seq_bind(s, &o->get.op, "mledger.open.node");
    ox_meta_get(opening_factory(o)->meta, &o->get, o->ml->path);
    return OX_WAIT(s, opening_node_read);
}

static ox_step opening_node_make(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (!o->create)
        return opening_fail(s, OX_E_NOT_FOUND);
    ox_seq_bind(s, &o->put.op, "mledger.open.node_put");
    ox_meta_put(opening_factory(o)->meta, &o->put, o->ml->path, ox_buf_empty(), OX_META_ABSENT, 0);
    return OX_WAIT(s, opening_node_written);
}

static ox_step opening_node_written(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (s->err == OX_OK)
        ox_free(o->put.path);
    else if (s->err != OX_E_BAD_VERSION && s->err != OX_E_UNKNOWN_OUTCOME)
        return opening_fail(s, s->err);
    OX_CRASHPOINT(s->loop, "open.after_node");
    return OX_GOTO(s, opening_node);
}

// Where a ledger of the record is. Errors: NO_PLACE, CORRUPT (an impossible physical id).
static enum ox_err opening_locate(struct ox_ml_factory *f, const struct ox_record_ledger *l, struct ox_location *ret)
{
    *ret = (struct ox_location){.id = l->id, .physical = l->physical};
    if (l->physical < 0)
        return OX_E_CORRUPT;
    return l->place ? ox_router_find(f->router, l->place, &ret->place) : OX_OK;
}

static enum ox_err opening_take_ledger(struct ox_mledger *ml, const struct ox_record_ledger *l)
{
    struct ox_location where;
    enum ox_err err = opening_locate(ml->factory, l, &where);
    if (err != OX_OK) {
        ox_error(ml->factory->log, "mledger.open.no_place", "log=%s ledger=%lld place=%s error=%s", ml->name,
                 (long long)l->id, l->place ? l->place : "-", ox_err_name(err));
        return err;
    }
    struct ox_ml_ledger *added = ml_list_add(ml, where);
    added->entries = l->entries;
    added->bytes = l->bytes;
    added->closed_ms = l->closed_ms;
    added->sealed = added->recorded = true;
    if (ox_copies_parse(&added->copies, l->copies) != OX_OK)
        ox_warn(ml->factory->log, "mledger.open.copies", "log=%s ledger=%lld copies=" OX_LOG_Q " hint=" OX_LOG_Q,
                ml->name, (long long)l->id, l->copies, "not understood: whatever they name is neither used nor deleted");
    return OX_OK;
}

static void opening_take_properties(struct ox_mledger *ml)
{
    struct mledger_impl *impl = ml_impl(ml);
    const Mldata__ManagedLedgerInfo *info = impl->record->info;
    for (size_t i = 0; i < info->n_properties; i++)
        ox_kv_set(&ml->properties, info->properties[i]->key, info->properties[i]->value);
    const char *index = ox_kv_find(&ml->properties, OX_PROPERTY_INDEX);
    if (index && ox_parse_i64(index, -1, INT64_MAX - 1, &impl->acked_index) != OX_OK)
        impl->acked_index = -1;
    ml->compacted = ox_kv_find(&ml->properties, OX_PROPERTY_COMPACTED) != NULL;
    struct ox_pos end;
    ml->terminated = ox_record_terminated(impl->record, &end);
}

static enum ox_err opening_take_node(struct ml_opening *o)
{
    struct ox_mledger *ml = o->ml;
    struct ox_record *record = ml_impl(ml)->record;
    ml->node_version = o->get.stat.version;
    enum ox_err err = ox_record_decode(record, o->get.value);
    if (err != OX_OK) {
        ox_error(ml->factory->log, "mledger.open.record_corrupt", "log=%s path=%s version=%lld bytes=%zu", ml->name,
                 ml->path, (long long)ml->node_version, o->get.value.len);
        return err;
    }
    for (size_t i = 0; i < ox_record_count(record) && err == OX_OK; i++) {
        struct ox_record_ledger l = ox_record_get(record, i);
        err = opening_take_ledger(ml, &l);
    }
    if (err == OX_OK)
        opening_take_properties(ml);
    ml_list_count(ml);
    return err;
}

static ox_step opening_node_read(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return opening_node_make(s);
    if (s->err != OX_OK)
        return opening_fail(s, s->err);
    enum ox_err err = opening_take_node(o);
    ox_buf_unref(&o->get.value);
    return err == OX_OK ? OX_GOTO(s, opening_recover) : opening_fail(s, err);
}
