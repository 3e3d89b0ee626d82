// list.c - the list of ledgers in memory: by id, with running counts, so that a position is found in O(log n).
#include "mledger/mledger_int.h"

#include <string.h>

size_t ml_list_at(const struct ox_mledger *ml, int64_t id)
{
    size_t low = 0, high = ml->ledger_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (ml->ledgers[mid]->where.id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct ox_ml_ledger *ox_ml_ledger(const struct ox_mledger *ml, int64_t id)
{
    size_t i = ml_list_at(ml, id);
    return i < ml->ledger_count && ml->ledgers[i]->where.id == id ? ml->ledgers[i] : NULL;
}

int64_t ml_list_max(const struct ox_mledger *ml)
{
    return ml->ledger_count ? ml->ledgers[ml->ledger_count - 1]->where.id : -1;
}

bool ml_is_skipped(const struct ox_mledger *ml, const struct ox_ml_ledger *l)
{
    return l->lost && ml->factory->settings.skip_unrecoverable;
}

void ml_list_count(struct ox_mledger *ml)
{
    ml->total_entries = ml->total_bytes = 0;
    for (size_t i = 0; i < ml->ledger_count; i++) {
        struct ox_ml_ledger *l = ml->ledgers[i];
        l->entries_before = ml->total_entries;
        l->bytes_before = ml->total_bytes;
        ml->total_entries += (uint64_t)l->entries;
        ml->total_bytes += l->bytes;
    }
}

struct ox_ml_ledger *ml_list_add(struct ox_mledger *ml, struct ox_location where)
{
    OX_ASSERT(where.id > ml_list_max(ml));
    if (ml->ledger_count == ml->ledger_cap) {
        ml->ledger_cap = ml->ledger_cap ? 2 * ml->ledger_cap : 4;
        ml->ledgers = ox_realloc(ml->ledgers, ml->ledger_cap, sizeof *ml->ledgers);
    }
    struct ox_ml_ledger *l = ox_malloc(sizeof *l);
    l->ml = ml;
    l->where = where;
    ml->ledgers[ml->ledger_count++] = l;
    ml_list_count(ml);
    return l;
}

void ml_ledger_free(struct ox_ml_ledger *l)
{
    ml_handle_release(l);
    ox_copies_fini(&l->copies);
    ox_free(l);
}

// It is out of the list: freed with its last pin.
static void list_let_go(struct ox_ml_ledger *l)
{
    l->gone = true;
    if (l->pins == 0)
        ml_ledger_free(l);
}

struct ox_ml_ledger *ml_list_relocate(struct ox_mledger *ml, struct ox_ml_ledger *l, struct ox_location to)
{
    size_t i = ml_list_at(ml, l->where.id);
    OX_ASSERT(i < ml->ledger_count && ml->ledgers[i] == l && l->sealed && to.id == l->where.id && l->sent == 0);
    struct ox_ml_ledger *moved = ox_malloc(sizeof *moved);
    *moved = *l;
    moved->where = to;
    moved->handle = NULL;
    moved->pins = moved->late = 0;
    moved->lost = false;
    moved->idle = (struct ox_link){0};
    l->copies = (struct ox_copies){0};
    ml->ledgers[i] = moved;
    list_let_go(l);
    return moved;
}

void ml_list_remove(struct ox_mledger *ml, struct ox_ml_ledger *l)
{
    size_t i = ml_list_at(ml, l->where.id);
    OX_ASSERT(i < ml->ledger_count && ml->ledgers[i] == l);
    ml->ledger_count--;
    memmove(ml->ledgers + i, ml->ledgers + i + 1, (ml->ledger_count - i) * sizeof(struct ox_ml_ledger *));
    list_let_go(l);
    ml_list_count(ml);
}

// How many entries of the log lie before an index's ledger, at the end all of them.
static uint64_t list_entries_before(const struct ox_mledger *ml, size_t i)
{
    return i < ml->ledger_count ? ml->ledgers[i]->entries_before : ml->total_entries;
}

static uint64_t list_bytes_before(const struct ox_mledger *ml, size_t i)
{
    return i < ml->ledger_count ? ml->ledgers[i]->bytes_before : ml->total_bytes;
}

// Entries at or before a position.
static uint64_t list_entries_upto(const struct ox_mledger *ml, struct ox_pos p)
{
    size_t i = ml_list_at(ml, p.ledger);
    uint64_t before = list_entries_before(ml, i);
    if (i == ml->ledger_count || ml->ledgers[i]->where.id != p.ledger || p.entry < 0)
        return before;
    return before + (uint64_t)OX_MIN(p.entry, ml->ledgers[i]->entries - 1) + 1;
}

// Bytes at or before a position, by the ledger's average.
static uint64_t list_bytes_upto(const struct ox_mledger *ml, struct ox_pos p)
{
    size_t i = ml_list_at(ml, p.ledger);
    uint64_t before = list_bytes_before(ml, i);
    if (i == ml->ledger_count || ml->ledgers[i]->where.id != p.ledger || p.entry < 0 || ml->ledgers[i]->entries == 0)
        return before;
    const struct ox_ml_ledger *l = ml->ledgers[i];
    double share = (double)OX_MIN(p.entry + 1, l->entries) / (double)l->entries;
    return before + (uint64_t)((double)l->bytes * share);
}

uint64_t ox_ml_count(const struct ox_mledger *ml, struct ox_pos after, struct ox_pos upto)
{
    if (ox_pos_cmp(after, upto) >= 0)
        return 0;
    return list_entries_upto(ml, upto) - list_entries_upto(ml, after);
}

uint64_t ox_ml_bytes_between(const struct ox_mledger *ml, struct ox_pos after, struct ox_pos upto)
{
    if (ox_pos_cmp(after, upto) >= 0)
        return 0;
    return list_bytes_upto(ml, upto) - list_bytes_upto(ml, after);
}

int64_t ml_number_of(const struct ox_mledger *ml, struct ox_pos p)
{
    return ml_impl(ml)->entries_trimmed + (int64_t)list_entries_upto(ml, (struct ox_pos){p.ledger, p.entry - 1});
}

struct ox_pos ml_position_of(const struct ox_mledger *ml, int64_t number)
{
    int64_t left = OX_MAX(number - ml_impl(ml)->entries_trimmed, 0);
    size_t low = 0, high = ml->ledger_count; // the last ledger that begins at or before `left` and holds something
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if ((int64_t)ml->ledgers[mid]->entries_before <= left)
            low = mid;
        else
            high = mid;
    }
    OX_ASSERT(low < ml->ledger_count);
    while (low > 0 && ml->ledgers[low]->entries == 0)
        low--;
    return (struct ox_pos){ml->ledgers[low]->where.id, left - (int64_t)ml->ledgers[low]->entries_before};
}

// ---- positions -------------------------------------------------------------------------------------------------------

struct ox_pos ox_ml_first(const struct ox_mledger *ml)
{
    return ml->ledger_count ? (struct ox_pos){ml->ledgers[0]->where.id, 0} : (struct ox_pos){-1, 0};
}

struct ox_pos ox_ml_next(const struct ox_mledger *ml, struct ox_pos p)
{
    struct ox_pos next = {p.ledger, OX_MAX(p.entry, -1) + 1};
    for (size_t i = ml_list_at(ml, p.ledger); i < ml->ledger_count; i++) {
        const struct ox_ml_ledger *l = ml->ledgers[i];
        if (l->where.id != p.ledger)
            next = (struct ox_pos){l->where.id, 0};
        if (!l->sealed)
            return (struct ox_pos){next.ledger, OX_MIN(next.entry, l->entries)};
        if (next.entry < l->entries && !ml_is_skipped(ml, l))
            return next;
    }
    return next; // a terminated log: behind its last entry
}

struct ox_pos ox_ml_prev(const struct ox_mledger *ml, struct ox_pos p)
{
    size_t i = ml_list_at(ml, p.ledger);
    if (i < ml->ledger_count && ml->ledgers[i]->where.id == p.ledger) {
        int64_t entry = OX_MIN(p.entry, ml->ledgers[i]->entries) - 1;
        if (entry >= 0 && !ml_is_skipped(ml, ml->ledgers[i]))
            return (struct ox_pos){p.ledger, entry};
    }
    if (i == 0 && ml->compacted && p.ledger < ox_ml_first(ml).ledger && p.entry > 0)
        return (struct ox_pos){p.ledger, p.entry - 1};
    while (i-- > 0)
        if (ml->ledgers[i]->entries > 0 && !ml_is_skipped(ml, ml->ledgers[i]))
            return (struct ox_pos){ml->ledgers[i]->where.id, ml->ledgers[i]->entries - 1};
    return (struct ox_pos){ox_ml_first(ml).ledger, -1};
}

struct ox_pos ox_ml_clamp(const struct ox_mledger *ml, struct ox_pos p)
{
    if (ox_pos_cmp(p, ml->last) >= 0)
        return ml->last;
    size_t i = ml_list_at(ml, p.ledger);
    if (i < ml->ledger_count && ml->ledgers[i]->where.id == p.ledger)
        return (struct ox_pos){p.ledger, OX_MAX(OX_MIN(p.entry, ml->ledgers[i]->entries - 1), -1)};
    if (i == 0)
        return ml->compacted ? p : (struct ox_pos){ox_ml_first(ml).ledger, -1};
    return ox_ml_prev(ml, (struct ox_pos){p.ledger, 0});
}

struct ox_pos ox_ml_closed_before(const struct ox_mledger *ml, uint64_t before_ms)
{
    struct ox_pos upto = OX_POS_EARLIEST;
    for (size_t i = 0; i < ml->ledger_count; i++) {
        const struct ox_ml_ledger *l = ml->ledgers[i];
        if (!l->sealed || !l->closed_ms || l->closed_ms >= before_ms)
            break;
        upto = (struct ox_pos){l->where.id, l->entries - 1};
    }
    return upto;
}
