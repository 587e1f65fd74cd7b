/* Implements `cudatrace attach`, which loads the hook into running processes, and detaches it at the end. */
#include "attach_set.h"
#include "clock.h"
#include "duration.h"
#include "held_daemon.h"
#include "number.h"
#include "outcome.h"
#include "printing.h"
#include "selecting.h"
#include "subcommand.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { ARMED_MS = 1, SCAN_MS = 250, LOOK_MS = 50 };

struct attach {
    struct ct_session_choice choice;
    const char *of_daemon[CT_DAEMON_OPTIONS]; /* option values; NULL if not given */
    struct ct_selecting selecting;
    uint64_t for_ns, wait_ns; /* 0: not given */
    bool stay, all, new, verbose;
    struct ct_attach_set set;
    struct ct_printing printing;
    int daemon, signals;
    sigset_t inherited_mask;
};

/* ---- while the processes are recorded ---- */

/* Follows the attached processes until there is none left to wait for, or until the user ends the command. */
static void follow(struct attach *attach)
{
    uint64_t since_ns = 0, scanned_ns = ct_monotonic_ns();
    struct pollfd files[] = { { .fd = attach->signals, .events = POLLIN }, { .fd = attach->daemon } };
    for (;;) {
        const uint64_t now_ns = ct_monotonic_ns();
        if (attach->new &&now_ns - scanned_ns >= SCAN_MS * UINT64_C(1000000)) {
            scanned_ns = now_ns;
            ct_attach_set_scan(&attach->set, CT_ATTACH_ALL);
            ct_attach_set_arm(&attach->set);
        }
        ct_attach_set_step(&attach->set);
        const size_t armed = ct_attach_set_in(&attach->set, CT_ATTACHMENT_ARMED);
        if (since_ns == 0 && (attach->new || attach->set.recorded_count > 0))
            since_ns = now_ns;
        const bool is_over = attach->for_ns && since_ns && now_ns - since_ns >= attach->for_ns;
        if (is_over || (attach->stay && armed == 0) || (attach->set.count == 0 && !attach->new) ||
            poll(&files[0], 1, 0) > 0)
            return;
        if (poll(files, 2, armed > 0 ? ARMED_MS : LOOK_MS) > 0 && files[1].revents) {
            ct_fail(0, "attach: the daemon has exited: calls made since then are not recorded");
            attach->set.has_failed = true;
            return;
        }
    }
}

/* Implements --stay, which runs in the background and keeps the daemon alive while a process is recorded. */
static void stay_behind(struct attach *attach)
{
    struct pollfd daemon = { .fd = attach->daemon };
    sigset_t none;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    setsid();
    while (attach->set.count > 0 && poll(&daemon, 1, LOOK_MS) <= 0) {
        ct_attach_set_step(&attach->set);
    }
    ct_attach_flush("attach", attach->daemon);
    _exit(EXIT_SUCCESS);
}

/* ---- the whole run ---- */

/* Blocks the signals that end the recording, because follow() waits for them. */
static void take_signals(struct attach *attach)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &attach->inherited_mask);
    attach->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void discard_signals(const struct attach *attach)
{
    struct signalfd_siginfo seen;
    while (read(attach->signals, &seen, sizeof(seen)) > 0)
        ;
}

/* Discards signals that have arrived. A second signal kills this process, which may be waiting for the
 * daemon, or blocked writing its messages. */
static void release_signals(const struct attach *attach)
{
    discard_signals(attach);
    sigprocmask(SIG_SETMASK, &attach->inherited_mask, NULL);
}

static int record(struct attach *attach)
{
    char database[CT_ANSWER_BYTES], answer[CT_ANSWER_BYTES];
    int status;
    attach->daemon = ct_daemon_hold("attach", &attach->choice, attach->of_daemon, database, &status);
    if (attach->daemon < 0)
        return status;
    /* Until now, nothing has been changed, and a signal has ended the command, even while it read the memory
     * of a process that delays this, or waited for a daemon. */
    take_signals(attach);
    if (!ct_printing_start(&attach->printing, database, (int64_t)ct_monotonic_ns()))
        attach->set.has_failed = true;
    ct_attach_set_request(&attach->set, &attach->choice, &attach->selecting);
    ct_attach_set_arm(&attach->set);
    follow(attach);
    if (attach->stay && ct_attach_set_in(&attach->set, CT_ATTACHMENT_RECORDING) > 0) {
        if (fork() == 0)
            stay_behind(attach);
        return attach->set.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    discard_signals(attach); /* the next signal ends the waits for locks */
    ct_attach_set_leave(&attach->set);
    release_signals(attach);
    attach->set.has_failed |= !ct_attach_flush("attach", attach->daemon);
    attach->set.has_failed |= !ct_printing_finish(&attach->printing);
    ct_attach_set_tell(&attach->set, database);
    ct_client_ask(attach->daemon, "release", answer, 0);
    close(attach->daemon);
    return attach->set.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Finds the processes to attach to. The daemon is started later, and only if such processes exist. */
static bool find(struct attach *attach, char **pids)
{
    if (!ct_library_read(&attach->set.hook, "attach"))
        return false;
    for (; *pids; pids++) {
        int64_t pid = 0;
        ct_number_parse(*pids, 1, INT32_MAX, &pid);
        ct_attach_set_add(&attach->set, (pid_t)pid);
    }
    if (attach->all || attach->new)
        ct_attach_set_scan(&attach->set, attach->all ? CT_ATTACH_ALL : CT_ATTACH_NONE);
    if (attach->all && !attach->new && attach->set.count == 0)
        ct_fail(0, "attach: no process that may be attached to has loaded the driver (libcuda.so.1)");
    return attach->set.count > 0 || attach->new;
}

static int attach_to(struct attach *attach, char **pids)
{
    attach->signals = -1;
    attach->set.verbose = attach->verbose;
    /* Waits for the processes' next calls without a time limit if --all or --new is given. */
    attach->set.patience_ns = attach->wait_ns              ? attach->wait_ns
                              : attach->all || attach->new ? UINT64_MAX
                                                           : UINT64_C(10000000000);
    const int status =
        ct_printing_open(&attach->printing) && find(attach, pids) ? record(attach) : EXIT_FAILURE;
    ct_attach_set_finish(&attach->set);
    if (attach->signals >= 0)
        close(attach->signals);
    return status;
}

static int check(const struct attach *attach, char **pids)
{
    int64_t pid;
    for (char **at = pids; *at; at++) {
        if (!ct_number_parse(*at, 1, INT32_MAX, &pid))
            return ct_fail(EXIT_USAGE, "attach: invalid process ID '%s'", *at);
    }
    if (!*pids && !attach->all && !attach->new)
        return ct_fail(EXIT_USAGE,
                       "attach: specify a process ID, --all or --new (see cudatrace attach --help)");
    if (*pids && (attach->all || attach->new))
        return ct_fail(EXIT_USAGE, "attach: --all and --new exclude process IDs");
    if (attach->stay && (attach->new || attach->for_ns))
        return ct_fail(EXIT_USAGE, "attach: --stay returns at once, and therefore excludes --new and --for");
    if (attach->stay && (attach->printing.is_wanted || attach->printing.path))
        return ct_fail(EXIT_USAGE,
                       "attach: --stay returns at once, and therefore excludes --print and --output");
    if (attach->set.is_inline && !ct_made_slots_possible())
        return ct_fail(
            EXIT_FAILURE,
            "attach: --inline is not available: this build has no instruction decoder (libzydis-dev)");
    return CT_GO_ON;
}

static int attach(int argc, char **argv)
{
    struct attach attach = { .daemon = -1, .set.command = "attach", .printing.command = "attach" };
    const struct ct_option table[] = {
        { "all", NULL, "all processes that have loaded the driver and may be attached to", &attach.all },
        { "new", NULL,
          "all processes that load it from now on, until Ctrl-C; with --all, also those\n"
          "that have loaded it already",
          &attach.new },
        { "for", "DURATION", "stop after this time: 30s, 10m or 24h (default: at Ctrl-C)", &attach.for_ns,
          ct_take_duration, CT_DURATION_WRONG },
        { "stay", NULL,
          "return once recording has begun; it lasts until the process ends or is detached\n"
          "by `cudatrace detach`",
          &attach.stay },
        { "wait", "DURATION",
          "wait this long for the next CUDA call of a process (default: 10s; no limit\n"
          "with --all and --new)",
          &attach.wait_ns, ct_take_duration, CT_DURATION_WRONG },
        CT_OPTION_DB(&attach.choice,
                     "the database (default: the one that the daemon of session default writes,\n"
                     "even the system daemon; else ./trace.db)"),
        CT_OPTION_SESSION(&attach.choice,
                          "the session (default: $CUDATRACE_SESSION, else the one whose daemon writes\n"
                          "FILE, else a session for FILE)"),
        CT_OPTION_SHM_DIR(&attach.choice),
        { "ring", "SIZE", "if a daemon is started: the maximum size of a thread's ring (default: 512M)",
          &attach.of_daemon[CT_DAEMON_RING] },
        { "keep", "DURATION",
          "if a daemon is started, it deletes calls older than this: 90s, 10m, 24h\n"
          "(default: keep all)",
          &attach.of_daemon[CT_DAEMON_KEEP] },
        { "max-db", "SIZE",
          "if a daemon is started, it limits the trace on disk to this size, such as 500M\n"
          "or 20G, by deleting the oldest calls",
          &attach.of_daemon[CT_DAEMON_MAX_DB] },
        { "gpu-samples", "INTERVAL",
          "if a daemon is started: how often it samples each GPU, 100ms to 60s, or off\n"
          "(default: 1s)",
          &attach.of_daemon[CT_DAEMON_GPU_SAMPLES] },
        CT_OPTIONS_OF_RECORDING(&attach.selecting),
        CT_OPTIONS_OF_PRINTING(&attach.printing),
        { "inline", NULL,
          "if a driver's table of functions is unknown, write jumps at the beginnings of its\n"
          "functions, while all threads are stopped for a moment",
          &attach.set.is_inline },
        { "verbose", NULL, "print what was found in each process, and the time of each step",
          &attach.verbose },
        { 0 }
    };
    const struct ct_usage usage = {
        .options = table,
        .arguments = "[PID…]",
        .about =
            "Records the CUDA calls of running processes: of each PID, or of those that --all and --new\n"
            "select. One thread of a process is stopped for about a millisecond, and its next driver\n"
            "call loads the hook. At the end the hook undoes all changes, and all calls made in between\n"
            "are in the database.\n",
        .more = "If no daemon writes the database, one is started, as by `cudatrace run`.\n"
                "Exit status: 0 if all processes were recorded, 1 if not.\n"
                "\n"
                "  cudatrace attach 4711                # until Ctrl-C\n"
                "  cudatrace attach 4711 --for 30s --db slow.db\n"
                "  cudatrace attach --all --stay\n",
    };
    int first;
    int status = ct_session_choice_parse(argc, argv, &usage, &attach.choice, &first);
    if (status == CT_GO_ON)
        status = check(&attach, argv + first);
    return status == CT_GO_ON ? attach_to(&attach, argv + first) : status;
}

const struct ct_subcommand ct_subcommand_attach = { "attach", "trace running processes", attach };
