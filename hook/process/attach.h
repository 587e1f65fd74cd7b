/* Creates and abandons the process's segment for a daemon. */
#ifndef CT_ATTACH_H
#define CT_ATTACH_H

#include "producer.h"

/* Looks for a daemon, at most once a second, and creates a segment for it. Returns the process's current
 * segment, or NULL if there is none. `exec_ns` is the time when the program started. Requires permission for
 * system calls. */
struct ct_segment *ct_attach(uint64_t exec_ns);
/* True if ct_attach() would look for a daemon. Makes no system call. */
bool ct_attach_is_due(void);
/* For visits (visit.c). After ct_attach_sleep(), the process no longer looks for a daemon. After
 * ct_attach_wake(), the process looks for a daemon again, and calls made since `missed_since_ns` may be
 * missing. */
void ct_attach_sleep(void);
void ct_attach_wake(uint64_t missed_since_ns);
/* Abandons the segment permanently, and notifies the collector. Abandons at most `lanes_most` lanes, and
 * returns false if there are more. ct_attach_is_leaving() then returns true, and the function must be called
 * again. Both require the process lock. They take no other lock, and call no functions outside the hook
 * except for system calls. */
bool ct_attach_leave(uint32_t lanes_most);
bool ct_attach_is_leaving(void);
/* Drops a segment abandoned by the collector. Afterwards, the process is dormant. */
void ct_detach(void);
/* Follows the collector's requests, such as ringing the doorbell. Must be called after writing to the calling
 * thread's lane, which must no longer be held. */
void ct_attach_apply(struct ct_producer *producer);
/* In the child of a fork, forgets the parent's segment. */
void ct_attach_forget(void);

#endif
