/* The merge: calls of many streams in the order of their return. */
#ifndef CT_MERGE_H
#define CT_MERGE_H

#include "call.h"

#include <stdbool.h>
#include <stddef.h>

/* Bounds what one user may spend of a batch, in rows of plain calls. Other work counts as so many rows. */
struct ct_budget {
    uint64_t spent, allowance;
    bool is_held; /* something of the user's is left for the next batch */
};

/* Calls in the order of their return, of which some are filled in at a time. */
struct ct_stream {
    /* Fills in more: sets next and end. False when there is none now, or none that returned at or before
     * `until_ns`. */
    bool (*fill)(struct ct_stream *stream, uint64_t until_ns);
    struct ct_call *next, *end; /* filled in and not taken */
    struct ct_budget *budget;   /* NULL: without bound */
};

/* A stream in the heap, with the time at which it was put there: comparing touches no stream. */
struct ct_merge_entry {
    uint64_t due_ns;
    struct ct_stream *stream;
};

/* A heap of the streams that have a call waiting, earliest first. */
struct ct_merge {
    struct ct_merge_entry *heap;
    size_t count, capacity;
    uint64_t until_ns;
};

void ct_merge_begin(struct ct_merge *merge, uint64_t until_ns);
/* Adds a stream if it has a call; 0 or -ENOMEM. */
int ct_merge_add(struct ct_merge *merge, struct ct_stream *stream);
/* Returns when the turn of the next call of all is; there must be one. */
static inline uint64_t ct_merge_due_ns(const struct ct_merge *merge)
{
    return merge->heap[0].due_ns;
}
/* The next call of all, NULL at the end; it stays the next one until it is taken. */
static inline const struct ct_call *ct_merge_first(const struct ct_merge *merge)
{
    return merge->count > 0 ? merge->heap[0].stream->next : NULL;
}
/* Takes it; there must be one. */
void ct_merge_take(struct ct_merge *merge);
void ct_merge_finish(struct ct_merge *merge);

#endif
