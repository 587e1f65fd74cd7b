/* The daemon's command socket (collector/command.h), and the commands that are no more than a question to it.
 */
#include "cudatrace.h"

#include "series.h"
#include "session_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* How often a silent daemon is looked at. */
enum { LOOK_S = 1 };

int ct_client_connect_own(const struct ct_options *options)
{
    char path[CT_NAME_BYTES];
    ct_session_socket_path(path, options->shm_dir, ct_session_uid(), options->session);
    return ct_client_connect_path(path);
}

int ct_client_connect(const struct ct_options *options)
{
    char path[CT_NAME_BYTES];
    int fd = ct_client_connect_own(options);
    if (fd >= 0 || geteuid() == 0)
        return fd;
    ct_session_socket_path(path, options->shm_dir, 0, options->session);
    fd = ct_client_connect_path(path);
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    if (fd >= 0 && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != 0)) {
        close(fd); /* a name like that can be anybody's */
        fd = -1;
    }
    return fd;
}

int ct_client_connect_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval look = { .tv_sec = LOOK_S };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The process that listens, 0 when it is not known. */
static pid_t daemon_of(int fd)
{
    struct ucred peer = { 0 };
    socklen_t bytes = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

bool ct_client_is_stopped(int fd)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)daemon_of(fd));
    FILE *file = fopen(path, "re");
    const size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    return state && (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

const char *ct_client_why(int fd)
{
    static char why[128];
    if (!ct_client_is_stopped(fd))
        return "went away";
    snprintf(why, sizeof(why), "(process %d) is stopped: `kill -CONT %d` lets it go on", (int)daemon_of(fd),
             (int)daemon_of(fd));
    return why;
}

/* Waits as long as it takes for a daemon that is busy, and gives up one that is found stopped at two looks in
 * a row: it may just be told to go on. A caller that set another SO_RCVTIMEO waits that long and no longer.
 */
static bool read_byte(int fd, char *byte)
{
    bool stopped = false;
    for (;;) {
        const ssize_t n = read(fd, byte, 1);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n == 1;
        struct timeval patience = { 0 };
        socklen_t bytes = sizeof(patience);
        getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, &bytes);
        const bool is_stopped = ct_client_is_stopped(fd);
        if (patience.tv_sec != LOOK_S || (stopped && is_stopped))
            return false;
        stopped = is_stopped;
    }
}

bool ct_client_ask(int fd, const char *line, char *answer, size_t bytes)
{
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0 || send(fd, "\n", 1, MSG_NOSIGNAL) < 0)
        return false;
    size_t n = 0;
    char c;
    while (read_byte(fd, &c)) {
        if (c == '\n') {
            answer[n] = '\0';
            return true;
        }
        if (n + 1 < bytes)
            answer[n++] = c;
    }
    return false;
}

void ct_client_copy(int fd, FILE *to)
{
    char c, before = '\n';
    /* An empty line ends the answer, as the connection's end does. */
    while (read_byte(fd, &c) && !(c == '\n' && before == '\n')) {
        fputc(c, to);
        before = c;
    }
}

/* With --db, the daemon must be the one that writes it. */
static bool same_database(const struct ct_options *options, int fd)
{
    char answer[4200];
    if (!options->database)
        return true;
    if (!ct_client_ask(fd, "database", answer, sizeof(answer))) {
        ct_fail(EXIT_FAILURE, "the daemon of session '%s' %s", options->session, ct_client_why(fd));
        return false;
    }
    if (strncmp(answer, "error ", 6) == 0) {
        ct_fail(EXIT_FAILURE,
                "session '%s' is served by the system's daemon, whose trace is root's: leave --db away",
                options->session);
        return false;
    }
    const bool same = ct_series_has(options->database, answer);
    if (!same)
        ct_fail(EXIT_FAILURE, "session '%s' is served by a daemon that writes %s, not %s", options->session,
                answer, options->database);
    return same;
}

int ct_client_question(const struct ct_options *options, const char *line, char *answer, size_t bytes)
{
    const int fd = ct_client_connect(options);
    if (fd < 0) {
        ct_fail(EXIT_FAILURE, "no cudatraced serves session '%s': start one with `cudatraced --db FILE`",
                options->session);
        return -1;
    }
    if (same_database(options, fd)) {
        if (ct_client_ask(fd, line, answer, bytes))
            return fd;
        ct_fail(EXIT_FAILURE, "the daemon of session '%s' %s", options->session, ct_client_why(fd));
    }
    close(fd);
    return -1;
}

/* Parses, connects, asks; the answer to `line` is left to the caller. -1 after reporting, with *status.
 */
static int ask(int argc, char **argv, const char *help, const char *line, char *answer, size_t bytes,
               int *status)
{
    struct ct_options options;
    bool done;
    const int first = ct_options_parse(argc, argv, NULL, help, &options, NULL, NULL, &done, status);
    if (done)
        return -1;
    if (first < argc) {
        *status = ct_fail(EXIT_USAGE, "%s: unexpected argument '%s' (see cudatrace %s --help)", argv[0],
                          argv[first], argv[0]);
        return -1;
    }
    *status = EXIT_FAILURE;
    return ct_client_question(&options, line, answer, bytes);
}

#define COMMON_OPTIONS                                                                                       \
    "  --session NAME  which daemon (default: $CUDATRACE_SESSION, or default)\n" CT_SHM_DIR_HELP             \
    "  --db FILE       fail unless the daemon writes this database\n"

int ct_flush(int argc, char **argv)
{
    static const char help[] = "Usage: cudatrace flush [--session NAME] [--shm-dir DIR] [--db FILE]\n"
                               "\n"
                               "Returns when all calls that were recorded before are visible to SQL.\n"
                               "\n" COMMON_OPTIONS;
    char answer[4800];
    int status;
    const int fd = ask(argc, argv, help, "flush", answer, sizeof(answer), &status);
    if (fd < 0)
        return status;
    close(fd);
    if (strcmp(answer, "ok") != 0)
        return ct_fail(EXIT_FAILURE, "flush: %s", strncmp(answer, "error ", 6) == 0 ? answer + 6 : answer);
    return EXIT_SUCCESS;
}

int ct_stop(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace stop [--session NAME] [--shm-dir DIR] [--db FILE]\n"
        "\n"
        "Stops the session's daemon: it stores what was recorded, lets the traced processes\n"
        "go on untraced, and leaves. Returns when it has.\n"
        "\n" COMMON_OPTIONS;
    char answer[4800];
    int status;
    const int fd = ask(argc, argv, help, "stop", answer, sizeof(answer), &status);
    if (fd < 0)
        return status;
    shutdown(fd, SHUT_WR); /* so that one that does not stop lets go of us */
    char rest;
    while (read(fd, &rest, 1) == 1) /* until the daemon is gone */
        ;
    if (strncmp(answer, "error the system's", 18) == 0) {
        close(fd);
        return ct_fail(EXIT_FAILURE, "stop: %s", answer + 6);
    }
    close(fd);
    if (strncmp(answer, "error ", 6) == 0)
        return ct_fail(EXIT_FAILURE,
                       "stop: it is stopped, and what it could not store stays in shared memory for "
                       "the next daemon: %s",
                       answer + 6);
    return EXIT_SUCCESS;
}

int ct_status(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace status [--session NAME] [--shm-dir DIR] [--db FILE]\n"
        "\n"
        "Prints what the session's daemon does, a word and its value on each line: session,\n"
        "database, the file of it that is being written, how long its write-ahead log is, daemon\n"
        "(its pid), processes and threads that it follows now, calls stored since it started,\n"
        "late ones among them, those taken away again (expired), files with a segment's name\n"
        "that are none (refused), processes let go because of what they wrote (detached),\n"
        "batches, clock, what processes are to record (layers, calls, sample: see set),\n"
        "checkpoints (ok, or why the log cannot be copied into the database, and grows), calls\n"
        "waiting in shared memory for a database that cannot be written, since when the state\n"
        "is what it is, and the state (ok, or what is wrong). Of the system's daemon, users but\n"
        "root are told session, daemon and state.\n"
        "\n" COMMON_OPTIONS;
    char answer[4800];
    int status;
    const int fd = ask(argc, argv, help, "status", answer, sizeof(answer), &status);
    if (fd < 0)
        return status;
    puts(answer);
    ct_client_copy(fd, stdout);
    close(fd);
    return EXIT_SUCCESS;
}
