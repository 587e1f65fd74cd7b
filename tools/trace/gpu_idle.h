/* The idle times of devices, divided by the state of the host. */
#ifndef CT_GPU_IDLE_H
#define CT_GPU_IDLE_H

#include "gpu_sweep_state.h"

/* Counts the gap before a piece of work. `is_first` is whether the work is the first of its recording. */
void ct_sweep_gap(struct sweep *sweep, struct device *device, const struct work *work, bool is_first);
/* Finishes the sums after the last work, and after the recordings. */
void ct_sweep_end_gaps(struct sweep *sweep);

#endif
