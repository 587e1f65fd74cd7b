/* sim_copy.c: checks the memory that a copy accesses, computes how long the copy takes, and moves the bytes.
 * Every copy is a struct copy, in one or three dimensions, between host memory, device memory and arrays.
 * sim_copy_call.c creates these structs. */
#include "sim_op.h"

#include <string.h>

/* Every size in a valid copy is far below this limit, so adding a few sizes does not overflow. Products are
 * checked. */
static const size_t size_limit = (size_t)1 << 60;

/* The location of the bytes. Rows have the copy's width and are `pitch` bytes apart, and slices are `slice`
 * bytes apart. */
struct box {
    unsigned char *first;
    size_t pitch, slice;
};

bool copy_is_empty(const struct copy *copy)
{
    return copy->bytes == 0 || copy->height == 0 || copy->depth == 0;
}

static CUresult locate_in_array(const struct side *side, const struct copy *copy, struct box *box)
{
    const CUarray array = array_of(side->array);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (side->x + copy->bytes > array->width_bytes || side->y + copy->height > array->height ||
        side->z + copy->depth > array->depth)
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

/* As in driver 580, a pitch or height of zero means that there are no gaps between rows or slices. */
static CUresult locate(const struct side *side, const struct copy *copy, struct box *box)
{
    if (side->x > size_limit || side->y > size_limit || side->z > size_limit)
        return CUDA_ERROR_INVALID_VALUE;
    if (side->type == CU_MEMORYTYPE_ARRAY)
        return locate_in_array(side, copy, box);
    const size_t row = side->x + copy->bytes, rows = side->y + copy->height;
    size_t offset = side->x, extent = copy->bytes;
    box->pitch = side->pitch ? side->pitch : row;
    box->slice = 0;
    if (row > box->pitch || (copy->depth > 1 && side->height && rows > side->height) ||
        !add_product(&box->slice, box->pitch, side->height ? side->height : rows) ||
        !add_product(&offset, box->slice, side->z) || !add_product(&offset, box->pitch, side->y) ||
        !add_product(&extent, box->slice, copy->depth - 1) ||
        !add_product(&extent, box->pitch, copy->height - 1))
        return CUDA_ERROR_INVALID_VALUE;
    const uintptr_t base = side->address;
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

static CUresult locate_both(const struct copy *copy, struct box *from, struct box *to)
{
    if (copy->bytes > size_limit || copy->height > size_limit || copy->depth > size_limit)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = locate(&copy->from, copy, from);
    return result != CUDA_SUCCESS ? result : locate(&copy->to, copy, to);
}

CUresult copy_check(const struct copy *copy)
{
    struct box from, to;
    return copy_is_empty(copy) ? CUDA_SUCCESS : locate_both(copy, &from, &to);
}

int64_t copy_duration_ns(const struct copy *copy)
{
    if (sim_settings.copy_gbps <= 0)
        return 0;
    return (int64_t)((double)(copy->bytes * copy->height * copy->depth) / sim_settings.copy_gbps);
}

void copy_run(const struct copy *copy)
{
    struct box from, to;
    if (copy_is_empty(copy) || locate_both(copy, &from, &to) != CUDA_SUCCESS)
        return;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++)
            memmove(to.first + z * to.slice + y * to.pitch, from.first + z * from.slice + y * from.pitch,
                    copy->bytes);
}
