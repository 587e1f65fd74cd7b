/* Follows a trace's calls, from file to file, while a daemon is writing them. Produces each call once, in the
 * order of return except for late calls (late_calls.h). No transaction stays open between looks, because it
 * would keep the daemon from resetting the write-ahead log. Called by tail_print.c. */
#ifndef CT_FOLLOW_H
#define CT_FOLLOW_H

#include "call_stream.h"

enum ct_follow_start {
    CT_FOLLOW_NOW,  /* begin with the next call to be stored */
    CT_FOLLOW_FROM, /* begin with calls that returned at scope.from_ns or later */
    CT_FOLLOW_LAST  /* begin with the last `last` wanted calls */
};

struct ct_follow_plan {
    struct ct_scope scope; /* from_ns is used by CT_FOLLOW_FROM; to_ns is ignored */
    bool is_failed_only;
    int64_t least_ns; /* the minimum duration of wanted calls */
    enum ct_follow_start start;
    int64_t last;
};

struct ct_follow;

/* Starts to follow a trace. Takes ownership of the connection, on which the files of `series` are open.
 * Returns NULL after reporting an error. */
struct ct_follow *ct_follow_begin(sqlite3 *connection, const struct ct_series *series,
                                  const struct ct_follow_plan *plan);
void ct_follow_end(struct ct_follow *follow);

/* Returns whether the trace may have changed since the last look. Call it only after a look that has read all
 * rows. This check is cheaper than a look. */
bool ct_follow_has_news(struct ct_follow *follow);
/* Begins a look, which takes a snapshot of the trace and reads at most about ten thousand rows. Must be ended
 * with ct_follow_rest(). Returns false if the trace cannot be read. */
bool ct_follow_look(struct ct_follow *follow);
/* Reads the next wanted call. Returns false if the look has no more calls. */
bool ct_follow_next(struct ct_follow *follow, struct ct_stream_call *call);
/* Ends the look. Calls that were not read remain for the next look. Returns whether there is more to read
 * now. If the trace cannot be read, returns false, and ct_follow_problem() returns the reason. */
bool ct_follow_rest(struct ct_follow *follow);
/* Makes every further look search for late calls. Called before the final looks. */
void ct_follow_hurry(struct ct_follow *follow);

/* Returns the stream of the current look, from which a call's details can be read. Each file has a different
 * stream. */
struct ct_stream *ct_follow_stream(struct ct_follow *follow);
/* Returns how many times the follower has moved on to the trace's next file. */
uint32_t ct_follow_files(const struct ct_follow *follow);
/* Returns the call_id of the last row read in the newest open file, or 0 while earlier files are being read.
 * */
int64_t ct_follow_position(const struct ct_follow *follow);
/* Returns the call_id of the file's last row at the time of the last look. */
int64_t ct_follow_last(const struct ct_follow *follow);
/* Returns the offset that converts a look's times to nanoseconds since 1970. The daemon stores this offset
 * with the first call.
 * */
int64_t ct_follow_realtime_offset_ns(const struct ct_follow *follow);
/* Returns whether the daemon may have removed calls (--keep, --max-db) before they could be read. Reports
 * each removal only once. */
bool ct_follow_has_missed(struct ct_follow *follow);
/* Returns why the trace can no longer be read, or NULL if it can. */
const char *ct_follow_problem(const struct ct_follow *follow);

#endif
