// ledgers.c - the calls of places and ledgers: handles, fencing in the process, create, open, close, delete, list and ids.
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "ledger/store/store_int.h"

// Shared state of open ledgers.

struct sledger *sledger_find(const struct store *s, int64_t id)
{
    struct ox_map_node *node = ox_map_find_u64(&s->ledgers, (uint64_t)id);
    return node ? CONTAINER_OF(node, struct sledger, node) : NULL;
}

static struct sledger *sledger_new(struct store *s, int64_t id)
{
    struct sledger *sl = ox_malloc(sizeof *sl);
    sl->store = s;
    sl->id = id;
    sl->refs = 1;
    sl->last = sl->encoded = -1;
    sl->extent_epoch = UINT64_MAX;
    ox_list_init(&sl->handles);
    ox_map_put_u64(&s->ledgers, &sl->node, (uint64_t)id);
    sl->mapped = true;
    return sl;
}

static void sledger_unmap(struct sledger *sl)
{
    if (sl->mapped)
        ox_map_remove(&sl->store->ledgers, &sl->node);
    sl->mapped = false;
}

// A delete may have been recorded since the row was looked up: what is read of such a ledger would be taken for damage.
static void sledger_look_again(struct sledger *sl)
{
    struct ox_table_row row = {.id = sl->id};
    bool found;
    if (rows_overlay(sl->store, sl->id, &row, &found) == ROWS_DELETED) {
        sl->deleted = true;
        sledger_unmap(sl);
    }
    ox_table_row_fini(&row);
}

struct sledger *sledger_get(struct store *s, struct ox_table_row *take_row)
{
    struct sledger *sl = sledger_find(s, take_row->id);
    if (sl) {
        sl->refs++;
        return sl;
    }
    sl = sledger_new(s, take_row->id);
    sl->state = take_row->state;
    sl->last = sl->encoded = take_row->last_entry;
    sl->next = sl->last + 1;
    sl->length = sl->encoded_length = take_row->length;
    sl->custom = take_row->custom;
    take_row->custom = (struct ox_kv){0};
    sledger_look_again(sl);
    return sl;
}

void sledger_unref(struct sledger *sl)
{
    OX_ASSERT(sl->refs > 0);
    if (--sl->refs > 0)
        return;
    sledger_unmap(sl);
    ox_kv_fini(&sl->custom);
    ox_free(sl);
}

// Handles see what has happened to their ledger.
static void sledger_publish(struct sledger *sl)
{
    OX_LIST_EACH(&sl->handles, link) {
        struct handle *h = CONTAINER_OF(link, struct handle, link);
        h->base.info.last_entry = sl->last;
        h->base.info.length = sl->length;
        h->base.info.state = sl->state;
    }
}

void ledgers_confirmed(struct sledger *sl, int64_t entry, uint64_t length)
{
    sl->last = entry;
    sl->length = length;
    sledger_publish(sl);
}

static struct handle *handle_new(struct sledger *sl, bool writer)
{
    struct handle *h = ox_malloc(sizeof *h);
    ox_ledger_attach(&h->base, &sl->store->place, writer);
    h->base.info = (struct ox_ledger_info){.id = sl->id, .state = sl->state, .last_entry = sl->last, .length = sl->length};
    ox_kv_copy(&h->base.info.custom, &sl->custom);
    h->sl = sl;
    sl->refs++;
    ox_list_push_back(&sl->handles, &h->link);
    return h;
}

static struct handle *handle_of(struct ox_ledger *l)
{
    return CONTAINER_OF(l, struct handle, base);
}

static void handle_free(struct handle *h)
{
    struct sledger *sl = h->sl;
    ox_list_remove(&sl->handles, &h->link);
    if (sl->writer == h)
        sl->writer = NULL;
    ox_ledger_detach(&h->base);
    ox_free(h);
    sledger_unref(sl);
}

void handle_unpend(struct handle *h)
{
    OX_ASSERT(h->pending > 0);
    if (--h->pending == 0 && h->released)
        handle_free(h);
}

static void ledgers_release(struct ox_ledger *l)
{
    struct handle *h = handle_of(l);
    OX_ASSERT(!h->released);
    h->released = true;
    if (h->pending == 0)
        handle_free(h);
}

// Looking up.

struct finding {
    struct store *store;
    struct ox_op op;
    struct ox_op *user;
    int64_t id;
    struct ox_table_row *row;
    bool *found;
};

static void finding_done(struct ox_op *op)
{
    struct finding *f = CONTAINER_OF(op, struct finding, op);
    enum ox_err err = op->err;
    *f->found = err == OX_OK;
    if (err == OX_E_NO_LEDGER)
        err = OX_OK;
    rows_overlay(f->store, f->id, f->row, f->found);
    ox_op_finish(f->user, err);
    ox_free(f);
}

void ledgers_find(struct store *s, struct ox_op *op, int64_t id, struct ox_table_row *ret, bool *ret_found)
{
    *ret = (struct ox_table_row){.id = id};
    *ret_found = false;
    ox_op_begin(op);
    enum rows_known known = rows_overlay(s, id, ret, ret_found);
    if (known == ROWS_WHOLE || known == ROWS_DELETED || id > s->id_max) {
        ox_op_finish(op, OX_OK);
        return;
    }
    struct finding *f = ox_malloc(sizeof *f);
    *f = (struct finding){.store = s, .user = op, .id = id, .row = ret, .found = ret_found};
    ox_op_init(&f->op, s->loop, finding_done, "find ledger");
    ox_table_find(s->table, &f->op, id, ret);
}

// A create, open or delete under way.
struct request {
    struct store *store;
    struct ox_op op;
    struct ox_op *user;
    struct ox_ledger **ret_ledger;
    int64_t id;
    enum ox_open_mode mode;
    bool check;          // expected is to be found
    struct ox_kv custom; // of a create, or expected
    struct ox_str payload;
    struct ox_table_row row;
    bool found;
    struct sledger *sl;
    struct jrecord record;
};

static struct request *request_new(struct store *s, struct ox_op *user, int64_t id, const struct ox_kv *custom, ox_op_fn found)
{
    struct request *r = ox_malloc(sizeof *r);
    r->store = s;
    s->place.busy++;
    r->user = user;
    r->id = id;
    if (custom)
        ox_kv_copy(&r->custom, custom);
    ox_op_init(&r->op, s->loop, found, "find ledger");
    return r;
}

static void request_finish(struct request *r, enum ox_err err)
{
    struct store *s = r->store;
    ox_kv_fini(&r->custom);
    ox_str_fini(&r->payload);
    ox_table_row_fini(&r->row);
    if (r->sl)
        sledger_unref(r->sl);
    ox_op_finish(r->user, err);
    ox_free(r);
    s->place.busy--;
    store_woken(s);
}

// Why nothing can be written now, or OK.
static enum ox_err ledgers_writable(const struct store *s)
{
    if (s->loop->dead || s->closing)
        return OX_E_SHUTDOWN;
    return s->failed ? OX_E_PLACE_FAILED : OX_OK;
}

// Create.

static void create_recorded(struct jrecord *record, enum ox_err err)
{
    struct request *r = CONTAINER_OF(record, struct request, record);
    struct sledger *sl = r->sl;
    sl->creating = false;
    if (err == OX_OK) {
        struct handle *h = handle_new(sl, true);
        sl->writer = h;
        *r->ret_ledger = &h->base;
    } else {
        sledger_unmap(sl);
        sl->deleted = true;
    }
    request_finish(r, err);
}

static void create_found(struct ox_op *op)
{
    struct request *r = CONTAINER_OF(op, struct request, op);
    enum ox_err err = op->err != OX_OK ? op->err : ledgers_writable(r->store);
    if (err == OX_OK && r->found)
        err = OX_E_LEDGER_EXISTS;
    if (err == OX_OK && r->payload.len + 2 * OX_SEG_BLOCK > store_entry_max(r->store))
        err = OX_E_TOO_BIG;
    if (err != OX_OK) {
        sledger_unmap(r->sl);
        request_finish(r, err);
        return;
    }
    ox_kv_copy(&r->sl->custom, &r->custom);
    r->record = (struct jrecord){
        .type = OX_REC_CREATE,
        .ledger = r->id,
        .entry = -1,
        .payload = ox_buf_static(r->payload.data, r->payload.len),
        .custom = &r->custom,
        .done = create_recorded,
    };
    OX_CRASHPOINT(r->store->loop, "store.create.before_record");
    journal_record(r->store, &r->record);
}

static void ledgers_create(struct ox_place *p, struct ox_ledger_create *op, int64_t id, const struct ox_kv *custom)
{
    struct store *s = store_of(p);
    enum ox_err err = id > 0 && id <= STORE_ID_MAX ? ledgers_writable(s) : OX_E_INVALID;
    if (err == OX_OK && sledger_find(s, id))
        err = OX_E_LEDGER_EXISTS;
    if (err != OX_OK) {
        ox_op_finish(&op->op, err);
        return;
    }
    struct request *r = request_new(s, &op->op, id, custom, create_found);
    ox_custom_encode(&r->payload, &r->custom);
    r->ret_ledger = &op->ledger;
    r->sl = sledger_new(s, id); // from here on the id is taken for others
    r->sl->creating = true;
    ledgers_find(s, &r->op, id, &r->row, &r->found);
}

// Open.

static void open_closed(struct jrecord *record, enum ox_err err)
{
    struct request *r = CONTAINER_OF(record, struct request, record);
    struct sledger *sl = r->sl;
    if (err == OX_OK && sl->deleted)
        err = OX_E_NO_LEDGER;
    if (err == OX_OK) {
        sl->state = OX_LEDGER_CLOSED;
        sledger_publish(sl);
        *r->ret_ledger = &handle_new(sl, false)->base;
    }
    request_finish(r, err);
}

// Fences the writer: what it has handed over already is written in front of the close, nothing later is taken.
static void open_recover(struct request *r)
{
    struct sledger *sl = r->sl;
    enum ox_err err = ledgers_writable(r->store);
    if (err != OX_OK) {
        request_finish(r, err);
        return;
    }
    sl->fenced = true;
    sl->writer = NULL;
    r->record = (struct jrecord){.type = OX_REC_CLOSE, .ledger = r->id, .sl = sl, .done = open_closed};
    OX_CRASHPOINT(r->store->loop, "store.open.fenced");
    journal_record(r->store, &r->record);
}

static void open_decide(struct request *r)
{
    struct sledger *sl = r->sl;
    if (sl->deleted || sl->creating) {
        request_finish(r, OX_E_NO_LEDGER);
    } else if (ox_kv_find(&sl->custom, STORE_DAMAGED_KEY)) {
        request_finish(r, OX_E_CORRUPT);
    } else if (r->check && !ox_kv_contains(&sl->custom, &r->custom)) {
        request_finish(r, OX_E_IDENTITY_MISMATCH);
    } else if (r->mode == OX_OPEN_RECOVER && sl->state != OX_LEDGER_CLOSED) {
        open_recover(r);
    } else {
        *r->ret_ledger = &handle_new(sl, false)->base;
        request_finish(r, OX_OK);
    }
}

static void open_found(struct ox_op *op)
{
    struct request *r = CONTAINER_OF(op, struct request, op);
    enum ox_err err = op->err;
    if (err == OX_OK && r->store->loop->dead)
        err = OX_E_SHUTDOWN;
    if (err == OX_OK && !r->found && !sledger_find(r->store, r->id))
        err = OX_E_NO_LEDGER;
    if (err != OX_OK) {
        request_finish(r, err);
        return;
    }
    r->sl = sledger_get(r->store, &r->row);
    open_decide(r);
}

static void ledgers_open(struct ox_place *p, struct ox_ledger_open *op, int64_t id, enum ox_open_mode mode,
                         const struct ox_kv *expected)
{
    struct store *s = store_of(p);
    if (s->closing || s->loop->dead) {
        ox_op_finish(&op->op, OX_E_SHUTDOWN);
        return;
    }
    struct request *r = request_new(s, &op->op, id, expected, open_found);
    r->ret_ledger = &op->ledger;
    r->mode = mode;
    r->check = expected != NULL;
    struct sledger *sl = sledger_find(s, id);
    if (sl) {
        sl->refs++;
        r->sl = sl;
        open_decide(r);
        return;
    }
    ledgers_find(s, &r->op, id, &r->row, &r->found);
}

// Append.

static enum ox_err append_refused(struct handle *h, uint64_t bytes)
{
    struct sledger *sl = h->sl;
    struct store *s = sl->store;
    if (h->err != OX_OK)
        return h->err;
    if (s->loop->dead || s->closing || h->released)
        return OX_E_SHUTDOWN;
    if (sl->fenced)
        return OX_E_FENCED;
    if (sl->closing || sl->state == OX_LEDGER_CLOSED)
        return OX_E_CLOSED;
    if (s->failed)
        return OX_E_PLACE_FAILED;
    if (bytes > store_entry_max(s))
        return OX_E_TOO_BIG;
    return s->journal.bytes + bytes > s->cfg.inflight_bytes_max && s->journal.bytes > 0 ? OX_E_LIMIT : sl->append_err;
}

static void ledgers_append(struct ox_ledger *l, struct ox_append *a)
{
    struct handle *h = handle_of(l);
    enum ox_err err = append_refused(h, ox_append_bytes(a));
    if (err != OX_OK) {
        h->err = err;
        ox_op_finish(&a->op, err);
        return;
    }
    OX_ASSERT(a->entry == h->sl->next);
    h->sl->next++;
    h->pending++;
    journal_append(h->sl->store, a);
}

void ledgers_append_done(struct ox_append *a, enum ox_err err)
{
    struct handle *h = handle_of(a->ledger);
    if (err != OX_OK && h->err == OX_OK)
        h->err = err;
    ox_op_finish(&a->op, err);
    handle_unpend(h);
}

static void ledgers_read(struct ox_ledger *l, struct ox_read *r)
{
    struct handle *h = handle_of(l);
    struct sledger *sl = h->sl;
    int64_t last = OX_MIN(r->last, sl->last);
    enum ox_err err = sl->store->loop->dead || h->released ? OX_E_SHUTDOWN : OX_OK;
    if (err == OX_OK && sl->deleted)
        err = OX_E_NO_LEDGER;
    if (err == OX_OK && (r->first < 0 || r->first > r->last))
        err = OX_E_INVALID;
    if (err == OX_OK && r->first > last)
        err = OX_E_NO_ENTRY;
    if (err != OX_OK) {
        ox_op_finish(&r->op, err);
        return;
    }
    h->pending++;
    read_start(sl->store, sl, h, r, last);
}

// Close.

struct closing {
    struct jrecord record;
    struct handle *handle;
    struct ox_ledger_close *user;
};

static void close_recorded(struct jrecord *record, enum ox_err err)
{
    struct closing *c = CONTAINER_OF(record, struct closing, record);
    struct sledger *sl = c->handle->sl;
    if (err == OX_OK) {
        sl->state = OX_LEDGER_CLOSED;
        c->user->last_entry = record->entry;
        c->user->length = record->arg;
        if (sl->writer == c->handle)
            sl->writer = NULL;
        sledger_publish(sl);
    } else {
        sl->closing = false;
    }
    ox_op_finish(&c->user->op, err);
    handle_unpend(c->handle);
    ox_free(c);
}

static void ledgers_close(struct ox_ledger *l, struct ox_ledger_close *op)
{
    struct handle *h = handle_of(l);
    struct sledger *sl = h->sl;
    enum ox_err err = sl->fenced ? OX_E_FENCED : ledgers_writable(sl->store);
    if (err == OX_OK && (sl->closing || sl->state == OX_LEDGER_CLOSED))
        err = OX_E_CLOSED;
    if (err != OX_OK) {
        ox_op_finish(&op->op, err);
        return;
    }
    struct closing *c = ox_malloc(sizeof *c);
    sl->closing = true;
    h->pending++;
    c->handle = h;
    c->user = op;
    c->record = (struct jrecord){.type = OX_REC_CLOSE, .ledger = sl->id, .sl = sl, .done = close_recorded};
    OX_CRASHPOINT(sl->store->loop, "store.close.before_record");
    journal_record(sl->store, &c->record);
}

// Delete.

static void delete_recorded(struct jrecord *record, enum ox_err err)
{
    struct request *r = CONTAINER_OF(record, struct request, record);
    struct store *s = r->store;
    if (err == OX_OK) {
        struct sledger *sl = sledger_find(s, r->id);
        if (sl) {
            sl->deleted = true;
            sledger_unmap(sl);
        }
        OX_CRASHPOINT(s->loop, "store.delete.recorded");
    }
    request_finish(r, err);
}

static void delete_decide(struct request *r, const struct ox_kv *custom)
{
    enum ox_err err = ledgers_writable(r->store);
    struct sledger *sl = sledger_find(r->store, r->id);
    if (err == OX_OK && !ox_kv_contains(custom, &r->custom))
        err = OX_E_IDENTITY_MISMATCH;
    if (err == OX_OK && sl && sl->writer)
        err = OX_E_BUSY;
    if (err != OX_OK) {
        request_finish(r, err);
        return;
    }
    r->record = (struct jrecord){.type = OX_REC_DELETE, .ledger = r->id, .entry = -1, .done = delete_recorded};
    journal_record(r->store, &r->record);
}

static void delete_found(struct ox_op *op)
{
    struct request *r = CONTAINER_OF(op, struct request, op);
    struct sledger *sl = sledger_find(r->store, r->id);
    if (op->err != OX_OK)
        request_finish(r, op->err);
    else if (!r->found || (sl && sl->creating))
        request_finish(r, OX_E_NO_LEDGER);
    else
        delete_decide(r, &r->row.custom);
}

static void ledgers_delete(struct ox_place *p, struct ox_ledger_delete *op, int64_t id, const struct ox_kv *expected)
{
    struct store *s = store_of(p);
    enum ox_err err = ledgers_writable(s);
    if (err != OX_OK) {
        ox_op_finish(&op->op, err);
        return;
    }
    struct request *r = request_new(s, &op->op, id, expected, delete_found);
    ledgers_find(s, &r->op, id, &r->row, &r->found);
}

// List.

struct listing {
    struct store *store;
    struct ox_op op;
    struct ox_ledger_list *user;
    int64_t from; // ids up to here are done
    struct ox_table_row *rows;
    size_t count;
};

static void listing_page(struct ox_op *op);

static int listing_cmp(const void *a, const void *b)
{
    const struct ox_ledger_info *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int listing_row_cmp(const void *a, const void *b)
{
    const struct ox_table_row *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

// Adds a ledger as it is now, if it is.
static void listing_add(struct listing *g, struct ox_table_row *row, bool found)
{
    struct ox_ledger_list *l = g->user;
    rows_overlay(g->store, row->id, row, &found);
    if (!found)
        return;
    l->items = ox_realloc(l->items, l->count + 1, sizeof *l->items);
    l->items[l->count++] = (struct ox_ledger_info){row->id, row->state, row->last_entry, row->length, row->custom};
    row->custom = (struct ox_kv){0};
}

// Ledgers that only a tail knows, up to the last id that the table's page speaks for.
static void listing_add_new(struct listing *g, const struct tail *t, int64_t to)
{
    for (struct ox_map_node *node = ox_map_first(&t->rows); node; node = ox_map_next(node)) {
        const struct ox_table_row *change = &CONTAINER_OF(node, struct tail_row, node)->row;
        struct ox_table_row row = {.id = change->id};
        if (!change->created || change->id <= g->from || change->id > to)
            continue;
        if (g->count > 0 && bsearch(&row, g->rows, g->count, sizeof row, listing_row_cmp))
            continue;
        listing_add(g, &row, false);
        ox_table_row_fini(&row);
    }
}

static void listing_ask(struct listing *g)
{
    ox_op_init(&g->op, g->store->loop, listing_page, "list ledgers");
    ox_table_list(g->store->table, &g->op, g->from, g->user->max, &g->rows, &g->count);
}

static void listing_finish(struct listing *g, enum ox_err err)
{
    struct ox_ledger_list *l = g->user;
    struct store *s = g->store;
    if (l->count > 0)
        qsort(l->items, l->count, sizeof *l->items, listing_cmp);
    while (l->count > l->max)
        ox_ledger_info_fini(&l->items[--l->count]);
    if (err != OX_OK)
        ox_ledger_list_fini(l);
    ox_op_finish(&l->op, err);
    ox_free(g);
    s->place.busy--;
    store_woken(s);
}

static void listing_page(struct ox_op *op)
{
    struct listing *g = CONTAINER_OF(op, struct listing, op);
    bool more = op->err == OX_OK && g->count == g->user->max && g->count > 0;
    int64_t to = more ? g->rows[g->count - 1].id : INT64_MAX;
    if (op->err == OX_OK) {
        OX_LIST_EACH(&g->store->tails, link)
            listing_add_new(g, CONTAINER_OF(link, struct tail, link), to);
    }
    for (size_t i = 0; i < g->count; i++) {
        if (op->err == OX_OK)
            listing_add(g, &g->rows[i], true);
        ox_table_row_fini(&g->rows[i]);
    }
    ox_free(g->rows);
    g->from = to;
    if (more && g->user->count < g->user->max)
        listing_ask(g); // a full page of which some are deleted is not the end
    else
        listing_finish(g, op->err);
}

static void ledgers_list(struct ox_place *p, struct ox_ledger_list *op)
{
    struct store *s = store_of(p);
    if (s->closing || s->loop->dead) {
        ox_op_finish(&op->op, OX_E_SHUTDOWN);
        return;
    }
    struct listing *g = ox_malloc(sizeof *g);
    g->store = s;
    g->user = op;
    g->from = OX_MAX(op->after, -1);
    s->place.busy++;
    listing_ask(g);
}

// Ids: given from memory up to a ceiling that the journal holds; a restart begins above the ceiling.

struct id_asking {
    struct jrecord record;
    struct store *store;
    struct ox_op *user; // a push; NULL: for those who wait for ids
};

static void ids_ask(struct store *s, struct ox_op *user, int64_t ceiling);

static void ids_serve(struct store *s, enum ox_err err)
{
    while (!ox_list_empty(&s->id_waiters) && (err != OX_OK || s->id_next <= s->id_ceiling)) {
        struct ox_op *op = CONTAINER_OF(ox_list_pop_front(&s->id_waiters), struct ox_op, link);
        struct ox_next_id *next = CONTAINER_OF(op, struct ox_next_id, op);
        if (err == OX_OK)
            next->id = s->id_next++;
        ox_op_finish(op, err);
    }
    if (!ox_list_empty(&s->id_waiters))
        ids_ask(s, NULL, s->id_next + STORE_IDS_AHEAD);
}

static void ids_recorded(struct jrecord *record, enum ox_err err)
{
    struct id_asking *a = CONTAINER_OF(record, struct id_asking, record);
    struct store *s = a->store;
    if (a->user)
        ox_op_finish(a->user, err);
    else
        s->id_asking = false;
    bool waiters = !a->user;
    ox_free(a);
    s->place.busy--;
    if (waiters)
        ids_serve(s, err);
    store_woken(s);
}

static void ids_ask(struct store *s, struct ox_op *user, int64_t ceiling)
{
    struct id_asking *a = ox_malloc(sizeof *a);
    a->store = s;
    a->user = user;
    a->record = (struct jrecord){.type = OX_REC_ID, .entry = ceiling, .done = ids_recorded};
    if (!user)
        s->id_asking = true;
    s->place.busy++;
    journal_record(s, &a->record);
}

static void ledgers_next_id(struct ox_place *p, struct ox_next_id *op)
{
    struct store *s = store_of(p);
    enum ox_err err = ledgers_writable(s);
    if (err != OX_OK) {
        ox_op_finish(&op->op, err);
    } else if (ox_list_empty(&s->id_waiters) && s->id_next <= s->id_ceiling) {
        op->id = s->id_next++;
        ox_op_finish(&op->op, OX_OK);
    } else {
        ox_list_push_back(&s->id_waiters, &op->op.link);
        if (!s->id_asking)
            ids_ask(s, NULL, s->id_next + STORE_IDS_AHEAD);
    }
}

static void ledgers_push_id(struct ox_place *p, struct ox_op *op, int64_t above)
{
    struct store *s = store_of(p);
    enum ox_err err = ledgers_writable(s);
    if (err == OX_OK && above > STORE_ID_MAX)
        err = OX_E_INVALID;
    if (err == OX_OK)
        s->id_next = OX_MAX(s->id_next, above + 1);
    if (err != OX_OK || above <= s->id_ceiling)
        ox_op_finish(op, err);
    else
        ids_ask(s, op, above);
}

const struct ox_place_body store_body = {
    .create = ledgers_create,
    .open = ledgers_open,
    .append = ledgers_append,
    .read = ledgers_read,
    .close_ledger = ledgers_close,
    .release = ledgers_release,
    .del = ledgers_delete,
    .list = ledgers_list,
    .next_id = ledgers_next_id,
    .push_id = ledgers_push_id,
    .capacity = store_capacity,
    .close = store_close_place,
};
