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

/* Takes over the connection, which has the files of `series` open. Returns NULL after reporting an error. */
struct ct_follow *ct_follow_begin(sqlite3 *connection, const struct ct_series *series,
                                  const struct ct_follow_plan *plan);
void ct_follow_end(struct ct_follow *follow);

/* Returns whether the trace may have changed since the last look. It is cheaper than a look. For use after a
 * look that read everything. */
bool ct_follow_has_news(struct ct_follow *follow);
/* Begins a look at the trace as it is now, which reads some ten thousand rows at most. ct_follow_rest() ends
 * the look. Returns false if the trace cannot be read. */
bool ct_follow_look(struct ct_follow *follow);
/* Gets the next wanted call. Returns false if the look has no more. */
bool ct_follow_next(struct ct_follow *follow, struct ct_stream_call *call);
/* Ends the look. The next look returns the calls that were not taken. Returns whether there is more to read
 * now. If the trace cannot be read, returns false, and ct_follow_problem() has the reason. */
bool ct_follow_rest(struct ct_follow *follow);
/* Makes every further look search for late calls. Called before the last looks. */
void ct_follow_hurry(struct ct_follow *follow);

/* Returns the stream of a look, for the details of a call. It changes with the file. */
struct ct_stream *ct_follow_stream(struct ct_follow *follow);
/* Returns how many times the trace's next file has been opened. */
uint32_t ct_follow_files(const struct ct_follow *follow);
/* Returns the call_id of the last row that was read in the newest open file, or 0 while earlier files are
 * read.
 */
int64_t ct_follow_position(const struct ct_follow *follow);
/* Returns the call_id of the last row in the file, as of the last look. */
int64_t ct_follow_last(const struct ct_follow *follow);
/* Returns the offset that converts times of a look to times since 1970. The daemon stores it with the first
 * call.
 */
int64_t ct_follow_realtime_offset_ns(const struct ct_follow *follow);
/* Returns whether the daemon may have removed calls (--keep, --max-db) before they were read. Reports each
 * removal only once. */
bool ct_follow_has_missed(struct ct_follow *follow);
/* Returns why the trace cannot be read any more, or NULL. */
const char *ct_follow_problem(const struct ct_follow *follow);

#endif
