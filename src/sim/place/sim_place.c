// sim_place.c - a place in memory: calls as timers that take effect and then answer.
#include "sim/place/sim_place.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"

struct store_entry {
    struct ox_buf bytes;
    bool damaged;
};

// A ledger as it is kept. info.last_entry is the last stored entry.
struct store_ledger {
    struct ox_map_node node;
    struct ox_ledger_info info;
    struct store_entry *entries;
    size_t entry_cap;
    uint32_t fences; // rises with each recovery
    bool damaged;
    struct sim_handle *writer; // open handle of the creator
    uint32_t refs;             // handles
    bool deleted;
};

struct ox_sim_store {
    struct ox_map ledgers;
    int64_t next_id;
    uint32_t number, places;
};

struct sim_handle {
    struct ox_ledger ledger;
    struct store_ledger *kept;
    uint32_t fences;    // of kept when the handle was made
    enum ox_err failed; // an append failed: all later ones do
    int64_t next_entry;
    uint64_t last_effect_ns, last_answer_ns; // calls keep their order
    uint32_t calls;                          // pending
    bool released;
};

struct sim_place {
    struct ox_place place;
    struct ox_sim_store *store;
    struct ox_sim_place_faults *faults;
    uint32_t handles;
    struct ox_op *closing;
};

// A call on its way: first its effect, then its answer.
struct sim_call {
    struct ox_timer timer;
    struct sim_place *place;
    struct sim_handle *handle; // or NULL
    struct ox_op *op;
    enum ox_err (*run)(struct sim_call *c);
    struct ox_sim_place_fault fault;
    bool took_effect;
    enum ox_err err;
    int64_t id;
    struct ox_kv kv;
    bool has_kv;
    enum ox_open_mode mode;
    struct ox_ledger **ret_ledger;
};

// ---- store -----------------------------------------------------------------------------------------------------------

struct ox_sim_store *ox_sim_store_new(uint32_t number)
{
    struct ox_sim_store *store = ox_malloc(sizeof *store);
    store->number = number;
    store->next_id = 1;
    return store;
}

static void store_ledger_unref(struct store_ledger *l)
{
    if (l->refs > 0 || !l->deleted)
        return;
    for (int64_t i = 0; i <= l->info.last_entry; i++)
        ox_buf_unref(&l->entries[i].bytes);
    ox_free(l->entries);
    ox_ledger_info_fini(&l->info);
    ox_free(l);
}

static void store_remove(struct ox_sim_store *store, struct store_ledger *l)
{
    ox_map_remove(&store->ledgers, &l->node);
    l->deleted = true;
    store_ledger_unref(l);
}

void ox_sim_store_free(struct ox_sim_store *store)
{
    OX_ASSERT(store->places == 0);
    OX_MAP_EACH(&store->ledgers, node)
        store_remove(store, CONTAINER_OF(node, struct store_ledger, node));
    ox_free(store);
}

static struct store_ledger *store_find(const struct ox_sim_store *store, int64_t id)
{
    struct ox_map_node *node = ox_map_find_u64(&store->ledgers, (uint64_t)id);
    return node ? CONTAINER_OF(node, struct store_ledger, node) : NULL;
}

static struct store_ledger *store_add(struct ox_sim_store *store, int64_t id, const struct ox_kv *custom)
{
    struct store_ledger *l = ox_malloc(sizeof *l);
    l->info = (struct ox_ledger_info){.id = id, .state = OX_LEDGER_OPEN, .last_entry = -1};
    ox_kv_copy(&l->info.custom, custom);
    ox_map_put_u64(&store->ledgers, &l->node, (uint64_t)id);
    store->next_id = OX_MAX(store->next_id, id + 1);
    return l;
}

static void store_append(struct store_ledger *l, struct ox_buf take_bytes)
{
    size_t at = (size_t)++l->info.last_entry;
    if (at == l->entry_cap) {
        l->entry_cap = l->entry_cap ? 2 * l->entry_cap : 16;
        l->entries = ox_realloc(l->entries, l->entry_cap, sizeof *l->entries);
    }
    l->entries[at] = (struct store_entry){.bytes = take_bytes};
    l->info.length += take_bytes.len;
}

size_t ox_sim_store_count(const struct ox_sim_store *store)
{
    return ox_map_count(&store->ledgers);
}

bool ox_sim_store_has(const struct ox_sim_store *store, int64_t ledger)
{
    return store_find(store, ledger) != NULL;
}

const struct ox_ledger_info *ox_sim_store_find(const struct ox_sim_store *store, int64_t ledger)
{
    const struct store_ledger *l = store_find(store, ledger);
    return l ? &l->info : NULL;
}

bool ox_sim_store_lose(struct ox_sim_store *store, int64_t ledger)
{
    struct store_ledger *l = store_find(store, ledger);
    if (l)
        store_remove(store, l);
    return l != NULL;
}

void ox_sim_store_damage(struct ox_sim_store *store, int64_t ledger, int64_t entry)
{
    struct store_ledger *l = store_find(store, ledger);
    OX_ASSERT(l && entry <= l->info.last_entry);
    if (entry < 0)
        l->damaged = true;
    else
        l->entries[entry].damaged = true;
}

void ox_sim_store_make(struct ox_sim_store *store, int64_t ledger, const struct ox_kv *custom, int64_t entries)
{
    struct store_ledger *l = store_add(store, ledger, custom);
    for (int64_t i = 0; i < entries; i++)
        store_append(l, ox_buf_copy("x", 1));
    l->info.state = OX_LEDGER_CLOSED;
}

// ---- calls -----------------------------------------------------------------------------------------------------------

static enum ox_err sim_append_run(struct sim_call *c);
static enum ox_err sim_read_run(struct sim_call *c);
static enum ox_err sim_list_run(struct sim_call *c);

static struct sim_place *sim_place_of(struct ox_place *p)
{
    return CONTAINER_OF(p, struct sim_place, place);
}

static struct sim_handle *sim_handle_of(struct ox_ledger *l)
{
    return CONTAINER_OF(l, struct sim_handle, ledger);
}

static void sim_handle_free(struct sim_handle *h)
{
    if (!h->released || h->calls > 0)
        return;
    struct sim_place *p = sim_place_of(h->ledger.place);
    if (h->kept->writer == h)
        h->kept->writer = NULL;
    h->kept->refs--;
    store_ledger_unref(h->kept);
    ox_ledger_detach(&h->ledger);
    ox_free(h);
    p->handles--;
}

static void sim_place_end(struct sim_place *p)
{
    if (!p->closing || p->place.busy > 0)
        return;
    OX_ASSERT(p->handles == 0);
    struct ox_op *op = p->closing;
    p->store->places--;
    ox_free(p->place.name);
    ox_free(p->place.uri);
    ox_free(p);
    ox_op_finish(op, OX_OK);
}

// The process died: nothing that was made for the caller reaches it.
static void sim_call_undo(struct sim_call *c)
{
    if (c->run == sim_read_run)
        ox_read_fini(CONTAINER_OF(c->op, struct ox_read, op));
    if (c->run == sim_list_run)
        ox_ledger_list_fini(CONTAINER_OF(c->op, struct ox_ledger_list, op));
    if (!c->ret_ledger || !*c->ret_ledger)
        return;
    ox_ledger_release(*c->ret_ledger);
    *c->ret_ledger = NULL;
}

static void sim_call_answer(struct sim_call *c)
{
    struct sim_place *p = c->place;
    struct sim_handle *h = c->handle;
    if (p->place.loop->dead)
        c->err = OX_E_SHUTDOWN;
    if (c->err != OX_OK)
        sim_call_undo(c);
    ox_op_finish(c->op, c->err);
    ox_kv_fini(&c->kv);
    ox_free(c);
    p->place.busy--;
    if (h && --h->calls == 0)
        sim_handle_free(h);
    sim_place_end(p);
}

static void sim_call_fire(struct ox_timer *t)
{
    struct sim_call *c = CONTAINER_OF(t, struct sim_call, timer);
    if (c->took_effect || c->place->place.loop->dead) {
        sim_call_answer(c);
        return;
    }
    c->took_effect = true;
    enum ox_err err = c->fault.err == OX_OK || c->fault.effect ? c->run(c) : c->fault.err;
    c->err = c->fault.err != OX_OK ? c->fault.err : err;
    if (c->run == sim_append_run && c->err != OX_OK && c->handle->failed == OX_OK)
        c->handle->failed = c->err;
    uint64_t due = t->due_ns + c->fault.after_ns;
    if (c->handle)
        due = c->handle->last_answer_ns = OX_MAX(due, c->handle->last_answer_ns);
    uint64_t now = ox_now_ns(t->loop);
    ox_timer_start(t, due > now ? due - now : 0);
}

static struct sim_call *sim_call_new(struct sim_place *p, struct sim_handle *h, struct ox_op *op,
                                     enum ox_err (*run)(struct sim_call *c))
{
    struct sim_call *c = ox_malloc(sizeof *c);
    c->place = p;
    c->handle = h;
    c->op = op;
    c->run = run;
    c->id = -1;
    p->place.busy++;
    if (h)
        h->calls++;
    ox_timer_init(&c->timer, p->place.loop, sim_call_fire);
    return c;
}

static void sim_call_start(struct sim_call *c, enum ox_sim_place_call call, int64_t ledger, int64_t entry)
{
    struct sim_place *p = c->place;
    if (p->faults && !p->place.loop->dead)
        p->faults->choose(p->faults, call, ledger, entry, &c->fault);
    uint64_t now = ox_now_ns(p->place.loop), due = now + c->fault.before_ns;
    if (c->handle && call != OX_SIM_CALL_READ)
        due = c->handle->last_effect_ns = OX_MAX(due, c->handle->last_effect_ns);
    ox_timer_start(&c->timer, due - now);
}

// ---- bodies ----------------------------------------------------------------------------------------------------------

static struct ox_ledger *sim_handle_new(struct sim_place *p, struct store_ledger *l, bool writer)
{
    struct sim_handle *h = ox_malloc(sizeof *h);
    ox_ledger_attach(&h->ledger, &p->place, writer);
    h->ledger.info = l->info;
    h->ledger.info.custom = (struct ox_kv){0};
    ox_kv_copy(&h->ledger.info.custom, &l->info.custom);
    h->kept = l;
    h->fences = l->fences;
    l->refs++;
    p->handles++;
    if (writer)
        l->writer = h;
    return &h->ledger;
}

static enum ox_err sim_create_run(struct sim_call *c)
{
    if (store_find(c->place->store, c->id))
        return OX_E_LEDGER_EXISTS;
    struct store_ledger *l = store_add(c->place->store, c->id, &c->kv);
    *c->ret_ledger = sim_handle_new(c->place, l, true);
    return OX_OK;
}

static void sim_create(struct ox_place *p, struct ox_ledger_create *op, int64_t id, const struct ox_kv *custom)
{
    struct sim_call *c = sim_call_new(sim_place_of(p), NULL, &op->op, sim_create_run);
    c->id = id;
    c->ret_ledger = &op->ledger;
    ox_kv_copy(&c->kv, custom);
    sim_call_start(c, OX_SIM_CALL_CREATE, id, -1);
}

static enum ox_err sim_open_run(struct sim_call *c)
{
    struct store_ledger *l = store_find(c->place->store, c->id);
    if (!l)
        return OX_E_NO_LEDGER;
    if (c->has_kv && !ox_kv_contains(&l->info.custom, &c->kv))
        return OX_E_IDENTITY_MISMATCH;
    if (l->damaged)
        return OX_E_CORRUPT;
    if (c->mode == OX_OPEN_RECOVER) {
        l->fences += l->info.state != OX_LEDGER_CLOSED;
        l->info.state = OX_LEDGER_CLOSED;
    }
    *c->ret_ledger = sim_handle_new(c->place, l, false);
    return OX_OK;
}

static void sim_open(struct ox_place *p, struct ox_ledger_open *op, int64_t id, enum ox_open_mode mode,
                     const struct ox_kv *expected)
{
    struct sim_call *c = sim_call_new(sim_place_of(p), NULL, &op->op, sim_open_run);
    c->id = id;
    c->mode = mode;
    c->ret_ledger = &op->ledger;
    c->has_kv = expected != NULL;
    if (expected)
        ox_kv_copy(&c->kv, expected);
    sim_call_start(c, OX_SIM_CALL_OPEN, id, -1);
}

// What an append stores; the caller owns it. Garbled: the last byte is another one.
static struct ox_buf sim_append_bytes(const struct ox_append *a, bool garble)
{
    struct ox_buf joined = ox_buf_join(a->parts, a->part_count);
    uint8_t *data = NULL;
    struct ox_buf kept = ox_buf_new(joined.len, &data);
    if (joined.len > 0) {
        memcpy(data, joined.data, joined.len);
        data[joined.len - 1] ^= garble ? 1 : 0;
    }
    ox_buf_unref(&joined);
    return kept;
}

static enum ox_err sim_append_run(struct sim_call *c)
{
    struct ox_append *a = CONTAINER_OF(c->op, struct ox_append, op);
    struct sim_handle *h = c->handle;
    if (h->failed != OX_OK)
        return h->failed;
    if (h->kept->deleted || h->fences != h->kept->fences)
        return OX_E_FENCED;
    if (h->kept->info.state != OX_LEDGER_OPEN)
        return OX_E_CLOSED;
    OX_ASSERT(a->entry == h->kept->info.last_entry + 1);
    store_append(h->kept, sim_append_bytes(a, c->fault.garble));
    if (c->fault.err == OX_OK) {
        h->ledger.info.last_entry = h->kept->info.last_entry;
        h->ledger.info.length = h->kept->info.length;
    }
    return OX_OK;
}

static void sim_append(struct ox_ledger *l, struct ox_append *op)
{
    struct sim_handle *h = sim_handle_of(l);
    OX_ASSERT(h->failed != OX_OK || op->entry == h->next_entry);
    h->next_entry++;
    struct sim_call *c = sim_call_new(sim_place_of(l->place), h, &op->op, sim_append_run);
    c->id = op->entry;
    sim_call_start(c, OX_SIM_CALL_APPEND, l->info.id, op->entry);
}

static enum ox_err sim_read_run(struct sim_call *c)
{
    struct ox_read *r = CONTAINER_OF(c->op, struct ox_read, op);
    struct sim_handle *h = c->handle;
    if (h->kept->deleted)
        return OX_E_NO_LEDGER;
    int64_t last = OX_MIN(r->last, h->ledger.info.last_entry);
    if (r->first > last)
        return OX_E_NO_ENTRY;
    for (int64_t i = r->first; i <= last; i++)
        if (h->kept->entries[i].damaged) {
            snprintf(r->where, sizeof r->where, "ledger %lld entry %lld", (long long)h->kept->info.id, (long long)i);
            return OX_E_CORRUPT;
        }
    r->entries = ox_calloc((size_t)(last - r->first + 1), sizeof *r->entries);
    uint64_t bytes = 0;
    for (int64_t i = r->first; i <= last && (r->count == 0 || bytes < r->bytes_max); i++) {
        r->entries[r->count++] = ox_buf_ref(h->kept->entries[i].bytes);
        bytes += h->kept->entries[i].bytes.len;
    }
    return OX_OK;
}

static void sim_read(struct ox_ledger *l, struct ox_read *op)
{
    struct sim_call *c = sim_call_new(sim_place_of(l->place), sim_handle_of(l), &op->op, sim_read_run);
    sim_call_start(c, OX_SIM_CALL_READ, l->info.id, -1);
}

static enum ox_err sim_close_ledger_run(struct sim_call *c)
{
    struct ox_ledger_close *op = CONTAINER_OF(c->op, struct ox_ledger_close, op);
    struct sim_handle *h = c->handle;
    if (h->kept->deleted || h->fences != h->kept->fences)
        return OX_E_FENCED;
    h->kept->info.state = OX_LEDGER_CLOSED;
    h->ledger.info.last_entry = op->last_entry = h->kept->info.last_entry;
    h->ledger.info.length = op->length = h->kept->info.length;
    return OX_OK;
}

static void sim_close_ledger(struct ox_ledger *l, struct ox_ledger_close *op)
{
    struct sim_call *c = sim_call_new(sim_place_of(l->place), sim_handle_of(l), &op->op, sim_close_ledger_run);
    sim_call_start(c, OX_SIM_CALL_CLOSE, l->info.id, -1);
}

static void sim_release(struct ox_ledger *l)
{
    sim_handle_of(l)->released = true;
    sim_handle_free(sim_handle_of(l));
}

static enum ox_err sim_del_run(struct sim_call *c)
{
    struct store_ledger *l = store_find(c->place->store, c->id);
    if (!l)
        return OX_E_NO_LEDGER;
    if (!ox_kv_contains(&l->info.custom, &c->kv))
        return OX_E_IDENTITY_MISMATCH;
    if (l->writer && !l->writer->released && !l->writer->ledger.place->loop->dead)
        return OX_E_BUSY;
    store_remove(c->place->store, l);
    return OX_OK;
}

static void sim_del(struct ox_place *p, struct ox_ledger_delete *op, int64_t id, const struct ox_kv *expected)
{
    struct sim_call *c = sim_call_new(sim_place_of(p), NULL, &op->op, sim_del_run);
    c->id = id;
    ox_kv_copy(&c->kv, expected);
    sim_call_start(c, OX_SIM_CALL_DELETE, id, -1);
}

static void sim_list_add(struct ox_ledger_list *op, const struct store_ledger *l)
{
    op->items = ox_realloc(op->items, op->count + 1, sizeof *op->items);
    op->items[op->count] = l->info;
    op->items[op->count].custom = (struct ox_kv){0};
    ox_kv_copy(&op->items[op->count].custom, &l->info.custom);
    op->count++;
}

static const struct store_ledger *sim_list_next(const struct ox_sim_store *store, int64_t after)
{
    const struct store_ledger *next = NULL;
    OX_MAP_EACH(&store->ledgers, node) {
        const struct store_ledger *l = CONTAINER_OF(node, struct store_ledger, node);
        if (l->info.id > after && (!next || l->info.id < next->info.id))
            next = l;
    }
    return next;
}

static enum ox_err sim_list_run(struct sim_call *c)
{
    struct ox_ledger_list *op = CONTAINER_OF(c->op, struct ox_ledger_list, op);
    int64_t after = op->after;
    const struct store_ledger *l;
    while (op->count < op->max && (l = sim_list_next(c->place->store, after))) {
        sim_list_add(op, l);
        after = l->info.id;
    }
    return OX_OK;
}

static void sim_list(struct ox_place *p, struct ox_ledger_list *op)
{
    sim_call_start(sim_call_new(sim_place_of(p), NULL, &op->op, sim_list_run), OX_SIM_CALL_LIST, -1, -1);
}

static enum ox_err sim_next_id_run(struct sim_call *c)
{
    CONTAINER_OF(c->op, struct ox_next_id, op)->id = c->place->store->next_id++;
    return OX_OK;
}

static void sim_next_id(struct ox_place *p, struct ox_next_id *op)
{
    sim_call_start(sim_call_new(sim_place_of(p), NULL, &op->op, sim_next_id_run), OX_SIM_CALL_ID, -1, -1);
}

static enum ox_err sim_push_id_run(struct sim_call *c)
{
    c->place->store->next_id = OX_MAX(c->place->store->next_id, c->id + 1);
    return OX_OK;
}

static void sim_push_id(struct ox_place *p, struct ox_op *op, int64_t above)
{
    struct sim_call *c = sim_call_new(sim_place_of(p), NULL, op, sim_push_id_run);
    c->id = above;
    sim_call_start(c, OX_SIM_CALL_ID, -1, -1);
}

static void sim_capacity(struct ox_place *p, struct ox_capacity *ret)
{
    (void)p;
    *ret = (struct ox_capacity){.total = UINT64_C(1) << 40, .available = UINT64_C(1) << 40, .writable = true};
}

static void sim_close(struct ox_place *p, struct ox_op *op)
{
    sim_place_of(p)->closing = op;
    sim_place_end(sim_place_of(p));
}

static const struct ox_place_body sim_place_body = {
    .create = sim_create,
    .open = sim_open,
    .append = sim_append,
    .read = sim_read,
    .close_ledger = sim_close_ledger,
    .release = sim_release,
    .del = sim_del,
    .list = sim_list,
    .next_id = sim_next_id,
    .push_id = sim_push_id,
    .capacity = sim_capacity,
    .close = sim_close,
};

struct ox_place *ox_sim_place_new(struct ox_loop *loop, struct ox_sim_store *store, const char *name,
                                  struct ox_sim_place_faults *faults)
{
    struct sim_place *p = ox_malloc(sizeof *p);
    ox_place_init(&p->place);
    p->place.body = &sim_place_body;
    p->place.loop = loop;
    p->place.name = ox_strdup(name);
    p->place.uri = ox_asprintf("sim:%s", name);
    snprintf(p->place.identity, sizeof p->place.identity, "00000000-0000-4000-8000-%012u", store->number);
    p->store = store;
    p->faults = faults;
    store->places++;
    return &p->place;
}
