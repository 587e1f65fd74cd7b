/* Sums of the calls in a window, for which the daemon keeps no totals. The calls are read once, in the order
 * of their return. Memory grows with the number of threads and functions, but not with the number of calls.
 */
#ifndef CT_CALL_SUMS_H
#define CT_CALL_SUMS_H

#include "computed_table.h"

/* Adds table-valued functions to the connection. Their arguments (from_ns, to_ns, only_pid, now_ns) may be
 * NULL. They count calls that returned in the window, of all layers.
 *
 * call_sums has a row for each thread and function: process_id, tid, layer, name, category, and:
 *
 *   calls, total_ns, min_ns, max_ns, failed, bytes
 *                       as in the view `totals`
 *   inside_ns           the part of total_ns within the window
 *
 * call_durations has the columns and the meaning of the view `durations`.
 *
 * Returns an SQLite code. */
int ct_call_sums_add(sqlite3 *connection, struct ct_computed_cache *cache);

#endif
