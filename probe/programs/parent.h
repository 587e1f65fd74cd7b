/* The command that has started the probe, such as `cudatrace run`. */
#ifndef CT_PROBE_PARENT_H
#define CT_PROBE_PARENT_H

#include <stdbool.h>

/* Opens standard descriptors that the caller has closed. Otherwise, a map or the lock could be given such a
 * descriptor's number. Messages would then be written to it, and every writer would keep it open. */
void ct_parent_fill_files(void);
/* If CT_PROBE_READY_ENV is set, makes the probe end when its parent ends, and returns the descriptor that the
 * parent reads. Otherwise, returns -1. */
int ct_parent_begin(void);
/* Tells the parent that the probe records. Returns false if there is no such descriptor. If the parent has
 * ended, sends this process SIGTERM, because the parent may have ended before ct_parent_begin(). */
bool ct_parent_tell(int ready);

#endif
