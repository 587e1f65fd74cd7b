/* Records in the calling thread's ring: room for them, writing them, and the lane held meanwhile. */
#ifndef CT_RING_H
#define CT_RING_H

#include "machine.h"
#include "producer.h"

/* True if there is room for a record of so many slots, in another ring of the lane if need be. Else
 * `full_tail` and `full_cause` say why not. */
bool ct_record_room(struct ct_producer *producer, uint32_t slots);
/* The same for a low-priority call, which leaves the reserve free (reserve.h). */
bool ct_record_room_for_all(struct ct_producer *producer, uint32_t slots);
/* Behind a refusal of that: whether there is room in the reserve. */
bool ct_record_reserve(struct ct_producer *producer, uint32_t slots);
/* True if a ring that had no room for a record that ends at `wanted` is as it was: nothing was read of it
 * since, and the collector is awake. False once in a while: whether it may grow, or the collector sleeps, is
 * looked at then. */
static inline bool ct_record_is_still_full(struct ct_producer *producer, uint64_t wanted)
{
    enum { LOOKS = 256 };
    return wanted > producer->limit && ct_lane_tail(producer->lane) == producer->full_tail &&
           ct_lane_wake(producer->lane) != 0 && ++producer->full_calls % LOOKS != 0;
}
/* Asks for a line that will be written some calls later than that at `slot`. The ring's lines come from the
 * processor that has read them last, and the program's next locked instruction would wait until the stores to
 * them are made. */
static inline void ct_ring_prefetch(const uint8_t *slot)
{
    enum { AHEAD_BYTES = 128 };
    ct_prefetch_to_write(slot + AHEAD_BYTES);
}
/* Writes a record of as many slots, for which there is room, at the producer's position. The caller holds the
 * lane (idle is 0) and has announced. */
void ct_record_write(struct ct_producer *producer, const struct ct_record *record, const void *payload,
                     size_t payload_bytes);

/* For the new owner of a lane. */
void ct_record_begin_lane(struct ct_producer *producer);
/* The position that the lane shows, which others can write: what is further off than a record is not
 * believed. */
uint64_t ct_record_published(const struct ct_producer *producer);

/* The lane, which is idle, held for a record that is no call's, by a function whose frame is there on the
 * stack, and announced; and given up, what was written being published. */
void ct_record_hold(struct ct_producer *producer, uintptr_t frame);
void ct_record_release(struct ct_producer *producer);
/* Makes a lane writable again whose holder was left in the middle of a record. */
void ct_record_take_over(struct ct_producer *producer);
/* True if the record that holds the lane will never be finished, as a call at `frame` with `depth` open calls
 * around it finds out. */
bool ct_record_is_left(const struct ct_producer *producer, uint32_t depth, uintptr_t frame);
/* Makes a lane writable again that was left so; true if the lane is idle. */
static inline bool ct_record_recover(struct ct_producer *producer, uint32_t depth, uintptr_t frame)
{
    if (CT_UNLIKELY(!producer->idle) && ct_record_is_left(producer, depth, frame))
        ct_record_take_over(producer);
    return producer->idle;
}

#endif
