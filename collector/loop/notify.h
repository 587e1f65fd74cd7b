/* Notifies a service manager of the daemon's state by sending datagrams to $NOTIFY_SOCKET (see sd_notify(3)).
 * Used only on the loop thread. */
#ifndef CT_NOTIFY_H
#define CT_NOTIFY_H

#include <stdbool.h>
#include <uv.h>

struct ct_notify {
    int fd;           /* -1: no manager */
    char status[256]; /* the last status sent */
    uv_timer_t watchdog;
};

/* Connects if the environment names a socket. `supervised` is false for a background daemon, which sends
 * nothing, because the NOTIFY_SOCKET that it inherited is meant for its caller. */
void ct_notify_init(struct ct_notify *notify, uv_loop_t *loop, bool supervised);
/* Sends one or more lines such as "READY=1". Waits up to five seconds if the manager is not reading. */
void ct_notify_say(const struct ct_notify *notify, const char *lines);
/* Sends a status line for humans if it differs from the last one sent. */
void ct_notify_status(struct ct_notify *notify, const char *text);
/* Sends RELOADING=1 with the current time. A later READY=1 reports that the reload is complete. */
void ct_notify_reloading(const struct ct_notify *notify);
/* After this call, the loop must run once more to close the timer. */
void ct_notify_finish(struct ct_notify *notify);

#endif
