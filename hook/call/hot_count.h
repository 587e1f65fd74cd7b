/* Counts calls that are not recorded, on the hot path of entry.c and wrap.c. A call is not recorded if the
 * selection leaves it out, or if the ring is still as full as at the previous call. Calls in a loop take no
 * longer if they are only counted. */
#ifndef CT_HOT_COUNT_H
#define CT_HOT_COUNT_H

#include "hot_record.h"
#include "loss.h"
#include "reserve.h"
#include "ring.h"
#include "row_selection.h"

/* Like hold() in hot_record.h, but for a call that writes nothing to the ring. */
static inline __attribute__((always_inline)) bool hold_to_count(struct ct_producer *self)
{
    if (CT_UNLIKELY(!self->idle))
        return false;
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);
    CT_TEST_POINT("hot_count.held");
    if (CT_LIKELY(self->limit != 0))
        return true;
    self->idle = 1;
    return false;
}

static inline __attribute__((always_inline)) void finish_counted(struct ct_producer *self, uint32_t depth)
{
    ct_lane_leave(self->lane, depth);
    CT_TEST_POINT("hot_count.left");
    atomic_signal_fence(memory_order_seq_cst); /* see ct_record_take_over() */
    self->depth = depth;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
}

/* Counts a call that the selection leaves out. Returns false if it did nothing. */
static inline __attribute__((always_inline)) bool
count_skipped(const struct ct_row *row, struct ct_producer *self, struct entered_call call)
{
    const uint16_t id = atomic_load_explicit(&row->skip_id, memory_order_relaxed);
    if (CT_UNLIKELY(!id || !hold_to_count(self)))
        return false;
    ct_record_skip_held(self, id, ct_hot_now(self) - call.start, 0);
    self->trees += ct_outermost(self, call.depth);
    finish_counted(self, call.depth);
    if (CT_UNLIKELY(ct_wants_attention(self->lane)))
        ct_attach_apply(self);
    return true;
}

/* Counts a call that moved no bytes, if the ring is still as full as at the previous call. `id` is the
 * function number, and `slots` is the length of the record. If only the reserve has room, a low-priority call
 * (`says_little`, and not long) is counted as skipped. Any other call may use the reserve, and is therefore
 * not counted here. If there is no room even in the reserve, the call is counted as lost. Returns false if it
 * did nothing. */
static inline __attribute__((always_inline)) bool
count_full(struct ct_producer *self, uint16_t id, struct entered_call call, uint32_t slots, bool says_little)
{
    if (CT_UNLIKELY(!hold_to_count(self)))
        return false;
    const uint64_t needed = self->position + slots, end = ct_hot_now(self);
    const bool full = needed > self->full_end, more = !says_little || end - call.start >= self->long_ticks;
    if (CT_UNLIKELY(!ct_record_is_still_full(self, needed) || (more && !full))) {
        self->idle = 1;
        return false;
    }
    if (more)
        ct_reserve_note_lost(self, slots);
    ct_record_lose_held(self, full ? self->full_cause : CT_LOSS_PRESSURE, id, call.start, end, 0);
    finish_counted(self, call.depth);
    return true;
}

/* Counts a call without a decoder that could not be recorded on the fast path. `id` is 0 if the selection
 * leaves the call out. Returns false if it did nothing. */
static inline __attribute__((always_inline)) bool count_plain(const struct ct_row *row,
                                                              struct ct_producer *self, uint16_t id,
                                                              struct entered_call call, uint64_t result)
{
    if (!id)
        return count_skipped(row, self, call);
    return count_full(self, id, call, 1, (int32_t)result == 0 && ct_row_says_little(row));
}

#endif
