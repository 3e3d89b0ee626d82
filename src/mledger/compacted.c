// compacted.c - compacted ledgers of a log, as its record names them.
#include "mledger/compacted.h"

#include "mledger/mledger_int.h"

void ox_ml_compacted_owner(const struct ox_ml_factory *f, const char *log, struct ox_kv *ret)
{
    ox_kv_set(ret, "application", "pulsar");
    ox_kv_set(ret, "component", OX_COMPONENT_COMPACTED);
    ox_kv_set(ret, "pulsar/managed-ledger", log);
    if (f->instance)
        ox_kv_set(ret, "oxbow/instance", f->instance);
}

enum ox_err ox_ml_compacted(const struct ox_mledger *ml, struct ox_copies *ret)
{
    return ox_copies_parse(ret, ox_record_find_property(ml_impl(ml)->record, OX_PROPERTY_COMPACTED));
}

void ox_ml_compacted_note(struct ox_mledger *ml, struct ox_ml_property *p, const struct ox_copies *all)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_copies_text(all);
    ox_mledger_set_property(ml, p, OX_PROPERTY_COMPACTED, text);
}

void ox_ml_compacted_discard(const struct ox_mledger *ml, const char *place, int64_t id)
{
    struct ox_kv owner = {0};
    char *name = ox_strdup(place);
    struct ox_copy copy = {name, id, 0};
    ox_ml_compacted_owner(ml->factory, ml->name, &owner);
    ml_discard_copy(ml->factory, &copy, id, &owner);
    ox_kv_fini(&owner);
    ox_free(name);
}
