/* The process's current segment and clock, and the lock that protects both. */
#ifndef CT_CURRENT_H
#define CT_CURRENT_H

#include "clock.h"
#include "compiler.h"
#include "denied_counter.h"
#include "segment.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the process's current segment, or NULL while nothing is recorded. */
struct ct_segment *ct_process_current(void);
/* The epoch is incremented whenever this process begins or ends a segment. Definitions from one segment must
 * be repeated in the next. */
uint32_t ct_process_epoch(void);
void ct_process_count_epoch(void);
/* Makes the segment the process's current one. Requires the process lock, except in the child of a fork. */
void ct_process_set_current(struct ct_segment *segment);

/* The lock for creating and growing the segment, and for the function rows (lock.h). */
bool ct_process_lock(void);
bool ct_process_lock_try(void); /* ct_lock_try() */
void ct_process_unlock(void);
void ct_process_lock_forget(void);

/* True if ticks are read from the processor's counter. Set before a session's first segment is created, and
 * valid for the whole session. */
extern CT_LOCAL bool ct_clock_is_counter;

/* For cudatrace-probe, which decodes calls later and for other processes: the time and thread of the call.
 * Facts that a decoder learns from the call are valid for this time and thread. In the hook, all fields are
 * zero. */
struct ct_replayed {
    uint64_t now_ns; /* the end of the call */
    uint64_t thread; /* an even number that identifies the call's thread */
};
extern CT_LOCAL struct ct_replayed ct_replayed;

/* Returns the current time in nanoseconds, for sessions whose ticks are nanoseconds. */
uint64_t ct_now_ns(void);

static inline uint64_t ct_now(void)
{
    if (ct_counter_is_denied() && ct_clock_is_counter)
        return atomic_load_explicit(&ct_counter_last, memory_order_relaxed);
    return ct_clock_is_counter ? ct_counter_read() : ct_now_ns();
}

/* Returns CLOCK_MONOTONIC_COARSE, which is read without a system call. */
static inline uint64_t ct_coarse_ns(void)
{
    struct timespec coarse;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    return (uint64_t)coarse.tv_sec * 1000000000 + (uint64_t)coarse.tv_nsec;
}

#endif
