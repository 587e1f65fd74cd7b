/* sim_set.c: the cuMemset functions. Every set is a CUDA_MEMSET_NODE_PARAMS, as a graph's node keeps it. */
#include "simcuda.h"

#include <string.h>

static bool is_empty(const CUDA_MEMSET_NODE_PARAMS *set)
{
    return set->width == 0 || set->height == 0;
}

static size_t pitch_of(const CUDA_MEMSET_NODE_PARAMS *set)
{
    return set->pitch && set->height > 1 ? set->pitch : set->width * set->elementSize;
}

CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *set)
{
    const size_t limit = (size_t)1 << 46;
    if (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_empty(set))
        return CUDA_SUCCESS;
    if (set->width > limit || set->pitch > limit || set->dst % set->elementSize != 0 ||
        set->pitch % set->elementSize != 0 || set->width * set->elementSize > pitch_of(set))
        return CUDA_ERROR_INVALID_VALUE;
    size_t extent;
    if (__builtin_mul_overflow(pitch_of(set), set->height - 1, &extent) ||
        __builtin_add_overflow(extent, set->width * set->elementSize, &extent))
        return CUDA_ERROR_INVALID_VALUE;
    return region_holding((uintptr_t)set->dst, extent) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void set_run(const CUDA_MEMSET_NODE_PARAMS *set)
{
    if (is_empty(set))
        return;
    for (size_t y = 0; y < set->height; y++) {
        unsigned char *row = (unsigned char *)(uintptr_t)set->dst + y * pitch_of(set);
        if (set->elementSize == 1)
            memset(row, (int)(set->value & 0xff), set->width);
        else
            for (size_t x = 0; x < set->width; x++)
                memcpy(row + x * set->elementSize, &set->value, set->elementSize); /* little end first */
    }
}

/* A set does not make the host wait, whether its name ends in Async or not. */
static CUresult submit(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element, size_t width,
                       size_t height, CUstream stream, bool now)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_of(&stream, context);
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    if (now && stream->capture)
        return driver_unlock(capture_spoil(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    const struct op op = {
        .kind = OP_SET,
        .set = { .dst = dst,
                 .pitch = pitch,
                 .value = value,
                 .elementSize = element,
                 .width = width,
                 .height = height },
    };
    return driver_unlock(is_empty(&op.set) ? CUDA_SUCCESS : op_submit(stream, &op));
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr dst, uint8_t value, size_t count)
{
    return submit(dst, 0, value, 1, count, 1, NULL, true);
}

CUresult sim_cuMemsetD8Async(CUdeviceptr dst, uint8_t value, size_t count, CUstream stream)
{
    return submit(dst, 0, value, 1, count, 1, stream, false);
}
