/* Reads the launches of kernels and graphs of a trace, in the order of their return. */
#ifndef CT_LAUNCH_STREAM_H
#define CT_LAUNCH_STREAM_H

#include "name_numbers.h"
#include "scope.h"

#include <sqlite3.h>

/* What launches have in common: a kernel with its shape, or a graph. */
struct ct_launched {
    int64_t process_id;
    int64_t graph_exec;           /* INT64_MIN for a kernel */
    int64_t captured;             /* 1: recorded into a graph, nothing was run */
    const char *kernel, *mangled; /* NULL for a graph, or if the name is unknown */
    int64_t grid[3], block[3];
};

struct ct_launch {
    size_t what; /* place in the array of ct_launch_stream_what() */
    int64_t call_id, start_ns;
    int64_t kernels; /* of a graph: how many it launches, at least 1. 1 if unknown */
};

struct ct_launch_stream;

/* Opens the launches of the scope's processes that returned in the scope's window, or began in it. Returns
 * NULL if out of memory. Other errors end the stream. */
struct ct_launch_stream *ct_launch_stream_open(sqlite3 *connection, const struct ct_scope *scope);
void ct_launch_stream_close(struct ct_launch_stream *stream);

/* Reads the next launch. Returns false at the end or after an error. */
bool ct_launch_stream_next(struct ct_launch_stream *stream, struct ct_launch *launch);
/* Returns what has been launched so far. The array is valid until the next launch is read. */
const struct ct_launched *ct_launch_stream_what(const struct ct_launch_stream *stream, size_t *count);
/* Gives the strings of what has been launched to the caller, who calls ct_names_free(). Otherwise, they are
 * valid until the stream is closed. */
void ct_launch_stream_take_names(struct ct_launch_stream *stream, struct ct_names *names);

/* Returns SQLITE_OK, or why the stream ended. */
int ct_launch_stream_error(const struct ct_launch_stream *stream);

#endif
