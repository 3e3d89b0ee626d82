// calls.c - how an operator's question or order is begun and answered.
#include "move/storage/control_int.h"

bool storage_call_begin(struct ox_storage *st, struct ox_storage_call *c)
{
    ox_op_begin(&c->op);
    c->answer = NULL;
    c->why = (struct ox_str){0};
    if (!st->stopping && st->factory) {
        st->calls++;
        return true;
    }
    ox_str_adds(&c->why, st->stopping ? "the broker is stopping: ask again when it runs, or ask another one"
                                      : "the broker is still starting: ask again");
    ox_op_finish(&c->op, OX_E_SHUTDOWN);
    return false;
}

static void call_over(struct ox_storage *st, struct ox_storage_call *c, enum ox_err err)
{
    OX_ASSERT(st->calls > 0);
    st->calls--;
    ox_op_finish(&c->op, err);
    storage_settle(st);
}

void storage_call_answer(struct ox_storage *st, struct ox_storage_call *c, json_t *take_answer)
{
    c->answer = take_answer;
    call_over(st, c, OX_OK);
}

void storage_call_fail(struct ox_storage *st, struct ox_storage_call *c, enum ox_err err, const char *format, ...)
{
    va_list args;
    OX_ASSERT(err != OX_OK);
    va_start(args, format);
    ox_str_addv(&c->why, format, args);
    va_end(args);
    call_over(st, c, err);
}

void ox_storage_call_fini(struct ox_storage_call *c)
{
    json_decref(c->answer);
    c->answer = NULL;
    ox_str_fini(&c->why);
}

bool storage_turn_take(struct ox_storage *st, struct ox_storage_call *c, const char *verb)
{
    if (st->control->busy) {
        storage_call_fail(st, c, OX_E_CONFLICT, "this broker is at another %s: try again when it is over", st->control->busy);
        return false;
    }
    st->control->busy = verb;
    return true;
}

void storage_turn_give(struct ox_storage *st)
{
    st->control->busy = NULL;
}
