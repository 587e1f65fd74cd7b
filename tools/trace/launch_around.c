#include "launch_around.h"

#include "intern.h"
#include "room.h"
#include "series.h"

#include "schema_sql.h"

#include <stdbool.h>
#include <stdlib.h>

struct process {
    int64_t process_id, started_ns, ended_ns;
    int64_t is_before, is_after;
};

struct around {
    struct process *process;
    size_t processes, room;
    struct ct_intern found; /* processes, from 1 */
};

/* A direction in which launches are read, away from the window. */
struct search {
    struct around *around;
    bool is_after;
    int64_t from_ns; /* the window's end in this direction */
    size_t missing;  /* processes that may have launched there, but have not been found */
    int64_t last_ns; /* no such process ran farther away */
};

static bool is_missing(const struct search *search, const struct process *process)
{
    return search->is_after ? !process->is_after && process->ended_ns > search->from_ns
                            : !process->is_before && process->started_ns < search->from_ns;
}

/* Finds out how far the search must go. */
static void look_ahead(struct search *search)
{
    search->missing = 0;
    for (size_t i = 0; i < search->around->processes; i++) {
        const struct process *process = &search->around->process[i];
        const int64_t last_ns = search->is_after ? process->ended_ns : process->started_ns;
        if (!is_missing(search, process))
            continue;
        if (search->missing++ == 0 || (last_ns > search->last_ns) == search->is_after)
            search->last_ns = last_ns;
    }
}

static bool is_beyond(const struct search *search, int64_t call_id)
{
    return search->is_after ? call_id > search->last_ns : call_id < search->last_ns;
}

/* Reads the launches of a file. Returns an SQLite code. */
static int read_file(sqlite3 *connection, struct search *search, const char *sql, uint32_t file)
{
    enum { AHEAD = 1 << 16 }; /* launches after which it is asked again how far to go */
    sqlite3_stmt *launches = NULL;
    int rc = ct_series_prepare(connection, sql, file, &launches);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(launches, 1, search->from_ns);
    int64_t last_id = 0;
    for (size_t count = 1;
         rc == SQLITE_OK && search->missing > 0 && (rc = sqlite3_step(launches)) == SQLITE_ROW; count++) {
        rc = SQLITE_OK;
        if (is_beyond(search, sqlite3_column_int64(launches, 0)))
            break;
        const int64_t process_id = sqlite3_column_int64(launches, 1);
        const int64_t number =
            process_id == last_id ? 0 : ct_intern_find(&search->around->found, &process_id);
        last_id = process_id;
        struct process *process = number > 0 ? &search->around->process[number - 1] : NULL;
        if (process && is_missing(search, process)) {
            *(search->is_after ? &process->is_after : &process->is_before) = 1;
            search->missing--;
        }
        if (count % AHEAD == 0)
            look_ahead(search);
    }
    sqlite3_finalize(launches);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int find(sqlite3 *connection, struct around *around, bool is_after, int64_t from_ns)
{
    static const char *const sql[2][2] = {
        { ct_sql_stream_launches_before, ct_sql_stream_graph_launches_before },
        { ct_sql_stream_launches_after, ct_sql_stream_graph_launches_after },
    };
    struct search search = { .around = around, .is_after = is_after, .from_ns = from_ns };
    const uint32_t files = ct_series_files(connection); /* 0 is the newest */
    int rc = SQLITE_OK;
    look_ahead(&search);
    for (uint32_t i = 0; rc == SQLITE_OK && i < files && search.missing > 0; i++) {
        for (int graphs = 0; rc == SQLITE_OK && graphs < 2; graphs++)
            rc = read_file(connection, &search, sql[is_after][graphs], is_after ? files - 1 - i : i);
    }
    return rc;
}

/* Reads the processes that have launched. */
static int read_processes(sqlite3 *connection, const struct ct_scope *scope, struct around *around)
{
    sqlite3_stmt *rows = NULL;
    int rc = sqlite3_prepare_v2(connection, ct_sql_stream_launching, -1, &rows, NULL);
    sqlite3_bind_int64(rows, 1, scope->pid);
    while (rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const struct process process = { .process_id = sqlite3_column_int64(rows, 0),
                                         .started_ns = sqlite3_column_int64(rows, 1),
                                         .ended_ns = sqlite3_column_int64(rows, 2) };
        bool is_new;
        rc = SQLITE_OK;
        if (ct_intern_get(&around->found, &process.process_id, &is_new) == 0 ||
            !ct_make_room(&around->process, around->processes, &around->room, sizeof(process)))
            rc = SQLITE_NOMEM;
        else
            around->process[around->processes++] = process;
    }
    sqlite3_finalize(rows);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int compute(sqlite3 *connection, const struct ct_scope *scope, void **result)
{
    struct around *around = *result = calloc(1, sizeof(*around));
    if (!around)
        return SQLITE_NOMEM;
    ct_intern_init(&around->found, sizeof(int64_t), SIZE_MAX, 1);
    int rc = read_processes(connection, scope, around);
    if (rc == SQLITE_OK && scope->from_ns > 0)
        rc = find(connection, around, false, scope->from_ns);
    if (rc == SQLITE_OK && scope->to_ns < INT64_MAX)
        rc = find(connection, around, true, scope->to_ns);
    return rc;
}

static void release(void *result)
{
    struct around *around = result;
    if (!around)
        return;
    free(around->process);
    ct_intern_finish(&around->found);
    free(around);
}

static const struct ct_computation computation = { .view = "launches",
                                                   .compute = compute,
                                                   .release = release };
#define PROCESS(field_) CT_COMPUTED_COLUMN(#field_, NUMBER, process, field_)
static const struct ct_computed_column launch_around_columns[] = {
    PROCESS(process_id), PROCESS(is_before), PROCESS(is_after), { 0 }
};
CT_COMPUTED_TABLE(launch_around, process, around, process, processes);

int ct_launch_around_add(sqlite3 *connection, struct ct_computed_cache *cache)
{
    return ct_computed_add(connection, &launch_around, cache);
}
