/* Opens a trace for a command, combining all its files into one. Reports files that are not a trace. Does not
 * query a daemon. */
#ifndef CT_TRACE_OPEN_H
#define CT_TRACE_OPEN_H

#include "computed_table.h"
#include "series.h"

/* Opens the trace at `path` read-only. Returns NULL after reporting an error. Unless `found` is NULL, stores
 * the trace's files in it, for opening more connections with ct_series_open(). */
sqlite3 *ct_trace_open(const char *path, struct ct_series *found);
/* Adds the table-valued functions that queries of a trace may use (own_time.h, gpu_queue.h, gpu_sums.h,
 * launch_sums.h), or replaces them. ct_trace_open() has added them without a cache. Returns an SQLite code.
 */
int ct_trace_add_functions(sqlite3 *connection, struct ct_computed_cache *cache);

#endif
