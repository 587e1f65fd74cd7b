/* Which session is meant: by its name, by the trace that its daemon writes, or by nothing at all. Sessions
 * are found by their control segments, without asking their daemons. Called by client.c, run_daemon.c,
 * doctor.c, top.c and top_sample.c. */
#ifndef CT_SESSIONS_H
#define CT_SESSIONS_H

#include "cudatrace.h"

/* Has `options` name the session whose daemon writes the trace at `path`, of this user. False, with nothing
 * changed, when there is none. */
bool ct_session_find_writer(struct ct_options *options, const char *path);
/* Has it name the session that belongs to the trace at `path` where no other one writes it: the same for
 * whichever name leads there. */
void ct_session_derive(struct ct_options *options, const char *path);
/* Whether a daemon of this user serves the session that `options` name; `trace` gets the identity of what it
 * writes. */
bool ct_session_is_served(const struct ct_options *options, uint64_t *trace);

enum ct_guess {
    CT_GUESS_NEAR,    /* default, ./trace.db */
    CT_GUESS_ONLY_ONE /* and the only one that there is */
};
/* Has it name the session that is meant: the named one; else with --db the one that writes that; else
 * default; else that of ./trace.db; else the only one, which is said. False when none of these is served. */
bool ct_session_choose(struct ct_options *options, const char *command, enum ct_guess guess);
/* Says which sessions there are, a line each, and how to name one. */
void ct_sessions_say(const struct ct_options *options);

#endif
