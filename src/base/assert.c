// assert.c - the end of a process whose invariants do not hold.
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void ox_assert_failed(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, function, condition);
    fflush(stderr);
    abort();
}
