/* Tests that callers are found as the C library finds them (tools/cli/attach/unwind.c). The process examines
 * its own memory. Its stack contains frames of its own, of the C library, and of functions that align their
 * stacks or have stacks of unknown size. The C library's tables for these are the test's expectation. */
#include "unwind.h"

#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLERS_MOST = 50 };

static void ensure(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "%s\n", what);
        exit(EXIT_FAILURE);
    }
}

static int found, wanted;

/* Compares all callers. A sanitizer calls backtrace() in a function of its own, before this one. */
static __attribute__((noinline)) void compare(void)
{
    static char place;
    void *callers[CALLERS_MOST];
    struct ct_memory memory;
    struct ct_waiting waiting;
    enum ct_unwound unwound = CT_UNWOUND;
    __asm__ volatile("leaq 0(%%rip), %0\n\t"
                     "movq %%rsp, %1\n\t"
                     "movq %%rbp, %2\n\t"
                     "movq %%rbx, %3"
                     : "=r"(waiting.ip), "=m"(waiting.sp), "=m"(waiting.bp), "=m"(waiting.bx));
    wanted = backtrace(callers, CALLERS_MOST);
    ensure(ct_memory_open(&memory, getpid()) == 0, "the process's own memory cannot be opened");
    ensure(ct_unwind_function(&memory, (uintptr_t)compare + 1) == (uintptr_t)compare, "the function");
    ensure(ct_unwind_function(&memory, (uintptr_t)&place) == 0, "no function");
    while (found < wanted && ct_unwind_function(&memory, (uintptr_t)callers[found]) != (uintptr_t)compare)
        found++;
    for (found++; found < wanted && (unwound = ct_unwind(&memory, &waiting)) == CT_UNWOUND; found++)
        ensure(waiting.ip == (uintptr_t)callers[found], "a caller is wrong");
    ensure(found == wanted, "a caller is missing");
    ensure(ct_unwind(&memory, &waiting) == CT_UNWOUND_LAST, "the last function has a caller");
    ct_memory_close(&memory);
}

static int compare_once(const void *left, const void *right)
{
    (void)left, (void)right;
    if (found == 0)
        compare();
    return 0;
}

/* Aligns its stack, which its tables describe with expressions. */
static __attribute__((noinline)) void align(int bytes)
{
    volatile char aligned[128] __attribute__((aligned(128)));
    volatile char *block = alloca((size_t)bytes);
    int numbers[] = { 2, 1 };
    memset((char *)block, 1, (size_t)bytes);
    aligned[0] = block[0];
    qsort(numbers, 2, sizeof(*numbers), compare_once);
    ensure(aligned[0] == block[1], "the stack has changed");
}

static void *work(void *bytes)
{
    found = 0;
    align(*(int *)bytes);
    return NULL;
}

int main(int argc, char **argv)
{
    int bytes = 1000 + argc;
    pthread_t thread;
    (void)argv;
    work(&bytes);
    ensure(wanted >= 6, "too few callers in the first thread");
    ensure(pthread_create(&thread, NULL, work, &bytes) == 0 && pthread_join(thread, NULL) == 0, "a thread");
    ensure(wanted >= 6, "too few callers in the second thread");
    return 0;
}
