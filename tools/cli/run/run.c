/* Implements `cudatrace run`, which starts a daemon if none is running, preloads the hook into the command,
 * and returns the command's exit status. */
#include "client.h"
#include "clock.h"
#include "control.h"
#include "gpu_recording.h"
#include "held_daemon.h"
#include "installed.h"
#include "losses.h"
#include "new_trace.h"
#include "preloadable.h"
#include "printing.h"
#include "run_command.h"
#include "run_probe.h"
#include "selecting.h"
#include "subcommand.h"
#include "survivors.h"
#include "trace_file.h"
#include "traced_environment.h"

#include "series.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct run_options {
    struct ct_session_choice choice;
    const char *of_daemon[CT_DAEMON_OPTIONS]; /* option values; NULL if not given */
    struct ct_selecting selecting;
    bool waits, leaves;             /* --wait, --no-follow */
    bool is_new;                    /* --new */
    bool gpu;                       /* --gpu */
    int graphs;                     /* --gpu-graphs */
    bool is_probed;                 /* --probe */
    struct ct_probe_options events; /* --kernel, --ioctls, --hooks and --hook */
    struct ct_printing printing;
};

/* ---- the command ---- */

static bool pass_on(const char *variable, const char *value)
{
    return !value || setenv(variable, value, 1) == 0;
}

/* The data passed to the callbacks. prepare() runs in the command's process, on_orphaned() in the keeper, and
 * on_started() in this process. */
struct traced {
    struct run_options *options;
    char hook[PATH_MAX];
    struct ct_mark mark;
    int daemon;
    const char *database;
    int64_t began_ns;
};

/* Sets up the environment that preloads the hook into the command. Returns false after reporting an error. */
static bool prepare(const void *data)
{
    const struct traced *traced = data;
    const struct run_options *options = traced->options;
    const struct ct_selecting *selecting = &options->selecting;
    if (setenv(CT_RUN_ENV, strchr(traced->mark.text, '=') + 1, 1) != 0)
        return ct_fail(false, "run: out of memory");
    if (options->is_probed)
        return true;
    if (!ct_traced_environment_set(traced->hook, &options->choice) ||
        !pass_on(CT_LAYERS_ENV, selecting->layers) || !pass_on(CT_CALLS_ENV, selecting->calls) ||
        !pass_on(CT_SAMPLE_ENV, selecting->sample) ||
        !pass_on(CT_GPU_ENV, !options->gpu                            ? NULL
                             : options->graphs == CT_GPU_GRAPHS_WHOLE ? CT_GPU_WHOLE_TEXT
                                                                      : CT_GPU_NODES_TEXT))
        return ct_fail(false, "run: out of memory");
    return true;
}

/* Warns about a command that cannot be traced. The hook is preloaded nevertheless, because programs started
 * by the command may be traceable. */
static void warn_about(const char *command)
{
    const enum ct_program program = ct_program_inspect(command);
    if (program != CT_PROGRAM_UNKNOWN)
        ct_fail(0, "run: %s %s", command, ct_program_why(program));
}

/* Makes the daemon store the recorded calls after both `run` and the command were killed. */
static void on_orphaned(const void *data)
{
    const struct traced *traced = data;
    char answer[CT_ANSWER_BYTES];
    if (ct_client_ask(traced->daemon, "flush", answer, 0) == CT_ANSWER_NONE)
        return;
    if (!traced->options->leaves)
        ct_survivors_await(&traced->mark, traced->daemon);
    ct_client_ask(traced->daemon, "release", answer, 0);
}

static void on_started(void *data)
{
    const struct traced *traced = data;
    ct_printing_start(&traced->options->printing, traced->database, traced->began_ns);
}

/* Returns the number of calls that the daemon has stored since it started, or -1 if the daemon does not
 * answer. Sets *leaves if the daemon exits once no process needs it. Uses the connection that keeps the
 * daemon alive, because a new connection might reach a different daemon. */
static long long stored_calls(int daemon, bool *leaves)
{
    char stays[32];
    char *text = ct_client_status(daemon, CT_ANSWER_S);
    const long long stored = ct_client_status_number(text, "stored");
    *leaves =
        ct_client_status_word(text, "stays", stays, sizeof(stays)) && strcmp(stays, CT_STAYS_WHILE_USED) == 0;
    free(text);
    return stored;
}

/* Runs a query about the time since `began_ns` on all files of the trace. Returns false if there is no
 * result. */
static bool ask_trace(const char *database, const char *sql, int64_t began_ns, char text[128])
{
    struct ct_series series;
    sqlite3 *connection = NULL;
    text[0] = '\0';
    if (*database && ct_series_find(database, &series) && ct_series_open(&series, &connection) == SQLITE_OK)
        ct_ask_text(connection, sql, began_ns, text, 128);
    sqlite3_close(connection);
    return *text != '\0';
}

/* Reports the outcome of the run. Without this message, users might not notice that no calls were
 * recorded. */
static void tell(const char *database, bool nothing, int64_t began_ns)
{
    static const char sql[] = "SELECT sum(skipped) FROM totals JOIN processes USING (process_id) "
                              "WHERE started_ns >= ?1 HAVING sum(skipped) > 0";
    static const char earlier_sql[] =
        "SELECT ', appended to its ' || iif(count(*) = 2, 'earlier run', (count(*) - 1) || ' earlier runs') "
        "FROM runs HAVING count(*) > 1";
    char skipped[128], earlier[128];
    if (nothing && ask_trace(database, sql, began_ns, skipped))
        ct_fail(0,
                "run: no calls were recorded: %s were excluded by --layers, --calls, --sample or `cudatrace "
                "set` (skipped in the view totals)",
                skipped);
    else if (nothing)
        ct_fail(0, "run: no CUDA driver calls were traced: `cudatrace doctor -- COMMAND` runs the command "
                   "again and reports why");
    else if (isatty(STDERR_FILENO) && !*database)
        ct_fail(0,
                "traced into the trace of the system daemon, which only root, or a group chosen by root, can "
                "read; use `cudatrace run --db FILE` for a trace of your own");
    else if (isatty(STDERR_FILENO)) {
        ask_trace(database, earlier_sql, began_ns, earlier);
        ct_fail(0, "traced into %s%s: `cudatrace report --db %s%s summary` shows where the time was spent",
                database, earlier, database, *earlier ? " --last" : "");
    }
}

/* Reports what the query finds since `began_ns`, and explains each cause that the result contains. The calls
 * may have been made by this command or by others in the session. */
static void tell_missing(const char *database, const char *remark, const char *sql, int64_t began_ns,
                         const struct ct_cause *causes, size_t count)
{
    char missing[128], explained[1024] = "";
    size_t length = 0;
    if (!ask_trace(database, sql, began_ns, missing))
        return;
    for (size_t i = 0; i < count; i++) {
        if (strstr(missing, causes[i].name) && length < sizeof(explained))
            length += (size_t)snprintf(explained + length, sizeof(explained) - length, "; %s: %s",
                                       causes[i].name, causes[i].explanation);
    }
    ct_fail(0, "run: %s%s; the view %s", missing, explained, remark);
}

/* Reports how many calls were counted but not recorded, how many records of GPU work were dropped, and how
 * many processes could not be recorded. */
static void tell_all_missing(const char *database, int64_t began_ns)
{
    tell_missing(database, "losses has the times",
                 "SELECT sum(calls) || ' calls were counted but not recorded (' || group_concat(DISTINCT "
                 "cause) || ')' "
                 "FROM losses WHERE calls > 0 AND cause <> 'cupti' AND last_ns >= ?1",
                 began_ns, ct_losses, CT_LOSS_COUNT);
    tell_missing(database, "losses has the times",
                 "SELECT sum(calls) || ' pieces of GPU work were dropped, or not returned by CUPTI (cupti)' "
                 "FROM losses WHERE calls > 0 AND cause = 'cupti' AND last_ns >= ?1",
                 began_ns, ct_losses, CT_LOSS_COUNT);
    tell_missing(database, "unrecorded lists them",
                 "SELECT printf('%d process%s%s could not be recorded (%s)', count(*), "
                 "iif(count(*) = 1, '', 'es'), ifnull(' with ' || sum(calls) || ' calls', ''), "
                 "group_concat(DISTINCT cause)) "
                 "FROM unrecorded WHERE last_ns >= ?1 HAVING count(*) > 0",
                 began_ns, ct_unrecorded_causes, CT_UNRECORDED_COUNT);
}

/* Reports which processes did not record their GPU work, and if --gpu or --gpu-graphs had no effect. */
static void tell_gpu(const char *database, int64_t began_ns, int graphs)
{
    static const char failed_sql[] =
        "SELECT iif(count(*) = 1, 'process ' || pid, count(*) || ' processes') || ': ' || min(gpu_recording) "
        "FROM processes WHERE gpu_recording <> 'recorded' AND started_ns >= ?1 AND process_id IN "
        "(SELECT process_id FROM totals WHERE category IN ('launch', "
        "'copy', 'set'))";
    static const char idle_sql[] =
        "SELECT 'none' WHERE NOT EXISTS (SELECT 1 FROM processes JOIN totals USING (process_id) "
        "WHERE started_ns >= ?1 AND category IN ('launch', 'graph', 'copy', 'set') AND calls > 0)";
    static const char none_sql[] = /* work may have been recorded and removed by --keep or --max-db */
        "SELECT 'none' WHERE NOT EXISTS (SELECT 1 FROM gpu_work WHERE gpu_start_ns >= ?1) "
        "AND NOT EXISTS (SELECT 1 FROM totals WHERE expired > 0)";
    static const char nodes_sql[] =
        "SELECT 'nodes' WHERE EXISTS (SELECT 1 FROM gpu_work WHERE gpu_start_ns >= ?1 AND node IS NOT NULL)";
    char found[128];
    if (ask_trace(database, failed_sql, began_ns, found))
        ct_fail(0, "run: GPU work was not recorded in %s (gpu_recording in the view processes)", found);
    else if (ask_trace(database, none_sql, began_ns, found) && ask_trace(database, idle_sql, began_ns, found))
        ct_fail(0, "run: no GPU work was recorded: the program launched no work, and made no copies or sets");
    else if (ask_trace(database, none_sql, began_ns, found))
        ct_fail(0,
                "run: no GPU work was recorded; while the command runs, `cudatrace doctor PID` reports why");
    if (graphs == CT_GPU_GRAPHS_WHOLE && ask_trace(database, nodes_sql, began_ns, found))
        ct_fail(0, "run: the nodes of graphs were recorded: whole graphs need the CUPTI of CUDA 11.7, "
                   "driver 515, and a recording from the first driver call on");
}

/* ---- processes that outlive the command ---- */

/* Starts a process that keeps the daemon alive for the survivors. Returns -1 after reporting an error. */
static pid_t follow(const struct traced *traced)
{
    const pid_t follower = fork();
    if (follower == 0) {
        if (traced->options->printing.path)
            close(traced->options->printing.fd);
        ct_survivors_await(&traced->mark, traced->daemon);
        _exit(EXIT_SUCCESS); /* closes the connection, which releases the daemon unless `run` still waits */
    }
    if (follower < 0)
        ct_fail(0, "run: cannot fork: %s", strerror(errno));
    return follower;
}

/* Waits for the process that follow() has started, which keeps the daemon alive even if this process exits
 * first. Also reaps other children, which this process inherits if it is PID 1 in a container. */
static void wait_for(pid_t follower)
{
    pid_t ended;
    while (follower > 0 && (ended = waitpid(-1, NULL, 0)) != follower && (ended > 0 || errno == EINTR))
        ;
}

/* Keeps the daemon alive for processes that outlive the command, if there are any. Returns whether the daemon
 * is kept alive. */
static bool keep_for_survivors(const struct traced *traced, bool daemon_leaves)
{
    const struct run_options *options = traced->options;
    struct ct_survivors survivors;
    char named[1024];
    if (options->leaves || (!daemon_leaves && !options->waits))
        return false;
    ct_survivors_find(&survivors, &traced->mark);
    const size_t count = survivors.count;
    ct_survivors_name(&survivors, named, sizeof(named));
    ct_survivors_free(&survivors);
    if (count == 0)
        return false;
    ct_fail(
        0,
        "run: still tracing %zu %s that outlived the command (%s); stop with `cudatrace stop --session %s`%s",
        count, count == 1 ? "process" : "processes", named, options->choice.session,
        options->waits ? "; waiting" : ", or use --wait");
    const pid_t follower = follow(traced);
    if (options->waits) {
        ct_command_wait_as_usual();
        wait_for(follower);
    }
    return follower > 0 && !options->waits;
}

/* Lists the processes that the daemon no longer traces. `left` is the daemon's answer to `release`. */
static void tell_left(const char *left)
{
    char *end, named[CT_ANSWER_BYTES] = "";
    const unsigned long count = strtoul(left, &end, 10);
    size_t n = 0;
    for (char *at = end; count > 0 && *at == ' ' && n < sizeof(named); at += strcspn(at + 1, " ") + 1)
        n += (size_t)snprintf(named + n, sizeof(named) - n, "%s%ld", n ? ", " : "", strtol(at, NULL, 10));
    if (count > 0)
        ct_fail(0, "run: %lu %s untraced (%s); the view losses has the times", count,
                count == 1 ? "process continues" : "processes continue", named);
}

/* Finds the hook. Returns false after reporting an error. */
static bool find_hook(char hook[PATH_MAX])
{
    if (!ct_installed_hook(hook))
        return ct_fail(false,
                       "run: libcudatrace.so not found next to cudatrace; set CUDATRACE_HOOK to its path");
    return ct_installed_is_nameable(hook) || ct_fail(false, "run: " CT_INSTALLED_UNNAMEABLE, hook);
}

/* Makes the run use a trace of its own. */
static bool begin_new(struct ct_session_choice *choice, char fresh[PATH_MAX])
{
    if (!ct_new_trace_take(choice->database ? choice->database : "trace.db", fresh))
        return false;
    choice->database = fresh;
    return true;
}

static int trace_command(struct run_options *options, char **command)
{
    int status;
    struct traced traced = { .options = options };
    struct ct_run_probe probe = { .pid = 0 };
    char database[CT_ANSWER_BYTES], fresh[PATH_MAX];
    if ((!options->is_probed && !find_hook(traced.hook)) || !ct_run_probe_find(&probe, &options->events) ||
        !ct_printing_open(&options->printing) || (options->is_new && !begin_new(&options->choice, fresh)))
        return EXIT_FAILURE;
    const int daemon = ct_daemon_hold("run", &options->choice, options->of_daemon, database, &status);
    if (daemon < 0) {
        if (options->is_new)
            ct_new_trace_give_back(fresh);
        return status;
    }
    if (!options->is_probed)
        warn_about(command[0]);
    if (!ct_run_probe_start(&probe, &options->events, &options->choice)) {
        ct_client_ask(daemon, "release", database, 0);
        close(daemon);
        return EXIT_FAILURE;
    }
    bool leaves;
    const long long before_calls = stored_calls(daemon, &leaves);
    traced.began_ns = (int64_t)ct_monotonic_ns();
    traced.database = database;
    traced.daemon = daemon;
    ct_mark_make(&traced.mark, &options->choice);
    traced.mark.is_probed = options->is_probed;
    const struct ct_command_plan plan = { .argv = command,
                                          .prepare = prepare,
                                          .on_orphaned = on_orphaned,
                                          .on_started = on_started,
                                          .data = &traced,
                                          .keep = daemon,
                                          .front = options->printing.fd };
    int wait_status = 0;
    if (!ct_command_run(&plan, &wait_status))
        return EXIT_FAILURE;
    const bool is_kept = keep_for_survivors(&traced, leaves);
    ct_command_release();
    ct_run_probe_end(&probe);

    char answer[CT_ANSWER_BYTES];
    const enum ct_answer flushed = ct_client_ask(daemon, "flush", answer, 0);
    ct_printing_finish(&options->printing);
    if (flushed == CT_ANSWER_NONE)
        ct_fail(
            0,
            "run: the daemon %s; `cudatrace run --session %s --db %s -- true` stores calls that are missing",
            ct_client_why(daemon), options->choice.session, database);
    else if (flushed != CT_ANSWER_OK)
        ct_fail(0,
                "run: the trace is incomplete; the missing calls stay in shared memory for the session's "
                "next daemon: %s",
                answer);
    else {
        /* If the status is 126 or 127, the command most likely did not run, and that has already been
         * reported. */
        const bool ran = !WIFEXITED(wait_status) || (WEXITSTATUS(wait_status) | 1) != 127;
        tell(database, ran && !is_kept && before_calls >= 0 && stored_calls(daemon, &leaves) == before_calls,
             traced.began_ns);
        tell_all_missing(database, traced.began_ns);
        if (ran && options->gpu)
            tell_gpu(database, traced.began_ns, options->graphs);
    }
    /* If no other run needs the daemon, `release` is answered only after the daemon has exited, and the trace
     * is a single closed file. */
    if (flushed != CT_ANSWER_NONE && !is_kept && ct_client_ask(daemon, "release", answer, 0) == CT_ANSWER_OK)
        tell_left(answer);
    close(daemon);
    if (WIFSIGNALED(wait_status) && WCOREDUMP(wait_status) && isatty(STDERR_FILENO))
        ct_fail(0, "run: %s: %s (core dumped)", command[0], strsignal(WTERMSIG(wait_status)));
    return ct_command_end_as(wait_status);
}

/* Rejects an invalid CUDATRACE_WAY, because the hook uses it but cannot report errors. */
static bool check_way(void)
{
    const char *way = getenv(CT_INTERCEPT_ENV);
    if (!way || strcmp(way, CT_INTERCEPT_NAMES_TEXT) == 0 || strcmp(way, CT_INTERCEPT_SLOTS_TEXT) == 0)
        return true;
    ct_fail(0,
            "run: " CT_INTERCEPT_ENV " is '%s': expected " CT_INTERCEPT_NAMES_TEXT
            " or " CT_INTERCEPT_SLOTS_TEXT,
            way);
    return false;
}

static int run(int argc, char **argv)
{
    struct run_options options = { .graphs = CT_GPU_GRAPHS_NONE, .printing.command = "run" };
    const struct ct_option table[] = {
        CT_OPTION_DB(&options.choice,
                     "the database (default: the one that the daemon of session default writes,\n"
                     "even the system daemon; else ./trace.db)"),
        CT_OPTION_SESSION(&options.choice,
                          "the session (default: $CUDATRACE_SESSION, else the one whose daemon writes\n"
                          "FILE, else a session for FILE)"),
        { "new", NULL,
          "begin a new trace instead of adding to FILE: if FILE exists, write the first of\n"
          "FILE-2, FILE-3, … (trace-2.db) that does not exist",
          &options.is_new },
        CT_OPTION_SHM_DIR(&options.choice),
        { "ring", "SIZE", "if a daemon is started: the maximum size of a thread's ring (default: 512M)",
          &options.of_daemon[CT_DAEMON_RING] },
        { "keep", "DURATION",
          "if a daemon is started, it deletes calls older than this: 90s, 10m, 24h\n"
          "(default: keep all)",
          &options.of_daemon[CT_DAEMON_KEEP] },
        { "max-db", "SIZE",
          "if a daemon is started, it limits the trace on disk to this size, such as 500M\n"
          "or 20G, by deleting the oldest calls",
          &options.of_daemon[CT_DAEMON_MAX_DB] },
        { "gpu-samples", "INTERVAL",
          "if a daemon is started: how often it samples each GPU, 100ms to 60s, or off\n"
          "(default: 1s)",
          &options.of_daemon[CT_DAEMON_GPU_SAMPLES] },
        CT_OPTIONS_OF_RECORDING(&options.selecting),
        { "gpu", NULL,
          "record when kernels, copies and memsets ran on the GPU, with the command's own\n"
          "CUPTI: see the view gpu_work",
          &options.gpu },
        CT_OPTION_GPU_GRAPHS(&options.graphs),
        { "probe", NULL,
          "record driver calls by eBPF instead of preloading the hook: also those of\n"
          "set-user-ID programs, but each call takes about a microsecond longer",
          &options.is_probed },
        CT_OPTIONS_OF_EVENTS(&options.events,
                             "also record functions of libraries and of the kernel, and tracepoints, as the\n"
                             "lines of this table choose them (layer hook)"),
        { "wait", NULL, "return only when the processes that outlive COMMAND have ended, too",
          &options.waits },
        { "no-follow", NULL, "stop tracing when COMMAND has ended", &options.leaves },
        CT_OPTIONS_OF_PRINTING(&options.printing),
        { 0 }
    };
    const struct ct_usage usage = {
        .options = table,
        .arguments = "[--] COMMAND [ARGUMENT…]",
        .runs_command = true,
        .about =
            "Runs COMMAND and traces it and the processes that it starts, by preloading the hook. When\n"
            "run returns, all of their calls are in the database. Each database has its own session: runs\n"
            "into different databases are independent, and runs into the same database add to it. If no\n"
            "daemon writes the database, run starts one. This daemon exits with the last `cudatrace run`\n"
            "that uses it.\n"
            "\n"
            "Processes that outlive COMMAND are traced until they end, or until `cudatrace stop`. The\n"
            "daemon stays in the background for them, and run prints their IDs.\n",
        .more = "Calls that are not selected are counted (skipped in the view totals). `cudatrace set`\n"
                "changes the selection while COMMAND runs.\n"
                "\n"
                "--probe, --kernel, --ioctls, --hooks and --hook start a probe, which needs root, or\n"
                "CAP_BPF and CAP_PERFMON. The probe records until run returns.\n"
                "\n"
                "Signals sent to run are passed to COMMAND. When COMMAND stops or continues, run does, too.\n"
                "Exit status: the status of COMMAND, 1 if it could not be traced, 126 if it could not be\n"
                "executed, 127 if it was not found. If a signal killed COMMAND, the same signal kills run.\n"
                "\n"
                "  cudatrace run -- python train.py\n"
                "  cudatrace run --db ab.db -- ./a & cudatrace run --db ab.db -- ./b    # one trace\n"
                "  cudatrace run --db a.db -- ./a & cudatrace run --db b.db -- ./b      # two\n",
    };
    int first;
    const int status = ct_session_choice_parse(argc, argv, &usage, &options.choice, &first);
    if (status != CT_GO_ON)
        return status;
    if (first >= argc)
        return ct_fail(EXIT_USAGE, "run: no command to run (see cudatrace run --help)");
    if (options.graphs != CT_GPU_GRAPHS_NONE && !options.gpu)
        return ct_fail(EXIT_USAGE, "run: --gpu-graphs needs --gpu (see cudatrace run --help)");
    if (options.is_new && options.choice.session_option)
        return ct_fail(EXIT_USAGE,
                       "run: --new cannot be combined with --session, whose daemon may write another trace "
                       "(see cudatrace run --help)");
    if (options.waits && options.leaves)
        return ct_fail(EXIT_USAGE,
                       "run: --wait cannot be combined with --no-follow (see cudatrace run --help)");
    const char *of_hook = options.gpu                ? "gpu"
                          : options.selecting.layers ? "layers"
                          : options.selecting.sample ? "sample"
                                                     : NULL;
    if (options.is_probed && of_hook)
        return ct_fail(EXIT_USAGE, "run: --%s needs the hook: omit --probe", of_hook);
    if (options.is_probed) {
        options.events.children = getpid();
        options.events.selecting.calls = options.selecting.calls;
        options.leaves = !options.waits; /* the probe ends with the command */
    }
    if (options.events.hooks &&
        (strcmp(options.events.hooks, "-") == 0 || strcmp(options.events.hooks, "/dev/stdin") == 0))
        return ct_fail(EXIT_USAGE, "run: --hooks %s: standard input is COMMAND's; use --hook LINE",
                       options.events.hooks);
    if (ct_probe_check_table(&options.events, "run") != CT_GO_ON || !check_way())
        return EXIT_USAGE;
    return trace_command(&options, argv + first);
}

const struct ct_subcommand ct_subcommand_run = { "run", "run a command and trace its CUDA calls", run };
