#include "gpu_sweep.h"

#include "gpu_busy.h"
#include "gpu_idle.h"
#include "gpu_recordings.h"

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

static bool is_wanted(const struct sweep *sweep, int64_t process_id)
{
    bool found = sweep->scope->pid == 0;
    for (size_t i = 0; !found && i < sweep->wanted_count; i++)
        found = sweep->wanted[i] == process_id;
    return found;
}

/* ---- the sweep ---- */

/* Finds the IDs of the processes with the scope's pid. */
static void find_wanted(struct sweep *sweep)
{
    sqlite3_stmt *query = NULL;
    int rc = sqlite3_prepare_v2(sweep->connection, "SELECT process_id FROM processes WHERE pid = ?1", -1,
                                &query, NULL);
    sqlite3_bind_int64(query, 1, sweep->scope->pid);
    while (rc == SQLITE_OK && (rc = sqlite3_step(query)) == SQLITE_ROW) {
        rc = ct_make_room(&sweep->wanted, sweep->wanted_count, &sweep->wanted_room, sizeof(*sweep->wanted))
                 ? SQLITE_OK
                 : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            sweep->wanted[sweep->wanted_count++] = sqlite3_column_int64(query, 0);
    }
    if (rc != SQLITE_DONE)
        fail(sweep, rc);
    sqlite3_finalize(query);
}

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
    if (is_in_window)
        ct_sweep_busy(sweep, device, work);
    ct_sweep_period(sweep, device, work);
    ct_sweep_gap(sweep, device, work, is_first);
    if (work->is_wanted && device->begun_ns == NONE)
        device->begun_ns = work->start_ns;
    if (is_in_window && device->window_begun_ns == NONE)
        device->window_begun_ns = later(work->start_ns, scope->from_ns);
}

static int64_t number_or_none(sqlite3_stmt *query, int column)
{
    return sqlite3_column_type(query, column) == SQLITE_NULL ? NONE : sqlite3_column_int64(query, column);
}

static void read_work(struct sweep *sweep)
{
    static const char sql[] =
        "SELECT device, process_id, recording, gpu_start_ns, gpu_end_ns, call_id, kind, "
        "coalesce(kernel, copy_kind, kind) FROM gpu_work ORDER BY gpu_start_ns, gpu_end_ns";
    sqlite3_stmt *query = NULL;
    int rc = sqlite3_prepare_v2(sweep->connection, sql, -1, &query, NULL);
    while (rc == SQLITE_OK && sweep->error == SQLITE_OK && (rc = sqlite3_step(query)) == SQLITE_ROW) {
        const int64_t process_id = sqlite3_column_int64(query, 1);
        const char *kind = (const char *)sqlite3_column_text(query, 6);
        const char *name = (const char *)sqlite3_column_text(query, 7);
        const struct work work = { .device = sqlite3_column_int64(query, 0),
                                   .process_id = process_id,
                                   .recording = number_or_none(query, 2),
                                   .start_ns = sqlite3_column_int64(query, 3),
                                   .end_ns = sqlite3_column_int64(query, 4),
                                   .call_id = number_or_none(query, 5),
                                   .kind = kind ? *kind : '\0',
                                   .name = name ? name : "",
                                   .is_wanted = is_wanted(sweep, process_id) };
        take(sweep, &work);
        rc = SQLITE_OK;
    }
    if (rc != SQLITE_DONE)
        fail(sweep, rc);
    sqlite3_finalize(query);
}

static void finish(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->devices; i++) {
        free(sweep->device[i].ended);
        free(sweep->device[i].period);
    }
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
    free(sweep->wanted);
    ct_intern_finish(&sweep->recordings_found);
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
    find_wanted(sweep);
    sweep->calls = ct_host_calls_open(connection);
    if (!sweep->calls)
        fail(sweep, SQLITE_ERROR);
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
    free(sums->idle);
    free(sums->busy);
    free(sums->share);
    free(sums->recording);
    *sums = (struct ct_gpu_sums){ 0 };
}
