/* Follows the calls of a trace while a daemon writes it, from file to file. Returns each call once. Calls are
 * in the order of return, except late ones (late_calls.h). No transaction is open between two looks, since it
 * would keep the daemon from resetting the write-ahead log. Called by tail_print.c. */
#ifndef CT_FOLLOW_H
#define CT_FOLLOW_H

#include "call_stream.h"

enum ct_follow_start {
    CT_FOLLOW_NOW,  /* begins with the next call that is stored */
    CT_FOLLOW_FROM, /* begins with calls that returned at scope.from_ns or later */
    CT_FOLLOW_LAST  /* begins with the last `last` wanted calls */
};

struct ct_follow_plan {
    struct ct_scope scope; /* from_ns is for CT_FOLLOW_FROM; to_ns is ignored */
    bool is_failed_only;
    int64_t least_ns; /* the least duration of wanted calls */
    enum ct_follow_start start;
    int64_t last;
};

struct ct_follow;

/* Takes over the connection, which has the files of `series` open. NULL after reporting. */
struct ct_follow *ct_follow_begin(sqlite3 *connection, const struct ct_series *series,
                                  const struct ct_follow_plan *plan);
void ct_follow_end(struct ct_follow *follow);

/* Returns whether the trace may have changed since the last look. Cheaper than a look; for use after a look
 * that read everything. */
bool ct_follow_has_news(struct ct_follow *follow);
/* Begins a look at the trace as it is now, of some ten thousand rows at most. Ends with ct_follow_rest().
 * False when it cannot be read. */
bool ct_follow_look(struct ct_follow *follow);
/* Returns the next wanted call; false when the look has no more. */
bool ct_follow_next(struct ct_follow *follow, struct ct_stream_call *call);
/* Ends the look. The next one returns the calls that were not taken. Returns whether there is more to read
 * now; false, with a problem, when the trace cannot be read. */
bool ct_follow_rest(struct ct_follow *follow);
/* Makes every further look search for late calls. For the last ones. */
void ct_follow_hurry(struct ct_follow *follow);

/* Within a look, for the details of a call. Changes with the file. */
struct ct_stream *ct_follow_stream(struct ct_follow *follow);
/* Returns how often it has opened the trace's next file. */
uint32_t ct_follow_files(const struct ct_follow *follow);
/* Returns the call_id of the last row that was read in the newest open file; 0 while it reads earlier files.
 */
int64_t ct_follow_position(const struct ct_follow *follow);
/* Returns the call_id of the last row that the file of the last look had. */
int64_t ct_follow_last(const struct ct_follow *follow);
/* Returns what to add to the times of a look for times since 1970. The daemon stores it with the first call.
 */
int64_t ct_follow_realtime_offset_ns(const struct ct_follow *follow);
/* Returns, once, whether the daemon may have removed calls (--keep, --max-db) before they were read. */
bool ct_follow_has_missed(struct ct_follow *follow);
/* Returns why the trace cannot be read any more, or NULL. */
const char *ct_follow_problem(const struct ct_follow *follow);

#endif
