/* Checks for C tests: the first check that fails ends the program with status 1 and prints a line to
 * stderr. */
#ifndef ENSURE_H
#define ENSURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void ensure_holds(bool holds, const char *what, const char *file, int line)
{
    if (!holds) {
        fprintf(stderr, "%s:%d: not so: %s (errno says: %s)\n", file, line, what, strerror(errno));
        exit(1);
    }
}

static inline void ensure_is(int expected, int result, const char *call, const char *file, int line)
{
    if (result != expected) {
        fprintf(stderr, "%s:%d: %s is %d and not %d\n", file, line, call, result, expected);
        exit(1);
    }
}

/* Returns whether the tests run in the short tier (docs/hacking.md). */
static inline bool tier_is_short(void)
{
    const char *tier = getenv("CUDATRACE_TIER");
    return !tier || strcmp(tier, "short") == 0;
}

#define ENSURE(condition)      ensure_holds(condition, #condition, __FILE__, __LINE__)
#define EXPECT(expected, call) ensure_is((int)(expected), (int)(call), #call, __FILE__, __LINE__)

#endif
