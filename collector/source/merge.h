/* The merge: calls of many sources in the order of their return. A source is whatever yields calls in that
 * order; a thread's lane is the first kind (shm_lane.c), others need a file of their own and no change here. */
#ifndef CT_MERGE_H
#define CT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call as the store takes it. */
struct ct_row {
    uint64_t end_ns;
    uint64_t duration_ns;
    int64_t site_id;
    uint64_t bytes;
    bool has_bytes;
};

struct ct_source;

struct ct_source_class {
    /* Finds the source's next call and its return time, `source->end_ns`; it stays the next one until taken.
     * False when there is none now, or none that returned at or before `until_ns`. */
    bool (*peek)(struct ct_source *source, uint64_t until_ns);
    /* Takes that call. */
    void (*take)(struct ct_source *source, struct ct_row *row);
};

struct ct_source {
    const struct ct_source_class *class;
    uint64_t end_ns;
};

/* A source in the heap, with the time at which it was put there: comparing touches no source. */
struct ct_merge_entry {
    uint64_t end_ns;
    struct ct_source *source;
};

/* A heap of the sources that have a call waiting, earliest first. */
struct ct_merge {
    struct ct_merge_entry *heap;
    size_t count, capacity;
    uint64_t until_ns;
};

void ct_merge_begin(struct ct_merge *merge, uint64_t until_ns);
/* Adds a source if it has a call; 0 or -ENOMEM. */
int ct_merge_add(struct ct_merge *merge, struct ct_source *source);
/* When the next call of all returned; there must be one. */
static inline uint64_t ct_merge_peek(const struct ct_merge *merge)
{
    return merge->heap[0].end_ns;
}
/* The next call of all; false at the end. */
bool ct_merge_next(struct ct_merge *merge, struct ct_row *row);
void ct_merge_finish(struct ct_merge *merge);

#endif
