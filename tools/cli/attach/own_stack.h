/* Finds the stack of a thread in the process. */
#ifndef CT_ATTACH_OWN_STACK_H
#define CT_ATTACH_OWN_STACK_H

#include "process_memory.h"

/* Returns whether the stack pointer is in the thread's original stack, and not in a coroutine's or in an
 * alternate signal stack. Sets *end to the stack's highest address. `thread` is the thread pointer. The list
 * of mappings must be up to date. */
bool ct_own_stack_find(const struct ct_memory *memory, uint64_t thread, uint64_t stack, uint64_t *end);

#endif
