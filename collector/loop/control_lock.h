/* Takes the lock on a session's control segment (proto/control.h). If the lock's holder is about to exit,
 * waits for it. A killed daemon keeps the lock until the kernel has unmapped its memory, which can take more
 * than a second. */
#ifndef CT_CONTROL_LOCK_H
#define CT_CONTROL_LOCK_H

#include "message.h"

#include <stdbool.h>
#include <stdint.h>

/* A wait for the lock, which continues if the file is replaced. */
struct ct_control_wait {
    const char *session; /* for messages */
    int starter;         /* a pipe: the wait ends when the other end is closed; -1: no pipe */
    uint64_t until_ns;   /* CLOCK_MONOTONIC */
    bool is_logged;
    int ending; /* process ID of the last daemon that was about to exit; 0: none */
};
struct ct_control_wait ct_control_wait_begin(const char *session, int starter);

enum ct_control_locking {
    CT_CONTROL_LOCKED,
    CT_CONTROL_READ, /* a process holds a read lock, which neither daemons nor tools take */
    CT_CONTROL_HELD, /* a daemon or a tool holds the lock */
};
/* Locks the control segment that is open at `fd`. Waits for at most ten seconds if the holder is a tool, or a
 * daemon that is starting, stopping or exiting. Logs a line when it begins to wait for a daemon. Returns
 * CT_CONTROL_HELD at once if a daemon serves the session. With CT_CONTROL_HELD, `message` names the holder,
 * or is empty if the pipe was closed. */
enum ct_control_locking ct_control_lock(int fd, struct ct_control_wait *wait, char message[CT_MESSAGE_BYTES]);

#endif
