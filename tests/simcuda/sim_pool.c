/* sim_pool.c: the device's memory pool, which caches nothing, and stream-ordered allocations. */
#include "sim_graph.h"

static struct CUmemPoolHandle_st {
    char address;
} only_pool;

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = &only_pool;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    CUresult result = stream_lock(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address)
        return driver_unlock(capture_spoil(stream, CUDA_ERROR_INVALID_VALUE));
    if (bytes == 0) { /* driver 580 accepts this value */
        *address = 0;
        return driver_unlock(CUDA_SUCCESS);
    }
    struct op op = { .kind = OP_ALLOC };
    result = region_new(&op.region, stream->context, REGION_DEVICE, bytes);
    if (result != CUDA_SUCCESS)
        return driver_unlock(capture_spoil(stream, result));
    op.region->pool = &only_pool;
    result = op_submit(stream, &op);
    if (result != CUDA_SUCCESS)
        region_free(op.region);
    else
        *address = op.region->base;
    return driver_unlock(result);
}

/* The data that an exporting process passes to an importing process. */
struct export
{
    uint64_t bytes;
    uint64_t reserved[7];
};
static_assert(sizeof(struct export) == 64, "CUmemPoolPtrExportData");

CUresult sim_cuMemPoolExportPointer(struct export *export, CUdeviceptr address)
{
    driver_lock();
    const struct region *region = region_based_at((uintptr_t)address);
    if (!export || !region || !region->pool)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *export = (struct export){ .bytes = region->size };
    return driver_unlock(CUDA_SUCCESS);
}

/* Because device memory is private to the process, imported memory has the size of the exported memory, but
 * not its contents. */
CUresult sim_cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, struct export *export)
{
    CUcontext context;
    struct region *region;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || !export || export->bytes == 0 || pool != &only_pool)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    result = region_new(&region, context, REGION_DEVICE, export->bytes);
    if (result == CUDA_SUCCESS) {
        region->pool = pool;
        *address = region->base;
    }
    return driver_unlock(result);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    const CUresult result = stream_lock(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    const struct op op = { .kind = OP_FREE, .address = address };
    return driver_unlock(op_submit(stream, &op));
}
