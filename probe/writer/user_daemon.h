/* Finds the daemon that stores the calls of a probed process. */
#ifndef CT_PROBE_USER_DAEMON_H
#define CT_PROBE_USER_DAEMON_H

#include "find_daemon.h"

#include <sys/types.h>

/* Finds the daemon of the process's user or, failing that, the system's daemon or the daemon of the probe's
 * user. Returns NULL if there is none. Otherwise, the caller acts with the rights of the user whose daemon
 * was found. */
struct ct_control *ct_user_daemon_find(uid_t uid, struct ct_session *session, struct ct_requested *requested);

#endif
