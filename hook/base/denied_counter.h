/* Threads that may not read the processor's counter. After prctl(PR_SET_TSC, PR_TSC_SIGSEGV), and in
 * seccomp's strict mode, a thread gets SIGSEGV when it reads the counter or a clock of the vDSO that is made
 * of it. The threads and processes that it creates inherit this. (Across exec, too, but then the C library's
 * loader already reads the counter, and fails.) The calls of such threads are counted as lost, because they
 * have no times. */
#ifndef CT_DENIED_COUNTER_H
#define CT_DENIED_COUNTER_H

#include "compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum ct_counter_access {
    CT_COUNTER_UNKNOWN, /* the thread may have inherited the prohibition if ct_counter_was_denied */
    CT_COUNTER_ALLOWED,
    CT_COUNTER_DENIED, /* clocks are coarse (libc.c), and ct_now() returns `ct_counter_last` */
};
/* Of the calling thread. */
extern CT_LOCAL __thread enum ct_counter_access ct_counter_access;
/* True once a thread of this process, or of a process from which it was forked, has lost the counter. */
extern CT_LOCAL _Atomic bool ct_counter_was_denied;
extern CT_LOCAL _Atomic uint64_t ct_counter_last; /* ticks when a thread last lost the counter */

/* Called before the calling thread loses the counter. `now` is the current time in ticks. */
void ct_counter_deny(uint64_t now);

static inline bool ct_counter_is_denied(void)
{
    return CT_UNLIKELY(ct_counter_access == CT_COUNTER_DENIED);
}

#endif
