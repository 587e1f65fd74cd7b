/* cudatrace top: what the traced processes do, again and again: on a terminal to look around in, elsewhere as
 * tables or JSON. */
#include "top.h"

#include "sessions.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT_MAX = 1 << 30 };

struct top_options {
    struct ct_top top;
    enum ct_format format;
    bool is_printed; /* for programs or once: not on the terminal's screen */
    bool threads;
    int64_t pid, count;
};

static bool on_option(int option, const char *value, void *data)
{
    struct top_options *options = data;
    switch (option) {
    case 'i':
        if (ct_decimal_parse(value, &options->top.interval_s) == strlen(value) && *value &&
            options->top.interval_s >= 0.1 && options->top.interval_s <= 3600)
            return true;
        ct_fail(EXIT_USAGE, "top: --interval %s: wants seconds, from 0.1 to 3600", value);
        return false;
    case 'n':
        options->is_printed = true;
        if (ct_number_parse(value, 1, COUNT_MAX, &options->count))
            return true;
        ct_fail(EXIT_USAGE, "top: --count %s: wants how many times to print", value);
        return false;
    case 'o':
        options->is_printed = true;
        options->count = 1;
        return true;
    case 'j':
        options->is_printed = true;
        options->format = CT_FORMAT_JSON;
        return true;
    case 'f':
        options->is_printed = true;
        return ct_format_parse(value, &options->format);
    case 's':
        options->top.is_reversed = value[0] == '-';
        options->top.sort = value + (value[0] == '-');
        return true;
    case 'a':
        options->top.all = true;
        return true;
    case 't':
        options->threads = true;
        return true;
    case '/':
        snprintf(options->top.text, sizeof(options->top.text), "%s", value);
        return true;
    default:
        if (ct_number_parse(value, 1, INT32_MAX, &options->pid))
            return true;
        ct_fail(EXIT_USAGE, "top: --pid %s: wants a process number", value);
        return false;
    }
}

/* ---- without a screen ---- */

static void wait_for(double seconds)
{
    struct timespec rest = { .tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
    while (nanosleep(&rest, &rest) != 0)
        ;
}

static int print_moment(struct ct_top *top, enum ct_format format)
{
    static const char *const names[CT_TOP_VIEWS] = { "processes", "functions", "threads" };
    char problem[512];
    sqlite3_stmt *rows = ct_top_rows(top, problem, sizeof(problem));
    if (!rows)
        return ct_fail(EXIT_USAGE, "top: %s", problem);
    int64_t count = 0;
    if (format == CT_FORMAT_JSON)
        printf("{\"at_ns\":%lld,\"since_ns\":%lld,\"live\":%s,\"%s\":", (long long)top->at_ns,
               (long long)top->last_ns, top->is_live ? "true" : "false", names[top->view]);
    const int rc = ct_print_rows(rows, format, ct_terminal_width(), stdout, &count);
    if (format == CT_FORMAT_JSON)
        puts("}");
    sqlite3_finalize(rows);
    if (rc != SQLITE_OK)
        return ct_fail(EXIT_FAILURE, "top: %s", ct_sqlite_why(top->moments, rc));
    if (count == 0 && format == CT_FORMAT_TEXT)
        ct_fail(0,
                *top->text ? "top: no row with '%s'"
                : top->view != CT_TOP_PROCESSES
                    ? "top: the process has made no call yet"
                    : "top: no traced process runs now (--all shows those that have ended)",
                top->text);
    return ct_flush_output() ? EXIT_SUCCESS : EXIT_FAILURE; /* main() says why */
}

/* Numbers of now want two moments. Of a trace that nobody writes there is one, and it is compared with the
 * start. */
static int print_moments(struct top_options *options)
{
    struct ct_top *top = &options->top;
    char problem[512];
    int status = EXIT_SUCCESS;
    if (!ct_top_sample(top, problem, sizeof(problem)))
        return ct_fail(EXIT_FAILURE, "top: %s", problem);
    if (!top->is_live && top->why)
        ct_fail(0, "top: %s", top->why);
    for (int64_t n = 0; status == EXIT_SUCCESS && n < options->count; n++) {
        const bool was_live = top->is_live;
        if (was_live || n > 0) {
            wait_for(top->interval_s);
            ct_top_follow(top);
            if (!ct_top_sample(top, problem, sizeof(problem)))
                return ct_fail(EXIT_FAILURE, "top: %s", problem);
            if (was_live && top->why)
                ct_fail(0, "top: %s", top->why);
        }
        if (n > 0 && options->format == CT_FORMAT_TEXT)
            putchar('\n');
        status = print_moment(top, options->format);
    }
    return status;
}

/* ---- the command ---- */

/* The newest process of that number. */
static bool find_process(struct ct_top *top, int64_t pid, int64_t *process_id)
{
    sqlite3_stmt *found = NULL;
    *process_id = 0;
    if (sqlite3_prepare_v2(top->trace,
                           "SELECT process_id FROM processes WHERE pid = ? ORDER BY started_ns DESC LIMIT 1",
                           -1, &found, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(found, 1, pid);
        if (sqlite3_step(found) == SQLITE_ROW)
            *process_id = sqlite3_column_int64(found, 0);
    }
    sqlite3_finalize(found);
    if (!*process_id)
        ct_fail(0, "top: the trace has no process %lld", (long long)pid);
    return *process_id != 0;
}

static int show(struct top_options *options)
{
    struct ct_top *top = &options->top;
    int64_t process_id;
    /* Where there is no trace, one that is being written. */
    if (!top->common.database && access("trace.db", F_OK) != 0)
        top->common.session_given |= ct_session_choose(&top->common, "top", CT_GUESS_ONLY_ONE);
    if (!ct_top_open(top))
        return EXIT_FAILURE;
    if (options->pid) {
        const char *sort = top->sort;
        const bool is_reversed = top->is_reversed;
        if (!find_process(top, options->pid, &process_id))
            return EXIT_FAILURE;
        ct_top_look_at(top, options->threads ? CT_TOP_THREADS : CT_TOP_FUNCTIONS, process_id, options->pid);
        top->sort = sort;
        top->is_reversed = is_reversed;
    }
    if (options->is_printed || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return print_moments(options);
    return ct_top_screen(top);
}

int ct_top(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace top [--db FILE] [--session NAME] [--shm-dir DIR] [--interval S]\n"
        "                     [--sort COLUMN] [--all] [--find TEXT] [--pid PID [--threads]]\n"
        "                     [--once | --count N] [--json | --format F]\n"
        "\n"
        "What the traced processes do now, again and again: calls and launches a second, the\n"
        "part of the time that their threads spend in the driver (in a call that has not\n"
        "returned, too), copies, device memory that they hold, calls that were lost, and the\n"
        "outermost call that is open, with for how long. Of a trace that nobody writes: the\n"
        "same of whole processes.\n"
        "\n"
        "On a terminal: arrows and Enter look into a process (its functions; Tab: its\n"
        "threads), Escape goes back, < and > choose the column that sorts, r turns it round,\n"
        "/ finds, a shows ended processes, space pauses, q leaves. Elsewhere it prints.\n"
        "\n"
        "  --db FILE       the trace (default: ./trace.db)\n"
        "  --session NAME  the trace of that session's daemon\n" CT_SHM_DIR_HELP
        "  --interval S    seconds between two looks (default: 1)\n"
        "  --sort COLUMN   by this column; -COLUMN turns it round (default: driver_%)\n"
        "  --all           processes that have ended, too\n"
        "  --find TEXT     what has the text in its command or name, or is the pid\n"
        "  --pid PID       the functions of a process, or with --threads its threads\n"
        "  --once          print once, and leave\n"
        "  --count N       print N times, and leave\n"
        "  --json          JSON, an object each time\n" CT_FORMAT_HELP;
    static const struct option known[] = { { "interval", required_argument, NULL, 'i' },
                                           { "count", required_argument, NULL, 'n' },
                                           { "once", no_argument, NULL, 'o' },
                                           { "json", no_argument, NULL, 'j' },
                                           { "format", required_argument, NULL, 'f' },
                                           { "sort", required_argument, NULL, 's' },
                                           { "all", no_argument, NULL, 'a' },
                                           { "threads", no_argument, NULL, 't' },
                                           { "find", required_argument, NULL, '/' },
                                           { "pid", required_argument, NULL, 'p' },
                                           { 0 } };
    struct top_options options = { .top = { .interval_s = 1, .daemon = -1 }, .count = COUNT_MAX };
    bool done;
    int status;
    const int first =
        ct_options_parse(argc, argv, known, help, &options.top.common, on_option, &options, &done, &status);
    if (done)
        return status;
    if (first != argc)
        return ct_fail(EXIT_USAGE, "top: unknown argument '%s' (see cudatrace top --help)", argv[first]);
    if (options.threads && !options.pid)
        return ct_fail(EXIT_USAGE, "top: --threads wants --pid");
    status = show(&options);
    ct_top_close(&options.top);
    return status;
}
