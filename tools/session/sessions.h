/* Finds a command's session and trace by the session's name, by the trace that a daemon writes, or without
 * any option. Sessions are found by their control segments. Called by the commands that read a trace or send
 * requests to a daemon. */
#ifndef CT_SESSIONS_H
#define CT_SESSIONS_H

#include "session_choice.h"

#include "series.h"

/* Finds this user's session whose daemon writes the trace at `path`, and stores the session in `choice`. If
 * there is no such session, returns false and leaves `choice` unchanged. */
bool ct_session_find_writer(struct ct_session_choice *choice, const char *path);
/* Sets the session in `choice` to one derived from the trace at `path`, for a trace that no daemon writes.
 * Every path of the same trace results in the same session. */
void ct_session_derive(struct ct_session_choice *choice, const char *path);
/* Returns whether this user's daemon serves the session in `choice`. Stores the identity of the daemon's
 * trace in *trace. */
bool ct_session_is_served(const struct ct_session_choice *choice, uint64_t *trace);

enum ct_guess {
    CT_GUESS_NEAR,    /* consider the default session and the session of ./trace.db */
    CT_GUESS_ONLY_ONE /* also consider the only session being served */
};
/* Chooses the session, and stores it in `choice`. If the user named a session, `choice` is unchanged. With
 * --db, chooses the session whose daemon writes that file. Without either, chooses the first of these
 * sessions that a daemon serves: this user's default session, the session of ./trace.db, and the system's
 * default session. With CT_GUESS_ONLY_ONE, falls back to the only session being served, and reports this
 * choice. Returns false if no session is found. */
bool ct_session_choose(struct ct_session_choice *choice, const char *command, enum ct_guess guess);
/* Lists the served sessions, one per line, and explains how to select one. */
void ct_sessions_say(const struct ct_session_choice *choice);

/* For commands that show current activity. If neither --db nor --session is given and ./trace.db does not
 * exist, uses the session that ct_session_choose() finds, as if --session had been given. */
void ct_session_prefer_live(struct ct_session_choice *choice, const char *command);
/* Returns a connection to the daemon that writes the trace whose newest file is at `path`, or -1 if no daemon
 * does. The system daemon reveals its trace only to root, so other users must have named its session. */
int ct_session_connect_writer(const struct ct_session_choice *choice, const char *path);
/* Returns the CLOCK_MONOTONIC time in ns if a daemon writes the trace whose newest file is at `path`, or 0 if
 * no daemon does. Reports if the daemon is stopped. */
int64_t ct_session_now(const struct ct_session_choice *choice, const char *path);

/* Opens the selected trace read-only, as ct_trace_open() does. This is the file given with --db, the trace
 * written for the session given with --session, or ./trace.db. If this is another name of a file that a
 * daemon of this user writes, opens the name under which the daemon writes it. */
sqlite3 *ct_meant_trace_open(const struct ct_session_choice *choice, struct ct_series *found);

#endif
