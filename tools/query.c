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
    struct stat status;
    *connection = NULL;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return SQLITE_CANTOPEN; /* a FIFO would have us wait */
    ct_trace_file_uri(path, uri, sizeof(uri));
    int rc = sqlite3_open_v2(uri, connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    sqlite3_busy_timeout(*connection, 10000);
    ct_trace_confine(*connection);
    if (rc == SQLITE_OK && pragma(*connection, "SELECT count(*) FROM sqlite_master") < 0)
        rc = sqlite3_errcode(*connection);
    return rc;
}

bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes)
{
    *facts = (struct ct_trace_facts){ 0 };
    sqlite3 *connection = NULL;
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        snprintf(problem, bytes, "it is not a regular file");
        return false;
    }
    const bool readable = ct_trace_open_file(path, &connection) == SQLITE_OK;
    if (readable) {
        ct_trace_hurry(connection);
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
        ct_fail(0, "%s is the trace of an earlier boot or of an older version; the newest one is %s", path,
                newest);
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
        if (daemon >= 0 && ct_client_ask(daemon, "database", served, sizeof(served)) && served[0] == '/')
            path = served;
        else if (daemon >= 0 && ct_client_is_stopped(daemon))
            path = NULL;
        if (!path)
            ct_fail(EXIT_FAILURE, "the daemon of session '%s' %s; --db names a trace without asking it",
                    options->session, ct_client_why(daemon));
        if (daemon >= 0)
            close(daemon);
        if (!path)
            return NULL;
    }
    struct stat status;
    struct ct_series series;
    if (!ct_series_find(path, &series)) {
        ct_fail(EXIT_FAILURE,
                "no trace at '%s': name one with --db, or with --session what its daemon writes, or make one "
                "with `cudatrace run -- COMMAND`",
                path);
        return NULL;
    }
    sqlite3 *connection = NULL;
    const char *newest = series.path[0];
    const bool is_file = stat(newest, &status) == 0 && S_ISREG(status.st_mode);
    int rc = is_file ? ct_trace_open_file(newest, &connection) : SQLITE_CANTOPEN;
    if (rc == SQLITE_OK && series.files > 1) {
        sqlite3_set_authorizer(connection, NULL, NULL);
        rc = ct_series_attach(connection, &series);
        ct_trace_confine(connection);
    }
    if (rc != SQLITE_OK) {
        ct_fail(EXIT_FAILURE, "cannot read '%s': %s", path,
                !connection ? (S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file")
                : access(newest, R_OK) != 0 ? strerror(errno)
                                            : sqlite3_errmsg(connection));
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

/* A value as text, ended by a NUL and perhaps holding others; `bytes` is its length. */
static const char *text_of(sqlite3_stmt *statement, int column, size_t *bytes)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    *bytes = text ? (size_t)sqlite3_column_bytes(statement, column) : 0;
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

/* Column widths come from the first rows, which are held back until they are known. What is wider than
 * WIDTH_MAX does not make the other rows so. */
enum { ROWS_MEASURED = 1000, BYTES_MEASURED = 16 * 1024 * 1024, WIDTH_MAX = 1000 };

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

/* The row that the statement stands on, a string to be freed for each column; how many bytes they have. */
static size_t copy_row(sqlite3_stmt *statement, int columns, char **cell)
{
    size_t sum = 0, bytes;
    for (int c = 0; c < columns; c++) {
        const char *text = text_of(statement, c, &bytes);
        cell[c] = ct_printable(text, bytes);
        sum += cell[c] ? strlen(cell[c]) : 0;
    }
    return sum;
}

static void print_row(char **cell, int columns, const int *width, const bool *right, FILE *to)
{
    for (int c = 0; c < columns; c++) {
        print_padded(cell[c] ? cell[c] : "", width[c], right[c], c + 1 == columns, to);
        free(cell[c]);
        cell[c] = NULL;
    }
}

static void print_header(sqlite3_stmt *statement, int columns, const int *width, const bool *right, FILE *to)
{
    for (int c = 0; c < columns; c++) {
        const char *raw = sqlite3_column_name(statement, c);
        char *name = ct_printable(raw ? raw : "", raw ? strlen(raw) : 0);
        print_padded(name ? name : "", width[c], right[c], c + 1 == columns, to);
        free(name);
    }
    for (int c = 0; c < columns; c++) {
        for (int i = 0; i < width[c]; i++)
            fputs("-", to);
        fputs(c + 1 == columns ? "\n" : "  ", to);
    }
}

static int wider(int width, const char *text)
{
    const int here = width_of(text);
    return here <= width ? width : here < WIDTH_MAX ? here : WIDTH_MAX;
}

static int print_table(sqlite3_stmt *statement, FILE *to)
{
    const int columns = sqlite3_column_count(statement);
    int *width = calloc((size_t)columns, sizeof(*width));
    bool *right = calloc((size_t)columns, sizeof(*right)), *words = calloc((size_t)columns, sizeof(*words));
    char **text = calloc((size_t)columns * (ROWS_MEASURED + 1), sizeof(*text));
    int rows = 0, rc = SQLITE_NOMEM;
    size_t bytes = 0;
    if (!width || !right || !words || !text)
        goto out;
    for (int c = 0; c < columns; c++)
        width[c] = wider(0, sqlite3_column_name(statement, c));
    while (rows < ROWS_MEASURED && bytes < BYTES_MEASURED && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        char **row = text + (size_t)rows++ * (size_t)columns;
        bytes += copy_row(statement, columns, row);
        for (int c = 0; c < columns; c++) {
            const char *cell = row[c] ? row[c] : "";
            right[c] |= looks_like_number(cell);
            words[c] |= *cell && !looks_like_number(cell);
            width[c] = wider(width[c], cell);
        }
    }
    for (int c = 0; c < columns; c++)
        right[c] &= !words[c];
    if (columns > 0)
        print_header(statement, columns, width, right, to);
    for (int r = 0; r < rows; r++)
        print_row(text + (size_t)r * (size_t)columns, columns, width, right, to);
    while (rc == SQLITE_ROW && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        copy_row(statement, columns, text);
        print_row(text, columns, width, right, to);
    }
out:
    free(text);
    free(right);
    free(words);
    free(width);
    return rc;
}

/* RFC 4180, but for the line's end. */
static void print_csv_field(const char *text, size_t bytes, FILE *to)
{
    if (memchr(text, '\0', bytes) == NULL && !strpbrk(text, ",\"\n\r")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"')
            fputc('"', to);
        fputc(text[i], to);
    }
    fputc('"', to);
}

static int print_csv(sqlite3_stmt *statement, FILE *to)
{
    const int columns = sqlite3_column_count(statement);
    for (int c = 0; c < columns; c++) {
        const char *name = sqlite3_column_name(statement, c);
        print_csv_field(name, strlen(name), to);
        fputc(c + 1 == columns ? '\n' : ',', to);
    }
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int c = 0; c < columns; c++) {
            size_t bytes;
            const char *text = text_of(statement, c, &bytes);
            print_csv_field(text, bytes, to);
            fputc(c + 1 == columns ? '\n' : ',', to);
        }
    }
    return rc;
}

/* What is no UTF-8 has no place in JSON: U+FFFD stands for each such byte. */
static void print_json_string(const char *text, size_t bytes, FILE *to)
{
    fputc('"', to);
    for (size_t i = 0; i < bytes;) {
        const unsigned char c = (unsigned char)text[i];
        uint32_t point;
        const size_t length = ct_utf8_next(text + i, bytes - i, &point);
        if (length == 0)
            fputs("\\ufffd", to);
        else if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else
            fwrite(text + i, 1, length, to);
        i += length ? length : 1;
    }
    fputc('"', to);
}

static void print_json_value(sqlite3_stmt *statement, int column, FILE *to)
{
    size_t bytes;
    const char *text = text_of(statement, column, &bytes);
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        fputs("null", to);
    else if (!is_number(statement, column))
        print_json_string(text, bytes, to);
    else if (strstr(text, "Inf"))
        fputs(*text == '-' ? "-9e999" : "9e999", to);
    else
        fputs(text, to);
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
            const char *name = sqlite3_column_name(statement, c);
            print_json_string(name, strlen(name), to);
            fputc(':', to);
            print_json_value(statement, c, to);
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
        const int prepared = sqlite3_prepare_v2(connection, sql, -1, &statement, &sql);
        if (prepared != SQLITE_OK)
            return ct_fail(EXIT_FAILURE, "sql: %s%s", sqlite3_errmsg(connection),
                           prepared == SQLITE_AUTH ? ": a query reads its trace, and does nothing else" : "");
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
        "Usage: cudatrace sql [--db FILE] [--session NAME] [--shm-dir DIR]\n"
        "                     [--format table|csv|json] 'QUERY'\n"
        "\n"
        "Asks the trace in SQL; it may still be being written. QUERY `-` is read from\n"
        "standard input. Nothing can be changed by a query.\n"
        "\n"
        "The views: processes, threads, functions, calls, launches, graph_launches, copies,\n"
        "memsets, allocations, waits, context_switches, open_calls, totals, losses; the\n"
        "table meta. `sqlite3 FILE .schema` shows them with their comments, docs/sql.md a\n"
        "dozen questions with their queries. Times are CLOCK_MONOTONIC nanoseconds.\n"
        "\n"
        "  --db FILE       the trace (default: ./trace.db)\n"
        "  --session NAME  the trace of that session's daemon\n" CT_SHM_DIR_HELP
        "  --format F      table (aligned columns), csv or json (default: table)\n";
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
