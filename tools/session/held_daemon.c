#include "held_daemon.h"

#include "client.h"
#include "clock.h"
#include "installed.h"
#include "sessions.h"
#include "trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const daemon_option[CT_DAEMON_OPTIONS] = {
    [CT_DAEMON_RING] = "--ring",
    [CT_DAEMON_KEEP] = "--keep",
    [CT_DAEMON_MAX_DB] = "--max-db",
    [CT_DAEMON_GPU_SAMPLES] = "--gpu-samples",
};

enum { SAID_BYTES = 8192 };

/* Removes fakeroot's library from LD_PRELOAD. The library would end the daemon together with the program that
 * fakeroot runs, and would report false file owners to the daemon. */
static void leave_fakeroot(void)
{
    char kept[8192] = "";
    size_t n = 0;
    const char *before = getenv("LD_PRELOAD"), *separators = " :";
    if (!before || !strstr(before, "libfakeroot") || strlen(before) >= sizeof(kept))
        return;
    for (const char *at = before; *at; at += strcspn(at, separators)) {
        at += strspn(at, separators);
        const size_t length = strcspn(at, separators);
        const char *name = memrchr(at, '/', length);
        if (length && strncmp(name ? name + 1 : at, "libfakeroot", strlen("libfakeroot")) != 0)
            n += (size_t)snprintf(kept + n, sizeof(kept) - n, "%s%.*s", n ? ":" : "", (int)length, at);
    }
    setenv("LD_PRELOAD", kept, 1);
}

/* Executes the daemon. First resets signals that our caller ignores or blocks, because these settings are not
 * meant for the daemon. */
static void become_daemon(const char *command, char *const argv[])
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    leave_fakeroot();
    execv(argv[0], argv);
    fprintf(stderr, "cudatrace: %s: cannot start %s: %s\n", command, argv[0], strerror(errno));
    _exit(EXIT_FAILURE);
}

static void read_said(int fd, char said[SAID_BYTES])
{
    size_t n = 0;
    ssize_t got;
    while (n < SAID_BYTES - 1 &&
           ((got = read(fd, said + n, SAID_BYTES - 1 - n)) > 0 || (got < 0 && errno == EINTR)))
        n += got > 0 ? (size_t)got : 0;
    said[n] = '\0';
}

/* Starts a daemon and waits until it serves its session. Stores the daemon's messages in `said`. */
static int start_daemon(const char *command, const struct ct_session_choice *choice,
                        const char *const values[CT_DAEMON_OPTIONS], char said[SAID_BYTES])
{
    enum { COMMON = 8 };
    char path[PATH_MAX];
    int ends[2], status = 0;
    said[0] = '\0';
    if (!ct_installed_daemon(path))
        return ct_fail(EXIT_FAILURE,
                       "%s: cudatraced not found next to cudatrace; set CUDATRACE_DAEMON to its path",
                       command);
    const char *argv[COMMON + 2 * CT_DAEMON_OPTIONS + 1] = {
        path,        "--auto",        "--session", choice->session,
        "--shm-dir", choice->shm_dir, "--db",      choice->database ? choice->database : "trace.db",
    };
    for (size_t i = 0, n = COMMON; i < CT_DAEMON_OPTIONS; i++) {
        if (values[i]) {
            argv[n++] = daemon_option[i];
            argv[n++] = values[i];
        }
    }
    /* While SIGCHLD is ignored, waitpid() does not report a child's exit status. */
    struct sigaction on_child;
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &on_child);
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0)
        return ct_fail(EXIT_FAILURE, "%s: cannot fork: %s", command, strerror(errno));
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        become_daemon(command, (char *const *)(uintptr_t)argv);
    }
    close(ends[1]);
    read_said(ends[0], said); /* returns when the daemon, ready to serve, closes its standard error */
    close(ends[0]);
    pid_t ended;
    while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    sigaction(SIGCHLD, &on_child, NULL);
    return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

enum { STOPPED = -2 };

/* Returns a connection that keeps the daemon alive, or -1 if no daemon is running. Returns STOPPED after
 * reporting that the daemon is stopped. */
static int try_hold(const char *command, const struct ct_session_choice *choice,
                    char database[CT_ANSWER_BYTES])
{
    /* A user who names a database wants a private trace, which the system daemon does not write. */
    const int fd = choice->database ? ct_client_connect_own(choice) : ct_client_connect(choice);
    if (fd < 0)
        return -1;
    if (ct_client_ask(fd, "hold", database, CT_ANSWER_S) == CT_ANSWER_OK)
        return fd;
    const bool stopped = ct_client_is_stopped(fd);
    if (stopped)
        ct_fail(EXIT_FAILURE, "%s: the daemon of session '%s' %s", command, choice->session,
                ct_client_why(fd));
    close(fd); /* if it is not stopped, the daemon is about to exit */
    return stopped ? STOPPED : -1;
}

/* Chooses the first of these sessions that exists:
 * - the session that the user named with --session, or with $CUDATRACE_SESSION if --db was not given;
 * - the session "default", if it is served and --db was not given;
 * - the session whose daemon writes the database (--db, or ./trace.db);
 * - the session that $CUDATRACE_SESSION names, if no daemon serves it;
 * - a session named after the database. */
static void choose_session(struct ct_session_choice *choice)
{
    uint64_t trace;
    if (choice->session_option || (choice->session_named && !choice->database))
        return;
    if (!choice->database) {
        const int fd = ct_client_connect(choice);
        if (fd >= 0) {
            close(fd);
            return;
        }
        choice->database = "trace.db";
    }
    if (!ct_session_find_writer(choice, choice->database) &&
        (!choice->session_named || ct_session_is_served(choice, &trace)))
        ct_session_derive(choice, choice->database);
}

/* Returns whether the daemon writes the database that the user named. */
static bool writes_it(const struct ct_session_choice *choice, const char *database)
{
    uint64_t trace;
    return !*database || !choice->database || ct_series_has(choice->database, database) ||
           (ct_session_is_served(choice, &trace) && trace == ct_trace_identity(choice->database));
}

/* Retries, because two runs that start at the same time race for the session and its database. One run starts
 * the daemon, and the other one finds it, possibly a moment later. While a daemon is starting or exiting, it
 * holds the session's lock but does not answer requests. */
int ct_daemon_hold(const char *command, struct ct_session_choice *choice,
                   const char *const values[CT_DAEMON_OPTIONS], char database[CT_ANSWER_BYTES], int *status)
{
    enum { PATIENCE_S = 60, PAUSE_NS = 20000000 };
    const struct ct_session_choice wanted = *choice;
    const uint64_t until_ns = ct_monotonic_ns() + PATIENCE_S * UINT64_C(1000000000);
    char said[SAID_BYTES] = "";
    uint64_t trace;
    bool is_started = false; /* started the daemon in the last round, so connect at once, however long that
                              * took */
    for (int refusals = 0; is_started || ct_monotonic_ns() < until_ns;) {
        *choice = wanted;
        is_started = false;
        choose_session(choice);
        const int fd = try_hold(command, choice, database);
        *status = EXIT_FAILURE;
        if (fd >= 0 && !writes_it(choice, database)) {
            close(fd);
            ct_fail(EXIT_FAILURE,
                    "%s: session '%s' is served by a daemon that writes %s: omit --db or --session, or "
                    "choose another --session",
                    command, choice->session, database);
            return -1;
        }
        if (fd >= 0 || fd == STOPPED)
            return fd;
        if (!ct_session_is_served(choice, &trace)) {
            *status = start_daemon(command, choice, values, said);
            is_started = *status == EXIT_SUCCESS;
            if (is_started)
                continue;
            /* The first failure may be temporary, if another daemon is starting or exiting. */
            if (*status == EXIT_USAGE || (!ct_session_is_served(choice, &trace) &&
                                          !strstr(said, "another cudatraced") && ++refusals > 1))
                break;
        }
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    }
    /* The daemon reports each error on a single line. Replace its name in this line with the command's name.
     */
    static const char name[] = "cudatraced: ";
    const size_t named = sizeof(name) - 1;
    if (strncmp(said, name, named) == 0)
        fprintf(stderr, "cudatrace: %s: cannot start a daemon: %s", command, said + named);
    else if (*said)
        fputs(said, stderr);
    else
        ct_fail(0, "%s: the daemon of session '%s' neither serves nor exits", command, choice->session);
    return -1;
}
