/* Implements `cudatrace report`, which runs the queries in schema/reports. Each query is one section of the
 * report. */
#include "report.h"

#include "clock.h"
#include "printable.h"
#include "progress.h"
#include "run_choice.h"
#include "sessions.h"
#include "subcommand.h"
#include "trace_file.h"
#include "trace_open.h"

#include "schema_sql.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ct_section sections[] = {
#define ROW(name_, title_, about_, ...)                                                                      \
    { .name = name_, .title = title_, .about = about_, .sql = { __VA_ARGS__ } },
    CT_REPORTS(ROW)
#undef ROW
};
enum {
    SECTIONS = sizeof(sections) / sizeof(sections[0]),
    THREADS_MAX = 8,
    OPTIONS_BYTES = 4608,
    PROGRESS_STEPS = 100000
};

struct report {
    struct ct_scope scope;
    int format; /* enum ct_format */
    int width;
    struct ct_series series;
    char options[OPTIONS_BYTES]; /* the options that select the trace, for commands that users can repeat */
    struct ct_computed_cache *computed; /* of all readers */
    _Atomic size_t next;                /* the next section to run */
    pthread_mutex_t lock;               /* for all below */
    struct ct_sections_printer printer;
    struct ct_progress progress;
    bool is_done[SECTIONS];
    size_t done, needed; /* numbers of sections */
};

/* The section that judges the run. Other sections may repeat its verdict. */
static struct ct_section *judge(void)
{
    size_t s = 0;
    while (s + 1 < SECTIONS && strcmp(sections[s].name, "bottleneck") != 0)
        s++;
    return &sections[s];
}

/* Returns whether the section repeats the verdict, so that it must run after the section that judges. */
static bool repeats_verdict(const struct ct_section *section)
{
    return strstr(section->sql[0], ":verdict") != NULL;
}

static void bind_text(sqlite3_stmt *statement, const char *name, const char *text)
{
    const int place = sqlite3_bind_parameter_index(statement, name);
    if (place > 0)
        sqlite3_bind_text(statement, place, text, -1, SQLITE_TRANSIENT);
}

/* Names the newest file of the trace, and counts the others. */
static void bind_files(sqlite3_stmt *statement, sqlite3 *connection)
{
    const char *newest = sqlite3_db_filename(connection, "main");
    const uint32_t others = ct_series_files(connection) - 1;
    char *text = others == 0
                     ? sqlite3_mprintf("%s", newest)
                     : sqlite3_mprintf("%s and %u earlier file%s", newest, others, others == 1 ? "" : "s");
    bind_text(statement, ":files", text);
    sqlite3_free(text);
}

/* Binds the parameters that a query uses. Parameters for options that were not given stay NULL. */
static void bind(sqlite3_stmt *statement, sqlite3 *connection, const struct report *report)
{
    const struct ct_scope *scope = &report->scope;
    if (scope->pid)
        ct_bind_number(statement, ":pid", scope->pid);
    if (scope->from_ns > 0)
        ct_bind_number(statement, ":from_ns", scope->from_ns);
    if (scope->to_ns < INT64_MAX)
        ct_bind_number(statement, ":to_ns", scope->to_ns);
    if (scope->now_ns > 0)
        ct_bind_number(statement, ":now_ns", scope->now_ns);
    if (sqlite3_bind_parameter_index(statement, ":verdict") == 0)
        return;
    bind_text(statement, ":verdict", judge()->verdict);
    bind_text(statement, ":bound_by", judge()->bound_by);
    bind_text(statement, ":options", report->options);
    bind_files(statement, connection);
}

/* Returns whether a call returned in the window, or a long call or work of a GPU was in progress. */
static bool has_activity(sqlite3 *connection, const struct ct_scope *scope)
{
    static const char *const begins[] = {
        "SELECT call_id FROM calls WHERE call_id >= ?1 ORDER BY call_id LIMIT 1",
        "SELECT min(start_ns) FROM open_calls JOIN processes USING (process_id) WHERE ifnull(ended_ns, ?1) "
        ">= ?1",
        "SELECT min(start_ns) FROM long_calls WHERE call_id >= ?1",
        "SELECT min(gpu_start_ns) FROM gpu_work WHERE gpu_end_ns >= ?1",
    };
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        const int64_t begin_ns = ct_ask_number(connection, begins[i], scope->from_ns, -1);
        if (begin_ns >= 0 && begin_ns <= scope->to_ns)
            return true;
    }
    return false;
}

/* Checks that the trace contains the requested process and time window. Returns CT_GO_ON, or the exit status
 * after reporting an error. */
static int look(sqlite3 *connection, struct report *report)
{
    struct ct_extent extent = { 0 };
    struct ct_scope *scope = &report->scope;
    if (!ct_scope_has_process(scope, "report", connection))
        return EXIT_FAILURE;
    if (!ct_trace_extent(connection, scope->now_ns, &extent) ||
        !ct_ask_number(connection, "SELECT 1 FROM totals LIMIT 1", 0, 0)) {
        ct_fail(0, "report: the trace has no calls yet");
        return CT_GO_ON;
    }
    const int status = ct_scope_settle(scope, "report", &extent);
    if (status != CT_GO_ON)
        return status;
    if (!scope->from && !scope->to)
        return CT_GO_ON;
    if (!has_activity(connection, scope))
        return ct_scope_say_empty(EXIT_FAILURE, "report", &extent);
    return CT_GO_ON;
}

/* ---- running the sections in parallel ---- */

/* Returns a number that identifies the state of the trace, which may be growing, or -1 if the query fails. */
static int64_t ask_state(sqlite3 *connection)
{
    return ct_ask_number(connection,
                         "SELECT ifnull(max(end_ns), 0) + (SELECT count(*) FROM main.process) FROM main.call",
                         0, -1);
}

/* Begins a read transaction. Returns the state of the trace. */
static int64_t begin_reading(sqlite3 *connection)
{
    sqlite3_exec(connection, "BEGIN", NULL, NULL, NULL);
    return ask_state(connection);
}

struct reader {
    struct report *report;
    sqlite3 *connection;
};

/* Makes all readers see the same state of the trace. The daemon commits about twenty times a second. If a
 * commit falls between two readers' BEGIN statements, all readers begin again. */
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

/* Prepares a query and binds its parameters. Returns NULL if the query cannot be prepared. */
static sqlite3_stmt *prepare(sqlite3 *connection, const char *sql, const struct report *report)
{
    sqlite3_stmt *statement = NULL;
    if (connection && sql && sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK)
        bind(statement, connection, report);
    return statement;
}

/* Returns whether the last query failed because the trace was written by an older version, which did not have
 * the view `name` yet. The trace then has no data for the section with the same name. */
static bool lacks_view(sqlite3 *connection, const char *name)
{
    char missing[80], why[256];
    const int rc = connection ? sqlite3_errcode(connection) : SQLITE_OK;
    snprintf(missing, sizeof(missing), "no such table: %s", name);
    return rc == SQLITE_ERROR && strcmp(sqlite3_errmsg(connection), missing) == 0 &&
           ct_trace_why(connection, rc, why, sizeof(why));
}

/* Runs the section's alternative query, which replaces the usual one if it returns rows. Returns whether it
 * did. A trace written by an older version may lack a view that the alternative query needs. */
static bool run_instead(struct ct_section *section, sqlite3 *connection, const struct report *report)
{
    sqlite3_stmt *statement = prepare(connection, section->sql[2], report);
    if (!statement)
        return false;
    ct_section_run(section, connection, statement, (enum ct_format)report->format, report->width);
    sqlite3_finalize(statement);
    if (section->rows > 0 || section->problem[0])
        return true;
    free(section->text);
    section->text = NULL;
    return false;
}

/* Runs a section's queries. If the connection could not be opened, the query fails and reports the reason. */
static void run_section(size_t s, sqlite3 *connection, const struct report *report)
{
    struct ct_section *section = &sections[s];
    const enum ct_format format = (enum ct_format)report->format;
    sqlite3_stmt *statement;
    if (!run_instead(section, connection, report)) {
        statement = prepare(connection, section->sql[0], report);
        if (!statement && lacks_view(connection, section->name))
            statement = prepare(connection, "SELECT 0 WHERE 0", report);
        ct_section_run(section, connection, statement, format, report->width);
        sqlite3_finalize(statement);
    }
    const bool for_people = format == CT_FORMAT_TEXT || format == CT_FORMAT_MARKDOWN;
    statement = for_people ? prepare(connection, section->sql[1], report) : NULL;
    if (statement)
        ct_section_note(section, statement, format, report->width);
    sqlite3_finalize(statement);
}

/* Returns whether a section is run, even if it is not printed. */
static bool is_needed(size_t s)
{
    bool repeated = false;
    for (size_t other = 0; other < SECTIONS; other++)
        repeated |= sections[other].wanted && repeats_verdict(&sections[other]);
    return sections[s].wanted || (repeated && &sections[s] == judge());
}

/* ---- printing sections as they become ready ---- */

/* Prints the sections that are ready, up to the first that is not. */
static void note_done(struct report *report, size_t s)
{
    pthread_mutex_lock(&report->lock);
    report->is_done[s] = true;
    report->done++;
    size_t ready = report->printer.printed;
    while (ready < SECTIONS && (!sections[ready].wanted || report->is_done[ready]))
        ready++;
    if (ready > report->printer.printed) {
        ct_progress_clear(&report->progress);
        ct_sections_print_before(&report->printer, ready);
        fflush(stdout);
    }
    pthread_mutex_unlock(&report->lock);
}

/* SQLite calls this function while it executes a query. */
static int show_progress(void *data)
{
    struct report *report = data;
    char text[64];
    if (pthread_mutex_trylock(&report->lock) != 0)
        return 0;
    const int64_t now_ns = (int64_t)ct_monotonic_ns();
    if (ct_progress_is_due(&report->progress, now_ns)) {
        snprintf(text, sizeof(text), "%zu of %zu sections", report->done, report->needed);
        ct_progress_show(&report->progress, now_ns, text);
    }
    pthread_mutex_unlock(&report->lock);
    return 0;
}

static void run_and_note(size_t s, sqlite3 *connection, struct report *report)
{
    run_section(s, connection, report);
    note_done(report, s);
}

/* Runs the section that judges, and then those that repeat the verdict, because they come first. */
static void run_first(sqlite3 *connection, struct report *report)
{
    const size_t judging = (size_t)(judge() - sections);
    if (is_needed(judging))
        run_and_note(judging, connection, report);
    for (size_t s = 0; s < SECTIONS; s++) {
        if (sections[s].wanted && repeats_verdict(&sections[s]))
            run_and_note(s, connection, report);
    }
}

static void *run_sections(void *data)
{
    const struct reader *reader = data;
    for (size_t s; (s = atomic_fetch_add(&reader->report->next, 1)) < SECTIONS;) {
        if (is_needed(s) && &sections[s] != judge() && !repeats_verdict(&sections[s]))
            run_and_note(s, reader->connection, reader->report);
    }
    return NULL;
}

static void run_all(struct report *report)
{
    for (size_t s = 0; s < SECTIONS; s++)
        report->needed += is_needed(s);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct reader reader[THREADS_MAX];
    pthread_t other[THREADS_MAX];
    int readers = 0, started = 0;
    report->computed = ct_computed_cache_new();
    while (readers == 0 || (readers < THREADS_MAX && readers < cores && (size_t)readers < report->needed)) {
        reader[readers] = (struct reader){ .report = report };
        if (ct_series_open(&report->series, &reader[readers].connection) == SQLITE_OK)
            ct_trace_add_functions(reader[readers].connection, report->computed);
        if (report->progress.to)
            sqlite3_progress_handler(reader[readers].connection, PROGRESS_STEPS, show_progress, report);
        readers++;
    }
    agree(reader, readers);
    while (started + 1 < readers &&
           pthread_create(&other[started], NULL, run_sections, &reader[started + 1]) == 0)
        started++;
    run_first(reader[0].connection, report);
    run_sections(&reader[0]);
    for (int i = 0; i < started; i++)
        pthread_join(other[i], NULL);
    ct_progress_clear(&report->progress);
    for (int i = 0; i < readers; i++)
        sqlite3_close(reader[i].connection);
    ct_computed_cache_free(report->computed);
}

/* ---- the sections of a page ---- */

struct ct_page_sections {
    struct report report;
    sqlite3 *own, *given; /* own: NULL if the sections are run over the given connection */
    pthread_t thread;
};

static void *run_page(void *data)
{
    const struct ct_page_sections *page = data;
    sqlite3 *connection = page->own ? page->own : page->given;
    ct_trace_add_functions(connection, page->report.computed);
    for (size_t s = 0; s < SECTIONS; s++) {
        if (sections[s].wanted)
            run_section(s, connection, &page->report);
    }
    ct_trace_add_functions(connection, NULL);
    return NULL;
}

/* Starts the thread, if it sees the same state of the trace as the given connection. */
static void start_page(struct ct_page_sections *page, const struct ct_series *series)
{
    const int64_t state = ask_state(page->given);
    if (ct_series_open(series, &page->own) == SQLITE_OK && begin_reading(page->own) == state &&
        pthread_create(&page->thread, NULL, run_page, page) == 0)
        return;
    sqlite3_close(page->own);
    page->own = NULL;
}

struct ct_page_sections *ct_page_sections_begin(const struct ct_series *series, sqlite3 *connection,
                                                const struct ct_scope *scope)
{
    struct ct_page_sections *page = calloc(1, sizeof(*page));
    if (!page)
        return NULL;
    page->given = connection;
    page->report.scope = *scope;
    page->report.format = CT_FORMAT_JSON;
    page->report.computed = ct_computed_cache_new();
    for (size_t s = 0; s < SECTIONS; s++)
        sections[s].wanted = !repeats_verdict(&sections[s]);
    start_page(page, series);
    return page;
}

struct ct_section *ct_page_sections_wait(struct ct_page_sections *page, size_t *count)
{
    if (page->own)
        pthread_join(page->thread, NULL);
    else
        run_page(page);
    sqlite3_close(page->own);
    page->own = page->given = NULL;
    *count = SECTIONS;
    return sections;
}

void ct_page_sections_finish(struct ct_page_sections *page)
{
    if (!page)
        return;
    if (page->own) {
        sqlite3_interrupt(page->own);
        pthread_join(page->thread, NULL);
        sqlite3_close(page->own);
    }
    ct_sections_finish(sections, SECTIONS);
    ct_computed_cache_free(page->report.computed);
    free(page);
}

/* Returns the number as text, or NULL if it is 0. */
static const char *number_text(int64_t number, char text[24])
{
    snprintf(text, 24, "%lld", (long long)number);
    return number ? text : NULL;
}

/* Adds the option, unless it was not given, to those that select the trace, in the form in which a shell
 * takes it. */
static void repeat_option(struct report *report, const char *name, const char *value)
{
    if (!value)
        return;
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+:@,=%";
    const size_t used = strlen(report->options);
    const char *quote = value[strspn(value, plain)] ? "'" : "";
    if (!strchr(value, '\''))
        snprintf(report->options + used, sizeof(report->options) - used, " --%s %s%s%s", name, quote, value,
                 quote);
}

static int run(int argc, char **argv, struct report *report, char *about)
{
    struct ct_session_choice choice = { 0 };
    struct ct_run_choice run = { 0 };
    char pid[24], number[24];
    const struct ct_option options[] = { CT_OPTIONS_OF_TRACE(&choice),
                                         CT_OPTIONS_OF_RUN(&run),
                                         CT_OPTION_PID(&report->scope.pid),
                                         CT_OPTIONS_OF_WINDOW(&report->scope,
                                                              "only calls that returned at T or later"),
                                         CT_OPTION_FORMAT(&report->format),
                                         { 0 } };
    const struct ct_usage usage = {
        .options = options,
        .arguments = "[SECTION…]",
        .about = about,
        .more = "Each section is an SQL file in schema/reports of the source tree. To run one alone, use\n"
                "`cudatrace sql - < SECTION.sql`. Its parameters :pid, :from_ns and :to_ns are NULL then,\n"
                "which selects all calls. :now_ns is NULL unless a daemon writes the trace.\n",
    };
    int first, status = ct_session_choice_parse(argc, argv, &usage, &choice, &first);
    if (status != CT_GO_ON)
        return status;
    if (!ct_sections_choose("report", sections, SECTIONS, argc - first, argv + first))
        return EXIT_USAGE;
    sqlite3 *connection = ct_meant_trace_open(&choice, &report->series);
    if (!connection)
        return EXIT_FAILURE;
    report->scope.now_ns = ct_session_now(&choice, report->series.path[0]);
    status = ct_run_choose("report", &run, &report->series, connection);
    if (status == CT_GO_ON)
        status = look(connection, report);
    sqlite3_close(connection);
    if (status != CT_GO_ON)
        return status;
    repeat_option(report, "db", choice.database);
    repeat_option(report, "session", choice.session_option);
    repeat_option(report, "run", number_text(report->series.run.id, number));
    repeat_option(report, "pid", number_text(report->scope.pid, pid));
    repeat_option(report, "from", report->scope.from);
    repeat_option(report, "to", report->scope.to);
    report->width = ct_terminal_width();
    report->printer = (struct ct_sections_printer){
        .command = "report", .sections = sections, .count = SECTIONS, .format = (enum ct_format)report->format
    };
    report->progress = ct_progress_begin("report", (int64_t)ct_monotonic_ns());
    pthread_mutex_init(&report->lock, NULL);
    run_all(report);
    status = ct_sections_print_rest(&report->printer);
    ct_sections_finish(sections, SECTIONS);
    return status;
}

static int report(int argc, char **argv)
{
    struct report report = { .scope = ct_scope_all() };
    char *about = ct_sections_about("Shows where the time was spent.", sections, SECTIONS);
    const int status =
        about ? run(argc, argv, &report, about) : ct_fail(EXIT_FAILURE, "report: out of memory");
    free(about);
    return status;
}

const struct ct_subcommand ct_subcommand_report = {
    "report", "show where the time was spent: phases, functions, kernels, copies, gaps, …", report
};
