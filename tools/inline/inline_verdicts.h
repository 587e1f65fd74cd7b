/* The plan's verdict on each function (inline_plan.h). Builds without a decoder have these texts, too. */
#ifndef CT_INLINE_VERDICTS_H
#define CT_INLINE_VERDICTS_H

enum ct_inline_verdict {
    CT_INLINE_FINE, /* the function gets a slot; functions with another verdict stay unchanged */
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
/* Returns a clause with several functions as its subject: "call ...". */
const char *ct_inline_reason(enum ct_inline_verdict verdict);

#endif
