/* sim_copy_call.c: the cuMemcpy functions, which make a CUDA_MEMCPY3D each and submit it. */
#include "sim_graph.h"

/* An end of a copy of one dimension. */
struct end {
    CUmemorytype type;
    uintptr_t address;
};

static struct end host(const void *address)
{
    return (struct end){ .type = CU_MEMORYTYPE_HOST, .address = (uintptr_t)address };
}

static struct end device(CUdeviceptr address)
{
    return (struct end){ .type = CU_MEMORYTYPE_DEVICE, .address = (uintptr_t)address };
}

static struct end unified(CUdeviceptr address)
{
    return (struct end){ .type = CU_MEMORYTYPE_UNIFIED, .address = (uintptr_t)address };
}

static CUDA_MEMCPY3D linear(struct end to, struct end from, size_t bytes)
{
    return (CUDA_MEMCPY3D){
        .srcMemoryType = from.type,
        .srcHost = (const void *)from.address,
        .srcDevice = from.address,
        .dstMemoryType = to.type,
        .dstHost = (void *)to.address,
        .dstDevice = to.address,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
}

static CUDA_MEMCPY3D from_2d(const CUDA_MEMCPY2D *copy)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = 1,
    };
}

static bool touches_host(const CUDA_MEMCPY3D *copy)
{
    return (copy->srcMemoryType != CU_MEMORYTYPE_DEVICE && copy->srcMemoryType != CU_MEMORYTYPE_ARRAY) ||
           (copy->dstMemoryType != CU_MEMORYTYPE_DEVICE && copy->dstMemoryType != CU_MEMORYTYPE_ARRAY);
}

static bool is_empty(const CUDA_MEMCPY3D *copy)
{
    return copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0;
}

/* Host memory that the driver does not know may be gone when the call has returned. */
static bool touches_pageable(const CUDA_MEMCPY3D *copy)
{
    return (copy->srcMemoryType == CU_MEMORYTYPE_HOST && !region_at((uintptr_t)copy->srcHost)) ||
           (copy->dstMemoryType == CU_MEMORYTYPE_HOST && !region_at((uintptr_t)copy->dstHost)) ||
           (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED && !region_at((uintptr_t)copy->srcDevice)) ||
           (copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED && !region_at((uintptr_t)copy->dstDevice));
}

static CUresult lock_and_submit(const CUDA_MEMCPY3D *copy, CUstream *stream, bool now)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_of(stream, context);
    if (result == CUDA_SUCCESS && now && (*stream)->capture)
        result = capture_spoil(*stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (result == CUDA_SUCCESS && !is_empty(copy)) {
        const struct op op = { .kind = OP_COPY, .copy = *copy };
        if (!(*stream)->capture && stream_is_held_up(*stream) && touches_pageable(copy))
            stream_wait(*stream);
        result = op_submit(*stream, &op);
    }
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

static CUresult copy_on(CUDA_MEMCPY3D copy, CUstream stream)
{
    const CUresult result = lock_and_submit(&copy, &stream, false);
    return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
}

/* The host does not wait for a copy within the device, as the driver's documentation says. */
static CUresult copy_now(CUDA_MEMCPY3D copy)
{
    CUstream stream = NULL;
    const CUresult result = lock_and_submit(&copy, &stream, true);
    if (result != CUDA_SUCCESS)
        return result;
    const CUcontext context = stream->context;
    if (touches_host(&copy) && !is_empty(&copy))
        stream_wait(stream);
    return driver_unlock(context->fault);
}

CUresult sim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return copy_now(linear(unified(dst), unified(src), bytes));
}

CUresult sim_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return copy_on(linear(unified(dst), unified(src), bytes), stream);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    return copy_now(linear(device(dst), host(src), bytes));
}

CUresult sim_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    return copy_now(linear(host(dst), device(src), bytes));
}

CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return copy_now(linear(device(dst), device(src), bytes));
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
    return copy_on(linear(device(dst), host(src), bytes), stream);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return copy_on(linear(host(dst), device(src), bytes), stream);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return copy_on(linear(device(dst), device(src), bytes), stream);
}

static bool from_operation(CUDA_MEMCPY3D *copy, const CUDA_MEMCPY3D_BATCH_OP *operation)
{
    enum { ARRAY = 2 };
    const CUmemcpy3DOperand *src = &operation->src, *dst = &operation->dst;
    const CUarray array = src->type == ARRAY   ? src->op.array.array
                          : dst->type == ARRAY ? dst->op.array.array
                                               : NULL;
    if (array && !array_of(array))
        return false;
    const size_t element_bytes = array ? array->element_bytes : 1;
    *copy = (CUDA_MEMCPY3D){ .WidthInBytes = operation->width * element_bytes,
                             .Height = operation->height,
                             .Depth = operation->depth };
    if (src->type == ARRAY) {
        copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy->srcArray = src->op.array.array;
        copy->srcXInBytes = src->op.array.x * element_bytes;
        copy->srcY = src->op.array.y;
        copy->srcZ = src->op.array.z;
    } else {
        copy->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy->srcDevice = src->op.ptr.ptr;
        copy->srcPitch = src->op.ptr.rowLength * element_bytes;
        copy->srcHeight = src->op.ptr.layerHeight;
    }
    if (dst->type == ARRAY) {
        copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy->dstArray = dst->op.array.array;
        copy->dstXInBytes = dst->op.array.x * element_bytes;
        copy->dstY = dst->op.array.y;
        copy->dstZ = dst->op.array.z;
    } else {
        copy->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy->dstDevice = dst->op.ptr.ptr;
        copy->dstPitch = dst->op.ptr.rowLength * element_bytes;
        copy->dstHeight = dst->op.ptr.layerHeight;
    }
    return true;
}

CUresult sim_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *operations,
                                     unsigned long long flags, CUstream stream)
{
    if (!operations || count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUDA_MEMCPY3D copy;
        const CUresult result =
            from_operation(&copy, &operations[i]) ? copy_on(copy, stream) : CUDA_ERROR_INVALID_VALUE;
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *operations, size_t *failed,
                                  unsigned long long flags, CUstream stream)
{
    if (failed)
        *failed = SIZE_MAX;
    return sim_cuMemcpy3DBatchAsync_v2(count, operations, flags, stream);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    return copy ? copy_on(from_2d(copy), stream) : CUDA_ERROR_INVALID_VALUE;
}
