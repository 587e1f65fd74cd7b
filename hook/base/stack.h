/* Compares calls by their stack addresses. When a call is made, frames at its address or below no longer
 * exist. */
#ifndef CT_STACK_H
#define CT_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* True if a signal handler has jumped out of the code that owns the frame `holder`, judging from a call at
 * `frame`. Both are stack addresses. */
bool ct_stack_left(uintptr_t holder, uintptr_t frame);

#endif
