/* cudatrace report: the queries of schema/reports, one section each. */
#include "sections.h"
#include "series.h"
#include "call_stream.h"

#include "schema_sql.h"

#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ct_section sections[] = {
#define ROW(name_, title_, about_, sql_) { .name = name_, .title = title_, .about = about_ },
    CT_REPORTS(ROW)
#undef ROW
};
static const char *const section_sql[] = {
#define ROW(name_, title_, about_, sql_) sql_,
    CT_REPORTS(ROW)
#undef ROW
};
enum { SECTIONS = sizeof(sections) / sizeof(sections[0]), THREADS_MAX = 8 };

struct report {
    struct ct_options common;
    enum ct_format format;
    int64_t pid;           /* 0: all */
    const char *from, *to; /* NULL: not given */
    int64_t from_ns, to_ns;
    int width;
    struct ct_series series;
    _Atomic size_t next; /* section to be run */
};

static bool on_option(int option, const char *value, void *data)
{
    struct report *report = data;
    switch (option) {
    case 'f':
        return ct_format_parse(value, &report->format);
    case 'F':
        report->from = value;
        return true;
    case 'T':
        report->to = value;
        return true;
    default:
        if (ct_number_parse(value, 1, INT32_MAX, &report->pid))
            return true;
        ct_fail(EXIT_USAGE, "report: --pid %s: wants a process number", value);
        return false;
    }
}

/* The parameters that a query has; what was not asked for stays NULL. */
static void bind(sqlite3_stmt *statement, const struct report *report)
{
    const int pid = sqlite3_bind_parameter_index(statement, ":pid");
    const int from = sqlite3_bind_parameter_index(statement, ":from_ns");
    const int to = sqlite3_bind_parameter_index(statement, ":to_ns");
    if (pid > 0 && report->pid)
        sqlite3_bind_int64(statement, pid, report->pid);
    if (from > 0 && report->from)
        sqlite3_bind_int64(statement, from, report->from_ns);
    if (to > 0 && report->to)
        sqlite3_bind_int64(statement, to, report->to_ns);
}

static bool has_row(sqlite3 *connection, const char *sql, const struct report *report)
{
    sqlite3_stmt *statement;
    bool there = false;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK) {
        bind(statement, report);
        there = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return there;
}

/* Whether there is something to report of; EXIT_SUCCESS, or another status after reporting. */
static int look(sqlite3 *connection, struct report *report)
{
    struct ct_extent extent = { 0 };
    if (report->pid && !has_row(connection, "SELECT 1 FROM processes WHERE pid = :pid", report))
        return ct_fail(EXIT_FAILURE,
                       "report: the trace has no process %lld: `cudatrace report processes` lists them",
                       (long long)report->pid);
    if (!ct_trace_extent(connection, &extent) ||
        !has_row(connection, "SELECT 1 FROM totals LIMIT 1", report)) {
        ct_fail(0, "report: the trace holds no call yet");
        return EXIT_SUCCESS;
    }
    report->from_ns = extent.begin_ns;
    report->to_ns = INT64_MAX;
    if ((report->from && !ct_moment_take("report", "--from", report->from, &extent, &report->from_ns)) ||
        (report->to && !ct_moment_take("report", "--to", report->to, &extent, &report->to_ns)))
        return EXIT_USAGE;
    if (report->from_ns >= report->to_ns)
        return ct_fail(EXIT_USAGE, "report: the window ends before it begins: --from %s, --to %s",
                       report->from ? report->from : "0", report->to);
    if ((report->from || report->to) &&
        !has_row(
            connection,
            "SELECT 1 FROM calls WHERE call_id BETWEEN ifnull(:from_ns, 0) AND ifnull(:to_ns, 9e18) LIMIT 1",
            report))
        return ct_fail(EXIT_FAILURE, "report: no call returned in that window; the trace lasts %.3f seconds",
                       (double)(extent.end_ns - extent.begin_ns) / 1e9);
    return EXIT_SUCCESS;
}

/* ---- running the sections, side by side ---- */

/* What a connection sees of a trace that is being written; -1 when it cannot be asked. */
static int64_t begin_reading(sqlite3 *connection)
{
    static const char seen[] =
        "SELECT ifnull(max(end_ns), 0) + (SELECT count(*) FROM main.process) FROM main.call";
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_exec(connection, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(connection, seen, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

struct reader {
    struct report *report;
    sqlite3 *connection;
};

/* Has all readers see the trace as it is at one moment. The daemon commits some twenty times a second; where
 * it came in between, they begin again. */
static void agree(const struct reader *reader, int count)
{
    enum { ATTEMPTS = 50 };
    bool same = count == 1;
    for (int attempt = 0; !same && attempt < ATTEMPTS; attempt++) {
        for (int i = 0; attempt > 0 && i < count; i++)
            sqlite3_exec(reader[i].connection, "COMMIT", NULL, NULL, NULL);
        const int64_t first = begin_reading(reader[0].connection);
        same = true;
        for (int i = 1; i < count; i++)
            same = begin_reading(reader[i].connection) == first && same;
    }
}

/* A connection that could not be opened says why when it is asked. */
static void run_section(size_t s, sqlite3 *connection, const struct report *report)
{
    sqlite3_stmt *statement = NULL;
    if (connection && sqlite3_prepare_v2(connection, section_sql[s], -1, &statement, NULL) == SQLITE_OK)
        bind(statement, report);
    ct_section_run(&sections[s], connection, statement, report->format, report->width);
    sqlite3_finalize(statement);
}

static void *run_sections(void *data)
{
    const struct reader *reader = data;
    for (size_t s; (s = atomic_fetch_add(&reader->report->next, 1)) < SECTIONS;) {
        if (sections[s].wanted)
            run_section(s, reader->connection, reader->report);
    }
    return NULL;
}

static void run_all(struct report *report)
{
    long wanted = 0;
    for (size_t s = 0; s < SECTIONS; s++)
        wanted += sections[s].wanted;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct reader reader[THREADS_MAX];
    pthread_t other[THREADS_MAX];
    int readers = 0, started = 0;
    while (readers == 0 || (readers < THREADS_MAX && readers < cores && readers < wanted)) {
        reader[readers] = (struct reader){ .report = report };
        ct_series_open(&report->series, &reader[readers++].connection);
    }
    agree(reader, readers);
    while (started + 1 < readers &&
           pthread_create(&other[started], NULL, run_sections, &reader[started + 1]) == 0)
        started++;
    run_sections(&reader[0]);
    for (int i = 0; i < started; i++)
        pthread_join(other[i], NULL);
    for (int i = 0; i < readers; i++)
        sqlite3_close(reader[i].connection);
}

struct ct_section *ct_report_sections(sqlite3 *connection, const struct ct_stream_choice *choice,
                                      size_t *count)
{
    const struct report report = { .pid = choice->pid,
                                   .from = choice->from_ns > 0 ? "" : NULL,
                                   .to = choice->to_ns < INT64_MAX ? "" : NULL,
                                   .from_ns = choice->from_ns,
                                   .to_ns = choice->to_ns,
                                   .format = CT_FORMAT_JSON };
    for (size_t s = 0; s < SECTIONS; s++)
        run_section(s, connection, &report);
    *count = SECTIONS;
    return sections;
}

int ct_report(int argc, char **argv)
{
    static const char head[] =
        "Usage: cudatrace report [--db FILE] [--session NAME] [--shm-dir DIR] [--pid PID]\n"
        "                        [--from T] [--to T] [--format text|csv|json|markdown]\n"
        "                        [SECTION…]\n"
        "\n"
        "Where the time went. Sections, all of them when none is named:\n"
        "\n";
    static const char tail[] =
        "\n"
        "  --db FILE       the trace (default: ./trace.db)\n"
        "  --session NAME  the trace of that session's daemon\n" CT_SHM_DIR_HELP
        "  --pid PID       of this process alone (default: all)\n" CT_WINDOW_HELP CT_FORMAT_HELP "\n"
        "Each section is a file of schema/reports, usable alone: `sqlite3 FILE < SECTION.sql`, or\n"
        "`cudatrace sql -`. Its parameters :pid, :from_ns and :to_ns are NULL for all.\n";
    static const struct option known[] = { { "format", required_argument, NULL, 'f' },
                                           { "pid", required_argument, NULL, 'p' },
                                           { "from", required_argument, NULL, 'F' },
                                           { "to", required_argument, NULL, 'T' },
                                           { 0 } };
    struct report report = { 0 };
    char *help = ct_sections_help(head, sections, SECTIONS, tail);
    if (!help)
        return ct_fail(EXIT_FAILURE, "report: out of memory");
    bool done;
    int status;
    const int first =
        ct_options_parse(argc, argv, known, help, &report.common, on_option, &report, &done, &status);
    free(help);
    if (done)
        return status;
    if (!ct_sections_choose("report", sections, SECTIONS, argc - first, argv + first))
        return EXIT_USAGE;
    sqlite3 *connection = ct_trace_open(&report.common, &report.series);
    if (!connection)
        return EXIT_FAILURE;
    status = look(connection, &report);
    sqlite3_close(connection);
    if (status != EXIT_SUCCESS)
        return status;
    report.width = ct_terminal_width();
    run_all(&report);
    status = ct_sections_print("report", sections, SECTIONS, report.format);
    ct_sections_finish(sections, SECTIONS);
    return status;
}
