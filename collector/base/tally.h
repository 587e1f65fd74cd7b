/* Counts occurrences per key since the last clear, with the times of the first and the last. Open addressing.
 * A process's batch has about a hundred keys. Most of them stay in the cache. Used by a single thread. */
#ifndef CT_TALLY_H
#define CT_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct ct_tally_count {
    uint64_t key;
    uint64_t count; /* 0: an empty slot */
    uint64_t first_ns, last_ns;
};

/* A zeroed struct is an empty tally. */
struct ct_tally {
    struct ct_tally_count *slots;
    size_t count, mask;
};

/* Counts one occurrence. Returns false, and counts nothing, if out of memory. */
_Bool ct_tally_add(struct ct_tally *tally, uint64_t key, uint64_t at_ns);
/* Calls `each` for every key until a call returns nonzero. Returns that value, or 0. */
int ct_tally_each(const struct ct_tally *tally, int (*each)(const struct ct_tally_count *count, void *data),
                  void *data);
/* Resets the counts. Frees the memory of a tally that has grown large. */
void ct_tally_clear(struct ct_tally *tally);
void ct_tally_finish(struct ct_tally *tally);

/* ---- durations ---- */

/* Durations are counted in buckets, sixteen per power of two, so the middle of a bucket is off by at most one
 * thirty-second. Below 32 ns, a bucket is one nanosecond. The view `durations` has the bounds. */
enum { CT_DURATION_BUCKETS = 60 * 16 };
static inline uint32_t ct_duration_bucket(uint64_t ns)
{
    const uint32_t shift = ns < 16 ? 0 : 59 - (uint32_t)__builtin_clzll(ns);
    return shift * 16 + (uint32_t)(ns >> shift);
}

#endif
