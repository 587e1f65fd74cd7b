#include "gpu_idle.h"

#include "gpu_recordings.h"

#include "room.h"

#include <stdlib.h>
#include <string.h>

/* ---- idle times ---- */

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns the place of a row of idle times, after adding it if necessary. */
static size_t idle_row(struct sweep *sweep, size_t device, const char *state, const char *call)
{
    struct ct_gpu_sums *sums = sweep->sums;
    const size_t hash = ((uintptr_t)state / 16 + (uintptr_t)call / 16 + 31 * device) %
                        (sizeof(sweep->recent) / sizeof(sweep->recent[0]));
    if (sweep->recent[hash].state == state && sweep->recent[hash].call == call &&
        sweep->recent[hash].device == device)
        return sweep->recent[hash].row;
    size_t row = 0;
    while (row < sums->idles &&
           (sums->idle[row].device != sweep->device[device].number ||
            !is_same(sums->idle[row].state, state) || !is_same(sums->idle[row].call, call)))
        row++;
    if (row == sums->idles) {
        if (!ct_make_room(&sums->idle, row, &sweep->idle_room, sizeof(*sums->idle)) ||
            !ct_make_room(&sweep->uncut_ns, row, &sweep->uncut_room, sizeof(*sweep->uncut_ns))) {
            fail(sweep, SQLITE_NOMEM);
            return SIZE_MAX;
        }
        sweep->uncut_ns[row] = 0;
        sums->idle[sums->idles++] = (struct ct_gpu_idle){ .device = sweep->device[device].number,
                                                          .state = copy_text(sweep, state),
                                                          .call = copy_text(sweep, call) };
    }
    sweep->recent[hash].state = state;
    sweep->recent[hash].call = call;
    sweep->recent[hash].device = device;
    sweep->recent[hash].row = row;
    return row;
}

/* Returns the part of the gap's time that is from `from_ns` to `to_ns`. */
static double cut(int64_t ns, int64_t gap_from_ns, int64_t gap_to_ns, int64_t from_ns, int64_t to_ns)
{
    const int64_t inside_ns = earlier(gap_to_ns, to_ns) - later(gap_from_ns, from_ns);
    return (double)ns * ((double)inside_ns / (double)(gap_to_ns - gap_from_ns));
}

/* Counts the late parts that end before the last kernel known so far. At the end, also those that begin
 * before it. */
static void count_late(struct sweep *sweep, bool is_end)
{
    enum { SPENT_MOST = 4096 };
    while (sweep->late_begin < sweep->late_count) {
        const struct late_part *part = &sweep->late[sweep->late_begin];
        if (!is_end && part->to_ns > sweep->last_ns)
            break;
        if (part->from_ns < sweep->last_ns)
            sweep->sums->idle[part->row].period_ns +=
                cut(part->ns, part->from_ns, part->to_ns,
                    has_from(sweep) ? sweep->scope->from_ns : sweep->first_ns, sweep->last_ns);
        sweep->late_begin++;
    }
    if (sweep->late_begin == sweep->late_count || sweep->late_begin > SPENT_MOST) {
        sweep->late_count -= sweep->late_begin;
        memmove(sweep->late, sweep->late + sweep->late_begin, sweep->late_count * sizeof(*sweep->late));
        sweep->late_begin = 0;
    }
}

/* Counts a part between the first kernel and the last, or in the window. */
static void count_in_period(struct sweep *sweep, size_t row, const struct gap *gap, int64_t ns)
{
    const int64_t lower_ns = has_from(sweep) ? sweep->scope->from_ns : sweep->first_ns;
    if (gap->to_ns > (has_from(sweep) ? lower_ns : NONE) && gap->from_ns < sweep->scope->to_ns)
        sweep->uncut_ns[row] +=
            cut(ns, gap->from_ns, gap->to_ns, has_from(sweep) ? lower_ns : NONE, sweep->scope->to_ns);
    if (lower_ns == NONE || gap->to_ns <= lower_ns)
        return;
    if (has_to(sweep)) {
        if (gap->from_ns < sweep->scope->to_ns)
            sweep->sums->idle[row].period_ns +=
                cut(ns, gap->from_ns, gap->to_ns, lower_ns, sweep->scope->to_ns);
        return;
    }
    if (!ct_make_room(&sweep->late, sweep->late_count, &sweep->late_room, sizeof(*sweep->late))) {
        fail(sweep, SQLITE_NOMEM);
        return;
    }
    sweep->late[sweep->late_count++] = (struct late_part){ row, gap->from_ns, gap->to_ns, ns };
}

static void count_idle(struct sweep *sweep, const struct gap *gap, const char *state, const char *call,
                       int64_t ns)
{
    const struct ct_scope *scope = sweep->scope;
    const bool is_asked = gap->is_wanted && gap->to_ns > scope->from_ns && gap->from_ns < scope->to_ns;
    if (!is_asked && !gap->is_wanted_in_window)
        return;
    const size_t row = idle_row(sweep, gap->device, state, call);
    if (row == SIZE_MAX)
        return;
    struct ct_gpu_idle *idle = &sweep->sums->idle[row];
    if (is_asked) {
        const int64_t length_ns = gap->to_ns - gap->from_ns;
        idle->gaps++;
        idle->idle_ns += cut(ns, gap->from_ns, gap->to_ns, scope->from_ns, scope->to_ns);
        if (length_ns > idle->longest_ns) {
            free(idle->ended);
            free(idle->begun);
            idle->longest_ns = length_ns;
            idle->from_ns = gap->from_ns;
            idle->ended = copy_text(sweep, gap->ended);
            idle->begun = copy_text(sweep, gap->begun);
        }
    }
    if (gap->is_wanted_in_window)
        count_in_period(sweep, row, gap, ns);
}

/* Adds a part to a gap. The time of a function counts together. */
static void add_part(struct sweep *sweep, struct divided_gap *divided, const char *state, const char *call,
                     int64_t ns)
{
    for (size_t i = 0; call && i < divided->parts; i++) {
        if (is_same(divided->part[i].call, call)) {
            divided->part[i].ns += ns;
            return;
        }
    }
    if (ct_make_room(&divided->part, divided->parts, &divided->room, sizeof(*divided->part)))
        divided->part[divided->parts++] = (struct gap_part){ state, call, ns };
    else
        fail(sweep, SQLITE_NOMEM);
}

/* Divides a gap by the state of the thread that launched the next work. */
static void divide(struct sweep *sweep, struct divided_gap *found, const struct work *begun)
{
    const struct gap *gap = &found->gap;
    const int64_t call_id = ct_gpu_runs_call(sweep->runs, &begun->run);
    if (call_id == NONE) {
        add_part(sweep, found, "unknown", NULL, gap->to_ns - gap->from_ns);
        return;
    }
    int64_t inside_ns = 0, closed_ns = gap->to_ns;
    struct ct_host_call call;
    ct_host_calls_find(sweep->calls, call_id, gap->from_ns);
    while (closed_ns > gap->from_ns && ct_host_calls_next(sweep->calls, &call)) {
        const int64_t ns = earlier(call.end_ns, closed_ns) - later(call.start_ns, gap->from_ns);
        if (ns > 0) {
            add_part(sweep, found, call.category, call.name, ns);
            inside_ns += ns;
        }
        closed_ns = earlier(closed_ns, call.start_ns);
    }
    const int64_t launched_ns = earlier(later(call_id, gap->from_ns), gap->to_ns);
    if (launched_ns - gap->from_ns > inside_ns)
        add_part(sweep, found, "outside", NULL, launched_ns - gap->from_ns - inside_ns);
    if (gap->to_ns > launched_ns)
        add_part(sweep, found, "queued", NULL, gap->to_ns - launched_ns);
}

static void count_parts(struct sweep *sweep, const struct divided_gap *divided)
{
    for (size_t i = 0; i < divided->parts; i++)
        count_idle(sweep, &divided->gap, divided->part[i].state, divided->part[i].call, divided->part[i].ns);
}

/* Keeps the last gap until the end. */
static void keep_divided(struct sweep *sweep)
{
    struct divided_gap *kept = NULL;
    if (ct_make_room(&sweep->first, sweep->firsts, &sweep->first_room, sizeof(*sweep->first)))
        kept = &sweep->first[sweep->firsts++];
    else
        fail(sweep, SQLITE_NOMEM);
    if (!kept)
        return;
    *kept = sweep->divided;
    kept->gap.ended = copy_text(sweep, kept->gap.ended);
    kept->gap.begun = copy_text(sweep, kept->gap.begun);
    sweep->divided = (struct divided_gap){ 0 };
}

/* Notes that the device is busy until the work ends. */
static void extend(struct device *device, const struct work *work)
{
    const bool is_last = !device->ended || work->end_ns > device->until_ns;
    if (!is_last && (work->end_ns < device->until_ns || strcmp(work->name, device->ended) >= 0))
        return;
    device->ended = work->name;
    device->until_ns = work->end_ns;
}

/* Returns whether the gap counts. The others are not divided, because this needs the calls before them. */
static bool is_needed(const struct sweep *sweep, const struct gap *gap)
{
    return (gap->is_wanted || gap->is_wanted_in_window) &&
           (!has_from(sweep) || gap->to_ns > sweep->scope->from_ns) && gap->from_ns < sweep->scope->to_ns;
}

void ct_sweep_gap(struct sweep *sweep, struct device *device, const struct work *work, bool is_first)
{
    if (device->until_ns != NONE && work->start_ns > device->until_ns) {
        const bool is_all = sweep->scope->pid == 0;
        const bool has_begun = device->begun_ns != NONE && work->start_ns > device->begun_ns;
        const bool has_begun_in_window =
            device->window_begun_ns != NONE && work->start_ns > device->window_begun_ns;
        sweep->divided.gap = (struct gap){
            .device = (size_t)(device - sweep->device),
            .from_ns = device->until_ns,
            .to_ns = work->start_ns,
            .ended = device->ended,
            .begun = work->name,
            .is_wanted = is_all || (work->is_wanted && has_begun),
            .is_wanted_in_window = is_all || (work->is_wanted && has_begun_in_window),
        };
        sweep->divided.parts = 0;
        if (is_needed(sweep, &sweep->divided.gap)) {
            divide(sweep, &sweep->divided, work);
            if (is_first)
                keep_divided(sweep);
            else
                count_parts(sweep, &sweep->divided);
        }
    }
    extend(device, work);
    count_late(sweep, false);
}

void ct_sweep_end_gaps(struct sweep *sweep)
{
    struct ct_gpu_sums *sums = sweep->sums;
    for (size_t i = 0; i < sweep->firsts; i++) {
        struct divided_gap *divided = &sweep->first[i];
        const struct gap *gap = &divided->gap;
        if (ct_sweep_is_after_recording(sweep, sweep->device[gap->device].number, gap->to_ns))
            count_idle(sweep, gap, "unrecorded", NULL, gap->to_ns - gap->from_ns);
        else
            count_parts(sweep, divided);
    }
    count_late(sweep, true);
    for (size_t i = 0; sweep->first_ns == NONE && i < sums->idles; i++)
        sums->idle[i].period_ns = sweep->uncut_ns[i];
}
