/* The sweep over a trace's GPU work that makes the sums of gpu_sums.h. */
#ifndef CT_GPU_SWEEP_H
#define CT_GPU_SWEEP_H

#include "gpu_sums_rows.h"

#include <sqlite3.h>

/* Returns an SQLite code. The sums must be freed in any case. */
int ct_gpu_sweep(sqlite3 *connection, const struct ct_scope *scope, struct ct_gpu_sums *sums);
void ct_gpu_sums_finish(struct ct_gpu_sums *sums);

#endif
