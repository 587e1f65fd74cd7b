/* A call passes from the stub through the trampoline (trampoline_<cpu>.S) to these functions, then to the
 * real function, and back here to write the record. The hot path (entry.c, or wrap.c for a whole call) uses
 * no locks, system calls or locked instructions. All other cases take the slow path. */
#ifndef CT_TRAMPOLINE_H
#define CT_TRAMPOLINE_H

#include "decoded.h"
#include "frame.h"

/* The trampoline's next step, returned in two registers. */
struct ct_target {
    void *function;
    uint64_t mode; /* number of stack words to forward (0 to 255), or one of the two modes below */
};
#define CT_MODE_STRAIGHT UINT64_MAX       /* jump to the function as if there were no stub */
#define CT_MODE_SLOW     (UINT64_MAX - 1) /* save the vector registers and call ct_enter_slow() */

/* The trampoline calls ct_enter() before the real function and ct_leave() after it. */
struct ct_target ct_enter(struct ct_frame *frame);
void ct_leave(struct ct_frame *frame);
/* The slow paths of ct_enter() and ct_leave(). The trampoline saves the vector registers around
 * ct_enter_slow(). */
struct ct_target ct_enter_slow(struct ct_frame *frame);
void ct_leave_slow(struct ct_frame *frame);
/* Replaces ct_enter() and ct_enter_slow() for a runtime function if its return address, `caller`, is not in
 * ct_runtime_callers. */
struct ct_target ct_enter_careful(struct ct_frame *frame, const void *caller);
/* Replaces ct_enter() and ct_enter_slow() for a function known only by name. */
struct ct_target ct_enter_fallback(struct ct_frame *frame);

/* Record a call whose row has no stub. The caller fills in the frame's row, args and result, and makes the
 * real call between these two functions. The frame must be on the stack, below the frames of the enclosing
 * calls. `decode` decodes the arguments; if it is NULL, the row's decoder is used. */
void ct_call_begin(struct ct_frame *frame);
void ct_call_end(struct ct_frame *frame, ct_decoder *decode);

#endif
