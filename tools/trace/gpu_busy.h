/* The busy times of devices, and of processes on devices. */
#ifndef CT_GPU_BUSY_H
#define CT_GPU_BUSY_H

#include "gpu_sweep_state.h"

/* Counts a piece of work of the wanted processes in the window. */
void ct_sweep_busy(struct sweep *sweep, struct device *device, const struct work *work);
/* Counts a piece of any work for the periods in which its process keeps the device busy. */
void ct_sweep_period(struct sweep *sweep, struct device *device, const struct work *work);
/* Finish the sums after the last work. */
void ct_sweep_end_busy(struct sweep *sweep);
void ct_sweep_end_periods(struct sweep *sweep);

#endif
