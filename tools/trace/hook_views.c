#include "hook_views.h"

#include "confine.h"
#include "series.h"

#include "schema_sql.h"

#include <stdbool.h>
#include <stdio.h>

/* Returns a query for the fields of all hooks, ordered by hook, or NULL. The query's columns are the names of
 * the hook, of the field, and of the field's column in the view. */
static sqlite3_stmt *ask_fields(sqlite3 *connection)
{
    const uint32_t files = ct_series_files(connection);
    sqlite3_str *each = sqlite3_str_new(connection);
    for (uint32_t i = 0; i < files; i++) {
        sqlite3_str_appendall(each, i > 0 ? " UNION ALL " : "");
        sqlite3_str_appendf(each, ct_sql_series_hook_fields, ct_series_schema(i), ct_series_schema(i));
    }
    char *query = sqlite3_mprintf(ct_sql_series_hook_fields_of_all, sqlite3_str_finish(each));
    sqlite3_stmt *rows = NULL;
    if (query)
        sqlite3_prepare_v2(connection, query, -1, &rows, NULL);
    sqlite3_free(query);
    return rows;
}

static void end_view(sqlite3_str *sql, const char *hook)
{
    if (*hook)
        sqlite3_str_appendf(sql, ct_sql_series_hook_view_end, hook);
}

/* Returns the statements that create the views, or NULL if the names cannot be read. */
static char *statements_for(sqlite3 *connection)
{
    sqlite3_stmt *rows = ask_fields(connection);
    sqlite3_str *sql = sqlite3_str_new(connection);
    char hook[128] = "";
    int rc = SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(rows, 0);
        const char *field = (const char *)sqlite3_column_text(rows, 1);
        const char *column = (const char *)sqlite3_column_text(rows, 2);
        if (!name || !field || !column || sqlite3_column_bytes(rows, 0) >= (int)sizeof(hook))
            continue;
        if (sqlite3_stricmp(name, hook) != 0) {
            end_view(sql, hook);
            snprintf(hook, sizeof(hook), "%s", name);
            sqlite3_str_appendf(sql, ct_sql_series_hook_view, name);
        }
        sqlite3_str_appendf(sql, ct_sql_series_hook_view_field, field, column);
    }
    end_view(sql, hook);
    sqlite3_finalize(rows);
    char *statements = sqlite3_str_finish(sql);
    if (rc == SQLITE_DONE)
        return statements;
    sqlite3_free(statements);
    return NULL;
}

void ct_hook_views_make(sqlite3 *connection)
{
    ct_trace_hurry(connection); /* in a forged file, the query may have no end */
    char *statements = statements_for(connection);
    sqlite3_progress_handler(connection, 0, NULL, NULL);
    if (!statements)
        return;
    sqlite3_set_authorizer(connection, NULL, NULL);
    sqlite3_exec(connection, statements, NULL, NULL, NULL);
    sqlite3_free(statements);
    ct_trace_confine(connection);
}
