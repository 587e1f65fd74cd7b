/*
 * sim_copy.c: what a copy is allowed to touch, how long it takes, and moving the bytes. Every copy, of one
 * dimension or three, from host, device or array, is a CUDA_MEMCPY3D here; sim_copy_call.c makes them.
 */
#include "sim_op.h"

#include <string.h>

/* No size in a valid copy comes near this, so that sums of a few do not overflow. Products are checked. */
static const size_t size_limit = (size_t)1 << 60;

/* One side of a copy, as the program described it. */
struct side {
    CUmemorytype type;
    uintptr_t host, device;
    CUarray array;
    size_t x, y, z, pitch, height;
};

/* Where the bytes are: rows of the copy's width, pitch apart, in slices. */
struct box {
    unsigned char *first;
    size_t pitch, slice;
};

static struct side source(const CUDA_MEMCPY3D *copy)
{
    return (struct side){
        copy->srcMemoryType, (uintptr_t)copy->srcHost, (uintptr_t)copy->srcDevice,
        copy->srcArray,      copy->srcXInBytes,        copy->srcY,
        copy->srcZ,          copy->srcPitch,           copy->srcHeight,
    };
}

static struct side destination(const CUDA_MEMCPY3D *copy)
{
    return (struct side){
        copy->dstMemoryType, (uintptr_t)copy->dstHost, (uintptr_t)copy->dstDevice,
        copy->dstArray,      copy->dstXInBytes,        copy->dstY,
        copy->dstZ,          copy->dstPitch,           copy->dstHeight,
    };
}

static bool is_empty(const CUDA_MEMCPY3D *copy)
{
    return copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0;
}

static CUresult locate_in_array(const struct side *side, const CUDA_MEMCPY3D *copy, struct box *box)
{
    const CUarray array = array_of(side->array);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (side->x + copy->WidthInBytes > array->width_bytes || side->y + copy->Height > array->height ||
        side->z + copy->Depth > array->depth)
        return CUDA_ERROR_INVALID_VALUE;
    box->pitch = array->width_bytes;
    box->slice = array->width_bytes * array->height;
    box->first = (unsigned char *)array->region->base + side->z * box->slice + side->y * box->pitch + side->x;
    return CUDA_SUCCESS;
}

static bool add_product(size_t *sum, size_t a, size_t b)
{
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

/* A pitch or height of zero means rows or slices without gaps, as driver 580 takes it. */
static CUresult locate(const struct side *side, const CUDA_MEMCPY3D *copy, struct box *box)
{
    if (side->x > size_limit || side->y > size_limit || side->z > size_limit)
        return CUDA_ERROR_INVALID_VALUE;
    if (side->type == CU_MEMORYTYPE_ARRAY)
        return locate_in_array(side, copy, box);
    const size_t row = side->x + copy->WidthInBytes, rows = side->y + copy->Height;
    size_t offset = side->x, extent = copy->WidthInBytes;
    box->pitch = side->pitch ? side->pitch : row;
    box->slice = 0;
    if (row > box->pitch || (copy->Depth > 1 && side->height && rows > side->height) ||
        !add_product(&box->slice, box->pitch, side->height ? side->height : rows) ||
        !add_product(&offset, box->slice, side->z) || !add_product(&offset, box->pitch, side->y) ||
        !add_product(&extent, box->slice, copy->Depth - 1) ||
        !add_product(&extent, box->pitch, copy->Height - 1))
        return CUDA_ERROR_INVALID_VALUE;
    const uintptr_t base = side->type == CU_MEMORYTYPE_HOST ? side->host : side->device;
    if (base == 0 || base + offset < base || side->type < CU_MEMORYTYPE_HOST ||
        side->type > CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    const bool known =
        side->type == CU_MEMORYTYPE_DEVICE || (side->type == CU_MEMORYTYPE_UNIFIED && region_at(base));
    if (known && !region_holding(base + offset, extent))
        return CUDA_ERROR_INVALID_VALUE;
    box->first = (unsigned char *)(base + offset);
    return CUDA_SUCCESS;
}

static CUresult locate_both(const CUDA_MEMCPY3D *copy, struct box *from, struct box *to)
{
    if (copy->WidthInBytes > size_limit || copy->Height > size_limit || copy->Depth > size_limit)
        return CUDA_ERROR_INVALID_VALUE;
    const struct side src = source(copy), dst = destination(copy);
    const CUresult result = locate(&src, copy, from);
    return result != CUDA_SUCCESS ? result : locate(&dst, copy, to);
}

CUresult copy_check(const CUDA_MEMCPY3D *copy)
{
    struct box from, to;
    return is_empty(copy) ? CUDA_SUCCESS : locate_both(copy, &from, &to);
}

int64_t copy_duration_ns(const CUDA_MEMCPY3D *copy)
{
    if (sim_settings.copy_gbps <= 0)
        return 0;
    return (int64_t)((double)(copy->WidthInBytes * copy->Height * copy->Depth) / sim_settings.copy_gbps);
}

void copy_run(const CUDA_MEMCPY3D *copy)
{
    struct box from, to;
    if (is_empty(copy) || locate_both(copy, &from, &to) != CUDA_SUCCESS)
        return;
    for (size_t z = 0; z < copy->Depth; z++)
        for (size_t y = 0; y < copy->Height; y++)
            memmove(to.first + z * to.slice + y * to.pitch, from.first + z * from.slice + y * from.pitch,
                    copy->WidthInBytes);
}
