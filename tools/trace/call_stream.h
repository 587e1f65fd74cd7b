/* Reads a trace's calls one after the other, in the order of their return, using bounded memory. Reads all
 * files of the trace, but may be limited to a time window or to certain processes or functions. The
 * properties that a call shares with others (its site) are looked up and cached. */
#ifndef CT_CALL_STREAM_H
#define CT_CALL_STREAM_H

#include "scope.h"
#include "series.h"

/* The kinds of sites. A thread's calls nest, and so do the ranges that it pushes. A range that a thread
 * starts may end anywhere, even in another thread. A mark has no length. */
enum ct_site_kind { CT_SITE_CALL, CT_SITE_PUSH, CT_SITE_START, CT_SITE_MARK };

/* The properties that calls share. A site's strings are valid as long as the stream, and equal strings have
 * the same address. */
struct ct_site {
    int64_t process_id, pid, tid;
    const char *layer, *name, *category, *status_name; /* status_name: NULL if the code is unknown */
    enum ct_site_kind kind;
    int32_t depth, status;
    bool has_failed;
    int64_t recorded_ns; /* when the process's last recording began; 0: unknown */
    uint32_t file;       /* the file that contains the site, 0 being the newest */
    uint64_t number;     /* sites with the same number are the same; from 1 */
};

struct ct_stream_call {
    int64_t id; /* call_id, which is also the return time */
    int64_t start_ns, bytes;
    bool has_bytes;
    struct ct_site site;
};

/* Returns whether the scope includes the process's calls to the function, regardless of their time. */
bool ct_stream_wants(const struct ct_scope *scope, int64_t pid, const char *layer, const char *name);

struct ct_stream;
/* Opens a stream for a trace of one or more files. The caller still owns the connection. The stream is a
 * snapshot of the trace, which does not change until the stream is closed. The snapshot is that of the
 * connection's transaction, or of a new one if there is none. Returns NULL after reporting an error. */
struct ct_stream *ct_stream_open(sqlite3 *connection, const struct ct_scope *scope);
void ct_stream_close(struct ct_stream *stream);

/* Reads the next call. Returns false at the end or after an error. */
bool ct_stream_next(struct ct_stream *stream, struct ct_stream_call *call);
/* Reads the next call that took longer than CT_STREAM_LONG_NS, in order of start time. When ct_stream_next()
 * produces a call that returned at T, all shorter calls that began before T - CT_STREAM_LONG_NS have already
 * been produced. */
#define CT_STREAM_LONG_NS INT64_C(100000000)
bool ct_stream_next_long(struct ct_stream *stream, struct ct_stream_call *call);

/* Returns the row with the details of a launch, graph launch, copy, range, hook or fence event, or NULL if
 * there is none. The row has the columns that schema/stream.sql selects. The row is valid until the next call
 * to this function. */
enum ct_detail {
    CT_DETAIL_NONE,
    CT_DETAIL_LAUNCH,
    CT_DETAIL_GRAPH_LAUNCH,
    CT_DETAIL_COPY,
    CT_DETAIL_RANGE,
    CT_DETAIL_HOOK, /* pairs of columns: the name and the value of a field; NULL for no field */
    /* Only for ct_stream_detail_of(): */
    CT_DETAIL_SET,
    CT_DETAIL_ADDRESSES,
    CT_DETAIL_ALLOCATION,
    CT_DETAIL_SUBJECT,
    CT_DETAIL_SHAPE, /* shape_id of a launch */
    CT_DETAILS
};
sqlite3_stmt *ct_stream_detail(struct ct_stream *stream, const struct ct_stream_call *call,
                               enum ct_detail *detail);
/* Returns the row with the call's details of the given kind, or NULL if there is none. The row is valid until
 * this function is next called for that kind. */
sqlite3_stmt *ct_stream_detail_of(struct ct_stream *stream, const struct ct_stream_call *call,
                                  enum ct_detail detail);

/* ---- a growing trace ---- */

/* Ends the current look (see ct_stream_look()) and its transaction, so that the daemon can reset the
 * write-ahead log. */
void ct_stream_rest(struct ct_stream *stream);
/* Begins a look, which is a snapshot of one file. ct_stream_next() then reads the calls in that snapshot.
 * Only calls that returned from `from_ns` to `to_ns` are read, in order of return, or in reverse order with
 * CT_LOOK_BACK. A look reads at most `rows_max` rows. */
enum ct_look { CT_LOOK_ON, CT_LOOK_BACK };
void ct_stream_look(struct ct_stream *stream, uint32_t file, enum ct_look look, int64_t from_ns,
                    int64_t to_ns, int64_t rows_max);
/* Once the last call of a look has been read, returns whether the file has no further rows. */
bool ct_stream_is_through(const struct ct_stream *stream);
/* Returns the call_id of the last row, wanted or not, that a look has read, or `from_ns` - 1 if it has read
 * none. */
int64_t ct_stream_position(const struct ct_stream *stream);
/* Finds a call in the current look's file, after all rows of the look have been read. Returns false if the
 * scope does not include the call. */
bool ct_stream_find(struct ct_stream *stream, int64_t call_id, struct ct_stream_call *call);
/* Discards all cached sites, because the daemon reuses site IDs after it has removed calls. */
void ct_stream_forget_sites(struct ct_stream *stream);
/* Prepares a query of schema/stream.sql for a file. The caller finalizes the statement. On failure, sets the
 * stream's error and returns NULL. */
sqlite3_stmt *ct_stream_ask(struct ct_stream *stream, const char *sql, uint32_t file);

/* Returns SQLITE_OK, or why the stream ended. */
int ct_stream_error(const struct ct_stream *stream);

#endif
