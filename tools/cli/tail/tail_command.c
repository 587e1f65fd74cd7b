/* Implements `cudatrace tail`, which prints calls as they happen, one per line. */
#include "tail.h"

#include "client.h"
#include "clock.h"
#include "number.h"
#include "sessions.h"
#include "subcommand.h"
#include "trace_file.h"

#include <string.h>
#include <unistd.h>

enum { STEPS = 100000 }; /* of SQLite's virtual machine, about a millisecond */
#define PATIENCE_NS UINT64_C(1000000000)

struct tail_options {
    struct ct_session_choice choice;
    struct ct_tail_plan plan;
    int format;   /* index in "text|json" */
    int64_t last; /* -1: not given */
    bool all;
};

static volatile sig_atomic_t is_stopped;

static void on_stop(int number)
{
    (void)number;
    is_stopped = 1;
}

/* Makes SIGINT and SIGTERM end the output, unless they are ignored. These signals are delivered only during
 * waits and writes, so that the output ends with a whole line. Stores the signal mask for waits and writes in
 * `while_waiting`. */
static void catch_stops(sigset_t *while_waiting)
{
    static const int stops[] = { SIGINT, SIGTERM };
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        struct sigaction before;
        if (sigaction(stops[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(stops[i], &(struct sigaction){ .sa_handler = on_stop }, NULL);
            sigaddset(&blocked, stops[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &blocked, while_waiting);
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
        sigdelset(while_waiting, stops[i]);
}

/* Aborts a query that goes on for a second after a signal, such as that of an endless view. */
static int is_overdue(void *data)
{
    static uint64_t since_ns;
    sigset_t pending;
    (void)data;
    if (sigpending(&pending) != 0 || (!sigismember(&pending, SIGINT) && !sigismember(&pending, SIGTERM)))
        return 0;
    const uint64_t now_ns = ct_monotonic_ns();
    since_ns = since_ns ? since_ns : now_ns;
    return now_ns - since_ns > PATIENCE_NS;
}

/* Prints calls until a signal arrives, the output is closed, or the daemon exits. `daemon` is -1 if there is
 * none.
 * */
static int print_calls(struct ct_tail *tail, int daemon, const char *path)
{
    enum ct_tail_state state = CT_TAIL_MORE;
    bool is_live = daemon >= 0;
    while (is_live && !is_stopped && state != CT_TAIL_OVER) {
        state = ct_tail_step(tail);
        is_live = state != CT_TAIL_IDLE || !ct_tail_wait(tail, daemon);
    }
    const int status = ct_tail_finish(tail);
    if (is_live || is_stopped || status != EXIT_SUCCESS)
        return status;
    if (daemon >= 0)
        ct_fail(0, "tail: the daemon has stopped; all stored calls were printed");
    else
        ct_fail(0, "tail: no daemon writes '%s'; all stored calls were printed", path);
    return status;
}

/* Determines the first call to print. Returns CT_GO_ON, or the exit status after reporting an error. */
static int settle_start(struct tail_options *options, sqlite3 *connection)
{
    struct ct_follow_plan *follow = &options->plan.follow;
    struct ct_extent extent;
    follow->last = options->last;
    follow->start = options->last >= 0 ? CT_FOLLOW_LAST : CT_FOLLOW_NOW;
    if (!follow->scope.from)
        return CT_GO_ON;
    follow->start = CT_FOLLOW_FROM;
    ct_trace_extent(connection, 0, &extent);
    return ct_moment_take("tail", "from", follow->scope.from, &extent, &follow->scope.from_ns) ? CT_GO_ON
                                                                                               : EXIT_USAGE;
}

/* Returns whether the selected process may make calls. Without a daemon, the process must be in the trace. */
static bool may_have_process(const struct ct_scope *scope, sqlite3 *connection, bool is_live)
{
    static const char sql[] = "SELECT count(*) FROM processes WHERE pid = ?1";
    if (!is_live)
        return ct_scope_has_process(scope, "tail", connection);
    if (scope->pid && ct_ask_number(connection, sql, scope->pid, 0) == 0)
        ct_fail(0, "tail: the trace has no process %lld yet: waiting for its first call",
                (long long)scope->pid);
    return true;
}

static int follow_trace(struct tail_options *options)
{
    struct ct_series series;
    sigset_t while_waiting;
    ct_session_prefer_live(&options->choice, "tail");
    sqlite3 *connection = ct_meant_trace_open(&options->choice, &series);
    if (!connection)
        return EXIT_FAILURE;
    int status = settle_start(options, connection);
    const int daemon = status == CT_GO_ON ? ct_session_connect_writer(&options->choice, series.path[0]) : -1;
    if (status == CT_GO_ON && daemon < 0 && options->plan.follow.start == CT_FOLLOW_NOW)
        status =
            ct_fail(EXIT_FAILURE, "tail: no daemon writes '%s'; use --last N or --from T to print its calls",
                    series.path[0]);
    if (status == CT_GO_ON && !may_have_process(&options->plan.follow.scope, connection, daemon >= 0))
        status = EXIT_FAILURE;
    if (status != CT_GO_ON) {
        sqlite3_close(connection);
        return status;
    }
    catch_stops(&while_waiting);
    sqlite3_progress_handler(connection, STEPS, is_overdue, NULL);
    options->plan.stop = &is_stopped;
    options->plan.mask = &while_waiting;
    struct ct_tail *tail = ct_tail_begin(connection, &series, &options->plan);
    status = tail ? print_calls(tail, daemon, series.path[0]) : EXIT_FAILURE;
    if (daemon >= 0)
        close(daemon);
    return status;
}

static const char about[] =
    "Prints the calls of the traced processes as they return, one line each:\n"
    "\n"
    "  14:03:02.123456 1592   cuMemAlloc_v2(bytes=4096, address=0x7f…) = CUDA_SUCCESS <1.2us>\n"
    "  14:03:02.123460 1592 cudaMalloc() = cudaSuccess <6.1us>\n"
    "\n"
    "A line shows the time of return, the process (PID/TID for threads other than the first), the\n"
    "call with the recorded arguments, its status and its duration. The indentation shows its\n"
    "depth. Calls made inside a call precede it.\n";

static const char more[] =
    "It ends at Ctrl-C, when the reader closes the pipe, or when the daemon stops. The programs\n"
    "and the daemon never wait for it. When its output lags by more than a tenth of a second, it\n"
    "skips to the newest calls, and prints the number of skipped calls: '… 12345 calls not shown …'.\n"
    "\n"
    "  cudatrace tail --calls 'cuMem*' --min 1ms\n"
    "  cudatrace tail -n 20 --failed\n"
    "  cudatrace tail -f json | jq -c 'select(.kernel)'\n";

static int tail(int argc, char **argv)
{
    struct tail_options options = {
        .last = -1,
        .plan = { .command = "tail", .fd = STDOUT_FILENO, .follow = { .scope = ct_scope_all() } },
    };
    struct ct_tail_plan *plan = &options.plan;
    struct ct_follow_plan *follow = &plan->follow;
    const struct ct_option table[] = {
        CT_OPTIONS_OF_TRACE(&options.choice),
        { "last", "N", "begin with the last N calls (also -n N; default: with the next call)", &options.last,
          ct_take_number, "expected a number of calls", .most = INT32_MAX, .letter = 'n' },
        { "from", "T",
          "begin with calls that returned at T or later: seconds since the trace began (12.5,\n"
          "350ms) or before its end (-10s), a time of day (14:03:02), or @NANOSECONDS",
          &follow->scope.from },
        CT_OPTION_PID(&follow->scope.pid),
        CT_OPTION_LAYERS(
            &follow->scope.only,
            "only these layers: driver, runtime, ioctl, nvtx, kernel, hook, or all\n(default: all)"),
        CT_OPTION_CALLS(&follow->scope.only,
                        "only driver and runtime functions that match, with '!' before those to\n"
                        "exclude; the last match decides: 'cuMem*,!cuMemGetInfo*'"),
        { "failed", NULL, "only calls that failed", &follow->is_failed_only },
        { "min", "SPAN", "only calls that took at least this long: 50us, 1.5ms, 2s", &follow->least_ns,
          ct_take_span, "expected a duration, such as 50us, 1.5ms or 2s" },
        { "relative", NULL, "print the seconds since the first line instead of the time of day (only text)",
          &plan->is_relative },
        { "threads", NULL, "print the thread in every line", &plan->has_threads },
        { "format", "F", "text, or json: one object per line (also -f F; default: text)", &options.format,
          ct_take_choice, .choices = "text|json", .letter = 'f' },
        { "color", "WHEN", "auto (on a terminal, without $NO_COLOR), always or never (default: auto)",
          &plan->colour, ct_take_choice, .choices = "auto|always|never" },
        { "all", NULL, "skip no calls, even if the reader is slow", &options.all },
        { 0 }
    };
    const struct ct_usage usage = { .options = table, .about = about, .more = more };
    int first;
    const int status = ct_session_choice_parse(argc, argv, &usage, &options.choice, &first);
    if (status != CT_GO_ON)
        return status;
    if (options.last >= 0 && follow->scope.from)
        return ct_fail(EXIT_USAGE, "tail: --last cannot be combined with --from");
    plan->is_json = options.format == 1;
    plan->lag_max_ns = options.all ? 0 : CT_TAIL_LAG_MAX_NS;
    return follow_trace(&options);
}

const struct ct_subcommand ct_subcommand_tail = { "tail", "print calls as they happen, one line each", tail };
