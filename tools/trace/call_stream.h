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
    uint32_t file; /* in which it is, 0 being the newest */
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
    CT_DETAILS
};
sqlite3_stmt *ct_stream_detail(struct ct_stream *stream, const struct ct_stream_call *call,
                               enum ct_detail *detail);

/* SQLITE_OK, or why the stream ended. */
int ct_stream_error(const struct ct_stream *stream);

#endif
