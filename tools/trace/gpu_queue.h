/* The queue of launched work of each stream. */
#ifndef CT_GPU_QUEUE_H
#define CT_GPU_QUEUE_H

#include "computed_table.h"

/* Adds the table-valued function gpu_queue_sums(from_ns, to_ns, only_pid), which sums up the view
 * launch_queue by stream. All arguments may be NULL. Each use reads the work in the
 * order of its launch. Memory grows with the number of streams and with the depth of their queues.
 *
 *   process_id, device, context, stream
 *   launched, latency_ns, longest_ns   the number of launches, and the sum and the largest of their latencies
 *   depth, deepest, empty              the sum and the largest of the depths, and how often the depth was 1
 *   launched_q1 to launched_q4, depth_q1 to depth_q4
 *                                      the same in each quarter of the time from the first launch to the last
 *
 * Returns an SQLite code. */
int ct_gpu_queue_add(sqlite3 *connection, struct ct_computed_cache *cache);

#endif
