/* sim_primary.c: each device's primary context, which lives from its first retain to its last release. */
#include "simcuda.h"

static struct {
    CUcontext context;
    unsigned retains;
    unsigned flags;
} primaries[SIM_MAX_DEVICES];

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (primaries[device].retains == 0) {
        const CUresult result =
            context_new(&primaries[device].context, device, primaries[device].flags, 3020);
        if (result != CUDA_SUCCESS)
            return driver_unlock(result);
        primaries[device].context->primary = true;
    }
    primaries[device].retains++;
    *context = primaries[device].context;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (primaries[device].retains == 1)
        context_wait(primaries[device].context); /* gives the lock up, so others may retain or release */
    if (primaries[device].retains == 0)
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    if (--primaries[device].retains == 0)
        context_end(primaries[device].context);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxRelease(CUdevice device)
{
    return sim_cuDevicePrimaryCtxRelease_v2(device);
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (primaries[device].retains > 0)
        context_wait(primaries[device].context);
    if (primaries[device].retains > 0)
        context_end(primaries[device].context);
    primaries[device].retains = 0;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxReset(CUdevice device)
{
    return sim_cuDevicePrimaryCtxReset_v2(device);
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    primaries[device].flags = flags;
    if (primaries[device].retains > 0)
        primaries[device].context->flags = flags;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return sim_cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (flags)
        *flags = primaries[device].flags;
    if (active)
        *active = primaries[device].retains > 0;
    return driver_unlock(CUDA_SUCCESS);
}
