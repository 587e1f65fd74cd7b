#include "open_calls.h"

#include <string.h>

bool ct_open_calls_read(const struct ct_probe_thread *thread, uint32_t tid, struct ct_probe_open *open,
                        uint32_t *depth)
{
    *depth = __atomic_load_n(&thread->depth, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&thread->tid, __ATOMIC_ACQUIRE) != tid)
        *depth = 0;
    if (*depth > CT_PROBE_OPEN)
        return false;
    memcpy(open, thread->open, *depth * sizeof(open[0]));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return *depth == 0 || (__atomic_load_n(&thread->depth, __ATOMIC_RELAXED) == *depth &&
                           __atomic_load_n(&thread->tid, __ATOMIC_RELAXED) == tid &&
                           thread->open[*depth - 1].start == open[*depth - 1].start);
}

bool ct_open_calls_are_shown(const struct ct_lane *lane, const struct ct_probe_open *open, uint32_t depth,
                             uint64_t entry_ns)
{
    return atomic_load_explicit(&lane->depth, memory_order_relaxed) == depth &&
           (depth == 0 || atomic_load_explicit(&lane->open[depth - 1].start, memory_order_relaxed) ==
                              open[depth - 1].start + entry_ns);
}
