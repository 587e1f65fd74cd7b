#include "top_pending.h"

#include "clock.h"

#include "schema_sql.h"

/* For each process, the view gpu_pending examines up to 10,000 calls, which takes about 60 ms. It is
 * therefore queried again only after the process has made calls, or some of its work has been returned. If
 * the queries of one sample take longer than this, the remaining processes are examined in the next sample.
 */
#define LOOK_MAX_NS UINT64_C(250000000)

struct statements {
    sqlite3_stmt *keep, *read, *insert;
};

/* Runs a statement that returns no rows. */
static bool run(sqlite3_stmt *statement)
{
    const bool is_good = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
    return is_good;
}

static void bind_process(sqlite3_stmt *statement, sqlite3_stmt *process, int64_t at_ns)
{
    for (int c = 0; c < 3; c++)
        sqlite3_bind_value(statement, c + 1, sqlite3_column_value(process, c));
    sqlite3_bind_int64(statement, 4, at_ns);
}

/* Writes to the table which work the process's GPU has not finished, or NULL if there is no such work. */
static bool read_work(const struct statements *sql, sqlite3_stmt *process, int64_t at_ns)
{
    sqlite3_bind_int64(sql->read, 1, sqlite3_column_int64(process, 0));
    const bool has_work = sqlite3_step(sql->read) == SQLITE_ROW;
    bind_process(sql->insert, process, at_ns);
    for (int c = 0; c < 2; c++) {
        if (has_work)
            sqlite3_bind_value(sql->insert, 5 + c, sqlite3_column_value(sql->read, c));
        else
            sqlite3_bind_null(sql->insert, 5 + c);
    }
    sqlite3_reset(sql->read);
    return run(sql->insert);
}

/* Examines each process that the statement `processes` returns. */
static bool look_at_each(sqlite3 *moments, const struct statements *sql, sqlite3_stmt *processes,
                         int64_t at_ns)
{
    const uint64_t until_ns = ct_monotonic_ns() + LOOK_MAX_NS;
    while (sqlite3_step(processes) == SQLITE_ROW) {
        bind_process(sql->keep, processes, at_ns);
        if (!run(sql->keep))
            return false;
        if (sqlite3_changes(moments) == 0 && ct_monotonic_ns() < until_ns &&
            !read_work(sql, processes, at_ns))
            return false;
    }
    return true;
}

bool ct_top_pending_look(sqlite3 *trace, sqlite3 *moments, int64_t at_ns)
{
    struct statements sql = { 0 };
    sqlite3_stmt *processes = NULL, *forget = NULL;
    bool is_good =
        sqlite3_prepare_v2(moments, ct_sql_top_pending_keep, -1, &sql.keep, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(moments, ct_sql_top_pending_insert, -1, &sql.insert, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(moments, ct_sql_top_pending_forget, -1, &forget, NULL) == SQLITE_OK;
    if (is_good && sqlite3_prepare_v2(trace, ct_sql_top_idle_recordings, -1, &processes, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(trace, ct_sql_top_pending, -1, &sql.read, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(processes, 1, at_ns);
        is_good = look_at_each(moments, &sql, processes, at_ns);
    }
    sqlite3_bind_int64(forget, 1, at_ns);
    is_good = is_good && run(forget);
    sqlite3_finalize(sql.keep);
    sqlite3_finalize(sql.read);
    sqlite3_finalize(sql.insert);
    sqlite3_finalize(processes);
    sqlite3_finalize(forget);
    return is_good;
}
