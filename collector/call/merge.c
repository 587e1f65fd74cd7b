#include "merge.h"

#include "room.h"

#include <errno.h>

void ct_merge_begin(struct ct_merge *merge, uint64_t until_ns)
{
    merge->count = 0;
    merge->until_ns = until_ns;
}

/* Returns whether the stream has a call for this merge. Once the user's budget is spent, returns false, and
 * sets is_held in the budget if the stream has more calls. */
static bool has_next(struct ct_stream *stream, uint64_t until_ns)
{
    if (stream->budget && stream->budget->spent >= stream->budget->allowance) {
        stream->budget->is_held |= stream->next < stream->end || stream->fill(stream, until_ns);
        return false;
    }
    return (stream->next < stream->end || stream->fill(stream, until_ns)) &&
           ct_call_due_ns(stream->next) <= until_ns;
}

int ct_merge_add(struct ct_merge *merge, struct ct_stream *stream)
{
    if (!has_next(stream, merge->until_ns))
        return 0;
    if (!ct_make_room(&merge->heap, merge->count, &merge->capacity, sizeof(*merge->heap)))
        return -ENOMEM;
    const uint64_t due_ns = ct_call_due_ns(stream->next);
    size_t i = merge->count++;
    while (i > 0 && due_ns < merge->heap[(i - 1) / 2].due_ns) {
        merge->heap[i] = merge->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    merge->heap[i] = (struct ct_merge_entry){ due_ns, stream };
    return 0;
}

/* Puts `entry` at the free root and restores the heap. Selects a child without a branch, by adding the result
 * of a comparison to the index, because the processor cannot predict the order of the threads' calls. */
static void sift_down(struct ct_merge *merge, struct ct_merge_entry entry)
{
    struct ct_merge_entry *heap = merge->heap;
    size_t i = 0, child = 1;
    for (; child + 1 < merge->count; child = 2 * i + 1) {
        child += heap[child + 1].due_ns < heap[child].due_ns;
        if (entry.due_ns <= heap[child].due_ns)
            break;
        heap[i] = heap[child];
        i = child;
    }
    if (child + 1 == merge->count && heap[child].due_ns < entry.due_ns) {
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = entry;
}

void ct_merge_take(struct ct_merge *merge)
{
    struct ct_stream *first = merge->heap[0].stream;
    first->next++;
    const struct ct_merge_entry entry = has_next(first, merge->until_ns)
                                            ? (struct ct_merge_entry){ ct_call_due_ns(first->next), first }
                                            : merge->heap[--merge->count];
    if (merge->count > 0)
        sift_down(merge, entry);
}

void ct_merge_finish(struct ct_merge *merge)
{
    free(merge->heap);
    *merge = (struct ct_merge){ 0 };
}
