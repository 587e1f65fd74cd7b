#include "inline_verdicts.h"

const char *ct_inline_reason(enum ct_inline_verdict verdict)
{
    static const char *const reasons[CT_INLINE_VERDICTS] = {
        [CT_INLINE_FINE] = "get a slot",
        [CT_INLINE_OUTSIDE] = "are not in the driver's code",
        [CT_INLINE_UNREADABLE] = "could not be read",
        [CT_INLINE_NO_SIZE] = "have a symbol without a size",
        [CT_INLINE_SHARED] = "share their first bytes with another function",
        [CT_INLINE_TAKEN] = "begin with a breakpoint or a jump of another tool",
        [CT_INLINE_UNKNOWN] = "have bytes that are no known instructions",
        [CT_INLINE_SHORT] = "are shorter than a jump",
        [CT_INLINE_CALLS] = "call a function in their first instructions",
        [CT_INLINE_BOUND] = "begin with an instruction that cannot be moved",
        [CT_INLINE_REPEATS] = "are jumped to in their first instructions",
        [CT_INLINE_COMPUTED] = "jump to computed addresses, which may be in their first instructions",
        [CT_INLINE_FAR] = "have no free memory within 2 GiB",
    };
    return reasons[verdict];
}
