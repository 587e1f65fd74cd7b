/* Performs the requested action at a test point (proto/test_point.h). CUDATRACE_TEST_POINT=NAME:NTH:ACTION
 * makes the process kill (`kill`) or stop (`stop`) itself with a signal when it reaches the point for the NTH
 * time, counting from 1. With `wait`, only the thread that reaches the point waits, until the process removes
 * the variable from its environment. The name `*` matches all points, which are then counted together.
 *
 * This file is linked into the tests' hook and daemon. Test points are on the hook's hot path, so the code
 * uses no vector registers and no C library functions, and does not touch errno. */
#include "test_point.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long raw_call(long number, long first, long second)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = first, x1 __asm__("x1") = second;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
    return x0;
#endif
}

/* Returns the text after `prefix`, or NULL if `text` does not begin with it. */
static const char *skip(const char *text, const char *prefix)
{
    while (*prefix && *text == *prefix)
        text++, prefix++;
    return *prefix ? NULL : text;
}

static const char *requested(void)
{
    for (char **variable = environ; variable && *variable; variable++) {
        const char *value = skip(*variable, "CUDATRACE_TEST_POINT=");
        if (value)
            return value;
    }
    return NULL;
}

void ct_test_point(const char *name)
{
    static _Atomic uint32_t passed;
    const char *at = requested();
    const char *rest = at ? skip(at, "*") : NULL;
    if (at && !rest)
        rest = skip(at, name);
    if (!rest || *rest++ != ':')
        return;
    at = rest;
    uint32_t nth = 0;
    while (*at >= '0' && *at <= '9')
        nth = nth * 10 + (uint32_t)(*at++ - '0');
    if (atomic_fetch_add(&passed, 1) + 1 != nth)
        return;
    if (skip(at, ":wait")) {
        const struct timespec pause = { .tv_nsec = 1000000 };
        while (requested())
            raw_call(SYS_nanosleep, (long)&pause, 0);
        return;
    }
    /* Send the signal to this thread, because if another thread received it, this thread would continue for a
     * while. */
    const bool stop = skip(at, ":stop") != NULL;
    raw_call(SYS_tkill, raw_call(SYS_gettid, 0, 0), stop ? SIGSTOP : SIGKILL);
}
