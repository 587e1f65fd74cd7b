/* Finds the calls that caused the GPU work of a trace. */
#ifndef CT_GPU_CALLS_H
#define CT_GPU_CALLS_H

#include <sqlite3.h>
#include <stdint.h>

/* The ID of an unknown call. */
#define CT_GPU_NO_CALL INT64_MIN

struct ct_gpu_calls;

/* Returns NULL if out of memory. Needs 2 MB, however many calls the trace has. */
struct ct_gpu_calls *ct_gpu_calls_open(sqlite3 *connection);
void ct_gpu_calls_close(struct ct_gpu_calls *calls);

/* Returns the column `call_id` of the view gpu_work for work in file `file` (ct_series_schema()), or
 * CT_GPU_NO_CALL. Is fast if most correlations are close to those of recent searches, in any order. */
int64_t ct_gpu_calls_find(struct ct_gpu_calls *calls, uint32_t file, int64_t process_id, int64_t correlation);

/* Returns SQLITE_OK, or the first error. */
int ct_gpu_calls_error(const struct ct_gpu_calls *calls);

#endif
