/*
 * sim_legacy.c: the functions of before CUDA 3.2, whose sizes and device addresses have 32 bits. cuMemAlloc of
 * that time allocates below 4 GiB, so that its addresses are real ones too; the rest hands on to the
 * functions of today.
 */
#include "simcuda.h"

/* The models of today that these call. */
CUresult sim_cuMemFree_v2(CUdeviceptr address);
CUresult sim_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address);
CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned int flags);
CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
CUresult sim_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
CUresult sim_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult sim_cuMemcpyDtoA_v2(CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes);
CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes);
CUresult sim_cuMemcpyHtoA_v2(CUarray dst, size_t dst_offset, const void *src, size_t bytes);
CUresult sim_cuMemcpyAtoH_v2(void *dst, CUarray src, size_t src_offset, size_t bytes);
CUresult sim_cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes);
CUresult sim_cuMemcpyHtoAAsync_v2(CUarray dst, size_t dst_offset, const void *src, size_t bytes,
                                  CUstream stream);
CUresult sim_cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream);
CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream);
CUresult sim_cuMemsetD8_v2(CUdeviceptr dst, uint8_t value, size_t count);
CUresult sim_cuMemsetD16_v2(CUdeviceptr dst, uint16_t value, size_t count);
CUresult sim_cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count);
CUresult sim_cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, uint8_t value, size_t width, size_t height);
CUresult sim_cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, uint16_t value, size_t width, size_t height);
CUresult sim_cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height);
CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name);
CUresult sim_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor);
CUresult sim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array);
CUresult sim_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
CUresult sim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array);

static unsigned narrow(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (unsigned)value;
}

/* An address that does not fit cannot be told. */
static CUresult narrow_address(CUdeviceptr_v1 *narrowed, CUdeviceptr address)
{
    if (address > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (narrowed)
        *narrowed = (CUdeviceptr_v1)address;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr_v1 *address, size_t bytes)
{
    CUcontext context;
    struct region *region;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_unsafe();
    if (result == CUDA_SUCCESS)
        result = address ? region_new_low(&region, context, bytes) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *address = (CUdeviceptr_v1)region->base;
    return driver_unlock(result);
}

CUresult sim_cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    return allocate(address, bytes);
}

CUresult sim_cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width,
                             unsigned int height, unsigned int element)
{
    if (!pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    const size_t row = ((size_t)width + 511) / 512 * 512;
    const CUresult result = allocate(address, row * height);
    if (result == CUDA_SUCCESS)
        *pitch = (unsigned)row;
    return result;
}

CUresult sim_cuMemFree(CUdeviceptr_v1 address)
{
    return sim_cuMemFree_v2(address);
}

CUresult sim_cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes)
{
    size_t free_all, total;
    const CUresult result = sim_cuMemGetInfo_v2(&free_all, &total);
    if (result != CUDA_SUCCESS || !free_bytes || !total_bytes)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    *free_bytes = narrow(free_all);
    *total_bytes = narrow(total);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 address)
{
    CUdeviceptr wide;
    size_t size;
    const CUresult result = sim_cuMemGetAddressRange_v2(&wide, &size, address);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes)
        *bytes = narrow(size);
    return narrow_address(base, wide);
}

CUresult sim_cuMemHostGetDevicePointer(CUdeviceptr_v1 *address, void *host, unsigned int flags)
{
    CUdeviceptr wide;
    const CUresult result = sim_cuMemHostGetDevicePointer_v2(&wide, host, flags);
    return result != CUDA_SUCCESS ? result : narrow_address(address, wide);
}

CUresult sim_cuModuleGetGlobal(CUdeviceptr_v1 *address, unsigned int *bytes, CUmodule module,
                               const char *name)
{
    CUdeviceptr wide;
    size_t size;
    const CUresult result = sim_cuModuleGetGlobal_v2(&wide, &size, module, name);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes)
        *bytes = narrow(size);
    return narrow_address(address, wide);
}

/* ---- Copies. */

CUresult sim_cuMemcpyHtoD(CUdeviceptr_v1 dst, const void *src, unsigned int bytes)
{
    return sim_cuMemcpyHtoD_v2(dst, src, bytes);
}

CUresult sim_cuMemcpyDtoH(void *dst, CUdeviceptr_v1 src, unsigned int bytes)
{
    return sim_cuMemcpyDtoH_v2(dst, src, bytes);
}

CUresult sim_cuMemcpyDtoD(CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes)
{
    return sim_cuMemcpyDtoD_v2(dst, src, bytes);
}

CUresult sim_cuMemcpyHtoDAsync(CUdeviceptr_v1 dst, const void *src, unsigned int bytes, CUstream stream)
{
    return sim_cuMemcpyHtoDAsync_v2(dst, src, bytes, stream);
}

CUresult sim_cuMemcpyDtoHAsync(void *dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream)
{
    return sim_cuMemcpyDtoHAsync_v2(dst, src, bytes, stream);
}

CUresult sim_cuMemcpyDtoDAsync(CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream)
{
    return sim_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

CUresult sim_cuMemcpyDtoA(CUarray dst, unsigned int dst_offset, CUdeviceptr_v1 src, unsigned int bytes)
{
    return sim_cuMemcpyDtoA_v2(dst, dst_offset, src, bytes);
}

CUresult sim_cuMemcpyAtoD(CUdeviceptr_v1 dst, CUarray src, unsigned int src_offset, unsigned int bytes)
{
    return sim_cuMemcpyAtoD_v2(dst, src, src_offset, bytes);
}

CUresult sim_cuMemcpyHtoA(CUarray dst, unsigned int dst_offset, const void *src, unsigned int bytes)
{
    return sim_cuMemcpyHtoA_v2(dst, dst_offset, src, bytes);
}

CUresult sim_cuMemcpyAtoH(void *dst, CUarray src, unsigned int src_offset, unsigned int bytes)
{
    return sim_cuMemcpyAtoH_v2(dst, src, src_offset, bytes);
}

CUresult sim_cuMemcpyAtoA(CUarray dst, unsigned int dst_offset, CUarray src, unsigned int src_offset,
                          unsigned int bytes)
{
    return sim_cuMemcpyAtoA_v2(dst, dst_offset, src, src_offset, bytes);
}

CUresult sim_cuMemcpyHtoAAsync(CUarray dst, unsigned int dst_offset, const void *src, unsigned int bytes,
                               CUstream stream)
{
    return sim_cuMemcpyHtoAAsync_v2(dst, dst_offset, src, bytes, stream);
}

CUresult sim_cuMemcpyAtoHAsync(void *dst, CUarray src, unsigned int src_offset, unsigned int bytes,
                               CUstream stream)
{
    return sim_cuMemcpyAtoHAsync_v2(dst, src, src_offset, bytes, stream);
}

static CUDA_MEMCPY2D wide_2d(const CUDA_MEMCPY2D_v1 *copy)
{
    return (CUDA_MEMCPY2D){
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
    };
}

static CUDA_MEMCPY3D wide_3d(const CUDA_MEMCPY3D_v1 *copy)
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

CUresult sim_cuMemcpy2D(const CUDA_MEMCPY2D_v1 *copy)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY2D wide = wide_2d(copy);
    return sim_cuMemcpy2D_v2(&wide);
}

CUresult sim_cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *copy)
{
    return sim_cuMemcpy2D(copy);
}

CUresult sim_cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *copy, CUstream stream)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY2D wide = wide_2d(copy);
    return sim_cuMemcpy2DAsync_v2(&wide, stream);
}

CUresult sim_cuMemcpy3D(const CUDA_MEMCPY3D_v1 *copy)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D wide = wide_3d(copy);
    return sim_cuMemcpy3D_v2(&wide);
}

CUresult sim_cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *copy, CUstream stream)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D wide = wide_3d(copy);
    return sim_cuMemcpy3DAsync_v2(&wide, stream);
}

/* ---- Sets. */

CUresult sim_cuMemsetD8(CUdeviceptr_v1 dst, uint8_t value, unsigned int count)
{
    return sim_cuMemsetD8_v2(dst, value, count);
}

CUresult sim_cuMemsetD16(CUdeviceptr_v1 dst, uint16_t value, unsigned int count)
{
    return sim_cuMemsetD16_v2(dst, value, count);
}

CUresult sim_cuMemsetD32(CUdeviceptr_v1 dst, unsigned int value, unsigned int count)
{
    return sim_cuMemsetD32_v2(dst, value, count);
}

CUresult sim_cuMemsetD2D8(CUdeviceptr_v1 dst, unsigned int pitch, uint8_t value, unsigned int width,
                          unsigned int height)
{
    return sim_cuMemsetD2D8_v2(dst, pitch, value, width, height);
}

CUresult sim_cuMemsetD2D16(CUdeviceptr_v1 dst, unsigned int pitch, uint16_t value, unsigned int width,
                           unsigned int height)
{
    return sim_cuMemsetD2D16_v2(dst, pitch, value, width, height);
}

CUresult sim_cuMemsetD2D32(CUdeviceptr_v1 dst, unsigned int pitch, unsigned int value, unsigned int width,
                           unsigned int height)
{
    return sim_cuMemsetD2D32_v2(dst, pitch, value, width, height);
}

/* ---- Arrays. */

CUresult sim_cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
{
    if (!descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY_DESCRIPTOR wide = {
        .Width = descriptor->Width,
        .Height = descriptor->Height,
        .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels,
    };
    return sim_cuArrayCreate_v2(array, &wide);
}

CUresult sim_cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *descriptor, CUarray array)
{
    CUDA_ARRAY_DESCRIPTOR wide;
    if (!descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_cuArrayGetDescriptor_v2(&wide, array);
    if (result == CUDA_SUCCESS)
        *descriptor = (CUDA_ARRAY_DESCRIPTOR_v1){
            .Width = narrow(wide.Width),
            .Height = narrow(wide.Height),
            .Format = wide.Format,
            .NumChannels = wide.NumChannels,
        };
    return result;
}

CUresult sim_cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
{
    if (!descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR wide = {
        .Width = descriptor->Width,
        .Height = descriptor->Height,
        .Depth = descriptor->Depth,
        .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels,
        .Flags = descriptor->Flags,
    };
    return sim_cuArray3DCreate_v2(array, &wide);
}

CUresult sim_cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR wide;
    if (!descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_cuArray3DGetDescriptor_v2(&wide, array);
    if (result == CUDA_SUCCESS)
        *descriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){
            .Width = narrow(wide.Width),
            .Height = narrow(wide.Height),
            .Depth = narrow(wide.Depth),
            .Format = wide.Format,
            .NumChannels = wide.NumChannels,
            .Flags = wide.Flags,
        };
    return result;
}
