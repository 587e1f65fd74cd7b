/* Finds the session and the trace for a command: by the session's name, by the trace that its daemon writes,
 * or without any option. Sessions are found by their control segments. Called by the commands that read a
 * trace or send requests to a daemon. */
#ifndef CT_SESSIONS_H
#define CT_SESSIONS_H

#include "session_choice.h"

#include "series.h"

/* Finds this user's session whose daemon writes the trace at `path`, and sets it in `choice`. Returns false,
 * with `choice` unchanged, if there is none. */
bool ct_session_find_writer(struct ct_session_choice *choice, const char *path);
/* Sets the session in `choice` to the trace's own session, for a trace that no daemon writes. All names of
 * the trace at `path` give the same session. */
void ct_session_derive(struct ct_session_choice *choice, const char *path);
/* Returns whether a daemon of this user serves the session in `choice`. `trace` gets the identity of the
 * trace that it writes. */
bool ct_session_is_served(const struct ct_session_choice *choice, uint64_t *trace);

enum ct_guess {
    CT_GUESS_NEAR,    /* the default session, or the session of ./trace.db */
    CT_GUESS_ONLY_ONE /* also the only session there is */
};
/* Sets the session in `choice`. If the user named a session, `choice` stays unchanged. With --db, the session
 * is the one whose daemon writes that file. Otherwise it is the first of these that a daemon serves: this
 * user's default session, the session of ./trace.db, the system's default session, and the only session there
 * is, which is reported. Returns false if no such session is served. */
bool ct_session_choose(struct ct_session_choice *choice, const char *command, enum ct_guess guess);
/* Lists the sessions, a line each, and explains how to name one. */
void ct_sessions_say(const struct ct_session_choice *choice);

/* For commands that show current activity. If there is no --db, no --session and no ./trace.db, sets the
 * session from ct_session_choose(), as if by --session. */
void ct_session_prefer_live(struct ct_session_choice *choice, const char *command);
/* Returns a connection to the daemon that writes the trace whose newest file is at `path`, or -1 if no daemon
 * does. The system's daemon names its trace only to root. Other users must have named its session. */
int ct_session_connect_writer(const struct ct_session_choice *choice, const char *path);

/* Opens a trace read-only, as ct_trace_open() does. The trace is the file named by --db, the trace that the
 * daemon of --session writes, or ./trace.db. */
sqlite3 *ct_meant_trace_open(const struct ct_session_choice *choice, struct ct_series *found);

#endif
