/* sim_set.c: the cuMemset functions, which write consecutive bytes. */
#include "sim_graph.h"

#include <string.h>

CUresult set_check(const struct set *set)
{
    return region_holding((uintptr_t)set->at, set->count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void set_run(const struct set *set)
{
    memset((void *)(uintptr_t)set->at, set->value, set->count);
}

/* The host does not wait for a set, whether or not the function's name ends in Async. */
static CUresult submit(const struct set *set, CUstream stream, bool now)
{
    const CUresult result = stream_lock(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (now && stream->capture)
        return driver_unlock(capture_spoil(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    const struct op op = { .kind = OP_SET, .set = *set };
    return driver_unlock(set->count == 0 ? CUDA_SUCCESS : op_submit(stream, &op));
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr dst, uint8_t value, size_t count)
{
    return submit(&(struct set){ dst, count, value }, NULL, true);
}

CUresult sim_cuMemsetD8Async(CUdeviceptr dst, uint8_t value, size_t count, CUstream stream)
{
    return submit(&(struct set){ dst, count, value }, stream, false);
}
