/* sim_launch.c: launching kernels. Rejects launches as driver 580 on an H200 does, with the same results. */
#include "sim_graph.h"

/* If the launched handle is a CUkernel, finds or creates the kernel's function in `context`. */
CUresult launch_prepare(struct launch *launch, CUcontext context, void *function_or_kernel, void **params,
                        void **extra)
{
    if (!function_or_kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    launch->function = function_of(function_or_kernel, context);
    if (!launch->function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    launch->function_generation = launch->function->handle.generation;
    return kernel_copy_params(&launch->function->code, launch->values, params);
}

CUresult launch_check(const struct launch *launch)
{
    const CUfunction function = function_alive(launch->function);
    if (!function || function->handle.generation != launch->function_generation)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        const unsigned max_block = (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
        const unsigned max_grid = (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
        if (launch->block[i] == 0 || launch->block[i] > max_block || launch->grid[i] == 0 ||
            launch->grid[i] > max_grid)
            return CUDA_ERROR_INVALID_VALUE;
        threads *= launch->block[i];
    }
    if (threads > (uint64_t)function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] ||
        launch->shared_bytes >
            (unsigned)function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Returns the time when the stream has room for another kernel. */
static int64_t room_at_ns(CUstream stream)
{
    return sim_settings.queue > 0 && !stream->capture
               ? stream->busy_until_ns - (sim_settings.queue - 1) * sim_settings.launch_ns
               : 0;
}

/* Takes the lock, finds the stream for the program's handle, and waits until the stream has room for another
 * kernel. */
static CUresult lock_stream_with_room(CUstream *stream)
{
    const CUstream named = *stream;
    for (;;) {
        *stream = named;
        const CUresult result = stream_lock(stream);
        if (result != CUDA_SUCCESS)
            return result;
        const int64_t at_ns = room_at_ns(*stream);
        if (at_ns <= clock_now_ns())
            return CUDA_SUCCESS;
        driver_release();
        clock_sleep_until_ns(at_ns);
    }
}

static CUresult submit(struct op *op, void *function, CUstream stream, void **params, void **extra)
{
    CUresult result = lock_stream_with_room(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = launch_prepare(&op->launch, stream->context, function, params, extra);
    return driver_unlock(result != CUDA_SUCCESS ? capture_spoil(stream, result) : op_submit(stream, op));
}

CUresult sim_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,
                            void **extra)
{
    struct op op = {
        .kind = OP_KERNEL,
        .launch = {
            .grid = { grid_x, grid_y, grid_z },
            .block = { block_x, block_y, block_z },
            .shared_bytes = shared_bytes,
        },
    };
    return submit(&op, function, stream, params, extra);
}

/* The attributes are ignored, because they control a kernel's scheduling, which the simulated device does not
 * model. */
CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    if (!config || (config->numAttrs > 0 && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                              config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
                              config->hStream, params, extra);
}
