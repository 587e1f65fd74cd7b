/*
 * sim_pool.c: memory pools and stream-ordered allocation. A pool keeps nothing back: it counts what was taken
 * from it.
 */
#include "simcuda.h"

#include <string.h>

enum {
    REUSE_FOLLOW_EVENTS = 1, /* this and the next two are ints, the rest 64-bit */
    REUSE_INTERNAL = 3,
    RESERVED_NOW = 5,
    RESERVED_HIGH = 6,
    USED_NOW = 7,
    USED_HIGH = 8,
};

static struct slab pools = SLAB(struct CUmemPoolHandle_st);

/* Of each device: the pool it always has, and the one that it allocates from unless told otherwise. */
static CUmemoryPool default_pools[SIM_MAX_DEVICES], current_pools[SIM_MAX_DEVICES];

static CUresult new_pool(CUmemoryPool *pool, CUdevice device, bool is_default)
{
    CUmemoryPool made = handle_new(&pools);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->device = device;
    made->is_default = is_default;
    for (int i = REUSE_FOLLOW_EVENTS; i <= REUSE_INTERNAL; i++)
        made->attributes[i] = 1;
    *pool = made;
    return CUDA_SUCCESS;
}

static CUresult ensure_default(CUdevice device)
{
    if (default_pools[device])
        return CUDA_SUCCESS;
    const CUresult result = new_pool(&default_pools[device], device, true);
    if (result == CUDA_SUCCESS)
        current_pools[device] = default_pools[device];
    return result;
}

void pool_count(CUmemoryPool pool, int64_t change_bytes)
{
    if (!handle_alive(&pools, pool))
        return;
    for (int now = RESERVED_NOW; now <= USED_NOW; now += USED_NOW - RESERVED_NOW) {
        pool->attributes[now] += (uint64_t)change_bytes;
        if (pool->attributes[now + 1] < pool->attributes[now])
            pool->attributes[now + 1] = pool->attributes[now];
    }
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    if (!pool || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_valid(properties->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    return driver_unlock(new_pool(pool, properties->location.id, false));
}

CUresult sim_cuMemPoolDestroy(CUmemoryPool pool)
{
    driver_lock();
    if (!handle_alive(&pools, pool) || pool->is_default)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (current_pools[pool->device] == pool)
        current_pools[pool->device] = default_pools[pool->device];
    handle_free(&pools, pool);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    (void)keep_bytes;
    driver_lock();
    return driver_unlock(handle_alive(&pools, pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    driver_lock();
    if (!value || attribute < 1 || attribute >= CU_MEMPOOL_ATTR_COUNT || !handle_alive(&pools, pool))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    memcpy(value, &pool->attributes[attribute], attribute <= REUSE_INTERNAL ? sizeof(int) : sizeof(uint64_t));
    return driver_unlock(CUDA_SUCCESS);
}

/* The high-water marks can be set to zero alone, which brings them down to what is in use. */
CUresult sim_cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    uint64_t wanted = 0;
    driver_lock();
    if (!value || attribute < 1 || attribute >= CU_MEMPOOL_ATTR_COUNT || !handle_alive(&pools, pool) ||
        attribute == RESERVED_NOW || attribute == USED_NOW)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    memcpy(&wanted, value, attribute <= REUSE_INTERNAL ? sizeof(int) : sizeof(uint64_t));
    if (attribute == RESERVED_HIGH || attribute == USED_HIGH) {
        if (wanted != 0)
            return driver_unlock(CUDA_ERROR_INVALID_VALUE);
        wanted = pool->attributes[attribute - 1];
    }
    pool->attributes[attribute] = wanted;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    driver_lock();
    return driver_unlock(handle_alive(&pools, pool) && (access || count == 0) ? CUDA_SUCCESS
                                                                              : CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuMemPoolGetAccess(int *access, CUmemoryPool pool, CUmemLocation *location)
{
    driver_lock();
    if (!access || !location || !handle_alive(&pools, pool))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *access = 3; /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE: the devices share one memory */
    return driver_unlock(CUDA_SUCCESS);
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice device, CUmemoryPool *const of)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    const CUresult result = ensure_default(device);
    if (result == CUDA_SUCCESS)
        *pool = of[device];
    return driver_unlock(result);
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return get_pool(pool, device, default_pools);
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return get_pool(pool, device, current_pools);
}

CUresult sim_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (!handle_alive(&pools, pool) || pool->device != device)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    current_pools[device] = pool;
    return driver_unlock(CUDA_SUCCESS);
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_of(&stream, context);
    if (result == CUDA_SUCCESS)
        result = ensure_default(stream->context->device);
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    context = stream->context;
    if (!address || (pool && !handle_alive(&pools, pool)))
        return driver_unlock(capture_spoil(stream, CUDA_ERROR_INVALID_VALUE));
    if (bytes == 0) { /* accepted by driver 580 */
        *address = 0;
        return driver_unlock(CUDA_SUCCESS);
    }
    struct op op = { .kind = OP_ALLOC };
    result = region_new(&op.region, context, REGION_DEVICE, bytes);
    if (result != CUDA_SUCCESS)
        return driver_unlock(capture_spoil(stream, result));
    op.region->pool = pool ? pool : current_pools[context->device];
    pool_count(op.region->pool, (int64_t)((bytes + 511) / 512 * 512));
    result = op_submit(stream, &op);
    if (result != CUDA_SUCCESS)
        region_free(op.region);
    else
        *address = op.region->base;
    return driver_unlock(result);
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    return allocate(address, bytes, NULL, stream);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return pool ? allocate(address, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

/* What an exporting process tells an importing one. */
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

/* Device memory is the process's own: what is imported has the size of what was exported, and nothing of what
 * is in it. */
CUresult sim_cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, struct export *export)
{
    CUcontext context;
    struct region *region;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || !export || export->bytes == 0 || !handle_alive(&pools, pool))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    result = region_new(&region, context, REGION_DEVICE, export->bytes);
    if (result == CUDA_SUCCESS) {
        region->pool = pool;
        pool_count(pool, (int64_t)((export->bytes + 511) / 512 * 512));
        *address = region->base;
    }
    return driver_unlock(result);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_of(&stream, context);
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    const struct op op = { .kind = OP_FREE, .address = address };
    return driver_unlock(op_submit(stream, &op));
}
