/* The process's segment for a daemon: creating it, writing to it, giving it up. */
#ifndef CT_ATTACH_H
#define CT_ATTACH_H

#include "producer.h"

/* Looks for a daemon, unless one was looked for within the last second, and creates a segment for it. Returns
 * the process's current segment, NULL if there is none. `exec_ns` is the time at which the program began.
 * Requires permission for system calls. */
struct ct_segment *ct_attach(uint64_t exec_ns);
/* True if ct_attach() would look for a daemon. Makes no system call. */
bool ct_attach_is_due(void);
/* For visits (visit.c): ct_attach_sleep() stops looking for a daemon. ct_attach_wake() starts again, and
 * notes since when calls may be missing. */
void ct_attach_sleep(void);
void ct_attach_wake(uint64_t missed_since_ns);
/* Gives up the segment for good and notifies the collector. Requires the process lock. Takes no other lock
 * and calls nothing except the kernel. */
void ct_attach_leave(void);
/* Drops a segment that the collector has given up. The process is dormant afterwards. */
void ct_detach(void);
/* Called after the calling thread's producer, whose lane is not held, has written. Rings the doorbell or does
 * whatever else the collector requests. */
void ct_attach_apply(struct ct_producer *producer);
/* In a fork's child: forgets the parent's segment. */
void ct_attach_forget(void);

#endif
