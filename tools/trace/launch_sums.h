/* Sums of the launches of a trace's processes, which several sections of the report need. The launches are
 * read once, in the order of their return. Memory grows with the number of processes, shapes and graphs, but
 * not with the number of launches. */
#ifndef CT_LAUNCH_SUMS_H
#define CT_LAUNCH_SUMS_H

#include "computed_table.h"

/* Adds table-valued functions to the connection. Their arguments (from_ns, to_ns, only_pid, now_ns) may be
 * NULL. A launch is in the window if it returned in it.
 *
 * launch_sums has a row for each shape and each graph that was launched in the window. The columns are those
 * of the views `launches` and `graph_launches`, and:
 *
 *   launches, total_ns, longest_ns   of launches in the window
 *   first_id, begun_ns, last_id      the first call_id, the earliest start_ns and the last call_id, also of
 *                                    launches that began in the window and returned after it
 *
 * The other functions leave out launches that were recorded into a graph. launch_process_sums has a row for
 * each process with launches in the window. A gap lasts from the return of a launch to the start of the
 * process's next, and is long if it takes more than a millisecond:
 *
 *   launches, begun_ns, last_id
 *   gaps, gaps_ns, longest_ns        of the long gaps; longest_ns of all gaps, NULL if there is none
 *
 * launch_gaps has the fifteen longest of these gaps that are long: process_id, from_ns, to_ns.
 *
 * launch_slices divides the time of each process, or its part in the window, into slices of a five-hundredth.
 * The time of a process that has not ended lasts until the last call, or until now_ns if that is later. For
 * each slice in which launches begin, also if they return after the window:
 *
 *   process_id, slice                the number of the slice, from 0
 *   kernels                          the number of launches, where a graph counts with its kernels
 *   begun_ns, last_begun_ns, last_id
 *                                    the first and the last start_ns, and the last call_id
 *
 * Returns an SQLite code. */
int ct_launch_sums_add(sqlite3 *connection, struct ct_computed_cache *cache);

#endif
