/* Counters, by function, for calls that are not in any ring. Each lane has a limited number of counters. */
#ifndef CT_PROTO_DROP_COUNT_H
#define CT_PROTO_DROP_COUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CT_LANE_DROPS = 108, CT_DROP_PROBES = 8 };

/* Distinguishes lost calls from calls that were skipped (on request, or because a ring was nearly full). */
enum ct_drop_kind { CT_DROP_LOST = 1, CT_DROP_SKIPPED = 2 };

/* Counts the lost or skipped calls to a function, for all owners of the lane together. The holder of the lane
 * writes the struct with plain stores. `calls` is stored last, with release, so sums that are read after it
 * include at least `calls` calls. Pairs with the acquire in the collector's add_lane(). */
struct ct_drop_count {
    _Atomic uint32_t key; /* ct_drop_key(); never changed once set; 0: the place is free */
    uint32_t reserved;
    _Atomic uint64_t calls;
    _Atomic uint64_t ticks;
    _Atomic uint64_t bytes;
};
static_assert(sizeof(struct ct_drop_count) == 32, "ct_drop_count");

static inline uint32_t ct_drop_key(uint32_t function, enum ct_drop_kind kind)
{
    return function << 2 | (uint32_t)kind;
}

/* Returns the i-th possible place for the key's counters, with i from 0 to CT_DROP_PROBES - 1. Functions are
 * numbered in the order of their first calls, so the first ones called have a place to themselves. */
static inline uint32_t ct_drop_place(uint32_t key, uint32_t i)
{
    return (key / 2 + i) % CT_LANE_DROPS;
}

#endif
