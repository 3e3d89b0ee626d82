// compaction_read.c - reading a compacted ledger by the positions that its entries had in the log.
#include <string.h>

#include "base/mem.h"
#include "broker/compaction_int.h"

struct compacted_job {
    struct ox_seq seq;
    struct compacted_ledger *ledger;
    struct ox_ml_read *result;
    struct ox_ledger_open open;
    struct ox_read read;
    bool last;         // the last entry is wanted, whatever its position
    int64_t low, high; // the first entry wanted is one of low..high
};

void compacted_owner(const struct ox_topic *t, struct ox_kv *ret)
{
    ox_kv_set(ret, "application", "pulsar");
    ox_kv_set(ret, "component", "compacted-ledger");
    ox_kv_set(ret, "pulsar/compactedTopic", t->name.full);
}

struct compacted_ledger *compacted_new(struct ox_compaction *c, struct ox_location where, struct ox_pos upto)
{
    struct compacted_ledger *l = ox_malloc(sizeof *l);
    l->compaction = c;
    l->where = where;
    l->upto = upto;
    return l;
}

static void compacted_free(struct compacted_ledger *l)
{
    const struct ox_mledger *ml = l->compaction->topic->ml;
    if (l->handle)
        ox_ledger_release(l->handle);
    if (l->discard && ml)
        ox_ml_compacted_discard(ml, ox_router_name(ml->factory->router, l->where.place), l->where.id);
    ox_free(l);
}

void compacted_retire(struct compacted_ledger *l, bool discard)
{
    l->retired = true;
    l->discard = discard;
    if (l->uses == 0)
        compacted_free(l);
}

// ---- a read ----------------------------------------------------------------------------------------------------------

static ox_step compacted_begin(struct ox_seq *s);
static ox_step compacted_opened(struct ox_seq *s);
static ox_step compacted_search(struct ox_seq *s);
static ox_step compacted_probed(struct ox_seq *s);
static ox_step compacted_fetch(struct ox_seq *s);
static ox_step compacted_fetched(struct ox_seq *s);

static struct compacted_job *job_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct compacted_job, seq);
}

static void compacted_done(struct ox_seq *s, enum ox_err err)
{
    struct compacted_job *j = job_of(s);
    struct ox_op *op = &j->result->op;
    struct compacted_ledger *l = j->ledger;
    if (--l->uses == 0 && l->retired)
        compacted_free(l);
    ox_free(j);
    ox_op_finish(op, err);
}

static void compacted_start(struct ox_compaction *c, struct ox_ml_read *r, bool last)
{
    struct compacted_job *j = ox_malloc(sizeof *j);
    OX_ASSERT(c->ledger && r->entries_max > 0);
    ox_op_begin(&r->op);
    r->entries = NULL;
    r->count = 0;
    j->ledger = c->ledger;
    j->result = r;
    j->last = last;
    c->ledger->uses++;
    ox_seq_start(&j->seq, c->topic->shard->loop, "compaction.read", compacted_begin, compacted_done);
}

void compacted_read(struct ox_cursor_view *v, struct ox_ml_read *r)
{
    compacted_start(CONTAINER_OF(v, struct ox_compaction, view), r, false);
}

void compacted_read_last(struct ox_compaction *c, struct ox_ml_read *r)
{
    compacted_start(c, r, true);
}

static ox_step compacted_begin(struct ox_seq *s)
{
    struct compacted_job *j = job_of(s);
    struct ox_topic *t = j->ledger->compaction->topic;
    if (j->ledger->handle)
        return OX_GOTO(s, compacted_search);
    struct ox_kv owner = {0};
    compacted_owner(t, &owner);
    ox_seq_bind(s, &j->open.op, "compaction.open");
    ox_router_open(t->shard->router, &j->open, j->ledger->where, OX_OPEN_READ_ONLY, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(s, compacted_opened);
}

static ox_step compacted_opened(struct ox_seq *s)
{
    struct compacted_job *j = job_of(s);
    struct compacted_ledger *l = j->ledger;
    if (s->err != OX_OK) {
        ox_warn(l->compaction->topic->shard->log, "compaction.open.failed", "topic=%s ledger=%lld error=%s",
                l->compaction->topic->name.full, (long long)l->where.id, ox_err_name(s->err));
        return OX_FINISH(s, s->err);
    }
    if (l->handle)
        ox_ledger_release(j->open.ledger); // another read was quicker
    else
        l->handle = j->open.ledger;
    return OX_GOTO(s, compacted_search);
}

static int64_t compacted_count(const struct compacted_ledger *l)
{
    return l->handle->info.last_entry + 1;
}

// Readers go on where they were: that saves the search.
static ox_step compacted_search(struct ox_seq *s)
{
    struct compacted_job *j = job_of(s);
    const struct compacted_ledger *l = j->ledger;
    j->low = 0;
    j->high = compacted_count(l);
    for (size_t i = 0; i < COMPACTION_HINTS; i++)
        if (l->hints[i].number > 0 && ox_pos_equal(l->hints[i].from, j->result->from))
            j->low = j->high = l->hints[i].number;
    if (j->result->from.ledger < 0)
        j->high = 0;
    if (j->last)
        j->low = j->high = OX_MAX(compacted_count(l), 1) - 1;
    s->err = OX_OK;
    return OX_GOTO(s, compacted_fetch);
}

static ox_step compacted_ask(struct ox_seq *s, int64_t first, int64_t last, uint64_t bytes, ox_step_fn then, const char *name)
{
    struct compacted_job *j = job_of(s);
    j->read = (struct ox_read){.first = first, .last = last, .bytes_max = bytes};
    ox_seq_bind(s, &j->read.op, "compaction.read.entries");
    ox_ledger_read(j->ledger->handle, &j->read);
    return ox_seq_goto(s, then, name, OX_STEP_WAIT);
}

static ox_step compacted_probed(struct ox_seq *s)
{
    struct compacted_job *j = job_of(s);
    struct ox_pos pos;
    struct ox_buf entry;
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    int64_t mid = j->read.first;
    enum ox_err err = compaction_stored_parse(j->read.entries[0], &pos, &entry);
    ox_read_fini(&j->read);
    if (err != OX_OK)
        return OX_FINISH(s, err);
    if (ox_pos_cmp(pos, j->result->from) < 0)
        j->low = mid + 1;
    else
        j->high = mid;
    return OX_GOTO(s, compacted_fetch);
}

// Nothing of it is left: the log is read from behind the horizon on.
static ox_step compacted_end(struct ox_seq *s)
{
    struct compacted_job *j = job_of(s);
    struct ox_pos upto = j->ledger->upto;
    j->result->next = (struct ox_pos){upto.ledger, upto.entry + 1};
    return OX_FINISH(s, OX_OK);
}

static ox_step compacted_fetch(struct ox_seq *s)
{
    struct compacted_job *j = job_of(s);
    int64_t count = compacted_count(j->ledger);
    if (j->low < j->high) {
        int64_t mid = j->low + (j->high - j->low) / 2;
        return compacted_ask(s, mid, mid, 1, compacted_probed, "compacted_probed");
    }
    if (j->low >= count)
        return compacted_end(s);
    int64_t last = OX_MIN(count, j->low + (int64_t)j->result->entries_max) - 1;
    return compacted_ask(s, j->low, last, j->result->bytes_max, compacted_fetched, "compacted_fetched");
}

static enum ox_err compacted_take(struct compacted_job *j)
{
    struct ox_ml_read *r = j->result;
    enum ox_err err = OX_OK;
    r->entries = ox_calloc(j->read.count, sizeof *r->entries);
    for (size_t i = 0; i < j->read.count && err == OX_OK; i++) {
        struct ox_entry *e = &r->entries[r->count];
        struct ox_buf entry;
        err = compaction_stored_parse(j->read.entries[i], &e->pos, &entry);
        if (err != OX_OK)
            break;
        e->data = ox_buf_ref(entry);
        r->count++;
    }
    if (err != OX_OK)
        ox_ml_read_fini(r);
    return err;
}

static ox_step compacted_fetched(struct ox_seq *s)
{
    struct compacted_job *j = job_of(s);
    struct compacted_ledger *l = j->ledger;
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    int64_t number = j->read.first + (int64_t)j->read.count;
    enum ox_err err = compacted_take(j);
    ox_read_fini(&j->read);
    if (err != OX_OK) {
        ox_error(l->compaction->topic->shard->log, "compaction.read.corrupt", "topic=%s ledger=%lld entry=%lld",
                 l->compaction->topic->name.full, (long long)l->where.id, (long long)j->read.first);
        return OX_FINISH(s, err);
    }
    if (number >= compacted_count(l))
        return compacted_end(s);
    struct ox_pos last = j->result->entries[j->result->count - 1].pos;
    j->result->next = (struct ox_pos){last.ledger, last.entry + 1};
    l->hints[l->hint_at % COMPACTION_HINTS].from = j->result->next;
    l->hints[l->hint_at++ % COMPACTION_HINTS].number = number;
    return OX_FINISH(s, OX_OK);
}
