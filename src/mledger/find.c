// find.c - bisection over a log's entries: the last one that is "before" something.
#include "mledger/mledger_int.h"

static ox_step find_probe(struct ox_seq *s);
static ox_step find_read(struct ox_seq *s);

static struct ox_ml_find *find_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_ml_find, seq);
}

static void find_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_ml_find *f = find_of(s);
    ml_impl(f->ml)->reads--;
    ox_op_finish(&f->op, err);
    ml_poke(f->ml);
}

void ox_mledger_find(struct ox_mledger *ml, struct ox_ml_find *f)
{
    struct mledger_impl *impl = ml_impl(ml);
    ox_op_begin(&f->op);
    f->ml = ml;
    impl->reads++;
    f->low = impl->entries_trimmed - 1; // numbers: `before` holds at low (or low is before the log), not at high
    f->high = ml_number_of(ml, (struct ox_pos){ml->last.ledger, ml->last.entry + 1});
    ox_seq_start(&f->seq, ml->factory->loop, "mledger.find", find_probe, find_done);
}

static ox_step find_end(struct ox_seq *s)
{
    struct ox_ml_find *f = find_of(s);
    int64_t first = ml_impl(f->ml)->entries_trimmed;
    f->found = f->low < first ? ox_ml_clamp(f->ml, OX_POS_EARLIEST) : ml_position_of(f->ml, f->low);
    return OX_FINISH(s, OX_OK);
}

static ox_step find_probe(struct ox_seq *s)
{
    struct ox_ml_find *f = find_of(s);
    f->low = OX_MAX(f->low, ml_impl(f->ml)->entries_trimmed - 1);
    if (f->high - f->low <= 1)
        return OX_GOTO(s, find_end);
    f->mid = f->low + (f->high - f->low) / 2;
    f->read.from = ml_position_of(f->ml, f->mid);
    f->read.entries_max = 1;
    f->read.bytes_max = 1;
    ox_seq_bind(s, &f->read.op, "mledger.find.read");
    ox_mledger_read(f->ml, &f->read);
    return OX_WAIT(s, find_read);
}

static ox_step find_read(struct ox_seq *s)
{
    struct ox_ml_find *f = find_of(s);
    if (s->err != OX_OK && s->err != OX_E_NO_ENTRY)
        return OX_FINISH(s, s->err);
    if (s->err == OX_OK && f->read.count == 0) { // lost: look at what comes behind
        f->read.from = f->read.next;
        ox_seq_bind(s, &f->read.op, "mledger.find.read_on");
        ox_mledger_read(f->ml, &f->read);
        return OX_WAIT(s, find_read);
    }
    int64_t number = f->read.count > 0 ? ml_number_of(f->ml, f->read.entries[0].pos) : f->high;
    if (number >= f->high)
        f->high = f->mid; // everything from mid on is lost
    else if (f->before(f->ctx, &f->read.entries[0]))
        f->low = number;
    else
        f->high = f->mid;
    ox_ml_read_fini(&f->read);
    return OX_GOTO(s, find_probe);
}
