/* Helpers for programs that measure batches of operations on one processor. */
#ifndef CT_BENCH_BATCHES_H
#define CT_BENCH_BATCHES_H

#include <sched.h>
#include <stdint.h>

/* Compares two uint64_t for qsort(). */
static inline int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Binds the process to its last allowed processor, so that every round runs on the same processor, and the
 * process's threads have to take turns on it. */
static inline void stay_on_processor(void)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof(one), &one);
}

#endif
