/* The segment that the process has for a daemon: made, written to, given up. */
#ifndef CT_ATTACH_H
#define CT_ATTACH_H

#include "producer.h"

/* Looks for a daemon, unless one was looked for within the last second, and makes a segment for it: the
 * process's current one from now on, NULL when there is none. `image_ns` is when the program began, and
 * system calls may be made. */
struct ct_segment *ct_attach(uint64_t image_ns);
/* True if that is worth while: no system call is made to find out. */
bool ct_attach_is_due(void);
/* For visits (visit.c): stops looking for a daemon; looks again, and notes since when calls may be missing.
 */
void ct_attach_sleep(void);
void ct_attach_wake(uint64_t missed_since_ns);
/* Lets go of the segment for good, and notifies the collector. The process lock is held. Takes no other lock
 * and makes no call except to the kernel. */
void ct_attach_leave(void);
/* Lets go of a segment that the collector gave up; the process is dormant afterwards. */
void ct_detach(void);
/* The calling thread's producer, which holds no lane, has written: rings, or does what else the collector
 * asks for. */
void ct_attach_heed(struct ct_producer *producer);
/* In a fork's child: nothing is its own. */
void ct_attach_forget(void);

#endif
