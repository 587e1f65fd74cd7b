/* sim_graph_node.c: adds single nodes to graphs: kernels, child graphs, conditional nodes and empty nodes. */
#include "sim_graph.h"

/* ---- Converting the program's parameters to ops. */

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

static CUresult child_op(struct op *op, CUgraph child)
{
    if (!graph_of(child))
        return CUDA_ERROR_INVALID_VALUE;
    *op = (struct op){ .kind = OP_GRAPH, .child = child };
    return CUDA_SUCCESS;
}

/* The body graphs of conditional nodes are never freed, because there are few of them. The array that the
 * program receives is reused after NODES_MAX nodes. */
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

static CUresult node_op(struct op *op, const CUgraphNodeParams *params)
{
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_op(op, &params->kernel);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return child_op(op, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return conditional_op(op, params);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* ---- Adding nodes. Each of these functions takes the lock, makes the common checks, and adds the op if it
 * could be created. */

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

CUresult sim_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                            CUgraphNodeParams *params)
{
    struct op op;
    if (!lock_graph(node, graph, params))
        return CUDA_ERROR_INVALID_VALUE;
    return add(node_op(&op, params), node, graph, &op, after, count);
}

CUresult sim_cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    driver_lock();
    if (!type || !node_of(node))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *type = op_node_type(node->op.kind);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    driver_lock();
    if (!graph || !node_of(node) || node->op.kind != OP_GRAPH)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *graph = node->op.child;
    return driver_unlock(CUDA_SUCCESS);
}
