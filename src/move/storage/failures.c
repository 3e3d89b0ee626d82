// failures.c - what could not be moved, and why: a bounded list, kept beside the header.
#include <string.h>

#include "move/storage/control_int.h"

static bool failure_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct storage_failure *failure_find(const struct ox_storage *st, const char *topic, const char *cursor, int64_t ledger)
{
    OX_LIST_EACH(&st->failures, link) {
        struct storage_failure *f = CONTAINER_OF(link, struct storage_failure, link);
        // A cursor is one thing, whatever its ledger is called by now.
        if (failure_same(f->topic, topic) && failure_same(f->cursor, cursor) && (cursor || f->ledger == ledger))
            return f;
    }
    return NULL;
}

static char *failure_dup(const char *text)
{
    return text ? ox_strdup(text) : NULL;
}

static struct storage_failure *failure_new(struct ox_storage *st, const char *topic, const char *cursor)
{
    struct storage_failure *f = ox_malloc(sizeof *f);
    f->topic = ox_strdup(topic);
    f->cursor = failure_dup(cursor);
    ox_list_push_back(&st->failures, &f->link);
    return f;
}

void storage_failure_note(struct ox_storage *st, const char *topic, const char *cursor, const char *place,
                          int64_t ledger, int64_t entry, const char *reason)
{
    struct storage_failure *f = failure_find(st, topic, cursor, ledger);
    if (!f && st->failures.count >= STORAGE_FAILURES_MAX) {
        st->failures_dropped++;
        return;
    }
    if (!f)
        f = failure_new(st, topic, cursor);
    ox_free(f->place);
    ox_free(f->reason);
    f->place = failure_dup(place);
    f->reason = ox_strdup(reason);
    f->ledger = ledger;
    f->entry = entry;
    f->tries++;
    f->at_ms = ox_wall_ms(st->p.loop);
    if (f->tries == 1)
        ox_warn(st->p.log, "storage.move.failed", "topic=%s cursor=%s place=%s ledger=%lld reason=" OX_LOG_Q, topic,
                cursor ? cursor : "-", place ? place : "-", (long long)ledger, reason);
}

void storage_failure_clear(struct ox_storage *st, const char *topic, const char *cursor, int64_t ledger)
{
    struct storage_failure *f = failure_find(st, topic, cursor, ledger);
    if (!f)
        return;
    ox_list_remove(&st->failures, &f->link);
    storage_failure_free(f);
}

void storage_failures_clear(struct ox_storage *st)
{
    struct ox_link *link;
    while ((link = ox_list_pop_front(&st->failures)))
        storage_failure_free(CONTAINER_OF(link, struct storage_failure, link));
    st->failures_dropped = 0;
}

json_t *storage_failures_json(const struct ox_storage *st)
{
    json_t *list = json_array();
    OX_LIST_EACH(&st->failures, link)
        json_array_append_new(list, storage_failure_json(CONTAINER_OF(link, struct storage_failure, link)));
    return list;
}

uint64_t storage_failures_count(const struct ox_storage *st)
{
    return st->failures.count + st->failures_dropped;
}
