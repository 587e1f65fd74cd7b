/* Decoders for runtime functions. The launches, copies, allocations and releases made by a runtime call are
 * recorded by the driver calls inside it. For traces that contain only the runtime layer, these decoders add
 * the number of bytes where objects.def cannot describe it. The structures are from driver_types.h 13.0, and
 * have the same layout in CUDA 11 and 12. Only the parts of a structure that decoders read are declared. */
#include "decode.h"

void ct_decode_no_status(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)frame;
    decoded->status = 0;
}

static void moved(struct ct_decoded *decoded, uint64_t bytes)
{
    decoded->flags = CT_FLAG_BYTES;
    decoded->value = bytes;
}

struct pitched {
    uint64_t pointer, pitch, width, height;
};
struct extent {
    uint64_t width, height, depth;
};

/* Structures larger than 16 bytes are passed on the stack, one directly after the other. */
void ct_decode_bytes_set_3d(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const struct extent *extent =
        (const struct extent *)(const void *)(frame->stack_args + sizeof(struct pitched) / 8);
    moved(decoded, extent->width * extent->height * extent->depth);
}

void ct_decode_bytes_pitched(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const struct pitched *pitched = (const struct pitched *)frame->args[0];
    const struct extent *extent = (const struct extent *)(const void *)frame->stack_args;
    const uint64_t row = succeeded(frame) && pitched ? pitched->pitch : extent->width;
    moved(decoded, row * extent->height * extent->depth);
}

void ct_decode_bytes_pitch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t *pitch = (const uint64_t *)frame->args[1];
    moved(decoded, (succeeded(frame) && pitch ? *pitch : frame->args[2]) * frame->args[3]);
}

/* Ignores copies from or to an array, because their width is in array elements, and only the driver call
 * records the element size. */
static void moved_3d(struct ct_decoded *decoded, uint64_t source, uint64_t destination, struct extent extent)
{
    if (!source && !destination)
        moved(decoded, extent.width * extent.height * extent.depth);
}

/* `device` declares the field that follows the source and the destination in a peer copy. */
#define COPY_3D(name, device)                                                                                \
    void ct_decode_bytes_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                    \
    {                                                                                                        \
        const struct {                                                                                       \
            struct {                                                                                         \
                uint64_t array, place[3];                                                                    \
                struct pitched pitched;                                                                      \
                device                                                                                       \
            } source, destination;                                                                           \
            struct extent extent;                                                                            \
        } *copy = (const void *)frame->args[0];                                                              \
        if (succeeded(frame) && copy)                                                                        \
            moved_3d(decoded, copy->source.array, copy->destination.array, copy->extent);                    \
    }
COPY_3D(copy_3d, )
COPY_3D(copy_3d_peer, uint64_t device;)

void ct_decode_bytes_batch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t *sizes = (const uint64_t *)frame->args[2];
    uint64_t bytes = 0;
    if (!succeeded(frame) || !sizes)
        return;
    for (uint64_t i = 0; i < frame->args[3]; i++)
        bytes += sizes[i];
    moved(decoded, bytes);
}
