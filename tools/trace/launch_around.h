/* Which processes have launched kernels or graphs before and after a window. Launches are read only until one
 * of each process has been found. */
#ifndef CT_LAUNCH_AROUND_H
#define CT_LAUNCH_AROUND_H

#include "computed_table.h"

/* Adds the table-valued function launch_around(from_ns, to_ns, only_pid, now_ns) to the connection. It has a
 * row for each process that has launched: process_id, is_before and is_after (0 or 1), whether a launch that
 * is in the trace returned before from_ns or after to_ns. Returns an SQLite code. */
int ct_launch_around_add(sqlite3 *connection, struct ct_computed_cache *cache);

#endif
