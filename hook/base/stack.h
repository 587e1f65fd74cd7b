/* Compares calls by their stack addresses. When a call is made, frames at its address or below no longer
 * exist. */
#ifndef CT_STACK_H
#define CT_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* True if a call at the stack address `frame` shows that a signal handler has jumped out of the code that
 * owns the frame at the stack address `holder`. */
bool ct_stack_left(uintptr_t holder, uintptr_t frame);

#endif
