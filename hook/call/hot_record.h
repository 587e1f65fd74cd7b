/* Writes a record on the hot path of entry.c and wrap.c. A lane is held from hold() to finish_record(), and
 * its state is stable only during that time. A signal handler's calls can write records before hold(), but
 * are only counted while the lane is held. */
#ifndef CT_HOT_RECORD_H
#define CT_HOT_RECORD_H

#include "attach.h"
#include "correlation.h"
#include "hot_clock.h"
#include "ring.h"
#include "test_point.h"
#include "trampoline.h"

#include <string.h>

/* A call that has been entered. */
struct entered_call {
    uint64_t start;
    uint32_t depth;
};

/* Holds the lane for a record of `slots` slots. Returns false if the call must take the slow path. */
static inline __attribute__((always_inline)) bool hold(struct ct_producer *self, uint32_t slots)
{
    if (CT_UNLIKELY(!self->idle))
        return false;
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);
    CT_TEST_POINT("hot_record.held");
    /* The limit is 0 if the thread no longer owns the lane, because it has given the lane back or is in the
     * child of a fork. */
    if (CT_LIKELY(self->position + slots <= self->limit &&
                  (slots == 1 || (self->position & self->mask) + slots <= self->mask + 1)))
        return true;
    self->idle = 1;
    return false;
}

/* The position of the next record in a held lane. */
struct record_place {
    struct ct_lane *lane;
    uint64_t position;
};

/* Announces a call's record, and reads the call's return time. */
static inline __attribute__((always_inline)) struct record_place begin_record(struct ct_producer *self,
                                                                              uint64_t *end)
{
    const struct record_place place = { self->lane, self->position };
    ct_lane_announce(place.lane, place.position);
    CT_TEST_POINT("hot_record.announced");
    *end = ct_hot_now(self);
    CT_TEST_POINT("hot_record.clock_read");
    return place;
}

static inline __attribute__((always_inline)) void *record_at(struct ct_producer *self,
                                                             const struct record_place *place)
{
    uint8_t *slot = self->ring + (place->position & self->mask) * CT_SLOT_BYTES;
    ct_ring_prefetch(slot);
    return slot;
}

static inline __attribute__((always_inline)) void
finish_record(struct ct_producer *self, const struct record_place *place, uint32_t slots, uint32_t depth)
{
    struct ct_lane *lane = place->lane;
    const uint64_t position = place->position + slots;
    CT_TEST_POINT("hot_record.written");
    ct_lane_publish(lane, position);
    CT_TEST_POINT("hot_record.published");
    ct_lane_leave(lane, depth);
    CT_TEST_POINT("hot_record.left");
    self->position = position;
    if (CT_UNLIKELY(self->noted))
        ct_correlation_write(self, depth);
    atomic_signal_fence(memory_order_seq_cst); /* see ct_record_take_over() */
    self->depth = depth;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    CT_TEST_POINT("hot_record.released");
    if (CT_UNLIKELY(ct_wants_doorbell(lane, position)))
        ct_attach_apply(self);
}

/* Writes the record of a call without a decoder. Returns false if nothing was written. A struct ct_short has
 * no room for a long duration or an unusual status. */
static inline __attribute__((always_inline)) bool
write_plain(struct ct_producer *self, uint16_t id, const struct entered_call *call, uint64_t result)
{
    if (CT_UNLIKELY(!id || !hold(self, 1)))
        return false;
    uint64_t end;
    const struct record_place place = begin_record(self, &end);
    const uint64_t ticks = end - call->start;
    if (CT_UNLIKELY(!ct_short_fits(ticks, (int32_t)result))) {
        ct_lane_publish(place.lane, place.position); /* withdraws the announcement */
        self->idle = 1;
        return false;
    }
    struct ct_short *record = record_at(self, &place);
    record->end = end;
    CT_TEST_POINT("hot_record.half_written");
    record->head = ct_head(id, CT_KIND_CALL, 1);
    record->span = ct_short_span(ticks, (int32_t)result, call->depth);
    finish_record(self, &place, 1, call->depth);
    return true;
}

#endif
