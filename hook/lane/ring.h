/* Makes room for records in the calling thread's ring, writes them, and holds the lane while they are
 * written. */
#ifndef CT_RING_H
#define CT_RING_H

#include "machine.h"
#include "producer.h"

/* True if there is room for a record of `slots` slots, after switching to another ring of the lane if
 * necessary. If there is none, sets `full_tail` and `full_cause` (producer.h). */
bool ct_record_room(struct ct_producer *producer, uint32_t slots);
/* Like ct_record_room(), but for a low-priority call, which leaves the reserve free (reserve.h). */
bool ct_record_room_for_all(struct ct_producer *producer, uint32_t slots);
/* Called after ct_record_room_for_all() has failed. True if the reserve has room for the record. */
bool ct_record_reserve(struct ct_producer *producer, uint32_t slots);
/* True if a ring that had no room for a record ending at `wanted` still has none. In that case, the collector
 * has read nothing from the ring since it was found full, and the lane needs no attention. Returns false once
 * every LOOKS calls, so that the caller checks whether the ring can grow and whether the collector is
 * asleep. */
static inline bool ct_record_is_still_full(struct ct_producer *producer, uint64_t wanted)
{
    enum { LOOKS = 256 };
    return wanted > producer->limit && ct_lane_tail(producer->lane) == producer->full_tail &&
           ct_lane_wake(producer->lane) != 0 && ++producer->full_calls % LOOKS != 0;
}
/* Prefetches a cache line that will be written a few calls after the line at `slot`. The ring's cache lines
 * must be fetched from the processor that last read them. Without the prefetch, the program's next locked
 * instruction would wait for the hook's stores to the ring. */
static inline void ct_ring_prefetch(const uint8_t *slot)
{
    enum { AHEAD_BYTES = 128 };
    ct_prefetch_to_write(slot + AHEAD_BYTES);
}
/* Writes a record of `record->slots` slots at the producer's position. The caller has made room, holds the
 * lane (idle is 0) and has announced the record. */
void ct_record_write(struct ct_producer *producer, const struct ct_record *record, const void *payload,
                     size_t payload_bytes);

/* Resets the producer for the new owner of a lane. */
void ct_record_begin_lane(struct ct_producer *producer);
/* Returns the published position of the lane. Other processes can overwrite it, so it is ignored if it
 * differs from the producer's position by more than a pad and a record. */
uint64_t ct_record_published(const struct ct_producer *producer);

/* ct_record_hold() holds an idle lane and announces a record that does not belong to a call. `frame` is the
 * stack address of the calling function's frame. ct_record_release() publishes the written records and makes
 * the lane idle again. */
void ct_record_hold(struct ct_producer *producer, uintptr_t frame);
void ct_record_release(struct ct_producer *producer);
/* Makes a lane writable again after the code that held it was left in the middle of writing a record. */
void ct_record_take_over(struct ct_producer *producer);
/* True if a call at `frame`, with `depth` open calls around it, proves that the lane is held for a record
 * that will never be finished. */
bool ct_record_is_left(const struct ct_producer *producer, uint32_t depth, uintptr_t frame);
/* Makes a lane writable again if ct_record_is_left() returns true. Returns true if the lane is idle. */
static inline bool ct_record_recover(struct ct_producer *producer, uint32_t depth, uintptr_t frame)
{
    if (producer->idle)
        producer->writer = 0;
    else if (ct_record_is_left(producer, depth, frame))
        ct_record_take_over(producer);
    return producer->idle;
}

#endif
