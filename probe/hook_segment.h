/* The segment of a hook that has left the process (visits.h). */
#ifndef CT_PROBE_HOOK_SEGMENT_H
#define CT_PROBE_HOOK_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the thread's lane has passed the position, in the segment that the descriptor refers to.
 * Returns false if the segment or the lane cannot be read. */
bool ct_hook_segment_passed(int segment, uint32_t tid, uint64_t position);

/* Returns whether the hook still has the segment, so that the process can have no other. Returns false if
 * that cannot be read. */
bool ct_hook_segment_is_held(int segment);

#endif
