/* Decoders for memory allocation and release by cuMemAlloc and related functions. */
#include "decode.h"

/* Like out(), for a 32-bit address in argument 0. */
static uint64_t out32(const struct ct_frame *frame)
{
    uint32_t address;
    return out_bytes(frame, 0, &address, sizeof(address)) ? address : 0;
}

ALLOCATED(alloc, CT_ALLOC_DEVICE, out(frame, 0), frame->args[1])
ALLOCATED(alloc_v1, CT_ALLOC_DEVICE, out32(frame), (uint32_t)frame->args[1])
ALLOCATED(alloc_managed, CT_ALLOC_MANAGED, out(frame, 0), frame->args[1])
ALLOCATED(alloc_host, CT_ALLOC_HOST, out(frame, 0), frame->args[1])
ALLOCATED(alloc_host_v1, CT_ALLOC_HOST, out(frame, 0), (uint32_t)frame->args[1])
ALLOCATED(host_register, CT_ALLOC_REGISTERED, succeeded(frame) ? frame->args[0] : 0, frame->args[1])

void ct_decode_alloc_pitch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    uint64_t pitch;
    if (!out_bytes(frame, 1, &pitch, sizeof(pitch)))
        pitch = frame->args[2];
    ct_decode_allocated(decoded, CT_ALLOC_DEVICE, out(frame, 0), pitch * frame->args[3]);
}

void ct_decode_alloc_pitch_v1(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    uint32_t pitch;
    if (!out_bytes(frame, 1, &pitch, sizeof(pitch)))
        pitch = (uint32_t)frame->args[2];
    ct_decode_allocated(decoded, CT_ALLOC_DEVICE, out32(frame), (uint64_t)pitch * (uint32_t)frame->args[3]);
}

void ct_decode_alloc_async(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_allocated(decoded, CT_ALLOC_POOL, out(frame, 0), frame->args[1]);
    decoded->payload.alloc.stream = stream_of(frame, frame->args[2]);
    decoded->flags = ct_decode_captured_as(frame, frame->args[2], CT_NODE_MEM_ALLOC, 1);
}

void ct_decode_alloc_from_pool(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_allocated(decoded, CT_ALLOC_POOL, out(frame, 0), frame->args[1]);
    decoded->payload.alloc.pool = frame->args[2];
    decoded->payload.alloc.stream = stream_of(frame, frame->args[3]);
    decoded->flags = ct_decode_captured_as(frame, frame->args[3], CT_NODE_MEM_ALLOC, 1);
}

FREED(free, CT_ALLOC_DEVICE, frame->args[0], 0)
FREED(free_v1, CT_ALLOC_DEVICE, (uint32_t)frame->args[0], 0)
FREED(host_unregister, CT_ALLOC_REGISTERED, frame->args[0], 0)

void ct_decode_free_async(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_freed(frame, decoded, CT_ALLOC_POOL, frame->args[0], 0);
    decoded->payload.alloc.stream = stream_of(frame, frame->args[1]);
    decoded->flags |= ct_decode_captured_as(frame, frame->args[1], CT_NODE_MEM_FREE, 1);
}
