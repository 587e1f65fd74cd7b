/* The process over its lifetime: where its calls are written, what a fork's child resets, how its exit is
 * marked. */
#ifndef CT_PROCESS_H
#define CT_PROCESS_H

#include "producer.h"

/* Returns the process's segment, looking for a daemon and creating the segment if needed. NULL while
 * dormant. */
struct ct_segment *ct_process_segment(void);
enum ct_attached {
    CT_ATTACHED_NOT,     /* no segment when the call began: the call is in no trace */
    CT_ATTACHED_NOWHERE, /* a segment but no lane: the call is lost */
    CT_ATTACHED,         /* the thread holds a lane */
};
/* Takes a lane for the calling thread if the process has a segment. `frame` is the stack address of the
 * thread's call (ct_frame_address()), 0 if unknown. */
enum ct_attached ct_process_attach(uintptr_t frame);

#endif
