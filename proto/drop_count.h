/* Counters for calls that are not in any ring, by function. The number of counters per lane is limited. */
#ifndef CT_PROTO_DROP_COUNT_H
#define CT_PROTO_DROP_COUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CT_LANE_DROPS = 110, CT_DROP_PROBES = 8 };

/* Distinguishes lost calls from calls that were skipped (on request, or because a ring was nearly full). */
enum ct_drop_kind { CT_DROP_LOST = 1, CT_DROP_SKIPPED = 2 };

/* Counts the lost or skipped calls to one function, made by all owners of the lane together. The holder of
 * the lane writes the struct with plain stores. `calls` is stored last, with release, so the sums that are
 * read after it include at least `calls` calls. Pairs with the acquire in the collector's add_lane(). */
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

/* Returns the i-th place where the key's counters may be, with i from 0 to CT_DROP_PROBES - 1. Functions are
 * numbered in the order of their first calls, so those called first share their place with no other
 * function. */
static inline uint32_t ct_drop_place(uint32_t key, uint32_t i)
{
    return (key / 2 + i) % CT_LANE_DROPS;
}

#endif
