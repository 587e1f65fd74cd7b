/* Finds the processes whose hooks record into a session, by the segments in the session's folder. */
#ifndef CT_SESSION_WATCH_H
#define CT_SESSION_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct ct_session_watch {
    int fd; /* readable when a file has appeared in the folder; -1: none */
    const char *dir, *session;
};

/* Returns 0 or a negative errno. Both strings must stay valid. */
int ct_session_watch_begin(struct ct_session_watch *watch, const char *dir, const char *session);
/* Forgets which files have appeared, and returns whether there were any. */
bool ct_session_watch_take(const struct ct_session_watch *watch);
/* Calls `found` with the process of each segment of the session. A name may be wrong, and a process may have
 * several segments. */
void ct_session_watch_each(const struct ct_session_watch *watch, void (*found)(void *data, pid_t pid),
                           void *data);
void ct_session_watch_end(struct ct_session_watch *watch);

#endif
