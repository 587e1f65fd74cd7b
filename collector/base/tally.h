/* Counts by key: how often each came since they were taken last, and when first and last. Open addressing; of
 * the hundred keys that a batch of a process has, most stay in the cache. Used by one thread. */
#ifndef CT_TALLY_H
#define CT_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct ct_tally_count {
    uint64_t key;
    uint64_t count; /* 0: an empty slot */
    uint64_t first_ns, last_ns;
};

/* All zero is an empty one. */
struct ct_tally {
    struct ct_tally_count *slots;
    size_t count, mask;
};

/* Counts one. False without memory; then nothing is counted. */
_Bool ct_tally_add(struct ct_tally *tally, uint64_t key, uint64_t at_ns);
/* Calls `each` for every key until one call does not return 0; returns that, or 0. */
int ct_tally_each(const struct ct_tally *tally, int (*each)(const struct ct_tally_count *count, void *data),
                  void *data);
/* Forgets the counts; one that has grown large gives its memory back. */
void ct_tally_clear(struct ct_tally *tally);
void ct_tally_finish(struct ct_tally *tally);

/* ---- durations ---- */

/* Durations are counted in buckets: sixteen for each doubling, so that the middle of a bucket is off by a
 * thirty-second at most; below 32 ns a bucket is a nanosecond. The view `durations` has their bounds. */
enum { CT_DURATION_BUCKETS = 60 * 16 };
static inline uint32_t ct_duration_bucket(uint64_t ns)
{
    const uint32_t shift = ns < 16 ? 0 : 59 - (uint32_t)__builtin_clzll(ns);
    return shift * 16 + (uint32_t)(ns >> shift);
}

#endif
