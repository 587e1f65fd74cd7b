/* Finds the segment for the process's calls, marks it when the process exits, and resets the hook's state in
 * the child of a fork. */
#ifndef CT_PROCESS_H
#define CT_PROCESS_H

#include "producer.h"

/* Returns the process's segment, after looking for a daemon and creating the segment if necessary. Returns
 * NULL if the process is dormant. */
struct ct_segment *ct_process_segment(void);
/* Returns whether the calling thread may read clocks. */
bool ct_process_may_read_clock(void);
enum ct_attached {
    CT_ATTACHED_NOT,     /* there was no segment when the call began, so the call is not in any trace */
    CT_ATTACHED_NOWHERE, /* there is a segment but no lane, so the call is lost */
    CT_ATTACHED,         /* the thread holds a lane */
};
/* Takes a lane for the calling thread if the process has a segment. `frame` is the stack address of the
 * thread's call (ct_frame_address()), or 0 if unknown. */
enum ct_attached ct_process_attach(uintptr_t frame);

#endif
