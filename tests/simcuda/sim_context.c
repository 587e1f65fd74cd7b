/*
 * sim_context.c: contexts, each thread's stack of them, and their settings.
 */
#include "simcuda.h"

#include <string.h>

enum { STACK_DEPTH = 64 };

_Thread_local bool sim_in_callback;

static struct slab contexts = SLAB(struct CUctx_st);

/* Another thread may have destroyed a context and a new one taken its handle, hence the generation. */
static _Thread_local struct {
    CUcontext context;
    uint64_t generation;
} stack[STACK_DEPTH];
static _Thread_local unsigned depth;

static const size_t default_limits[LIMIT_COUNT] = {
    [0] = 1024,     /* CU_LIMIT_STACK_SIZE */
    [1] = 8650752,  /* CU_LIMIT_PRINTF_FIFO_SIZE */
    [2] = 8388608,  /* CU_LIMIT_MALLOC_HEAP_SIZE */
    [4] = 2048,     /* CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT */
    [5] = 64,       /* CU_LIMIT_MAX_L2_FETCH_GRANULARITY */
    [6] = 11796480, /* CU_LIMIT_PERSISTING_L2_CACHE_SIZE */
    [7] = 232448,   /* CU_LIMIT_SHMEM_SIZE */
};

uint64_t context_next_id(void)
{
    static uint64_t next;
    return ++next;
}

bool context_alive(CUcontext context)
{
    return handle_alive(&contexts, context);
}

CUresult context_current(CUcontext *current)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *current = stack[depth - 1].context;
    if ((*current)->handle.generation != stack[depth - 1].generation)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return CUDA_SUCCESS;
}

CUresult context_lock(CUcontext *current)
{
    if (sim_in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    driver_lock();
    CUresult result = context_current(current);
    if (result == CUDA_SUCCESS)
        result = (*current)->fault;
    if (result != CUDA_SUCCESS)
        driver_unlock(result);
    return result;
}

CUresult context_lock_any(CUcontext *current)
{
    if (depth > 0)
        return context_lock(current);
    if (sim_in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    *current = NULL;
    driver_lock();
    return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
    if (depth == STACK_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth].context = context;
    stack[depth++].generation = context->handle.generation;
    return CUDA_SUCCESS;
}

CUresult context_new(CUcontext *context, CUdevice device, unsigned flags, unsigned api_version)
{
    CUcontext made = handle_new(&contexts);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->device = device;
    made->flags = flags;
    made->api_version = api_version;
    made->id = context_next_id();
    made->shared_config = 1; /* CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE */
    memcpy(made->limits, default_limits, sizeof made->limits);
    const CUresult result = stream_new_legacy(made);
    if (result != CUDA_SUCCESS) {
        handle_free(&contexts, made);
        return result;
    }
    *context = made;
    return CUDA_SUCCESS;
}

void context_end(CUcontext context)
{
    event_end(context);
    stream_end(context);
    texture_end(context);
    array_end(context);
    module_end(context);
    memory_end(context);
    handle_free(&contexts, context);
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device, unsigned api_version)
{
    if (!context || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    CUresult result = context_new(context, device, flags, api_version);
    if (result == CUDA_SUCCESS)
        result = push(*context);
    return driver_unlock(result);
}

CUresult sim_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return create(context, flags, device, 3010);
}

CUresult sim_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    return create(context, flags, device, 3020);
}

CUresult sim_cuCtxCreate_v3(CUcontext *context, void *affinity, int affinity_count, unsigned int flags,
                            CUdevice device)
{
    return affinity || affinity_count ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                                      : create(context, flags, device, 3020);
}

CUresult sim_cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
{
    return params ? CUDA_ERROR_NOT_SUPPORTED : create(context, flags, device, 3020);
}

CUresult sim_cuCtxDestroy_v2(CUcontext context)
{
    driver_lock();
    if (!context)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (!context_alive(context) || context->primary)
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    const uint64_t generation = context->handle.generation;
    context_wait(context);
    if (context->handle.generation != generation) /* another thread destroyed it meanwhile */
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    if (depth > 0 && stack[depth - 1].context == context)
        depth--;
    context_end(context);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxDestroy(CUcontext context)
{
    return sim_cuCtxDestroy_v2(context);
}

CUresult sim_cuCtxAttach(CUcontext *context, unsigned int flags)
{
    if (!context || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return context_current(context);
}

CUresult sim_cuCtxDetach(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext context)
{
    driver_lock();
    if (!context)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (!context_alive(context))
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    return driver_unlock(push(context));
}

CUresult sim_cuCtxPushCurrent(CUcontext context)
{
    return sim_cuCtxPushCurrent_v2(context);
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth].context;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPopCurrent(CUcontext *context)
{
    return sim_cuCtxPopCurrent_v2(context);
}

/* NULL takes the top of the stack off, and what lay below becomes current. */
CUresult sim_cuCtxSetCurrent(CUcontext context)
{
    if (!context) {
        if (depth > 0)
            depth--;
        return CUDA_SUCCESS;
    }
    if (depth > 0 && stack[depth - 1].context == context &&
        stack[depth - 1].generation == context->handle.generation)
        return CUDA_SUCCESS;
    driver_lock();
    if (!context_alive(context))
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    if (depth > 0)
        depth--;
    return driver_unlock(push(context));
}

CUresult sim_cuCtxGetCurrent(CUcontext *context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = depth > 0 ? stack[depth - 1].context : NULL;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    CUcontext current;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = context_current(&current);
    if (result == CUDA_SUCCESS)
        *device = current->device;
    return result;
}

/* A context that the program named, or the current one for NULL. */
static CUresult named_or_current(CUcontext *context)
{
    if (!*context)
        return context_current(context);
    return context_alive(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    if (!context)
        return sim_cuCtxGetDevice(device);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    const CUresult result = named_or_current(&context);
    if (result == CUDA_SUCCESS)
        *device = context->device;
    return driver_unlock(result);
}

CUresult sim_cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    const CUresult result = named_or_current(&context);
    if (result == CUDA_SUCCESS)
        *version = context->api_version;
    return driver_unlock(result);
}

CUresult sim_cuCtxGetId(CUcontext context, unsigned long long *id)
{
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    const CUresult result = named_or_current(&context);
    if (result == CUDA_SUCCESS)
        *id = context->id;
    return driver_unlock(result);
}

CUresult sim_cuCtxSynchronize(void)
{
    CUcontext context;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_context_sync(context);
    return driver_unlock(result != CUDA_SUCCESS ? result : context_wait(context));
}

CUresult sim_cuCtxSynchronize_v2(CUcontext context)
{
    if (!context)
        return sim_cuCtxSynchronize();
    driver_lock();
    CUresult result = named_or_current(&context);
    if (result == CUDA_SUCCESS)
        result = context->fault;
    if (result == CUDA_SUCCESS)
        result = capture_forbids_context_sync(context);
    return driver_unlock(result != CUDA_SUCCESS ? result : context_wait(context));
}

CUresult sim_cuCtxGetFlags(unsigned int *flags)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!flags)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *flags = context->flags;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxSetFlags(unsigned int flags)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    context->flags = flags;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxGetLimit(size_t *value, unsigned int limit)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value || limit >= LIMIT_COUNT)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (limit == 3 || limit == 9) /* as on any device of compute capability 9 */
        return driver_unlock(CUDA_ERROR_UNSUPPORTED_LIMIT);
    *value = context->limits[limit];
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxSetLimit(unsigned int limit, size_t value)
{
    CUcontext context;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_unsafe();
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    if (limit >= LIMIT_COUNT)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (limit == 3 || limit == 9)
        return driver_unlock(CUDA_ERROR_UNSUPPORTED_LIMIT);
    context->limits[limit] = value;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxGetCacheConfig(int *config)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!config)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *config = context->cache_config;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxSetCacheConfig(int config)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (config < 0 || config > 3)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    context->cache_config = config;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxGetSharedMemConfig(int *config)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!config)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *config = context->shared_config;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxSetSharedMemConfig(int config)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (config < 0 || config > 2)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    context->shared_config = config ? config : 1;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxResetPersistingL2Cache(void)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags != 0)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (!context_alive(peer))
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    if (peer->device == context->device)
        return driver_unlock(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    if (context->peers[peer->device])
        return driver_unlock(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    context->peers[peer->device] = true;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peer)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!context_alive(peer))
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    if (!context->peers[peer->device])
        return driver_unlock(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    context->peers[peer->device] = false;
    return driver_unlock(CUDA_SUCCESS);
}
