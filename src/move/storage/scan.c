// scan.c - reads all entries of a ledger in order, in large ranges, several on the fly, and computes their digest beside the sink's work.
#include <string.h>

#include "move/storage/data_int.h"

static ox_step scan_look(struct ox_seq *q);
static ox_step scan_got(struct ox_seq *q);
static ox_step scan_drain(struct ox_seq *q);

static struct data_scan *scan_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct data_scan, seq);
}

static void scan_done(struct ox_seq *q, enum ox_err err)
{
    struct data_scan *s = scan_of(q);
    if (err == OX_OK) {
        s->entry = s->count;
        ox_digest_text(&s->hash, s->digest);
    }
    ox_digest_fini(&s->hash);
    ox_op_finish(&s->op, err);
}

void data_scan_start(struct data_scan *s)
{
    ox_op_begin(&s->op);
    s->entry = -1;
    s->bytes = s->flying = 0;
    s->next = 0;
    s->ranges = 0;
    s->err = OX_OK;
    s->single = s->parked = false;
    s->where[0] = s->digest[0] = 0;
    ox_list_init(&s->hashing);
    ox_digest_init(&s->hash);
    ox_seq_start(&s->seq, s->d->st->p.loop, "storage.scan", scan_look, scan_done);
}

static void scan_unpark(struct data_scan *s)
{
    if (ox_link_linked(&s->link))
        ox_list_remove(&s->d->parked, &s->link);
    s->parked = false;
    ox_seq_resume(&s->seq, OX_OK);
}

void data_scan_fail(struct data_scan *s, enum ox_err err)
{
    if (s->err == OX_OK)
        s->err = err;
    if (s->parked)
        scan_unpark(s);
}

// ---- ranges

void data_range_unref(struct data_range *r)
{
    struct data_scan *s = r->scan;
    struct storage_data *d = s->d;
    if (--r->refs > 0)
        return;
    for (size_t i = 0; i < r->count; i++)
        ox_buf_unref(&r->entries[i]);
    ox_free(r->entries);
    ox_budget_give(&d->flying, r->charged);
    s->flying -= r->charged;
    s->ranges--;
    ox_free(r);
    if (s->parked)
        scan_unpark(s);
    OX_LIST_EACH(&d->parked, link)
        scan_unpark(CONTAINER_OF(link, struct data_scan, link));
}

static void range_digest(struct data_range *r)
{
    for (size_t i = 0; i < r->count; i++)
        ox_digest_add_entry(&r->scan->hash, r->first + (int64_t)i, r->entries[i].data, r->entries[i].len);
}

static void range_run(struct ox_job *job)
{
    range_digest(CONTAINER_OF(job, struct data_range, job));
}

static void scan_hash_next(struct data_scan *s);

static void range_hashed(struct ox_op *op)
{
    struct data_range *r = CONTAINER_OF(op, struct data_range, job.op);
    struct data_scan *s = r->scan;
    ox_list_remove(&s->hashing, &r->link);
    if (op->err != OX_OK)
        data_scan_fail(s, op->err);
    scan_hash_next(s);
    data_range_unref(r);
}

static void scan_hash_next(struct data_scan *s)
{
    struct ox_link *first = ox_list_first(&s->hashing);
    if (!first)
        return;
    struct data_range *r = CONTAINER_OF(first, struct data_range, link);
    ox_op_init(&r->job.op, s->seq.loop, range_hashed, "storage.digest");
    r->job.run = range_run;
    r->job.lane = OX_LANE_POOL;
    ox_job_submit(s->seq.loop, &r->job);
}

// Small ranges aren't worth a trip to the pool, large ones would hold up the loop.
static void scan_hash(struct data_scan *s, struct data_range *r)
{
    bool idle = ox_list_empty(&s->hashing);
    if (idle && r->bytes <= DATA_HASH_INLINE) {
        range_digest(r);
        data_range_unref(r);
        return;
    }
    ox_list_push_back(&s->hashing, &r->link);
    if (idle)
        scan_hash_next(s);
}

// ---- reading

// How much of the ledger is asked for next.
static void scan_plan(struct data_scan *s)
{
    uint64_t length = s->ledger->info.length, left = length > s->bytes ? length - s->bytes : 0;
    s->asked = OX_MIN(throttle_bytes_slice(s->throttle, DATA_RANGE_BYTES), OX_MAX(left, UINT64_C(1)));
    s->asked_ops = OX_MIN(throttle_ops_slice(s->throttle, DATA_RANGE_ENTRIES), (uint64_t)(s->count - s->next));
    if (s->single)
        s->asked_ops = 1;
}

static uint64_t scan_cost(uint64_t bytes, uint64_t entries)
{
    return bytes + entries * DATA_ENTRY_COST;
}

static ox_step scan_park(struct ox_seq *q, bool budget)
{
    struct data_scan *s = scan_of(q);
    s->parked = true;
    if (budget)
        ox_list_push_back(&s->d->parked, &s->link);
    return OX_WAIT(q, scan_look);
}

static ox_step scan_look(struct ox_seq *q)
{
    struct data_scan *s = scan_of(q);
    if (s->err == OX_OK && !s->go_on(s->ctx))
        s->err = q->loop->dead ? OX_E_SHUTDOWN : OX_E_CANCELED;
    if (s->err != OX_OK || s->next >= s->count)
        return OX_GOTO(q, scan_drain);
    scan_plan(s);
    uint64_t cost = scan_cost(s->asked, s->asked_ops);
    if (s->ranges > 0 && s->flying + cost > DATA_SCAN_BYTES)
        return scan_park(q, false);
    if (!ox_budget_take(&s->d->flying, cost))
        return scan_park(q, true);
    if (!throttle_take(s->throttle, s->asked, s->asked_ops)) {
        ox_budget_give(&s->d->flying, cost);
        ox_seq_bind(q, &s->wait.op, "storage.throttle");
        throttle_wait(s->throttle, &s->wait);
        return OX_WAIT(q, scan_look);
    }
    s->read.first = s->next;
    s->read.last = s->next + (int64_t)s->asked_ops - 1;
    s->read.bytes_max = s->asked;
    ox_seq_bind(q, &s->read.op, "storage.read");
    ox_ledger_read(s->ledger, &s->read);
    return OX_WAIT(q, scan_got);
}

// A range with a damaged entry may be refused as a whole: then one by one, to find which.
static ox_step scan_read_failed(struct data_scan *s, enum ox_err err)
{
    throttle_settle(s->throttle, s->asked, s->asked_ops, 0, 0);
    ox_budget_give(&s->d->flying, scan_cost(s->asked, s->asked_ops));
    if (err == OX_E_CORRUPT && s->asked_ops > 1) {
        s->single = true;
        return OX_GOTO(&s->seq, scan_look);
    }
    if (s->err == OX_OK) {
        s->err = err;
        s->entry = s->next;
        memcpy(s->where, s->read.where, sizeof s->where);
    }
    return OX_GOTO(&s->seq, scan_drain);
}

static struct data_range *scan_range(struct data_scan *s)
{
    struct data_range *r = ox_malloc(sizeof *r);
    *r = (struct data_range){.scan = s, .first = s->next, .entries = s->read.entries, .count = s->read.count, .refs = 1};
    for (size_t i = 0; i < r->count; i++)
        r->bytes += r->entries[i].len;
    uint64_t cost = scan_cost(r->bytes, r->count);
    ox_budget_give(&s->d->flying, scan_cost(s->asked, s->asked_ops));
    s->d->flying.used += cost; // it is there, whatever the limit says
    r->charged = cost;
    s->flying += cost;
    s->ranges++;
    s->read.entries = NULL;
    s->read.count = 0;
    throttle_settle(s->throttle, s->asked, s->asked_ops, r->bytes, r->count);
    return r;
}

static ox_step scan_got(struct ox_seq *q)
{
    struct data_scan *s = scan_of(q);
    if (q->err != OX_OK || s->read.count == 0)
        return scan_read_failed(s, q->err == OX_OK ? OX_E_NO_ENTRY : q->err);
    struct data_range *r = scan_range(s);
    s->next += (int64_t)r->count;
    s->bytes += r->bytes;
    if (s->sink && s->err == OX_OK) {
        r->refs++;
        s->sink(s, r);
    }
    scan_hash(s, r);
    return OX_GOTO(q, scan_look);
}

static ox_step scan_drain(struct ox_seq *q)
{
    struct data_scan *s = scan_of(q);
    if (s->ranges > 0) {
        s->parked = true;
        return OX_WAIT(q, scan_drain);
    }
    return OX_FINISH(q, s->err);
}
