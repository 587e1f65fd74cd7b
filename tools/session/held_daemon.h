/* The daemon that `cudatrace run` and `attach` trace with: the one that serves what is meant, or one that is
 * started and leaves when nobody uses it any more. */
#ifndef CT_HELD_DAEMON_H
#define CT_HELD_DAEMON_H

#include "client.h"

/* The options that are passed on to a daemon when it is started. */
enum ct_daemon_option { CT_DAEMON_RING, CT_DAEMON_KEEP, CT_DAEMON_MAX_DB, CT_DAEMON_OPTIONS };

/* A connection that keeps the daemon. `where` names its session from then on; `database` gets the trace that
 * it writes. `wishes` are values, NULL for those not given. -1 after reporting in the name of `command`, with
 * *status. */
int ct_daemon_hold(const char *command, struct ct_where *where, const char *const wishes[CT_DAEMON_OPTIONS],
                   char database[CT_ANSWER_BYTES], int *status);

#endif
