/* Calls by where they stand on the stack: what stands at or below a call that is made is there no more. */
#ifndef CT_STACK_H
#define CT_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* True if what `holder` held has been left by a jump out of a signal handler, as is seen from a call at
 * `frame`: both are addresses on the stack. */
bool ct_stack_left(uintptr_t holder, uintptr_t frame);

#endif
