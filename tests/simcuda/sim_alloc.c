/* sim_alloc.c: allocates and frees device and page-locked memory, and reports its size. */
#include "sim_graph.h"

CUresult context_lock_unsafe(CUcontext *context)
{
    CUresult result = context_lock(context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_unsafe();
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

static CUresult allocate(CUdeviceptr *address, enum region_kind kind, size_t bytes)
{
    CUcontext context;
    struct region *region;
    CUresult result = context_lock_unsafe(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    result = region_new(&region, context, kind, bytes);
    if (result == CUDA_SUCCESS)
        *address = region->base;
    return driver_unlock(result);
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    ioctls_of_allocation();
    return allocate(address, REGION_DEVICE, bytes);
}

/* Takes the lock for a call that frees memory. No current context is required, because the address determines
 * the context. */
static CUresult lock_to_free(void)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_unsafe();
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

/* Like the real driver, waits for the device first, because work in progress may use the memory. */
CUresult sim_cuMemFree_v2(CUdeviceptr address)
{
    if (!address)
        return CUDA_SUCCESS;
    const CUresult result = lock_to_free();
    if (result != CUDA_SUCCESS)
        return result;
    struct region *region = region_based_at((uintptr_t)address);
    if (region)
        context_wait(region->context);
    region = region_based_at((uintptr_t)address); /* look the region up again, because the lock was released
                                                   * during the wait */
    if (!region || region->kind != REGION_DEVICE || region->nodes > 0)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    region_free(region);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    CUdeviceptr address;
    if (!host || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) {
        CUcontext context;
        *host = NULL;
        const CUresult result = context_lock_unsafe(&context);
        return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
    }
    const CUresult result = allocate(&address, REGION_HOST, bytes);
    if (result == CUDA_SUCCESS)
        *host = (void *)(uintptr_t)address;
    return result;
}

CUresult sim_cuMemAllocHost_v2(void **host, size_t bytes)
{
    return sim_cuMemHostAlloc(host, bytes, 0);
}

CUresult sim_cuMemFreeHost(void *host)
{
    const CUresult result = lock_to_free();
    if (result != CUDA_SUCCESS || !host)
        return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
    struct region *region = region_based_at((uintptr_t)host);
    if (region)
        context_wait(region->context);
    region = region_based_at((uintptr_t)host);
    if (!region || region->kind != REGION_HOST)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    region_free(region);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!free_bytes || !total_bytes)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *free_bytes = SIM_MEMORY_BYTES - sim_device_used;
    *total_bytes = SIM_MEMORY_BYTES;
    return driver_unlock(CUDA_SUCCESS);
}
