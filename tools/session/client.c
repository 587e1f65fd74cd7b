/* The daemon's command socket (collector/loop/command.h), and the commands that are no more than a question to it.
 */
#include "cudatrace.h"

#include "clock.h"
#include "proc.h"
#include "real_user.h"
#include "series.h"
#include "session_names.h"
#include "sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    LOOK_S = 1,     /* how often a silent daemon is looked at */
    CONNECT_S = 10, /* one that is stopped takes no more connections when a few wait */
    ANSWER_BYTES = 4800,
    STATUS_BYTES_MAX = 65536, /* a socket may be anybody's, and say no end of things */
};

static int connect_as(const struct ct_options *options, uint32_t uid)
{
    char path[CT_NAME_BYTES];
    ct_session_socket_path(path, options->shm_dir, uid, options->session);
    return ct_client_connect_path(path, uid);
}

int ct_client_connect_own(const struct ct_options *options)
{
    return connect_as(options, ct_session_uid());
}

int ct_client_connect(const struct ct_options *options)
{
    const int fd = ct_client_connect_own(options);
    return fd >= 0 || ct_real_euid() == 0 ? fd : connect_as(options, 0);
}

/* Who listens; false when it is not known. */
static bool peer_of(int fd, struct ucred *peer)
{
    socklen_t bytes = sizeof(*peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &bytes) == 0;
}

int ct_client_connect_path(const char *path, uint32_t uid)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, path);
    struct ucred peer;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const struct timeval look = { .tv_sec = LOOK_S }, patience = { .tv_sec = CONNECT_S };
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && peer_of(fd, &peer) &&
        ct_session_uid_of(peer.uid) == uid) /* a name like that can be anybody's */
        return fd;
    close(fd);
    return -1;
}

/* The process that listens, 0 when it is not known. */
static pid_t daemon_of(int fd)
{
    struct ucred peer;
    return peer_of(fd, &peer) ? peer.pid : 0;
}

bool ct_client_is_stopped(int fd)
{
    const pid_t daemon = daemon_of(fd);
    return daemon > 0 && ct_proc_is_stopped(daemon);
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

/* Waits until `until_ns`, 0 being as long as it takes, for a daemon that is busy, and gives up one that is
 * found stopped at two looks in a row: it may just be told to go on. */
static bool read_byte(int fd, uint64_t until_ns, char *byte)
{
    for (bool stopped = false; !until_ns || ct_monotonic_ns() < until_ns;) {
        const ssize_t n = read(fd, byte, 1);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n == 1;
        const bool is_stopped = ct_client_is_stopped(fd);
        if (stopped && is_stopped)
            return false;
        stopped = is_stopped;
    }
    return false;
}

static bool read_line(int fd, uint64_t until_ns, char *line, size_t bytes)
{
    size_t n = 0;
    char c;
    while (read_byte(fd, until_ns, &c)) {
        if (c == '\n') {
            line[n] = '\0';
            return true;
        }
        if (n + 1 < bytes)
            line[n++] = c;
    }
    return false;
}

static bool send_line(int fd, const char *line)
{
    return send(fd, line, strlen(line), MSG_NOSIGNAL) >= 0 && send(fd, "\n", 1, MSG_NOSIGNAL) >= 0;
}

enum ct_answer ct_client_ask(int fd, const char *line, char *text, size_t bytes)
{
    return ct_client_ask_within(fd, line, text, bytes, 0);
}

static uint64_t until(unsigned patience_s)
{
    return patience_s ? ct_monotonic_ns() + patience_s * UINT64_C(1000000000) : 0;
}

enum ct_answer ct_client_ask_within(int fd, const char *line, char *text, size_t bytes, unsigned patience_s)
{
    static const struct {
        const char *word;
        enum ct_answer answer;
    } words[] = { { "ok", CT_ANSWER_OK }, { "error", CT_ANSWER_ERROR }, { "refused", CT_ANSWER_REFUSED } };
    if (!send_line(fd, line) || !read_line(fd, until(patience_s), text, bytes))
        return CT_ANSWER_NONE;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t length = strlen(words[i].word);
        if (strncmp(text, words[i].word, length) != 0 || (text[length] != ' ' && text[length] != '\0'))
            continue;
        const char *rest = text + length + (text[length] == ' ');
        memmove(text, rest, strlen(rest) + 1);
        return words[i].answer;
    }
    return CT_ANSWER_OK;
}

char *ct_client_status(int fd, unsigned patience_s)
{
    const uint64_t until_ns = until(patience_s);
    char line[ANSWER_BYTES], *text = NULL;
    size_t bytes = 0;
    FILE *to = send_line(fd, "status") ? open_memstream(&text, &bytes) : NULL;
    if (!to)
        return NULL;
    bool whole = false;
    while (!whole && ftell(to) < STATUS_BYTES_MAX && read_line(fd, until_ns, line, sizeof(line))) {
        whole = line[0] == '\0';
        if (!whole)
            fprintf(to, "%s\n", line);
    }
    if (fclose(to) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

static void say_silent(const struct ct_options *options, int fd)
{
    ct_fail(EXIT_FAILURE, "the daemon of session '%s' %s", options->session, ct_client_why(fd));
}

/* With --db, the daemon must be the one that writes it. */
static bool same_database(const struct ct_options *options, int fd)
{
    char served[ANSWER_BYTES];
    if (!options->database)
        return true;
    switch (ct_client_ask(fd, "database", served, sizeof(served))) {
    case CT_ANSWER_NONE:
        say_silent(options, fd);
        return false;
    case CT_ANSWER_OK:
        if (ct_series_has(options->database, served))
            return true;
        ct_fail(EXIT_FAILURE, "session '%s' is served by a daemon that writes %s, not %s", options->session,
                served, options->database);
        return false;
    case CT_ANSWER_ERROR:
        ct_fail(EXIT_FAILURE, "the daemon of session '%s': %s", options->session, served);
        return false;
    case CT_ANSWER_REFUSED:
        ct_fail(EXIT_FAILURE,
                "session '%s' is served by the system's daemon, whose trace is root's: leave --db away",
                options->session);
        return false;
    }
    return false;
}

static void say_unserved(const struct ct_options *options, bool chosen)
{
    static const char how[] = "start one with `cudatraced --db FILE`";
    if (chosen && options->session_named)
        ct_fail(0, "no cudatraced serves session '%s': %s", options->session, how);
    else if (options->database)
        ct_fail(0, "no cudatraced writes '%s': %s", options->database, how);
    else
        ct_fail(0, "no cudatraced serves session '%s' or writes ./trace.db: %s", options->session, how);
    if (!chosen || !options->session_named)
        ct_sessions_say(options);
}

/* A connection to the daemon that is meant; -1 after reporting. */
static int reach(struct ct_options *options, const char *command, enum ct_guess guess)
{
    const bool chosen = ct_session_choose(options, command, guess);
    const int fd = chosen ? ct_client_connect(options) : -1;
    if (fd < 0) {
        say_unserved(options, chosen);
        return -1;
    }
    if (same_database(options, fd))
        return fd;
    close(fd);
    return -1;
}

int ct_client_command(struct ct_options *options, const char *command, const char *line)
{
    char text[ANSWER_BYTES];
    const int fd = reach(options, command, CT_GUESS_ONLY_ONE);
    if (fd < 0)
        return EXIT_FAILURE;
    const enum ct_answer answer = ct_client_ask(fd, line, text, sizeof(text));
    if (answer == CT_ANSWER_NONE)
        say_silent(options, fd);
    else if (answer != CT_ANSWER_OK || *text)
        ct_fail(EXIT_FAILURE, "%s: %s", command, text);
    close(fd);
    return answer == CT_ANSWER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* For the commands that take no options but those of all. False when there is nothing to do any more, with
 * *status. */
static bool parse(int argc, char **argv, const char *help, struct ct_options *options, int *status)
{
    bool done;
    const int first = ct_options_parse(argc, argv, NULL, help, options, NULL, NULL, &done, status);
    if (!done && first < argc) {
        *status = ct_fail(EXIT_USAGE, "%s: unexpected argument '%s' (see cudatrace %s --help)", argv[0],
                          argv[first], argv[0]);
        done = true;
    }
    return !done;
}

#define COMMON_OPTIONS                                                                                       \
    "  --session NAME  that session, and no other (default: $CUDATRACE_SESSION, or as --db "                 \
    "says)\n" CT_SHM_DIR_HELP                                                                                \
    "  --db FILE       the session whose daemon writes this database (default: session default;\n"           \
    "                  else the one that writes ./trace.db"

int ct_flush(int argc, char **argv)
{
    static const char help[] = "Usage: cudatrace flush [--session NAME] [--shm-dir DIR] [--db FILE]\n"
                               "\n"
                               "Returns when all calls that were recorded before are visible to SQL.\n"
                               "\n" COMMON_OPTIONS "; else the only one that there is)\n";
    struct ct_options options;
    int status;
    return parse(argc, argv, help, &options, &status) ? ct_client_command(&options, "flush", "flush")
                                                      : status;
}

int ct_stop(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace stop [--session NAME] [--shm-dir DIR] [--db FILE]\n"
        "\n"
        "Stops the session's daemon: it stores what was recorded, lets the traced processes\n"
        "go on untraced, and leaves. Returns when it has.\n"
        "\n" COMMON_OPTIONS ")\n";
    struct ct_options options;
    int status;
    if (!parse(argc, argv, help, &options, &status))
        return status;
    const int fd = reach(&options, "stop", CT_GUESS_NEAR);
    if (fd < 0)
        return EXIT_FAILURE;
    char text[ANSWER_BYTES], rest;
    const enum ct_answer answer = ct_client_ask(fd, "stop", text, sizeof(text));
    shutdown(fd, SHUT_WR); /* so that one that does not stop lets go of us */
    while (answer != CT_ANSWER_NONE && read_byte(fd, 0, &rest)) /* until the daemon is gone */
        ;
    switch (answer) {
    case CT_ANSWER_NONE:
        say_silent(&options, fd);
        break;
    case CT_ANSWER_REFUSED:
        ct_fail(EXIT_FAILURE, "stop: %s", text);
        break;
    case CT_ANSWER_ERROR:
        ct_fail(
            EXIT_FAILURE,
            "stop: it is stopped, and what it could not store stays in shared memory for the next daemon: "
            "%s",
            text);
        break;
    case CT_ANSWER_OK:
        break;
    }
    close(fd);
    return answer == CT_ANSWER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
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
        "\n" COMMON_OPTIONS "; else the only one that there is)\n";
    struct ct_options options;
    int status;
    if (!parse(argc, argv, help, &options, &status))
        return status;
    const int fd = reach(&options, "status", CT_GUESS_ONLY_ONE);
    if (fd < 0)
        return EXIT_FAILURE;
    char *text = ct_client_status(fd, 0);
    if (text)
        fputs(text, stdout);
    else
        say_silent(&options, fd);
    free(text);
    close(fd);
    return text ? EXIT_SUCCESS : EXIT_FAILURE;
}
