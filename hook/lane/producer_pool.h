/* The pool of producers. It records where the lane of each is mapped. There are as many as threads have had
 * lanes at the same time. A lane belongs to a thread until the thread gives it back. The next thread then
 * takes it. */
#ifndef CT_PRODUCER_POOL_H
#define CT_PRODUCER_POOL_H

#include "producer.h"

enum ct_producer_owner {
    CT_PRODUCER_SPARE = 0, /* no owner, and no lane of the current segment */
    CT_PRODUCER_FREE,      /* its thread has given the lane back; spare if of an earlier segment */
    CT_PRODUCER_OWNED,
    /* Its thread let go of it during an open call. That call may be about to enter or return, and may end
     * after a signal handler's call. */
    CT_PRODUCER_LEFT,
};
void ct_producer_set_owner(struct ct_producer *producer, enum ct_producer_owner owner);

/* Take a lane that its thread gave back, or a new one. Both return NULL if there is none, and require the
 * process lock. ct_producer_take_new() makes system calls. */
struct ct_producer *ct_producer_take_free(void);
struct ct_producer *ct_producer_take_new(struct ct_segment *segment);
/* True if either of these may succeed. */
bool ct_producer_may_take(void);
/* Makes the lane available to the next thread. */
void ct_producer_give_back(struct ct_producer *producer);

/* The mappings of a lane's rings. A fork's child inherits both this struct and the memory. The shortest ring
 * stays mapped, so that the producer can switch to it where no system call is allowed. */
struct ct_ring_map {
    uint8_t *ring; /* the shortest ring; NULL: none is mapped */
    uint64_t ring_bytes;
    uint8_t *longer; /* one longer ring, or NULL */
    uint64_t longer_bytes;
    uint8_t *used; /* the ring in use */
    bool is_kept;  /* in a fork's child: private memory is mapped there for good */
};
struct ct_ring_map *ct_ring_map(const struct ct_producer *producer);
/* Unmaps the rings of a lane that is no longer written. */
void ct_ring_map_drop(struct ct_ring_map *map);

/* Called when the segment is given up. Maps private memory over its lanes, so that late writes do no harm and
 * the shared memory is freed. Requires the process lock. */
void ct_producers_abandon(void);
/* The same in a fork's child for one lane mapped in the parent, NULL for none. No other lane is free. */
void ct_producers_redirect(struct ct_producer *producer, struct ct_ring_map *map, struct ct_lane *lane);

#endif
