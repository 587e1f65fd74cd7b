/* Implements `cudatrace top`, which continuously shows what traced processes are doing. On a terminal, it is
 * an interactive screen. Elsewhere, it prints tables or JSON. */
#include "number.h"
#include "print_rows.h"
#include "printable.h"
#include "scope.h"
#include "sessions.h"
#include "subcommand.h"
#include "top_sample.h"
#include "top_screen.h"
#include "trace_file.h"

#include <string.h>
#include <unistd.h>

enum { COUNT_MAX = 1 << 30, FORMAT_NONE = -1 };

struct top_options {
    struct ct_top top;
    int format; /* enum ct_format; FORMAT_NONE: not given */
    bool once, json, threads;
    int64_t pid, count; /* 0: not given */
    const char *sort, *find;
};

/* Returns whether to print the output, once or for other programs, instead of showing an interactive
 * screen. */
static bool is_printed(const struct top_options *options)
{
    return options->once || options->json || options->count || options->format != FORMAT_NONE;
}

static bool take_interval(const struct ct_option *option, const char *value)
{
    double *seconds = option->to;
    return *value && ct_decimal_parse(value, seconds) == strlen(value) && *seconds >= 0.1 && *seconds <= 3600;
}

/* ---- without a screen ---- */

/* Prints a table below the processes, as a member of the JSON object, or with a title if it has rows. The
 * table is omitted in CSV, which allows only one. Finalizes the statement, which may be NULL. */
static void print_more(sqlite3_stmt *rows, const char *member, const char *title, enum ct_format format)
{
    const bool has_row = rows && sqlite3_step(rows) == SQLITE_ROW;
    sqlite3_reset(rows);
    if (rows && format == CT_FORMAT_JSON) {
        printf(",\"%s\":", member);
        ct_print_rows(rows, format, 0, stdout, NULL);
    } else if (has_row && format != CT_FORMAT_CSV) {
        printf("\n%s:\n", title);
        ct_print_rows(rows, format, ct_terminal_width(), stdout, NULL);
    }
    sqlite3_finalize(rows);
}

static int print_moment(struct ct_top *top, enum ct_format format)
{
    static const char *const names[CT_TOP_VIEWS] = { "processes", "functions", "threads" };
    sqlite3_stmt *rows = ct_top_rows(top);
    if (!rows)
        return ct_fail(EXIT_USAGE, "top: %s", top->problem);
    struct ct_printed printed = { 0 };
    if (format == CT_FORMAT_JSON)
        printf("{\"at_ns\":%lld,\"since_ns\":%lld,\"live\":%s,\"probed\":%lld,\"%s\":", (long long)top->at_ns,
               (long long)top->last_ns, top->is_live ? "true" : "false", top->probed, names[top->view]);
    const int rc = ct_print_rows(rows, format, ct_terminal_width(), stdout, &printed);
    if (top->view == CT_TOP_PROCESSES) {
        print_more(ct_top_untraced(top), "untraced", "not traced", format);
        print_more(ct_top_gpus(top), "gpus", "GPUs", format);
        print_more(ct_top_xids(top), "xids", "errors of GPUs (Xids)", format);
    }
    if (format == CT_FORMAT_JSON)
        puts("}");
    sqlite3_finalize(rows);
    if (rc != SQLITE_OK)
        return ct_fail(EXIT_FAILURE, "top: %s", ct_sqlite_why(top->moments, rc));
    if (printed.rows == 0 && format == CT_FORMAT_TEXT)
        ct_fail(0,
                *top->text ? "top: no row with '%s'"
                : top->view != CT_TOP_PROCESSES
                    ? "top: the process has made no calls yet"
                    : "top: no traced process is running (--all shows those that have ended)",
                top->text);
    return ct_flush_output() ? EXIT_SUCCESS : EXIT_FAILURE; /* main() reports the error */
}

/* Prints samples of the trace. Current rates need two samples. For a trace that no daemon writes, there is
 * only one sample, which is compared with the start of each process. */
static int print_moments(struct top_options *options)
{
    struct ct_top *top = &options->top;
    const enum ct_format format = options->json                    ? CT_FORMAT_JSON
                                  : options->format == FORMAT_NONE ? CT_FORMAT_TEXT
                                                                   : (enum ct_format)options->format;
    const int64_t count = options->once ? 1 : options->count ? options->count : COUNT_MAX;
    int status = EXIT_SUCCESS;
    top->hides_unused = format == CT_FORMAT_TEXT;
    if (!ct_top_sample(top))
        return ct_fail(EXIT_FAILURE, "top: %s", top->problem);
    if (!top->is_live && top->why)
        ct_fail(0, "top: %s", top->why);
    for (int64_t n = 0; status == EXIT_SUCCESS && n < count; n++) {
        const bool was_live = top->is_live;
        if (was_live || n > 0) {
            usleep((useconds_t)(top->interval_s * 1e6));
            ct_top_follow(top);
            if (!ct_top_sample(top))
                return ct_fail(EXIT_FAILURE, "top: %s", top->problem);
            if (was_live && top->why)
                ct_fail(0, "top: %s", top->why);
        }
        if (n > 0 && format == CT_FORMAT_TEXT)
            putchar('\n');
        status = print_moment(top, format);
    }
    return status;
}

/* ---- the command ---- */

static int show(struct top_options *options)
{
    struct ct_top *top = &options->top;
    ct_session_prefer_live(&top->choice, "top");
    if (!ct_top_open(top))
        return EXIT_FAILURE;
    if (options->pid) {
        const char *sort = top->sort;
        const bool is_reversed = top->is_reversed;
        const int64_t process_id = ct_ask_number(
            top->trace, "SELECT process_id FROM processes WHERE pid = ?1 ORDER BY started_ns DESC LIMIT 1",
            options->pid, 0);
        if (!ct_scope_has_process(&(struct ct_scope){ .pid = options->pid }, "top", top->trace))
            return EXIT_FAILURE;
        ct_top_look_at(top, options->threads ? CT_TOP_THREADS : CT_TOP_FUNCTIONS, process_id, options->pid);
        top->sort = sort;
        top->is_reversed = is_reversed;
    }
    if (is_printed(options) || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return print_moments(options);
    return ct_top_screen(top);
}

static int top(int argc, char **argv)
{
    struct top_options options = { .top = { .interval_s = 1, .daemon = -1 }, .format = FORMAT_NONE };
    struct ct_top *top = &options.top;
    const struct ct_option table[] = {
        CT_OPTIONS_OF_TRACE(&top->choice),
        { "interval", "S", "seconds between updates (default: 1)", &top->interval_s, take_interval,
          "expected seconds, from 0.1 to 3600" },
        { "sort", "COLUMN", "sort by this column; -COLUMN reverses the order (default: driver_%)",
          &options.sort },
        { "all", NULL, "also show processes that have ended", &top->all },
        { "find", "TEXT", "only rows with the text in command or name, or with that process ID",
          &options.find },
        { "pid", "PID", "show the functions of a process, or with --threads its threads", &options.pid,
          ct_take_number, "expected a process ID", .least = 1, .most = INT32_MAX },
        { "threads", NULL, "show the threads of --pid", &options.threads },
        { "once", NULL, "print once and exit", &options.once },
        { "count", "N", "print N times and exit", &options.count, ct_take_number,
          "expected the number of times to print", .least = 1, .most = COUNT_MAX },
        { "json", NULL, "print JSON, one object per update", &options.json },
        CT_OPTION_FORMAT(&options.format),
        { 0 }
    };
    const struct ct_usage usage = {
        .options = table,
        .about =
            "Shows the activity of the traced processes, and updates it: calls and launches per second,\n"
            "the share of time that their threads spend in the driver (including calls that have not\n"
            "returned), copies, device memory in use, lost calls, and the outermost open call, with its\n"
            "duration so far. If a process records GPU work, gpu_work is the kernel that its GPU does not\n"
            "finish. If no daemon writes the trace, it shows the sums of each process. Otherwise\n"
            "it also lists processes that have loaded the driver and are not traced.\n"
            "\n"
            "Keys on a terminal: the arrows and Enter select a process and show its functions (Tab: its\n"
            "threads), Escape goes back, < and > select the sort column, r reverses the order, / finds,\n"
            "a shows ended processes, t attaches to an untraced process, space pauses, q quits. Without\n"
            "a terminal, it prints each update.\n",
    };
    int first, status = ct_session_choice_parse(argc, argv, &usage, &top->choice, &first);
    if (status != CT_GO_ON)
        return status;
    if (options.threads && !options.pid)
        return ct_fail(EXIT_USAGE, "top: --threads requires --pid");
    top->is_reversed = options.sort && *options.sort == '-';
    top->sort = options.sort ? options.sort + top->is_reversed : NULL;
    snprintf(top->text, sizeof(top->text), "%s", options.find ? options.find : "");
    status = show(&options);
    ct_top_close(top);
    return status;
}

const struct ct_subcommand ct_subcommand_top = {
    "top", "show the activity of the traced processes: calls, time, memory, open calls, losses", top
};
