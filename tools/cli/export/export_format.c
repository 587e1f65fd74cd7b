#include "export_format.h"

#include "print_rows.h"
#include "printable.h"
#include "room.h"

#include "schema_sql.h"

#include <errno.h>
#include <string.h>

/* ---- rows ---- */

const char *ct_export_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

void ct_export_note_error(sqlite3 *file)
{
    const int error = file ? sqlite3_errcode(file) : SQLITE_NOMEM;
    if (error != SQLITE_OK && error != SQLITE_ROW && error != SQLITE_DONE)
        errno = error == SQLITE_FULL ? ENOSPC : error == SQLITE_NOMEM ? ENOMEM : EIO;
}

sqlite3_stmt *ct_export_ask(struct ct_export *to, const char *sql)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(to->connection, sql, -1, &rows, NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_int64(rows, 1, to->scope.pid);
    sqlite3_bind_int64(rows, 2, to->scope.from_ns);
    sqlite3_bind_int64(rows, 3, to->scope.to_ns);
    return rows;
}

static bool each(struct ct_export *to, const char *sql, ct_export_write *is_wanted, ct_export_write *write)
{
    sqlite3_stmt *rows = ct_export_ask(to, sql);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    bool good = true;
    while (rows && good && (rc = sqlite3_step(rows)) == SQLITE_ROW)
        good = (is_wanted && !is_wanted(to, rows)) || write(to, rows);
    sqlite3_finalize(rows);
    return good && rc == SQLITE_DONE;
}

bool ct_export_each(struct ct_export *to, const char *sql, ct_export_write *write)
{
    return each(to, sql, NULL, write);
}

bool ct_export_each_of_newer(struct ct_export *to, const char *sql, ct_export_write *write)
{
    sqlite3_stmt *rows = ct_export_ask(to, sql);
    const bool is_missing = !rows && sqlite3_errcode(to->connection) == SQLITE_ERROR;
    sqlite3_finalize(rows);
    return is_missing || ct_export_each(to, sql, write);
}

static bool is_in_scope(struct ct_export *to, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 2);
    const char *layer = (const char *)sqlite3_column_text(row, 6);
    return name && layer && ct_stream_wants(&to->scope, sqlite3_column_int64(row, 5), layer, name);
}

bool ct_export_each_open_call(struct ct_export *to, ct_export_write *write)
{
    return each(to, ct_sql_exports_open_calls, is_in_scope, write);
}

/* ---- processes ---- */

static int compare_processes(const void *a, const void *b)
{
    const struct ct_export_process *x = a, *y = b;
    return (x->process_id > y->process_id) - (x->process_id < y->process_id);
}

const struct ct_export_process *ct_export_process(const struct ct_export *to, int64_t process_id)
{
    static char nothing[] = "";
    static const struct ct_export_process none = { .name = nothing };
    const struct ct_export_process wanted = { .process_id = process_id };
    const struct ct_export_process *found =
        to->process_count
            ? bsearch(&wanted, to->process, to->process_count, sizeof(wanted), compare_processes)
            : NULL;
    return found ? found : &none;
}

int ct_export_load_processes(struct ct_export *to)
{
    sqlite3_stmt *rows = ct_export_ask(to, ct_sql_exports_processes);
    int rc = rows ? SQLITE_OK : sqlite3_errcode(to->connection);
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        char *name = strdup(ct_export_text(rows, 3));
        if (!name ||
            !ct_make_room(&to->process, to->process_count, &to->process_room, sizeof(*to->process))) {
            free(name);
            rc = SQLITE_NOMEM;
            break;
        }
        to->process[to->process_count++] = (struct ct_export_process){
            .process_id = sqlite3_column_int64(rows, 0),
            .pid = sqlite3_column_int64(rows, 1),
            .track = sqlite3_column_int64(rows, 2),
            .name = name,
        };
    }
    sqlite3_finalize(rows);
    if (to->process_count)
        qsort(to->process, to->process_count, sizeof(*to->process), compare_processes);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void ct_export_free_processes(struct ct_export *to)
{
    for (size_t i = 0; i < to->process_count; i++)
        free(to->process[i].name);
    free(to->process);
}

/* ---- values ---- */

void ct_export_time(struct ct_export *to, int64_t ns, int64_t unit_ns, int decimals)
{
    const int64_t positive = ns < 0 ? -ns : ns;
    fprintf(to->to, "%s%lld.%0*lld", ns < 0 ? "-" : "", (long long)(positive / unit_ns), decimals,
            (long long)(positive % unit_ns));
}

void ct_export_string(struct ct_export *to, const char *text)
{
    ct_print_json_string(text ? text : "", text ? strlen(text) : 0, to->to);
}

int ct_export_details(struct ct_export *to, const struct ct_stream_call *call, const char *before)
{
    enum ct_detail detail;
    sqlite3_stmt *row = ct_stream_detail(to->stream, call, &detail);
    if (detail != CT_DETAIL_HOOK)
        return row ? ct_print_json_members(row, before, to->to) : 0;
    fprintf(to->to, "%s\"fields\":", before);
    ct_print_json_pairs(row, to->to);
    return 1;
}
