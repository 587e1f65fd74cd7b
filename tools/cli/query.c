/* Implements `cudatrace sql`, which runs a query and prints the resulting rows. */
#include "hook_views.h"
#include "print_rows.h"
#include "printable.h"
#include "sessions.h"
#include "subcommand.h"
#include "trace_file.h"

#include "schema_sql.h"

#include <errno.h>
#include <string.h>

static int run_queries(sqlite3 *connection, const char *sql, enum ct_format format)
{
    while (*sql) {
        sqlite3_stmt *statement = NULL;
        const int prepared = sqlite3_prepare_v2(connection, sql, -1, &statement, &sql);
        if (prepared != SQLITE_OK)
            return ct_fail(EXIT_FAILURE, "sql: %s%s", sqlite3_errmsg(connection),
                           prepared == SQLITE_AUTH ? ": a query may only read its trace" : "");
        if (!statement)
            continue; /* a comment or blanks */
        int rc = SQLITE_READONLY;
        if (sqlite3_stmt_readonly(statement))
            rc = ct_print_rows(statement, format, ct_terminal_width(), stdout, NULL);
        sqlite3_finalize(statement);
        if (rc == SQLITE_READONLY)
            return ct_fail(EXIT_FAILURE, "sql: a query cannot write to the trace");
        if (rc != SQLITE_OK)
            return ct_fail(EXIT_FAILURE, "sql: %s", ct_sqlite_why(connection, rc));
    }
    return EXIT_SUCCESS;
}

static int sql(int argc, char **argv)
{
    struct ct_session_choice choice = { 0 };
    int format = CT_FORMAT_TEXT, first;
    const struct ct_option options[] = { CT_OPTIONS_OF_TRACE(&choice), CT_OPTION_FORMAT(&format), { 0 } };
    const struct ct_usage usage = {
        .options = options,
        .arguments = "'QUERY'",
        .about =
            "Runs a query on the trace, even while the trace is being written. If QUERY is `-`, the query\n"
            "is read from standard input. A query cannot change the trace.\n"
            "\n" CT_VIEWS_LISTED ".\n"
            "Each hook of a probe also has a view hook_NAME, with a column for each of its fields.\n"
            "The table: meta. `sqlite3 FILE .schema` shows all of these with comments, and docs/sql.md\n"
            "contains example queries. Times are CLOCK_MONOTONIC nanoseconds.\n",
    };
    int status = ct_session_choice_parse(argc, argv, &usage, &choice, &first);
    if (status != CT_GO_ON)
        return status;
    if (first + 1 != argc)
        return ct_fail(EXIT_USAGE, "sql: specify one query (see cudatrace sql --help)");
    sqlite3 *connection = ct_meant_trace_open(&choice, NULL);
    if (!connection)
        return EXIT_FAILURE;
    ct_hook_views_make(connection);
    char *read = NULL;
    size_t bytes = 0;
    const char *text = argv[first];
    if (strcmp(text, "-") == 0)
        text = getdelim(&read, &bytes, '\0', stdin) >= 0 ? read : "";
    if (ferror(stdin))
        status = ct_fail(EXIT_FAILURE, "sql: cannot read the query: %s", strerror(errno));
    else
        status = run_queries(connection, text, (enum ct_format)format);
    free(read);
    sqlite3_close(connection);
    return status;
}

const struct ct_subcommand ct_subcommand_sql = { "sql", "query the trace with SQL", sql };
