/* The functions for the instances of a divided GPU (MIG). */
#include "simnvml.h"

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
    ENTER(device);
    *count = simnvml_is_divided(gpu) ? INSTANCES : 0;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **instance_device)
{
    ENTER(device);
    const unsigned number = 100 * (index + 1) + gpu;
    struct instance instance;
    *instance_device = (void *)(size_t)(number + 1);
    const int failure = simnvml_follow(__func__, number);
    return failure != SUCCESS ? failure : simnvml_instance(number, &instance) ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id)
{
    ENTER_ANY(device);
    struct instance instance;
    if (!simnvml_instance(gpu, &instance)) /* the whole GPU */
        return INVALID_ARGUMENT;
    *id = instance.gpu_instance;
    return SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id)
{
    ENTER_ANY(device);
    struct instance instance;
    if (!simnvml_instance(gpu, &instance)) /* the whole GPU */
        return INVALID_ARGUMENT;
    *id = instance.compute_instance;
    return SUCCESS;
}
