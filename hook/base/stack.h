/* Compares calls by their stack addresses. When a call is made, all earlier frames at its address or below
 * have ended. */
#ifndef CT_STACK_H
#define CT_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* True if a call at stack address `frame` proves that a signal handler has jumped out of the function whose
 * frame is at stack address `holder`. */
bool ct_stack_left(uintptr_t holder, uintptr_t frame);

#endif
