/*
 * sim_graph_node.c: adding nodes of each type to a graph, and reading and changing what they do.
 */
#include "simcuda.h"

/* ---- From what programs pass to ops. */

static CUresult kernel_op(struct op *op, const CUDA_KERNEL_NODE_PARAMS *params)
{
    *op = (struct op){
        .kind = OP_KERNEL,
        .launch = {
            .grid = { params->gridDimX, params->gridDimY, params->gridDimZ },
            .block = { params->blockDimX, params->blockDimY, params->blockDimZ },
            .shared_bytes = params->sharedMemBytes,
        },
    };
    void *code = params->func ? (void *)params->func : (void *)params->kern;
    CUcontext context = params->ctx;
    if (!context || !context_alive(context))
        context_current(&context);
    const CUresult result = launch_prepare(&op->launch, context, code, params->kernelParams, params->extra);
    return result != CUDA_SUCCESS ? result : op_check(op);
}

static CUresult kernel_op_v1(struct op *op, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    const CUDA_KERNEL_NODE_PARAMS newer = {
        .func = params->func,
        .gridDimX = params->gridDimX,
        .gridDimY = params->gridDimY,
        .gridDimZ = params->gridDimZ,
        .blockDimX = params->blockDimX,
        .blockDimY = params->blockDimY,
        .blockDimZ = params->blockDimZ,
        .sharedMemBytes = params->sharedMemBytes,
        .kernelParams = params->kernelParams,
        .extra = params->extra,
    };
    return kernel_op(op, &newer);
}

static CUresult copy_op(struct op *op, const CUDA_MEMCPY3D *copy)
{
    *op = (struct op){ .kind = OP_COPY, .copy = *copy };
    return op_check(op);
}

static CUresult set_op(struct op *op, const CUDA_MEMSET_NODE_PARAMS *set)
{
    *op = (struct op){ .kind = OP_SET, .set = *set };
    return op_check(op);
}

static CUresult host_op(struct op *op, const CUDA_HOST_NODE_PARAMS *host)
{
    *op = (struct op){ .kind = OP_HOST, .host = *host };
    return op_check(op);
}

static CUresult event_op(struct op *op, enum op_kind kind, CUevent event)
{
    if (!event_of(event))
        return CUDA_ERROR_INVALID_VALUE;
    *op = (struct op){ .kind = kind, .event = { event, event->handle.generation } };
    return CUDA_SUCCESS;
}

static CUresult child_op(struct op *op, CUgraph child)
{
    if (!graph_of(child))
        return CUDA_ERROR_INVALID_VALUE;
    *op = (struct op){ .kind = OP_GRAPH, .child = child };
    return CUDA_SUCCESS;
}

static CUresult free_op(struct op *op, CUdeviceptr address)
{
    *op = (struct op){ .kind = OP_FREE, .address = address };
    return op_check(op);
}

/* Bodies outlive their node: they are few, and the array that the program gets is used again. */
static CUresult conditional_op(struct op *op, const CUgraphNodeParams *params)
{
    enum { BODIES_MAX = 2, NODES_MAX = 16 };
    static CUgraph bodies[NODES_MAX][BODIES_MAX];
    static unsigned used;
    if (params->conditional.size == 0 || params->conditional.size > BODIES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph *const out = bodies[used++ % NODES_MAX];
    for (unsigned i = 0; i < params->conditional.size; i++) {
        const CUresult result = graph_new(&out[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    ((CUgraphNodeParams *)(uintptr_t)params)->conditional.phGraph_out = out;
    *op = (struct op){ .kind = OP_CONDITIONAL };
    return CUDA_SUCCESS;
}

CUresult graph_node_op(struct op *op, const CUgraphNodeParams *params)
{
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_op(op, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_op(op, &params->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_op(op, &params->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_op(op, &params->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return child_op(op, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *op = (struct op){ .kind = OP_EMPTY };
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return event_op(op, OP_WAIT, params->eventWait);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_op(op, OP_RECORD, params->eventRecord);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return free_op(op, params->free);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return conditional_op(op, params);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* ---- Adding. Each takes the lock, checks what all have in common, and adds op unless making it failed. */

static bool lock_graph(const void *out, CUgraph graph, const void *params)
{
    driver_lock();
    if (out && params && graph_of(graph))
        return true;
    driver_release();
    return false;
}

static CUresult add(CUresult made, CUgraphNode *node, CUgraph graph, const struct op *op,
                    const CUgraphNode *after, size_t count)
{
    return driver_unlock(made != CUDA_SUCCESS ? made : graph_add(node, graph, op, after, count));
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct op op;
    if (!lock_graph(node, graph, params))
        return CUDA_ERROR_INVALID_VALUE;
    return add(kernel_op(&op, params), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    struct op op;
    if (!lock_graph(node, graph, params))
        return CUDA_ERROR_INVALID_VALUE;
    return add(kernel_op_v1(&op, params), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  const CUDA_MEMCPY3D *copy, CUcontext context)
{
    struct op op;
    (void)context;
    if (!lock_graph(node, graph, copy))
        return CUDA_ERROR_INVALID_VALUE;
    return add(copy_op(&op, copy), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                  const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
    struct op op;
    (void)context;
    if (!lock_graph(node, graph, set))
        return CUDA_ERROR_INVALID_VALUE;
    return add(set_op(&op, set), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                const CUDA_HOST_NODE_PARAMS *host)
{
    struct op op;
    if (!lock_graph(node, graph, host))
        return CUDA_ERROR_INVALID_VALUE;
    return add(host_op(&op, host), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                      size_t count, CUgraph child)
{
    struct op op;
    if (!lock_graph(node, graph, graph))
        return CUDA_ERROR_INVALID_VALUE;
    return add(child_op(&op, child), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count)
{
    const struct op op = { .kind = OP_EMPTY };
    if (!lock_graph(node, graph, graph))
        return CUDA_ERROR_INVALID_VALUE;
    return add(CUDA_SUCCESS, node, graph, &op, after, count);
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                       size_t count, CUevent event)
{
    struct op op;
    if (!lock_graph(node, graph, graph))
        return CUDA_ERROR_INVALID_VALUE;
    return add(event_op(&op, OP_RECORD, event), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                     CUevent event)
{
    struct op op;
    if (!lock_graph(node, graph, graph))
        return CUDA_ERROR_INVALID_VALUE;
    return add(event_op(&op, OP_WAIT, event), node, graph, &op, after, count);
}

/* The memory is there as long as a node or an executable graph refers to it. */
CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                    CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    CUcontext context;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!node || !params || !graph_of(graph) || params->bytesize == 0)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    struct op op = { .kind = OP_ALLOC };
    result = region_new(&op.region, context, REGION_DEVICE, params->bytesize);
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    result = graph_add(node, graph, &op, after, count);
    if (result != CUDA_SUCCESS)
        region_free(op.region);
    else
        params->dptr = op.region->base;
    return driver_unlock(result);
}

CUresult sim_cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                   CUdeviceptr address)
{
    struct op op;
    if (!lock_graph(node, graph, graph))
        return CUDA_ERROR_INVALID_VALUE;
    return add(free_op(&op, address), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                            CUgraphNodeParams *params)
{
    struct op op;
    if (params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return sim_cuGraphAddMemAllocNode(node, graph, after, count, &params->alloc);
    if (!lock_graph(node, graph, params))
        return CUDA_ERROR_INVALID_VALUE;
    return add(graph_node_op(&op, params), node, graph, &op, after, count);
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                               const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    (void)edges;
    return sim_cuGraphAddNode(node, graph, after, count, params);
}

/* ---- Reading and changing. */

static bool lock_node(CUgraphNode node, enum op_kind kind, const void *params)
{
    driver_lock();
    if (params && node_of(node) && node->op.kind == kind)
        return true;
    driver_release();
    return false;
}

static CUresult change(CUresult made, CUgraphNode node, const struct op *op)
{
    if (made == CUDA_SUCCESS)
        node->op = *op;
    return driver_unlock(made);
}

CUresult sim_cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    driver_lock();
    if (!type || !node_of(node))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *type = op_node_type(node->op.kind);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!lock_node(node, OP_KERNEL, params))
        return CUDA_ERROR_INVALID_VALUE;
    struct launch *launch = &node->op.launch;
    for (size_t i = 0; i < KERNEL_MAX_PARAMS; i++)
        node->param_pointers[i] = &launch->values[i];
    *params = (CUDA_KERNEL_NODE_PARAMS){
        .func = launch->kernel ? NULL : launch->function,
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->shared_bytes,
        .kernelParams = node->param_pointers,
        .kern = launch->kernel,
    };
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS newer;
    const CUresult result =
        params ? sim_cuGraphKernelNodeGetParams_v2(node, &newer) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    *params = (CUDA_KERNEL_NODE_PARAMS_v1){
        .func = node->op.launch.function,
        .gridDimX = newer.gridDimX,
        .gridDimY = newer.gridDimY,
        .gridDimZ = newer.gridDimZ,
        .blockDimX = newer.blockDimX,
        .blockDimY = newer.blockDimY,
        .blockDimZ = newer.blockDimZ,
        .sharedMemBytes = newer.sharedMemBytes,
        .kernelParams = newer.kernelParams,
    };
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct op op;
    if (!lock_node(node, OP_KERNEL, params))
        return CUDA_ERROR_INVALID_VALUE;
    return change(kernel_op(&op, params), node, &op);
}

CUresult sim_cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    struct op op;
    if (!lock_node(node, OP_KERNEL, params))
        return CUDA_ERROR_INVALID_VALUE;
    return change(kernel_op_v1(&op, params), node, &op);
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *copy)
{
    if (!lock_node(node, OP_COPY, copy))
        return CUDA_ERROR_INVALID_VALUE;
    *copy = node->op.copy;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
    struct op op;
    if (!lock_node(node, OP_COPY, copy))
        return CUDA_ERROR_INVALID_VALUE;
    return change(copy_op(&op, copy), node, &op);
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *set)
{
    if (!lock_node(node, OP_SET, set))
        return CUDA_ERROR_INVALID_VALUE;
    *set = node->op.set;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *set)
{
    struct op op;
    if (!lock_node(node, OP_SET, set))
        return CUDA_ERROR_INVALID_VALUE;
    return change(set_op(&op, set), node, &op);
}

CUresult sim_cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *host)
{
    if (!lock_node(node, OP_HOST, host))
        return CUDA_ERROR_INVALID_VALUE;
    *host = node->op.host;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
    struct op op;
    if (!lock_node(node, OP_HOST, host))
        return CUDA_ERROR_INVALID_VALUE;
    return change(host_op(&op, host), node, &op);
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    if (!lock_node(node, OP_GRAPH, graph))
        return CUDA_ERROR_INVALID_VALUE;
    *graph = node->op.child;
    return driver_unlock(CUDA_SUCCESS);
}

static CUresult get_event(CUgraphNode node, enum op_kind kind, CUevent *event)
{
    if (!lock_node(node, kind, event))
        return CUDA_ERROR_INVALID_VALUE;
    *event = node->op.event.event;
    return driver_unlock(CUDA_SUCCESS);
}

static CUresult set_event(CUgraphNode node, enum op_kind kind, CUevent event)
{
    struct op op;
    if (!lock_node(node, kind, event))
        return CUDA_ERROR_INVALID_VALUE;
    return change(event_op(&op, kind, event), node, &op);
}

CUresult sim_cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event)
{
    return get_event(node, OP_RECORD, event);
}

CUresult sim_cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
    return set_event(node, OP_RECORD, event);
}

CUresult sim_cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event)
{
    return get_event(node, OP_WAIT, event);
}

CUresult sim_cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
    return set_event(node, OP_WAIT, event);
}

CUresult sim_cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    if (!lock_node(node, OP_ALLOC, params))
        return CUDA_ERROR_INVALID_VALUE;
    const struct region *region = node->op.region;
    *params = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, region->device } },
        .bytesize = region->size,
        .dptr = region->base,
    };
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address)
{
    if (!lock_node(node, OP_FREE, address))
        return CUDA_ERROR_INVALID_VALUE;
    *address = node->op.address;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
    struct op op;
    driver_lock();
    if (!params || !node_of(node) || op_node_type(node->op.kind) != params->type)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (node->op.kind == OP_GRAPH || node->op.kind == OP_ALLOC || node->op.kind == OP_FREE)
        return driver_unlock(CUDA_ERROR_NOT_SUPPORTED);
    return change(graph_node_op(&op, params), node, &op);
}
