/* Finds or starts the daemon that `cudatrace run` and `attach` use. A daemon started for a command exits when
 * no command uses it any more. */
#ifndef CT_HELD_DAEMON_H
#define CT_HELD_DAEMON_H

#include "client.h"

/* Options passed to a daemon when it is started. */
enum ct_daemon_option {
    CT_DAEMON_RING,
    CT_DAEMON_KEEP,
    CT_DAEMON_MAX_DB,
    CT_DAEMON_GPU_SAMPLES,
    CT_DAEMON_OPTIONS
};

/* Returns a connection that keeps the daemon alive. Stores the daemon's session in `choice`, and the path of
 * its trace in `database`. `values` contains the options' values, with NULL for each option that was not
 * given. Sets *status and returns -1 after reporting an error on behalf of `command`. */
int ct_daemon_hold(const char *command, struct ct_session_choice *choice,
                   const char *const values[CT_DAEMON_OPTIONS], char database[CT_ANSWER_BYTES], int *status);

#endif
