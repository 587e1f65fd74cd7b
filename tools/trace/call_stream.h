/* The calls of a trace one after the other, by their return, in bounded memory: all files, a window, some
 * processes, some functions. What a call has in common with others (its site) is looked up, and kept for the
 * next calls as long as there is room. */
#ifndef CT_CALL_STREAM_H
#define CT_CALL_STREAM_H

#include "scope.h"
#include "series.h"

/* Calls of a thread nest, and so do the ranges that it pushes. A range that it starts may end anywhere, even
 * in another thread. A mark has no length. */
enum ct_site_kind { CT_SITE_CALL, CT_SITE_PUSH, CT_SITE_START, CT_SITE_MARK };

/* Its texts live as long as the stream, and equal ones are one. */
struct ct_site {
    int64_t process_id, pid, tid;
    const char *layer, *name, *category, *status_name; /* status_name: NULL for a code that is not known */
    enum ct_site_kind kind;
    int32_t depth, status;
    bool has_failed;
    int64_t recorded_ns; /* when the last recording of its process began; 0: unknown */
    uint32_t file;       /* in which it is, 0 being the newest */
};

struct ct_stream_call {
    int64_t id; /* call_id, which is the return time */
    int64_t start_ns, bytes;
    bool has_bytes;
    struct ct_site site;
};

/* Returns whether the scope includes calls of that function by that process. Does not look at times. */
bool ct_stream_wants(const struct ct_scope *scope, int64_t pid, const char *layer, const char *name);

struct ct_stream;
/* The connection is that of a trace, of one file or several, and stays the caller's. NULL after reporting; a
 * trace that changes is seen as it is now until the end. */
struct ct_stream *ct_stream_open(sqlite3 *connection, const struct ct_scope *scope);
void ct_stream_close(struct ct_stream *stream);

/* The next call; false at the end, or after an error. */
bool ct_stream_next(struct ct_stream *stream, struct ct_stream_call *call);
/* The next of those that took more than CT_STREAM_LONG_NS, by their start: all others that began before a
 * moment have been returned by the time that calls of CT_STREAM_LONG_NS later are. */
#define CT_STREAM_LONG_NS INT64_C(100000000)
bool ct_stream_next_long(struct ct_stream *stream, struct ct_stream_call *call);

/* The row that says more of a launch, a launch of a graph, a copy or a range; NULL where there is none. Its
 * columns are those of schema/stream.sql; it is valid until the next call of this. */
enum ct_detail {
    CT_DETAIL_NONE,
    CT_DETAIL_LAUNCH,
    CT_DETAIL_GRAPH_LAUNCH,
    CT_DETAIL_COPY,
    CT_DETAIL_RANGE,
    /* Only for ct_stream_detail_of(): */
    CT_DETAIL_SET,
    CT_DETAIL_ADDRESSES,
    CT_DETAIL_ALLOCATION,
    CT_DETAIL_SUBJECT,
    CT_DETAILS
};
sqlite3_stmt *ct_stream_detail(struct ct_stream *stream, const struct ct_stream_call *call,
                               enum ct_detail *detail);
/* Returns the call's row of that kind; NULL where it has none. Valid until the next call with that kind. */
sqlite3_stmt *ct_stream_detail_of(struct ct_stream *stream, const struct ct_stream_call *call,
                                  enum ct_detail detail);

/* ---- a trace that grows ---- */

/* Ends a look. Without its transaction, the daemon can reset the write-ahead log. */
void ct_stream_rest(struct ct_stream *stream);
/* Begins a look: ct_stream_next() returns calls of one file as the trace is now. The calls returned from
 * `from_ns` to `to_ns`, and are in the order of return or in the reverse one. A look reads `rows_max` rows at
 * most. */
enum ct_look { CT_LOOK_ON, CT_LOOK_BACK };
void ct_stream_look(struct ct_stream *stream, uint32_t file, enum ct_look look, int64_t from_ns,
                    int64_t to_ns, int64_t rows_max);
/* After the last call of a look, returns whether the file had no more rows. */
bool ct_stream_is_through(const struct ct_stream *stream);
/* Returns the call_id of the last row that a look read, wanted or not; `from_ns` - 1 if it read none. */
int64_t ct_stream_position(const struct ct_stream *stream);
/* Finds a call in the file of a look that has no more rows. False if the scope does not include it. */
bool ct_stream_find(struct ct_stream *stream, int64_t call_id, struct ct_stream_call *call);
/* Discards what is known of sites. The daemon reuses their numbers after it has removed calls. */
void ct_stream_forget_sites(struct ct_stream *stream);
/* Prepares a query of schema/stream.sql for a file; the caller finalizes it. NULL, with the error set, when
 * it fails. */
sqlite3_stmt *ct_stream_ask(struct ct_stream *stream, const char *sql, uint32_t file);

/* SQLITE_OK, or why the stream ended. */
int ct_stream_error(const struct ct_stream *stream);

#endif
