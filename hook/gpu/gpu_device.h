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

/* How ct_gpu_device_finish() waits. In each context, it records an event, which is reached when all earlier
 * work is finished. */
struct ct_gpu_finish {
    /* Called before and after an event is recorded. In the meantime, no stream may be capturing, because its
     * capture would be invalidated, and no context may end. `begin_event` returns false to give up. */
    bool (*begin_event)(void);
    void (*end_event)(void);
    /* Pauses. Returns false to give up. */
    bool (*goes_on)(void);
};

/* Waits until the GPUs have finished all work in the primary contexts that are in use. Returns false if it
 * gave up, if the driver reports an error, or if one of the given contexts is not a primary context, because
 * its handle may be invalid. Needs cuCtxRecordEvent(), which drivers have from CUDA 12.5 on. */
bool ct_gpu_device_finish(void *const contexts[], size_t count, const struct ct_gpu_finish *finish);

/* Returns false if the program has not yet initialised the driver. */
bool ct_gpu_driver_is_initialised(void);

#endif
