/* Decoders for memory copies and memsets. They read the direction, size, addresses and stream from the
 * various argument lists. */
#include "addresses.h"
#include "decode.h"

/* ---- copies ---- */

struct transfer {
    uint64_t destination, source, bytes, stream;
    bool async;
    uint32_t more; /* number of copies in a batch, not counting the first */
};

static void transferred(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_transfer_kind kind,
                        struct transfer t)
{
    decoded->kind = CT_KIND_TRANSFER;
    decoded->payload_bytes = sizeof(decoded->payload.transfer);
    decoded->value = t.bytes;
    decoded->payload.transfer = (struct ct_transfer){
        .stream = stream_of(frame, t.stream),
        .source = t.source,
        .destination = t.destination,
        .transfer = (uint8_t)kind,
        .async = t.async,
    };
    /* A copy of 0 bytes does not become a graph node (driver 580.159.04). */
    if (t.async)
        decoded->flags =
            ct_decode_captured_as(frame, t.stream, kind == CT_TRANSFER_SET ? CT_NODE_MEMSET : CT_NODE_MEMCPY,
                                  t.bytes ? 1 + t.more : 0);
}

/* Which side of the bus a piece of memory is on. */
enum side { SIDE_UNKNOWN, SIDE_HOST, SIDE_DEVICE };

static enum ct_transfer_kind kind_of(enum side source, enum side destination)
{
    static const uint8_t kinds[3][3] = {
        [SIDE_HOST] = { [SIDE_HOST] = CT_TRANSFER_HTOH, [SIDE_DEVICE] = CT_TRANSFER_HTOD },
        [SIDE_DEVICE] = { [SIDE_HOST] = CT_TRANSFER_DTOH, [SIDE_DEVICE] = CT_TRANSFER_DTOD },
    };
    return (enum ct_transfer_kind)kinds[source][destination];
}

/* Determines the side of an address from the recorded allocations. Memory that is not device memory is host
 * memory. */
static enum side side_of(uint64_t address)
{
    return !address ? SIDE_UNKNOWN : ct_addresses_are_device(address) ? SIDE_DEVICE : SIDE_HOST;
}

/* `type` is the CUmemorytype in a copy's descriptor (1 host, 2 device, 3 array, 4 unified). */
static enum side side_of_type(uint32_t type, uint64_t address)
{
    switch (type) {
    case 1:
        return SIDE_HOST;
    case 2:
    case 3:
        return SIDE_DEVICE;
    case 4:
        return side_of(address);
    default:
        return SIDE_UNKNOWN;
    }
}

/* Linear copies. A row gives the positions of the destination, source, size and stream in the argument list,
 * or NO for an argument that does not exist. */
enum { NO = -1 };
#define ARGUMENT(i)   ((i) == NO ? 0 : frame->args[(i) == NO ? 0 : (i)])
#define ARGUMENT32(i) ((uint32_t)ARGUMENT(i))

#define COPY(name, kind, destination_at, source_at, bytes_at, stream_at)                                     \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        transferred(frame, decoded, kind,                                                                    \
                    (struct transfer){ .destination = ARGUMENT(destination_at),                              \
                                       .source = ARGUMENT(source_at),                                        \
                                       .bytes = ARGUMENT(bytes_at),                                          \
                                       .stream = ARGUMENT(stream_at),                                        \
                                       .async = (stream_at) != NO });                                        \
    }
/* The first versions of these functions take 32-bit device addresses and sizes, and callers leave the upper
 * halves of the registers unset. */
#define COPY_V1(name, kind, destination_at, source_at, bytes_at, stream_at)                                  \
    void ct_decode_##name##_v1(const struct ct_frame *frame, struct ct_decoded *decoded)                     \
    {                                                                                                        \
        const bool from_host = (kind) == CT_TRANSFER_HTOD, to_host = (kind) == CT_TRANSFER_DTOH;             \
        transferred(frame, decoded, kind,                                                                    \
                    (struct transfer){ .destination =                                                        \
                                           to_host ? ARGUMENT(destination_at) : ARGUMENT32(destination_at),  \
                                       .source = from_host ? ARGUMENT(source_at) : ARGUMENT32(source_at),    \
                                       .bytes = ARGUMENT32(bytes_at),                                        \
                                       .stream = ARGUMENT(stream_at),                                        \
                                       .async = (stream_at) != NO });                                        \
    }
#define COPIES(name, kind, destination_at, source_at, bytes_at)                                              \
    COPY(name, kind, destination_at, source_at, bytes_at, NO)                                                \
    COPY_V1(name, kind, destination_at, source_at, bytes_at, NO)
#define COPIES_ASYNC(name, kind, destination_at, source_at, bytes_at, stream_at)                             \
    COPIES(name, kind, destination_at, source_at, bytes_at)                                                  \
    COPY(name##_async, kind, destination_at, source_at, bytes_at, stream_at)                                 \
    COPY_V1(name##_async, kind, destination_at, source_at, bytes_at, stream_at)

COPY(copy, kind_of(side_of(frame->args[1]), side_of(frame->args[0])), 0, 1, 2, NO)
COPY(copy_async, kind_of(side_of(frame->args[1]), side_of(frame->args[0])), 0, 1, 2, 3)
COPY(copy_peer, CT_TRANSFER_PTOP, 0, 2, 4, NO)
COPY(copy_peer_async, CT_TRANSFER_PTOP, 0, 2, 4, 5)
COPIES_ASYNC(copy_htod, CT_TRANSFER_HTOD, 0, 1, 2, 3)
COPIES_ASYNC(copy_dtoh, CT_TRANSFER_DTOH, 0, 1, 2, 3)
COPIES_ASYNC(copy_dtod, CT_TRANSFER_DTOD, 0, 1, 2, 3)
COPIES(copy_dtoa, CT_TRANSFER_DTOD, NO, 2, 3)
COPIES(copy_atod, CT_TRANSFER_DTOD, 0, NO, 3)
COPIES_ASYNC(copy_htoa, CT_TRANSFER_HTOD, NO, 2, 3, 4)
COPIES_ASYNC(copy_atoh, CT_TRANSFER_DTOH, 0, NO, 3, 4)
COPIES(copy_atoa, CT_TRANSFER_DTOD, NO, NO, 4)

struct copy_side {
    uint32_t type;
    uint64_t host, device;
};

static uint64_t side_address(const struct copy_side *side)
{
    return side->type == 1 ? side->host : side->type == 3 ? 0 : side->device;
}

static void copied_block(const struct ct_frame *frame, struct ct_decoded *decoded, struct copy_side source,
                         struct copy_side destination, uint64_t bytes, bool async, bool peer)
{
    const uint64_t from = side_address(&source), to = side_address(&destination);
    transferred(frame, decoded,
                peer ? CT_TRANSFER_PTOP
                     : kind_of(side_of_type(source.type, from), side_of_type(destination.type, to)),
                (struct transfer){ .destination = to,
                                   .source = from,
                                   .bytes = bytes,
                                   .stream = async ? frame->args[1] : 0,
                                   .async = async });
}

/* CUDA_MEMCPY2D and CUDA_MEMCPY3D. `word` has 64 bits, or 32 bits in the first versions of the functions.
 * CUDA_MEMCPY3D_PEER has a context in place of each `reserved` member. */
#define SIDE_2D(side, word)                                                                                  \
    word side##_x, side##_y;                                                                                 \
    uint32_t side##_type;                                                                                    \
    uint64_t side##_host;                                                                                    \
    word side##_device;                                                                                      \
    uint64_t side##_array;                                                                                   \
    word side##_pitch;
#define SIDE_3D(side, word)                                                                                  \
    word side##_x, side##_y, side##_z, side##_lod;                                                           \
    uint32_t side##_type;                                                                                    \
    uint64_t side##_host;                                                                                    \
    word side##_device;                                                                                      \
    uint64_t side##_array, side##_reserved;                                                                  \
    word side##_pitch, side##_height;
#define MEMCPY(name, bytes, side, word, ...)                                                                 \
    struct name {                                                                                            \
        side(source, word) side(destination, word) word __VA_ARGS__;                                         \
    };                                                                                                       \
    static_assert(sizeof(struct name) == (bytes), #name)
MEMCPY(memcpy_2d, 128, SIDE_2D, uint64_t, width, height);
MEMCPY(memcpy_2d_v1, 96, SIDE_2D, uint32_t, width, height);
MEMCPY(memcpy_3d, 200, SIDE_3D, uint64_t, width, height, depth);
MEMCPY(memcpy_3d_v1, 144, SIDE_3D, uint32_t, width, height, depth);

#define SIDE(copy, side)                                                                                     \
    {                                                                                                        \
        copy.side##_type, copy.side##_host, copy.side##_device                                               \
    }
#define COPY_BLOCK(name, type, volume, async, peer)                                                          \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        struct type copy;                                                                                    \
        if (in_bytes(frame, 0, &copy, sizeof(copy)))                                                         \
            copied_block(frame, decoded, (struct copy_side)SIDE(copy, source),                               \
                         (struct copy_side)SIDE(copy, destination), volume, async, peer);                    \
    }
#define AREA   ((uint64_t)copy.width * copy.height)
#define VOLUME ((uint64_t)copy.width * copy.height * copy.depth)

COPY_BLOCK(copy_2d, memcpy_2d, AREA, false, false)
COPY_BLOCK(copy_2d_async, memcpy_2d, AREA, true, false)
COPY_BLOCK(copy_2d_v1, memcpy_2d_v1, AREA, false, false)
COPY_BLOCK(copy_2d_async_v1, memcpy_2d_v1, AREA, true, false)
COPY_BLOCK(copy_3d, memcpy_3d, VOLUME, false, false)
COPY_BLOCK(copy_3d_async, memcpy_3d, VOLUME, true, false)
COPY_BLOCK(copy_3d_v1, memcpy_3d_v1, VOLUME, false, false)
COPY_BLOCK(copy_3d_async_v1, memcpy_3d_v1, VOLUME, true, false)
COPY_BLOCK(copy_3d_peer, memcpy_3d, VOLUME, false, true)
COPY_BLOCK(copy_3d_peer_async, memcpy_3d, VOLUME, true, true)

/* A batch of copies is recorded as a single call, with the total size of all copies, and the direction and
 * addresses of the first. */
static void copied_batch(const struct ct_frame *frame, struct ct_decoded *decoded, uint64_t stream)
{
    const uint64_t sizes = frame->args[2], count = frame->args[3];
    struct transfer t = { .stream = stream, .async = true, .more = (uint32_t)count - 1 };
    if (count == 0 || !sizes || !out_bytes(frame, 0, &t.destination, sizeof(t.destination)) ||
        !out_bytes(frame, 1, &t.source, sizeof(t.source)))
        return;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bytes;
        if (!ct_target_read(sizes + i * sizeof(bytes), &bytes, sizeof(bytes)))
            return;
        t.bytes += bytes;
    }
    transferred(frame, decoded, kind_of(side_of(t.source), side_of(t.destination)), t);
}

void ct_decode_copy_batch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    copied_batch(frame, decoded, ct_argument(frame, 8));
}

void ct_decode_copy_batch_v2(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    copied_batch(frame, decoded, ct_argument(frame, 7));
}

/* CUDA_MEMCPY3D_BATCH_OP_v1. An operand of type 1 is a pointer, and an operand of type 2 is an array. */
struct batch_operand {
    uint32_t type;
    uint64_t pointer_or_array, words[3];
};
struct batch_operation {
    struct batch_operand source, destination;
    uint64_t width, height, depth;
    uint32_t order, flags;
};
static_assert(sizeof(struct batch_operation) == 112, "CUDA_MEMCPY3D_BATCH_OP_v1");

static enum side side_of_operand(const struct batch_operand *operand)
{
    return operand->type == 2 ? SIDE_DEVICE : side_of(operand->pointer_or_array);
}

/* Extents are in array elements if either side of the copy is an array, and otherwise in bytes (cuda.h
 * 13.0). */
static uint64_t operation_bytes(const struct batch_operation *operation)
{
    const struct batch_operand *source = &operation->source, *destination = &operation->destination;
    uint64_t element_bytes = 1;
    if (source->type == 2 || destination->type == 2)
        element_bytes = ct_array_element_bytes(source->type == 2 ? source->pointer_or_array
                                                                 : destination->pointer_or_array);
    return operation->width * operation->height * operation->depth * element_bytes;
}

static void copied_3d_batch(const struct ct_frame *frame, struct ct_decoded *decoded, uint64_t stream)
{
    const uint64_t count = frame->args[0];
    struct batch_operation first, operation;
    if (count == 0 || !out_bytes(frame, 1, &first, sizeof(first)))
        return;
    struct transfer t = { .stream = stream, .async = true, .more = (uint32_t)count - 1 };
    for (uint64_t i = 0; i < count; i++) {
        if (!ct_target_read(frame->args[1] + i * sizeof(operation), &operation, sizeof(operation)))
            return;
        t.bytes += operation_bytes(&operation);
    }
    if (first.source.type != 2)
        t.source = first.source.pointer_or_array;
    if (first.destination.type != 2)
        t.destination = first.destination.pointer_or_array;
    transferred(frame, decoded, kind_of(side_of_operand(&first.source), side_of_operand(&first.destination)),
                t);
}

void ct_decode_copy_3d_batch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    copied_3d_batch(frame, decoded, frame->args[4]);
}

void ct_decode_copy_3d_batch_v2(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    copied_3d_batch(frame, decoded, frame->args[3]);
}

/* ---- sets ---- */

#define SET(name, pointer, bytes_set, stream_at)                                                             \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        transferred(frame, decoded, CT_TRANSFER_SET,                                                         \
                    (struct transfer){ .destination = pointer,                                               \
                                       .bytes = bytes_set,                                                   \
                                       .stream = ARGUMENT(stream_at),                                        \
                                       .async = (stream_at) != NO });                                        \
    }
#define SETS(bits, element)                                                                                  \
    SET(set_d##bits, frame->args[0], frame->args[2] * (element), NO)                                         \
    SET(set_d##bits##_async, frame->args[0], frame->args[2] * (element), 3)                                  \
    SET(set_d##bits##_v1, (uint32_t)frame->args[0], (uint64_t)(uint32_t)frame->args[2] * (element), NO)      \
    SET(set_2d##bits, frame->args[0], frame->args[3] * frame->args[4] * (element), NO)                       \
    SET(set_2d##bits##_async, frame->args[0], frame->args[3] * frame->args[4] * (element), 5)                \
    SET(set_2d##bits##_v1, (uint32_t)frame->args[0],                                                         \
        (uint64_t)(uint32_t)frame->args[3] * (uint32_t)frame->args[4] * (element), NO)

SETS(8, 1)
SETS(16, 2)
SETS(32, 4)
