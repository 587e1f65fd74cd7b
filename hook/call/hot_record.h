/* The hot path's way to write a record, for entry.c and wrap.c. A lane is held from hold() to
 * finish_record(); only then does what is found in it stay, because a signal handler's calls before it have
 * written records, and those that come meanwhile are counted. */
#ifndef CT_HOT_RECORD_H
#define CT_HOT_RECORD_H

#include "attach.h"
#include "test_point.h"
#include "trampoline.h"

#include <string.h>

/* A call on its way out, as far as it is known. */
struct open_call {
    uint64_t start;
    uint32_t depth;
};

/* Takes the lane for a record of so many slots. False: the call has to go the slow way. */
static inline __attribute__((always_inline)) bool hold(struct ct_producer *self, uint32_t slots)
{
    if (CT_UNLIKELY(!self->idle))
        return false;
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);
    CT_TEST_POINT("hot_record.held");
    /* The limit is 0 where the lane is not ours any more: it was given back, or this is a fork's child. */
    if (CT_LIKELY(self->position + slots <= self->limit &&
                  (slots == 1 || (self->position & self->mask) + slots <= self->mask + 1)))
        return true;
    self->idle = 1;
    return false;
}

/* Begins a record of so many slots in a lane that is held, and writes what every record begins with. */
static inline __attribute__((always_inline)) struct ct_record *begin_record(struct ct_producer *self,
                                                                            uint16_t id, enum ct_kind kind,
                                                                            uint32_t slots,
                                                                            const struct open_call *call)
{
    const uint64_t position = self->position;
    ct_lane_announce(self->lane, position);
    CT_TEST_POINT("hot_record.announced");
    const uint64_t end = ct_counter_read();
    CT_TEST_POINT("hot_record.clock_read");
    struct ct_record *record =
        (struct ct_record *)(void *)(self->ring + (position & self->mask) * CT_SLOT_BYTES);
    record->end = end;
    record->span = ct_span(end - call->start, call->depth, 0);
    CT_TEST_POINT("hot_record.half_written");
    /* As one word, since compilers make three of it. */
    const uint32_t head = id | (uint32_t)kind << 16 | slots << 24;
    memcpy(&record->function, &head, sizeof(head));
    return record;
}

static inline __attribute__((always_inline)) void finish_record(struct ct_producer *self, uint32_t slots,
                                                                const struct open_call *call)
{
    struct ct_lane *lane = self->lane;
    const uint64_t position = self->position + slots;
    CT_TEST_POINT("hot_record.written");
    ct_lane_publish(lane, position);
    CT_TEST_POINT("hot_record.published");
    ct_lane_leave(lane, call->depth);
    CT_TEST_POINT("hot_record.left");
    self->position = position;
    atomic_signal_fence(memory_order_seq_cst); /* see ct_record_take_over() */
    self->depth = call->depth;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    CT_TEST_POINT("hot_record.released");
    if (CT_UNLIKELY(ct_wants_doorbell(self, lane, position)))
        ct_attach_heed(self);
}

/* The whole record of a call without a decoder. False: nothing is written. */
static inline __attribute__((always_inline)) bool write_plain(struct ct_producer *self, uint16_t id,
                                                              const struct open_call *call, uint64_t result)
{
    if (CT_UNLIKELY(!id || !hold(self, 1)))
        return false;
    struct ct_record *record = begin_record(self, id, CT_KIND_CALL, 1, call);
    record->status = (int32_t)result;
    record->value = 0;
    finish_record(self, 1, call);
    return true;
}

#endif
