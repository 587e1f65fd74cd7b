#include "decode.h"

#include "addresses.h"
#include "graphs.h"

uint8_t ct_decode_captured(const struct ct_frame *frame, uint64_t stream)
{
    return CT_UNLIKELY(ct_capturing()) && ct_capture_active(stream_of(frame, stream)) ? CT_FLAG_CAPTURED : 0;
}

uint8_t ct_decode_captured_as(const struct ct_frame *frame, uint64_t stream, enum ct_node_kind kind,
                              uint32_t count)
{
    const uint8_t captured = ct_decode_captured(frame, stream);
    if (captured && succeeded(frame))
        ct_capture_add(stream_of(frame, stream), kind, count);
    return captured;
}

void ct_decode_add_object(struct ct_decoded *decoded, enum ct_role role, uint64_t handle)
{
    struct ct_objects *objects = &decoded->payload.objects;
    if (role == CT_ROLE_none)
        return;
    decoded->kind = CT_KIND_OBJECTS;
    decoded->payload_bytes = sizeof(decoded->payload.objects);
    for (int i = 0; i < CT_OBJECTS_MAX; i++) {
        if (objects->role[i] == CT_ROLE_none) {
            objects->role[i] = (uint8_t)role;
            objects->handle[i] = handle;
            return;
        }
    }
}

/* True for kinds of allocation that create new device addresses. CT_ALLOC_MAPPED does not, since it maps
 * memory at addresses that are already reserved. */
static bool on_device(enum ct_alloc_kind kind)
{
    return kind == CT_ALLOC_DEVICE || kind == CT_ALLOC_MANAGED || kind == CT_ALLOC_POOL ||
           kind == CT_ALLOC_IPC || kind == CT_ALLOC_EXTERNAL || kind == CT_ALLOC_RESERVED;
}

void ct_decode_allocated(struct ct_decoded *decoded, enum ct_alloc_kind kind, uint64_t address,
                         uint64_t bytes)
{
    if (address && on_device(kind))
        ct_addresses_learn(address, bytes);
    decoded->kind = CT_KIND_ALLOC;
    decoded->payload_bytes = sizeof(decoded->payload.alloc);
    decoded->value = bytes;
    decoded->payload.alloc = (struct ct_alloc){ .address = address, .alloc = (uint8_t)kind };
}

void ct_decode_freed(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_alloc_kind kind,
                     uint64_t address, uint64_t bytes)
{
    if (succeeded(frame) && on_device(kind))
        ct_addresses_forget(address, began(frame));
    decoded->kind = CT_KIND_ALLOC;
    decoded->payload_bytes = sizeof(decoded->payload.alloc);
    decoded->flags = CT_FLAG_FREE;
    decoded->value = bytes;
    decoded->payload.alloc = (struct ct_alloc){ .address = address, .alloc = (uint8_t)kind };
}
