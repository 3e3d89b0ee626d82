// waiter.c - who waits for more entries is woken once, from the loop.
#include "mledger/mledger_int.h"

// True if waiting has come to an end.
static bool waiter_is_over(const struct ox_mledger *ml, const struct ox_ml_waiter *w)
{
    if (ml->state == OX_ML_FENCED || ml->state == OX_ML_CLOSING || ml->state == OX_ML_CLOSED)
        return true;
    struct ox_pos next = ox_ml_next(ml, w->after);
    const struct ox_ml_ledger *l = ox_ml_ledger(ml, next.ledger);
    return l && next.entry < l->entries;
}

void ml_wake(struct ox_mledger *ml)
{
    struct mledger_impl *impl = ml_impl(ml);
    if (ox_list_empty(&ml->waiters) || ox_op_pending(&impl->wake))
        return;
    ox_op_begin(&impl->wake);
    ox_op_finish(&impl->wake, OX_OK);
}

// Waiters may arm and disarm others: each is looked at once, from the front; what is armed meanwhile stands behind.
void ml_wake_done(struct ox_op *op)
{
    struct mledger_impl *impl = CONTAINER_OF(op, struct mledger_impl, wake);
    struct ox_mledger *ml = impl->ml;
    for (size_t n = ml->waiters.count; n > 0 && !ox_list_empty(&ml->waiters); n--) {
        struct ox_ml_waiter *w = CONTAINER_OF(ox_list_pop_front(&ml->waiters), struct ox_ml_waiter, link);
        if (waiter_is_over(ml, w))
            w->wake(w);
        else
            ox_list_push_back(&ml->waiters, &w->link);
    }
    ml_poke(ml);
}

void ox_mledger_wait(struct ox_mledger *ml, struct ox_ml_waiter *w, struct ox_pos after)
{
    w->after = after;
    ox_list_push_back(&ml->waiters, &w->link);
    if (waiter_is_over(ml, w))
        ml_wake(ml);
}

void ox_mledger_unwait(struct ox_mledger *ml, struct ox_ml_waiter *w)
{
    if (ox_link_linked(&w->link))
        ox_list_remove(&ml->waiters, &w->link);
}
