/* The buckets in which durations are counted, by the daemon for the table `duration` and by the tools for a
 * part of a trace. */
#ifndef CT_PROTO_DURATION_BUCKET_H
#define CT_PROTO_DURATION_BUCKET_H

#include <stdint.h>

/* There are sixteen buckets per power of two, so a duration differs from the midpoint of its bucket by at
 * most 1/32 of the duration. Below 32 ns, each bucket is one nanosecond wide. */
enum { CT_DURATION_BUCKETS = 60 * 16 };
static inline uint32_t ct_duration_bucket(uint64_t ns)
{
    const uint32_t shift = ns < 16 ? 0 : 59 - (uint32_t)__builtin_clzll(ns);
    return shift * 16 + (uint32_t)(ns >> shift);
}

/* Returns the shortest duration of a bucket. The bucket contains the durations below the next one's. The view
 * `durations` computes the same. */
static inline uint64_t ct_duration_bucket_from(uint32_t bucket)
{
    return bucket < 32 ? bucket : (uint64_t)(bucket % 16 + 16) << (bucket / 16 - 1);
}

#endif
