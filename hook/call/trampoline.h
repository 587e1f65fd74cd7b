/* The way of a call: the stub and the trampoline (trampoline_<cpu>.S) come here, go on to the real function,
 * and come back for the record. On the hot path (entry.c, and wrap.c, which is a whole call) is no lock, no
 * system call, no locked instruction; whatever that does not cover goes the slow way. */
#ifndef CT_TRAMPOLINE_H
#define CT_TRAMPOLINE_H

#include "decoded.h"
#include "frame.h"

/* The trampoline's next step, returned in two registers. */
struct ct_target {
    void *function;
    uint64_t mode; /* stack words to pass on (0 to 255), or one of the two below */
};
#define CT_MODE_STRAIGHT UINT64_MAX       /* jump to function as if the stub were not there */
#define CT_MODE_SLOW     (UINT64_MAX - 1) /* save the vector registers and call ct_enter_slow() */

/* Before and after the real function. */
struct ct_target ct_enter(struct ct_frame *frame);
void ct_leave(struct ct_frame *frame);
/* Their slow ways; the trampoline saves the vector registers around the first. */
struct ct_target ct_enter_slow(struct ct_frame *frame);
void ct_leave_slow(struct ct_frame *frame);
/* Instead of both enters for a runtime function whose caller, a return address, is not among
 * ct_runtime_callers. */
struct ct_target ct_enter_careful(struct ct_frame *frame, const void *caller);
/* Instead of both enters for a function of which nothing is known but its name. */
struct ct_target ct_enter_spare(struct ct_frame *frame);

/* The same for a call of a row without a stub: whoever has it fills in row, args and result, and makes the
 * call between the two. The frame lies on the stack, below those of the calls that it is made in. `decode`
 * says what the call was. */
void ct_call_begin(struct ct_frame *frame);
void ct_call_end(struct ct_frame *frame, ct_decoder *decode);

#endif
