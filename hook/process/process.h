/* The process as it goes on: what it writes to at a call, what is started anew in a fork's child, what its
 * end says. */
#ifndef CT_PROCESS_H
#define CT_PROCESS_H

#include "producer.h"

/* The process's segment, looking for a daemon and making it where needed; NULL while dormant. */
struct ct_segment *ct_process_segment(void);
enum ct_attached {
    CT_ATTACHED_NOT,     /* there was no segment when the call began: the call is in no trace */
    CT_ATTACHED_NOWHERE, /* there is a segment, and no lane: the call is lost */
    CT_ATTACHED,         /* the thread holds a lane */
};
/* Takes a lane for the calling thread if the process has a segment. `frame` is where its call stands on the
 * stack (ct_frame_address()), 0 if that is not known. */
enum ct_attached ct_process_attach(uintptr_t frame);

#endif
