/* The recordings of GPU work, as in the view gpu_recordings. */
#ifndef CT_GPU_RECORDINGS_H
#define CT_GPU_RECORDINGS_H

#include "gpu_sweep_state.h"

/* Extends the recording of a piece of work. Returns whether the work is its first. */
bool ct_sweep_recording(struct sweep *sweep, const struct work *work);
/* Sorts the recordings after the last work, and fills in what they have of each other. */
void ct_sweep_end_recordings(struct sweep *sweep);
/* Returns whether a recording began at this time, after all other recordings on the device had ended. */
bool ct_sweep_is_after_recording(const struct sweep *sweep, int64_t device, int64_t from_ns);

#endif
