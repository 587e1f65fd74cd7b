#include "gpu_recordings.h"

#include "room.h"

#include <stdlib.h>

/* Returns the place of the recording in the sums, plus 1, after adding it if necessary, or 0 if out of
 * memory. */
static size_t place_of(struct sweep *sweep, const struct work *work, bool *is_new)
{
    struct ct_gpu_sums *sums = sweep->sums;
    const int64_t key[] = { work->process_id, work->device, work->recording };
    const int64_t number = ct_intern_get(&sweep->recordings_found, key, is_new);
    if (number == 0 || (*is_new && !ct_make_room(&sums->recording, sums->recordings, &sweep->recording_room,
                                                 sizeof(*sums->recording))))
        return 0;
    if (*is_new)
        sums->recording[sums->recordings++] = (struct ct_gpu_recording){
            work->process_id, work->device, work->recording, work->start_ns, work->end_ns, NONE, NONE
        };
    return (size_t)number;
}

bool ct_sweep_recording(struct sweep *sweep, const struct work *work)
{
    struct ct_gpu_sums *sums = sweep->sums;
    size_t *place = &sweep->of_task[work->run.task->number].recording;
    bool is_new = false;
    if (*place == 0 || sums->recording[*place - 1].recording != work->recording)
        *place = place_of(sweep, work, &is_new);
    if (*place == 0)
        return fail(sweep, SQLITE_NOMEM);
    struct ct_gpu_recording *recording = &sums->recording[*place - 1];
    recording->to_ns = later(recording->to_ns, work->end_ns);
    return is_new;
}

static int compare_recordings(const void *left, const void *right)
{
    const struct ct_gpu_recording *a = left, *b = right;
    const int64_t difference[] = { a->device - b->device, a->from_ns - b->from_ns, a->to_ns - b->to_ns };
    for (size_t i = 0; i < sizeof(difference) / sizeof(difference[0]); i++) {
        if (difference[i] != 0)
            return difference[i] < 0 ? -1 : 1;
    }
    return 0;
}

/* Fills in what a recording's row has of other recordings, which are sorted by device and time. */
static void look_back(struct ct_gpu_sums *sums, size_t at)
{
    struct ct_gpu_recording *recording = &sums->recording[at];
    int64_t until_ns = NONE, previous = NONE;
    bool is_first = true;
    for (size_t i = 0; i < sums->recordings; i++) {
        const struct ct_gpu_recording *other = &sums->recording[i];
        if (other->device != recording->device)
            continue;
        if (i < at) {
            until_ns = later(until_ns, other->to_ns);
            is_first &= other->process_id != recording->process_id;
        }
        if (other->process_id == recording->process_id && recording->recording != NONE &&
            other->recording != NONE && other->recording < recording->recording &&
            other->recording > previous) {
            previous = other->recording;
            recording->previous_to_ns = other->to_ns;
        }
    }
    if (until_ns != NONE && until_ns < recording->from_ns && (is_first || recording->previous_to_ns != NONE))
        recording->unrecorded_from_ns = until_ns;
}

bool ct_sweep_is_after_recording(const struct sweep *sweep, int64_t device, int64_t from_ns)
{
    const struct ct_gpu_sums *sums = sweep->sums;
    bool found = false;
    for (size_t i = 0; !found && i < sums->recordings; i++)
        found = sums->recording[i].device == device && sums->recording[i].from_ns == from_ns &&
                sums->recording[i].unrecorded_from_ns != NONE;
    return found;
}

void ct_sweep_end_recordings(struct sweep *sweep)
{
    struct ct_gpu_sums *sums = sweep->sums;
    if (sums->recordings > 0)
        qsort(sums->recording, sums->recordings, sizeof(*sums->recording), compare_recordings);
    for (size_t i = 0; i < sums->recordings; i++)
        look_back(sums, i);
}
