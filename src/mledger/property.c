// property.c - what is set for one log: properties in its record, its own retention.
#include "mledger/mledger_int.h"

struct property_edit {
    struct ml_edit edit;
    struct ox_ml_property *property;
    char *key, *value;
};

static void property_apply(struct ml_edit *e, struct ox_record *draft)
{
    const struct property_edit *p = CONTAINER_OF(e, struct property_edit, edit);
    if (p->value)
        ox_record_set_property(draft, p->key, p->value);
    else
        ox_record_unset_property(draft, p->key);
    ml_edit_index(e->ml, draft);
}

static void property_written(struct ox_op *op)
{
    struct property_edit *p = CONTAINER_OF(op, struct property_edit, edit.op);
    struct ox_mledger *ml = p->edit.ml;
    struct ox_op *caller = &p->property->op;
    enum ox_err err = op->err;
    if (err == OX_OK && p->value)
        ox_kv_set(&ml->properties, p->key, p->value);
    else if (err == OX_OK)
        (void)ox_kv_remove(&ml->properties, p->key);
    ml->compacted = ox_kv_find(&ml->properties, OX_PROPERTY_COMPACTED) != NULL;
    ox_free(p->key);
    ox_free(p->value);
    ox_free(p);
    ml_impl(ml)->moves--;
    ox_op_finish(caller, err);
    ml_poke(ml);
}

void ox_mledger_set_property(struct ox_mledger *ml, struct ox_ml_property *p, const char *key, const char *value)
{
    struct mledger_impl *impl = ml_impl(ml);
    ox_op_begin(&p->op);
    if (impl->fail_err != OX_OK || !ml_is_open(ml)) {
        ox_op_finish(&p->op, impl->fail_err != OX_OK ? impl->fail_err : OX_E_SHUTDOWN);
        return;
    }
    struct property_edit *e = ox_malloc(sizeof *e);
    e->property = p;
    e->key = ox_strdup(key);
    e->value = value ? ox_strdup(value) : NULL;
    e->edit.apply = property_apply;
    impl->moves++;
    ox_op_init(&e->edit.op, ml->factory->loop, property_written, "mledger.property");
    ml_edit_start(ml, &e->edit);
}

void ox_mledger_set_retention(struct ox_mledger *ml, int64_t retention_ms, int64_t retention_bytes)
{
    struct mledger_impl *impl = ml_impl(ml);
    impl->own_retention = true;
    impl->retention_ms = retention_ms;
    impl->retention_bytes = retention_bytes;
    ox_mledger_trim(ml);
}
