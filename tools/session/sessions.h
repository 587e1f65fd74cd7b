/* Finds the session and the trace that a command is about: by the session's name, by the trace that its
 * daemon writes, or without any option. Sessions are found by their control segments. Called by the commands
 * that read a trace or talk to a daemon. */
#ifndef CT_SESSIONS_H
#define CT_SESSIONS_H

#include "where.h"

#include "series.h"

/* Has `where` name the session whose daemon writes the trace at `path`, of this user. False, with nothing
 * changed, when there is none. */
bool ct_session_find_writer(struct ct_where *where, const char *path);
/* Has it name the session that belongs to the trace at `path` where no other one writes it: the same for
 * whichever name leads there. */
void ct_session_derive(struct ct_where *where, const char *path);
/* Returns whether a daemon of this user serves the session that `where` names; `trace` gets the identity of
 * the trace that it writes. */
bool ct_session_is_served(const struct ct_where *where, uint64_t *trace);

enum ct_guess {
    CT_GUESS_NEAR,    /* default, ./trace.db */
    CT_GUESS_ONLY_ONE /* and the only one that there is */
};
/* Has it name the session that is meant: the named one; else with --db the one that writes that; else
 * default; else that of ./trace.db; else the only one, which is said. False when none of these is served. */
bool ct_session_choose(struct ct_where *where, const char *command, enum ct_guess guess);
/* Says which sessions there are, a line each, and how to name one. */
void ct_sessions_say(const struct ct_where *where);

/* For commands that show what runs now. Without --db, --session and ./trace.db, has `where` name the session
 * of ct_session_choose(), as if by --session. */
void ct_session_prefer_live(struct ct_where *where, const char *command);
/* Returns a connection to the daemon that writes the trace whose newest file is at `path`; -1 when none does.
 * The system's daemon names its trace to root alone; other users have to have named its session. */
int ct_session_connect_writer(const struct ct_where *where, const char *path);

/* Opens the trace that is meant read-only, as ct_trace_open() does: --db, or what the daemon of --session
 * says that it writes, or ./trace.db. */
sqlite3 *ct_meant_trace_open(const struct ct_where *where, struct ct_series *found);

#endif
