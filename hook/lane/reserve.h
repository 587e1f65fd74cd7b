/* The reserve is the part of a ring that is closed to low-priority calls (ct_row_says_little()). A ring has a
 * reserve if its lane cannot switch to a longer ring. The reserve is at least a quarter of the ring. It is
 * larger if many of the lane's records are important calls, and it grows after important calls have been
 * lost. */
#ifndef CT_RESERVE_H
#define CT_RESERVE_H

#include "producer.h"

/* Resets the reserve for the new owner of a lane. */
void ct_reserve_begin(struct ct_producer *producer);

/* Returns the number of slots in the current ring that any call may fill. The remaining slots are the
 * reserve. */
uint64_t ct_reserve_share(const struct ct_producer *producer);

/* Examines the records from `step` up to the producer's position, and enlarges the reserve if many of them
 * are important. Sets `is_sampled` unless there are too few records. The caller ensures that the slots of
 * these records can be read. */
void ct_reserve_sample(struct ct_producer *producer);

/* Counts an important call that was lost because the ring had no room for its `slots` slots. */
static inline void ct_reserve_note_lost(struct ct_producer *producer, uint32_t slots)
{
    producer->lost_slots += slots;
}

/* Called when the collector has read part of a full ring. If important calls were lost, enlarges the reserve
 * by more slots than they needed. Otherwise, if most of the ring is empty, reduces the pressure by one step,
 * which doubles the share that low-priority calls may use. */
void ct_reserve_adapt(struct ct_producer *producer);

#endif
