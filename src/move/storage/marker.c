// marker.c - what tells a copy apart from the ledger that it was made of: custom metadata.
#include <stdio.h>
#include <string.h>

#include "move/storage/data_int.h"

void data_marker(const struct ox_storage *st, struct ox_kv *kv, const char *log, struct ox_location from, int64_t entries)
{
    char text[32];
    ox_ml_owner(st->factory, log, NULL, kv);
    OX_CLEANUP(ox_free_ptr)
    char *of = ox_asprintf("%s:%lld", ox_router_name(st->p.router, from.place), (long long)from.physical);
    ox_kv_set(kv, OX_COPY_OF, of);
    if (entries < 0)
        return;
    snprintf(text, sizeof text, "%lld", (long long)entries);
    ox_kv_set(kv, OX_COPY_ENTRIES, text);
    ox_kv_set(kv, OX_COPY_SWITCH, st->directive.switch_id ? st->directive.switch_id : "");
}

bool data_marker_read(const struct ox_storage *st, const struct ox_ledger_info *info, bool *ret_complete, int64_t *ret_id)
{
    const char *of = ox_kv_find(&info->custom, OX_COPY_OF), *colon = of ? strrchr(of, ':') : NULL;
    const char *entries = ox_kv_find(&info->custom, OX_COPY_ENTRIES);
    const char *instance = ox_kv_find(&info->custom, "oxbow/instance"), *ours = st->factory->instance;
    int64_t count = -1;
    if (!colon || !ox_kv_find(&info->custom, "pulsar/managed-ledger") || !instance || !ours ||
        strcmp(instance, ours) != 0 || ox_parse_i64(colon + 1, 0, INT64_MAX, ret_id) != OX_OK)
        return false;
    *ret_complete = entries && ox_parse_i64(entries, 0, INT64_MAX, &count) == OX_OK &&
                    info->state == OX_LEDGER_CLOSED && info->last_entry + 1 == count;
    return true;
}
