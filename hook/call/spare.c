/* Calls of functions that the table lacks, which come by spare stubs: nobody told how many words they take
 * from the caller's stack. */
#include "current.h"
#include "loss.h"
#include "system.h"
#include "trampoline.h"

/* Counts the words above a call's frame that can hold arguments: those behind which the caller's stack may
 * end, as a coroutine's does, are on another page, and count where they can be read. */
static bool find_stack_words(const uint64_t *from, uint64_t *words)
{
    const uint64_t page = 4096, begin = (uintptr_t)from; /* the smallest that there is */
    const uint64_t end = ((begin - 1) | (page - 1)) + 1;
    *words = CT_SPARE_STACK_WORDS;
    if ((end - begin) / sizeof(*from) >= CT_SPARE_STACK_WORDS)
        return true;
    const enum ct_readable beyond = ct_system_readable((uintptr_t)(from + CT_SPARE_STACK_WORDS - 1));
    if (beyond == CT_READABLE_NO)
        *words = (end - begin) / sizeof(*from);
    return beyond != CT_READABLE_UNKNOWN;
}

/* Jumps to the function, and only counts its call, where the number of stack words cannot be told. */
struct ct_target ct_enter_spare(struct ct_frame *frame)
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
