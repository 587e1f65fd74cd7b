/* Sums of the work of a trace's GPUs, which several sections of the report need. The work is read once, in
 * the order in which it began. Memory grows with the number of devices, processes and functions, but not with
 * the amount of work. */
#ifndef CT_GPU_SUMS_H
#define CT_GPU_SUMS_H

#include "computed_table.h"

#include <sqlite3.h>

/* Adds table-valued functions to the connection. Their arguments (from_ns, to_ns, only_pid) may be NULL. The
 * columns `device`, `process_id`, `host_state` and `host_call` are those of the views.
 *
 * gpu_busy_sums has a row for each device that did work of the process in the window:
 *
 *   from_ns, to_ns       the start of the first work and the end of the last, cut off at the window
 *   busy_ns, …           the time in which any work ran, or kernels (kernel_ns), copies (copy_ns), either of
 *                        them (both_ns), whole graphs (graph_ns), kernels or whole graphs (computing_ns)
 *   first_ns, last_ns    of all devices: from the first kernel or whole graph to the last. Without one, from
 *                        the first work to the last. If there is a window, the window
 *   early_ns, late_ns    the parts of busy_ns before first_ns and after last_ns
 *   kernels, copies, sets, graphs
 *                        the numbers of pieces of work
 *
 * gpu_idle_sums sums up the view gpu_idle_calls by device, host_state and host_call. With a pid, only gaps
 * count that end with work of that process, except before its first work on the device:
 *
 *   gaps, idle_ns        a gap that is partly in the window counts in proportion
 *   period_ns            like idle_ns, but between first_ns and last_ns of gpu_busy_sums
 *   longest_ns, from_ns, ended, begun
 *                        of the longest gap
 *
 * gpu_share_sums sums up the view gpu_busy by device and process, and ignores the pid. Its columns are
 * busy_ns, alone_ns, periods, from_ns and to_ns.
 *
 * gpu_work_sums has rows for the work of the process that is at least partly in the window, by device,
 * process_id, kind, kernel, mangled, copy_kind and graph. These columns are those of the view gpu_work, but
 * graph is only set if the kind is graph:
 *
 *   runs, duration_ns, longest_ns
 *                        the number of pieces of work, and the sum and the largest of their whole durations
 *   queued_ns, queued_runs
 *                        the sum of the known queued_ns, and their number
 *   bytes                the sum; NULL if no piece of work has bytes
 *
 * gpu_recording_times has the rows of the view gpu_recordings, and ignores all arguments. Returns an SQLite
 * code. */
int ct_gpu_sums_add(sqlite3 *connection, struct ct_computed_cache *cache);

#endif
