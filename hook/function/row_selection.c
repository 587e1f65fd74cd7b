/* A function that the selection leaves out keeps its fast path at entry, so that its calls nest and are
 * visible while they are open. When these calls return, they are only counted (loss.h). To make running
 * processes read a new selection, the daemon requests that they ring the doorbell at the next record (a
 * lane's `wake`). Calls that are left out check for this request, too. */
#include "row_selection.h"

#include "current.h"
#include "find_daemon.h"
#include "rows.h"
#include "segment_file.h"
#include "selection.h"
#include "setting.h"
#include "test_point.h"

#include <string.h>

/* Written with the process lock held. */
static struct ct_selection selection;
static _Atomic uint32_t followed; /* ct_control.selections for the selection in effect; 0 if it is from the
                                   * environment */
static _Atomic uint32_t sample = 1;

/* Applies the selection to a row. Requires the process lock. */
static void apply(uint32_t index)
{
    struct ct_row *row = &ct_rows[index];
    const bool takes = ct_selection_takes(&selection, (enum ct_layer)row->layer, ct_row_name(index));
    const uint16_t id = atomic_load_explicit(&row->id, memory_order_relaxed);
    atomic_store_explicit(&row->skipped, !takes, memory_order_relaxed);
    if (id == 0)
        return;
    const bool every = takes && atomic_load_explicit(&sample, memory_order_relaxed) == 1;
    atomic_store_explicit(&row->leave_id, every && !(row->flags & CT_ROW_DECODED) ? id : 0,
                          memory_order_release);
    atomic_store_explicit(&row->wrap_id, every ? id : 0, memory_order_release);
    atomic_store_explicit(&row->skip_id, takes || row->flags & CT_ROW_DECODED ? 0 : id, memory_order_release);
    atomic_store_explicit(&row->enter_id, id, memory_order_release);
}

static void apply_to_all(void)
{
    atomic_store_explicit(&sample, selection.sample, memory_order_relaxed);
    for (uint32_t row = 0; row < CT_ROWS_ALL; row++) {
        if (atomic_load_explicit(&ct_rows[row].id, memory_order_relaxed))
            apply(row);
    }
}

/* Reads the daemon's selection. Does nothing while the daemon is writing it, since another notification will
 * follow. */
static void read_requested(struct ct_segment *segment)
{
    const uint32_t requested = atomic_load_explicit(&ct_control->selections, memory_order_acquire);
    if (requested == 0 || requested & 1)
        return;
    struct ct_selection copy;
    memcpy(&copy, &ct_control->selection, sizeof(copy));
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&ct_control->selections, memory_order_relaxed) != requested)
        return;
    copy.calls[sizeof(copy.calls) - 1] = '\0';
    if (copy.sample == 0)
        copy.sample = 1;
    selection = copy;
    CT_TEST_POINT("row_selection.read");
    apply_to_all();
    CT_TEST_POINT("row_selection.applied");
    atomic_store_explicit(&followed, requested, memory_order_relaxed);
    atomic_store_explicit(&segment->selections, requested, memory_order_release);
    CT_TEST_POINT("row_selection.followed");
}

void ct_selection_begin(struct ct_segment *segment)
{
    const char *layers = ct_setting(CT_LAYERS_ENV), *calls = ct_setting(CT_CALLS_ENV),
               *rate = ct_setting(CT_SAMPLE_ENV);
    selection = ct_selection_everything();
    /* `cudatrace run` rejects invalid selections. If the variable was set by hand, an invalid selection is
     * ignored. */
    if (layers)
        ct_selection_set_layers(&selection, layers);
    if (calls)
        ct_selection_set_calls(&selection, calls);
    if (rate)
        ct_selection_set_sample(&selection, rate);
    apply_to_all();
    atomic_store_explicit(&followed, 0, memory_order_relaxed);
    read_requested(segment);
}

void ct_selection_follow(struct ct_segment *segment)
{
    const uint32_t requested = atomic_load_explicit(&ct_control->selections, memory_order_relaxed);
    if (requested == atomic_load_explicit(&followed, memory_order_relaxed) || !ct_process_lock())
        return;
    if (segment == ct_process_current())
        read_requested(segment);
    ct_process_unlock();
}

/* An outermost call is kept or left out together with all calls inside it. Since the inner calls return
 * first, the choice depends on a count of call trees. The count is hashed, so that periodic patterns in the
 * program do not affect the choice. */
static bool in_sample(const struct ct_producer *self, uint32_t one_of)
{
    const uint64_t mixed =
        (self->trees + self->index * UINT64_C(0x100000001b3)) * UINT64_C(0x9e3779b97f4a7c15);
    return ((mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32) * one_of >> 32 == 0;
}

bool ct_selection_skips(const struct ct_producer *self, uint32_t row)
{
    if (atomic_load_explicit(&ct_rows[row].skipped, memory_order_relaxed))
        return true;
    const uint32_t one_of = atomic_load_explicit(&sample, memory_order_relaxed);
    return CT_UNLIKELY(one_of > 1) && !in_sample(self, one_of);
}

/* ---- numbers ---- */

uint16_t ct_row_define(uint32_t index)
{
    struct ct_row *row = &ct_rows[index];
    struct ct_segment *segment = ct_process_current();
    if (!segment || !ct_segment_may_define() || !ct_process_lock())
        return atomic_load_explicit(&row->id, memory_order_relaxed);
    const uint16_t id =
        row->id || segment != ct_process_current()
            ? 0
            : ct_segment_define(segment, ct_row_name(index), (enum ct_layer)row->layer, row->category);
    if (id) {
        atomic_store_explicit(&row->id, id, memory_order_release);
        apply(index);
        CT_TEST_POINT("row_selection.defined");
    }
    ct_process_unlock();
    return row->id;
}

void ct_rows_forget_numbers(void)
{
    for (uint32_t row = 0; row < CT_ROWS_ALL; row++) {
        atomic_store_explicit(&ct_rows[row].enter_id, 0, memory_order_relaxed);
        atomic_store_explicit(&ct_rows[row].leave_id, 0, memory_order_relaxed);
        atomic_store_explicit(&ct_rows[row].wrap_id, 0, memory_order_relaxed);
        atomic_store_explicit(&ct_rows[row].skip_id, 0, memory_order_relaxed);
        atomic_store_explicit(&ct_rows[row].id, 0, memory_order_relaxed);
    }
}
