/* Counters of the calls that are in no ring, by function: a lane has some. */
#ifndef CT_PROTO_UNSENT_H
#define CT_PROTO_UNSENT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CT_LANE_UNSENT = 110, CT_UNSENT_PROBES = 8 };

/* What became of calls that were seen and are in no ring. */
enum ct_unsent_kind { CT_UNSENT_LOST = 1, CT_UNSENT_SKIPPED = 2 };

/* The calls of one function of which that became, by all owners of the lane together. Whoever holds the lane
 * writes it with plain stores. Calls are stored last, with release: what was read behind them is never less
 * than theirs. Pairs with the acquire in the collector's add_lane(). */
struct ct_unsent {
    _Atomic uint32_t key; /* ct_unsent_key(); 0: the place is free. It stays what it was set to */
    uint32_t reserved;
    _Atomic uint64_t calls;
    _Atomic uint64_t ticks;
    _Atomic uint64_t bytes;
};
static_assert(sizeof(struct ct_unsent) == 32, "ct_unsent");

static inline uint32_t ct_unsent_key(uint32_t function, enum ct_unsent_kind kind)
{
    return function << 2 | (uint32_t)kind;
}

/* The i-th place that the counters of that key may have, from 0 to CT_UNSENT_PROBES - 1. Functions are
 * numbered in the order of their first calls: the first have places of their own. */
static inline uint32_t ct_unsent_place(uint32_t key, uint32_t i)
{
    return (key / 2 + i) % CT_LANE_UNSENT;
}

#endif
