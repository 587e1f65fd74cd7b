/* Counters, by function, of calls that are in no ring. A lane has a limited number. */
#ifndef CT_PROTO_DROP_COUNT_H
#define CT_PROTO_DROP_COUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CT_LANE_DROPS = 110, CT_DROP_PROBES = 8 };

/* The reason that calls are in no ring: they were lost, or skipped. */
enum ct_drop_kind { CT_DROP_LOST = 1, CT_DROP_SKIPPED = 2 };

/* The calls of one function of one kind, by all owners of the lane together. The holder of the lane writes it
 * with plain stores. `calls` is stored last, with release, so the sums read after it cover at least those
 * calls. Pairs with the acquire in the collector's add_lane(). */
struct ct_drop_count {
    _Atomic uint32_t key; /* ct_drop_key(), never changed once set; 0: the place is free */
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

/* Returns the i-th place, with i from 0 to CT_DROP_PROBES - 1, that the key's counters may have. Functions
 * are numbered in the order of their first calls. The first ones have places of their own. */
static inline uint32_t ct_drop_place(uint32_t key, uint32_t i)
{
    return (key / 2 + i) % CT_LANE_DROPS;
}

#endif
