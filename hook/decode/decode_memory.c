/* Decoders for memory that is not allocated by cuMemAlloc and related functions: physical memory and address
 * ranges (allocated separately and then mapped), arrays, and memory shared by other processes or
 * interfaces. */
#include "compiler.h"
#include "decode.h"
#include "table.h"

/* ---- virtual memory ---- */

ALLOCATED(physical, CT_ALLOC_PHYSICAL, out(frame, 0), ct_argument(frame, 1))
FREED(physical_free, CT_ALLOC_PHYSICAL, ct_argument(frame, 0), 0)
ALLOCATED(reserve, CT_ALLOC_RESERVED, out(frame, 0), ct_argument(frame, 1))
FREED(reserve_free, CT_ALLOC_RESERVED, ct_argument(frame, 0), ct_argument(frame, 1))
FREED(unmap, CT_ALLOC_MAPPED, ct_argument(frame, 0), ct_argument(frame, 1))
FREED(ipc_close, CT_ALLOC_IPC, ct_argument(frame, 0), 0)

/* The driver does not report the size of memory shared by another process. */
static void shared_by_others(struct ct_decoded *decoded, enum ct_alloc_kind kind, uint64_t address)
{
    ct_decode_allocated(decoded, kind, address, 0);
    decoded->flags = CT_FLAG_UNKNOWN;
}

/* If the process already had the same handle, it must release the handle an additional time. */
void ct_decode_physical_shared(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    shared_by_others(decoded, CT_ALLOC_PHYSICAL, out(frame, 0));
    decoded->payload.alloc.shared = 1;
}

void ct_decode_map(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_allocated(decoded, CT_ALLOC_MAPPED, ct_argument(frame, 0), ct_argument(frame, 1));
    decoded->payload.alloc.pool = ct_argument(frame, 3);
}

/* ---- memory shared by other processes and interfaces ---- */

/* Imported memory belongs to another process's pool, and its allocation is not ordered by a stream. */
void ct_decode_pool_import(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    shared_by_others(decoded, CT_ALLOC_IPC, out(frame, 0));
    decoded->payload.alloc.pool = ct_argument(frame, 1);
}

/* Opening a handle again returns the same address, which must then be closed as often as it was opened. */
void ct_decode_ipc_open(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    shared_by_others(decoded, CT_ALLOC_IPC, out(frame, 0));
    decoded->payload.alloc.shared = 1;
}

/* (pointer *, CUexternalMemory, CUDA_EXTERNAL_MEMORY_BUFFER_DESC *). Released by cuMemFree. */
void ct_decode_external_map(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    uint64_t offset_and_bytes[2];
    const bool readable = out_bytes(frame, 2, offset_and_bytes, sizeof(offset_and_bytes));
    ct_decode_allocated(decoded, CT_ALLOC_EXTERNAL, out(frame, 0), readable ? offset_and_bytes[1] : 0);
    decoded->payload.alloc.pool = ct_argument(frame, 1);
}

/* ---- arrays ---- */

/* The layout and element size of each CUarray_format in cuda.h 13.0. `bits` is per channel for
 * LAYOUT_CHANNELS, per texel (all channels) for LAYOUT_TEXEL, and per block of 4 by 4 texels for
 * LAYOUT_BLOCK. */
enum layout { LAYOUT_CHANNELS = 1, LAYOUT_TEXEL, LAYOUT_BLOCK };
static const struct format {
    uint8_t first, last; /* CUarray_format */
    uint8_t layout, bits;
} formats[] = {
    { 0x01, 0x01, LAYOUT_CHANNELS, 8 },  { 0x02, 0x02, LAYOUT_CHANNELS, 16 },
    { 0x03, 0x03, LAYOUT_CHANNELS, 32 }, { 0x08, 0x08, LAYOUT_CHANNELS, 8 },
    { 0x09, 0x09, LAYOUT_CHANNELS, 16 }, { 0x0a, 0x0a, LAYOUT_CHANNELS, 32 },
    { 0x10, 0x10, LAYOUT_CHANNELS, 16 }, { 0x20, 0x20, LAYOUT_CHANNELS, 32 },
    { 0xc0, 0xc2, LAYOUT_CHANNELS, 8 },  { 0xc3, 0xc5, LAYOUT_CHANNELS, 16 }, /* UNORM */
    { 0xc6, 0xc8, LAYOUT_CHANNELS, 8 },  { 0xc9, 0xcb, LAYOUT_CHANNELS, 16 }, /* SNORM */
    { 0x50, 0x50, LAYOUT_TEXEL, 32 },                                         /* 10-10-10-2 */
    { 0xb0, 0xb0, LAYOUT_TEXEL, 12 },    { 0x9f, 0x9f, LAYOUT_TEXEL, 24 },    /* NV12, P010 */
    { 0xa1, 0xa1, LAYOUT_TEXEL, 24 },    { 0xa2, 0xa2, LAYOUT_TEXEL, 16 },    /* P016, NV16 */
    { 0xa3, 0xa4, LAYOUT_TEXEL, 32 },    { 0xa5, 0xa5, LAYOUT_TEXEL, 16 },    /* P210, P216, YUY2 */
    { 0xa6, 0xa9, LAYOUT_TEXEL, 32 },    { 0xb1, 0xb1, LAYOUT_TEXEL, 64 },    /* Y210 to Y410, Y416 */
    { 0xb2, 0xb2, LAYOUT_TEXEL, 24 },    { 0xb3, 0xb3, LAYOUT_TEXEL, 48 },    /* Y444_PLANAR8, 10 */
    { 0xb4, 0xb4, LAYOUT_TEXEL, 24 },    { 0xb5, 0xb5, LAYOUT_TEXEL, 48 },    /* YUV444, semi-planar */
    { 0x91, 0x92, LAYOUT_BLOCK, 64 },    { 0x93, 0x96, LAYOUT_BLOCK, 128 },   /* BC1, BC2 and BC3 */
    { 0x97, 0x98, LAYOUT_BLOCK, 64 },    { 0x99, 0x9e, LAYOUT_BLOCK, 128 },   /* BC4, BC5 to BC7 */
};

struct extent {
    uint64_t width, height, depth; /* a height or depth of 0 means 1 */
    uint32_t format, channels;
};

static const struct format *format_of(uint32_t format)
{
    for (size_t i = 0; i < CT_ARRAY_LENGTH(formats); i++) {
        if (format >= formats[i].first && format <= formats[i].last)
            return &formats[i];
    }
    return NULL;
}

static uint64_t at_least_1(uint64_t n)
{
    return n > 0 ? n : 1;
}

/* Returns the size of an array in bytes, or 0 if the format is unknown. Does not count row padding, which the
 * driver may add without reporting it. */
static uint64_t extent_bytes(const struct extent *extent)
{
    const struct format *format = format_of(extent->format);
    if (!format)
        return 0;
    uint64_t columns = extent->width, rows = at_least_1(extent->height);
    if (format->layout == LAYOUT_BLOCK) {
        columns = (columns + 3) / 4;
        rows = (rows + 3) / 4;
    }
    const uint64_t bits = format->bits * (uint64_t)(format->layout == LAYOUT_CHANNELS ? extent->channels : 1);
    return columns * rows * at_least_1(extent->depth) * bits / 8;
}

/* CUDA_ARRAY_DESCRIPTOR_v2, CUDA_ARRAY3D_DESCRIPTOR_v2, and the first versions of both. */
struct array_2d {
    uint64_t width, height;
    uint32_t format, channels;
};
struct array_2d_v1 {
    uint32_t width, height, format, channels;
};
struct array_3d {
    uint64_t width, height, depth;
    uint32_t format, channels, flags;
};
struct array_3d_v1 {
    uint32_t width, height, depth, format, channels, flags;
};
static_assert(sizeof(struct array_2d) == 24 && sizeof(struct array_3d) == 40, "CUDA_ARRAY_DESCRIPTOR");

static void array_allocated(struct ct_decoded *decoded, uint64_t array, uint64_t bytes)
{
    ct_decode_allocated(decoded, CT_ALLOC_ARRAY, array, bytes);
    if (bytes == 0)
        decoded->flags = CT_FLAG_UNKNOWN;
}

/* Maps each array to its element size in bytes, because some copies give extents in elements. */
static struct ct_table element_bytes;

static void array_got(const struct ct_frame *frame, struct ct_decoded *decoded, const struct extent *extent)
{
    const uint64_t array = out(frame, 0);
    const struct extent element = { .width = 1, .format = extent->format, .channels = extent->channels };
    array_allocated(decoded, array, extent_bytes(extent));
    if (array && ct_table_lock()) {
        ct_table_set(&element_bytes, array, (uint32_t)extent_bytes(&element));
        ct_table_unlock();
    }
}

#define ARRAY(name, type, depth_)                                                                            \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        struct type array;                                                                                   \
        if (in_bytes(frame, 1, &array, sizeof(array)))                                                       \
            array_got(frame, decoded,                                                                        \
                      &(struct extent){ .width = array.width,                                                \
                                        .height = array.height,                                              \
                                        .depth = depth_,                                                     \
                                        .format = array.format,                                              \
                                        .channels = array.channels });                                       \
    }
ARRAY(array_create, array_2d, 1)
ARRAY(array_create_v1, array_2d_v1, 1)
ARRAY(array_create_3d, array_3d, array.depth)
ARRAY(array_create_3d_v1, array_3d_v1, array.depth)

static uint64_t halved(uint64_t n)
{
    return n > 1 ? n / 2 : n;
}

/* (array *, CUDA_ARRAY3D_DESCRIPTOR *, levels). In each dimension, a mipmap level is half as large as the
 * previous level. In layered arrays and cubemaps, the depth is the number of layers, which is the same for
 * all levels. */
void ct_decode_array_create_mipmapped(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    enum { LAYERED = 1, CUBEMAP = 4, LEVELS_MAX = 64 };
    struct array_3d array;
    if (!in_bytes(frame, 1, &array, sizeof(array)))
        return;
    struct extent level = {
        .width = array.width,
        .height = array.height,
        .depth = array.depth,
        .format = array.format,
        .channels = array.channels,
    };
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < (uint32_t)ct_argument(frame, 2) && i < LEVELS_MAX; i++) {
        bytes += extent_bytes(&level);
        level.width = halved(level.width);
        level.height = halved(level.height);
        if (!(array.flags & (LAYERED | CUBEMAP)))
            level.depth = halved(level.depth);
    }
    array_allocated(decoded, out(frame, 0), bytes);
}

void ct_decode_array_destroy(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    if (succeeded(frame) && ct_array_element_bytes(ct_argument(frame, 0)) && ct_table_lock()) {
        ct_table_set(&element_bytes, ct_argument(frame, 0), 0);
        ct_table_unlock();
    }
    ct_decode_freed(frame, decoded, CT_ALLOC_ARRAY, ct_argument(frame, 0), 0);
}

uint64_t ct_array_element_bytes(uint64_t array)
{
    return ct_table_get(&element_bytes, array);
}
