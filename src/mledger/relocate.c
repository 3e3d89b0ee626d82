// relocate.c - changes of where a sealed ledger is: another primary, a copy less. By the log itself if it is open here, else on its node.
//
// All of it happens under the log's claim: the look at a new primary and the record that names it, and likewise the record that forgets a copy and the copy's
// delete. So no delete that is on its way hits what has just become primary.
#include <string.h>

#include "mledger/deletes.h"
#include "mledger/offline.h"
#include "mledger/places.h"

// Both jobs: which one it is says `relocate`.
struct move {
    struct ox_seq seq;
    struct ox_op *op;
    struct ox_ml_factory *factory;
    const struct ox_ml_relocate *relocate; // or NULL
    struct ox_ml_drop_copy *drop;          // or NULL
    const char *log;
    int64_t ledger;
    struct ml_claim claim;
    struct ox_ledger_open open; // a look at `to`
    int64_t there;              // how many entries it holds
    struct ox_mledger *ml;      // while it is open here
    struct ml_edit edit;
    struct ml_node_edit node_edit;
    char *path;
    struct ox_record *record; // of a node
    struct ox_copies copies;  // of the ledger, as they are after the change
    uint64_t now_ms;
    enum ox_err refused; // by what the record says
    // drop
    struct ox_kv owner;
    struct ml_intent intent; // to delete the copy: there before the record forgets it
    struct ox_ledger_delete del;
    struct ox_meta_del forget;
    enum ox_err err; // of the change of the record
};

static ox_step move_claimed(struct ox_seq *s);
static ox_step move_looked(struct ox_seq *s);
static ox_step move_change(struct ox_seq *s);
static ox_step move_recorded(struct ox_seq *s);
static ox_step move_written(struct ox_seq *s);
static ox_step drop_intend(struct ox_seq *s);
static ox_step drop_intended(struct ox_seq *s);
static ox_step drop_changed(struct ox_seq *s);
static ox_step drop_deleted(struct ox_seq *s);
static ox_step drop_over(struct ox_seq *s);

static struct move *move_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct move, seq);
}

// The log may be closed again.
static void move_let_log_go(struct move *m)
{
    struct ox_mledger *ml = m->ml;
    m->ml = NULL;
    if (!ml)
        return;
    ml_impl(ml)->moves--;
    ml_poke(ml);
}

static void move_done(struct ox_seq *s, enum ox_err err)
{
    struct move *m = move_of(s);
    struct ox_op *op = m->op;
    ml_claim_release(&m->claim);
    move_let_log_go(m);
    ox_record_free(m->record);
    ox_copies_fini(&m->copies);
    ox_kv_fini(&m->owner);
    ox_free(m->path);
    ox_free(m);
    ox_op_finish(op, err);
}

static ox_step move_start(struct ox_seq *s)
{
    struct move *m = move_of(s);
    ox_seq_bind(s, &m->claim.op, "mledger.move.claim");
    ml_claim(m->factory, &m->claim, m->log);
    return OX_WAIT(s, move_claimed);
}

static struct move *move_new(struct ox_ml_factory *f, struct ox_op *op, const char *log, int64_t ledger)
{
    struct move *m = ox_malloc(sizeof *m);
    ox_op_begin(op);
    m->op = op;
    m->factory = f;
    m->log = log;
    m->ledger = ledger;
    m->now_ms = ox_wall_ms(f->loop);
    return m;
}

void ox_ml_relocate(struct ox_ml_factory *f, struct ox_ml_relocate *r)
{
    struct move *m = move_new(f, &r->op, r->log, r->ledger);
    OX_ASSERT(r->from.id == r->ledger && r->to.id == r->ledger);
    m->relocate = r;
    ox_seq_start(&m->seq, f->loop, "mledger.relocate", move_start, move_done);
}

void ox_ml_drop_copy(struct ox_ml_factory *f, struct ox_ml_drop_copy *d)
{
    struct move *m = move_new(f, &d->op, d->log, d->ledger);
    m->drop = d;
    d->left = OX_OK;
    ox_seq_start(&m->seq, f->loop, "mledger.drop_copy", move_start, move_done);
}

// ---- the change, on a record -----------------------------------------------------------------------------------------

static bool move_is_at(const struct move *m, const struct ox_record_ledger *l, const char *place, int64_t physical)
{
    return l->physical == physical && strcmp(l->place ? l->place : ox_router_name(m->factory->router, 0), place) == 0;
}

static const char *move_name(const struct move *m, struct ox_location where)
{
    return ox_router_name(m->factory->router, where.place);
}

// With `unsure`, what is as it should be is our own work, whose outcome was not told.
static enum ox_err move_relocate(struct move *m, struct ox_record *draft, const struct ox_record_ledger *l, bool unsure,
                                 bool *ret_nothing)
{
    const struct ox_ml_relocate *r = m->relocate;
    const char *from = move_name(m, r->from), *to = move_name(m, r->to);
    bool there = move_is_at(m, l, to, r->to.physical);
    if (unsure && there && ox_copies_find(&m->copies, from, r->from.physical)) {
        *ret_nothing = true;
        return OX_OK;
    }
    if (there || !move_is_at(m, l, from, r->from.physical) || l->entries == 0 || l->entries > m->there)
        return OX_E_CONFLICT;
    ox_copies_remove(&m->copies, to, r->to.physical);
    if (m->copies.count >= OX_COPIES_MAX)
        return OX_E_LIMIT;
    if (!ox_copies_find(&m->copies, from, r->from.physical))
        ox_copies_add(&m->copies, from, r->from.physical, m->now_ms);
    ox_record_stamp(draft, r->to, to);
    ox_record_set_copies(draft, m->ledger, &m->copies);
    if (r->digest)
        ox_record_set_ledger_property(draft, m->ledger, OX_STAMP_DIGEST, r->digest);
    return OX_OK;
}

static enum ox_err move_drop(struct move *m, struct ox_record *draft, const struct ox_record_ledger *l, bool unsure,
                             bool *ret_nothing)
{
    const struct ox_ml_drop_copy *d = m->drop;
    if (move_is_at(m, l, d->place, d->physical))
        return OX_E_CONFLICT;
    if (!ox_copies_remove(&m->copies, d->place, d->physical)) {
        *ret_nothing = unsure;
        return unsure ? OX_OK : OX_E_NOT_FOUND;
    }
    ox_record_set_copies(draft, m->ledger, &m->copies);
    return OX_OK;
}

static enum ox_err move_apply(struct move *m, struct ox_record *draft, bool unsure, bool *ret_nothing)
{
    size_t i = ox_record_at(draft, m->ledger);
    if (i == ox_record_count(draft))
        return OX_E_NOT_FOUND;
    struct ox_record_ledger l = ox_record_get(draft, i);
    enum ox_err err = l.physical < 0 ? OX_E_CORRUPT : ox_copies_parse(&m->copies, l.copies);
    if (err != OX_OK)
        return err;
    return m->relocate ? move_relocate(m, draft, &l, unsure, ret_nothing) : move_drop(m, draft, &l, unsure, ret_nothing);
}

// ---- in a log that is open here --------------------------------------------------------------------------------------

// A record that refuses the change is written as it is.
static void move_edit(struct ml_edit *e, struct ox_record *draft)
{
    struct move *m = CONTAINER_OF(e, struct move, edit);
    bool nothing = false;
    m->refused = move_apply(m, draft, false, &nothing);
}

static ox_step move_here(struct ox_seq *s, struct ox_mledger *ml)
{
    struct move *m = move_of(s);
    m->ml = ml;
    ml_impl(ml)->moves++;
    m->edit.apply = move_edit;
    ox_seq_bind(s, &m->edit.op, "mledger.move.record");
    ml_edit_start(ml, &m->edit);
    return OX_WAIT(s, move_recorded);
}

// The log's list as the record has it now.
static void move_take(struct move *m)
{
    size_t i = ml_list_at(m->ml, m->ledger);
    if (i == m->ml->ledger_count || m->ml->ledgers[i]->where.id != m->ledger)
        return;
    struct ox_ml_ledger *l = m->ml->ledgers[i];
    if (m->relocate)
        l = ml_list_relocate(m->ml, l, m->relocate->to);
    ox_copies_fini(&l->copies);
    l->copies = m->copies;
    m->copies = (struct ox_copies){0};
}

// The record's part is over.
static ox_step move_changed(struct ox_seq *s, enum ox_err err)
{
    struct move *m = move_of(s);
    m->err = err;
    move_let_log_go(m);
    return m->drop ? OX_GOTO(s, drop_changed) : OX_FINISH(s, err);
}

static ox_step move_recorded(struct ox_seq *s)
{
    struct move *m = move_of(s);
    if (s->err != OX_OK || m->refused != OX_OK)
        return move_changed(s, s->err != OX_OK ? s->err : m->refused);
    OX_CRASHPOINT(s->loop, "relocate.after_record");
    move_take(m);
    return move_changed(s, OX_OK);
}

// ---- on the node of one that is not ----------------------------------------------------------------------------------

static enum ox_err move_node_edit(struct ml_node_edit *e, struct ox_buf value, struct ox_buf *ret_value)
{
    struct move *m = CONTAINER_OF(e, struct move, node_edit);
    struct ox_ml_factory *f = m->factory;
    enum ox_err err = ox_record_decode(m->record, value);
    if (err == OX_OK)
        err = move_apply(m, m->record, e->unsure, &e->nothing);
    if (err == OX_OK && !e->nothing)
        *ret_value = ox_record_encode(m->record, f->settings.guarded_records, ox_router_name(f->router, 0));
    return err;
}

static ox_step move_away(struct ox_seq *s)
{
    struct move *m = move_of(s);
    m->record = ox_record_new();
    m->path = ox_asprintf("/managed-ledgers/%s", m->log);
    m->node_edit.edit = move_node_edit;
    ox_seq_bind(s, &m->node_edit.op, "mledger.move.node");
    ml_node_edit_start(m->factory, &m->node_edit, m->path);
    return OX_WAIT(s, move_written);
}

static ox_step move_written(struct ox_seq *s)
{
    if (s->err == OX_OK)
        OX_CRASHPOINT(s->loop, "relocate.after_node");
    return move_changed(s, s->err);
}

static ox_step move_change(struct ox_seq *s)
{
    struct move *m = move_of(s);
    struct ox_mledger *ml = NULL;
    enum ml_presence presence = ml_presence(m->factory, m->log, &ml);
    if (presence == ML_BETWEEN)
        return move_changed(s, OX_E_BUSY);
    return presence == ML_HERE ? move_here(s, ml) : OX_GOTO(s, move_away);
}

// ---- first, a look ---------------------------------------------------------------------------------------------------

// No record ever says that a ledger is where it isn't, whatever the caller has seen some time ago.
static ox_step move_look(struct ox_seq *s)
{
    struct move *m = move_of(s);
    struct ox_kv owner = {0};
    ox_ml_owner(m->factory, m->log, NULL, &owner);
    ox_seq_bind(s, &m->open.op, "mledger.move.look");
    ox_router_open(m->factory->router, &m->open, m->relocate->to, OX_OPEN_READ_ONLY, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(s, move_looked);
}

static ox_step move_looked(struct ox_seq *s)
{
    struct move *m = move_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    const struct ox_ledger_info *info = &m->open.ledger->info;
    m->there = info->state == OX_LEDGER_CLOSED ? info->last_entry + 1 : 0;
    ox_ledger_release(m->open.ledger);
    return OX_GOTO(s, move_change);
}

// A location other than the bootstrap place's must not be written before the instance stamps its ledgers: whoever reads such a record elsewhere would look there.
static ox_step move_claimed(struct ox_seq *s)
{
    struct move *m = move_of(s);
    struct ox_mledger *ml = NULL;
    if (!m->factory->settings.stamps) {
        ox_error(m->factory->log, "mledger.move.no_stamps", "log=%s ledger=%lld hint=" OX_LOG_Q, m->log,
                 (long long)m->ledger, "no second place was ever registered: nothing can be elsewhere");
        return OX_FINISH(s, OX_E_CONFLICT);
    }
    if (ml_presence(m->factory, m->log, &ml) == ML_BETWEEN)
        return OX_FINISH(s, OX_E_BUSY);
    return m->relocate ? OX_GOTO(s, move_look) : OX_GOTO(s, drop_intend);
}

// ---- a copy leaves its place -----------------------------------------------------------------------------------------

// Before the record forgets the copy somebody else must know of it: no crash, and no place that is away, leaves it behind.
static ox_step drop_intend(struct ox_seq *s)
{
    struct move *m = move_of(s);
    ox_ml_owner(m->factory, m->log, NULL, &m->owner);
    ox_seq_bind(s, &m->intent.op, "mledger.drop.intent");
    ml_intent_write(m->factory, &m->intent, m->drop->place, m->ledger, m->drop->physical, &m->owner);
    return OX_WAIT(s, drop_intended);
}

static ox_step drop_intended(struct ox_seq *s)
{
    return s->err == OX_OK ? OX_GOTO(s, move_change) : OX_FINISH(s, s->err);
}

static ox_step drop_forget(struct ox_seq *s)
{
    struct move *m = move_of(s);
    ox_seq_bind(s, &m->forget.op, "mledger.drop.forget");
    ml_intent_forget(m->factory, &m->forget, m->drop->place, m->drop->physical, &m->owner);
    return OX_WAIT(s, drop_over);
}

// Whatever the record still names is not deleted: the intent is void. (Where that is not certain it stays: whoever carries it out looks at the node.)
static ox_step drop_changed(struct ox_seq *s)
{
    struct move *m = move_of(s);
    if (m->err == OX_E_CONFLICT || m->err == OX_E_BUSY) {
        return drop_forget(s);
    }
    if (m->err != OX_OK)
        return OX_FINISH(s, m->err);
    OX_CRASHPOINT(s->loop, "cleanup.after_drop");
    struct ox_location where = {.id = m->ledger, .physical = m->drop->physical};
    if (ox_router_find(m->factory->router, m->drop->place, &where.place) != OX_OK)
        where.place = UINT32_MAX; // what is asked of it answers NO_PLACE
    ox_seq_bind(s, &m->del.op, "mledger.drop.delete");
    ox_router_delete(m->factory->router, &m->del, where, &m->owner);
    return OX_WAIT(s, drop_deleted);
}

static ox_step drop_deleted(struct ox_seq *s)
{
    struct move *m = move_of(s);
    if (s->err != OX_OK && s->err != OX_E_NO_LEDGER) {
        m->drop->left = s->err;
        return OX_FINISH(s, OX_OK);
    }
    return drop_forget(s);
}

// If the intent could not be taken away: whoever carries it out finds nothing, or what is named.
static ox_step drop_over(struct ox_seq *s)
{
    return OX_FINISH(s, move_of(s)->err);
}
