/* sim_device.c: the simulated device, and functions that query it. attributes.def lists its attributes. */
#include "simcuda.h"

uint64_t sim_device_used;

/* Attribute numbers begin at 1 without gaps, so each number is also its index in this table. */
static const int attributes[CU_DEVICE_ATTRIBUTE_LAST] = {
#define ATTRIBUTE(name, number, value) [number] = (value),
#include "attributes.def"
#undef ATTRIBUTE
};

int device_attribute(int attribute)
{
    return attributes[attribute];
}

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (ordinal != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    if (!value || attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attributes[attribute];
    return CUDA_SUCCESS;
}
