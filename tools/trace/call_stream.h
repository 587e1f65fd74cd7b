/* Reads the calls of a trace one after the other, in the order of their return, in bounded memory. Reads all
 * files, but may be limited to a window, to some processes or to some functions. The properties that a call
 * shares with others (its site) are looked up, and cached as long as there is room. */
#ifndef CT_CALL_STREAM_H
#define CT_CALL_STREAM_H

#include "scope.h"
#include "series.h"

/* Calls of a thread nest, and so do the ranges that it pushes. A range that a thread starts may end anywhere,
 * even in another thread. A mark has no length. */
enum ct_site_kind { CT_SITE_CALL, CT_SITE_PUSH, CT_SITE_START, CT_SITE_MARK };

/* The texts of a site live as long as the stream. Equal texts have the same address. */
struct ct_site {
    int64_t process_id, pid, tid;
    const char *layer, *name, *category, *status_name; /* status_name: NULL for an unknown code */
    enum ct_site_kind kind;
    int32_t depth, status;
    bool has_failed;
    int64_t recorded_ns; /* when the last recording of its process began; 0: unknown */
    uint32_t file;       /* the file that has the site, 0 being the newest */
};

struct ct_stream_call {
    int64_t id; /* call_id, which is the return time */
    int64_t start_ns, bytes;
    bool has_bytes;
    struct ct_site site;
};

/* Returns whether the scope includes calls of that function by that process. Ignores times. */
bool ct_stream_wants(const struct ct_scope *scope, int64_t pid, const char *layer, const char *name);

struct ct_stream;
/* Opens a stream for a trace of one or more files. The caller still owns the connection. Until the stream is
 * closed, it shows the trace as it is now, even if the trace changes. Returns NULL after reporting an
 * error. */
struct ct_stream *ct_stream_open(sqlite3 *connection, const struct ct_scope *scope);
void ct_stream_close(struct ct_stream *stream);

/* Gets the next call. Returns false at the end, or after an error. */
bool ct_stream_next(struct ct_stream *stream, struct ct_stream_call *call);
/* Gets the next call that took more than CT_STREAM_LONG_NS, by its start. When ct_stream_next() returns a
 * call that returned at T, all other calls that began before T - CT_STREAM_LONG_NS have been returned. */
#define CT_STREAM_LONG_NS INT64_C(100000000)
bool ct_stream_next_long(struct ct_stream *stream, struct ct_stream_call *call);

/* Returns the row with details of a launch, a launch of a graph, a copy or a range, or NULL if there is none.
 * Its columns are those of schema/stream.sql. It is valid until the next call of this function. */
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
/* Returns the call's row of that kind, or NULL if it has none. Valid until the next call with that kind. */
sqlite3_stmt *ct_stream_detail_of(struct ct_stream *stream, const struct ct_stream_call *call,
                                  enum ct_detail detail);

/* ---- a trace that grows ---- */

/* Ends a look. Its transaction ends, too, so that the daemon can reset the write-ahead log. */
void ct_stream_rest(struct ct_stream *stream);
/* Begins a look, in which ct_stream_next() returns calls of one file as it is now. These are the calls that
 * returned from `from_ns` to `to_ns`, in the order of return or in the reverse order. A look reads `rows_max`
 * rows at most. */
enum ct_look { CT_LOOK_ON, CT_LOOK_BACK };
void ct_stream_look(struct ct_stream *stream, uint32_t file, enum ct_look look, int64_t from_ns,
                    int64_t to_ns, int64_t rows_max);
/* After the last call of a look, returns whether the file had no more rows. */
bool ct_stream_is_through(const struct ct_stream *stream);
/* Returns the call_id of the last row that a look read, wanted or not, or `from_ns` - 1 if it read none. */
int64_t ct_stream_position(const struct ct_stream *stream);
/* Finds a call in the file of a look that has no more rows. Returns false if the scope does not include the
 * call. */
bool ct_stream_find(struct ct_stream *stream, int64_t call_id, struct ct_stream_call *call);
/* Discards the cached sites. The daemon reuses their numbers after it has removed calls. */
void ct_stream_forget_sites(struct ct_stream *stream);
/* Prepares a query of schema/stream.sql for a file; the caller finalizes it. Returns NULL, with the error
 * set, if it fails. */
sqlite3_stmt *ct_stream_ask(struct ct_stream *stream, const char *sql, uint32_t file);

/* Returns SQLITE_OK, or why the stream ended. */
int ct_stream_error(const struct ct_stream *stream);

#endif
