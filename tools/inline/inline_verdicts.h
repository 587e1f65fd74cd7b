/* The verdicts on functions in a plan (inline_plan.h). Builds without an instruction decoder also contain
 * these messages. */
#ifndef CT_INLINE_VERDICTS_H
#define CT_INLINE_VERDICTS_H

enum ct_inline_verdict {
    CT_INLINE_FINE, /* the function is given a slot; functions with any other verdict are left unchanged */
    CT_INLINE_OUTSIDE,
    CT_INLINE_UNREADABLE,
    CT_INLINE_NO_SIZE,
    CT_INLINE_SHARED,
    CT_INLINE_TAKEN,
    CT_INLINE_UNKNOWN,
    CT_INLINE_SHORT,
    CT_INLINE_CALLS,
    CT_INLINE_BOUND,
    CT_INLINE_REPEATS,
    CT_INLINE_COMPUTED,
    CT_INLINE_FAR,
    CT_INLINE_VERDICTS
};
/* Returns a clause, such as "call ...", whose subject is a number of functions. */
const char *ct_inline_reason(enum ct_inline_verdict verdict);

#endif
