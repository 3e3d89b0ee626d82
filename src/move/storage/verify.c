// verify.c - reads every ledger that was moved to (or is kept in) a place and compares it with the digest on record.
#include <string.h>

#include "move/storage/data_int.h"

#define VERIFY_BAD 1000u // ledgers listed

struct verify {
    struct ox_storage *st;
    struct ox_storage_call *call;
    struct storage_data *d;
    struct ox_seq seq;
    uint32_t place; // asked for
    struct ox_ml_walk walk;
    size_t at, copy; // item of the walk; which of its locations: 0 the primary, n the nth copy
    struct ox_location where;
    struct ox_ledger_open open;
    struct ox_ledger *ledger;
    struct data_scan scan;
    uint64_t ledgers, entries, bytes, bad_count, gone;
    json_t *bad;
    int64_t doubt_entry; // where reading the present one failed, -1: as a whole
    const char *doubt;   // why, static
    struct ox_ml_named named;
};

static ox_step verify_walk(struct ox_seq *q);
static ox_step verify_walked(struct ox_seq *q);
static ox_step verify_item(struct ox_seq *q);
static ox_step verify_opened(struct ox_seq *q);
static ox_step verify_scanned(struct ox_seq *q);
static ox_step verify_looked(struct ox_seq *q);

static struct verify *verify_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct verify, seq);
}

static bool verify_goes_on(void *ctx)
{
    const struct ox_storage *st = ((struct verify *)ctx)->st;
    return !st->stopping && !st->p.loop->dead;
}

static void verify_done(struct ox_seq *q, enum ox_err err)
{
    struct verify *v = verify_of(q);
    if (err == OX_OK)
        storage_call_answer(v->st, v->call,
                            json_pack("{s:I, s:I, s:I, s:I, s:O, s:I}", "ledgers", (json_int_t)v->ledgers, "entries",
                                      (json_int_t)v->entries, "bytes", (json_int_t)v->bytes, "gone",
                                      (json_int_t)v->gone, "bad", v->bad, "badCount", (json_int_t)v->bad_count));
    else
        storage_call_fail(v->st, v->call, err == OX_E_CANCELED ? OX_E_SHUTDOWN : err,
                          "verification has stopped: %s; start it again", ox_err_text(err));
    data_pace_stop(v->d);
    ox_ml_walk_end(&v->walk);
    json_decref(v->bad);
    ox_free(v);
}

void ox_storage_verify(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    uint32_t index = 0;
    if (!storage_call_begin(st, c))
        return;
    if (ox_router_find(st->p.router, name, &index) != OX_OK) {
        storage_call_fail(st, c, OX_E_NOT_FOUND, "no bookie cluster %s is registered", name);
        return;
    }
    struct verify *v = ox_malloc(sizeof *v);
    v->st = st;
    v->call = c;
    v->d = data_get(st);
    v->place = index;
    v->bad = json_array();
    data_pace_start(v->d);
    ox_ml_walk_begin(st->factory, &v->walk, false);
    ox_seq_start(&v->seq, st->p.loop, "storage.verify", verify_walk, verify_done);
}

static ox_step verify_walk(struct ox_seq *q)
{
    struct verify *v = verify_of(q);
    if (!verify_goes_on(v))
        return OX_FINISH(q, OX_E_SHUTDOWN);
    v->at = v->copy = 0;
    ox_seq_bind(q, &v->walk.op, "storage.verify.walk");
    ox_ml_walk_next(&v->walk);
    return OX_WAIT(q, verify_walked);
}

static ox_step verify_walked(struct ox_seq *q)
{
    struct verify *v = verify_of(q);
    return q->err == OX_OK && v->walk.log ? OX_GOTO(q, verify_item) : OX_FINISH(q, q->err);
}

// The next location to be read, if this portion has one.
static bool verify_next(struct verify *v)
{
    const char *place = ox_router_name(v->st->p.router, v->place);
    for (; v->at < v->walk.count; v->at++, v->copy = 0) {
        const struct ox_ml_found *f = &v->walk.found[v->at];
        while (f->kind == OX_ML_KIND_DATA && f->digest && v->copy <= f->copy_count) {
            size_t i = v->copy++;
            bool here = strcmp(i == 0 ? f->place : f->copies[i - 1].place, place) == 0;
            v->where = (struct ox_location){v->place, f->where.id,
                                            i == 0 ? f->where.physical : f->copies[here ? i - 1 : 0].physical};
            if (here)
                return true;
        }
    }
    return false;
}

static ox_step verify_item(struct ox_seq *q)
{
    struct verify *v = verify_of(q);
    if (!verify_next(v))
        return OX_GOTO(q, verify_walk);
    struct ox_kv owner = {0};
    ox_ml_owner(v->st->factory, v->walk.log, NULL, &owner);
    ox_seq_bind(q, &v->open.op, "storage.verify.open");
    ox_router_open(v->st->p.router, &v->open, v->where, OX_OPEN_READ_ONLY, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(q, verify_opened);
}

static void verify_bad(struct verify *v, int64_t entry, const char *reason)
{
    ox_error(v->st->p.log, "storage.verify.bad", "log=\"%s\" ledger=%lld physical=%lld entry=%lld reason=\"%s\"",
             v->walk.log, (long long)v->where.id, (long long)v->where.physical, (long long)entry, reason);
    if (v->bad_count++ < VERIFY_BAD)
        json_array_append_new(v->bad, json_pack("{s:s, s:I, s:I, s:I, s:s}", "topic", v->walk.log, "ledger",
                                                (json_int_t)v->where.id, "physical", (json_int_t)v->where.physical,
                                                "entry", (json_int_t)entry, "reason", reason));
}

// It may have been trimmed or cleaned up since the walk saw it: both take it out of its record first. So the record is asked once more.
static ox_step verify_doubt(struct verify *v, int64_t entry, const char *reason)
{
    v->doubt_entry = entry;
    v->doubt = reason;
    v->named = (struct ox_ml_named){.log = v->walk.log, .where = v->where};
    ox_seq_bind(&v->seq, &v->named.op, "storage.verify.look");
    ox_ml_named(v->st->factory, &v->named);
    return OX_WAIT(&v->seq, verify_looked);
}

static ox_step verify_looked(struct ox_seq *q)
{
    struct verify *v = verify_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    if (v->named.named)
        verify_bad(v, v->doubt_entry, v->doubt);
    else
        v->gone++;
    return OX_GOTO(q, verify_item);
}

// These say nothing about a ledger: the place as a whole can't be read now.
static bool verify_is_cut_off(enum ox_err err)
{
    return err == OX_E_PLACE_CLOSED || err == OX_E_PLACE_CHANGED || err == OX_E_NO_PLACE || err == OX_E_PLACE_BLOCKED ||
           err == OX_E_SHUTDOWN;
}

static ox_step verify_opened(struct ox_seq *q)
{
    struct verify *v = verify_of(q);
    if (verify_is_cut_off(q->err))
        return OX_FINISH(q, q->err);
    v->ledgers++;
    if (q->err != OX_OK)
        return verify_doubt(v, -1, ox_err_text(q->err));
    v->ledger = v->open.ledger;
    v->scan = (struct data_scan){.d = v->d,
                                 .ledger = v->ledger,
                                 .count = v->ledger->info.last_entry + 1,
                                 .throttle = &v->d->verify,
                                 .go_on = verify_goes_on,
                                 .ctx = v};
    ox_seq_bind(q, &v->scan.op, "storage.verify.scan");
    data_scan_start(&v->scan);
    return OX_WAIT(q, verify_scanned);
}

static ox_step verify_scanned(struct ox_seq *q)
{
    struct verify *v = verify_of(q);
    enum ox_err err = q->err;
    ox_ledger_release(v->ledger);
    if (err == OX_E_CANCELED || err == OX_E_SHUTDOWN)
        return OX_FINISH(q, err);
    v->entries += (uint64_t)OX_MAX(v->scan.entry, INT64_C(0));
    v->bytes += v->scan.bytes;
    if (err != OX_OK)
        return verify_doubt(v, v->scan.entry, ox_err_text(err));
    if (strcmp(v->scan.digest, v->walk.found[v->at].digest) != 0)
        return verify_doubt(v, -1, "its entries are not those that the record's digest was computed of");
    return OX_GOTO(q, verify_item);
}
