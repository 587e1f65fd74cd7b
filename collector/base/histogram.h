/* Counts how often each key has occurred since the counts were last cleared, and keeps the times of its first
 * and last occurrence. Uses open addressing. A process uses about a hundred keys per batch, so most of the
 * table stays in the processor's cache. For use by a single thread. */
#ifndef CT_HISTOGRAM_H
#define CT_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

struct ct_histogram_count {
    uint64_t key;
    uint64_t count; /* 0: an empty slot */
    uint64_t first_ns, last_ns;
};

/* A zeroed struct is an empty histogram. */
struct ct_histogram {
    struct ct_histogram_count *slots;
    size_t count, mask;
};

/* Counts one occurrence. If out of memory, returns false and counts nothing. */
_Bool ct_histogram_add(struct ct_histogram *histogram, uint64_t key, uint64_t at_ns);
/* Calls `each` for every key, until it returns nonzero. Returns that value, or 0. */
int ct_histogram_each(const struct ct_histogram *histogram,
                      int (*each)(const struct ct_histogram_count *count, void *data), void *data);
/* Resets the counts. Frees the memory of a histogram that has grown large. */
void ct_histogram_clear(struct ct_histogram *histogram);
void ct_histogram_finish(struct ct_histogram *histogram);

#endif
