/* The lane for the records of the GPU's work. Only the recording's thread may call these functions. */
#ifndef CT_GPU_LANE_H
#define CT_GPU_LANE_H

#include "payload.h"

#include <stdbool.h>
#include <stdint.h>

/* The number of the current recording, which counts from 1 in each process (ct_correlation()). */
void ct_gpu_lane_begin(uint32_t recording);
/* Gives the lane back. */
void ct_gpu_lane_end(void);
/* In the child of a fork, forgets the parent's lane. */
void ct_gpu_lane_forget(void);

/* See struct ct_gpu_host. */
uint32_t ct_gpu_lane_text(const char *name);
void ct_gpu_lane_release(uint32_t string);
void ct_gpu_lane_work(const struct ct_gpu_work *work, uint64_t end, uint64_t duration, uint32_t correlation);
void ct_gpu_lane_drop(uint64_t count);

#endif
