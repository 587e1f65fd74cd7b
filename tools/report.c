/* cudatrace report: the queries of schema/reports, one section each. */
#include "cudatrace.h"

#include "schema_sql.h"

#include <getopt.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: cudatrace report [--db FILE] [--session NAME] [--shm-dir DIR] [--pid PID]\n"
    "                        [--format table|csv|json] [SECTION…]\n"
    "\n"
    "Where the time went. Sections, all of them when none is named:\n"
    "\n"
    "  processes   each process: how long it ran, its calls, time in them, failures, losses,\n"
    "              and the calls that it is in, or died in\n"
    "  categories  calls and time by category: launch, copy, memory, sync, …\n"
    "  functions   calls by total time\n"
    "\n"
    "  --db FILE       the trace (default: ./trace.db)\n"
    "  --session NAME  the trace of that session's daemon\n" CT_SHM_DIR_HELP
    "  --pid PID       of this process alone (default: all)\n"
    "  --format F      table (aligned columns), csv or json (default: table)\n"
    "\n"
    "Each section is a file of schema/reports, usable with `cudatrace sql -` too.\n";

static const struct {
    const char *name, *title, *sql;
} sections[] = {
    { "processes", "Processes", ct_sql_processes },
    { "categories", "Time by category", ct_sql_categories },
    { "functions", "Calls by total time", ct_sql_functions },
};
enum { SECTIONS = sizeof(sections) / sizeof(sections[0]) };

struct report_options {
    struct ct_options common;
    enum ct_format format;
    int64_t pid; /* 0: all */
};

static bool on_option(int option, const char *value, void *data)
{
    struct report_options *options = data;
    if (option == 'f')
        return ct_format_parse(value, &options->format);
    char *end;
    options->pid = strtoll(value, &end, 10);
    if (options->pid > 0 && *end == '\0')
        return true;
    ct_fail(EXIT_USAGE, "report: --pid %s: wants a process number", value);
    return false;
}

static bool has_rows(sqlite3 *connection, const char *sql)
{
    sqlite3_stmt *statement;
    const bool there = sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK &&
                       sqlite3_step(statement) == SQLITE_ROW;
    sqlite3_finalize(statement);
    return there;
}

static bool pid_is_there(sqlite3 *connection, int64_t pid)
{
    sqlite3_stmt *statement;
    bool there = false;
    if (sqlite3_prepare_v2(connection, "SELECT 1 FROM processes WHERE pid = ?1", -1, &statement, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, pid);
        there = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return there;
}

static int print_section(sqlite3 *connection, const struct report_options *options, size_t section)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(connection, sections[section].sql, -1, &statement, NULL) != SQLITE_OK)
        return ct_fail(EXIT_FAILURE, "report: %s: %s", sections[section].name, sqlite3_errmsg(connection));
    const int place = sqlite3_bind_parameter_index(statement, ":pid");
    if (place > 0 && options->pid)
        sqlite3_bind_int64(statement, place, options->pid);
    if (options->format == CT_FORMAT_TABLE)
        printf("%s\n\n", sections[section].title);
    const int rc = ct_print_rows(statement, options->format, stdout);
    sqlite3_finalize(statement);
    if (rc != SQLITE_OK)
        return ct_fail(EXIT_FAILURE, "report: %s: %s", sections[section].name, sqlite3_errmsg(connection));
    return EXIT_SUCCESS;
}

static bool wanted(size_t section, int names, char **name)
{
    bool found = names == 0;
    for (int i = 0; i < names; i++)
        found |= strcmp(name[i], sections[section].name) == 0;
    return found;
}

static bool names_are_known(int names, char **name)
{
    for (int i = 0; i < names; i++) {
        bool known = false;
        for (size_t s = 0; s < SECTIONS; s++)
            known |= strcmp(name[i], sections[s].name) == 0;
        if (!known) {
            ct_fail(EXIT_USAGE, "report: no section '%s' (see cudatrace report --help)", name[i]);
            return false;
        }
    }
    return true;
}

int ct_report(int argc, char **argv)
{
    static const struct option known[] = { { "format", required_argument, NULL, 'f' },
                                           { "pid", required_argument, NULL, 'p' },
                                           { 0 } };
    struct report_options options = { .format = CT_FORMAT_TABLE };
    bool done;
    int status;
    const int first =
        ct_options_parse(argc, argv, known, help, &options.common, on_option, &options, &done, &status);
    if (done)
        return status;
    if (!names_are_known(argc - first, argv + first))
        return EXIT_USAGE;
    sqlite3 *connection = ct_trace_open(&options.common);
    if (!connection)
        return EXIT_FAILURE;
    if (options.pid && !pid_is_there(connection, options.pid))
        status = ct_fail(EXIT_FAILURE,
                         "report: the trace has no process %lld: `cudatrace report processes` lists them",
                         (long long)options.pid);
    else
        status = EXIT_SUCCESS;
    if (status == EXIT_SUCCESS && !has_rows(connection, "SELECT 1 FROM totals LIMIT 1"))
        ct_fail(0, "report: the trace holds no call yet");
    bool another = false;
    for (size_t s = 0; s < SECTIONS && status == EXIT_SUCCESS; s++) {
        if (!wanted(s, argc - first, argv + first))
            continue;
        if (another)
            putchar('\n');
        another = true;
        status = print_section(connection, &options, s);
    }
    sqlite3_close(connection);
    return status;
}
