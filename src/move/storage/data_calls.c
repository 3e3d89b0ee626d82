// data_calls.c - the short orders about data: move it, how fast, what failed, close a place.
#include "move/storage/data_int.h"
#include "move/storage/records.h"

// ---- move-data

struct move_call {
    struct ox_storage *st;
    struct ox_storage_call *call;
    struct data_walk walk;
    uint32_t target;
    uint64_t ledgers, bytes;
};

static void move_visit(void *ctx, const struct ox_ml_walk *w)
{
    struct move_call *m = ctx;
    for (size_t i = 0; i < w->count; i++) {
        const struct ox_ml_found *f = &w->found[i];
        if (f->kind == OX_ML_KIND_CURSOR || (f->known && f->where.place == storage_home(m->st, w->log)))
            continue;
        m->ledgers++;
        m->bytes += f->bytes;
    }
}

// A switch that is over goes on with its data stage; a paused one does when it is resumed.
static void move_order(struct ox_storage *st)
{
    st->move_data = true;
    if (st->state != STORAGE_RUNNING && st->state != STORAGE_PAUSED) {
        st->state = STORAGE_RUNNING;
        st->finished_ms = 0;
    }
    storage_header_save(st);
    storage_orchestrate(st);
}

static void move_counted(struct ox_op *op)
{
    struct move_call *m = CONTAINER_OF(op, struct move_call, walk.op);
    struct ox_storage *st = m->st;
    const char *id = st->directive.switch_id;
    if (op->err != OX_OK) {
        storage_call_fail(st, m->call, op->err, "the ledgers can't be counted: %s; try again", ox_err_text(op->err));
    } else if (st->p.router->active != m->target) {
        storage_call_fail(st, m->call, OX_E_CONFLICT, "another place than %s has become active meanwhile: look at the status",
                          ox_router_name(st->p.router, m->target));
    } else if (!id && m->ledgers > 0) {
        storage_call_fail(
            st, m->call,
            OX_E_CONFLICT, "%llu ledgers lie elsewhere, but no switch was made yet that they could follow: switch to another bookie cluster first",
            (unsigned long long)m->ledgers);
    } else {
        if (id) // without a switch there is nothing to follow, and nowhere to note it
            move_order(st);
        storage_call_answer(st, m->call,
                            json_pack("{s:s?, s:I, s:I}", "switchId", id, "ledgers", (json_int_t)m->ledgers, "bytes",
                                      (json_int_t)m->bytes));
    }
    ox_free(m);
}

void ox_storage_move_data(struct ox_storage *st, struct ox_storage_call *c, const char *target)
{
    if (!storage_call_begin(st, c))
        return;
    const char *active = storage_active(st);
    uint32_t index = 0;
    if (ox_router_find(st->p.router, target, &index) != OX_OK) {
        storage_call_fail(st, c, OX_E_NOT_FOUND, "no bookie cluster %s is registered", target);
        return;
    }
    if (index != st->p.router->active) {
        storage_call_fail(st, c, OX_E_CONFLICT, "%s is not active, %s is: data moves to the active one, switch to %s first",
                          target, active, target);
        return;
    }
    struct move_call *m = ox_malloc(sizeof *m);
    m->st = st;
    m->call = c;
    m->target = index;
    m->walk = (struct data_walk){.st = st, .visit = move_visit, .ctx = m};
    ox_op_init(&m->walk.op, st->p.loop, move_counted, "storage.move_data");
    data_walk_start(&m->walk, false);
}

// ---- throttle

void ox_storage_throttle(struct ox_storage *st, struct ox_storage_call *c, int64_t bytes_per_s, int64_t ops_per_s)
{
    if (!storage_call_begin(st, c))
        return;
    if (bytes_per_s >= 0)
        st->bytes_per_s = (uint64_t)bytes_per_s;
    if (ops_per_s >= 0)
        st->ops_per_s = (uint64_t)ops_per_s;
    data_throttle_apply(data_get(st));
    storage_header_save(st);
    storage_call_answer(st, c,
                        json_pack("{s:I, s:I}", "bytesPerSecond", (json_int_t)st->bytes_per_s, "opsPerSecond",
                                  (json_int_t)st->ops_per_s));
}

// ---- failures

void ox_storage_failures(struct ox_storage *st, struct ox_storage_call *c)
{
    if (!storage_call_begin(st, c))
        return;
    json_t *list = json_array();
    OX_LIST_EACH(&st->failures, link)
        json_array_append_new(list, storage_failure_json(CONTAINER_OF(link, struct storage_failure, link)));
    storage_call_answer(st, c, list);
}

// ---- closing a place

#define HOLDERS_SAID 10u

struct close_call {
    struct ox_storage *st;
    struct ox_storage_call *call;
    struct ox_op op;
    char *name;
    struct ox_str holders;
    size_t said;
};

static void close_visit(void *ctx, const struct ox_ledger *l)
{
    struct close_call *k = ctx;
    const char *log = ox_kv_find(&l->info.custom, "pulsar/managed-ledger");
    if (k->said++ < HOLDERS_SAID)
        ox_str_addf(&k->holders, "%s%s ledger %lld", k->said > 1 ? ", " : "", log ? log : "(no topic)",
                    (long long)l->info.id);
}

static void close_free(struct close_call *k)
{
    ox_str_fini(&k->holders);
    ox_free(k->name);
    ox_free(k);
}

static void close_done(struct ox_op *op)
{
    struct close_call *k = CONTAINER_OF(op, struct close_call, op);
    if (op->err == OX_OK)
        storage_call_answer(k->st, k->call, NULL);
    else
        storage_call_fail(k->st, k->call, op->err, "closing %s: %s", k->name, ox_err_text(op->err));
    close_free(k);
}

void ox_storage_close_client(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    uint32_t index = 0;
    if (!storage_call_begin(st, c))
        return;
    if (ox_router_find(st->p.router, name, &index) != OX_OK) {
        storage_call_fail(st, c, OX_E_NOT_FOUND, "no bookie cluster %s is registered", name);
        return;
    }
    if (index == st->p.router->active) {
        storage_call_fail(st, c, OX_E_CONFLICT, "%s is active: switch to another one first", name);
        return;
    }
    if (storage_target_user(st, index)) {
        storage_call_fail(st, c, OX_E_CONFLICT, "%s is the target of %s: set another one, or remove it", name,
                          storage_target_user(st, index));
        return;
    }
    if (!ox_router_place(st->p.router, index)) {
        storage_call_answer(st, c, NULL); // closed already
        return;
    }
    struct close_call *k = ox_malloc(sizeof *k);
    k->st = st;
    k->call = c;
    k->name = ox_strdup(name);
    size_t holders = ox_router_holders(st->p.router, index, close_visit, k);
    if (holders > 0) {
        storage_call_fail(
            st, c, OX_E_CONFLICT,
            "%s is in use by %zu open ledgers: %s%s; a handle that nobody reads through closes after a minute", name,
            holders, ox_str_get(&k->holders), holders > HOLDERS_SAID ? ", ..." : "");
        close_free(k);
        return;
    }
    ox_op_init(&k->op, st->p.loop, close_done, "storage.close_client");
    ox_router_detach(st->p.router, &k->op, index, OX_E_PLACE_CLOSED);
}
