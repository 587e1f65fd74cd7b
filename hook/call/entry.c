/* The hot path. Every traced call runs the functions in this file before and after the real function.
 *
 * This file is compiled with -mgeneral-regs-only, so that the trampoline need not save the vector registers
 * around ct_enter(). The code takes no lock, makes no system call, allocates no memory, and writes no cache
 * line that another thread writes. */
#include "gpu_gate.h"
#include "hot_count.h"
#include "hot_record.h"

struct ct_target ct_enter(struct ct_frame *frame)
{
    const struct ct_row *row = &ct_rows[frame->row];
    struct ct_producer *self = ct_self;
    struct ct_lane *lane = self->lane;
    const uint32_t id = atomic_load_explicit(&row->enter_id, memory_order_acquire);
    if (CT_UNLIKELY(!lane || !id || ct_producer_is_stale(self)))
        return (struct ct_target){ NULL, CT_MODE_SLOW };

    CT_TEST_POINT("entry.begun");
    const uint32_t depth = ct_depth_enter(self, ct_frame_address(frame));
    frame->depth = depth;
    frame->producer = self;

    const uint64_t start = ct_hot_now_on_entry(self);
    CT_TEST_POINT("entry.clock_read");
    frame->start = start;
    ct_lane_enter(lane, depth, id, start);
    CT_TEST_POINT("entry.entered");
    if (CT_UNLIKELY(!ct_gpu_gate_is_open()) && ct_gpu_gate_holds(row)) {
        ct_lane_leave(lane, depth);
        self->depth = depth;
        return (struct ct_target){ NULL, CT_MODE_SLOW };
    }
    return (struct ct_target){ row->real, row->stack_words };
}

void ct_leave(struct ct_frame *frame)
{
    const uint16_t id = atomic_load_explicit(&ct_rows[frame->row].leave_id, memory_order_relaxed);
    const struct entered_call call = { frame->start, frame->depth };
    CT_TEST_POINT("entry.returned");
    if (CT_LIKELY(write_plain(frame->producer, id, &call, frame->result)))
        return;
    if (!count_plain(&ct_rows[frame->row], frame->producer, id, call, frame->result))
        ct_leave_slow(frame);
}
