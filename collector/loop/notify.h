/* Tells a service manager of the daemon, by the datagrams of sd_notify(3) to $NOTIFY_SOCKET. Loop thread. */
#ifndef CT_NOTIFY_H
#define CT_NOTIFY_H

#include <stdbool.h>
#include <uv.h>

struct ct_notify {
    int fd;           /* -1: nobody wants to know */
    char status[256]; /* as told last */
    uv_timer_t watchdog;
};

/* Connects where the environment names a socket. `supervised` is false for a daemon that somebody else
 * started in passing, whose environment is not meant for it: it tells nobody anything. */
void ct_notify_init(struct ct_notify *notify, uv_loop_t *loop, bool supervised);
/* "READY=1", or several of such lines. Waits five seconds for a manager that does not read. */
void ct_notify_say(const struct ct_notify *notify, const char *lines);
/* One line for people; told when it is another than the one told last. */
void ct_notify_status(struct ct_notify *notify, const char *text);
/* RELOADING=1 with its time; READY=1 ends it. */
void ct_notify_reloading(const struct ct_notify *notify);
/* The loop has to come round once more to close the timer. */
void ct_notify_finish(struct ct_notify *notify);

#endif
