/* The path of a call: stub and trampoline (trampoline_<cpu>.S), these functions, the real function, and back
 * here to write the record. The hot path (entry.c, and wrap.c, which is a whole call) has no lock, no system
 * call and no locked instruction. All other cases take the slow path. */
#ifndef CT_TRAMPOLINE_H
#define CT_TRAMPOLINE_H

#include "decoded.h"
#include "frame.h"

/* The trampoline's next step, returned in two registers. */
struct ct_target {
    void *function;
    uint64_t mode; /* stack words to pass on (0 to 255), or one of the two below */
};
#define CT_MODE_STRAIGHT UINT64_MAX       /* jump to the function as if there were no stub */
#define CT_MODE_SLOW     (UINT64_MAX - 1) /* save the vector registers and call ct_enter_slow() */

/* Run before and after the real function. */
struct ct_target ct_enter(struct ct_frame *frame);
void ct_leave(struct ct_frame *frame);
/* Their slow paths. The trampoline saves the vector registers around ct_enter_slow(). */
struct ct_target ct_enter_slow(struct ct_frame *frame);
void ct_leave_slow(struct ct_frame *frame);
/* Replaces both enters for a runtime function if its caller, a return address, is not among
 * ct_runtime_callers. */
struct ct_target ct_enter_careful(struct ct_frame *frame, const void *caller);
/* Replaces both enters for a function of which only the name is known. */
struct ct_target ct_enter_fallback(struct ct_frame *frame);

/* The same for a call of a row without a stub. The code that makes the call fills in row, args and result,
 * and makes it between these two. The frame is on the stack, below the frames of the calls around it.
 * `decode` describes the call. */
void ct_call_begin(struct ct_frame *frame);
void ct_call_end(struct ct_frame *frame, ct_decoder *decode);

#endif
