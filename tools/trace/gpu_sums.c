#include "gpu_sums.h"

#include "computed_table.h"
#include "gpu_sweep.h"

#include <stddef.h>
#include <stdlib.h>

static int compute(sqlite3 *connection, const struct ct_scope *scope, void **result)
{
    struct ct_gpu_sums *sums = calloc(1, sizeof(*sums));
    *result = sums;
    return sums ? ct_gpu_sweep(connection, scope, sums) : SQLITE_NOMEM;
}

static void release(void *result)
{
    if (result)
        ct_gpu_sums_finish(result);
    free(result);
}

static const struct ct_computation computation = { .view = "gpu_work",
                                                   .compute = compute,
                                                   .release = release };

#define BUSY(field_) CT_COMPUTED_COLUMN(#field_, NUMBER, ct_gpu_busy, field_)
static const struct ct_computed_column gpu_busy_sums_columns[] = {
    BUSY(device),  BUSY(from_ns),  BUSY(to_ns),        BUSY(busy_ns),  BUSY(kernel_ns), BUSY(copy_ns),
    BUSY(both_ns), BUSY(graph_ns), BUSY(computing_ns), BUSY(first_ns), BUSY(last_ns),   BUSY(early_ns),
    BUSY(late_ns), BUSY(kernels),  BUSY(copies),       BUSY(sets),     BUSY(graphs),    { 0 },
};
#define IDLE(name_, type_, field_) CT_COMPUTED_COLUMN(name_, type_, ct_gpu_idle, field_)
static const struct ct_computed_column gpu_idle_sums_columns[] = {
    IDLE("device", NUMBER, device),
    IDLE("host_state", TEXT, state),
    IDLE("host_call", TEXT, call),
    IDLE("gaps", NUMBER, gaps),
    IDLE("idle_ns", REAL, idle_ns),
    IDLE("period_ns", REAL, period_ns),
    IDLE("longest_ns", NUMBER, longest_ns),
    IDLE("from_ns", NUMBER, from_ns),
    IDLE("ended", TEXT, ended),
    IDLE("begun", TEXT, begun),
    { 0 },
};
#define SHARE(type_, field_) CT_COMPUTED_COLUMN(#field_, type_, ct_gpu_share, field_)
static const struct ct_computed_column gpu_share_sums_columns[] = {
    SHARE(NUMBER, device),  SHARE(NUMBER, process_id), SHARE(NUMBER, busy_ns), SHARE(REAL, alone_ns),
    SHARE(NUMBER, periods), SHARE(NUMBER, from_ns),    SHARE(NUMBER, to_ns),   { 0 },
};
#define WORK(type_, field_) CT_COMPUTED_COLUMN(#field_, type_, ct_gpu_work, field_)
static const struct ct_computed_column gpu_work_sums_columns[] = {
    WORK(NUMBER, device),      WORK(NUMBER, process_id),
    WORK(TEXT, kind),          WORK(TEXT, kernel),
    WORK(TEXT, mangled),       WORK(TEXT, copy_kind),
    WORK(NUMBER, graph),       WORK(NUMBER, runs),
    WORK(NUMBER, duration_ns), WORK(NUMBER, longest_ns),
    WORK(NUMBER, queued_ns),   WORK(NUMBER, queued_runs),
    WORK(NUMBER, bytes),       { 0 },
};
#define RECORDING(field_) CT_COMPUTED_COLUMN(#field_, NUMBER, ct_gpu_recording, field_)
static const struct ct_computed_column gpu_recording_times_columns[] = {
    RECORDING(process_id), RECORDING(device),         RECORDING(recording),          RECORDING(from_ns),
    RECORDING(to_ns),      RECORDING(previous_to_ns), RECORDING(unrecorded_from_ns), { 0 },
};

CT_COMPUTED_TABLE(gpu_busy_sums, ct_gpu_busy, ct_gpu_sums, busy, busies);
CT_COMPUTED_TABLE(gpu_idle_sums, ct_gpu_idle, ct_gpu_sums, idle, idles);
CT_COMPUTED_TABLE(gpu_share_sums, ct_gpu_share, ct_gpu_sums, share, shares);
CT_COMPUTED_TABLE(gpu_work_sums, ct_gpu_work, ct_gpu_sums, work, works);
CT_COMPUTED_TABLE(gpu_recording_times, ct_gpu_recording, ct_gpu_sums, recording, recordings);

int ct_gpu_sums_add(sqlite3 *connection, struct ct_computed_cache *cache)
{
    static const struct ct_computed_table *const tables[] = { &gpu_busy_sums, &gpu_idle_sums, &gpu_share_sums,
                                                              &gpu_work_sums, &gpu_recording_times };
    int error = SQLITE_OK;
    for (size_t i = 0; error == SQLITE_OK && i < sizeof(tables) / sizeof(tables[0]); i++)
        error = ct_computed_add(connection, tables[i], cache);
    return error;
}
