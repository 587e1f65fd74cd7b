/* The hot path: what every traced call runs before and after the real function.
 *
 * This file is compiled for general registers alone (-mgeneral-regs-only), so that the trampoline need not
 * save the vector registers around ct_enter(). It holds no lock, makes no system call and no allocation, and
 * writes no line of memory that another thread writes. */
#include "hook.h"

struct ct_target ct_enter(struct ct_frame *frame)
{
    const struct ct_row *row = &ct_rows[frame->row];
    struct ct_producer *self = ct_self;
    struct ct_lane *lane = self->lane;
    const uint32_t id = atomic_load_explicit(&row->enter_id, memory_order_acquire);
    if (CT_UNLIKELY(!lane || !id))
        return (struct ct_target){ NULL, CT_MODE_SLOW };

    const uint32_t depth = ct_depth_enter(self, ct_frame_place(frame));
    frame->depth = depth;
    frame->producer = self;

    const uint64_t start = ct_counter_read();
    frame->start = start;
    ct_lane_enter(lane, depth, id, start);
    return (struct ct_target){ row->real, row->stack_words };
}

void ct_leave(struct ct_frame *frame)
{
    const struct ct_row *row = &ct_rows[frame->row];
    struct ct_producer *self = frame->producer;
    const uint16_t id = atomic_load_explicit(&row->leave_id, memory_order_relaxed);
    /* The limit is 0 where the lane is not ours any more: the thread gave it back, or this is a fork's child.
     */
    if (CT_UNLIKELY(!id || !self->idle || self->position >= self->limit)) {
        ct_leave_slow(frame);
        return;
    }
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);

    struct ct_lane *lane = self->lane;
    const uint64_t position = self->position;
    if (CT_UNLIKELY(position >= self->limit)) { /* a signal handler's calls took the last slots just now */
        self->idle = 1;
        ct_leave_slow(frame);
        return;
    }
    ct_lane_announce(lane, position);
    const uint64_t end = ct_counter_read();
    struct ct_record *record = (struct ct_record *)(self->ring + (position & self->mask) * CT_SLOT_BYTES);
    record->end = end;
    record->span = ct_span(end - frame->start, frame->depth, 0);
    record->function = id;
    record->kind = CT_KIND_CALL;
    record->slots = 1;
    record->status = (int32_t)frame->result;
    record->value = 0;
    ct_lane_publish(lane, position + 1);
    ct_lane_leave(lane, frame->depth);
    self->position = position + 1;
    self->depth = frame->depth;

    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    if (CT_UNLIKELY(ct_wants_doorbell(self, lane, position + 1)))
        ct_record_wake(self);
}
