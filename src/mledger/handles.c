// handles.c - handles to read ledgers through: opened on demand, closed when unused.
#include "mledger/mledger_int.h"

void ml_handle_release(struct ox_ml_ledger *l)
{
    if (ox_link_linked(&l->idle))
        ox_list_remove(&l->ml->factory->handles, &l->idle);
    if (l->handle)
        ox_ledger_release(l->handle);
    l->handle = NULL;
}

// Closes the longest unused handles above the limit, and those unused for too long.
static void handles_close(struct ox_ml_factory *f)
{
    uint64_t now = ox_now_ns(f->loop);
    OX_LIST_EACH(&f->handles, link) {
        struct ox_ml_ledger *l = CONTAINER_OF(link, struct ox_ml_ledger, idle);
        if (f->handles.count <= ML_HANDLES_MAX && now - l->used_ns < ML_HANDLE_IDLE_NS)
            break;
        if (l->pins == 0)
            ml_handle_release(l);
    }
}

static void handles_touch(struct ox_ml_ledger *l)
{
    struct ox_ml_factory *f = l->ml->factory;
    l->used_ns = ox_now_ns(f->loop);
    if (ox_link_linked(&l->idle)) {
        ox_list_remove(&f->handles, &l->idle);
        ox_list_push_back(&f->handles, &l->idle);
    }
}

void ml_handle_keep(struct ox_ml_ledger *l, struct ox_ledger *take_handle)
{
    struct ox_ml_factory *f = l->ml->factory;
    if (l->handle && l->handle != take_handle) {
        ox_ledger_release(take_handle); // another read was quicker
        return;
    }
    l->handle = take_handle;
    if (!ox_link_linked(&l->idle))
        ox_list_push_back(&f->handles, &l->idle);
    handles_touch(l);
    handles_close(f);
    if (!ox_timer_started(&f->idle))
        ox_timer_start(&f->idle, ML_HANDLE_IDLE_NS / 6);
}

void ml_handle_pin(struct ox_ml_ledger *l)
{
    l->pins++;
    handles_touch(l);
}

void ml_handle_unpin(struct ox_ml_ledger *l)
{
    OX_ASSERT(l->pins > 0);
    if (--l->pins > 0 || !l->gone)
        return;
    ml_ledger_free(l);
}

// The factory's timer.
void ml_handles_tick(struct ox_timer *t)
{
    struct ox_ml_factory *f = CONTAINER_OF(t, struct ox_ml_factory, idle);
    handles_close(f);
    if (!ox_list_empty(&f->handles))
        ox_timer_start(t, ML_HANDLE_IDLE_NS / 6);
}
