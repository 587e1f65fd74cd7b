/* The pool of producers, and the mappings of their lanes. The number of producers is the largest number of
 * lanes that threads have ever had at the same time. A lane belongs to a thread until the thread gives it
 * back. Another thread can then take it. */
#ifndef CT_PRODUCER_POOL_H
#define CT_PRODUCER_POOL_H

#include "producer.h"

enum ct_producer_owner {
    CT_PRODUCER_SPARE = 0, /* no owner, and no lane in the current segment */
    CT_PRODUCER_FREE,      /* the thread has given the lane back; counts as spare if the lane is in an earlier
                            * segment */
    CT_PRODUCER_OWNED,
    /* The thread dropped the lane while a call was open. The call may have been in the middle of entering or
     * returning, and may end after a call made by a signal handler. */
    CT_PRODUCER_LEFT,
};
void ct_producer_set_owner(struct ct_producer *producer, enum ct_producer_owner owner);

/* ct_producer_take_free() takes a lane given back by a thread. ct_producer_take_new() creates a lane, which
 * requires system calls. Both return NULL if no lane is available, and require the process lock. */
struct ct_producer *ct_producer_take_free(void);
struct ct_producer *ct_producer_take_new(struct ct_segment *segment);
/* True if ct_producer_take_free() or ct_producer_take_new() may succeed. */
bool ct_producer_may_take(void);
/* Returns the number of open calls in all lanes whose function `counts`, except calls that wait at the gate
 * (gpu_gate.h). An open call that is nested too deep to be known counts as well. */
uint32_t ct_producers_open_calls(bool (*counts)(uint32_t function));
/* Makes the producer's lane available to other threads. */
void ct_producer_give_back(struct ct_producer *producer);

/* The mappings of a lane's rings. The child of a fork inherits both this struct and the memory. The shortest
 * ring stays mapped, so that the producer can switch to it even when system calls are not allowed. */
struct ct_ring_map {
    uint8_t *ring; /* the shortest ring; NULL: none is mapped */
    uint64_t ring_bytes;
    uint8_t *longer; /* one longer ring, or NULL */
    uint64_t longer_bytes;
    uint8_t *used; /* the current ring */
    bool is_kept;  /* in the child of a fork: private memory is mapped there permanently */
};
struct ct_ring_map *ct_ring_map(const struct ct_producer *producer);
/* Unmaps the rings of a lane that is no longer written to. */
void ct_ring_map_drop(struct ct_ring_map *map);

/* When a segment is being abandoned, maps private memory over its lanes, which frees the shared memory and
 * makes late writes harmless. Begins with the producer *next, whose number is 0 at first, and handles at most
 * `most` lanes of the epoch. Returns true after the last one, and otherwise false with *next set for the next
 * call. Requires the process lock. */
bool ct_producers_abandon(uint32_t epoch, uint32_t *next, uint32_t most);
/* In the child of a fork, maps private memory over the lane that the calling thread had in the parent. `map`
 * is NULL if the thread had no lane. Afterwards, no lane is free. */
void ct_producers_redirect(struct ct_producer *producer, struct ct_ring_map *map, struct ct_lane *lane);

#endif
