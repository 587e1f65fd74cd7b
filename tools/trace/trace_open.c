/* Reading traces: opening them so that nothing can be written, printing rows, `cudatrace sql`. */
#include "cudatrace.h"

#include "schema_version.h"
#include "series.h"

#include <errno.h>
#include <getopt.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t pragma(sqlite3 *connection, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t value = -1;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* A trace without a write-ahead log has no daemon at work and is read as a file that does not change: SQLite
 * would else leave files beside it that a reader may not remove, or fail in a folder that cannot be written.
 */
char *ct_trace_file_uri(const char *path)
{
    char *wal = sqlite3_mprintf("%s-wal", path);
    const bool is_written = wal && access(wal, F_OK) == 0;
    /* Between two slashes and a third there is a host: none. What is no path for SQLite (:memory:, file:…) is
     * one behind a folder. */
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, path[0] == '/' ? "file://" : "file:./");
    for (const char *at = path; *at; at++) {
        if (strchr("?#%", *at))
            sqlite3_str_appendf(uri, "%%%02X", *at);
        else
            sqlite3_str_append(uri, at, 1);
    }
    sqlite3_str_appendall(uri, is_written ? "" : "?immutable=1");
    sqlite3_free(wal);
    return sqlite3_str_finish(uri);
}

/* Why a file is not even opened: a FIFO would have us wait, a device may do something. NULL for none. */
static const char *refusal(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode))
        return NULL;
    return S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file";
}

int ct_trace_open_file(const char *path, sqlite3 **connection)
{
    *connection = NULL;
    if (refusal(path))
        return SQLITE_CANTOPEN;
    char *uri = ct_trace_file_uri(path);
    int rc =
        uri ? sqlite3_open_v2(uri, connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) : SQLITE_NOMEM;
    sqlite3_free(uri);
    if (!*connection)
        return SQLITE_NOMEM;
    sqlite3_busy_timeout(*connection, 10000);
    ct_trace_confine(*connection);
    if (rc == SQLITE_OK && pragma(*connection, "SELECT count(*) FROM sqlite_master") < 0)
        rc = sqlite3_errcode(*connection);
    return rc;
}

/* Why ct_trace_open_file() failed; valid as long as the connection. */
static const char *problem_of(const char *path, sqlite3 *connection)
{
    const char *refused = refusal(path);
    if (refused)
        return refused;
    if (access(path, R_OK) != 0)
        return strerror(errno);
    return ct_sqlite_why(connection, SQLITE_NOMEM);
}

const char *ct_sqlite_why(sqlite3 *connection, int rc)
{
    const int last = connection ? sqlite3_errcode(connection) : SQLITE_NOMEM;
    const bool is_error = last != SQLITE_OK && last != SQLITE_ROW && last != SQLITE_DONE;
    return connection && is_error ? sqlite3_errmsg(connection)
                                  : sqlite3_errstr(connection ? rc : SQLITE_NOMEM);
}

bool ct_trace_why(sqlite3 *connection, int rc, char *why, size_t bytes)
{
    char said[256];
    snprintf(said, sizeof(said), "%s", ct_sqlite_why(connection, rc));
    const int64_t schema = connection ? pragma(connection, "PRAGMA user_version") : -1;
    const bool is_older = schema >= 0 && schema < CT_SCHEMA_VERSION;
    if (is_older)
        snprintf(why, bytes, "the trace was written by an older cudatrace (schema %lld, this wants %d)",
                 (long long)schema, CT_SCHEMA_VERSION);
    else
        snprintf(why, bytes, "%s", said);
    return is_older;
}

bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes)
{
    *facts = (struct ct_trace_facts){ 0 };
    sqlite3 *connection = NULL;
    sqlite3_stmt *statement = NULL;
    const bool readable = ct_trace_open_file(path, &connection) == SQLITE_OK;
    if (readable) {
        ct_trace_hurry(connection);
        facts->application = pragma(connection, "PRAGMA application_id");
        facts->schema = pragma(connection, "PRAGMA user_version");
        facts->objects = pragma(connection, "SELECT count(*) FROM sqlite_master");
    } else {
        snprintf(problem, bytes, "%s", problem_of(path, connection));
    }
    if (readable &&
        sqlite3_prepare_v2(connection, "SELECT value FROM meta WHERE key = 'boot_id'", -1, &statement,
                           NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
        snprintf(facts->boot_id, sizeof(facts->boot_id), "%s",
                 (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(connection);
    return readable;
}

/* At another boot the daemon begins the next numbered file: whoever names the first one should know. */
static void note_successor(const char *path, const struct ct_series *series)
{
    char newest[sizeof(series->path[0])];
    const uint32_t number = ct_trace_file_before(path, UINT32_MAX);
    if (number > 1 && ct_trace_file(newest, sizeof(newest), path, number) &&
        strcmp(newest, series->path[0]) != 0)
        ct_fail(0, "%s is the trace of an earlier boot or of an older version; the newest one is %s", path,
                newest);
    if (series->left_out > 0)
        ct_fail(0, "the trace has %u files, of which the newest %u are read; name another with --db for more",
                series->files + series->left_out, series->files);
}

sqlite3 *ct_trace_open(const struct ct_options *options, struct ct_series *found)
{
    char served[4096];
    const char *path = options->database ? options->database : "trace.db";
    if (!options->database && options->session_given) {
        const int daemon = ct_client_connect(options);
        const enum ct_answer said =
            daemon >= 0 ? ct_client_ask(daemon, "database", served, sizeof(served)) : CT_ANSWER_NONE;
        if (said == CT_ANSWER_OK)
            path = served;
        else if (said == CT_ANSWER_REFUSED || (daemon >= 0 && ct_client_is_stopped(daemon)))
            path = NULL;
        if (said == CT_ANSWER_REFUSED)
            ct_fail(
                EXIT_FAILURE,
                "session '%s' is served by the system's daemon, whose trace root can read, and a group if "
                "root gave it one",
                options->session);
        else if (!path)
            ct_fail(EXIT_FAILURE, "the daemon of session '%s' %s; --db names a trace without asking it",
                    options->session, ct_client_why(daemon));
        if (daemon >= 0)
            close(daemon);
        if (!path)
            return NULL;
    }
    struct ct_series ours, *series = found ? found : &ours;
    if (!ct_series_find(path, series)) {
        const char *why = access(path, F_OK) != 0 && errno != ENOENT ? strerror(errno) : NULL;
        ct_fail(EXIT_FAILURE,
                "no trace at '%s'%s%s: name one with --db, or with --session what its daemon writes, or make "
                "one with `cudatrace run -- COMMAND`",
                path, why ? ", " : "", why ? why : "");
        return NULL;
    }
    sqlite3 *connection = NULL;
    if (ct_series_open(series, &connection) != SQLITE_OK) {
        ct_fail(EXIT_FAILURE, "cannot read '%s': %s", path, problem_of(series->path[0], connection));
        sqlite3_close(connection);
        return NULL;
    }
    const int64_t version = pragma(connection, "PRAGMA user_version");
    if (pragma(connection, "PRAGMA application_id") != CT_APPLICATION_ID) {
        ct_fail(EXIT_FAILURE, "'%s' is no cudatrace database: name one with --db", path);
        sqlite3_close(connection);
        return NULL;
    }
    if (version > CT_SCHEMA_VERSION) {
        ct_fail(EXIT_FAILURE,
                "'%s' was written by a newer cudatrace (schema %lld, this one knows %d): update cudatrace",
                path, (long long)version, CT_SCHEMA_VERSION);
        sqlite3_close(connection);
        return NULL;
    }
    note_successor(path, series);
    return connection;
}

/* ---- cudatrace sql ---- */

static bool on_sql_option(int option, const char *value, void *data)
{
    (void)option;
    return ct_format_parse(value, data);
}

static int run_queries(sqlite3 *connection, const char *sql, enum ct_format format)
{
    while (*sql) {
        sqlite3_stmt *statement = NULL;
        const int prepared = sqlite3_prepare_v2(connection, sql, -1, &statement, &sql);
        if (prepared != SQLITE_OK)
            return ct_fail(EXIT_FAILURE, "sql: %s%s", sqlite3_errmsg(connection),
                           prepared == SQLITE_AUTH ? ": a query reads its trace, and does nothing else" : "");
        if (!statement)
            continue; /* a comment or a space */
        int rc = SQLITE_READONLY;
        if (sqlite3_stmt_readonly(statement))
            rc = ct_print_rows(statement, format, ct_terminal_width(), stdout, NULL);
        sqlite3_finalize(statement);
        if (rc == SQLITE_READONLY)
            return ct_fail(EXIT_FAILURE, "sql: a trace can be read, not written");
        if (rc != SQLITE_OK)
            return ct_fail(EXIT_FAILURE, "sql: %s", ct_sqlite_why(connection, rc));
    }
    return EXIT_SUCCESS;
}

int ct_sql(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace sql [--db FILE] [--session NAME] [--shm-dir DIR]\n"
        "                     [--format text|csv|json|markdown] 'QUERY'\n"
        "\n"
        "Asks the trace in SQL; it may still be being written. QUERY `-` is read from\n"
        "standard input. Nothing can be changed by a query.\n"
        "\n"
        "The views: processes, threads, functions, calls, long_calls, launches, launch_shapes,\n"
        "graphs, graph_launches, copies, memsets, allocations, objects, waits, event_waits,\n"
        "host_callbacks, context_switches, module_loads, object_names, ranges, open_calls, totals, "
        "durations,\n"
        "failures, losses;\n"
        "the table meta. `sqlite3 FILE .schema` shows them with their comments,\n"
        "docs/sql.md has questions with their queries. Times are CLOCK_MONOTONIC nanoseconds.\n"
        "\n"
        "  --db FILE       the trace (default: ./trace.db)\n"
        "  --session NAME  the trace of that session's daemon\n" CT_SHM_DIR_HELP CT_FORMAT_HELP;
    static const struct option known[] = { { "format", required_argument, NULL, 'f' }, { 0 } };
    struct ct_options options;
    enum ct_format format = CT_FORMAT_TEXT;
    bool done;
    int status;
    const int first =
        ct_options_parse(argc, argv, known, help, &options, on_sql_option, &format, &done, &status);
    if (done)
        return status;
    if (first + 1 != argc)
        return ct_fail(EXIT_USAGE, "sql: wants one query (see cudatrace sql --help)");
    sqlite3 *connection = ct_trace_open(&options, NULL);
    if (!connection)
        return EXIT_FAILURE;
    char *read = NULL;
    size_t bytes = 0;
    const char *sql = argv[first];
    if (strcmp(sql, "-") == 0)
        sql = getdelim(&read, &bytes, '\0', stdin) >= 0 ? read : "";
    if (ferror(stdin))
        status = ct_fail(EXIT_FAILURE, "sql: cannot read the query: %s", strerror(errno));
    else
        status = run_queries(connection, sql, format);
    free(read);
    sqlite3_close(connection);
    return status;
}
