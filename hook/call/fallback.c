/* Handles calls to functions that are missing from the table. Such calls pass through fallback stubs, and it
 * is unknown how many stack arguments they have.
 */
#include "current.h"
#include "loss.h"
#include "system.h"
#include "trampoline.h"

/* Counts the words above a call's frame that can hold arguments. The caller's stack may end at a page
 * boundary (as in coroutines), so words on the next page count only if they are readable. Returns false if it
 * is unknown whether they are. */
static bool find_stack_words(const uint64_t *from, uint64_t *words)
{
    const uint64_t page = 4096, begin = (uintptr_t)from; /* the smallest page size */
    const uint64_t end = ((begin - 1) | (page - 1)) + 1;
    *words = CT_FALLBACK_STACK_WORDS;
    if ((end - begin) / sizeof(*from) >= CT_FALLBACK_STACK_WORDS)
        return true;
    const enum ct_readable beyond = ct_system_readable((uintptr_t)(from + CT_FALLBACK_STACK_WORDS - 1));
    if (beyond == CT_READABLE_NO)
        *words = (end - begin) / sizeof(*from);
    return beyond != CT_READABLE_UNKNOWN;
}

/* If the number of stack words is unknown, the call is only counted, and the trampoline jumps to the
 * function. */
struct ct_target ct_enter_fallback(struct ct_frame *frame)
{
    struct ct_target target = ct_enter(frame);
    if (target.mode == CT_MODE_SLOW)
        target = ct_enter_slow(frame);
    if (target.mode == CT_MODE_STRAIGHT || find_stack_words(frame->stack_args, &target.mode))
        return target;
    const uint16_t id = atomic_load_explicit(&ct_rows[frame->row].id, memory_order_relaxed);
    struct ct_producer *self = frame->producer;
    if (self == &ct_unlaned) {
        ct_leave_slow(frame);
    } else {
        ct_record_lose(self, CT_LOSS_MEMORY, id, frame->start, ct_now());
        self->depth = frame->depth;
        ct_lane_leave(self->lane, frame->depth);
    }
    target.mode = CT_MODE_STRAIGHT;
    return target;
}
