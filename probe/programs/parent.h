/* The command that has started the probe, such as `cudatrace run`. */
#ifndef CT_PROBE_PARENT_H
#define CT_PROBE_PARENT_H

/* If CT_PROBE_READY_ENV is set, makes the probe end when its parent ends, and returns the descriptor that the
 * parent reads. Otherwise, returns -1. */
int ct_parent_begin(void);

#endif
