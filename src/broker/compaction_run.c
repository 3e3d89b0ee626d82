// compaction_run.c - one run: the last message of each key is noted, then a new ledger is written, then the cursor names it.
//
// What a crash leaves: before the record names the new ledger, an orphan; before the cursor does, an entry on record that the next load removes, with the ledger;
// after that, the old ledger, which goes the same way.
#include <stdio.h>

#include "base/mem.h"
#include "broker/compaction_int.h"
#include "mledger/copies.h"
#include "wire/compress.h"

#define RUN_ENTRIES 100u
#define RUN_BYTES (256u * 1024) // read at once
#define RUN_HEAVY (8u * 1024)   // a payload that takes so long to (de)compress that a helper thread does it
#define RUN_PLAIN_MAX (16u << 20)

// A compression, or the reverse.
struct compaction_pack {
    struct ox_job job;
    struct compaction_run *run;
    bool unpack;
    uint32_t compression;
    struct ox_buf in, out;
    size_t plain_len;
    enum ox_err err;
};

// An append in flight.
struct run_append {
    struct ox_append append;
    struct compaction_run *run;
    uint8_t head[COMPACTION_HEAD_BYTES_MAX];
    struct ox_buf entry;
};

static ox_step run_begin(struct ox_seq *s);
static ox_step run_cursor(struct ox_seq *s);
static ox_step run_pass(struct ox_seq *s);
static ox_step run_read(struct ox_seq *s);
static ox_step run_got(struct ox_seq *s);
static ox_step run_entry(struct ox_seq *s);
static ox_step run_unpacked(struct ox_seq *s);
static ox_step run_packed(struct ox_seq *s);
static ox_step run_written(struct ox_seq *s);
static ox_step run_pass_over(struct ox_seq *s);
static ox_step run_created(struct ox_seq *s);
static ox_step run_noted(struct ox_seq *s);
static ox_step run_close(struct ox_seq *s);
static ox_step run_closed(struct ox_seq *s);
static ox_step run_switched(struct ox_seq *s);
static ox_step run_forgotten(struct ox_seq *s);
static ox_step run_undo(struct ox_seq *s);
static ox_step run_undone(struct ox_seq *s);

static ox_step run_note_ledgers(struct compaction_run *run, bool old, bool fresh, ox_step_fn then, const char *name);

static struct compaction_run *run_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct compaction_run, seq);
}

static struct ox_topic *run_topic(const struct compaction_run *run)
{
    return run->compaction->topic;
}

static ox_step run_fail(struct compaction_run *run, enum ox_err err, const char *why)
{
    run->why = run->why ? run->why : why;
    run->write_err = run->write_err ? run->write_err : err;
    return OX_GOTO(&run->seq, run_undo);
}

static void run_done(struct ox_seq *s, enum ox_err err)
{
    struct compaction_run *run = run_of(s);
    OX_ASSERT(run->writing == 0 && !run->pack);
    compaction_entry_fini(&run->entry);
    compaction_keys_fini(&run->keys);
    if (run->handle)
        ox_ledger_release(run->handle);
    compaction_over(run, err);
}

void compaction_run_start(struct compaction_run *run)
{
    struct ox_topic *t = run_topic(run);
    run->started_ns = ox_now_ns(t->shard->loop);
    run->keys.bytes_max = t->shard->config.compaction_keys_bytes;
    topic_pin(t);
    ox_seq_start(&run->seq, t->shard->loop, "compaction", run_begin, run_done);
}

// ---- what is to be done ----------------------------------------------------------------------------------------------

static ox_step run_begin(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    struct ox_mledger *ml = run_topic(run)->ml;
    run->cursor = ox_cursor_find(ml, COMPACTION_CURSOR);
    if (run->cursor)
        return OX_GOTO(s, run_cursor);
    if (run->move)
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &run->open.op, "compaction.cursor");
    ox_cursor_open(ml, &run->open, COMPACTION_CURSOR, true, OX_POS_EARLIEST, NULL);
    return OX_WAIT(s, run_cursor);
}

static bool run_has_nothing_to_do(const struct compaction_run *run)
{
    const struct ox_compaction *c = run->compaction;
    const struct ox_mledger *ml = run_topic(run)->ml;
    if (run->move)
        return !c->ledger || c->ledger->where.place == ox_ml_target(ml->factory, ml->name);
    return ox_ml_count(ml, run->cursor->mark_delete, ml->last) == 0;
}

static ox_step run_cursor(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    if (!run->cursor)
        run->cursor = run->open.cursor;
    if (run->prepare || (!run->move && run_has_nothing_to_do(run)))
        return OX_FINISH(s, OX_OK);
    if (run->move && run_has_nothing_to_do(run)) // what else is on record is not in use
        return run_note_ledgers(run, true, false, run_undone, "run_undone");
    run->end = run->move ? run->compaction->view.upto : run_topic(run)->ml->last;
    run->second = run->move;
    if (!run->move)
        return OX_GOTO(s, run_pass);
    s->err = OX_OK;
    return OX_GOTO(s, run_pass_over);
}

// ---- a pass over everything ------------------------------------------------------------------------------------------

static bool run_reads_compacted(const struct compaction_run *run)
{
    const struct ox_compaction *c = run->compaction;
    return c->ledger && ox_pos_cmp(run->from, c->view.upto) <= 0;
}

static ox_step run_pass(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    run->from = run->compaction->ledger ? (struct ox_pos){-1, 0} : ox_ml_first(run_topic(run)->ml);
    return OX_GOTO(s, run_read);
}

static ox_step run_read(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    struct ox_topic *t = run_topic(run);
    if (t->state != OX_TOPIC_OPEN)
        return run_fail(run, OX_E_CANCELED, "the topic is closing");
    if (ox_pos_cmp(run->from, run->end) > 0)
        return OX_GOTO(s, run_pass_over);
    run->at = 0;
    run->read = (struct ox_ml_read){.from = run->from, .entries_max = RUN_ENTRIES, .bytes_max = RUN_BYTES};
    ox_seq_bind(s, &run->read.op, "compaction.source");
    if (run_reads_compacted(run))
        compacted_read(&run->compaction->view, &run->read);
    else
        ox_mledger_read(t->ml, &run->read);
    return OX_WAIT(s, run_got);
}

static ox_step run_got(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (s->err == OX_E_NO_ENTRY)
        return OX_GOTO(s, run_pass_over); // the rest was lost, and is passed over
    if (s->err != OX_OK)
        return run_fail(run, s->err, "the topic could not be read");
    run->from = run->read.next;
    return OX_GOTO(s, run_entry);
}

static struct ox_pos run_pos(const struct compaction_run *run)
{
    return run->read.entries[run->at].pos;
}

// All entries of a portion have been looked at; what they wrote is waited for, so that memory stays bounded.
static ox_step run_portion_over(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (run->writing > 0) {
        run->waits = true;
        return OX_WAIT(s, run_written);
    }
    return OX_GOTO(s, run_written);
}

static ox_step run_written(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    ox_ml_read_fini(&run->read);
    if (run->write_err)
        return run_fail(run, run->write_err, "the compacted ledger could not be written");
    return OX_GOTO(s, run_read);
}

// ---- an entry --------------------------------------------------------------------------------------------------------

static void pack_work(struct ox_job *job)
{
    struct compaction_pack *p = CONTAINER_OF(job, struct compaction_pack, job);
    if (p->unpack)
        p->err = ox_decompress(p->compression, p->in.data, p->in.len, p->plain_len, RUN_PLAIN_MAX, &p->out);
    else
        p->err = ox_compress(p->compression, p->in.data, p->in.len, &p->out);
}

static struct compaction_pack *pack_new(struct compaction_run *run, bool unpack, struct ox_buf take_in, size_t plain_len)
{
    struct compaction_pack *p = ox_malloc(sizeof *p);
    p->run = run;
    p->unpack = unpack;
    p->compression = run->entry.meta.compression;
    p->in = take_in;
    p->plain_len = plain_len;
    p->job.run = pack_work;
    p->job.lane = OX_LANE_POOL;
    run->pack = p;
    return p;
}

// Big ones are a helper thread's work.
static ox_step pack_start(struct ox_seq *s, struct compaction_pack *p, ox_step_fn then, const char *name)
{
    if (OX_MAX(p->in.len, p->plain_len) < RUN_HEAVY) {
        pack_work(&p->job);
        s->err = OX_OK;
        return ox_seq_goto(s, then, name, OX_STEP_NEXT);
    }
    ox_seq_bind(s, &p->job.op, "compaction.pack");
    ox_job_submit(s->loop, &p->job);
    return ox_seq_goto(s, then, name, OX_STEP_WAIT);
}

// The result, empty if it failed; the caller owns one reference.
static struct ox_buf pack_take(struct compaction_run *run)
{
    struct compaction_pack *p = run->pack;
    struct ox_buf out = p->err == OX_OK ? p->out : ox_buf_empty();
    run->pack = NULL;
    ox_buf_unref(&p->in);
    ox_free(p);
    return out;
}

static ox_step run_entry(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    compaction_entry_fini(&run->entry);
    if (run->at >= run->read.count || ox_pos_cmp(run_pos(run), run->end) > 0)
        return run_portion_over(s);
    if (run->write_err)
        return run_portion_over(s);
    compaction_entry_scan(&run->entry, run->read.entries[run->at].data);
    if (run->move)
        run->entry.kind = COMPACTION_KEEP;
    if (!compaction_entry_is_packed(&run->entry)) {
        compaction_entry_open(&run->entry, ox_buf_empty());
        s->err = OX_OK;
        return OX_GOTO(s, run_unpacked);
    }
    struct compaction_pack *p = pack_new(run, true, ox_buf_ref(run->entry.payload), run->entry.meta.uncompressed_size);
    return pack_start(s, p, run_unpacked, "run_unpacked");
}

static ox_step run_next(struct ox_seq *s)
{
    run_of(s)->at++;
    return OX_GOTO(s, run_entry);
}

// First pass. Where memory is full, the run ends right before the entry: what is behind it waits for another run.
static ox_step run_note(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    struct ox_pos pos = run_pos(run);
    if (compaction_keys_has_room(&run->keys, &run->entry)) {
        compaction_keys_note(&run->keys, &run->entry, pos);
        return run_next(s);
    }
    struct ox_pos before = ox_ml_prev(run_topic(run)->ml, pos);
    if (ox_pos_cmp(before, run->cursor->mark_delete) <= 0) {
        ox_ml_read_fini(&run->read);
        return run_fail(run, OX_E_TOO_BIG, "more different keys than compactionKeyMemoryMB has room for");
    }
    run->end = before;
    return run_portion_over(s);
}

struct run_keeps {
    const struct compaction_run *run;
    struct ox_pos pos;
};

static bool run_keeps(void *ctx, const struct compaction_message *m)
{
    const struct run_keeps *k = ctx;
    bool keyless = run_topic(k->run)->shard->config.compaction_retain_null_key;
    return compaction_keys_has(&k->run->keys, m, k->pos, keyless);
}

static uint32_t run_count_kept(const struct compaction_run *run, struct run_keeps *k, uint32_t *ret_gone)
{
    struct compaction_message m;
    uint32_t kept = 0;
    *ret_gone = 0;
    for (size_t at = 0; compaction_entry_next(&run->entry, &at, &m);) {
        *ret_gone += m.gone;
        kept += !m.gone && run_keeps(k, &m);
    }
    return kept;
}

static void append_done(struct ox_op *op)
{
    struct run_append *a = CONTAINER_OF(op, struct run_append, append.op);
    struct compaction_run *run = a->run;
    if (op->err && !run->write_err)
        run->write_err = op->err;
    ox_buf_unref(&a->entry);
    ox_free(a);
    if (--run->writing == 0 && run->waits) {
        run->waits = false;
        ox_seq_resume(&run->seq, OX_OK);
    }
}

static void run_write(struct compaction_run *run, struct ox_buf take_entry)
{
    struct ox_topic *t = run_topic(run);
    struct run_append *a = ox_malloc(sizeof *a);
    size_t n = compaction_head_put(a->head, run_pos(run), t->name.partition, take_entry.len);
    a->run = run;
    a->entry = take_entry;
    a->append.entry = run->next_entry++;
    a->append.parts[0] = ox_buf_static(a->head, n);
    a->append.parts[1] = a->entry;
    a->append.part_count = 2;
    run->writing++;
    ox_op_init(&a->append.op, t->shard->loop, append_done, "compaction.append");
    ox_ledger_append(run->handle, &a->append);
}

// Second pass.
static ox_step run_keep(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    struct run_keeps k = {run, run_pos(run)};
    struct compaction_entry *e = &run->entry;
    uint32_t gone = 0, kept = e->kind == COMPACTION_KEEP ? e->count : run_count_kept(run, &k, &gone);
    run->removed += e->count - gone - kept;
    if (kept == 0)
        return run_next(s);
    if (e->kind != COMPACTION_BATCH || kept + gone == e->count) {
        run_write(run, ox_buf_ref(e->data));
        return run_next(s);
    }
    struct ox_str plain = compaction_entry_thin(e, run_keeps, &k);
    run->plain_len = plain.len;
    struct ox_buf bytes = ox_buf_copy(plain.data, plain.len);
    ox_str_fini(&plain);
    s->err = OX_OK;
    if (compaction_entry_is_packed(e))
        return pack_start(s, pack_new(run, false, bytes, 0), run_packed, "run_packed");
    run->packed = bytes;
    return OX_GOTO(s, run_packed);
}

static ox_step run_unpacked(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (run->pack)
        compaction_entry_open(&run->entry, pack_take(run));
    if (s->err != OX_OK) {
        run->write_err = s->err;
        return run_portion_over(s);
    }
    return run->second ? OX_GOTO(s, run_keep) : OX_GOTO(s, run_note);
}

// A batch that can't be put together again stays as it is: some of its messages come too often then, none is lost.
static ox_step run_packed(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    bool done = run->pack ? run->pack->err == OX_OK && s->err == OX_OK : true;
    struct ox_buf packed = run->pack ? pack_take(run) : run->packed, entry;
    run->packed = ox_buf_empty();
    if (!done || compaction_entry_rebuild(&run->entry, packed, run->plain_len, &entry) != OX_OK)
        entry = ox_buf_ref(run->entry.data);
    ox_buf_unref(&packed);
    run_write(run, entry);
    return run_next(s);
}

// ---- the new ledger --------------------------------------------------------------------------------------------------

static ox_step run_pass_over(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    const struct ox_mledger *ml = run_topic(run)->ml;
    if (run->second && run->handle)
        return OX_GOTO(s, run_close);
    run->second = true;
    struct ox_kv owner = {0};
    char to[64];
    ox_ml_compacted_owner(ml->factory, ml->name, &owner);
    compacted_owner(run_topic(run), &owner);
    snprintf(to, sizeof to, OX_POS_FMT, OX_POS_ARG(run->end));
    ox_kv_set(&owner, "pulsar/compactedTo", to);
    ox_seq_bind(s, &run->create.op, "compaction.create");
    ox_router_create_in(ml->factory->router, &run->create, ox_ml_target(ml->factory, ml->name), -1, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(s, run_created);
}

// The record's property: the ledger in use, and the one in the making.
static ox_step run_note_ledgers(struct compaction_run *run, bool old, bool fresh, ox_step_fn then, const char *name)
{
    struct ox_topic *t = run_topic(run);
    struct compacted_ledger *l = run->compaction->ledger;
    struct ox_copies all = {0};
    uint64_t now = ox_wall_ms(t->shard->loop);
    if (old && l)
        ox_copies_add(&all, ox_router_name(t->shard->router, l->where.place), l->where.id, now);
    if (fresh)
        ox_copies_add(&all, ox_router_name(t->shard->router, run->where.place), run->where.id, now);
    ox_seq_bind(&run->seq, &run->property.op, "compaction.note");
    ox_ml_compacted_note(t->ml, &run->property, &all);
    ox_copies_fini(&all);
    return ox_seq_goto(&run->seq, then, name, OX_STEP_WAIT);
}

static ox_step run_created(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (s->err != OX_OK)
        return run_fail(run, s->err, "the compacted ledger could not be made");
    OX_CRASHPOINT(s->loop, "compaction.after_create");
    run->handle = run->create.ledger;
    run->where = run->create.location;
    return run_note_ledgers(run, true, true, run_noted, "run_noted");
}

static ox_step run_noted(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (s->err != OX_OK)
        return run_fail(run, s->err, "the compacted ledger could not be noted");
    OX_CRASHPOINT(s->loop, "compaction.after_note");
    return OX_GOTO(s, run_pass);
}

static ox_step run_close(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    ox_seq_bind(s, &run->close.op, "compaction.close");
    ox_ledger_close(run->handle, &run->close);
    return OX_WAIT(s, run_closed);
}

static ox_step run_closed(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (s->err != OX_OK || run->close.last_entry + 1 != run->next_entry)
        return run_fail(run, s->err ? s->err : OX_E_CORRUPT, "the compacted ledger could not be closed");
    OX_CRASHPOINT(s->loop, "compaction.after_close");
    struct ox_kv properties = {0};
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)run->where.id);
    ox_kv_set(&properties, COMPACTION_PROPERTY, number);
    ox_seq_bind(s, &run->ack.op, "compaction.switch");
    ox_cursor_mark_delete_with(run->cursor, &run->ack, run->end, &properties);
    ox_kv_fini(&properties);
    return OX_WAIT(s, run_switched);
}

// Nobody knows which ledger the cursor names now if that failed: the topic is loaded anew and looks.
static ox_step run_switched(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    struct ox_compaction *c = run->compaction;
    if (s->err != OX_OK) {
        run->why = "the cursor could not be stored";
        topic_fail(run_topic(run), s->err);
        return OX_FINISH(s, s->err);
    }
    OX_CRASHPOINT(s->loop, "compaction.after_switch");
    run->old = c->ledger;
    c->ledger = compacted_new(c, run->where, run->cursor->mark_delete);
    c->ledger->handle = run->handle;
    run->handle = NULL;
    c->view.upto = c->ledger->upto;
    c->info.ledger = run->where.id;
    c->info.horizon = c->ledger->upto;
    c->info.entries = run->next_entry;
    c->info.bytes = (int64_t)run->close.length;
    return run_note_ledgers(run, true, false, run_forgotten, "run_forgotten");
}

// The old ledger is on no record any more. If that could not be written, the next load does it.
static ox_step run_forgotten(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    OX_CRASHPOINT(s->loop, "compaction.after_forget");
    if (run->old)
        compacted_retire(run->old, s->err == OX_OK);
    return OX_FINISH(s, OX_OK);
}

// ---- what failed -----------------------------------------------------------------------------------------------------

static ox_step run_undo(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    if (!run->handle)
        return OX_FINISH(s, run->write_err);
    ox_ledger_release(run->handle);
    run->handle = NULL;
    return run_note_ledgers(run, true, false, run_undone, "run_undone");
}

static ox_step run_undone(struct ox_seq *s)
{
    struct compaction_run *run = run_of(s);
    struct ox_topic *t = run_topic(run);
    if (run->move && run->write_err == OX_OK)
        return OX_FINISH(s, s->err);
    if (s->err == OX_OK)
        ox_ml_compacted_discard(t->ml, ox_router_name(t->shard->router, run->where.place), run->where.id);
    return OX_FINISH(s, run->write_err);
}
