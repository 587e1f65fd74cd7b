#include "gpu_sweep.h"

#include "gpu_busy.h"
#include "gpu_idle.h"
#include "gpu_recordings.h"
#include "gpu_work_sums.h"

#include "room.h"

#include <stdlib.h>

static struct device *device_of(struct sweep *sweep, int64_t number)
{
    if (sweep->last_device < sweep->devices && sweep->device[sweep->last_device].number == number)
        return &sweep->device[sweep->last_device];
    for (sweep->last_device = 0; sweep->last_device < sweep->devices; sweep->last_device++) {
        if (sweep->device[sweep->last_device].number == number)
            return &sweep->device[sweep->last_device];
    }
    if (!ct_make_room(&sweep->device, sweep->devices, &sweep->device_room, sizeof(*sweep->device)))
        return NULL;
    struct device *device = &sweep->device[sweep->devices++];
    *device =
        (struct device){ .number = number, .until_ns = NONE, .begun_ns = NONE, .window_begun_ns = NONE };
    return device;
}

/* ---- the sweep ---- */

static void take(struct sweep *sweep, const struct work *work)
{
    struct device *device = device_of(sweep, work->device);
    if (!device) {
        fail(sweep, SQLITE_NOMEM);
        return;
    }
    const struct ct_scope *scope = sweep->scope;
    const bool is_in_window =
        work->is_wanted && work->end_ns >= scope->from_ns && work->start_ns <= scope->to_ns;
    const bool is_first = ct_sweep_recording(sweep, work);
    if (is_in_window) {
        ct_sweep_busy(sweep, device, work);
        ct_sweep_work(sweep, work);
    }
    ct_sweep_period(sweep, device, work);
    ct_sweep_gap(sweep, device, work, is_first);
    if (work->is_wanted && device->begun_ns == NONE)
        device->begun_ns = work->start_ns;
    if (is_in_window && device->window_begun_ns == NONE)
        device->window_begun_ns = later(work->start_ns, scope->from_ns);
}

static void read_work(struct sweep *sweep)
{
    struct work work;
    while (sweep->error == SQLITE_OK && ct_gpu_runs_next(sweep->runs, &work.run)) {
        const struct ct_gpu_task *task = work.run.task;
        const int64_t correlation = work.run.correlation;
        work.device = task->device;
        work.process_id = task->process_id;
        work.recording = correlation == CT_GPU_UNKNOWN || correlation >> 32 == 0 ? NONE : correlation >> 32;
        work.start_ns = work.run.start_ns;
        work.end_ns = work.run.end_ns;
        work.kind = *task->kind;
        work.name = task->name;
        work.is_wanted = task->is_wanted;
        take(sweep, &work);
    }
    fail(sweep, ct_gpu_runs_error(sweep->runs));
}

static void finish(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->devices; i++)
        free(sweep->device[i].period);
    for (size_t i = 0; i < sweep->firsts; i++) {
        free((char *)(uintptr_t)sweep->first[i].gap.ended);
        free((char *)(uintptr_t)sweep->first[i].gap.begun);
        free(sweep->first[i].part);
    }
    free(sweep->divided.part);
    free(sweep->first);
    free(sweep->late);
    free(sweep->uncut_ns);
    free(sweep->device);
    free(sweep->of_task);
    ct_intern_finish(&sweep->recordings_found);
    ct_intern_finish(&sweep->work_found);
    ct_gpu_runs_close(sweep->runs);
    ct_host_calls_close(sweep->calls);
}

int ct_gpu_sweep(sqlite3 *connection, const struct ct_scope *scope, struct ct_gpu_sums *sums)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    *sums = (struct ct_gpu_sums){ 0 };
    if (!sweep)
        return SQLITE_NOMEM;
    *sweep = (struct sweep){
        .connection = connection, .scope = scope, .sums = sums, .first_ns = NONE, .last_ns = NONE
    };
    ct_intern_init(&sweep->recordings_found, 3 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&sweep->work_found, CT_WORK_KEY_BYTES, SIZE_MAX, 1);
    sweep->calls = ct_host_calls_open(connection);
    if (!sweep->calls)
        fail(sweep, SQLITE_ERROR);
    else
        sweep->runs = ct_gpu_runs_open(connection, CT_GPU_BY_START, scope);
    if (sweep->runs)
        sweep->of_task = calloc(ct_gpu_runs_tasks(sweep->runs) + 1, sizeof(*sweep->of_task));
    if (!sweep->of_task)
        fail(sweep, SQLITE_NOMEM);
    if (sweep->error == SQLITE_OK)
        read_work(sweep);
    if (sweep->error == SQLITE_OK) {
        ct_sweep_end_recordings(sweep);
        ct_sweep_end_busy(sweep);
        ct_sweep_end_periods(sweep);
        ct_sweep_end_gaps(sweep);
        fail(sweep, ct_host_calls_error(sweep->calls));
    }
    const int error = sweep->error;
    finish(sweep);
    free(sweep);
    return error;
}

void ct_gpu_sums_finish(struct ct_gpu_sums *sums)
{
    for (size_t i = 0; i < sums->idles; i++) {
        free(sums->idle[i].state);
        free(sums->idle[i].call);
        free(sums->idle[i].ended);
        free(sums->idle[i].begun);
    }
    ct_gpu_work_finish(sums);
    free(sums->idle);
    free(sums->busy);
    free(sums->share);
    free(sums->recording);
    *sums = (struct ct_gpu_sums){ 0 };
}
