/* sim_alloc.c: allocating and freeing device, managed and page-locked memory, and asking how much there is. */
#include "simcuda.h"

/* Lock; allocation is among the calls that a capture can forbid. */
static CUresult lock_unsafe(CUcontext *context)
{
    CUresult result = context_lock(context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_unsafe();
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

static CUresult allocate(CUdeviceptr *address, enum region_kind kind, size_t bytes, unsigned flags)
{
    CUcontext context;
    struct region *region;
    CUresult result = lock_unsafe(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    result = region_new(&region, context, kind, bytes);
    if (result == CUDA_SUCCESS) {
        region->flags = flags;
        *address = region->base;
    }
    return driver_unlock(result);
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    ioctls_of_allocation();
    return allocate(address, REGION_DEVICE, bytes, 0);
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(address, REGION_MANAGED, bytes, flags);
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                unsigned int element)
{
    if (!pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    const size_t row = (width + 511) / 512 * 512;
    if (row < width || height > SIZE_MAX / row)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = allocate(address, REGION_DEVICE, row * height, 0);
    if (result == CUDA_SUCCESS)
        *pitch = row;
    return result;
}

/* Freeing: the address tells the context. */
static CUresult lock_to_free(void)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_unsafe();
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

/* The real driver waits for the device here, since what runs may use the memory. */
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
    region = region_based_at((uintptr_t)address); /* waiting gave the lock up */
    if (!region || (region->kind != REGION_DEVICE && region->kind != REGION_MANAGED) || region->nodes > 0)
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
        const CUresult result = lock_unsafe(&context);
        return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
    }
    const CUresult result = allocate(&address, REGION_HOST, bytes, flags | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS)
        *host = (void *)(uintptr_t)address;
    return result;
}

CUresult sim_cuMemAllocHost_v2(void **host, size_t bytes)
{
    return sim_cuMemHostAlloc(host, bytes, 0);
}

CUresult sim_cuMemAllocHost(void **host, unsigned int bytes)
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

CUresult sim_cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags)
{
    CUcontext context;
    struct region *region;
    CUresult result = lock_unsafe(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags > 15)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    result = region_adopt(&region, context, host, bytes);
    if (result == CUDA_SUCCESS)
        region->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return driver_unlock(result);
}

CUresult sim_cuMemHostRegister(void *host, size_t bytes, unsigned int flags)
{
    return sim_cuMemHostRegister_v2(host, bytes, flags);
}

CUresult sim_cuMemHostUnregister(void *host)
{
    CUcontext context;
    const CUresult result = lock_unsafe(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct region *region = region_based_at((uintptr_t)host);
    if (!region || region->kind != REGION_REGISTERED)
        return driver_unlock(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    region_free(region);
    return driver_unlock(CUDA_SUCCESS);
}

static const struct region *host_region_at(const void *host)
{
    const struct region *region = region_at((uintptr_t)host);
    return region && (region->kind == REGION_HOST || region->kind == REGION_REGISTERED) ? region : NULL;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned int flags)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || flags != 0 || !host_region_at(host))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *address = (uintptr_t)host;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuMemHostGetFlags(unsigned int *flags, void *host)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    const struct region *region = host_region_at(host);
    if (!flags || !region)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *flags = region->flags;
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
    *free_bytes = sim_settings.memory_bytes - sim_device_used[context->device];
    *total_bytes = sim_settings.memory_bytes;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    const struct region *region = region_at((uintptr_t)address);
    if (!region)
        return driver_unlock(CUDA_ERROR_NOT_FOUND);
    if (base)
        *base = region->base;
    if (bytes)
        *bytes = region->size;
    return driver_unlock(CUDA_SUCCESS);
}

/* Advice on where managed memory should be changes nothing: it is in one place for all. */
static CUresult advise(CUdeviceptr address, size_t bytes)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    const struct region *region = region_holding((uintptr_t)address, bytes);
    return driver_unlock(region && region->kind == REGION_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device)
{
    (void)advice;
    (void)device;
    return advise(address, bytes);
}

CUresult sim_cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location)
{
    (void)advice;
    (void)location;
    return advise(address, bytes);
}

CUresult sim_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    (void)device;
    (void)stream;
    return advise(address, bytes);
}

CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                   unsigned int flags, CUstream stream)
{
    (void)location;
    (void)stream;
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : advise(address, bytes);
}
