/* sim_copy_call.c: the cuMemcpy functions, which make a CUDA_MEMCPY3D each and submit it. */
#include "simcuda.h"

/* An end of a copy of one dimension. */
struct end {
    CUmemorytype type;
    uintptr_t address;
    CUarray array;
    size_t offset;
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

static struct end in_array(CUarray array, size_t offset)
{
    return (struct end){ .type = CU_MEMORYTYPE_ARRAY, .array = array, .offset = offset };
}

static CUDA_MEMCPY3D linear(struct end to, struct end from, size_t bytes)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = from.offset,
        .srcMemoryType = from.type,
        .srcHost = (const void *)from.address,
        .srcDevice = from.address,
        .srcArray = from.array,
        .dstXInBytes = to.offset,
        .dstMemoryType = to.type,
        .dstHost = (void *)to.address,
        .dstDevice = to.address,
        .dstArray = to.array,
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

/* Contexts share one memory here, so a copy between them is a copy. */
static CUDA_MEMCPY3D from_peer(const CUDA_MEMCPY3D_PEER *copy)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcZ = copy->srcZ,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch,
        .srcHeight = copy->srcHeight,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstZ = copy->dstZ,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch,
        .dstHeight = copy->dstHeight,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = copy->Depth,
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

/* ---- One dimension. */

CUresult sim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return copy_now(linear(unified(dst), unified(src), bytes));
}

CUresult sim_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return copy_on(linear(unified(dst), unified(src), bytes), stream);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                          size_t bytes)
{
    (void)dst_context;
    (void)src_context;
    return copy_now(linear(device(dst), device(src), bytes));
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                               size_t bytes, CUstream stream)
{
    (void)dst_context;
    (void)src_context;
    return copy_on(linear(device(dst), device(src), bytes), stream);
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

CUresult sim_cuMemcpyDtoA_v2(CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes)
{
    return copy_now(linear(in_array(dst, dst_offset), device(src), bytes));
}

CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes)
{
    return copy_now(linear(device(dst), in_array(src, src_offset), bytes));
}

CUresult sim_cuMemcpyHtoA_v2(CUarray dst, size_t dst_offset, const void *src, size_t bytes)
{
    return copy_now(linear(in_array(dst, dst_offset), host(src), bytes));
}

CUresult sim_cuMemcpyAtoH_v2(void *dst, CUarray src, size_t src_offset, size_t bytes)
{
    return copy_now(linear(host(dst), in_array(src, src_offset), bytes));
}

CUresult sim_cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes)
{
    return copy_now(linear(in_array(dst, dst_offset), in_array(src, src_offset), bytes));
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

CUresult sim_cuMemcpyHtoAAsync_v2(CUarray dst, size_t dst_offset, const void *src, size_t bytes,
                                  CUstream stream)
{
    return copy_on(linear(in_array(dst, dst_offset), host(src), bytes), stream);
}

CUresult sim_cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream)
{
    return copy_on(linear(host(dst), in_array(src, src_offset), bytes), stream);
}

/* Hints and access orders make no difference: the copies run in the order of the batch. */
CUresult sim_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                   void *attributes, size_t *attribute_indices, size_t attribute_count,
                                   CUstream stream)
{
    (void)attribute_indices;
    if (!dsts || !srcs || !sizes || count == 0 || !attributes || attribute_count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const CUresult result = copy_on(linear(unified(dsts[i]), unified(srcs[i]), sizes[i]), stream);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                void *attributes, size_t *attribute_indices, size_t attribute_count,
                                size_t *failed, CUstream stream)
{
    if (failed)
        *failed = SIZE_MAX;
    return sim_cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attributes, attribute_indices, attribute_count,
                                     stream);
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

/* ---- Two and three dimensions. */

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    return copy ? copy_now(from_2d(copy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    return sim_cuMemcpy2D_v2(copy);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    return copy ? copy_on(from_2d(copy), stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
    return copy ? copy_now(*copy) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    return copy ? copy_on(*copy, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
    return copy ? copy_now(from_peer(copy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
    return copy ? copy_on(from_peer(copy), stream) : CUDA_ERROR_INVALID_VALUE;
}
