// ledgers.c - lists the embedded store's ledgers, or reads the entries of some of them.
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "inspect/inspect_int.h"
#include "ledger/store/store.h"

#define LEDGERS_PAGE 256u
#define LEDGERS_READ_BYTES (UINT64_C(1) << 20)
#define LEDGERS_SEGMENT_BYTES (UINT64_C(1) << 20) // the store begins a segment when it is opened: a small one is enough

struct inspect_ledgers {
    char *dir;
    struct ox_dirlist files;
    struct ox_place *place;
    struct ox_ledger_list list;
    size_t index; // in ids
    struct ox_ledger_open open;
    struct ox_ledger *ledger;
    struct ox_read read;
    int64_t entry; // to be read next
    struct ox_str line;
};

static ox_step ledgers_listed(struct ox_seq *s);
static ox_step ledgers_opened(struct ox_seq *s);
static ox_step ledgers_page(struct ox_seq *s);
static ox_step ledgers_page_got(struct ox_seq *s);
static ox_step ledgers_one(struct ox_seq *s);
static ox_step ledgers_one_opened(struct ox_seq *s);
static ox_step ledgers_read(struct ox_seq *s);
static ox_step ledgers_read_got(struct ox_seq *s);
static ox_step ledgers_close(struct ox_seq *s);
static ox_step ledgers_closed(struct ox_seq *s);

// Looks before it opens: opening makes a store where there is none.
ox_step inspect_ledgers_start(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    i->ledgers = ox_malloc(sizeof *i->ledgers);
    i->ledgers->dir = ox_asprintf("%s/store", i->dir);
    ox_seq_bind(s, &i->op, "inspect.store.list");
    ox_fs_list(i->fs, &i->op, i->ledgers->dir, &i->ledgers->files);
    return OX_WAIT(s, ledgers_listed);
}

static bool ledgers_has_table(const struct ox_dirlist *files)
{
    for (size_t f = 0; f < files->count; f++)
        if (strcmp(files->items[f].name, "table.mdb") == 0)
            return true;
    return false;
}

static ox_step ledgers_listed(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_ledgers *l = i->ledgers;
    if (s->err != OX_OK)
        return inspect_failed(i, s->err, l->dir);
    if (!ledgers_has_table(&l->files)) {
        OX_CLEANUP(ox_free_ptr)
        char *table = ox_asprintf("%s/table.mdb", l->dir);
        return inspect_failed(i, OX_E_NOT_FOUND, table);
    }
    struct ox_store_config config;
    ox_store_config_init(&config, l->dir);
    config.segment_bytes = LEDGERS_SEGMENT_BYTES;
    config.reserve_bytes = 0;
    config.compaction_percent = 0;
    ox_seq_bind(s, &i->op, "inspect.store.open");
    ox_store_open(i->loop, i->fs, &i->op, &config, &l->place);
    return OX_WAIT(s, ledgers_opened);
}

static ox_step ledgers_opened(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (s->err != OX_OK)
        return inspect_failed(i, s->err, i->ledgers->dir);
    i->ledgers->list.after = -1;
    return i->what == INSPECT_LEDGERS ? OX_GOTO(s, ledgers_page) : OX_GOTO(s, ledgers_one);
}

// ---- all ledgers ----------------------------------------------------------------------------------------------------

static ox_step ledgers_page(struct ox_seq *s)
{
    struct inspect_ledgers *l = inspect_of(s)->ledgers;
    l->list.max = LEDGERS_PAGE;
    ox_seq_bind(s, &l->list.op, "inspect.ledgers");
    ox_ledger_list(l->place, &l->list);
    return OX_WAIT(s, ledgers_page_got);
}

static void ledgers_show(struct inspect *i, const struct ox_ledger_info *info)
{
    static const char *const states[] = {
        [OX_LEDGER_OPEN] = "open", [OX_LEDGER_IN_RECOVERY] = "in recovery", [OX_LEDGER_CLOSED] = "closed"};
    struct ox_str *line = &i->ledgers->line;
    ox_str_addf(line, "{\"ledger\":%" PRId64 ",\"state\":\"%s\",\"last_entry\":%" PRId64 ",\"length\":%" PRIu64 ",\"custom\":",
                info->id, states[info->state], info->last_entry, info->length);
    line_kv(line, &info->custom);
    ox_str_adds(line, "}");
    line_emit(i, line);
}

static ox_step ledgers_page_got(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_ledgers *l = i->ledgers;
    if (s->err != OX_OK) {
        inspect_note(i, s->err, l->dir);
        return OX_GOTO(s, ledgers_close);
    }
    bool more = l->list.count == LEDGERS_PAGE;
    for (size_t k = 0; k < l->list.count; k++) {
        ledgers_show(i, &l->list.items[k]);
        l->list.after = l->list.items[k].id;
    }
    ox_ledger_list_fini(&l->list);
    return more ? OX_GOTO(s, ledgers_page) : OX_GOTO(s, ledgers_close);
}

// ---- entries of some ------------------------------------------------------------------------------------------------

static ox_step ledgers_one(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_ledgers *l = i->ledgers;
    if (l->index == i->id_count)
        return OX_GOTO(s, ledgers_close);
    ox_seq_bind(s, &l->open.op, "inspect.ledger.open");
    ox_ledger_open(l->place, &l->open, i->ids[l->index], OX_OPEN_READ_ONLY, NULL);
    return OX_WAIT(s, ledgers_one_opened);
}

// This ledger cannot be read on; the others can.
static ox_step ledgers_skip(struct inspect *i, enum ox_err err)
{
    OX_CLEANUP(ox_free_ptr)
    char *what = ox_asprintf("%s: ledger %" PRId64, i->ledgers->dir, i->ids[i->ledgers->index]);
    inspect_note(i, err, what);
    i->ledgers->index++;
    return OX_GOTO(&i->seq, ledgers_one);
}

static ox_step ledgers_one_opened(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_ledgers *l = i->ledgers;
    if (s->err != OX_OK)
        return ledgers_skip(i, s->err);
    l->ledger = l->open.ledger;
    l->entry = 0;
    return OX_GOTO(s, ledgers_read);
}

static ox_step ledgers_read(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_ledgers *l = i->ledgers;
    if (l->entry > l->ledger->info.last_entry) {
        ox_ledger_release(l->ledger);
        l->ledger = NULL;
        l->index++;
        return OX_GOTO(s, ledgers_one);
    }
    l->read.first = l->entry;
    l->read.last = l->ledger->info.last_entry;
    l->read.bytes_max = LEDGERS_READ_BYTES;
    ox_seq_bind(s, &l->read.op, "inspect.read");
    ox_ledger_read(l->ledger, &l->read);
    return OX_WAIT(s, ledgers_read_got);
}

static void ledgers_show_entry(struct inspect *i, struct ox_buf bytes)
{
    struct ox_str *line = &i->ledgers->line;
    ox_str_addf(line, "{\"ledger\":%" PRId64 ",\"entry\":%" PRId64 ",\"hex\":", i->ledgers->ledger->info.id,
                i->ledgers->entry++);
    line_hex(line, bytes);
    ox_str_adds(line, "}");
    line_emit(i, line);
}

// An entry that cannot be read is a line as well, and the next one is tried.
static ox_step ledgers_damaged(struct inspect *i, enum ox_err err)
{
    struct inspect_ledgers *l = i->ledgers;
    OX_CLEANUP(ox_free_ptr)
    char *what = err == OX_E_CORRUPT ? ox_strdup(l->read.where)
                                     : ox_asprintf("ledger=%" PRId64 " entry=%" PRId64, l->ledger->info.id, l->entry);
    inspect_note(i, err, what);
    ox_str_addf(&l->line, "{\"ledger\":%" PRId64 ",\"entry\":%" PRId64 ",\"error\":\"%s\",\"where\":", l->ledger->info.id,
                l->entry++, ox_err_name(err));
    line_string(&l->line, what);
    ox_str_adds(&l->line, "}");
    line_emit(i, &l->line);
    return OX_GOTO(&i->seq, ledgers_read);
}

static ox_step ledgers_read_got(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_ledgers *l = i->ledgers;
    if (s->err != OX_OK)
        return ledgers_damaged(i, s->err);
    OX_ASSERT(l->read.count > 0);
    for (size_t k = 0; k < l->read.count; k++)
        ledgers_show_entry(i, l->read.entries[k]);
    ox_read_fini(&l->read);
    return OX_GOTO(s, ledgers_read);
}

// ---- the end --------------------------------------------------------------------------------------------------------

static ox_step ledgers_close(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    ox_seq_bind(s, &i->op, "inspect.store.close");
    ox_place_close(i->ledgers->place, &i->op);
    return OX_WAIT(s, ledgers_closed);
}

static ox_step ledgers_closed(struct ox_seq *s)
{
    return inspect_finished(inspect_of(s));
}

void inspect_ledgers_free(struct inspect_ledgers *l)
{
    if (!l)
        return;
    ox_dirlist_fini(&l->files);
    ox_ledger_list_fini(&l->list);
    ox_str_fini(&l->line);
    ox_free(l->dir);
    ox_free(l);
}
