#include "client.h"

#include "clock.h"
#include "proc.h"
#include "real_user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    LOOK_US = 250000,         /* interval at which a silent daemon is checked */
    CONNECT_S = 10,           /* limit on connecting, because a stopped daemon's backlog may be full */
    STATUS_BYTES_MAX = 65536, /* limited because the process at the other end could send data without end */
};

static int connect_as(const struct ct_session_choice *choice, uint32_t uid)
{
    char path[CT_NAME_BYTES];
    ct_session_socket_path(path, choice->shm_dir, uid, choice->session);
    return ct_client_connect_path(path, uid);
}

int ct_client_connect_own(const struct ct_session_choice *choice)
{
    return connect_as(choice, ct_session_uid());
}

int ct_client_connect(const struct ct_session_choice *choice)
{
    const int fd = ct_client_connect_own(choice);
    return fd >= 0 || ct_real_euid() == 0 ? fd : connect_as(choice, 0);
}

/* Stores the process and user at the other end of the socket in *peer. Returns false if the kernel does not
 * report the peer. */
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
    /* Any user can create a socket with this name, and accept no connections. */
    struct stat status;
    struct ucred peer;
    if (ct_real_lstat(path, &status) != 0 || ct_session_uid_of(status.st_uid) != uid)
        return -1;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const struct timeval look = { .tv_usec = LOOK_US }, patience = { .tv_sec = CONNECT_S };
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && peer_of(fd, &peer) &&
        ct_session_uid_of(peer.uid) == uid)
        return fd;
    close(fd);
    return -1;
}

/* Returns the pid of the process that listens on the socket, or 0 if unknown. */
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

bool ct_client_is_silent(int fd)
{
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

const char *ct_client_why(int fd)
{
    static char why[128];
    const int daemon = (int)daemon_of(fd);
    if (ct_client_is_stopped(fd))
        snprintf(why, sizeof(why), "(process %d) is stopped; resume it with `kill -CONT %d`", daemon, daemon);
    else if (ct_client_is_silent(fd))
        snprintf(why, sizeof(why), "(process %d) does not respond; `kill %d` ends it", daemon, daemon);
    else
        snprintf(why, sizeof(why), "closed the connection");
    return why;
}

/* Reads a byte, waiting for a busy daemon until `until_ns` (0: no limit). Gives up if two checks in a row
 * find the daemon stopped. After only one such check, the daemon may be about to continue. */
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
            line[n++] = c ? c : '\n'; /* in a path (answer_path() of the daemon) */
    }
    return false;
}

void ct_client_await_end(int fd)
{
    char rest;
    while (read_byte(fd, 0, &rest))
        ;
}

static bool send_line(int fd, const char *line)
{
    return send(fd, line, strlen(line), MSG_NOSIGNAL) >= 0 && send(fd, "\n", 1, MSG_NOSIGNAL) >= 0;
}

static uint64_t until(unsigned patience_s)
{
    return patience_s ? ct_monotonic_ns() + patience_s * UINT64_C(1000000000) : 0;
}

enum ct_answer ct_client_ask(int fd, const char *line, char text[CT_ANSWER_BYTES], unsigned patience_s)
{
    static const struct {
        const char *word;
        enum ct_answer answer;
    } words[] = { { "ok", CT_ANSWER_OK }, { "error", CT_ANSWER_ERROR }, { "refused", CT_ANSWER_REFUSED } };
    /* A daemon needs time for some requests, but answers `database` at once. Send both requests first,
     * because a daemon that is stopped carries out the request when it continues. */
    const bool asks_first = patience_s == 0;
    if ((asks_first && !send_line(fd, "database")) || !send_line(fd, line) ||
        (asks_first && !read_line(fd, until(CT_ANSWER_S), text, CT_ANSWER_BYTES)) ||
        !read_line(fd, until(patience_s), text, CT_ANSWER_BYTES))
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
    char line[CT_ANSWER_BYTES], *text = NULL;
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

bool ct_client_status_word(const char *status, const char *word, char *value, size_t bytes)
{
    const size_t length = strlen(word);
    for (const char *line = status; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, word, length) == 0 && line[length] == ' ') {
            const char *from = line + length + 1;
            snprintf(value, bytes, "%.*s", (int)strcspn(from, "\n"), from);
            return true;
        }
    }
    value[0] = '\0';
    return false;
}

long long ct_client_status_number(const char *status, const char *word)
{
    char value[32];
    return ct_client_status_word(status, word, value, sizeof(value)) ? strtoll(value, NULL, 10) : -1;
}
