// assert.h - invariants that stay checked in release builds.
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#include <stdint.h>

// Prints the failed condition with its place and aborts.
_Noreturn void ox_assert_failed(const char *condition, const char *file, int line, const char *function);

// The end of a process that cannot go on: SIGABRT for this thread with the text as its value. A handler with siginfo says why (a crash report does); where there
// is none, it is said on standard error before.
_Noreturn void ox_abort(const char *why);

#define OX_ASSERT(cond)                                            \
    do {                                                           \
        if (__builtin_expect(!(cond), 0))                          \
            ox_assert_failed(#cond, __FILE__, __LINE__, __func__); \
    } while (0)

// For a place that cannot be reached.
#define OX_UNREACHABLE(why) ox_assert_failed("unreachable: " why, __FILE__, __LINE__, __func__)

// A magic in the first member of objects that come back through a void pointer.
#define OX_MAGIC(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

#endif
