/* Finds the callers of a function on a thread's stack, in the memory of another process. Uses the tables that
 * compilers make for exceptions (.eh_frame, in the DWARF format), which the loader has mapped. */
#ifndef CT_ATTACH_UNWIND_H
#define CT_ATTACH_UNWIND_H

#include "process_memory.h"

/* The registers of a function that is waiting for its callee to return. Only these registers locate frames.
 */
struct ct_waiting {
    uint64_t ip, sp, bp, bx;
};

enum ct_unwound {
    CT_UNWOUND,        /* the registers are the caller's now */
    CT_UNWOUND_LAST,   /* the function has no caller */
    CT_UNWOUND_UNKNOWN /* the function has no tables, or uses rules that are unknown here */
};

/* Replaces the registers by the caller's. The process controls the tables and the stack, so the result
 * is plausible at best, except that `sp` always grows. */
enum ct_unwound ct_unwind(const struct ct_memory *memory, struct ct_waiting *waiting);
/* Returns the address of the function that contains an instruction, or 0 if no table contains it. */
uint64_t ct_unwind_function(const struct ct_memory *memory, uint64_t ip);

#endif
