#include "launch_sums.h"

#include "intern.h"
#include "launch_stream.h"
#include "room.h"
#include "trace_file.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

enum { LONG_NS = 1000000, GAPS_MOST = 15, SLICES = 500 };

struct sum {
    struct ct_launched what;
    int64_t launches, total_ns, longest_ns, first_id, begun_ns, last_id;
};

struct process {
    int64_t process_id;
    int64_t launches, begun_ns, last_id, gaps, gaps_ns,
        longest_ns;                   /* longest_ns: CT_COMPUTED_NULL for none */
    int64_t from_ns, to_ns, slice_ns; /* its time, and how long a slice is */
    size_t slice;                     /* the place of the last slice, plus 1; 0: none */
};

struct gap {
    int64_t process_id, from_ns, to_ns;
};

struct slice {
    int64_t process_id, slice, kernels, begun_ns, last_begun_ns, last_id;
};

struct sums {
    const struct ct_scope *scope; /* while computing */
    struct sum *sum;              /* by the stream's places */
    struct process *process;
    struct slice *slice;
    struct gap gap[GAPS_MOST], *gaps_at; /* the longest gaps, the first one longest */
    size_t sums, sum_room, processes, process_room, slices, slice_room, gaps;
    struct ct_names names;
    struct ct_intern processes_found, slices_found;
    sqlite3_stmt *time; /* of a process */
    size_t last_process;
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool is_in_window(const struct sums *sums, int64_t call_id)
{
    return call_id >= sums->scope->from_ns && call_id <= sums->scope->to_ns;
}

/* ---- by what is launched ---- */

/* Returns the sums of what a launch launches, or NULL if out of memory. */
static struct sum *sum_of(struct sums *sums, const struct ct_launch_stream *stream, size_t what)
{
    if (what < sums->sums)
        return &sums->sum[what];
    size_t count;
    const struct ct_launched *launched = ct_launch_stream_what(stream, &count);
    if (!ct_make_room_for(&sums->sum, sums->sums, count - sums->sums, &sums->sum_room, sizeof(*sums->sum)))
        return NULL;
    for (; sums->sums < count; sums->sums++)
        sums->sum[sums->sums] = (struct sum){ .what = launched[sums->sums], .begun_ns = INT64_MAX };
    return &sums->sum[what];
}

static void add_to_sum(const struct sums *sums, struct sum *sum, const struct ct_launch *launch)
{
    const int64_t duration_ns = launch->call_id - launch->start_ns;
    if (sum->first_id == 0)
        sum->first_id = launch->call_id;
    sum->begun_ns = earlier(sum->begun_ns, launch->start_ns);
    sum->last_id = launch->call_id;
    if (!is_in_window(sums, launch->call_id))
        return;
    sum->launches++;
    sum->total_ns += duration_ns;
    sum->longest_ns = later(sum->longest_ns, duration_ns);
}

/* ---- by process ---- */

/* Finds the time of a process, and divides it into slices. Returns an SQLite code. */
static int find_time(struct sums *sums, struct process *process)
{
    sqlite3_bind_int64(sums->time, 1, process->process_id);
    const int rc = sqlite3_step(sums->time);
    if (rc == SQLITE_ROW) {
        process->from_ns = later(sqlite3_column_int64(sums->time, 0), sums->scope->from_ns);
        process->to_ns = earlier(sqlite3_column_int64(sums->time, 1), sums->scope->to_ns);
        process->slice_ns = later(1, (process->to_ns - process->from_ns) / SLICES);
    }
    sqlite3_reset(sums->time);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int process_of(struct sums *sums, int64_t process_id, struct process **process)
{
    *process = sums->process + sums->last_process;
    if (sums->last_process < sums->processes && (*process)->process_id == process_id)
        return SQLITE_OK;
    bool is_new;
    const int64_t number = ct_intern_get(&sums->processes_found, &process_id, &is_new);
    if (number == 0 || (is_new && !ct_make_room(&sums->process, sums->processes, &sums->process_room,
                                                sizeof(*sums->process))))
        return SQLITE_NOMEM;
    sums->last_process = (size_t)number - 1;
    *process = &sums->process[number - 1];
    if (!is_new)
        return SQLITE_OK;
    sums->processes++;
    **process = (struct process){
        .process_id = process_id, .begun_ns = INT64_MAX, .longest_ns = CT_COMPUTED_NULL, .to_ns = -1
    };
    return find_time(sums, *process);
}

/* Keeps the gap if it is one of the longest. Of equal gaps, the first one counts as longer. */
static void keep_gap(struct sums *sums, const struct gap *gap)
{
    size_t at = sums->gaps;
    while (at > 0 && sums->gap[at - 1].to_ns - sums->gap[at - 1].from_ns < gap->to_ns - gap->from_ns)
        at--;
    if (at == GAPS_MOST)
        return;
    if (sums->gaps < GAPS_MOST)
        sums->gaps++;
    memmove(&sums->gap[at + 1], &sums->gap[at], (sums->gaps - at - 1) * sizeof(*sums->gap));
    sums->gap[at] = *gap;
}

static void add_to_process(struct sums *sums, struct process *process, const struct ct_launch *launch)
{
    const int64_t gap_ns = launch->start_ns - process->last_id;
    if (process->launches++ > 0) {
        process->longest_ns = later(process->longest_ns, gap_ns);
        if (gap_ns > LONG_NS) {
            process->gaps++;
            process->gaps_ns += gap_ns;
            keep_gap(sums, &(struct gap){ process->process_id, process->last_id, launch->start_ns });
        }
    }
    process->begun_ns = earlier(process->begun_ns, launch->start_ns);
    process->last_id = launch->call_id;
}

/* ---- by slice ---- */

static struct slice *slice_of(struct sums *sums, struct process *process, int64_t number)
{
    if (process->slice > 0 && sums->slice[process->slice - 1].slice == number)
        return &sums->slice[process->slice - 1];
    const int64_t key[] = { process->process_id, number };
    bool is_new;
    const int64_t found = ct_intern_get(&sums->slices_found, key, &is_new);
    if (found == 0 ||
        (is_new && !ct_make_room(&sums->slice, sums->slices, &sums->slice_room, sizeof(*sums->slice))))
        return NULL;
    if (is_new)
        sums->slice[sums->slices++] =
            (struct slice){ .process_id = process->process_id, .slice = number, .begun_ns = INT64_MAX };
    process->slice = (size_t)found;
    return &sums->slice[found - 1];
}

static int add_to_slice(struct sums *sums, struct process *process, const struct ct_launch *launch)
{
    if (launch->start_ns < process->from_ns || launch->start_ns > process->to_ns)
        return SQLITE_OK;
    struct slice *slice = slice_of(sums, process, (launch->start_ns - process->from_ns) / process->slice_ns);
    if (!slice)
        return SQLITE_NOMEM;
    slice->kernels += launch->kernels;
    slice->begun_ns = earlier(slice->begun_ns, launch->start_ns);
    slice->last_begun_ns = later(slice->last_begun_ns, launch->start_ns);
    slice->last_id = launch->call_id;
    return SQLITE_OK;
}

/* ---- reading the launches ---- */

static int add(struct sums *sums, const struct ct_launch_stream *stream, const struct ct_launch *launch)
{
    struct sum *sum = sum_of(sums, stream, launch->what);
    struct process *process;
    if (!sum)
        return SQLITE_NOMEM;
    add_to_sum(sums, sum, launch);
    if (sum->what.captured)
        return SQLITE_OK;
    const int rc = process_of(sums, sum->what.process_id, &process);
    if (rc != SQLITE_OK)
        return rc;
    if (is_in_window(sums, launch->call_id))
        add_to_process(sums, process, launch);
    return add_to_slice(sums, process, launch);
}

static int read_launches(struct sums *sums, sqlite3 *connection)
{
    struct ct_launch_stream *stream = ct_launch_stream_open(connection, sums->scope);
    struct ct_launch launch;
    if (!stream)
        return SQLITE_NOMEM;
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && ct_launch_stream_next(stream, &launch))
        rc = add(sums, stream, &launch);
    ct_launch_stream_take_names(stream, &sums->names);
    if (rc == SQLITE_OK)
        rc = ct_launch_stream_error(stream);
    ct_launch_stream_close(stream);
    return rc;
}

/* Removes processes without launches in the window. */
static void keep_processes(struct sums *sums)
{
    size_t kept = 0;
    for (size_t i = 0; i < sums->processes; i++) {
        if (sums->process[i].launches > 0)
            sums->process[kept++] = sums->process[i];
    }
    sums->processes = kept;
}

static int compute(sqlite3 *connection, const struct ct_scope *scope, void **result)
{
    struct sums *sums = *result = calloc(1, sizeof(*sums));
    if (!sums)
        return SQLITE_NOMEM;
    sums->scope = scope;
    sums->gaps_at = sums->gap;
    ct_intern_init(&sums->processes_found, sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&sums->slices_found, 2 * sizeof(int64_t), SIZE_MAX, 1);
    int rc = sqlite3_prepare_v2(connection, ct_sql_stream_process_time, -1, &sums->time, NULL);
    sqlite3_bind_int64(sums->time, 2, scope->now_ns);
    if (rc == SQLITE_OK)
        rc = read_launches(sums, connection);
    sqlite3_finalize(sums->time);
    sums->time = NULL;
    keep_processes(sums);
    return rc;
}

static void release(void *result)
{
    struct sums *sums = result;
    if (!sums)
        return;
    ct_names_free(&sums->names);
    free(sums->sum);
    free(sums->process);
    free(sums->slice);
    ct_intern_finish(&sums->processes_found);
    ct_intern_finish(&sums->slices_found);
    free(sums);
}

/* ---- the tables ---- */

static const struct ct_computation computation = { .view = "launches",
                                                   .compute = compute,
                                                   .release = release };
#define SUM(field_)                CT_COMPUTED_COLUMN(#field_, NUMBER, sum, field_)
#define WHAT(name_, type_, field_) CT_COMPUTED_COLUMN(name_, type_, sum, what.field_)
static const struct ct_computed_column launch_sums_columns[] = {
    WHAT("process_id", NUMBER, process_id),
    WHAT("graph_exec", NUMBER, graph_exec),
    WHAT("captured", NUMBER, captured),
    WHAT("kernel", TEXT, kernel),
    WHAT("mangled", TEXT, mangled),
    WHAT("grid_x", NUMBER, grid[0]),
    WHAT("grid_y", NUMBER, grid[1]),
    WHAT("grid_z", NUMBER, grid[2]),
    WHAT("block_x", NUMBER, block[0]),
    WHAT("block_y", NUMBER, block[1]),
    WHAT("block_z", NUMBER, block[2]),
    SUM(launches),
    SUM(total_ns),
    SUM(longest_ns),
    SUM(first_id),
    SUM(begun_ns),
    SUM(last_id),
    { 0 },
};
#define PROCESS(field_) CT_COMPUTED_COLUMN(#field_, NUMBER, process, field_)
static const struct ct_computed_column launch_process_sums_columns[] = {
    PROCESS(process_id), PROCESS(launches), PROCESS(begun_ns),   PROCESS(last_id),
    PROCESS(gaps),       PROCESS(gaps_ns),  PROCESS(longest_ns), { 0 },
};
#define GAP(field_) CT_COMPUTED_COLUMN(#field_, NUMBER, gap, field_)
static const struct ct_computed_column launch_gaps_columns[] = {
    GAP(process_id), GAP(from_ns), GAP(to_ns), { 0 }
};
#define SLICE(field_) CT_COMPUTED_COLUMN(#field_, NUMBER, slice, field_)
static const struct ct_computed_column launch_slices_columns[] = {
    SLICE(process_id),    SLICE(slice),   SLICE(kernels), SLICE(begun_ns),
    SLICE(last_begun_ns), SLICE(last_id), { 0 },
};

CT_COMPUTED_TABLE(launch_sums, sum, sums, sum, sums);
CT_COMPUTED_TABLE(launch_process_sums, process, sums, process, processes);
CT_COMPUTED_TABLE(launch_gaps, gap, sums, gaps_at, gaps);
CT_COMPUTED_TABLE(launch_slices, slice, sums, slice, slices);

int ct_launch_sums_add(sqlite3 *connection, struct ct_computed_cache *cache)
{
    static const struct ct_computed_table *const tables[] = { &launch_sums, &launch_process_sums,
                                                              &launch_gaps, &launch_slices };
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(tables) / sizeof(tables[0]); i++)
        rc = ct_computed_add(connection, tables[i], cache);
    return rc;
}
