/* sim_launch.c: launching kernels. What is refused, and with which result, is what driver 580 refused on an H200.
 */
#include "simcuda.h"

#include <string.h>

/* context: where the function of a CUkernel is, or is made. */
CUresult launch_prepare(struct launch *launch, CUcontext context, void *function_or_kernel, void **params,
                        void **extra)
{
    if (!function_or_kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    launch->kernel = kernel_of(function_or_kernel);
    launch->function = function_of(function_or_kernel, context);
    if (!launch->function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    launch->function_generation = launch->function->handle.generation;
    return kernel_copy_params(&launch->function->code, launch->values, params, extra);
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
    const uint64_t resident =
        (uint64_t)device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
        ((uint64_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / threads);
    if (launch->cooperative && (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] > resident)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

/* When the stream has room for another kernel. */
static int64_t room_at_ns(CUstream stream)
{
    return sim_settings.queue > 0 && !stream->capture
               ? stream->busy_until_ns - (sim_settings.queue - 1) * sim_settings.launch_ns
               : 0;
}

/* Locks, and finds the stream that the program means, with room for another kernel. */
static CUresult lock_stream_with_room(CUstream *stream)
{
    const CUstream named = *stream;
    for (;;) {
        CUcontext context;
        CUresult result = context_lock_any(&context);
        if (result != CUDA_SUCCESS)
            return result;
        *stream = named;
        result = stream_of(stream, context);
        if (result != CUDA_SUCCESS)
            return driver_unlock(result);
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

CUresult sim_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                       void **params)
{
    struct op op = {
        .kind = OP_KERNEL,
        .launch = {
            .grid = { grid_x, grid_y, grid_z },
            .block = { block_x, block_y, block_z },
            .shared_bytes = shared_bytes,
            .cooperative = true,
        },
    };
    return submit(&op, function, stream, params, NULL);
}

/* Attributes say how a kernel is scheduled, which the simulated device does not do. */
CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    if (!config || (config->numAttrs > 0 && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                              config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
                              config->hStream, params, extra);
}

/* ---- Before CUDA 4: a function keeps its block shape and a buffer of parameters, and a launch takes them.
 */

static CUresult lock_function(CUfunction function)
{
    CUcontext context;
    const CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    return function_alive(function) ? CUDA_SUCCESS : driver_unlock(CUDA_ERROR_INVALID_HANDLE);
}

CUresult sim_cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    const CUresult result = lock_function(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (x <= 0 || y <= 0 || z <= 0)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    function->block[0] = (unsigned)x;
    function->block[1] = (unsigned)y;
    function->block[2] = (unsigned)z;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuFuncSetSharedSize(CUfunction function, unsigned int bytes)
{
    const CUresult result = lock_function(function);
    if (result != CUDA_SUCCESS)
        return result;
    function->shared_bytes = bytes;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuParamSetSize(CUfunction function, unsigned int bytes)
{
    const CUresult result = lock_function(function);
    if (result != CUDA_SUCCESS)
        return result;
    function->param_bytes = bytes;
    return driver_unlock(bytes <= sizeof function->param_buffer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuParamSetv(CUfunction function, int offset, void *value, unsigned int bytes)
{
    const CUresult result = lock_function(function);
    if (result != CUDA_SUCCESS)
        return result;
    const size_t room = sizeof function->param_buffer;
    if (!value || offset < 0 || (size_t)offset > room || bytes > room - (size_t)offset)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    memcpy(function->param_buffer + offset, value, bytes);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuParamSeti(CUfunction function, int offset, unsigned int value)
{
    return sim_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult sim_cuParamSetf(CUfunction function, int offset, float value)
{
    return sim_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult sim_cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    const CUresult result = lock_function(function);
    if (result != CUDA_SUCCESS)
        return result;
    size_t bytes = function->param_bytes;
    unsigned char buffer[sizeof function->param_buffer];
    memcpy(buffer, function->param_buffer, sizeof buffer);
    const unsigned x = function->block[0], y = function->block[1], z = function->block[2];
    const unsigned shared_bytes = function->shared_bytes;
    driver_release();
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                      CU_LAUNCH_PARAM_END };
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, x, y, z, shared_bytes, stream,
                              NULL, extra);
}

CUresult sim_cuLaunchGrid(CUfunction function, int width, int height)
{
    return sim_cuLaunchGridAsync(function, width, height, NULL);
}

CUresult sim_cuLaunch(CUfunction function)
{
    return sim_cuLaunchGridAsync(function, 1, 1, NULL);
}
