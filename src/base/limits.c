// limits.c - shared budgets.
#include "base/limits.h"

#include "base/assert.h"

bool ox_budget_take(struct ox_budget *b, uint64_t n)
{
    if (b->used != 0 && (b->used > b->max || n > b->max - b->used))
        return false;
    b->used += n;
    return true;
}

void ox_budget_give(struct ox_budget *b, uint64_t n)
{
    OX_ASSERT(n <= b->used);
    b->used -= n;
}
