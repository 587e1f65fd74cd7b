#include "listener.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64, ACCEPT_MAX = 64, PAUSE_MS = 100 };

struct ct_listener {
    uv_poll_t poll;
    uv_timer_t pause;
    int fd;
    int spare; /* is given up to accept and close a connection when no other descriptor is left; -1: none */
    void (*on_connection)(int fd, void *data);
    void *data;
};

static void on_readable(uv_poll_t *poll, int status, int events);

static void open_spare(struct ct_listener *listener)
{
    if (listener->spare < 0)
        listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int accept_next(const struct ct_listener *listener)
{
    return accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void note_shortage(const char *effect)
{
    ct_log(CT_LOG_connections_short,
           "%s, because the daemon has no descriptors left: raise its limits (ulimit -Hn, LimitNOFILE=)",
           effect);
}

/* Closes the next connection, so that the client need not wait. Returns false if there is no descriptor even
 * for this. */
static bool refuse_next(struct ct_listener *listener)
{
    open_spare(listener);
    if (listener->spare < 0)
        return false;
    close(listener->spare);
    listener->spare = -1;
    const int fd = accept_next(listener);
    if (fd >= 0) {
        close(fd);
        note_shortage("closed a connection");
    }
    open_spare(listener);
    return fd >= 0;
}

static void on_pause(uv_timer_t *timer)
{
    struct ct_listener *listener = timer->data;
    open_spare(listener);
    uv_poll_start(&listener->poll, UV_READABLE, on_readable);
}

/* Stops looking at the socket for a moment, because the loop would be woken again at once. */
static void pause_listening(struct ct_listener *listener)
{
    uv_poll_stop(&listener->poll);
    uv_timer_start(&listener->pause, on_pause, PAUSE_MS, 0);
    note_shortage("connections wait");
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct ct_listener *listener = poll->data;
    for (int i = 0; i < ACCEPT_MAX; i++) {
        const int fd = accept_next(listener);
        if (fd >= 0)
            listener->on_connection(fd, listener->data);
        else if (errno == EAGAIN)
            return;
        else if (errno == EINTR || errno == ECONNABORTED)
            continue;
        else if ((errno != EMFILE && errno != ENFILE) || !refuse_next(listener)) {
            pause_listening(listener);
            return;
        }
    }
}

int ct_listener_create(uv_loop_t *loop, int fd, void (*on_connection)(int fd, void *data), void *data,
                       struct ct_listener **result)
{
    struct ct_listener *listener = calloc(1, sizeof(*listener));
    int error = listener ? 0 : UV_ENOMEM;
    if (!error && listen(fd, BACKLOG) != 0)
        error = uv_translate_sys_error(errno);
    if (!error)
        error = uv_poll_init(loop, &listener->poll, fd);
    if (error) {
        close(fd);
        free(listener);
        return error;
    }
    listener->fd = fd;
    listener->spare = -1;
    listener->on_connection = on_connection;
    listener->data = data;
    open_spare(listener);
    uv_timer_init(loop, &listener->pause);
    listener->poll.data = listener->pause.data = listener;
    *result = listener;
    return uv_poll_start(&listener->poll, UV_READABLE, on_readable);
}

static void free_listener(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct ct_listener *listener = handle->data;
    uv_close((uv_handle_t *)&listener->pause, free_listener);
}

void ct_listener_destroy(struct ct_listener *listener)
{
    uv_timer_stop(&listener->pause);
    uv_close((uv_handle_t *)&listener->poll, on_poll_closed);
    close(listener->fd);
    if (listener->spare >= 0)
        close(listener->spare);
}
