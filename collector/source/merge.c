#include "merge.h"

#include <errno.h>
#include <stdlib.h>

void ct_merge_begin(struct ct_merge *merge, uint64_t until_ns)
{
    merge->count = 0;
    merge->until_ns = until_ns;
}

int ct_merge_add(struct ct_merge *merge, struct ct_source *source)
{
    if (!source->class->peek(source, merge->until_ns))
        return 0;
    if (merge->count == merge->capacity) {
        const size_t capacity = merge->capacity ? merge->capacity * 2 : 64;
        struct ct_merge_entry *heap = realloc(merge->heap, capacity * sizeof(*heap));
        if (!heap)
            return -ENOMEM;
        merge->heap = heap;
        merge->capacity = capacity;
    }
    size_t i = merge->count++;
    while (i > 0 && source->end_ns < merge->heap[(i - 1) / 2].end_ns) {
        merge->heap[i] = merge->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    merge->heap[i] = (struct ct_merge_entry){ source->end_ns, source };
    return 0;
}

/* Puts `entry` in the root's place, which is free. */
static void sift_down(struct ct_merge *merge, struct ct_merge_entry entry)
{
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= merge->count)
            break;
        if (child + 1 < merge->count && merge->heap[child + 1].end_ns < merge->heap[child].end_ns)
            child++;
        if (entry.end_ns <= merge->heap[child].end_ns)
            break;
        merge->heap[i] = merge->heap[child];
        i = child;
    }
    merge->heap[i] = entry;
}

bool ct_merge_next(struct ct_merge *merge, struct ct_row *row)
{
    if (merge->count == 0)
        return false;
    struct ct_source *first = merge->heap[0].source;
    first->class->take(first, row);
    const struct ct_merge_entry entry = first->class->peek(first, merge->until_ns)
                                            ? (struct ct_merge_entry){ first->end_ns, first }
                                            : merge->heap[--merge->count];
    if (merge->count > 0)
        sift_down(merge, entry);
    return true;
}

void ct_merge_finish(struct ct_merge *merge)
{
    free(merge->heap);
    *merge = (struct ct_merge){ 0 };
}
