/* The daemon that `cudatrace run` and `attach` trace with. It is a running daemon, or a new one that exits
 * when no command uses it any more. */
#ifndef CT_HELD_DAEMON_H
#define CT_HELD_DAEMON_H

#include "client.h"

/* Options that are passed to a daemon when it is started. */
enum ct_daemon_option { CT_DAEMON_RING, CT_DAEMON_KEEP, CT_DAEMON_MAX_DB, CT_DAEMON_OPTIONS };

/* Returns a connection that keeps the daemon. `choice` names its session afterwards, and `database` gets the
 * trace that it writes. `values` has the values of options, with NULL for each option that was not given.
 * Returns -1, with *status set, after reporting an error in the name of `command`. */
int ct_daemon_hold(const char *command, struct ct_session_choice *choice,
                   const char *const values[CT_DAEMON_OPTIONS], char database[CT_ANSWER_BYTES], int *status);

#endif
