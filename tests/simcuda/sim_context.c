/*
 * sim_context.c: contexts, and each thread's stack of contexts.
 */
#include "sim_graph.h"

enum { STACK_DEPTH = 64 };

_Thread_local bool sim_in_callback;

static struct slab contexts = SLAB(struct CUctx_st);

/* Another thread may have destroyed a context on this stack, and a new context may have reused its handle.
 * The generation distinguishes the two contexts. */
static _Thread_local struct {
    CUcontext context;
    uint64_t generation;
} stack[STACK_DEPTH];
static _Thread_local unsigned depth;

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

CUresult context_new(CUcontext *context)
{
    CUcontext made = handle_new(&contexts);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
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
    array_end(context);
    module_end(context);
    memory_end(context);
    handle_free(&contexts, context);
}

CUresult sim_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    if (!context || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    CUresult result = context_new(context);
    if (result == CUDA_SUCCESS)
        result = push(*context);
    return driver_unlock(result);
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
    if (context->handle.generation != generation) /* another thread destroyed the context during the wait */
        return driver_unlock(CUDA_ERROR_INVALID_CONTEXT);
    if (depth > 0 && stack[depth - 1].context == context)
        depth--;
    context_end(context);
    return driver_unlock(CUDA_SUCCESS);
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

CUresult sim_cuCtxPopCurrent_v2(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth].context;
    return CUDA_SUCCESS;
}

/* If `context` is NULL, pops the top of the stack, so that the next context becomes current. */
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
        *device = 0;
    return result;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    if (!context)
        return sim_cuCtxGetDevice(device);
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    *device = 0;
    return driver_unlock(context_alive(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
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
