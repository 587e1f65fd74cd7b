/* What arguments mean. Each function here reads one shape of argument list; hook/function/driver_api.def says which
 * functions have it. Structures of the driver are declared as far as they are read, from cuda.h 13.0.
 *
 * A decoder runs after the real call, on the application's thread: what the driver wrote is read when the
 * call succeeded, what it read when it came to read it. */
#include "decode.h"
#include "addresses.h"
#include "object_names.h"

#include <string.h>

/* ---- memory ---- */

/* Whether an allocation's addresses are the device's; mapped memory lies in addresses that were reserved. */
static bool on_device(enum ct_alloc_kind kind)
{
    return kind == CT_ALLOC_DEVICE || kind == CT_ALLOC_MANAGED || kind == CT_ALLOC_POOL ||
           kind == CT_ALLOC_IPC || kind == CT_ALLOC_EXTERNAL || kind == CT_ALLOC_RESERVED;
}

void ct_decode_allocated(struct ct_decoded *decoded, enum ct_alloc_kind kind, uint64_t address,
                         uint64_t bytes)
{
    if (address && on_device(kind))
        ct_memory_learn(address, bytes);
    decoded->kind = CT_KIND_ALLOC;
    decoded->payload_slots = 1;
    decoded->value = bytes;
    decoded->payload.alloc = (struct ct_alloc){ .address = address, .alloc = (uint8_t)kind };
}

/* What the driver wrote behind the first argument, 0 when the call failed. */
static uint64_t out64(const struct ct_frame *frame)
{
    const uint64_t *pointer = (const uint64_t *)frame->args[0];
    return succeeded(frame) && pointer ? *pointer : 0;
}

static uint64_t out32(const struct ct_frame *frame)
{
    const uint32_t *pointer = (const uint32_t *)frame->args[0];
    return succeeded(frame) && pointer ? *pointer : 0;
}

#define ALLOC(name, kind, address, bytes)                                                                    \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        ct_decode_allocated(decoded, kind, address, bytes);                                                  \
    }

ALLOC(alloc, CT_ALLOC_DEVICE, out64(frame), frame->args[1])
ALLOC(alloc_v1, CT_ALLOC_DEVICE, out32(frame), (uint32_t)frame->args[1])
ALLOC(alloc_managed, CT_ALLOC_MANAGED, out64(frame), frame->args[1])
ALLOC(alloc_host, CT_ALLOC_HOST, out64(frame), frame->args[1])
ALLOC(alloc_host_v1, CT_ALLOC_HOST, out64(frame), (uint32_t)frame->args[1])
ALLOC(host_register, CT_ALLOC_REGISTERED, succeeded(frame) ? frame->args[0] : 0, frame->args[1])

void ct_decode_alloc_pitch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t *pitch = (const uint64_t *)frame->args[1];
    ct_decode_allocated(decoded, CT_ALLOC_DEVICE, out64(frame),
                        (succeeded(frame) && pitch ? *pitch : frame->args[2]) * frame->args[3]);
}

void ct_decode_alloc_pitch_v1(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint32_t *pitch = (const uint32_t *)frame->args[1];
    ct_decode_allocated(decoded, CT_ALLOC_DEVICE, out32(frame),
                        (uint64_t)(succeeded(frame) && pitch ? *pitch : (uint32_t)frame->args[2]) *
                            (uint32_t)frame->args[3]);
}

void ct_decode_alloc_async(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_allocated(decoded, CT_ALLOC_POOL, out64(frame), frame->args[1]);
    decoded->payload.alloc.stream = stream_of(frame, frame->args[2]);
    decoded->flags = ct_decode_captured_as(frame, frame->args[2], CT_NODE_MEM_ALLOC, 1);
}

void ct_decode_alloc_from_pool(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_allocated(decoded, CT_ALLOC_POOL, out64(frame), frame->args[1]);
    decoded->payload.alloc.pool = frame->args[2];
    decoded->payload.alloc.stream = stream_of(frame, frame->args[3]);
    decoded->flags = ct_decode_captured_as(frame, frame->args[3], CT_NODE_MEM_ALLOC, 1);
}

void ct_decode_freed(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_alloc_kind kind,
                     uint64_t address, uint64_t bytes)
{
    if (succeeded(frame) && on_device(kind))
        ct_memory_forget(address, frame->producer ? frame->start : UINT64_MAX);
    decoded->kind = CT_KIND_ALLOC;
    decoded->payload_slots = 1;
    decoded->flags = CT_FLAG_FREE;
    decoded->value = bytes;
    decoded->payload.alloc = (struct ct_alloc){ .address = address, .alloc = (uint8_t)kind };
}

void ct_decode_free(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_freed(frame, decoded, CT_ALLOC_DEVICE, frame->args[0], 0);
}

void ct_decode_free_v1(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_freed(frame, decoded, CT_ALLOC_DEVICE, (uint32_t)frame->args[0], 0);
}

void ct_decode_free_async(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_freed(frame, decoded, CT_ALLOC_POOL, frame->args[0], 0);
    decoded->payload.alloc.stream = stream_of(frame, frame->args[1]);
    decoded->flags |= ct_decode_captured_as(frame, frame->args[1], CT_NODE_MEM_FREE, 1);
}

void ct_decode_host_unregister(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_freed(frame, decoded, CT_ALLOC_REGISTERED, frame->args[0], 0);
}

/* ---- launches ---- */

static void launched(const struct ct_frame *frame, struct ct_decoded *decoded, uint64_t function,
                     uint64_t stream, struct ct_launch launch)
{
    decoded->kind = CT_KIND_LAUNCH;
    decoded->payload_slots = 1;
    decoded->value = stream_of(frame, stream);
    decoded->flags = ct_decode_captured_as(frame, stream, CT_NODE_KERNEL, 1);
    decoded->payload.launch = launch;
    decoded->payload.launch.kernel = ct_names_kernel(function, frame->producer, succeeded(frame));
}

void ct_decode_launch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint32_t block_z = (uint32_t)ct_argument(frame, 6);
    launched(frame, decoded, frame->args[0], ct_argument(frame, 8),
             (struct ct_launch){
                 .grid = { (uint32_t)frame->args[1], (uint32_t)frame->args[2], (uint32_t)frame->args[3] },
                 .block = { (uint32_t)frame->args[4], (uint32_t)frame->args[5], block_z },
                 .shared_bytes = (uint32_t)ct_argument(frame, 7),
             });
}

void ct_decode_launch_ex(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const struct ct_launch_config *config = (const struct ct_launch_config *)frame->args[0];
    if (!config || !inspected(frame))
        return;
    struct ct_launch launch = { .shared_bytes = config->shared_bytes };
    memcpy(launch.grid, config->grid, sizeof(launch.grid));
    memcpy(launch.block, config->block, sizeof(launch.block));
    launched(frame, decoded, frame->args[1], config->stream, launch);
}

/* The launches of CUDA 3 set the block's shape beforehand: it stays 0 here. */
void ct_decode_launch_one(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    launched(frame, decoded, frame->args[0], 0, (struct ct_launch){ .grid = { 1, 1, 1 } });
}

void ct_decode_launch_grid(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    launched(frame, decoded, frame->args[0], 0,
             (struct ct_launch){ .grid = { (uint32_t)frame->args[1], (uint32_t)frame->args[2], 1 } });
}

void ct_decode_launch_grid_async(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    launched(frame, decoded, frame->args[0], frame->args[3],
             (struct ct_launch){ .grid = { (uint32_t)frame->args[1], (uint32_t)frame->args[2], 1 } });
}

/* ---- names ---- */

void ct_decode_get_function(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t handle = out64(frame);
    const char *name = (const char *)frame->args[2];
    if (handle && name)
        ct_names_learn(handle, frame->args[1], name, frame->producer);
}

void ct_decode_kernel_function(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t handle = out64(frame);
    if (handle)
        ct_names_alias(handle, frame->args[1], frame->producer);
}

/* There may be room for more than there is: what stands there is not the driver's. */
void ct_decode_enumerate(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t *handles = (const uint64_t *)frame->args[0];
    bool more = succeeded(frame) && handles;
    for (uint32_t i = 0; more && i < (uint32_t)frame->args[1]; i++)
        more = handles[i] && ct_names_listed(handles[i], frame->args[2], frame->producer);
}

/* (const char **name, function or kernel): what the program asked for. */
void ct_decode_get_name(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const char *const *name = (const char *const *)frame->args[0];
    if (succeeded(frame) && name && *name)
        ct_names_told(frame->args[1], *name, frame->producer);
}

/* A library's module may be asked for functions, which go when the library goes. */
void ct_decode_library_module(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t module = out64(frame);
    if (module)
        ct_decode_add_object(decoded, CT_ROLE_module, module);
    ct_decode_add_object(decoded, CT_ROLE_library, frame->args[1]);
    if (module)
        ct_names_alias(module, frame->args[1], frame->producer);
}

static void unloaded(const struct ct_frame *frame)
{
    if (succeeded(frame))
        ct_names_unload(frame->args[0], frame->producer ? frame->start : UINT64_MAX);
}

void ct_decode_module_unload(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_add_object(decoded, CT_ROLE_module, frame->args[0]);
    unloaded(frame);
}

void ct_decode_library_unload(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_add_object(decoded, CT_ROLE_library, frame->args[0]);
    unloaded(frame);
}

/* What was loaded in the context is gone. Releasing a primary context is not among the ends: it has more
 * holders than can be seen. */
void ct_decode_context_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_add_object(decoded, CT_ROLE_context, frame->args[0]);
    if (succeeded(frame)) {
        ct_names_doubt();
        ct_named_end(CT_ROLE_context, frame->args[0], frame->producer);
    }
}

void ct_decode_device_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_add_object(decoded, CT_ROLE_device, (uint64_t)(int64_t)(int32_t)frame->args[0]);
    if (succeeded(frame))
        ct_names_doubt();
}
