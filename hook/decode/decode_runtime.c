/* What arguments of runtime functions mean. The driver calls inside a runtime call tell what was launched,
 * copied, allocated and freed; here is what a reader of the runtime layer alone would miss: bytes, and the
 * streams and events that a call waits for or orders. Structures are declared as far as they are read, from
 * driver_types.h 13.0; those of CUDA 11 and 12 are laid out alike. */
#include "decode.h"

void ct_decode_no_status(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)frame;
    decoded->status = 0;
}

/* cudaGetDriverEntryPoint(symbol, function *, …): libcudart asks cuGetProcAddress, whose answers are stubs
 * already, unless it knew the function before the hook could look. */
void ct_decode_entry_point(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    void **pointer = (void **)frame->args[1];
    if (!succeeded(frame) || !pointer || !ct_functions_resolve())
        return;
    void *stub = ct_functions_stub(*pointer);
    if (stub)
        *pointer = stub;
}

/* ---- bytes ---- */

static void moved(struct ct_decoded *decoded, uint64_t bytes)
{
    decoded->flags = CT_FLAG_BYTES;
    decoded->value = bytes;
}

#define BYTES(name, bytes)                                                                                   \
    void ct_decode_bytes_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                    \
    {                                                                                                        \
        moved(decoded, bytes);                                                                               \
    }

BYTES(1, ct_argument(frame, 1))
BYTES(2, ct_argument(frame, 2))
BYTES(4, ct_argument(frame, 4))
BYTES(6, ct_argument(frame, 6))
BYTES(3x4, ct_argument(frame, 3) * ct_argument(frame, 4))
BYTES(4x5, ct_argument(frame, 4) * ct_argument(frame, 5))
BYTES(5x6, ct_argument(frame, 5) * ct_argument(frame, 6))
BYTES(6x7, ct_argument(frame, 6) * ct_argument(frame, 7))

struct pitched {
    uint64_t pointer, pitch, width, height;
};
struct extent {
    uint64_t width, height, depth;
};

/* Structures by value are larger than 16 bytes and so on the stack, one after the other. */
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

/* Where an array takes part, the width is in its elements, whose size the driver call knows. */
static void moved_3d(struct ct_decoded *decoded, uint64_t source, uint64_t destination, struct extent extent)
{
    if (!source && !destination)
        moved(decoded, extent.width * extent.height * extent.depth);
}

void ct_decode_bytes_copy_3d(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const struct {
        uint64_t source_array, source_place[3];
        struct pitched source;
        uint64_t destination_array, destination_place[3];
        struct pitched destination;
        struct extent extent;
    } *copy = (const void *)frame->args[0];
    if (succeeded(frame) && copy)
        moved_3d(decoded, copy->source_array, copy->destination_array, copy->extent);
}

void ct_decode_bytes_copy_3d_peer(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const struct {
        uint64_t source_array, source_place[3];
        struct pitched source;
        uint64_t source_device;
        uint64_t destination_array, destination_place[3];
        struct pitched destination;
        uint64_t destination_device;
        struct extent extent;
    } *copy = (const void *)frame->args[0];
    if (succeeded(frame) && copy)
        moved_3d(decoded, copy->source_array, copy->destination_array, copy->extent);
}

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

/* ---- streams and events ---- */

static void about(struct ct_decoded *decoded, struct ct_objects objects)
{
    decoded->kind = CT_KIND_OBJECTS;
    decoded->payload_slots = 1;
    decoded->payload.objects = objects;
}

void ct_decode_stream_and_event(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, (struct ct_objects){ .handle = { stream_of(frame, frame->args[0]), frame->args[1] },
                                        .role = { CT_ROLE_stream, CT_ROLE_event } });
}

void ct_decode_event_and_stream(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, (struct ct_objects){ .handle = { frame->args[0], stream_of(frame, frame->args[1]) },
                                        .role = { CT_ROLE_event, CT_ROLE_stream } });
}

void ct_decode_two_events(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, (struct ct_objects){ .handle = { frame->args[1], frame->args[2] },
                                        .role = { CT_ROLE_event, CT_ROLE_event } });
}
