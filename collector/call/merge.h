/* Merges the calls of many streams into one sequence, ordered by return time. */
#ifndef CT_MERGE_H
#define CT_MERGE_H

#include "call.h"

#include <stdbool.h>
#include <stddef.h>

/* Limits one user's share of a batch. The share is counted in rows of plain calls. Other work counts as the
 * number of such rows that could be stored in the same time. */
struct ct_budget {
    uint64_t spent, allowance;
    bool is_held; /* some of the user's calls must wait for the next batch */
};

/* A stream of calls, ordered by return time and fetched in portions. */
struct ct_stream {
    /* Fetches more calls, and sets `next` and `end`. Returns false if the stream currently has no call that
     * returned at or before `until_ns`. */
    bool (*fill)(struct ct_stream *stream, uint64_t until_ns);
    struct ct_call *next, *end; /* the calls that were fetched but not taken yet */
    struct ct_budget *budget;   /* NULL: unlimited */
};

/* A heap entry holds a copy of its stream's time, so that comparisons do not touch the stream. */
struct ct_merge_entry {
    uint64_t due_ns;
    struct ct_stream *stream;
};

/* A heap of the streams that have a waiting call, earliest first. */
struct ct_merge {
    struct ct_merge_entry *heap;
    size_t count, capacity;
    uint64_t until_ns;
};

void ct_merge_begin(struct ct_merge *merge, uint64_t until_ns);
/* Adds a stream if it has a call. Returns 0 or -ENOMEM. */
int ct_merge_add(struct ct_merge *merge, struct ct_stream *stream);
/* Returns the time of the next call, which must exist. */
static inline uint64_t ct_merge_due_ns(const struct ct_merge *merge)
{
    return merge->heap[0].due_ns;
}
/* Returns the next call, or NULL at the end. The next call stays the same until ct_merge_take() is called. */
static inline const struct ct_call *ct_merge_first(const struct ct_merge *merge)
{
    return merge->count > 0 ? merge->heap[0].stream->next : NULL;
}
/* Takes the next call. There must be one. */
void ct_merge_take(struct ct_merge *merge);
void ct_merge_finish(struct ct_merge *merge);

#endif
