/* The own times of functions, which are their times without the calls inside them. The calls of a thread
 * nest by time, whoever recorded them: the library, a probe, or both. */
#ifndef CT_OWN_TIME_H
#define CT_OWN_TIME_H

#include "computed_table.h"

/* Adds the table-valued function own_time(from_ns, to_ns, only_pid) to the connection, which has the views of
 * a trace. All arguments may be NULL. Each use reads all calls of the window. The rows have the columns
 *
 *   process_id, layer, name   the function. NULL as name: the time of the process's threads outside all
 * calls, from the beginning of a thread's first call to the end of its last, with `program` as the layer
 *   calls, total_ns, own_ns   of the function's calls that returned in the window
 *   library_ns, runtime_ns, driver_ns, ioctl_ns, kernel_ns, blocked_ns, preempted_ns
 *                             own times of the calls inside these calls, by layer
 *
 * The layers are those of the trace, except that the layer `hook` is divided into `library` (functions of
 * libraries) and `kernel` (functions of the kernel), and that the time in which a thread did not run has
 * layers of its own (`blocked`, `preempted`). Ranges of NVTX have no layer. Returns an SQLite code. */
int ct_own_time_add(sqlite3 *connection, struct ct_computed_cache *cache);

#endif
