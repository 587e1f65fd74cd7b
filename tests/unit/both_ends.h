/* The interface between the two sides of unit_both_ends.c. The hook's side (unit_both_ends_hook.c) and the
 * daemon's side cannot include each other's headers, so both sides include this header. */
#ifndef CT_TESTS_BOTH_ENDS_H
#define CT_TESTS_BOTH_ENDS_H

#include "control.h"
#include "segment.h"

#include <stdbool.h>

/* A copy of `n` bytes is recorded as a copy from n + SOURCE to n + DESTINATION. */
enum { BOTH_ENDS_SOURCE = 1 << 20, BOTH_ENDS_DESTINATION = 1 << 24 };

/* The size of a lane's second ring, which is longer than the first. There are no others. */
enum { BOTH_ENDS_RING_BYTES = CT_CHUNK_BYTES << CT_RING_STEP };

bool both_ends_begin(struct ct_segment *of, struct ct_control *control);

/* Makes a call from the calling thread. Every third call is a plain call with `number` bytes, and all others
 * are copies. */
void both_ends_call(uint64_t number);

#endif
