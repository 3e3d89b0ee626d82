// inspect.c - a dump from its start to its end, and the sentences for what goes wrong.
#include "inspect/inspect_int.h"

static const char *inspect_advice(enum ox_err err)
{
    if (err == OX_E_LOCKED)
        return "; a broker is running on it: stop the broker first, or inspect a copy of the folder";
    if (err == OX_E_ACCESS)
        return "; run as the user that the broker runs as";
    if (err == OX_E_UNSUPPORTED)
        return "; a newer version wrote it: use that version's oxbow-inspect";
    if (err == OX_E_NO_LEDGER)
        return "; `oxbow-inspect DIR ledgers` lists those that are there";
    return "";
}

void inspect_note(struct inspect *i, enum ox_err err, const char *what)
{
    ox_str_addf(&i->trouble, "%s: %s%s\n", what, ox_err_text(err), inspect_advice(err));
    i->outcome = err;
}

ox_step inspect_failed(struct inspect *i, enum ox_err err, const char *what)
{
    inspect_note(i, err, what);
    return OX_FINISH(&i->seq, err);
}

ox_step inspect_finished(struct inspect *i)
{
    return OX_FINISH(&i->seq, i->outcome);
}

static void inspect_done(struct ox_seq *s, enum ox_err err)
{
    struct inspect *i = inspect_of(s);
    i->ended(i, err);
}

void inspect_start(struct inspect *i)
{
    ox_step_fn first = i->what == INSPECT_NODES ? inspect_nodes_start : inspect_ledgers_start;
    ox_seq_start(&i->seq, i->loop, "inspect", first, inspect_done);
}

void inspect_fini(struct inspect *i)
{
    inspect_nodes_free(i->nodes);
    inspect_ledgers_free(i->ledgers);
    ox_str_fini(&i->trouble);
    i->nodes = NULL;
    i->ledgers = NULL;
}
