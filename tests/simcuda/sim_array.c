/* sim_array.c: CUDA arrays, stored row by row without gaps. Mipmapped and sparse arrays are not modelled. */
#include "sim_graph.h"

static struct slab arrays = SLAB(struct CUarray_st);

CUarray array_of(CUarray array)
{
    return handle_alive(&arrays, array) ? array : NULL;
}

static size_t format_bytes(unsigned format)
{
    switch (format) {
    case 0x01: /* UNSIGNED_INT8 */
    case 0x08: /* SIGNED_INT8 */
        return 1;
    case 0x02: /* UNSIGNED_INT16 */
    case 0x09: /* SIGNED_INT16 */
    case 0x10: /* HALF */
        return 2;
    case 0x03: /* UNSIGNED_INT32 */
    case 0x0a: /* SIGNED_INT32 */
    case 0x20: /* FLOAT */
        return 4;
    default:
        return 0;
    }
}

CUresult sim_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    CUcontext context;
    CUresult result = context_lock_unsafe(&context);
    if (result != CUDA_SUCCESS)
        return result;
    const size_t limit = (size_t)1 << 20;
    if (!array || !descriptor || format_bytes(descriptor->Format) == 0 || descriptor->Width == 0 ||
        descriptor->Width > limit || descriptor->Height > limit || descriptor->Depth > limit ||
        (descriptor->NumChannels != 1 && descriptor->NumChannels != 2 && descriptor->NumChannels != 4))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    CUarray made = handle_new(&arrays);
    if (!made)
        return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
    made->context = context;
    made->descriptor = *descriptor;
    made->element_bytes = format_bytes(descriptor->Format) * descriptor->NumChannels;
    made->width_bytes = descriptor->Width * made->element_bytes;
    made->height = descriptor->Height ? descriptor->Height : 1;
    made->depth = descriptor->Depth ? descriptor->Depth : 1;
    if (made->height * made->depth > SIM_MEMORY_BYTES / made->width_bytes)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else
        result =
            region_new(&made->region, context, REGION_DEVICE, made->width_bytes * made->height * made->depth);
    if (result != CUDA_SUCCESS)
        handle_free(&arrays, made);
    else
        *array = made;
    return driver_unlock(result);
}

CUresult sim_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
    if (!descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR flat = {
        .Width = descriptor->Width,
        .Height = descriptor->Height,
        .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels,
    };
    return sim_cuArray3DCreate_v2(array, &flat);
}

static void free_array(CUarray array)
{
    region_free(array->region);
    handle_free(&arrays, array);
}

void array_end(CUcontext context)
{
    for (CUarray array = NULL; (array = handle_next(&arrays, array));)
        if (array->context == context)
            free_array(array);
}
