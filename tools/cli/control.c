/* Implements `cudatrace flush`, `set`, `status` and `stop`, which send requests to a running daemon. */
#include "client.h"
#include "duration.h"
#include "selecting.h"
#include "session_files.h"
#include "sessions.h"
#include "subcommand.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The options --session and --db select the daemon. If neither is given and only one daemon is running,
 * commands other than stop use that daemon. */
#define OPTION_SESSION(choice)                                                                               \
    CT_OPTION_SESSION(choice, "the session (default: $CUDATRACE_SESSION, else as selected by --db)")
#define OPTION_DB(choice, more)                                                                              \
    CT_OPTION_DB(choice, "the session whose daemon writes this database (default: session default,\n"        \
                         "else the one that writes ./trace.db" more ")")
#define ONLY_ONE ", else the only session"

static void say_silent(const struct ct_session_choice *choice, int fd)
{
    ct_fail(EXIT_FAILURE, "the daemon of session '%s' %s", choice->session, ct_client_why(fd));
}

/* Returns false after reporting that the daemon does not write the database given with --db. */
static bool same_database(const struct ct_session_choice *choice, int fd)
{
    char served[CT_ANSWER_BYTES];
    if (!choice->database)
        return true;
    const enum ct_answer answer = ct_client_ask(fd, "database", served, CT_ANSWER_S);
    if (answer == CT_ANSWER_OK && ct_series_has(choice->database, served))
        return true;
    if (answer == CT_ANSWER_NONE)
        say_silent(choice, fd);
    else if (answer == CT_ANSWER_OK)
        ct_fail(0, "session '%s' is served by a daemon that writes %s, not %s", choice->session, served,
                choice->database);
    else if (answer == CT_ANSWER_ERROR)
        ct_fail(0, "the daemon of session '%s': %s", choice->session, served);
    else
        ct_fail(0, "session '%s' is served by the system daemon, which writes root's trace; omit --db",
                choice->session);
    return false;
}

/* Returns whether the daemon of the session that `cudatrace run` derives from the database was killed. */
static bool was_killed(struct ct_session_choice *choice)
{
    char path[CT_NAME_BYTES];
    static struct ct_control control;
    ct_session_derive(choice, choice->database);
    ct_session_control_path(path, choice->shm_dir, ct_session_uid(), choice->session);
    return ct_control_read(path, ct_session_uid(), &control) == CT_SERVED_LEFT;
}

static void say_unserved(const struct ct_session_choice *choice, bool chosen)
{
    struct ct_session_choice derived = *choice;
    if (chosen && choice->session_named)
        ct_fail(0, "no cudatraced serves session '%s': start one with `cudatraced --session %s --db FILE`",
                choice->session, choice->session);
    else if (choice->database && was_killed(&derived))
        ct_fail(0,
                "the cudatraced that wrote '%s' was killed: start one with `cudatraced --session %s --db %s`",
                choice->database, derived.session, choice->database);
    else if (choice->database)
        ct_fail(0, "no cudatraced writes '%s': start one with `cudatraced --db FILE`", choice->database);
    else
        ct_fail(
            0,
            "no cudatraced serves session '%s' or writes ./trace.db: start one with `cudatraced --db FILE`",
            choice->session);
    if (!chosen || !choice->session_named)
        ct_sessions_say(choice);
}

/* Connects to the selected daemon. Returns -1 after reporting an error. */
static int reach(struct ct_session_choice *choice, const char *command, enum ct_guess guess)
{
    const bool chosen = ct_session_choose(choice, command, guess);
    const int fd = chosen ? ct_client_connect(choice) : -1;
    if (fd < 0) {
        say_unserved(choice, chosen);
        return -1;
    }
    if (same_database(choice, fd))
        return fd;
    close(fd);
    return -1;
}

/* Sends `line` to the selected daemon, and reports failures. */
static int ask(struct ct_session_choice *choice, const char *command, const char *line)
{
    char text[CT_ANSWER_BYTES];
    const int fd = reach(choice, command, CT_GUESS_ONLY_ONE);
    if (fd < 0)
        return EXIT_FAILURE;
    const enum ct_answer answer = ct_client_ask(fd, line, text, 0);
    if (answer == CT_ANSWER_NONE)
        say_silent(choice, fd);
    else if (answer != CT_ANSWER_OK || *text)
        ct_fail(EXIT_FAILURE, "%s: %s", command, text);
    close(fd);
    return answer == CT_ANSWER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int parse(int argc, char **argv, struct ct_session_choice *choice, const char *about)
{
    int first;
    const struct ct_option options[] = {
        OPTION_SESSION(choice), CT_OPTION_SHM_DIR(choice), OPTION_DB(choice, ONLY_ONE), { 0 }
    };
    const struct ct_usage usage = { .options = options, .about = about };
    return ct_session_choice_parse(argc, argv, &usage, choice, &first);
}

static int flush(int argc, char **argv)
{
    struct ct_session_choice choice = { 0 };
    const int status =
        parse(argc, argv, &choice, "Returns when all calls made so far are stored and visible to SQL.\n");
    return status == CT_GO_ON ? ask(&choice, "flush", "flush") : status;
}

/* What to do about the recording of GPU work: "on", "off" or a number of seconds, or "" if it is not
 * mentioned. */
struct gpu {
    char until[24];
    int64_t pid; /* 0: all processes */
};

static bool take_gpu(const struct ct_option *option, const char *value)
{
    struct gpu *gpu = option->to;
    uint64_t ns = 0;
    const struct ct_option duration = { .to = &ns };
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0 && !ct_take_duration(&duration, value))
        return false;
    if (ns > 0)
        snprintf(gpu->until, sizeof(gpu->until), "%llu", (unsigned long long)(ns / 1000000000));
    else
        strcpy(gpu->until, value);
    return true;
}

static int set_selection(struct ct_session_choice *choice, const struct ct_selecting *selecting)
{
    char line[CT_SELECTION_CALLS_BYTES + 256];
    if (!selecting->layers && !selecting->calls && !selecting->sample)
        return EXIT_SUCCESS;
    snprintf(line, sizeof(line), "set%s%s%s%s%s%s", selecting->layers ? " layers=" : "",
             selecting->layers ? selecting->layers : "", selecting->calls ? " calls=" : "",
             selecting->calls ? selecting->calls : "", selecting->sample ? " sample=" : "",
             selecting->sample ? selecting->sample : "");
    return ask(choice, "set", line);
}

/* Prints the daemon's message about the result. */
static int set_gpu(struct ct_session_choice *choice, const struct gpu *gpu)
{
    char line[64], text[CT_ANSWER_BYTES], pid[16] = "";
    const int fd = *gpu->until ? reach(choice, "set", CT_GUESS_ONLY_ONE) : -1;
    if (fd < 0)
        return *gpu->until ? EXIT_FAILURE : EXIT_SUCCESS;
    if (gpu->pid)
        snprintf(pid, sizeof(pid), " %lld", (long long)gpu->pid);
    snprintf(line, sizeof(line), "gpu %s%s", gpu->until, pid);
    const enum ct_answer answer = ct_client_ask(fd, line, text, 0);
    if (answer == CT_ANSWER_NONE)
        say_silent(choice, fd);
    else if (answer == CT_ANSWER_OK)
        puts(text);
    else
        ct_fail(EXIT_FAILURE, "set: %s", text);
    close(fd);
    return answer == CT_ANSWER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int set(int argc, char **argv)
{
    struct ct_session_choice choice = { 0 };
    struct ct_selecting selecting = { 0 };
    struct gpu gpu = { 0 };
    const struct ct_option options[] = {
        CT_OPTIONS_OF_RECORDING(&selecting),
        { "gpu", "on|off|DURATION",
          "record when kernels, copies and memsets run on the GPU, with each program's own\n"
          "CUPTI: from now on (on), no longer (off), or for this time",
          &gpu, take_gpu, "expected on, off, or a duration from 1s to 3653d, such as 30s, 10m or 24h" },
        { .name = "pid",
          .value = "PID",
          .help = "with --gpu: only this process (default: all, also new ones)",
          .to = &gpu.pid,
          .take = ct_take_number,
          .wrong = "expected a process ID",
          .least = 1,
          .most = INT32_MAX },
        OPTION_SESSION(&choice),
        CT_OPTION_SHM_DIR(&choice),
        OPTION_DB(&choice, ONLY_ONE),
        { 0 },
    };
    const struct ct_usage usage = {
        .options = options,
        .about =
            "Selects the calls that a running session records. New processes use the selection at once,\n"
            "running processes within a second, at their next call. An option that is not given keeps its\n"
            "last value; initially, all calls are recorded. Calls that are not selected are only counted,\n"
            "with their time and bytes (skipped in the view totals).\n"
            "\n"
            "With --gpu, records when kernels, copies and memsets run on the GPU (see the view gpu_work).\n"
            "Each process begins at its next call of the driver, and ends by itself. Prints how many\n"
            "processes record, and how many cannot and why.\n",
        .more = "  cudatrace set --calls '!cuCtxGet*,!cuDevicePrimaryCtxGetState'\n"
                "  cudatrace set --layers all --calls '*' --sample 1\n"
                "  cudatrace set --gpu 10s --pid 4711\n",
    };
    int first;
    const int status = ct_session_choice_parse(argc, argv, &usage, &choice, &first);
    if (status != CT_GO_ON)
        return status;
    if (!selecting.layers && !selecting.calls && !selecting.sample && !*gpu.until)
        return ct_fail(EXIT_USAGE,
                       gpu.pid ? "set: --pid needs --gpu: other options apply to all processes of the session"
                               : "set: no option given: use --layers, --calls, --sample or --gpu (see "
                                 "cudatrace set --help)");
    const int selected = set_selection(&choice, &selecting);
    return selected == EXIT_SUCCESS ? set_gpu(&choice, &gpu) : selected;
}

static int print_status(int argc, char **argv)
{
    static const char about[] =
        "Prints the state of the session's daemon, a name and its value on each line:\n"
        "\n"
        "  session, database, file    the session's name, the trace, and the file of the trace that is\n"
        "                             being written\n"
        "  log                        the size of the write-ahead log\n"
        "  daemon                     the daemon's process ID\n"
        "  processes, probed, threads the traced processes, those that a probe records, and the threads\n"
        "  stored, late, expired      the calls stored since the daemon started, those stored late, and\n"
        "                             those deleted again\n"
        "  refused, detached          files that are named like segments but are not, and processes no\n"
        "                             longer traced because their data was invalid\n"
        "  ignored                    files named like segments that are not of the user in their name\n"
        "  batches, clock             the batches stored, and the clock for the times of calls\n"
        "  layers, calls, sample      the selection (see set)\n"
        "  storing                    how calls are stored: a page at a time, or one by one, and why\n"
        "  checkpoints                ok, or why the log cannot be copied into the database\n"
        "  waiting                    calls in shared memory while the database cannot be written\n"
        "  gpu                        how many processes record GPU work now, and why others cannot\n"
        "  stays                      how long the daemon runs: until it is stopped, or while a run or\n"
        "                             attach uses it\n"
        "  since, state               when the current state began, and the state: ok, or the problem\n"
        "\n"
        "The system daemon shows users other than root only session, daemon and state.\n";
    struct ct_session_choice choice = { 0 };
    const int status = parse(argc, argv, &choice, about);
    if (status != CT_GO_ON)
        return status;
    const int fd = reach(&choice, "status", CT_GUESS_ONLY_ONE);
    if (fd < 0)
        return EXIT_FAILURE;
    char *text = ct_client_status(fd, CT_ANSWER_S);
    if (text)
        fputs(text, stdout);
    else
        say_silent(&choice, fd);
    free(text);
    close(fd);
    return text ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int stop(int argc, char **argv)
{
    struct ct_session_choice choice = { 0 };
    const struct ct_option options[] = {
        OPTION_SESSION(&choice), CT_OPTION_SHM_DIR(&choice), OPTION_DB(&choice, ""), { 0 }
    };
    const struct ct_usage usage = {
        .options = options,
        .about = "Stops the session's daemon, after it has stored all recorded calls. The traced processes\n"
                 "continue untraced. Returns when the daemon has ended.\n",
    };
    int first;
    const int status = ct_session_choice_parse(argc, argv, &usage, &choice, &first);
    if (status != CT_GO_ON)
        return status;
    const int fd = reach(&choice, "stop", CT_GUESS_NEAR);
    if (fd < 0)
        return EXIT_FAILURE;
    char text[CT_ANSWER_BYTES];
    const enum ct_answer answer = ct_client_ask(fd, "stop", text, 0);
    shutdown(fd, SHUT_WR); /* lets a daemon that refuses to stop close the connection */
    if (answer == CT_ANSWER_NONE)
        say_silent(&choice, fd);
    else
        ct_client_await_end(fd);
    if (answer == CT_ANSWER_REFUSED)
        ct_fail(0, "stop: %s", text);
    else if (answer == CT_ANSWER_ERROR)
        ct_fail(0,
                "stop: the daemon has stopped; calls that it could not store stay in shared memory for the "
                "next daemon: %s",
                text);
    close(fd);
    return answer == CT_ANSWER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

const struct ct_subcommand ct_subcommand_flush = { "flush", "wait until all calls made so far are stored",
                                                   flush };
const struct ct_subcommand ct_subcommand_set = { "set", "select what a running session records", set };
const struct ct_subcommand ct_subcommand_status = { "status", "show the state of the session's daemon",
                                                    print_status };
const struct ct_subcommand ct_subcommand_stop = {
    "stop", "stop the session's daemon, after it has stored all recorded calls", stop
};
