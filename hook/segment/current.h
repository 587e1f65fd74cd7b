/* The process's current segment, its clock, and the lock of both. */
#ifndef CT_CURRENT_H
#define CT_CURRENT_H

#include "clock.h"
#include "compiler.h"
#include "segment.h"

#include <stdbool.h>
#include <stdint.h>

/* NULL while nothing is recorded. */
struct ct_segment *ct_process_current(void);
/* Counts the beginnings and ends of this process's segments. Definitions made in an earlier segment must be
 * repeated in the next. */
uint32_t ct_process_epoch(void);
void ct_process_count_epoch(void);
/* Makes the segment the process's own from now on. Requires the lock, or a fork's child. */
void ct_process_set_current(struct ct_segment *segment);

/* The lock for creating and growing the segment (lock.h), and for the rows of functions. */
bool ct_process_lock(void);
bool ct_process_lock_try(void); /* ct_lock_try() */
void ct_process_unlock(void);
void ct_process_lock_forget(void);

/* True if ticks are the processor's counter. Set before the first segment, for a whole session. */
extern CT_LOCAL bool ct_clock_is_counter;

/* Of a call that another process made, and that cudatrace-probe decodes later: what the decoder finds out was
 * true at that moment, for that thread. Zeros in the hook. */
struct ct_replayed {
    uint64_t now_ns; /* the end of the call */
    uint64_t thread; /* its thread; any even number that is no other thread's */
};
extern CT_LOCAL struct ct_replayed ct_replayed;

/* The clock of a session whose ticks are nanoseconds. */
uint64_t ct_now_ns(void);

static inline uint64_t ct_now(void)
{
    return ct_clock_is_counter ? ct_counter_read() : ct_now_ns();
}

/* CLOCK_MONOTONIC_COARSE, which takes no system call. */
static inline uint64_t ct_coarse_ns(void)
{
    struct timespec coarse;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    return (uint64_t)coarse.tv_sec * 1000000000 + (uint64_t)coarse.tv_nsec;
}

#endif
