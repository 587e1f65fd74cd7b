/* Chooses a lane's ring, and the position up to which it may be written. This is the slow path of ring.c. */
#ifndef CT_RING_RESIZE_H
#define CT_RING_RESIZE_H

#include "producer.h"

/* Returns the position at which a record of `slots` slots would end. If the record does not fit at the end of
 * the ring, a pad precedes it. */
static inline uint64_t ct_ring_record_end(const struct ct_producer *producer, uint32_t slots)
{
    const uint64_t capacity = producer->mask + 1, place = producer->position & producer->mask;
    const uint64_t pad = place + slots > capacity ? capacity - place : 0;
    return producer->position + pad + slots;
}

/* Makes room for a record of `slots` slots. Returns false if there is none. The thread must hold the lane. */
bool ct_ring_make_room(struct ct_producer *producer, uint32_t slots);
/* Called after ct_ring_make_room() has failed. Makes room in the ring's reserve, if the ring has one. */
bool ct_ring_use_reserve(struct ct_producer *producer, uint32_t slots);

#endif
