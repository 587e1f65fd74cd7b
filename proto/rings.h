/* A lane's rings, and the locks for allocating and removing their memory. lane.h describes how rings are
 * used. */
#ifndef CT_PROTO_RINGS_H
#define CT_PROTO_RINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Each ring is 2^CT_RING_STEP times as long as the next shorter one. From lane CT_LANES_ROOMY on, the
 * shortest ring has only half its usual length, since processes with so many threads would otherwise take too
 * much memory. */
enum { CT_RINGS = 6, CT_RING_FIRST_SLOTS = 4096, CT_RING_STEP = 3, CT_LANES_ROOMY = 128 };

/* Return how many slots ring `level` of a lane has, how many rings the lane has, and how many slots all of
 * its rings have in total. `most` is the limit on the longest ring, in slots. */
static inline uint64_t ct_ring_slots(uint32_t lane, uint32_t level, uint64_t most)
{
    if (level == 0)
        return lane < CT_LANES_ROOMY ? CT_RING_FIRST_SLOTS : CT_RING_FIRST_SLOTS / 2;
    const uint64_t slots = (uint64_t)CT_RING_FIRST_SLOTS << CT_RING_STEP * level;
    return slots < most ? slots : most;
}
static inline uint32_t ct_ring_count(uint32_t lane, uint64_t most)
{
    uint32_t count = 1;
    while (count < CT_RINGS && ct_ring_slots(lane, count - 1, most) < most)
        count++;
    return count;
}
static inline uint64_t ct_ring_slots_all(uint32_t lane, uint64_t most)
{
    uint64_t all = 0;
    for (uint32_t level = 0; level < ct_ring_count(lane, most); level++)
        all += ct_ring_slots(lane, level, most);
    return all;
}

/* Returns the level of the ring that contains the slot at `position`. Sets *until to the position at which
 * the next ring was begun, or to UINT64_MAX if no ring was begun later. */
static inline uint32_t ct_ring_at(const uint64_t since[CT_RINGS], uint32_t count, uint64_t position,
                                  uint64_t *until)
{
    uint32_t found = 0;
    uint64_t best = since[0] <= position ? since[0] : 0;
    *until = UINT64_MAX;
    for (uint32_t level = 0; level < count; level++) {
        if (since[level] > position) {
            *until = since[level] < *until ? since[level] : *until;
        } else if (since[level] > best) {
            best = since[level];
            found = level;
        }
    }
    return found;
}

/* The side that holds a ring's lock, and may change the ring's memory. */
enum ct_ring_lock { CT_RING_LOCK_FREE = 0, CT_RING_LOCK_PRODUCER = 1, CT_RING_LOCK_COLLECTOR = 2 };

/* Set in a lane's `level` if there was no memory for a longer ring. */
enum { CT_LEVEL_REFUSED = 256 };

/* Takes a ring's lock. Returns false if the other side holds it. Pairs with the release in
 * ct_ring_lock_release(). */
static inline bool ct_ring_lock_take(_Atomic uint8_t *lock, enum ct_ring_lock who)
{
    uint8_t open = CT_RING_LOCK_FREE;
    return atomic_compare_exchange_strong_explicit(lock, &open, (uint8_t)who, memory_order_acquire,
                                                   memory_order_relaxed);
}
/* Pairs with the acquire in ct_ring_lock_take(). */
static inline void ct_ring_lock_release(_Atomic uint8_t *lock)
{
    atomic_store_explicit(lock, CT_RING_LOCK_FREE, memory_order_release);
}

#endif
