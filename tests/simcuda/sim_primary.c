/* sim_primary.c: the device's primary context, which exists from the first time it is retained until the last
 * time it is released. */
#include "simcuda.h"

static struct {
    CUcontext context;
    unsigned retains;
    unsigned flags;
} primary;

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (primary.retains == 0) {
        const CUresult result = context_new(&primary.context);
        if (result != CUDA_SUCCESS)
            return driver_unlock(result);
        primary.context->primary = true;
    }
    primary.retains++;
    *context = primary.context;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (primary.retains == 1)
        context_wait(primary.context); /* releases the lock while waiting, so other threads may retain or
                                        * release the context */
    if (primary.retains == 0)
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    if (--primary.retains == 0)
        context_end(primary.context);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (primary.retains > 0)
        context_wait(primary.context);
    if (primary.retains > 0)
        context_end(primary.context);
    primary.retains = 0;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    primary.flags = flags;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return sim_cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (flags)
        *flags = primary.flags;
    if (active)
        *active = primary.retains > 0;
    return driver_unlock(CUDA_SUCCESS);
}
