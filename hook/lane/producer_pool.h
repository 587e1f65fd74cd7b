/* The pool of producers, and the mappings of their lanes. The pool has as many producers as the largest
 * number of threads that had lanes at the same time. A lane belongs to a thread until the thread gives it
 * back, and another thread can then take it. */
#ifndef CT_PRODUCER_POOL_H
#define CT_PRODUCER_POOL_H

#include "producer.h"

enum ct_producer_owner {
    CT_PRODUCER_SPARE = 0, /* no owner, and no lane of the current segment */
    CT_PRODUCER_FREE,      /* its thread has given the lane back; counts as spare if the lane is in an earlier
                            * segment */
    CT_PRODUCER_OWNED,
    /* Its thread dropped it while a call was open. The call may be about to enter or to return, and may end
     * after a signal handler's call. */
    CT_PRODUCER_LEFT,
};
void ct_producer_set_owner(struct ct_producer *producer, enum ct_producer_owner owner);

/* ct_producer_take_free() takes a lane that a thread has given back. ct_producer_take_new() makes a new lane,
 * with system calls. Both return NULL if there is none, and require the process lock. */
struct ct_producer *ct_producer_take_free(void);
struct ct_producer *ct_producer_take_new(struct ct_segment *segment);
/* True if one of these two functions may succeed. */
bool ct_producer_may_take(void);
/* Makes the producer's lane available to other threads. */
void ct_producer_give_back(struct ct_producer *producer);

/* The mappings of a lane's rings. A fork's child inherits both this struct and the memory. The shortest ring
 * stays mapped, so that the producer can switch to it even when system calls are not allowed. */
struct ct_ring_map {
    uint8_t *ring; /* the shortest ring; NULL: none is mapped */
    uint64_t ring_bytes;
    uint8_t *longer; /* one longer ring, or NULL */
    uint64_t longer_bytes;
    uint8_t *used; /* the ring in use */
    bool is_kept;  /* in a fork's child: private memory is mapped there permanently */
};
struct ct_ring_map *ct_ring_map(const struct ct_producer *producer);
/* Unmaps the rings of a lane that is no longer written. */
void ct_ring_map_drop(struct ct_ring_map *map);

/* Maps private memory over the lanes of a segment that is being given up. Late writes then do no harm, and
 * the shared memory is freed. Requires the process lock. */
void ct_producers_abandon(void);
/* In a fork's child, maps private memory over the lane that the calling thread had in the parent. `map` is
 * NULL if it had none. Afterwards, no lane is free. */
void ct_producers_redirect(struct ct_producer *producer, struct ct_ring_map *map, struct ct_lane *lane);

#endif
