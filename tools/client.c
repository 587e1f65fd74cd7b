/* The daemon's command socket (collector/command.h), and the commands that are no more than a question to it.
 */
#include "cudatrace.h"

#include "session_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int ct_client_connect(const struct ct_options *options)
{
    char path[CT_NAME_BYTES];
    ct_session_socket_path(path, options->shm_dir, ct_session_uid(), options->session);
    return ct_client_connect_path(path);
}

int ct_client_connect_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool ct_client_ask(int fd, const char *line, char *answer, size_t bytes)
{
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0 || send(fd, "\n", 1, MSG_NOSIGNAL) < 0)
        return false;
    size_t n = 0;
    char c;
    while (read(fd, &c, 1) == 1) {
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
    while (read(fd, &c, 1) == 1 && !(c == '\n' && before == '\n')) {
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
    if (!ct_client_ask(fd, "database", answer, sizeof(answer)))
        return false;
    char *wanted = realpath(options->database, NULL);
    char *served = realpath(answer, NULL);
    const bool same = wanted && served && strcmp(wanted, served) == 0;
    free(wanted);
    free(served);
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
        ct_fail(EXIT_FAILURE, "the daemon of session '%s' went away", options->session);
    }
    close(fd);
    return -1;
}

/* Parses, connects, asks; the answer to `line` is left to the caller. -1 after reporting, with *status. */
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
    ct_client_copy(fd, stdout); /* until the daemon is gone */
    close(fd);
    return EXIT_SUCCESS;
}

int ct_status(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace status [--session NAME] [--shm-dir DIR] [--db FILE]\n"
        "\n"
        "Prints what the session's daemon does, a word and its value on each line: session,\n"
        "database, daemon (its pid), processes and threads that it follows now, calls stored\n"
        "since it started, late ones among them, those taken away (expired), batches, clock, what processes "
        "are to\n"
        "record (layers, calls, sample: see set), state (ok, or what is wrong).\n"
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
