/* Reads metrics of GPUs with NVML's GPM ("GPU performance monitoring"), which Hopper and newer GPUs support.
 * A metric is a mean over the time between two samples. */
#ifndef CT_NVML_GPM_H
#define CT_NVML_GPM_H

#include "nvml.h"

/* Takes a sample, and writes the values since the previous one to `value`. Writes no values for the first
 * sample, or if the previous sample is too recent. Logs metrics that fail. Returns an enum nvml_result. */
int ct_nvml_gpm_read(struct ct_nvml *nvml, struct ct_gpu *gpu, int64_t value[CT_GPU_VALUES]);
/* Returns whether ct_nvml_gpm_read() reads the PCIe traffic of the GPU. */
bool ct_nvml_gpm_has_pcie(const struct ct_gpu *gpu);

#endif
