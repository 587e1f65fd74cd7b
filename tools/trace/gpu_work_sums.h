/* Sums of work by kernel, direction or graph, for gpu_sweep.c. */
#ifndef CT_GPU_WORK_SUMS_H
#define CT_GPU_WORK_SUMS_H

#include "gpu_sweep_state.h"

/* The size of the keys in `work_found`. */
enum { CT_WORK_KEY_BYTES = 7 * sizeof(int64_t) };

/* Counts work that is in the window. */
void ct_sweep_work(struct sweep *sweep, const struct work *work);
/* Frees the strings of the rows, and the rows. */
void ct_gpu_work_finish(struct ct_gpu_sums *sums);

#endif
