/* sim_device.c: the simulated device, and functions that query it. attributes.def lists its attributes. */
#include "sim_settings.h"
#include "simcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The number of the GPU that is the process's only device: the first digit of CUDA_VISIBLE_DEVICES. */
static int gpu_of_device(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    return list && *list >= '0' && *list <= '9' ? *list - '0' : 0;
}

CUresult sim_cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device)
{
    if (!text || bytes < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (getenv("SIMCUDA_ADDRESS"))
        return CUDA_ERROR_NOT_SUPPORTED;
    snprintf(text, (size_t)bytes, "0000:%02x:00.0", (unsigned)(0x3b + gpu_of_device()));
    return CUDA_SUCCESS;
}

/* With SIMCUDA_MIG=N, the device is the GPU's MIG instance N. */
static CUresult get_uuid(CUuuid *uuid, CUdevice device, int instance)
{
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[0] = (uint8_t)(0xa0 + gpu_of_device());
    uuid->bytes[15] = (uint8_t)instance;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return get_uuid(uuid, device, 0);
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return get_uuid(uuid, device, (int)settings_number("SIMCUDA_MIG", 1, 7, 0));
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
