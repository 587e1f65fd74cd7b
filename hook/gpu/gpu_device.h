/* Queries the driver which GPU a device of the process is. Each process numbers its devices in the order of
 * CUDA_VISIBLE_DEVICES, so the number alone does not identify a GPU. */
#ifndef CT_GPU_DEVICE_H
#define CT_GPU_DEVICE_H

#include "payload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Describes the device with this CUDA number. Returns false if the driver does not report its PCI address or
 * UUID. Calls the driver, so only the recording's thread may call it, after the device has done work. The
 * functions need no context, and are permitted while a stream is captured. */
bool ct_gpu_device_query(uint32_t number, struct ct_device *device);

/* Waits until the GPUs have finished all work in the primary contexts that are in use, as long as `goes_on`
 * returns true. Returns false otherwise, if the driver reports an error, or if one of the given contexts is
 * not a primary context, because its handle may be invalid. Needs cuCtxRecordEvent(), which drivers have from
 * CUDA 12.5 on. No stream may be capturing, because the captures would be invalidated. */
bool ct_gpu_device_finish(void *const contexts[], size_t count, bool (*goes_on)(void));

/* Returns false if the program has not yet initialised the driver. */
bool ct_gpu_driver_is_initialised(void);

#endif
