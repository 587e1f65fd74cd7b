#include "notify.h"

#include "clock.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const size_t length = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || length >= sizeof(address.sun_path))
        return -1;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* the abstract namespace */
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    const struct timeval patience = { .tv_sec = 5 };
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
        connect(fd, (struct sockaddr *)&address, bytes) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool say(const struct ct_notify *notify, const char *lines, int flags)
{
    return notify->fd >= 0 && send(notify->fd, lines, strlen(lines), MSG_NOSIGNAL | flags) >= 0;
}

/* Do not block if the manager's queue is full, because the next ping is just as good. Only ct_notify_say()
 * blocks. */
static void on_watchdog(uv_timer_t *timer)
{
    say(timer->data, "WATCHDOG=1", MSG_DONTWAIT);
}

/* Returns half of the manager's timeout, as sd_watchdog_enabled(3) recommends, or 0 if the manager does not
 * supervise this process. */
static uint64_t watchdog_ms(void)
{
    const char *interval_us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!interval_us || (pid && strtol(pid, NULL, 10) != getpid()))
        return 0;
    const uint64_t us = strtoull(interval_us, NULL, 10);
    return us == 0 ? 0 : us < 2000 ? 1 : us / 2000;
}

void ct_notify_init(struct ct_notify *notify, uv_loop_t *loop, bool supervised)
{
    const char *path = supervised ? getenv("NOTIFY_SOCKET") : NULL;
    *notify = (struct ct_notify){ .fd = path ? connect_to(path) : -1 };
    uv_timer_init(loop, &notify->watchdog);
    notify->watchdog.data = notify;
    const uint64_t ms = notify->fd >= 0 ? watchdog_ms() : 0;
    if (ms)
        uv_timer_start(&notify->watchdog, on_watchdog, ms, ms);
}

void ct_notify_say(const struct ct_notify *notify, const char *lines)
{
    say(notify, lines, 0);
}

void ct_notify_status(struct ct_notify *notify, const char *text)
{
    char line[sizeof(notify->status)];
    snprintf(line, sizeof(line), "STATUS=%s", text);
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(notify->status, line) != 0 && say(notify, line, MSG_DONTWAIT))
        memcpy(notify->status, line, sizeof(line));
}

void ct_notify_reloading(const struct ct_notify *notify)
{
    char lines[80];
    snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, ct_monotonic_ns() / 1000);
    ct_notify_say(notify, lines);
}

void ct_notify_finish(struct ct_notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
    uv_close((uv_handle_t *)&notify->watchdog, NULL);
}
