/* The lock that ensures that a session has only one probe, since two probes would record each call twice. */
#ifndef CT_PROBE_SESSION_LOCK_H
#define CT_PROBE_SESSION_LOCK_H

#include "session_names.h"

/* A file in the session's folder. Another user cannot open it, unlike the name of an abstract socket. */
struct ct_session_lock {
    char path[CT_NAME_BYTES];
    int fd; /* -1: not held */
};

/* Takes the lock. Returns false after reporting an error. */
bool ct_session_lock_take(struct ct_session_lock *lock, const char *session);
/* Releases the lock, and removes its file. */
void ct_session_lock_give(struct ct_session_lock *lock);
/* Removes the file that a killed probe has left, unless another probe holds the lock. Called by the arrivals
 * writer (writer.h), which ends soon after its probe. */
void ct_session_lock_clear(const char *session);

#endif
