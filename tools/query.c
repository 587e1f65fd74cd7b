/* Reading traces: opening them so that nothing can be written, printing rows, `cudatrace sql`. */
#include "cudatrace.h"

#include "schema_version.h"
#include "series.h"

#include <getopt.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A query may read, and nothing else: no other files, no settings that outlive it. */
static int authorize(void *data, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    (void)data, (void)first, (void)second, (void)database, (void)trigger;
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

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
void ct_trace_file_uri(const char *path, char *uri, size_t bytes)
{
    char wal[4400];
    snprintf(wal, sizeof(wal), "%s-wal", path);
    if (access(wal, F_OK) != 0 && !strpbrk(path, "?#%"))
        snprintf(uri, bytes, "file:%s?immutable=1", path);
    else
        snprintf(uri, bytes, "%s%s", strncmp(path, "file:", 5) == 0 ? "./" : "", path);
}

int ct_trace_open_file(const char *path, sqlite3 **connection)
{
    char uri[4400];
    ct_trace_file_uri(path, uri, sizeof(uri));
    int rc = sqlite3_open_v2(uri, connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    sqlite3_busy_timeout(*connection, 10000);
    if (rc == SQLITE_OK && pragma(*connection, "SELECT count(*) FROM sqlite_master") < 0)
        rc = sqlite3_errcode(*connection);
    return rc;
}

bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes)
{
    *facts = (struct ct_trace_facts){ 0 };
    sqlite3 *connection = NULL;
    const bool readable = ct_trace_open_file(path, &connection) == SQLITE_OK;
    if (readable) {
        facts->application = pragma(connection, "PRAGMA application_id");
        facts->schema = pragma(connection, "PRAGMA user_version");
        facts->objects = pragma(connection, "SELECT count(*) FROM sqlite_master");
    } else {
        snprintf(problem, bytes, "%s", connection ? sqlite3_errmsg(connection) : "out of memory");
    }
    sqlite3_stmt *statement = NULL;
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
        ct_fail(0, "%s is the trace of an earlier boot; the newest one is %s", path, newest);
    if (series->left_out > 0)
        ct_fail(0, "the trace has %u files, of which the newest %u are read; name another with --db for more",
                series->files + series->left_out, series->files);
}

sqlite3 *ct_trace_open(const struct ct_options *options)
{
    char served[4096];
    const char *path = options->database ? options->database : "trace.db";
    if (!options->database && options->session_given) {
        const int daemon = ct_client_connect(options);
        if (daemon >= 0 && ct_client_ask(daemon, "database", served, sizeof(served)))
            path = served;
        if (daemon >= 0)
            close(daemon);
    }
    struct stat status;
    struct ct_series series;
    if (!ct_series_find(path, &series)) {
        ct_fail(EXIT_FAILURE,
                "no trace at '%s': name one with --db, or make it with `cudatrace run -- COMMAND`", path);
        return NULL;
    }
    sqlite3 *connection = NULL;
    const char *newest = series.path[0];
    const bool is_file = stat(newest, &status) == 0 && !S_ISDIR(status.st_mode);
    int rc = is_file ? ct_trace_open_file(newest, &connection) : SQLITE_CANTOPEN;
    if (rc == SQLITE_OK)
        rc = ct_series_attach(connection, &series);
    if (rc != SQLITE_OK) {
        ct_fail(EXIT_FAILURE, "cannot read '%s': %s", path,
                connection ? sqlite3_errmsg(connection) : "it is a directory");
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
    note_successor(path, &series);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_set_authorizer(connection, authorize, NULL);
    return connection;
}

/* ---- printing ---- */

bool ct_format_parse(const char *name, enum ct_format *format)
{
    static const char *const names[CT_FORMAT_COUNT] = { "table", "csv", "json" };
    for (int i = 0; i < CT_FORMAT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *format = (enum ct_format)i;
            return true;
        }
    }
    ct_fail(EXIT_USAGE, "--format %s: wants table, csv or json", name);
    return false;
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text ? (const char *)text : "";
}

static bool is_number(sqlite3_stmt *statement, int column)
{
    const int type = sqlite3_column_type(statement, column);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* Numbers that a query formatted as text stand to the right as well. */
static bool looks_like_number(const char *text)
{
    return *text && strspn(text, "+-.0123456789") == strlen(text);
}

/* Characters, not bytes: UTF-8's continuation bytes take no room. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static void print_padded(const char *text, int width, bool right, bool last, FILE *to)
{
    const int pad = width - width_of(text);
    if (right)
        fprintf(to, "%*s", pad > 0 ? pad : 0, "");
    fputs(text, to);
    if (!right && !last)
        fprintf(to, "%*s", pad > 0 ? pad : 0, "");
    fputs(last ? "\n" : "  ", to);
}

/* Column widths come from the first rows, which are held back until they are known. */
enum { ROWS_MEASURED = 1000 };

static void print_header(sqlite3_stmt *statement, int columns, const int *width, const bool *right, FILE *to)
{
    for (int c = 0; c < columns; c++)
        print_padded(sqlite3_column_name(statement, c), width[c], right[c], c + 1 == columns, to);
    for (int c = 0; c < columns; c++) {
        for (int i = 0; i < width[c]; i++)
            fputs("-", to);
        fputs(c + 1 == columns ? "\n" : "  ", to);
    }
}

static int print_table(sqlite3_stmt *statement, FILE *to)
{
    const int columns = sqlite3_column_count(statement);
    int *width = calloc((size_t)columns, sizeof(*width));
    bool *right = calloc((size_t)columns, sizeof(*right)), *words = calloc((size_t)columns, sizeof(*words));
    char **text = calloc((size_t)columns * ROWS_MEASURED, sizeof(*text));
    int rows = 0, rc = SQLITE_NOMEM;
    if (!width || !right || !words || !text)
        goto out;
    for (int c = 0; c < columns; c++)
        width[c] = width_of(sqlite3_column_name(statement, c));
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW && rows < ROWS_MEASURED) {
        for (int c = 0; c < columns; c++) {
            char *copy = strdup(text_of(statement, c));
            right[c] |= copy && looks_like_number(copy);
            words[c] |= copy && *copy && !looks_like_number(copy);
            if (copy && width_of(copy) > width[c])
                width[c] = width_of(copy);
            text[rows * columns + c] = copy;
        }
        rows++;
    }
    for (int c = 0; c < columns; c++)
        right[c] &= !words[c];
    if (columns > 0)
        print_header(statement, columns, width, right, to);
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < columns; c++) {
            char *cell = text[r * columns + c];
            print_padded(cell ? cell : "", width[c], right[c], c + 1 == columns, to);
        }
    }
    for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) {
        for (int c = 0; c < columns; c++)
            print_padded(text_of(statement, c), width[c], right[c], c + 1 == columns, to);
    }
out:
    for (int i = 0; text && i < rows * columns; i++)
        free(text[i]);
    free(text);
    free(right);
    free(words);
    free(width);
    return rc;
}

/* RFC 4180, but for the line's end. */
static void print_csv_field(const char *text, FILE *to)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static int print_csv(sqlite3_stmt *statement, FILE *to)
{
    const int columns = sqlite3_column_count(statement);
    for (int c = 0; c < columns; c++) {
        print_csv_field(sqlite3_column_name(statement, c), to);
        fputc(c + 1 == columns ? '\n' : ',', to);
    }
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int c = 0; c < columns; c++) {
            print_csv_field(text_of(statement, c), to);
            fputc(c + 1 == columns ? '\n' : ',', to);
        }
    }
    return rc;
}

static void print_json_string(const char *text, FILE *to)
{
    fputc('"', to);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

/* An array of objects, one a line. */
static int print_json(sqlite3_stmt *statement, FILE *to)
{
    const int columns = sqlite3_column_count(statement);
    const char *before = "[\n";
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        fputs(before, to);
        before = ",\n";
        for (int c = 0; c < columns; c++) {
            fputs(c == 0 ? "{" : ",", to);
            print_json_string(sqlite3_column_name(statement, c), to);
            fputc(':', to);
            if (sqlite3_column_type(statement, c) == SQLITE_NULL)
                fputs("null", to);
            else if (is_number(statement, c))
                fputs(text_of(statement, c), to);
            else
                print_json_string(text_of(statement, c), to);
        }
        fputc('}', to);
    }
    fputs(before[0] == '[' ? "[]\n" : "\n]\n", to);
    return rc;
}

int ct_print_rows(sqlite3_stmt *statement, enum ct_format format, FILE *to)
{
    static int (*const printers[CT_FORMAT_COUNT])(sqlite3_stmt *, FILE *) = { print_table, print_csv,
                                                                              print_json };
    const int rc = printers[format](statement, to);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
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
        if (sqlite3_prepare_v2(connection, sql, -1, &statement, &sql) != SQLITE_OK)
            return ct_fail(EXIT_FAILURE, "sql: %s", sqlite3_errmsg(connection));
        if (!statement)
            continue; /* a comment or a space */
        int rc = SQLITE_READONLY;
        if (sqlite3_stmt_readonly(statement))
            rc = ct_print_rows(statement, format, stdout);
        sqlite3_finalize(statement);
        if (rc == SQLITE_READONLY)
            return ct_fail(EXIT_FAILURE, "sql: a trace can be read, not written");
        if (rc != SQLITE_OK)
            return ct_fail(EXIT_FAILURE, "sql: %s", sqlite3_errmsg(connection));
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : ct_fail(EXIT_FAILURE, "sql: cannot write the result");
}

int ct_sql(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace sql [--db FILE] [--session NAME] [--shm-dir DIR] [--format table|csv|json] "
        "'QUERY'\n"
        "\n"
        "Asks the trace in SQL; it may still be being written. QUERY `-` is read from\n"
        "standard input. Nothing can be changed by a query.\n"
        "\n"
        "The views: processes, threads, functions, calls, launches, graph_launches, copies,\n"
        "memsets, allocations, waits, context_switches, open_calls, totals, losses; the\n"
        "table meta. `sqlite3 FILE .schema` shows them with their comments, docs/sql.md a\n"
        "dozen questions with their queries. Times are CLOCK_MONOTONIC nanoseconds.\n"
        "\n"
        "  --db FILE      the trace (default: ./trace.db)\n"
        "  --session NAME the trace of that session's daemon\n"
        "  --shm-dir DIR  where its shared memory is (default: $CUDATRACE_SHM_DIR, or /dev/shm)\n"
        "  --format F     table (aligned columns), csv or json (default: table)\n";
    static const struct option known[] = { { "format", required_argument, NULL, 'f' }, { 0 } };
    struct ct_options options;
    enum ct_format format = CT_FORMAT_TABLE;
    bool done;
    int status;
    const int first =
        ct_options_parse(argc, argv, known, help, &options, on_sql_option, &format, &done, &status);
    if (done)
        return status;
    if (first + 1 != argc)
        return ct_fail(EXIT_USAGE, "sql: wants one query (see cudatrace sql --help)");
    sqlite3 *connection = ct_trace_open(&options);
    if (!connection)
        return EXIT_FAILURE;
    char *read = NULL;
    size_t bytes = 0;
    const char *sql = argv[first];
    if (strcmp(sql, "-") == 0)
        sql = getdelim(&read, &bytes, '\0', stdin) >= 0 ? read : "";
    status = run_queries(connection, sql, format);
    free(read);
    sqlite3_close(connection);
    return status;
}
