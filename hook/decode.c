/* What arguments mean. Each function here reads one shape of argument list; hook/driver_api.def says which
 * functions have it. Structures of the driver are declared as far as they are read, from cuda.h 13.0.
 *
 * A decoder runs after the real call, on the application's thread: what the driver wrote is read when the
 * call succeeded, what it read when it came to read it. */
#include "decode.h"

#include "role.h"

#include <string.h>
#include <sys/mman.h>

/* ---- stream capture ---- */

/* Streams being captured in this process. While it is 0, as nearly always, nothing is asked of the driver. */
static _Atomic int32_t captures;

/* Whether `stream` is being captured: the calls on it become graph nodes. cuStreamIsCapturing may be called
 * during a capture; it neither synchronises nor ends it. */
uint8_t ct_decode_captured(const struct ct_frame *frame, uint64_t stream)
{
    if (CT_LIKELY(atomic_load_explicit(&captures, memory_order_relaxed) <= 0))
        return 0;
    const bool per_thread = ct_rows[frame->row].flags & CT_ROW_PER_THREAD;
    ct_status (*is_capturing)(uint64_t, int32_t *) = (ct_status(*)(uint64_t, int32_t *))(uintptr_t)ct_real(
        per_thread ? CT_ROW_cuStreamIsCapturing_ptsz : CT_ROW_cuStreamIsCapturing);
    int32_t status = 0;
    return is_capturing && is_capturing(stream, &status) == 0 && status == 1 ? CT_FLAG_CAPTURED : 0;
}

void ct_decode_capture_begin(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    if (succeeded(frame))
        atomic_fetch_add_explicit(&captures, 1, memory_order_relaxed);
    ct_decode_stream(frame, decoded);
}

/* Ends the capture whatever it returns, but for a stream that was not captured or is another thread's. */
void ct_decode_capture_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const ct_status not_capturing = 1; /* CUDA_ERROR_INVALID_VALUE; 900-909 are the captures' own errors */
    const ct_status wrong_thread = 908, illegal_state = 401;
    const ct_status status = (ct_status)frame->result;
    if (status != not_capturing && status != wrong_thread && status != illegal_state)
        atomic_fetch_sub_explicit(&captures, 1, memory_order_relaxed);
    ct_decode_stream(frame, decoded);
}

/* ---- handles ---- */

static void about(struct ct_decoded *decoded, enum ct_role role, uint64_t handle)
{
    decoded->kind = CT_KIND_OBJECTS;
    decoded->payload_slots = 1;
    decoded->payload.objects = (struct ct_objects){ .handle = { handle }, .role = { (uint8_t)role } };
}

void ct_decode_context(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_context, frame->args[0]);
}

void ct_decode_event(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_event, frame->args[0]);
}

void ct_decode_stream(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_stream, stream_of(frame, frame->args[0]));
}

void ct_decode_context_out(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t *handle = (const uint64_t *)frame->args[0];
    if (succeeded(frame) && handle)
        about(decoded, CT_ROLE_context, *handle);
}

/* ---- memory ---- */

static void allocated(struct ct_decoded *decoded, enum ct_alloc_kind kind, uint64_t address, uint64_t bytes)
{
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
        allocated(decoded, kind, address, bytes);                                                            \
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
    allocated(decoded, CT_ALLOC_DEVICE, out64(frame),
              (succeeded(frame) && pitch ? *pitch : frame->args[2]) * frame->args[3]);
}

void ct_decode_alloc_pitch_v1(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint32_t *pitch = (const uint32_t *)frame->args[1];
    allocated(decoded, CT_ALLOC_DEVICE, out32(frame),
              (uint64_t)(succeeded(frame) && pitch ? *pitch : (uint32_t)frame->args[2]) *
                  (uint32_t)frame->args[3]);
}

void ct_decode_alloc_async(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    allocated(decoded, CT_ALLOC_POOL, out64(frame), frame->args[1]);
    decoded->payload.alloc.stream = stream_of(frame, frame->args[2]);
    decoded->flags = ct_decode_captured(frame, frame->args[2]);
}

void ct_decode_alloc_from_pool(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    allocated(decoded, CT_ALLOC_POOL, out64(frame), frame->args[1]);
    decoded->payload.alloc.pool = frame->args[2];
    decoded->payload.alloc.stream = stream_of(frame, frame->args[3]);
    decoded->flags = ct_decode_captured(frame, frame->args[3]);
}

static void freed(struct ct_decoded *decoded, enum ct_alloc_kind kind, uint64_t address)
{
    allocated(decoded, kind, address, 0);
    decoded->flags = CT_FLAG_FREE;
}

void ct_decode_free(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    freed(decoded, CT_ALLOC_DEVICE, frame->args[0]);
}

void ct_decode_free_v1(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    freed(decoded, CT_ALLOC_DEVICE, (uint32_t)frame->args[0]);
}

void ct_decode_free_async(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    freed(decoded, CT_ALLOC_DEVICE, frame->args[0]);
    decoded->payload.alloc.stream = stream_of(frame, frame->args[1]);
    decoded->flags |= ct_decode_captured(frame, frame->args[1]);
}

void ct_decode_host_unregister(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    freed(decoded, CT_ALLOC_REGISTERED, frame->args[0]);
}

/* ---- launches ---- */

static void launched(const struct ct_frame *frame, struct ct_decoded *decoded, uint64_t function,
                     uint64_t stream, struct ct_launch launch)
{
    decoded->kind = CT_KIND_LAUNCH;
    decoded->payload_slots = 1;
    decoded->value = stream_of(frame, stream);
    decoded->flags = ct_decode_captured(frame, stream);
    decoded->payload.launch = launch;
    /* The handle of a launch that failed may be none: the driver is not asked about it. */
    decoded->payload.launch.kernel = ct_names_kernel(function, frame->producer, succeeded(frame));
}

void ct_decode_launch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t *stack = frame->stack_args;
    launched(frame, decoded, frame->args[0], stack[2],
             (struct ct_launch){
                 .grid = { (uint32_t)frame->args[1], (uint32_t)frame->args[2], (uint32_t)frame->args[3] },
                 .block = { (uint32_t)frame->args[4], (uint32_t)frame->args[5], (uint32_t)stack[0] },
                 .shared_bytes = (uint32_t)stack[1],
             });
}

/* CUlaunchConfig */
struct launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    uint64_t stream;
};

void ct_decode_launch_ex(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const struct launch_config *config = (const struct launch_config *)frame->args[0];
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

/* Handles whose names the driver was not asked for: whatever was known of them is about a predecessor. */
void ct_decode_enumerate(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t *handles = (const uint64_t *)frame->args[0];
    for (uint32_t i = 0; succeeded(frame) && handles && i < (uint32_t)frame->args[1]; i++)
        ct_names_learn(handles[i], frame->args[2], NULL, frame->producer);
}

/* A library's module may be asked for functions, which go when the library goes. */
void ct_decode_library_module(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_library, frame->args[1]);
    const uint64_t module = out64(frame);
    if (module)
        ct_names_learn(module, frame->args[1], NULL, frame->producer);
}

static void unloaded(const struct ct_frame *frame)
{
    if (succeeded(frame))
        ct_names_unload(frame->args[0], frame->producer ? frame->start : UINT64_MAX);
}

void ct_decode_module_unload(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_module, frame->args[0]);
    unloaded(frame);
}

void ct_decode_library_unload(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_library, frame->args[0]);
    unloaded(frame);
}

void ct_decode_context_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_context, frame->args[0]);
    ct_names_doubt();
}

void ct_decode_device_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    about(decoded, CT_ROLE_device, (uint32_t)frame->args[0]);
    ct_names_doubt();
}

/* ---- graphs ---- */

enum { NODE_KERNEL = 0, NODE_GRAPH = 4, GRAPH_DEPTH_MAX = 16 }; /* CUgraphNodeType */

/* Kernel nodes of a graph, child graphs included. The driver's look-ups want an array of the nodes: it lies
 * in a map of its own, since there is no malloc here. */
static uint32_t count_kernel_nodes(uint64_t graph, int depth)
{
    typedef ct_status get_nodes_function(uint64_t graph, uint64_t * nodes, uint64_t * count);
    typedef ct_status get_type_function(uint64_t node, int32_t * type);
    typedef ct_status get_child_function(uint64_t node, uint64_t * graph);
    get_nodes_function *get_nodes = (get_nodes_function *)(uintptr_t)ct_real(CT_ROW_cuGraphGetNodes);
    get_type_function *get_type = (get_type_function *)(uintptr_t)ct_real(CT_ROW_cuGraphNodeGetType);
    get_child_function *get_child =
        (get_child_function *)(uintptr_t)ct_real(CT_ROW_cuGraphChildGraphNodeGetGraph);
    uint64_t count = 0;
    if (depth > GRAPH_DEPTH_MAX || !get_nodes || !get_type || !get_child ||
        get_nodes(graph, NULL, &count) != 0 || count == 0)
        return 0;
    uint64_t *nodes =
        mmap(NULL, count * sizeof(*nodes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return 0;
    uint32_t kernels = 0;
    const uint64_t room = count;
    if (get_nodes(graph, nodes, &count) == 0) {
        for (uint64_t i = 0; i < count && i < room; i++) {
            int32_t type = -1;
            uint64_t child = 0;
            if (get_type(nodes[i], &type) != 0)
                continue;
            if (type == NODE_KERNEL)
                kernels++;
            else if (type == NODE_GRAPH && get_child(nodes[i], &child) == 0)
                kernels += count_kernel_nodes(child, depth + 1);
        }
    }
    munmap(nodes, room * sizeof(*nodes));
    return kernels;
}

void ct_decode_graph_instantiate(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t exec = out64(frame);
    if (exec)
        ct_graphs_learn(exec, count_kernel_nodes(frame->args[1], 0));
}

void ct_decode_graph_launch(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    decoded->kind = CT_KIND_GRAPH;
    decoded->payload_slots = 1;
    decoded->value = stream_of(frame, frame->args[1]);
    decoded->flags = ct_decode_captured(frame, frame->args[1]);
    decoded->payload.graph = (struct ct_graph_launch){
        .exec = frame->args[0],
        .kernel_nodes = ct_graphs_kernel_nodes(frame->args[0]),
    };
}
