#include "gpu_runs.h"

#include "gpu_calls.h"
#include "name_numbers.h"
#include "room.h"
#include "series.h"

#include "schema_sql.h"

#include <stdlib.h>

/* The type of the pointer that the SQL function takes. */
#define FILE_POINTER "ct_gpu_runs_file"

struct file {
    struct ct_gpu_runs *runs;
    struct ct_gpu_task *task; /* by gpu_task_id */
    size_t tasks, room;
    sqlite3_stmt *rows;
    bool has_next;
    struct ct_gpu_run next;
};

struct ct_gpu_runs {
    sqlite3 *connection;
    enum ct_gpu_order order;
    const struct ct_scope *scope;
    uint32_t files;
    struct file file[CT_SERIES_FILES_MAX]; /* newest first */
    size_t tasks;
    struct ct_names texts;
    struct ct_gpu_calls *calls;
    int64_t first_ns, last_ns; /* of the launches in the scope */
    int error;
};

static void fail(struct ct_gpu_runs *runs, int error)
{
    if (runs->error == SQLITE_OK)
        runs->error = error;
}

/* ---- tasks ---- */

static const char *text_of(struct ct_gpu_runs *runs, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    bool failed = false;
    const struct ct_name name = text ? ct_names_number(&runs->texts, text, &failed) : (struct ct_name){ 0 };
    if (failed)
        fail(runs, SQLITE_NOMEM);
    return name.text;
}

static void add_task(struct ct_gpu_runs *runs, struct file *file, sqlite3_stmt *row)
{
    if (!ct_make_room(&file->task, file->tasks, &file->room, sizeof(*file->task))) {
        fail(runs, SQLITE_NOMEM);
        return;
    }
    struct ct_gpu_task *task = &file->task[file->tasks++];
    *task = (struct ct_gpu_task){ .gpu_task_id = sqlite3_column_int64(row, 0),
                                  .number = runs->tasks++,
                                  .file = (uint32_t)(file - runs->file),
                                  .process_id = sqlite3_column_int64(row, 1),
                                  .device = sqlite3_column_int64(row, 2),
                                  .context = sqlite3_column_int64(row, 3),
                                  .stream = sqlite3_column_int64(row, 4),
                                  .graph = sqlite3_column_int64(row, 5),
                                  .is_wanted = sqlite3_column_int(row, 6) != 0,
                                  .kind = text_of(runs, row, 7),
                                  .kernel = text_of(runs, row, 8),
                                  .mangled = text_of(runs, row, 9),
                                  .copy_kind = text_of(runs, row, 10) };
    if (!task->kind) /* out of memory */
        task->kind = "";
    task->name = task->kernel ? task->kernel : task->copy_kind ? task->copy_kind : task->kind;
}

static sqlite3_stmt *prepare(struct ct_gpu_runs *runs, const char *sql, const struct file *file)
{
    sqlite3_stmt *query = NULL;
    fail(runs, ct_series_prepare(runs->connection, sql, (uint32_t)(file - runs->file), &query));
    return query;
}

static void read_tasks(struct ct_gpu_runs *runs, struct file *file)
{
    sqlite3_stmt *row = prepare(runs, ct_sql_gpu_runs_tasks, file);
    sqlite3_bind_int64(row, 1, runs->scope->pid);
    while (runs->error == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        add_task(runs, file, row);
    fail(runs, sqlite3_finalize(row));
}

/* Returns NULL if the file has no such task, or if it does not belong to the chosen run of the trace. */
static const struct ct_gpu_task *task_of(const struct file *file, int64_t gpu_task_id)
{
    /* The daemon numbers tasks without gaps. */
    const uint64_t place = file->tasks > 0 ? (uint64_t)gpu_task_id - (uint64_t)file->task[0].gpu_task_id : 0;
    if (place < file->tasks && file->task[place].gpu_task_id == gpu_task_id)
        return &file->task[place];
    size_t low = 0, high = file->tasks;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (file->task[middle].gpu_task_id < gpu_task_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < file->tasks && file->task[low].gpu_task_id == gpu_task_id ? &file->task[low] : NULL;
}

/* ---- runs ---- */

/* The SQL function gpu_launched_ns(file, gpu_task_id, correlation, start_ns). The result is NULL for work
 * that is left out. SQLite calls the function for all rows before it returns the first sorted row, so the
 * bounds are known by then. */
static void launched_ns(sqlite3_context *context, int count, sqlite3_value **given)
{
    (void)count;
    struct file *file = sqlite3_value_pointer(given[0], FILE_POINTER);
    const struct ct_gpu_task *task = file ? task_of(file, sqlite3_value_int64(given[1])) : NULL;
    if (!task || !task->is_wanted || sqlite3_value_type(given[2]) == SQLITE_NULL)
        return;
    struct ct_gpu_runs *runs = file->runs;
    const int64_t start_ns = sqlite3_value_int64(given[3]);
    const int64_t call_id =
        ct_gpu_calls_find(runs->calls, task->file, task->process_id, sqlite3_value_int64(given[2]));
    const int64_t at_ns = call_id < start_ns ? call_id : start_ns;
    if (call_id == CT_GPU_NO_CALL || at_ns > runs->scope->to_ns)
        return;
    if (at_ns >= runs->scope->from_ns) {
        runs->first_ns = at_ns < runs->first_ns ? at_ns : runs->first_ns;
        runs->last_ns = at_ns > runs->last_ns ? at_ns : runs->last_ns;
    }
    sqlite3_result_int64(context, at_ns);
}

int ct_gpu_runs_add_function(sqlite3 *connection)
{
    const int rc =
        sqlite3_create_function_v2(connection, "gpu_launched_ns", 4, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                   launched_ns, NULL, NULL, NULL);
    return rc == SQLITE_BUSY ? SQLITE_OK : rc; /* the connection has the function, and other queries run */
}

static int64_t number_or_unknown(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? CT_GPU_UNKNOWN
                                                           : sqlite3_column_int64(row, column);
}

/* Returns false if the row is left out. */
static bool take_by_start(const struct file *file, struct ct_gpu_run *run)
{
    sqlite3_stmt *row = file->rows;
    *run = (struct ct_gpu_run){ .task = task_of(file, sqlite3_column_int64(row, 2)),
                                .start_ns = sqlite3_column_int64(row, 0),
                                .duration_ns = sqlite3_column_int64(row, 1),
                                .correlation = number_or_unknown(row, 3),
                                .queued_ns = number_or_unknown(row, 4),
                                .bytes = number_or_unknown(row, 5) };
    if (__builtin_add_overflow(run->start_ns, run->duration_ns, &run->end_ns)) /* a damaged trace */
        run->end_ns = run->start_ns < 0 ? INT64_MIN : INT64_MAX;
    return run->task != NULL;
}

static bool take_by_launch(const struct file *file, struct ct_gpu_run *run)
{
    sqlite3_stmt *row = file->rows;
    if (sqlite3_column_type(row, 0) == SQLITE_NULL)
        return false;
    *run = (struct ct_gpu_run){ .task = task_of(file, sqlite3_column_int64(row, 2)),
                                .launched_ns = sqlite3_column_int64(row, 0),
                                .start_ns = sqlite3_column_int64(row, 1) };
    return run->task != NULL;
}

static void read_next(struct ct_gpu_runs *runs, struct file *file)
{
    int rc = SQLITE_DONE;
    file->has_next = false;
    while (!file->has_next && runs->error == SQLITE_OK && (rc = sqlite3_step(file->rows)) == SQLITE_ROW)
        file->has_next = runs->order == CT_GPU_BY_START ? take_by_start(file, &file->next)
                                                        : take_by_launch(file, &file->next);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        fail(runs, rc);
}

static void open_file(struct ct_gpu_runs *runs, struct file *file)
{
    file->runs = runs;
    read_tasks(runs, file);
    if (runs->order == CT_GPU_BY_START) {
        file->rows = prepare(runs, ct_sql_gpu_runs_by_start, file);
    } else {
        file->rows = prepare(runs, ct_sql_gpu_runs_by_launch, file);
        sqlite3_bind_pointer(file->rows, 1, file, FILE_POINTER, NULL);
        sqlite3_bind_int64(file->rows, 2, runs->scope->from_ns);
    }
    read_next(runs, file);
}

struct ct_gpu_runs *ct_gpu_runs_open(sqlite3 *connection, enum ct_gpu_order order,
                                     const struct ct_scope *scope)
{
    struct ct_gpu_runs *runs = calloc(1, sizeof(*runs));
    if (!runs)
        return NULL;
    *runs = (struct ct_gpu_runs){ .connection = connection,
                                  .order = order,
                                  .scope = scope,
                                  .files = ct_series_files(connection),
                                  .calls = ct_gpu_calls_open(connection),
                                  .first_ns = INT64_MAX,
                                  .last_ns = INT64_MIN };
    if (!runs->calls) {
        free(runs);
        return NULL;
    }
    for (uint32_t i = 0; i < runs->files && runs->error == SQLITE_OK; i++)
        open_file(runs, &runs->file[i]);
    return runs;
}

void ct_gpu_runs_close(struct ct_gpu_runs *runs)
{
    if (!runs)
        return;
    for (uint32_t i = 0; i < runs->files; i++) {
        sqlite3_finalize(runs->file[i].rows);
        free(runs->file[i].task);
    }
    ct_gpu_calls_close(runs->calls);
    ct_names_free(&runs->texts);
    free(runs);
}

/* Returns whether a comes before b. Equal runs keep the order of their files, as in the view. */
static bool is_before(const struct ct_gpu_runs *runs, const struct ct_gpu_run *a, const struct ct_gpu_run *b)
{
    if (runs->order == CT_GPU_BY_LAUNCH)
        return a->launched_ns < b->launched_ns;
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->end_ns < b->end_ns;
}

bool ct_gpu_runs_next(struct ct_gpu_runs *runs, struct ct_gpu_run *run)
{
    struct file *first = NULL;
    for (uint32_t i = 0; i < runs->files; i++) {
        struct file *file = &runs->file[i];
        if (file->has_next && (!first || is_before(runs, &file->next, &first->next)))
            first = file;
    }
    if (!first || ct_gpu_runs_error(runs) != SQLITE_OK)
        return false;
    *run = first->next;
    read_next(runs, first);
    return true;
}

int ct_gpu_runs_error(const struct ct_gpu_runs *runs)
{
    return runs->error != SQLITE_OK ? runs->error : ct_gpu_calls_error(runs->calls);
}

size_t ct_gpu_runs_tasks(const struct ct_gpu_runs *runs)
{
    return runs->tasks;
}

bool ct_gpu_runs_bounds(const struct ct_gpu_runs *runs, int64_t *first_ns, int64_t *last_ns)
{
    *first_ns = runs->first_ns;
    *last_ns = runs->last_ns;
    return runs->first_ns <= runs->last_ns;
}

int64_t ct_gpu_runs_call(struct ct_gpu_runs *runs, const struct ct_gpu_run *run)
{
    if (run->correlation == CT_GPU_UNKNOWN)
        return CT_GPU_UNKNOWN;
    return ct_gpu_calls_find(runs->calls, run->task->file, run->task->process_id, run->correlation);
}
