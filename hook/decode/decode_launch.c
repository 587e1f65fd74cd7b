/* Decoders for kernel launches, which read the kernel, the grid and block dimensions, and the stream. */
#include "decode.h"
#include "kernel_names.h"

/* Returns the string ID of the kernel's name. The first successful launch of a kernel without a known name
 * queries the driver. Only then is it certain that the handle is valid. */
static uint32_t name_of(const struct ct_frame *frame, uint64_t function)
{
    struct ct_producer *producer = frame->producer;
    const char *name;
    const uint32_t known = ct_names_kernel(function, producer, succeeded(frame));
    if (known || !succeeded(frame) || !producer || !producer->lane || !ct_names_query(function))
        return known;
    const enum ct_name_query query = ct_target_kernel_name(function, &name);
    if (query == CT_NAME_LATER)
        *ct_kernel_memo(producer, function) = (struct ct_kernel_memo){ 0 };
    if (query != CT_NAME_QUERIED)
        return 0;
    ct_names_told(function, name, producer);
    return ct_names_kernel(function, producer, true);
}

static void launched(const struct ct_frame *frame, struct ct_decoded *decoded, uint64_t function,
                     uint64_t stream, struct ct_launch launch)
{
    decoded->kind = CT_KIND_LAUNCH;
    decoded->payload_bytes = sizeof(decoded->payload.launch);
    decoded->value = stream_of(frame, stream);
    decoded->flags = ct_decode_captured_as(frame, stream, CT_NODE_KERNEL, 1);
    decoded->payload.launch = launch;
    decoded->payload.launch.kernel = name_of(frame, function);
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
    struct ct_launch_config config;
    if (!in_bytes(frame, 0, &config, sizeof(config)))
        return;
    struct ct_launch launch = { .shared_bytes = config.shared_bytes };
    memcpy(launch.grid, config.grid, sizeof(launch.grid));
    memcpy(launch.block, config.block, sizeof(launch.block));
    launched(frame, decoded, frame->args[1], config.stream, launch);
}

/* With the launch functions of CUDA 3, an earlier call sets the block dimensions, which are therefore left 0
 * here. */
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
