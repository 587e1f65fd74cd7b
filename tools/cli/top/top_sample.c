#include "top_sample.h"

#include "client.h"
#include "clock.h"
#include "copy_table.h"
#include "proc.h"
#include "sessions.h"
#include "top_pending.h"
#include "trace_file.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_S = 2 };

static const struct {
    const char *side, *compare;
    const char *sort;
} views[CT_TOP_VIEWS] = {
    [CT_TOP_PROCESSES] = { ct_sql_top_processes_side, ct_sql_top_processes, "driver_%" },
    [CT_TOP_FUNCTIONS] = { ct_sql_top_functions_side, ct_sql_top_functions, "time_%" },
    [CT_TOP_THREADS] = { ct_sql_top_threads_side, ct_sql_top_threads, "driver_%" },
};

/* ---- the daemon, if any ---- */

static void close_daemon(struct ct_top *top)
{
    close(top->daemon); /* so that a late answer is not mistaken for the next one */
    top->daemon = -1;
}

static void ask_probed(struct ct_top *top)
{
    char *status = ct_client_status(top->daemon, ANSWER_S);
    const long long probed = status ? ct_client_status_number(status, "probed") : 0;
    top->probed = probed > 0 ? probed : 0;
    if (!status)
        close_daemon(top);
    free(status);
}

/* Makes the daemon store all recorded calls. Returns the time up to which calls are stored, or 0 if
 * unknown. */
static int64_t flush(struct ct_top *top)
{
    static char text[CT_ANSWER_BYTES];
    top->was_live |= top->is_live;
    top->is_live = false;
    top->why = NULL;
    if (top->daemon < 0)
        top->daemon = ct_session_connect_writer(&top->choice, top->series.path[0]);
    if (top->daemon < 0) {
        top->why = top->was_live ? "the daemon has exited; showing its last state" : NULL;
        return 0;
    }
    const int64_t now_ns = (int64_t)ct_monotonic_ns();
    switch (ct_client_ask(top->daemon, "flush", text, ANSWER_S)) {
    case CT_ANSWER_OK:
        top->is_live = true;
        ask_probed(top);
        return now_ns;
    case CT_ANSWER_NONE:
        top->why =
            ct_client_is_stopped(top->daemon) ? "the daemon is stopped" : "the daemon does not respond";
        close_daemon(top);
        return 0;
    default:
        top->why = text;
        return 0;
    }
}

/* ---- moments ---- */

static bool fail(struct ct_top *top, sqlite3 *connection)
{
    if (connection == top->moments)
        snprintf(top->problem, sizeof(top->problem), "%s", ct_sqlite_why(connection, SQLITE_NOMEM));
    else
        ct_trace_why(connection, SQLITE_NOMEM, top->problem, sizeof(top->problem));
    return false;
}

bool ct_top_open(struct ct_top *top)
{
    top->trace = ct_meant_trace_open(&top->choice, &top->series);
    if (!top->trace)
        return false;
    if (!top->moments &&
        (sqlite3_open(":memory:", &top->moments) != SQLITE_OK ||
         sqlite3_exec(top->moments, ct_sql_top_untraced_table, NULL, NULL, NULL) != SQLITE_OK ||
         sqlite3_exec(top->moments, ct_sql_top_pending_table, NULL, NULL, NULL) != SQLITE_OK)) {
        ct_fail(0, "top: %s", ct_sqlite_why(top->moments, SQLITE_NOMEM));
        return false;
    }
    return true;
}

void ct_top_close(struct ct_top *top)
{
    sqlite3_close(top->trace);
    sqlite3_close(top->moments);
    ct_untraced_free(&top->untraced);
    if (top->daemon >= 0)
        close(top->daemon);
    top->trace = top->moments = NULL;
    top->daemon = -1;
}

bool ct_top_follow(struct ct_top *top)
{
    const char *oldest = top->series.path[top->series.files - 1];
    struct ct_series now;
    if (!ct_series_find(oldest, &now) || strcmp(now.path[0], top->series.path[0]) == 0)
        return false;
    sqlite3 *trace = NULL;
    if (ct_series_open(&now, &trace) != SQLITE_OK) {
        sqlite3_close(trace); /* the file is still being created, and will be complete at the next attempt */
        return false;
    }
    sqlite3_close(top->trace);
    top->trace = trace;
    top->series = now;
    return true;
}

void ct_top_look_at(struct ct_top *top, enum ct_top_view view, int64_t process_id, int64_t pid)
{
    top->view = view;
    top->process_id = process_id;
    top->pid = pid;
    top->sort = NULL;
    top->is_reversed = false;
    top->samples = 0;
}

/* Returns a process's arguments, separated by spaces, or its name if it has cleared its arguments. The caller
 * frees the string. */
static char *command_of(pid_t pid)
{
    size_t bytes = 0;
    char *text = ct_proc_file(ct_proc_thread(pid), "cmdline", &bytes);
    if (!text || bytes == 0) {
        free(text);
        text = ct_proc_file(pid, "comm", &bytes);
    }
    while (text && bytes > 0 && (text[bytes - 1] == '\0' || text[bytes - 1] == '\n'))
        text[--bytes] = '\0';
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    return text;
}

/* Updates the table of untraced processes. The table stays empty if no daemon writes the trace, because such
 * a trace is an old one. */
static bool look_for_untraced(struct ct_top *top)
{
    sqlite3_stmt *insert = NULL;
    if (sqlite3_exec(top->moments, "DELETE FROM untraced", NULL, NULL, NULL) != SQLITE_OK)
        return false;
    if (!top->is_live || top->view != CT_TOP_PROCESSES || !ct_untraced_look(&top->untraced))
        return true;
    bool is_good =
        sqlite3_prepare_v2(top->moments, ct_sql_top_untraced_insert, -1, &insert, NULL) == SQLITE_OK;
    for (size_t i = 0; is_good && i < top->untraced.count; i++) {
        char *command = command_of(top->untraced.pid[i]);
        sqlite3_bind_int64(insert, 1, top->untraced.pid[i]);
        sqlite3_bind_text(insert, 2, command, -1, SQLITE_TRANSIENT);
        is_good = sqlite3_step(insert) == SQLITE_DONE;
        sqlite3_reset(insert);
        free(command);
    }
    sqlite3_finalize(insert);
    return is_good;
}

bool ct_top_sample(struct ct_top *top)
{
    int64_t now_ns = flush(top);
    /* Include calls that returned while the flush was storing earlier ones. */
    const int64_t last_ns = ct_ask_number(top->trace, ct_sql_top_last_moment, 0, 0);
    if (last_ns > now_ns)
        now_ns = last_ns;
    sqlite3_stmt *side = NULL;
    sqlite3 *blamed = top->trace;
    if (sqlite3_prepare_v2(top->trace, views[top->view].side, -1, &side, NULL) != SQLITE_OK)
        return fail(top, blamed);
    ct_bind_number(side, ":now_ns", now_ns);
    ct_bind_number(side, ":process_id", top->process_id);
    /* There are no current rates in a trace that no daemon writes. Such a trace is compared with an empty
     * table, so that sums count from the start of each process. */
    const bool is_first = top->samples == 0 || !top->is_live;
    const char *shift =
        is_first ? "DROP TABLE IF EXISTS a" : "DROP TABLE IF EXISTS a; ALTER TABLE b RENAME TO a";
    const bool shifted = sqlite3_exec(top->moments, shift, NULL, NULL, NULL) == SQLITE_OK;
    const bool taken = shifted && ct_copy_table(side, top->moments, "b", &blamed) == SQLITE_OK;
    sqlite3_finalize(side);
    if (!shifted || !taken)
        top->samples = 0; /* the tables do not hold a complete sample */
    if (!shifted || (taken && is_first &&
                     sqlite3_exec(top->moments, "CREATE TABLE a AS SELECT * FROM b WHERE 0", NULL, NULL,
                                  NULL) != SQLITE_OK))
        return fail(top, top->moments);
    if (!taken)
        return fail(top, blamed);
    top->last_ns = is_first ? 0 : top->at_ns;
    top->at_ns = now_ns;
    top->samples++;
    return (look_for_untraced(top) &&
            (top->view != CT_TOP_PROCESSES || ct_top_pending_look(top->trace, top->moments, now_ns))) ||
           fail(top, top->moments);
}

/* Returns whether a column holds text. Text is sorted in ascending order, and numbers in descending order. */
static bool is_text(const char *column)
{
    static const char *const texts[] = { "open_call", "gpu_work", "command", "state", "function",
                                         "layer",     "category", "name",    "pid" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i], column) == 0)
            return true;
    }
    return false;
}

/* Returns whether there is a column of this name. Otherwise, lists the columns in top->problem. */
static bool has_column(struct ct_top *top, sqlite3_stmt *rows, const char *name)
{
    const size_t bytes = sizeof(top->problem);
    size_t used =
        (size_t)snprintf(top->problem, bytes, "invalid value '%s' for --sort: expected one of", name);
    for (int c = 0; c < sqlite3_column_count(rows); c++) {
        const char *column = sqlite3_column_name(rows, c);
        if (column && strcmp(column, name) == 0)
            return true;
        if (used < bytes)
            used += (size_t)snprintf(top->problem + used, bytes - used, "%s %s", c ? "," : "",
                                     column ? column : "");
    }
    return false;
}

static void bind_text(const struct ct_top *top, sqlite3_stmt *rows)
{
    const int text = sqlite3_bind_parameter_index(rows, ":text");
    if (text > 0 && *top->text)
        sqlite3_bind_text(rows, text, top->text, -1, SQLITE_TRANSIENT);
}

sqlite3_stmt *ct_top_untraced(struct ct_top *top)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(top->moments, ct_sql_top_untraced, -1, &rows, NULL) != SQLITE_OK)
        fail(top, top->moments);
    else
        bind_text(top, rows);
    return rows;
}

sqlite3_stmt *ct_top_gpus(struct ct_top *top)
{
    sqlite3_stmt *rows = NULL;
    if (!top->is_live || sqlite3_prepare_v2(top->trace, ct_sql_top_gpus, -1, &rows, NULL) != SQLITE_OK)
        return NULL;
    ct_bind_number(rows, ":now_ns", top->at_ns);
    return rows;
}

sqlite3_stmt *ct_top_xids(struct ct_top *top)
{
    sqlite3_stmt *rows = NULL;
    sqlite3_prepare_v2(top->trace, ct_sql_top_xids, -1, &rows, NULL);
    return rows;
}

/* Prepares a query on the samples, and frees its text. Returns NULL with the reason in top->problem. */
static sqlite3_stmt *prepare_rows(struct ct_top *top, char *sql)
{
    sqlite3_stmt *rows = NULL;
    if (!sql || sqlite3_prepare_v2(top->moments, sql, -1, &rows, NULL) != SQLITE_OK)
        fail(top, top->moments);
    sqlite3_free(sql);
    if (rows) {
        bind_text(top, rows);
        ct_bind_number(rows, ":all", top->all || !top->is_live);
        ct_bind_number(rows, ":untraced", top->lists_untraced);
    }
    return rows;
}

static bool is_of_gpu(sqlite3_stmt *rows, int column)
{
    const char *name = sqlite3_column_name(rows, column);
    return name && strncmp(name, "gpu_", 4) == 0;
}

/* Returns whether a row has a value in a column about GPU work. */
static bool has_gpu_work(sqlite3_stmt *rows)
{
    while (sqlite3_step(rows) == SQLITE_ROW) {
        for (int c = 0; c < sqlite3_column_count(rows); c++) {
            if (is_of_gpu(rows, c) && sqlite3_column_type(rows, c) != SQLITE_NULL)
                return true;
        }
    }
    return false;
}

/* Returns the names of the columns to show, as a list for SELECT, or NULL if out of memory. The caller frees
 * it with sqlite3_free(). */
static char *columns_of(const struct ct_top *top, sqlite3_stmt *rows)
{
    const bool hides_gpu = top->hides_unused && !has_gpu_work(rows);
    sqlite3_str *list = sqlite3_str_new(top->moments);
    for (int c = 0; c < sqlite3_column_count(rows); c++) {
        if (!hides_gpu || !is_of_gpu(rows, c))
            sqlite3_str_appendf(list, "%s\"%w\"", sqlite3_str_length(list) ? ", " : "",
                                sqlite3_column_name(rows, c));
    }
    return sqlite3_str_finish(list);
}

sqlite3_stmt *ct_top_rows(struct ct_top *top)
{
    const char *sql = views[top->view].compare, *sort = top->sort ? top->sort : views[top->view].sort;
    sqlite3_stmt *rows = prepare_rows(top, sqlite3_mprintf("%s", sql));
    if (!rows || !has_column(top, rows, sort)) {
        sqlite3_finalize(rows);
        return NULL;
    }
    const bool ascending = is_text(sort) != top->is_reversed;
    char *columns = columns_of(top, rows);
    sqlite3_finalize(rows);
    rows = prepare_rows(top, columns ? sqlite3_mprintf("SELECT %s FROM (%s) ORDER BY \"%w\" %s NULLS LAST, 1",
                                                       columns, sql, sort, ascending ? "ASC" : "DESC")
                                     : NULL);
    sqlite3_free(columns);
    return rows;
}
