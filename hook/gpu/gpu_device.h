/* Queries the driver which GPU a device of the process is. Each process numbers its devices in the order of
 * CUDA_VISIBLE_DEVICES, so the number alone does not identify a GPU. */
#ifndef CT_GPU_DEVICE_H
#define CT_GPU_DEVICE_H

#include "payload.h"

#include <stdbool.h>
#include <stdint.h>

/* Describes the device with this CUDA number. Returns false if the driver does not report its PCI address or
 * UUID. Calls the driver, so only the recording's thread may call it, after the device has done work. The
 * functions need no context, and are permitted while a stream is captured. */
bool ct_gpu_device_query(uint32_t number, struct ct_device *device);

/* Returns false if the program has not yet initialised the driver. */
bool ct_gpu_driver_is_initialised(void);

#endif
