/* The process as it goes on: what it writes to at a call, what is started anew in a fork's child, what its
 * end says. */
#ifndef CT_PROCESS_H
#define CT_PROCESS_H

#include "producer.h"

/* The process's segment, looking for a daemon and making it where needed; NULL while dormant. */
struct ct_segment *ct_process_segment(void);
/* Takes a lane for the calling thread if the process has a segment; true when it holds one. `frame` is where
 * its call stands on the stack (ct_frame_address()), 0 where that is not known. */
bool ct_process_attach(uintptr_t frame);

#endif
