/* The reserve: the part of a ring that is closed to low-priority calls (ct_row_says_little()). A ring has one
 * if its lane cannot switch to a longer ring. The reserve is at least a quarter of the ring. It is larger if
 * the lane's records show many important calls, and grows after important calls were lost. */
#ifndef CT_RESERVE_H
#define CT_RESERVE_H

#include "producer.h"

/* For the new owner of a lane. */
void ct_reserve_begin(struct ct_producer *producer);

/* Returns the number of slots of the ring in use that all calls may fill. The reserve is the rest. */
uint64_t ct_reserve_share(const struct ct_producer *producer);

/* Examines the records from `step` up to the position, and enlarges the reserve if many are important. Sets
 * `is_sampled`, unless there are too few records. The caller ensures that these slots can be read. */
void ct_reserve_sample(struct ct_producer *producer);

/* Counts an important call that was lost, because the ring had no room for its slots. */
static inline void ct_reserve_note_lost(struct ct_producer *producer, uint32_t slots)
{
    producer->lost_slots += slots;
}

/* Called when the collector has read some of a ring that was full. Enlarges the reserve by more than the
 * slots that were lost. If none were lost and most of the ring is empty, takes back one halving. */
void ct_reserve_adapt(struct ct_producer *producer);

#endif
