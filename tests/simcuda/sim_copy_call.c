/* sim_copy_call.c: the cuMemcpy functions. Each of these functions creates a struct copy and submits it. */
#include "sim_graph.h"

static struct side host(const void *address)
{
    return (struct side){ .type = CU_MEMORYTYPE_HOST, .address = (uintptr_t)address };
}

static struct side device(CUdeviceptr address)
{
    return (struct side){ .type = CU_MEMORYTYPE_DEVICE, .address = (uintptr_t)address };
}

static struct side unified(CUdeviceptr address)
{
    return (struct side){ .type = CU_MEMORYTYPE_UNIFIED, .address = (uintptr_t)address };
}

static struct copy linear(struct side to, struct side from, size_t bytes)
{
    return (struct copy){ .from = from, .to = to, .bytes = bytes, .height = 1, .depth = 1 };
}

static uintptr_t address_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : (uintptr_t)device;
}

static struct copy from_2d(const CUDA_MEMCPY2D *copy)
{
    return (struct copy){
        .from = {
            .type = copy->srcMemoryType,
            .address = address_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice),
            .array = copy->srcArray,
            .x = copy->srcXInBytes,
            .y = copy->srcY,
            .pitch = copy->srcPitch,
        },
        .to = {
            .type = copy->dstMemoryType,
            .address = address_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice),
            .array = copy->dstArray,
            .x = copy->dstXInBytes,
            .y = copy->dstY,
            .pitch = copy->dstPitch,
        },
        .bytes = copy->WidthInBytes,
        .height = copy->Height,
        .depth = 1,
    };
}

static bool may_be_host(const struct side *side)
{
    return side->type != CU_MEMORYTYPE_DEVICE && side->type != CU_MEMORYTYPE_ARRAY;
}

/* Returns true for host memory that the driver does not know. The program may free such memory once the call
 * has returned. */
static bool is_pageable(const struct side *side)
{
    return (side->type == CU_MEMORYTYPE_HOST || side->type == CU_MEMORYTYPE_UNIFIED) &&
           !region_at(side->address);
}

static CUresult lock_and_submit(const struct copy *copy, CUstream *stream, bool now)
{
    CUresult result = stream_lock(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (now && (*stream)->capture)
        result = capture_spoil(*stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (result == CUDA_SUCCESS && !copy_is_empty(copy)) {
        const struct op op = { .kind = OP_COPY, .copy = *copy };
        if (!(*stream)->capture && stream_is_held_up(*stream) &&
            (is_pageable(&copy->from) || is_pageable(&copy->to)))
            stream_wait(*stream);
        result = op_submit(*stream, &op);
    }
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

static CUresult copy_on(struct copy copy, CUstream stream)
{
    const CUresult result = lock_and_submit(&copy, &stream, false);
    return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
}

/* As the driver's documentation states, the host does not wait for a copy within the device. */
static CUresult copy_now(struct copy copy)
{
    CUstream stream = NULL;
    const CUresult result = lock_and_submit(&copy, &stream, true);
    if (result != CUDA_SUCCESS)
        return result;
    const CUcontext context = stream->context;
    if ((may_be_host(&copy.from) || may_be_host(&copy.to)) && !copy_is_empty(&copy))
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

enum { OPERAND_ARRAY = 2 };

static struct side side_of(const CUmemcpy3DOperand *operand, size_t element_bytes)
{
    if (operand->type == OPERAND_ARRAY)
        return (struct side){
            .type = CU_MEMORYTYPE_ARRAY,
            .array = operand->op.array.array,
            .x = operand->op.array.x * element_bytes,
            .y = operand->op.array.y,
            .z = operand->op.array.z,
        };
    struct side side = unified(operand->op.ptr.ptr);
    side.pitch = operand->op.ptr.rowLength * element_bytes;
    side.height = operand->op.ptr.layerHeight;
    return side;
}

static bool from_operation(struct copy *copy, const CUDA_MEMCPY3D_BATCH_OP *operation)
{
    const CUmemcpy3DOperand *src = &operation->src, *dst = &operation->dst;
    const CUarray array = src->type == OPERAND_ARRAY   ? src->op.array.array
                          : dst->type == OPERAND_ARRAY ? dst->op.array.array
                                                       : NULL;
    if (array && !array_of(array))
        return false;
    const size_t element_bytes = array ? array->element_bytes : 1;
    *copy = (struct copy){
        .from = side_of(src, element_bytes),
        .to = side_of(dst, element_bytes),
        .bytes = operation->width * element_bytes,
        .height = operation->height,
        .depth = operation->depth,
    };
    return true;
}

CUresult sim_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *operations,
                                     unsigned long long flags, CUstream stream)
{
    if (!operations || count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct copy copy;
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
