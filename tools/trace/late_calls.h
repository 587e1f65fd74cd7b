/* Finds late calls in a file that grows while it is being read. The daemon stores calls in the order of their
 * return, except for a few that reach it after later calls. A late call is stored at its place in that order,
 * which a reader may already have passed, and is listed in the late_call table. This module keeps track of
 * the late calls that the reader has already seen. Called by follow.c. */
#ifndef CT_LATE_CALLS_H
#define CT_LATE_CALLS_H

#include "call_stream.h"

struct ct_late_calls {
    int64_t *seen; /* sorted call_ids of late calls that the reader has seen or does not want */
    size_t seen_count, seen_room;
    int64_t *fresh; /* sorted call_ids of all other late calls, the first `given` of which have been
                     * returned */
    size_t fresh_count, fresh_room, given;
    uint64_t due_ns;  /* the time of the next search */
    bool is_deferred; /* the last search was skipped because it was not due */
};

/* The next two functions must be called within a look (call_stream.h). Both functions return false if SQLite
 * failed or if out of memory. */

/* Marks late calls from `from_ns` to `to_ns` as seen, after the reader has read this range in order. */
bool ct_late_calls_pass(struct ct_late_calls *late, struct ct_stream *stream, int64_t from_ns, int64_t to_ns);
/* Finds new late calls, after the reader has read all calls in order. Unless `at_once` is set, a file with
 * very many late calls is searched so rarely that searches take only a twentieth of the time. */
bool ct_late_calls_find(struct ct_late_calls *late, struct ct_stream *stream, bool at_once);

/* Returns the next new late call in *call_id. Returns false after the last one. */
bool ct_late_calls_next(struct ct_late_calls *late, int64_t *call_id);
bool ct_late_calls_are_left(const struct ct_late_calls *late);
/* Marks as seen the late calls that ct_late_calls_next() has returned. ct_late_calls_find() will find the
 * others again. Returns false if out of memory. */
bool ct_late_calls_settle(struct ct_late_calls *late);

/* Forgets late calls that returned before `before_ns`, after the daemon has removed them. */
void ct_late_calls_forget(struct ct_late_calls *late, int64_t before_ns);
/* Forgets all late calls before another file is read. */
void ct_late_calls_clear(struct ct_late_calls *late);
void ct_late_calls_finish(struct ct_late_calls *late);

#endif
