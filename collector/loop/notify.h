/* Notifies a service manager of the daemon's state, with datagrams to $NOTIFY_SOCKET (see sd_notify(3)). Used
 * only on the loop thread. */
#ifndef CT_NOTIFY_H
#define CT_NOTIFY_H

#include <stdbool.h>
#include <uv.h>

struct ct_notify {
    int fd;           /* -1: no manager */
    char status[256]; /* the last status sent */
    uv_timer_t watchdog;
};

/* Connects if the environment names a socket. `supervised` is false for a daemon in the background. Its
 * caller's environment is not meant for the daemon, so it sends nothing. */
void ct_notify_init(struct ct_notify *notify, uv_loop_t *loop, bool supervised);
/* Sends one or more lines such as "READY=1". Waits up to five seconds for a manager that does not read. */
void ct_notify_say(const struct ct_notify *notify, const char *lines);
/* Sends one line for humans if it differs from the last one. */
void ct_notify_status(struct ct_notify *notify, const char *text);
/* Sends RELOADING=1 with the present time. A later READY=1 ends the reload. */
void ct_notify_reloading(const struct ct_notify *notify);
/* The loop must run once more to close the timer. */
void ct_notify_finish(struct ct_notify *notify);

#endif
